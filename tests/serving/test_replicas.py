"""Clients of several servers, and of servers that keep readers: one reader at one server, and nobody lost with a server."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from builders import pairwise_examples, pointwise_examples
from served import in_thread

from perse.answering.base import JudgeSettings
from perse.errors import BadInput
from perse.judgement import Judgement
from perse.serving.client import AsyncJudgeClient, JudgeClient, Problem, ServerError
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.readers.store import Readers
from perse.serving.replicas import Replicas
from perse.serving.service import Model
from perse.settings.serving import Limits

SETTINGS = JudgeSettings(temperature=0, max_new_tokens=4)


@pytest.fixture(scope="module")
def models(tiny_model_folder: Path) -> dict[str, Model]:
    return embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=2048)


class Running:
    def __init__(self, app: Any) -> None:
        self.app = app
        self._running = ExitStack()
        self.url = self._running.enter_context(in_thread(app))

    def stop(self) -> None:
        self._running.close()

    @property
    def judged(self) -> float:
        lines = self.app.state.front.metrics.text().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("perse_judgements_total"))


@pytest.fixture
def servers(models: dict[str, Model], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[Running]]:
    for name in ("PERSE_API_KEY", "PERSE_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    apps = [
        embedded_app(models, SETTINGS, readers=Readers.open(str(tmp_path / f"{n}.db")), limits=Limits(requests=4))
        for n in range(3)
    ]
    running = [Running(app) for app in apps]
    yield running
    for one in running:
        one.stop()


def items(readers: int, each: int) -> list[dict[str, Any]]:
    examples = pointwise_examples(readers, each)
    by_reader: dict[str, Any] = {}
    for one in examples:  # all of a reader's with one profile, as where it is drawn once
        by_reader.setdefault(one.reviewer_id, one.profile)
    return [one.model_copy(update={"profile": by_reader[one.reviewer_id]}).model_dump(mode="json", exclude_none=True) for one in examples]  # fmt: skip


@pytest.mark.slow
def test_each_reader_stays_at_one_server_and_the_order_of_items_is_kept(servers: list[Running]) -> None:
    asked = items(12, 3)
    with Replicas([one.url for one in servers]) as judge:
        places = {item["reviewer_id"]: set[str]() for item in asked}
        for item in asked:
            places[item["reviewer_id"]].add(judge.order(item)[0])
        assert {len(urls) for urls in places.values()} == {1}
        answers = judge.pointwise_many(asked, question="pointwise_score")
        single = judge.pointwise(asked[0], question="pointwise_score")
    assert [one.id for one in answers if isinstance(one, Judgement)] == [item["id"] for item in asked] and single.id == asked[
        0
    ]["id"]
    expected = Counter(min(places[item["reviewer_id"]]) for item in asked)
    expected[min(places[asked[0]["reviewer_id"]])] += 1
    assert {one.url: one.judged for one in servers} == {one.url: expected[one.url] for one in servers}
    assert sum(1 for one in servers if one.judged) >= 2, "work is shared"


@pytest.mark.slow
def test_readers_of_a_lost_server_move_and_others_stay(servers: list[Running]) -> None:
    asked = items(12, 2)
    with Replicas([one.url for one in servers], tries=1) as judge:
        before = [judge.order(item) for item in asked]
        lost = next(one for one in servers if one.url == before[0][0])
        lost.stop()
        answers = judge.pointwise_many(asked, question="pointwise_score")
        assert all(isinstance(one, Judgement) for one in answers)
        assert judge.pointwise(asked[0], question="pointwise_score").id == asked[0]["id"]
        for one in servers:
            stay = sum(order[0] == one.url for order in before)
            moved = sum(order[0] == lost.url and order[1] == one.url for order in before)
            if one is not lost:
                assert one.judged == stay + moved + (before[0][1] == one.url)


@pytest.mark.slow
def test_a_refused_item_is_not_taken_elsewhere_and_no_server_is_told(servers: list[Running]) -> None:
    with Replicas([one.url for one in servers]) as judge:
        with pytest.raises(ServerError) as refused:
            judge.pointwise({"profile": [], "query": ""})
        assert refused.value.code == 400
        [good, bad] = judge.pointwise_many([items(1, 1)[0], {"query": 1}], question="pointwise_score")
        assert isinstance(good, Judgement) and isinstance(bad, Problem) and bad.code == 400
        pairs = judge.pairwise_many(pairwise_examples())
        assert len(pairs) == len(pairwise_examples()) and judge.pairwise(pairwise_examples()[0]).id == pairs[0].id  # type: ignore[union-attr]
    for one in servers:
        one.stop()
    with Replicas([one.url for one in servers], tries=1) as judge:
        assert [one.code for one in judge.pointwise_many(items(2, 1)) if isinstance(one, Problem)] == [0, 0]
    with pytest.raises(BadInput, match="no server is named"):
        Replicas([])


def test_clients_keep_read_list_and_delete_readers(servers: list[Running]) -> None:
    example = pointwise_examples(1, 1)[0]
    with JudgeClient(servers[0].url) as judge:
        for name in ("ann", "b/ä ?"):
            judge.put_reader(name, reviews=example.profile)
        assert judge.readers() == ["ann", "b/ä ?"]
        assert len(judge.reader("b/ä ?")["record"]["reviews"]) == len(example.profile)
        kept = judge.pointwise({"id": example.id, "reader": "b/ä ?", "query": example.query}, question="pointwise_score")
        assert kept.distribution == pytest.approx(judge.pointwise(example, question="pointwise_score").distribution, abs=1e-5)
        judge.delete_reader("b/ä ?")
        for ask in (lambda: judge.reader("b/ä ?"), lambda: judge.delete_reader("b/ä ?")):
            with pytest.raises(ServerError, match="no reader") as refused:
                ask()
            assert refused.value.code == 404
        for name in ("", ".", "..", "Jos\udce9"):
            with pytest.raises(BadInput, match="a reader's name"):
                judge.reader(name)

    async def same() -> list[str]:
        async with AsyncJudgeClient(servers[0].url) as asking:
            await asking.put_reader("carl", reviews=example.profile)
            await asking.delete_reader("ann")
            assert (await asking.reader("carl"))["reviews"] == len(example.profile)
            return await asking.readers()

    assert asyncio.run(same()) == ["carl"]


@pytest.mark.slow
def test_an_asynchronous_client_has_so_many_requests_under_way_and_the_others_wait(servers: list[Running]) -> None:
    """The server takes four at once: a client that asked all of them together would be refused."""
    asked = items(20, 1)

    async def run() -> list[Judgement]:
        async with AsyncJudgeClient(servers[0].url, at_once=4, tries=1) as judge:
            return await asyncio.gather(*(judge.pointwise(item, question="pointwise_score") for item in asked))

    assert [one.id for one in asyncio.run(run())] == [item["id"] for item in asked]
