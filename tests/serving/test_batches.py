"""Batches: the answers that a list would get, later, whoever asks meanwhile and whatever becomes of the server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from builders import pointwise_examples
from full_disks import files_of_at_most
from places import ROOT
from served import in_thread

from perse.answering.base import JudgeSettings
from perse.engines.scripted import ScriptedEngine
from perse.errors import RunMismatch
from perse.rendering.prompt import TextRenderer
from perse.serving.batches import judging
from perse.serving.batches.kept import DAY, DEADLY, Batches
from perse.serving.client import AsyncJudgeClient, JudgeClient, Problem, ServerError
from perse.serving.embedded import embedded_app
from perse.serving.front.keys import add_key
from perse.serving.problems import Conflict
from perse.serving.readers.store import Readers
from perse.serving.service import Model

pytestmark = pytest.mark.slow

EXAMPLES = pointwise_examples(6, 5)
PATIENCE = 240
"""Seconds after which a test gives up waiting, on however busy a machine."""


def reply(message: str, seed: int) -> str:
    return f"[Review] of {len(message)}, {seed}\n[Score] {1 + len(message) % 10}/10"


def model(said: Callable[[str, int], str] = reply, digest: str = "d") -> Model:
    return Model(lambda calls: ScriptedEngine(said), TextRenderer(), digest, False)  # type: ignore[arg-type, return-value]


def app_of(folder: Path, of: Model | None = None, *, most: int = 64, days: float = 7, **more: Any) -> Any:
    """A server that keeps batches there."""
    return embedded_app({"first": of or model()}, JudgeSettings(), batches=Batches(folder, days=days, most=most), **more)


@contextmanager
def served(folder: Path, of: Model | None = None, **more: Any) -> Iterator[str]:
    """Its address."""
    with in_thread(app_of(folder, of, **more)) as url:
        yield url


def wait_for(condition: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it did not come to that"
        time.sleep(0.005)


@contextmanager
def stopped_after(answers: int, folder: Path, asked: Counter[str]) -> Iterator[JudgeClient]:
    """A client of a server that is stopped, when the block ends, in the middle: after so many questions, each noted in `asked`, its engine answers
    no other before the server stops."""
    reached = threading.Event()

    def said(message: str, seed: int) -> str:
        if sum(asked.values()) == answers:
            reached.set()
            wait_for(app.state.batches._stop.is_set)
        asked[message] += 1
        return reply(message, seed)

    app = app_of(folder, model(said))
    with in_thread(app) as url, JudgeClient(url) as judge:
        yield judge
        assert reached.wait(PATIENCE)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PERSE_API_KEY", "PERSE_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


def finished(judge: JudgeClient, batch: str) -> list[Any]:
    """Its results, once it is done."""
    wait_for(lambda: judge.batch(batch)["status"] == "done")
    return judge.batch_results(batch)


def without_sharing(found: list[Any]) -> list[Any]:
    """Without what of a prompt was known already, which hangs on what was asked before."""
    return [one if isinstance(one, Problem) else one.model_copy(update={"tokens": None}) for one in found]


def test_a_batch_has_the_answers_that_a_list_has(tmp_path: Path) -> None:
    items: list[Any] = [*EXAMPLES[:20], {"profile": [], "query": "twice"}, {"profile": [], "query": "twice"}]
    items += [{"query": "no profile"}, EXAMPLES[0], {"profile": [], "query": "once", "reviewer_id": "r"}]
    with served(tmp_path / "b") as url, JudgeClient(url) as judge:
        live = judge.pointwise_many(items, temperature=0.3, seed=7)
        batch = judge.submit("pointwise", items, temperature=0.3, seed=7)
        assert without_sharing(finished(judge, batch)) == without_sharing(live)
        assert judge.batch(batch)["failed"] == sum(isinstance(one, Problem) for one in live) == 2
        assert {one.question for one in finished(judge, judge.submit("pointwise", items[:3], question="pointwise_score"))} == {
            "pointwise_score"
        }


def test_the_asynchronous_client_and_other_kinds(tmp_path: Path) -> None:
    async def asked(url: str) -> list[Any]:
        async with AsyncJudgeClient(url) as judge:
            batch = await judge.submit("claim", [{"text": "Sun.", "claim": "It rains."}])
            async with asyncio.timeout(PATIENCE):
                while (await judge.batch(batch))["status"] != "done":
                    await asyncio.sleep(0.02)
            found = await judge.batch_results(batch)
            await judge.delete_batch(batch)
            with pytest.raises(ServerError, match="no batch"):
                await judge.batch(batch)
            return found

    with served(tmp_path / "b", model(lambda message, seed: "no")) as url:
        [found] = asyncio.run(asked(url))
    assert found.question == "verify_fact" and list((tmp_path / "b").iterdir()) == []


def test_whoever_waits_goes_first(tmp_path: Path) -> None:
    """The batch's first item is held until somebody waits, and what comes after them until it was looked how far the batch is."""
    asked: list[str] = []
    waits, looked = threading.Event(), threading.Event()

    def said(message: str, seed: int) -> str:
        asked.append("live" if "in a hurry" in message else "batch")
        if asked[-1] == "batch":
            assert (looked if "live" in asked else waits).wait(PATIENCE)
        return reply(message, seed)

    app = app_of(tmp_path / "b", model(said))
    with in_thread(app) as url, JudgeClient(url) as judge, ThreadPoolExecutor(1) as other:
        batch = judge.submit("pointwise", EXAMPLES)
        wait_for(lambda: asked)
        live = other.submit(JudgeClient(url).pointwise, {"profile": [], "query": "in a hurry"})
        wait_for(lambda: app.state.judge.turns.waiting)
        waits.set()
        live.result(PATIENCE)
        assert judge.batch(batch)["status"] == "running"
        with pytest.raises(ServerError, match="of 30 items are answered; ask for the results once") as early:
            judge.batch_results(batch)
        assert early.value.code == 409
        looked.set()
        finished(judge, batch)
    assert asked.index("live") <= judging.PART and asked.count("batch") == 30


def test_a_server_that_is_stopped_lets_its_items_go_and_the_next_one_goes_on(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()
    with served(tmp_path / "whole") as url, JudgeClient(url) as judge:
        whole = finished(judge, judge.submit("pointwise", EXAMPLES, seed=3))
    with stopped_after(12, tmp_path / "b", asked) as judge:
        batch = judge.submit("pointwise", EXAMPLES, seed=3)
    lines = [json.loads(line) for line in (tmp_path / "b" / batch / "answers.jsonl").read_text().splitlines()]
    assert "left" in lines[-1] or "n" in lines[-1]

    def said(message: str, seed: int) -> str:
        asked[message] += 1
        return reply(message, seed)

    with served(tmp_path / "b", model(said)) as url, JudgeClient(url) as judge:
        assert without_sharing(finished(judge, batch)) == without_sharing(whole)
    assert sum(asked.values()) <= 30 + judging.PART


SERVER = """
import os, sys, time
from pathlib import Path
import uvicorn
from perse.answering.base import JudgeSettings
from perse.engines.scripted import ScriptedEngine
from perse.rendering.prompt import TextRenderer
from perse.serving.batches.kept import Batches
from perse.serving.embedded import embedded_app
from perse.serving.service import Model

def said(message, seed):
    time.sleep(float(sys.argv[3]))
    if sys.argv[4] and sys.argv[4] in message:
        os._exit(9)
    return f"[Review] of {len(message)}, {seed}\\n[Score] {1 + len(message) % 10}/10"

folder, listening, pids = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[5])
while True:
    pid = os.fork()
    if not pid:
        model = Model(lambda calls: ScriptedEngine(said), TextRenderer(), "d", False)
        app = embedded_app({"first": model}, JudgeSettings(), batches=Batches(folder, days=7, most=64))
        uvicorn.run(app, fd=listening, log_level="error")
        os._exit(0)
    with pids.open("a") as file:
        file.write(f"{pid}\\n")
    if not os.waitpid(pid, 0)[1]:
        break
"""


@contextmanager
def supervised(folder: Path, *, pause: float = 0.0, deadly: str = "") -> Iterator[tuple[str, Callable[[], list[int]]]]:
    """A server in a process of its own that is started again, on the same port, each time that it dies; its address, and what gives the
    processes so far."""
    pids = folder.with_name("pids")
    pids.touch()

    def processes() -> list[int]:
        return [int(line) for line in pids.read_text().splitlines()]

    with socket.create_server(("127.0.0.1", 0)) as listening:
        number = listening.fileno()
        command = [sys.executable, "-c", SERVER, str(folder), str(number), str(pause), deadly, str(pids)]
        supervisor = subprocess.Popen(command, pass_fds=[number], env={**os.environ, "PYTHONPATH": str(ROOT)})
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", processes
        finally:
            supervisor.kill()
            supervisor.wait()
            for pid in processes()[-1:]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_a_server_that_is_killed_more_often_than_it_answers_has_every_answer_in_the_end(tmp_path: Path) -> None:
    with served(tmp_path / "whole") as url, JudgeClient(url) as judge:
        whole = finished(judge, judge.submit("pointwise", EXAMPLES))
    with supervised(tmp_path / "b", pause=0.02) as (url, processes), JudgeClient(url, tries=100) as judge:
        batch = judge.submit("pointwise", EXAMPLES)
        answers = tmp_path / "b" / batch / "answers.jsonl"
        for n in range(8):  # on a busy machine it may be done before the last of them
            told, pid = answers.read_text(), processes()[-1]
            # The first life answers nothing, each later one something: an item at which a server dies three times would be given up.
            what = '"n":' if n else '"begun":'
            wait_for(lambda: answers.read_text().count(what) > told.count(what) or '"ended"' in answers.read_text())  # noqa: B023
            time.sleep(0.015 * n)  # another place of the work each time
            os.kill(pid, signal.SIGKILL)
            wait_for(lambda: processes()[-1] != pid)  # noqa: B023
        assert without_sharing(finished(judge, batch)) == without_sharing(whole)


def test_an_item_that_kills_servers_is_answered_with_that_and_all_others_have_their_answers(tmp_path: Path) -> None:
    with supervised(tmp_path / "b", deadly=EXAMPLES[17].query) as (url, processes), JudgeClient(url, tries=100) as judge:
        found = finished(judge, judge.submit("pointwise", EXAMPLES))
        starts = len(processes())
    [bad] = [one for one in found if isinstance(one, Problem)]
    assert found[17] is bad and f"died {DEADLY} times while it was asked about this item" in bad.message
    assert starts == 1 + DEADLY and sum(not isinstance(one, Problem) for one in found) == 29


def test_an_item_at_which_something_unforeseen_breaks_is_answered_with_an_error(tmp_path: Path) -> None:
    def said(message: str, seed: int) -> str:
        if EXAMPLES[3].query in message:
            raise RuntimeError("a bug")
        return reply(message, seed)

    with served(tmp_path / "b", model(said)) as url, JudgeClient(url) as judge:
        found = finished(judge, judge.submit("pointwise", EXAMPLES))
    assert [n for n, one in enumerate(found) if isinstance(one, Problem) or one.status != "ok"] == [3]


def test_a_batch_is_its_callers_alone_and_one_caller_keeps_so_many(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    ann, bob = (add_key(file, name, ["judge"]) for name in ("ann", "bob"))
    with (
        served(tmp_path / "b", most=2, keys=file) as url,
        JudgeClient(url, key=ann) as own,
        JudgeClient(url, key=bob) as other,
    ):
        batch = own.submit("pointwise", EXAMPLES[:2])
        finished(own, batch)
        for ask in (other.batch, other.batch_results, other.delete_batch):
            with pytest.raises(ServerError, match="there is no batch 'batch_") as refused:
                ask(batch)
            assert refused.value.code == 404
        own.submit("pointwise", EXAMPLES[:2])
        with pytest.raises(ServerError, match="2 batches of this key are kept, as many as may be; DELETE one") as full:
            own.submit("pointwise", EXAMPLES[:2])
        assert full.value.code == 409
        other.submit("pointwise", EXAMPLES[:2])
        own.delete_batch(batch)
        own.submit("pointwise", EXAMPLES[:2])


def results_once_ann_is_gone(folder: Path, examples: int) -> tuple[list[Any], list[Any]]:
    """What is said of as many examples and, last, of a kept reader who is deleted before they come to their turn: as read, and as sent."""
    going = threading.Event()

    def said(message: str, seed: int) -> str:
        assert going.wait(PATIENCE)
        return reply(message, seed)

    readers = Readers.open(str(folder / "readers.db"))
    with served(folder / "b", model(said), readers=readers) as url, JudgeClient(url) as judge:
        judge.put_reader("ann", reviews=[{"text": "A plot.", "review": "Nobody else knows this.", "score": 3}])
        judge.submit("pointwise", EXAMPLES[:1])  # batches are judged one after the other, and this one is held
        batch = judge.submit("pointwise", [*EXAMPLES[:examples], {"reader": "ann", "query": "a new plot"}], k=1)
        kept = "".join(path.read_text() for path in (folder / "b" / batch).iterdir())
        assert "Nobody else knows this." not in kept, "a kept reader's reviews stay where they are kept"
        readers.delete("default", "ann")
        going.set()
        found = finished(judge, batch)
        return found, httpx2.get(f"{url}/v1/judge/batches/{batch}/results").json()["results"]


def test_a_reader_who_is_deleted_meanwhile_is_not_judged_for(tmp_path: Path) -> None:
    found, _ = results_once_ann_is_gone(tmp_path, 8)
    assert (
        isinstance(found[8], Problem) and found[8].code == 404 and "no reader 'ann' of yours here any more" in found[8].message
    )
    assert all(one.status == "ok" for one in found[:8])


def test_answers_of_another_judge_do_not_go_with_the_first_ones(tmp_path: Path) -> None:
    with stopped_after(2 * judging.PART + 1, tmp_path / "b", Counter()) as judge:
        batch = judge.submit("pointwise", EXAMPLES)
    with served(tmp_path / "b", model(digest="other")) as url, JudgeClient(url) as judge:
        found = finished(judge, batch)
    bad = [one for one in found if isinstance(one, Problem)]
    assert 0 < len(bad) < 30 and all("'first' was another judge when this batch came" in one.message for one in bad)


def test_what_is_done_for_long_enough_is_removed_and_nothing_of_a_strangers(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    with served(folder, days=2) as url, JudgeClient(url) as judge:
        batch = judge.submit("pointwise", EXAMPLES[:2])
        finished(judge, batch)
        told = judge.batch(batch)
    assert told["removed"] > told["done"]
    (folder / "notes.txt").write_text("mine")
    (folder / batch / "mine.txt").write_text("mine")
    half = folder / ".batch_0123456789abcdef01234567.perse-tmp"
    half.mkdir()
    (half / "items.jsonl").write_text("{}\n")
    linked = folder / "batch_aaaaaaaaaaaaaaaaaaaaaaaa"
    linked.symlink_to(tmp_path)
    assert {oct(path.stat().st_mode)[-3:] for path in (folder, folder / batch)} == {"700"}
    kept = Batches(folder, days=2, most=1)
    kept.sweep(time.time() + 1.9 * DAY)
    assert len(kept.of("default")) == 1 and not half.exists() and linked.is_symlink()
    kept.sweep(time.time() + 2.1 * DAY)
    assert kept.of("default") == [] and [path.name for path in (folder / batch).iterdir()] == ["mine.txt"]
    assert (folder / "notes.txt").read_text() == "mine"
    kept.close()


def test_a_folder_is_one_servers_and_a_damaged_batch_leaves_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "b"
    with served(folder) as url, JudgeClient(url) as judge:
        first, second = (judge.submit("pointwise", EXAMPLES[:2]) for _ in range(2))
        finished(judge, second)
        with pytest.raises(RunMismatch, match="is being written by another process"):
            Batches(folder, days=7, most=64)
    (folder / first / "answers.jsonl").write_text("no JSON\n")
    with served(folder) as url, JudgeClient(url) as judge:
        assert judge.batch(second)["status"] == "done"
        with pytest.raises(ServerError, match="no batch"):
            judge.batch(first)
    assert "a batch is left out" in caplog.text and "remove this batch's folder" in caplog.text


def test_on_a_full_disk_nothing_is_said_to_be_kept_that_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "DISK_AGAIN", 0.05)
    folder = tmp_path / "b"
    long = model(lambda message, seed: f"[Review] {'word ' * 2000}\n[Score] {seed % 10}/10")
    with served(folder, long) as url, JudgeClient(url, tries=1) as judge:
        whole = finished(judge, judge.submit("pointwise", EXAMPLES))
        size = max(path.stat().st_size for path in folder.glob("*/items.jsonl"))
        with files_of_at_most(size // 2):
            with pytest.raises(ServerError, match="the batch could not be kept"):
                judge.submit("pointwise", EXAMPLES)
            assert len(list(folder.glob("batch_*"))) == 1
        with files_of_at_most(size + 100):  # its answers are longer than its items
            batch = judge.submit("pointwise", EXAMPLES)
            time.sleep(0.5)
            assert judge.batch(batch)["status"] == "running"
        assert without_sharing(finished(judge, batch)) == without_sharing(whole)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"input": []}, "'input' is an empty list"),
        ({"input": {"query": "x", "profile": []}}, "valid list"),
        ({"kind": "poem", "input": [{}]}, "field 'kind': expected one of pointwise, "),
        ({"kind": "pairwise", "question": "review", "input": [{}]}, "of kind 'pairwise'"),
        ({"input": [{"profile": [], "query": "x"}], "model": "second"}, "there is no model 'second' here"),
        ({"input": [{"profile": [], "query": "x"}], "k": 3}, "no item names a 'reader'"),
    ],
)
def test_what_no_list_may_ask_no_batch_may(tmp_path: Path, body: dict[str, Any], why: str) -> None:
    with served(tmp_path / "b") as url:
        answer = httpx2.post(f"{url}/v1/judge/batches", json=body)
    assert 400 <= answer.status_code < 500 and why in answer.json()["error"]["message"]
    assert list((tmp_path / "b").iterdir()) == []


def test_a_server_without_a_folder_says_how_to_give_it_one() -> None:
    with (
        in_thread(embedded_app({"first": model()}, JudgeSettings())) as url,
        JudgeClient(url) as judge,
        pytest.raises(ServerError, match="this server keeps no batches; start it with batches=FOLDER"),
    ):
        judge.submit("pointwise", EXAMPLES)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("answers.jsonl", '{"n": 0, "result": 5}'),
        ("answers.jsonl", '{"n": 99, "result": {}}'),
        ("answers.jsonl", '{"n": true, "result": {}}'),
        ("answers.jsonl", '{"begun": {"a": "b"}}'),
        ("answers.jsonl", '{"begun": [1000000000000]}'),
        ("answers.jsonl", '{"left": "all"}'),
        ("answers.jsonl", '{"ended": 1.5}'),
        ("answers.jsonl", '{"ended": Infinity}'),
        ("answers.jsonl", "{}"),
        ("batch.json", {"size": 10**12}),
        ("batch.json", {"size": "2"}),
        ("batch.json", {"created": "today"}),
        ("batch.json", {"created": 1e300}),
        ("batch.json", {"kind": "../x"}),
        ("batch.json", {"asked": {}}),
        ("batch.json", {"asked": {"question": "pointwise", "model": "first", "sha256": "d", "temperature": "hot"}}),
        ("batch.json", {"deaths": 3}),
        ("items.jsonl", "{}"),
    ],
)
def test_files_that_somebody_changed_leave_their_batch_out_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, change: Any
) -> None:
    kept = Batches(tmp_path / "b", days=7, most=9)
    asked = {"question": "pointwise", "model": "first", "sha256": "d"}
    other, changed = (kept.add("ann", "pointwise", asked, [{"id": "a"}, {"id": "b"}]) for _ in range(2))
    kept.close()
    file = changed.folder / name
    if isinstance(change, dict):
        file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    else:
        file.write_text(file.read_text() + change + "\n")
    again = Batches(tmp_path / "b", days=7, most=9)
    assert [one.id for one in again.of("ann")] == [other.id] and "a batch is left out" in caplog.text
    again.close()


@pytest.mark.parametrize("what", ["moved away", "a link to nothing", "a folder"])
def test_a_batch_whose_first_file_is_not_there_loses_none_of_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    kept = Batches(tmp_path / "b", days=7, most=9)
    batch = kept.add("ann", "pointwise", {"question": "pointwise", "model": "first", "sha256": "d"}, [{"id": "a"}, {"id": "b"}])
    kept.close()
    about = batch.folder / "batch.json"
    about.rename(tmp_path / "batch.json")
    if what == "a link to nothing":
        about.symlink_to(tmp_path / "gone")
    elif what == "a folder":
        about.mkdir()
    before = {path.name for path in batch.folder.iterdir()}
    again = Batches(tmp_path / "b", days=7, most=9)
    again.close()
    assert not again.of("ann") and {path.name for path in batch.folder.iterdir()} == before
    assert "batch.json is not there, or no file; put it back, or remove this batch's folder" in caplog.text
    if what == "moved away":
        (tmp_path / "batch.json").rename(about)
        whole = Batches(tmp_path / "b", days=7, most=9)
        assert [one.id for one in whole.of("ann")] == [batch.id]
        whole.close()


def test_a_batch_that_cannot_be_judged_keeps_no_other_waiting_and_no_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(judging, "DISK_AGAIN", 0.2)
    going = threading.Event()

    def said(message: str, seed: int) -> str:
        assert going.wait(PATIENCE)
        return reply(message, seed)

    with served(tmp_path / "b", model(said)) as url, JudgeClient(url) as judge:
        first, lost, last = (judge.submit("pointwise", EXAMPLES[:2]) for _ in range(3))
        (tmp_path / "b" / lost / "items.jsonl").unlink()
        going.set()
        assert len(finished(judge, first)) == len(finished(judge, last)) == 2
        time.sleep(0.5)
        assert judge.batch(lost)["status"] == "waiting"
    told = [one for one in caplog.messages if "has 0 of 2 items; remove this batch's folder" in one]
    assert 1 <= len(told) < 10


def test_a_batch_that_cannot_be_deleted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    going = threading.Event()

    def said(message: str, seed: int) -> str:
        assert going.wait(PATIENCE)
        return reply(message, seed)

    def refused(folder: Path) -> None:
        raise OSError(1, "not permitted")

    with served(tmp_path / "b", model(said)) as url, JudgeClient(url, tries=1) as judge:
        batch = judge.submit("pointwise", EXAMPLES[:3])
        with monkeypatch.context() as patch:
            patch.setattr("perse.serving.batches.kept.remove_files", refused)
            with pytest.raises(ServerError, match="the batch could not be removed"):
                judge.delete_batch(batch)
        going.set()
        assert len(finished(judge, batch)) == 3


def test_of_many_who_come_at_once_no_more_are_kept_than_may_be(tmp_path: Path) -> None:
    kept = Batches(tmp_path / "b", days=7, most=5)
    asked = {"question": "pointwise", "model": "first", "sha256": "d"}

    def add(_: int) -> bool:
        try:
            kept.add("ann", "pointwise", asked, [{"id": "a"}])
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(add, range(40))) == 5 == len(kept.of("ann"))
    kept.close()


def test_an_error_says_which_item_of_the_batch_it_is_of(tmp_path: Path) -> None:
    _, sent = results_once_ann_is_gone(tmp_path, 20)
    assert sent[20]["error"]["param"] == "input.20"
