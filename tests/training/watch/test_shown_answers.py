"""`shown.jsonl`: what the model answers at each judging, beside what the reader said."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import pointwise_examples
from watching_builders import model_in_training, sample

from perse.judgement import Judgement
from perse.questions import QUESTIONS
from perse.records import Example, example_lines
from perse.rendering.prompt import Renderer
from perse.settings.training import TrainConfig, load_config
from perse.training.identity import run_identity
from perse.training.saving.checkpoints import step_of
from perse.training.trainer import train
from perse.training.watch.judging import judged_now
from perse.training.watch.shown import SHOWN, ShownAnswers

REVIEWED = QUESTIONS["pointwise"]


def judged(renderer: Renderer, name: str = "pointwise") -> tuple[Any, list[Judgement]]:
    what = sample(renderer, name)
    found: list[Judgement] = []
    judged_now(
        model_in_training(renderer.tokenizer), what, renderer, attention="tree", take=lambda _, answers: found.extend(answers)
    )
    return what, found


def evaluated(shown: ShownAnswers, step: int) -> None:
    arguments: Any = None
    shown.on_evaluate(arguments, SimpleNamespace(global_step=step), arguments)  # type: ignore[arg-type]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / SHOWN).read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pointwise", "pointwise_score", "pairwise"])
def test_the_model_s_own_answers_stand_beside_the_reader_s(
    name: str, renderer: Renderer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    what, found = judged(renderer, name)
    shown = ShownAnswers(tmp_path, what.question, most=2, step=-1)
    shown.take(what.judged, found)
    with caplog.at_level("INFO"):
        evaluated(shown, 7)
    assert len(found) == len(what.judged) > 2, "nothing is asked for the file's sake"
    for line, example, answer in zip(lines(tmp_path), what.judged[:2], found[:2], strict=True):
        label, text = what.question.answer(example)
        assert (line["step"], line["id"], line["reader"]) == (7, example.id, {"label": label, "text": text})
        assert line["model"] == {
            "status": answer.status,
            "label": answer.label,
            "expected": answer.expected,
            "text": answer.text,
        }
    (said,) = [record.getMessage() for record in caplog.records if "the reader says" in record.getMessage()]
    assert said.startswith(f"of {what.judged[0].id} the reader says {what.question.answer(what.judged[0])[0]} and the model ")
    evaluated(shown, 8)
    assert len(lines(tmp_path)) == 2, "nothing was judged since"


def answer(example: Example, text: str) -> Judgement:
    given = {"status": "unparsed", "text": text, "k_effective": 1, "tokens": {"prompt": 1, "cached": 0, "generated": 1}}
    return Judgement.model_validate({"id": example.id, "question": "pointwise", "model": "m", **given})


def test_a_run_that_goes_on_drops_what_was_shown_after_its_checkpoint(tmp_path: Path) -> None:
    examples = pointwise_examples(1, 3)
    shown = ShownAnswers(tmp_path, REVIEWED, most=1, step=-1)
    for step in (0, 2, 4):
        shown.take(examples, [answer(one, f"after {step}") for one in examples])
        evaluated(shown, step)
    again = ShownAnswers(tmp_path, REVIEWED, most=1, step=2)
    again.take(examples, [answer(one, "once more") for one in examples])
    evaluated(again, 4)
    assert [(line["step"], line["model"]["text"]) for line in lines(tmp_path)] == [
        (0, "after 0"),
        (2, "after 2"),
        (4, "once more"),
    ]


@pytest.mark.parametrize("edited", ["no lines of ours\n", '{"step": "two"}\n'])
def test_a_file_that_somebody_wrote_there_is_kept_beside_it(edited: str, tmp_path: Path) -> None:
    (tmp_path / SHOWN).write_text(edited)
    examples = pointwise_examples(1, 1)
    shown = ShownAnswers(tmp_path, REVIEWED, most=1, step=6)
    shown.take(examples, [answer(one, "mine") for one in examples])
    evaluated(shown, 7)
    assert [line["step"] for line in lines(tmp_path)] == [7]
    assert (tmp_path / "shown.kept-1.jsonl").read_text() == edited


def test_what_a_model_writes_does_not_reach_the_terminal_as_commands(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    examples = pointwise_examples(1, 1)
    shown = ShownAnswers(tmp_path, REVIEWED, most=1, step=-1)
    shown.take(examples, [answer(one, "\x1b[2J\u202egone") for one in examples])
    with caplog.at_level("INFO"):
        evaluated(shown, 1)
    assert "\x1b" not in caplog.text and "\u202e" not in caplog.text and "gone" in caplog.text
    assert lines(tmp_path)[0]["model"]["text"] == "\x1b[2J\u202egone"


def settings(base: Path, data: Path, out: Path, *more: str) -> TrainConfig:
    given = ["model.dtype=float32", "model.context=2048", "train.steps=4", "train.save_every=2", "train.keep_checkpoints=9"]
    watch = ["watch.every=1", "watch.held_apart=0.25", "watch.examples=8", "watch.generated=3", "watch.new_tokens=5"]
    places = [f"model.path={base}", f"data.path={data}", f"output={out}"]
    return load_config("embedded_lora", [*places, *given, *watch, "lora.rank=4", *more])


@pytest.mark.slow
def test_a_stopped_run_shows_what_one_never_stopped_does(tiny_model_folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(8, 8, k=1))), encoding="utf-8")
    run = train(settings(tiny_model_folder, data, tmp_path / "whole"))
    assert [line["step"] for line in lines(run)] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    stopped = tmp_path / "stopped"
    shutil.copytree(run, stopped)
    for made in ("merged", "adapter", *(path for path in (stopped / "checkpoints").iterdir() if step_of(path) > 2)):
        shutil.rmtree(stopped / made)
    train(settings(tiny_model_folder, data, stopped))
    assert (stopped / SHOWN).read_bytes() == (run / SHOWN).read_bytes()


def test_how_much_is_shown_makes_no_other_run(tiny_model_folder: Path, tmp_path: Path) -> None:
    prepared: Any = SimpleNamespace(question=REVIEWED)
    runs = [
        run_identity(settings(tiny_model_folder, tmp_path, tmp_path, f"watch.shown={number}"), prepared, {})
        for number in (0, 5)
    ]
    assert runs[0] == runs[1]
