"""Several judge servers that serve the same model, and a client that keeps each reader at one of them.

A server knows a reader's profile once it was asked about it: the work is in its prefix cache. So requests about one reader go to one
server, by rendezvous hashing of what their prompts begin with; when a server is lost, its readers alone move, each to the next of its
own order.

    with Replicas(["http://one:8000", "http://two:8000"]) as judge:
        judgements = judge.pointwise_many(items)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import BaseModel

from perse.errors import BadInput
from perse.judgement import Judgement
from perse.serving.client import Item, JudgeClient, Problem, ServerError

Answer = TypeVar("Answer")

LOST = frozenset({0, 429, 503})
"""Codes of a server that another one may stand in for: not reached, full, stopping."""


class Replicas:
    """Asks several servers as `JudgeClient` asks one; `settings` are those of `JudgeClient`."""

    def __init__(self, urls: Sequence[str], **settings: Any) -> None:
        if not urls:
            raise BadInput("no server is named; give the address of one or more")
        self._clients = {url: JudgeClient(url, **settings) for url in dict.fromkeys(urls)}

    def pointwise(self, item: Item, **settings: Any) -> Judgement:
        """As `JudgeClient.pointwise`, at the reader's server.

        Raises:
            ServerError: no server can be asked, or the one that was refused the item.
        """
        return self._ask(item, lambda client: client.pointwise(item, **settings))

    def pairwise(self, item: Item, **settings: Any) -> Judgement:
        """As `JudgeClient.pairwise`, at the reader's server."""
        return self._ask(item, lambda client: client.pairwise(item, **settings))

    def pointwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        """As `JudgeClient.pointwise_many`; all servers work at the same time."""
        return self._many(items, lambda client, some: client.pointwise_many(some, **settings))

    def pairwise_many(self, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        """As `JudgeClient.pairwise_many`; all servers work at the same time."""
        return self._many(items, lambda client, some: client.pairwise_many(some, **settings))

    def ask(self, kind: str, item: Item, **settings: Any) -> Judgement:
        """As `JudgeClient.ask`, at the server of the reader or text."""
        return self._ask(item, lambda client: client.ask(kind, item, **settings))

    def ask_many(self, kind: str, items: Sequence[Item], **settings: Any) -> list[Judgement | Problem]:
        """As `JudgeClient.ask_many`; all servers work at the same time."""
        return self._many(items, lambda client, some: client.ask_many(kind, some, **settings))

    def claims(self, item: Item, **settings: Any) -> list[Judgement]:
        """As `JudgeClient.claims`, at the text's server."""
        return self._ask(item, lambda client: client.claims(item, **settings))

    def order(self, item: Item) -> list[str]:
        """The servers in the order in which this item's reader is taken to them."""
        reader = _reader(item)
        return sorted(self._clients, key=lambda url: hashlib.sha256(f"{url}\x1f{reader}".encode()).digest())

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _ask(self, item: Item, ask: Callable[[JudgeClient], Answer]) -> Answer:
        *others, last = self.order(item)
        for url in others:
            try:
                return ask(self._clients[url])
            except ServerError as error:
                if error.code not in LOST:
                    raise
        return ask(self._clients[last])

    def _many(
        self, items: Sequence[Item], ask: Callable[[JudgeClient, Sequence[Item]], list[Judgement | Problem]]
    ) -> list[Judgement | Problem]:
        orders = [self.order(item) for item in items]
        found: dict[int, Judgement | Problem] = {}
        for turn in range(len(self._clients)):  # what a lost server did not answer goes to the next of its readers' orders
            left = [n for n in range(len(items)) if n not in found or (turn and _lost(found[n]))]
            places = {url: [n for n in left if orders[n][turn] == url] for url in self._clients}
            work = [(url, some) for url, some in places.items() if some]
            with ThreadPoolExecutor(max(1, len(work))) as threads:
                answers = threads.map(lambda each: _tried(ask, self._clients[each[0]], [items[n] for n in each[1]]), work)
                for (_, some), answered in zip(work, answers, strict=True):
                    found |= dict(zip(some, answered, strict=True))
        return [found[n] for n in range(len(items))]


def _tried(
    ask: Callable[[JudgeClient, Sequence[Item]], list[Judgement | Problem]], client: JudgeClient, items: Sequence[Item]
) -> list[Judgement | Problem]:
    try:
        return ask(client, items)
    except ServerError as error:
        return list(error.problems(len(items)))


def _lost(found: Judgement | Problem) -> bool:
    return isinstance(found, Problem) and found.code in LOST


def _reader(item: Item) -> str:
    """What an item's prompt begins with: the reader's name on the server, or the profile, or the text that claims are about."""
    fields: Mapping[str, Any] = item.model_dump(mode="json") if isinstance(item, BaseModel) else item  # type: ignore[assignment]
    named = fields.get("reader")
    return (
        named
        if isinstance(named, str)
        else json.dumps(fields.get("profile") or fields.get("reviews") or fields.get("text"), sort_keys=True, default=str)
    )
