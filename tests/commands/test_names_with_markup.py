"""A folder or a name such as `[/b]` means something to the library that colours the terminal; it is shown as it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import pointwise_examples
from command_line import perse
from places import SAMPLES

from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge
from perse.records import example_lines
from perse.rendering.prompt import TextRenderer

ODD = "[/b]"


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ScriptedEngine(lambda message, seed: "[Review] Fine.\n[Score] 7")
    monkeypatch.setattr(Judge, "load", lambda *_, **__: Judge(engine, TextRenderer(), name=ODD))


def good(*arguments: object) -> str:
    done = perse(*arguments)
    assert done.returncode == 0, done.stderr
    return " ".join((done.stdout + done.stderr).split())


@pytest.mark.slow
def test_a_run_is_judged_evaluated_and_reported_under_any_name(tmp_path: Path) -> None:
    (tmp_path / "[").mkdir()
    examples, run = tmp_path / "[" / "b].jsonl", tmp_path / ODD
    examples.write_text("".join(example_lines(pointwise_examples(3, 3))))
    assert "/[/b]" in good("score", "--examples", examples, "--judge", "openai:http://x/v1#[/b]", "--out", run)
    assert "b]" in good("evaluate", run)
    assert "/[/b]/report" in good("report", run, "--resamples", 100).replace(" ", "")


@pytest.mark.integration
def test_a_study_has_arms_and_a_folder_of_any_name(tmp_path: Path) -> None:
    examples = tmp_path / "examples.jsonl"
    examples.write_text("".join(example_lines(pointwise_examples(3, 3))))
    studied = good(
        "study", "counterfactual", "--examples", examples, "--judge", ODD, "--out", tmp_path / "s" / ODD, "--resamples", 100
    )
    assert "/s/[/b]" in studied.replace(" ", "")


def test_a_data_set_is_built_described_and_exported_under_any_name(tmp_path: Path) -> None:
    out = tmp_path / ODD
    reviews, items = SAMPLES / "reviews.jsonl", SAMPLES / "items.jsonl"
    built = good("data", "pointwise", "--reviews", reviews, "--items", items, "--out", out, "--k", 3)
    assert f"written: {out}" in built
    good("data", "describe", out)


def test_a_judge_an_arm_and_an_answer_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "reviews.jsonl").write_text('{"text": "a [/b]", "review": "fine [/b]", "score": 7}\n')
    assert "Fine." in good("ask", "--judge", ODD, "--reviews", tmp_path / "reviews.jsonl", "--text", "new [/b]")


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", ODD],
        ["report", ODD],
        ["models", "card", ODD],
        ["models", "push", ODD, "--to", f"me/{ODD}"],
        ["train", "--config", ODD],
        ["plan", "--config", ODD, "model.path=[/b]"],
        ["serve", "--config", ODD],
        ["score", "--examples", ODD, "--judge", "x", "--out", ODD],
        ["kgds", "stats", ODD],
        ["data", "describe", ODD],
        ["score", ODD, "--[/b]"],
        [ODD],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_said_of_any_name(arguments: list[str]) -> None:
    done = perse(*arguments)
    assert done.returncode == 2 and "[/b]" in done.stderr and "Traceback" not in done.stderr, done.stderr
