"""Shards judged by judge servers: the same answers as by workers, whatever becomes of the servers, and no key in any file."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from builders import pointwise_examples
from command_line import perse
from hostile_server import hostile
from served import in_thread

from perse.answering.base import JudgeSettings
from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.finishing import audit, merge
from perse.batch.sharded.inputs import Row
from perse.batch.sharded.running import Asker, Places
from perse.batch.sharded.starting import SERVED, Request, Run, start
from perse.batch.sharded.working import work
from perse.engines.kind import Identity, LoadOptions
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput, RunMismatch
from perse.judging.judge import Judge
from perse.records import PointwiseExample
from perse.rendering.prompt import TextRenderer
from perse.scale import SCORES
from perse.serving import scoring
from perse.serving.client import JudgeClient
from perse.serving.embedded import embedded_app
from perse.serving.replicas import Replicas
from perse.serving.scoring import score_on_servers
from perse.serving.service import Model
from perse.settings.serving import Limits
from perse.stacking.file import OrdinalModel, StackedData, StackedJudge, Stacking
from perse.stacking.sources import Known

pytestmark = pytest.mark.slow

SETTINGS = JudgeSettings(temperature=0)


def reply(message: str, seed: int) -> str:
    return f"[Review] of {len(message)}\n[Score] {1 + len(message) % 10}/10"


class Server:
    """A judge server over a script, which can be lost and come back at another address only."""

    def __init__(self, *, digest: str = "d", deadly: str = "", stacking: Stacking | None = None, **settings: Any) -> None:
        self.asked: list[str] = []

        def said(message: str, seed: int) -> str:
            self.asked.append(message)
            if deadly and deadly in message:
                self.lose()
                while self.lets_in():
                    time.sleep(0.01)
            return reply(message, seed)

        model = Model(lambda calls: ScriptedEngine(said), TextRenderer(), digest, False, stacking=stacking)  # type: ignore[arg-type, return-value]
        self._app = embedded_app({"first": model}, SETTINGS, **settings)
        self._running = ExitStack()
        self.url = self._running.enter_context(in_thread(self._app))

    def lets_in(self) -> bool:
        """Whether a connection to it can be made."""
        try:
            socket.create_connection(("127.0.0.1", int(self.url.rpartition(":")[2])), timeout=60).close()
        except OSError:
            return False
        return True

    def lose(self) -> None:
        threading.Thread(target=self._running.close, daemon=True).start()

    def close(self) -> None:
        self._running.close()


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Server]]:
    for name in ("PERSE_API_KEY", "PERSE_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    running = [Server(), Server()]
    yield running
    for one in running:
        one.close()


EXAMPLES = pointwise_examples(9, 5)


def begun(
    folder: Path,
    *,
    judge: str = f"{SERVED}first",
    examples: list[PointwiseExample] = EXAMPLES,
    fold: int | None = None,
    **data: str,
) -> Run:
    rows = [Row(one, "in", n) for n, one in enumerate(examples)]
    inputs = {"sha256": "x", **({} if fold is None else {"fold": fold})}
    return start(folder, Request(judge, LoadOptions(), SETTINGS, inputs, shard_rows=8, data=data), iter(rows))


def stacking(cut: float = 0.0, *, fold: int | None = None) -> Stacking:
    return Stacking(
        question="pointwise",
        scale=SCORES.labels,
        judge=StackedJudge(model="first", sha256="d"),
        data=StackedData(sha256="reviews", fold=fold),
        examples=10,
        readers=(),
        known=Known(mean=6, item_penalty=1, reader_penalty=10, texts={}, readers=()),
        models=(OrdinalModel(sources=(), cuts=tuple(cut + n for n in range(-4, 5)), weights={}),),
    )


def merged(run: Run, out: Path) -> list[dict[str, Any]]:
    assert audit(Places(run.folder), run.plan).whole
    merge(Places(run.folder), run.plan, out)
    return [json.loads(line) for line in out.read_text().splitlines()]


def test_servers_give_the_file_that_a_worker_gives(tmp_path: Path, servers: list[Server]) -> None:
    run = begun(tmp_path / "served")
    told: list[tuple[int, int]] = []
    score_on_servers(run, [one.url for one in servers], session="s", name="w", on_progress=lambda *at: told.append(at))
    assert told[-1] == (45, 45)
    judge = Judge(ScriptedEngine(reply), TextRenderer(), name="first")
    here = begun(tmp_path / "here")
    asker = Asker(here.question, Identity("first"), lambda some: judge.ask(here.question, list(some), SETTINGS))  # type: ignore[arg-type]
    work(Places(here.folder), here.plan, asker, Claims(here.folder / "claims", Holder.me("w")), session="s")
    assert merged(run, tmp_path / "served.jsonl") == merged(here, tmp_path / "here.jsonl")
    assert (tmp_path / "served.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()
    assert all(one.asked for one in servers)
    profiles = [{message.rpartition("New plot")[0] for message in one.asked} for one in servers]
    assert not profiles[0] & profiles[1], "each reader at one server"


def test_a_server_is_not_sent_what_the_reader_said_of_the_text(
    tmp_path: Path, servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    ask_many = Replicas.ask_many

    def noted(self: Replicas, kind: str, items: Any, **settings: Any) -> Any:
        sent.extend(items)
        return ask_many(self, kind, items, **settings)

    monkeypatch.setattr(Replicas, "ask_many", noted)
    assert all(one.reference is not None for one in EXAMPLES)
    score_on_servers(begun(tmp_path / "run"), [servers[0].url], session="s", name="w")
    assert len(sent) == 45 and all(one.reference is None for one in sent)


def test_the_readers_of_a_lost_server_go_to_the_others(tmp_path: Path, servers: list[Server]) -> None:
    run = begun(tmp_path / "run")
    servers[0].close()
    score_on_servers(run, [one.url for one in servers], session="s", name="w", tries=1)
    assert {one["status"] for one in merged(run, tmp_path / "all.jsonl")} == {"ok"} and len(servers[1].asked) == 45


def test_without_a_server_the_run_ends_with_a_sentence_and_the_same_command_continues(
    tmp_path: Path, servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "BACK", 0.5)
    run = begun(tmp_path / "run")
    dying = Server(deadly=EXAMPLES[20].query)
    with pytest.raises(BadInput, match="no server answers .*; what was finished is kept, and the same command continues"):
        score_on_servers(run, [dying.url], session="s", name="w", tries=1)
    with pytest.raises(BadInput, match=f"no answer from {dying.url}"):
        score_on_servers(run, [dying.url], session="s", name="w", tries=1)
    score_on_servers(run, [servers[0].url], session="s", name="w")
    assert len(merged(run, tmp_path / "all.jsonl")) == 45


def test_a_server_with_another_judge_or_none_of_that_name_is_refused_by_its_address(
    tmp_path: Path, servers: list[Server]
) -> None:
    run = begun(tmp_path / "run")
    other = Server(digest="another")
    try:
        with pytest.raises(RunMismatch, match=f'{other.url}: .*sha256 "another" here, "d" there'):
            score_on_servers(run, [servers[0].url, other.url], session="s", name="w")
        with pytest.raises(BadInput, match=f"{other.url} serves no 'second'; choose from first"):
            score_on_servers(begun(tmp_path / "b", judge=f"{SERVED}second"), [other.url], session="s", name="w")
    finally:
        other.close()
    with pytest.raises(BadInput, match="of a judge that workers load"):
        score_on_servers(begun(tmp_path / "c", judge="openai:http://x/v1#m"), [servers[0].url], session="s", name="w")


def test_what_two_servers_stack_by_two_files_is_not_one_run(tmp_path: Path) -> None:
    with ExitStack() as running:
        one, other, none = (Server(stacking=each) for each in (stacking(), stacking(0.5), None))
        for each in (one, other, none):
            running.callback(each.close)
        with pytest.raises(
            RunMismatch, match=f'{other.url}: .*stacking "{stacking(0.5).digest}" here, "{stacking().digest}" there'
        ):
            score_on_servers(begun(tmp_path / "two"), [one.url, other.url], session="s", name="w")
        with pytest.raises(RunMismatch, match=f'{none.url}: .*stacking null here, "{stacking().digest}" there'):
            score_on_servers(begun(tmp_path / "none"), [one.url, none.url], session="s", name="w")
        score_on_servers(run := begun(tmp_path / "run"), [one.url], session="s", name="w")
        assert all(answer["stacked"] for answer in merged(run, tmp_path / "all.jsonl"))
        with pytest.raises(RunMismatch, match="stacking"):
            score_on_servers(run, [other.url], session="s", name="w")


def test_a_server_tells_whose_answers_its_stacking_combines() -> None:
    """Of other questions nothing is `stacked`: the default of a route need not be the one that `perse fit` saw."""
    server = Server(stacking=stacking())
    try:
        told = JudgeClient(server.url).version()["models"]["first"]["stacking"]
    finally:
        server.close()
    assert (told["question"], told["sha256"], told["data_sha256"]) == ("pointwise", stacking().digest, "reviews")


def test_a_stacking_at_a_server_is_of_the_data_set_and_the_fold_that_are_asked_about(tmp_path: Path) -> None:
    with ExitStack() as running:
        whole, second = Server(stacking=stacking()), Server(stacking=stacking(fold=1))
        for each in (whole, second):
            running.callback(each.close)
        score_on_servers(begun(tmp_path / "mine", data_digest="reviews"), [whole.url], session="s", name="w")
        score_on_servers(begun(tmp_path / "fold", data_digest="reviews", fold=1), [second.url], session="s", name="w")
        with pytest.raises(BadInput, match=f"the stacking at {whole.url}: .*another data set .*no_stacking=true"):
            score_on_servers(begun(tmp_path / "other", data_digest="films"), [whole.url], session="s", name="w")
        with pytest.raises(BadInput, match=f"the stacking at {second.url}: .*another fold .*no_stacking=true"):
            score_on_servers(begun(tmp_path / "first", data_digest="reviews", fold=0), [second.url], session="s", name="w")


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"models": ["first"]},
        {"models": {"first": "x"}, "version": "1", "perse": "1", "engine": {}},
        {"models": {}, "version": 1},
    ],
)
def test_what_is_no_judge_server_is_told_in_a_sentence(tmp_path: Path, told: dict[str, Any]) -> None:
    with (
        hostile(lambda *_: told) as server,
        pytest.raises(BadInput, match=f"{server.url} is no judge server of perse: its /version has "),
    ):
        score_on_servers(begun(tmp_path), [server.url], session="s", name="w")


def test_a_busy_server_is_waited_for_and_what_it_refuses_of_one_example_is_that_examples_answer(tmp_path: Path) -> None:
    server = Server(limits=Limits(requests=1))
    long = EXAMPLES[3].model_copy(update={"query": "word " * 2_000_000})
    try:
        run = begun(tmp_path / "run", examples=[*EXAMPLES[:3], long, *EXAMPLES[4:]])
        score_on_servers(run, [server.url], session="s", name="w")
    finally:
        server.close()
    statuses = {one["id"]: one["status"] for one in merged(run, tmp_path / "all.jsonl")}
    assert statuses.pop(long.id) == "engine_error" and set(statuses.values()) == {"ok"}


def test_the_command_asks_servers_and_keeps_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "ZQs3cretKEYofMine77"
    monkeypatch.setenv("PERSE_API_KEY", key)
    server = Server()  # which wants it
    source = tmp_path / "in.jsonl"
    source.write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in EXAMPLES))
    words = [
        "score",
        "--examples",
        source,
        "--judge",
        "first",
        "--temperature",
        "0",
        "--out",
        tmp_path / "run",
        "--shard-rows",
        "8",
    ]
    try:
        done = perse(*map(str, words), "--driver", "http", "--servers", server.url)
        assert done.returncode == 0 and "(45 ok)" in done.stderr, done.stderr
        lacking = perse(*map(str, words), "--driver", "http")
        assert lacking.returncode == 2 and "--driver http and --servers belong together" in lacking.stderr
    finally:
        server.close()
    work_here = perse("score", "work", str(tmp_path / "run"))
    assert work_here.returncode == 0, "nothing is left"
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or key.encode() not in path.read_bytes(), path
