"""A batch whose answer is lost on its way is kept once, however often it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from builders import pointwise_examples
from served import in_thread
from test_batches import app_of

from perse.serving.client import AsyncJudgeClient, JudgeClient, ServerError
from perse.serving.front.keys import add_key

pytestmark = pytest.mark.slow

EXAMPLES = pointwise_examples(2, 3)
PATH = "/v1/judge/batches"
BODY: dict[str, Any] = {"kind": "pointwise", "input": [{"profile": [], "query": "a new plot"}]}


@contextmanager
def cut(folder: Path, times: int, **more: Any) -> Iterator[str]:
    """A server that keeps batches in `folder`, and dies, to its client, in the middle of its first so many answers to one that was sent."""
    app, left = app_of(folder, **more), [times]

    async def cutting(scope: Any, receive: Any, send: Any) -> None:
        async def half(message: Any) -> None:
            if message["type"] != "http.response.body" or not message.get("body"):
                await send(message)
                return
            await send({**message, "body": message["body"][:10], "more_body": True})
            raise ConnectionResetError("the server dies")

        if scope.get("path") == PATH and scope["method"] == "POST" and left[0]:
            left[0] -= 1
            await app(scope, receive, half)
        else:
            await app(scope, receive, send)

    with in_thread(cutting) as url:
        yield url


def batches(url: str, **headers: str) -> list[str]:
    return [one["batch"] for one in httpx2.get(f"{url}{PATH}", headers=headers).json()["batches"]]


def test_a_batch_whose_answer_is_lost_is_kept_once(tmp_path: Path) -> None:
    async def later(url: str) -> str:
        async with AsyncJudgeClient(url) as judge:
            return await judge.submit("pointwise", EXAMPLES)

    with cut(tmp_path / "b", 2) as url, JudgeClient(url) as judge:
        first = judge.submit("pointwise", EXAMPLES)
        assert batches(url) == [first]
        second = judge.submit("pointwise", EXAMPLES)
        assert batches(url) == [first, second], "who sends a list twice has two batches"
    with cut(tmp_path / "b", 1) as url:
        third = asyncio.run(later(url))
        assert batches(url) == [first, second, third]


def test_a_client_that_may_try_once_says_that_the_answer_was_lost(tmp_path: Path) -> None:
    with cut(tmp_path / "b", 1) as url, JudgeClient(url, tries=1) as judge, pytest.raises(ServerError, match="no answer from"):
        judge.submit("pointwise", EXAMPLES)


def test_a_key_stands_for_one_batch_of_its_caller_also_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    ann, bob = ({"Authorization": f"Bearer {add_key(file, name, ['judge'])}"} for name in ("ann", "bob"))
    key = {"Idempotency-Key": "0f" * 16}

    def sent(url: str, body: dict[str, Any], **headers: str) -> httpx2.Response:
        return httpx2.post(f"{url}{PATH}", json=body, headers=headers)

    with cut(tmp_path / "b", 0, keys=file, most=1) as url:
        kept = sent(url, BODY, **key, **ann).json()["batch"]
        turned = dict(reversed(BODY.items()))
        assert sent(url, turned, **key, **ann).json()["batch"] == kept, "and the one that is kept is no other"
        assert sent(url, BODY, **key, **bob).json()["batch"] not in (kept, None)
    with cut(tmp_path / "b", 0, keys=file, most=1) as url:
        assert sent(url, BODY, **key, **ann).json()["batch"] == kept
        other = sent(url, {**BODY, "seed": 3}, **key, **ann)
        assert other.status_code == 409 and f"this key was sent with another batch ({kept})" in other.text
        assert httpx2.delete(f"{url}{PATH}/{kept}", headers=ann).status_code == 200
        assert sent(url, {**BODY, "seed": 3}, **key, **ann).status_code == 200, "a key is forgotten with its batch"


@pytest.mark.parametrize("key", ["", "a b", "x" * 101, "\xe9"])
def test_a_key_that_is_none_is_refused(tmp_path: Path, key: str) -> None:
    with cut(tmp_path / "b", 0) as url:
        said = httpx2.post(f"{url}{PATH}", json=BODY, headers={"Idempotency-Key": key.encode("latin-1")})
        assert said.status_code == 400 and "dempotency-" in said.json()["error"]["message"], said.text
        assert batches(url) == []
