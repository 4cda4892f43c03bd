"""Every kgds command that asks, killed after every second answer: the same files as of one that never was, and nothing asked twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from draft_builders import fill_in, obedient, write_drafts
from draft_builders import run as build_in
from kgds_builders import benchmark
from kills import Script, check_nothing_lost
from test_feedback import a_judge, preferring, write_run
from test_feedback import summary as selecting
from test_generate import right
from test_verify import Asked, run_folder, says, summary, verified

from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge
from perse.kgds.asking.feedback import feedback
from perse.kgds.asking.generate import generate
from perse.kgds.asking.opinion_errors import detect
from perse.rendering.prompt import TextRenderer
from perse.writing.writer import Writer


def summarized(folder: Path) -> None:
    run_folder(folder, summary(1), summary(1, "ebs-aos"), summary(2))


def verified_before(folder: Path) -> None:
    summarized(folder)
    verified(Asked().judge, folder / "run")


def verify_singly(folder: Path, script: Script) -> None:
    verified(a_judge(script), folder / "run")


def verify_lists(folder: Path, script: Script) -> None:
    verified(a_judge(script), folder / "run", facts="paragraph")


def classify(folder: Path, script: Script) -> None:
    detect(a_judge(script), benchmark(), folder / "run", name="verified")


def eight_that_differ(folder: Path) -> None:
    write_run(folder, [selecting(number, [1]) for number in range(1, 9)])


def write(folder: Path, script: Script) -> None:
    judge = Judge(ScriptedEngine(script, batch=1), TextRenderer(), name="scripted")
    generate(Writer(judge), benchmark(4), folder / "run")


def prefer(folder: Path, script: Script) -> None:
    feedback(a_judge(script), benchmark(8), folder / "run", resamples=100)


def build(folder: Path, script: Script) -> None:
    """To the sheet, which is filled in, and to the end."""
    for step in (fill_in, None):
        build_in(folder, script, drafts=folder / "drafts.jsonl", batch=1)
        if step:
            step(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ask", "say", "prepare"),
    [
        pytest.param(write, lambda message, seed: right(message), lambda folder: None, id="generate"),
        pytest.param(verify_singly, lambda message, seed: says(message), summarized, id="verify"),
        pytest.param(verify_lists, lambda message, seed: says(message), summarized, id="verify-lists"),
        pytest.param(classify, lambda message, seed: says(message), verified_before, id="errors"),
        pytest.param(prefer, preferring("paragraphs 1, 3"), eight_that_differ, id="feedback"),
        pytest.param(build, obedient, write_drafts, id="build"),
    ],
)
def test_no_answer_is_lost_and_none_is_asked_twice(
    ask: Callable[[Path, Script], None], say: Script, prepare: Callable[[Path], object], tmp_path: Path
) -> None:
    both_orders = {"messages": 2, "after": 3} if ask is prefer else {}
    check_nothing_lost(ask, say, tmp_path, out="new" if ask is build else "run", prepare=prepare, **both_orders)
