"""Judgements as they arrive: a server that is gone ends the run, one that fails now and then does not, and lists go on in their middle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest
from builders import pointwise_examples, tiny_llama

from perse.engines.base import Capabilities, Failure, LabelDistribution, Reply, RequestFailure, Sampling
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput, EngineLost
from perse.files.runlog import RunLog
from perse.judgement import Judgement, Status, Tokens
from perse.judging import loop
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.loop import JUDGEMENTS, TIMING, answer_all, read_judgements, read_timing
from perse.questions import QUESTIONS
from perse.questions.claims import VERIFY_FACTS
from perse.records import ClaimsExample
from perse.rendering.prompt import Ids, LabelTokens, Renderer, TextRenderer

TWENTY = pointwise_examples(5, 4)
BATCH = 8


class Server:
    """Asked two things at once; `fails(n)` is what request number n, from 1, gets for an answer, if it is to fail."""

    def __init__(self, fails: Callable[[int], Failure | None] = lambda n: None) -> None:
        self.capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False, batch=BATCH, at_once=2)
        self.settings = {"engine": "served"}
        self.asked = 0
        self._fails = fails
        self._turn = Lock()

    def chat(self, messages: Sequence[Any], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply | Failure]:
        with self._turn:
            self.asked += 1
            number = self.asked
        return [self._fails(number) or Reply("[Review] fine\n[Score] 7", "stop", Tokens(prompt=0, cached=0, generated=0))]


def asked(server: Server, run: Path, examples: Sequence[Any] = TWENTY) -> list[Status]:
    """How the run stands, in the order of its lines, after all that it has no judgement of was asked."""
    with RunLog(run, {}, lines=JUDGEMENTS) as log:
        try:
            answer_all(
                Judge(server, TextRenderer(), name="s"), [(QUESTIONS["pointwise"], examples)], log, settings=JudgeSettings()
            )
        finally:
            found = [Status(row["status"]) for row in log.read()]
    return found


def statuses(run: Path) -> list[Status]:
    return [one.status for one in read_judgements(run / JUDGEMENTS).values()]


@pytest.mark.parametrize(("status", "error"), [(0, EngineLost), (503, EngineLost), (429, EngineLost), (404, BadInput)])
def test_a_server_that_is_gone_in_the_middle_ends_the_run_which_keeps_its_answers_and_no_failure(
    status: int, error: type[Exception], tmp_path: Path
) -> None:
    gone = Server(lambda n: RequestFailure("gone", status) if n > 5 else None)
    with pytest.raises(error, match="gone"):
        asked(gone, tmp_path)
    assert gone.asked <= 5 + BATCH + 2, "it was not asked on and on"
    assert statuses(tmp_path) == [Status.OK] * 5
    again = Server()
    assert asked(again, tmp_path) == [Status.OK] * 20 and again.asked == 15


def test_a_server_that_never_answers_is_gone_though_less_than_a_batch_was_asked(tmp_path: Path) -> None:
    with pytest.raises(EngineLost, match="gone; look after the server; the same command continues"):
        asked(Server(lambda n: RequestFailure("gone", 503)), tmp_path, TWENTY[:5])
    assert statuses(tmp_path) == []


def test_a_run_in_which_nothing_was_answered_keeps_the_failures_and_says_so(tmp_path: Path) -> None:
    server = Server(lambda n: RequestFailure("busy", 503))
    with pytest.raises(
        EngineLost, match="failed at every one of 4 questions, at the first because busy; look after it; the same command"
    ):
        asked(server, tmp_path, TWENTY[:4])
    assert statuses(tmp_path) == [Status.ENGINE_ERROR] * 4
    asked(Server(), tmp_path, TWENTY[:4])
    assert statuses(tmp_path) == [Status.OK] * 4


def test_that_it_fails_at_all_that_is_left_says_nothing_of_a_server_that_answered(tmp_path: Path) -> None:
    found = asked(Server(lambda n: RequestFailure("busy", 503) if n > 2 else None), tmp_path, TWENTY[:4])
    assert sorted(found) == [Status.ENGINE_ERROR] * 2 + [Status.OK] * 2
    asked(Server(lambda n: RequestFailure("busy", 503)), tmp_path, TWENTY[:4])
    assert sorted(statuses(tmp_path)) == sorted(found)


@pytest.mark.parametrize(
    "fails",
    [
        pytest.param(lambda n: RequestFailure("busy", 503) if n % 3 else None, id="it answers between"),
        pytest.param(lambda n: RequestFailure("busy", 500 + n % 2) if n > 1 else None, id="not all alike"),
        pytest.param(lambda n: RequestFailure("busy", 503) if n > 20 - BATCH + 1 else None, id="less than a batch, at the end"),
    ],
)
def test_a_server_that_fails_now_and_then_is_asked_to_the_end_and_the_next_command_asks_what_it_failed_at(
    fails: Callable[[int], Failure | None], tmp_path: Path
) -> None:
    found = asked(Server(fails), tmp_path)
    assert len(found) == 20 and set(found) == {Status.OK, Status.ENGINE_ERROR}
    again = Server()
    asked(again, tmp_path)
    assert again.asked == found.count(Status.ENGINE_ERROR)
    assert statuses(tmp_path) == [Status.OK] * 20


# --- lists


LISTS = [
    ClaimsExample(id=name, reviewer_id="t", text="It was built in 1987.", claims=tuple(f"It is {n} old." for n in range(size)))
    for name, size in (("a", 3), ("b", 1), ("c", 2))
]
ALL = ["a/1", "a/2", "a/3", "b/1", "c/1", "c/2"]


class Counting(TransformersEngine):
    """Sure that it wants to answer with a label, which a random model hardly ever is; counts what is read."""

    read = 0

    def label_distributions(self, prefixes: Sequence[Ids], support: LabelTokens) -> list[LabelDistribution | Failure]:
        self.read += len(prefixes)
        found = super().label_distributions(prefixes, support)
        return [one if isinstance(one, Failure) else replace(one, mass=0.9) for one in found]


def listed(engine: Counting, tokenizer: Any, run: Path) -> dict[str, Judgement]:
    with RunLog(run, {}, lines=JUDGEMENTS) as log:
        judge = Judge(engine, Renderer(tokenizer, 2048), name="tiny")
        answer_all(judge, [(VERIFY_FACTS, LISTS)], log, settings=JudgeSettings(temperature=1))
        ids = [row["id"] for row in log.read()]
        found = read_judgements(log.path)
    assert sorted(ids) == ALL, "each claim once"
    return {name: one for (_, name), one in found.items()}


@pytest.mark.slow
def test_a_list_that_was_killed_behind_any_line_goes_on_behind_it_to_the_same_labels(
    tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    model = tiny_llama(tokenizers["chatml"])
    whole = listed(Counting(model), tokenizers["chatml"], tmp_path / "whole")
    lines = (tmp_path / "whole" / JUDGEMENTS).read_text().splitlines(keepends=True)
    for kept in range(len(lines) + 1):
        run = tmp_path / f"killed-{kept}"
        with RunLog(run, {}, lines=JUDGEMENTS) as log:
            log.append(lines[:kept])
        engine = Counting(model)
        found = listed(engine, tokenizers["chatml"], run)
        assert engine.read == len(ALL) - kept, "only what had no judgement was read"
        for name, one in found.items():
            assert one.label == whole[name].label
            assert one.distribution == pytest.approx(whole[name].distribution, abs=1e-5)
            assert one.tokens.prompt == whole[name].tokens.prompt, "behind the same lines"


def test_each_batch_took_the_time_since_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count(1000)
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: next(clock) / 4))
    asked(Server(), tmp_path / "run")
    lines = (tmp_path / "run" / TIMING).read_text().splitlines()
    assert read_timing(tmp_path / "run" / TIMING) == (len(TWENTY), len(lines) / 4)


@pytest.mark.parametrize("line", ['{"judged": 9007199254740992, "seconds": 1}', '{"judged": 1, "seconds": 9007199254740992}'])
def test_a_time_that_no_run_takes_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / TIMING).write_text(line + "\n")
    with pytest.raises(BadInput, match="expected 'judged' and 'seconds'"):
        read_timing(tmp_path / TIMING)
