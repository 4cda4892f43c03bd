"""A judge is asked what it was trained on, wherever nobody names a question: of another it never saw the prompts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from builders import pairwise_examples, pointwise_examples
from command_line import perse

from perse import BadInput, Judge
from perse.answering.base import JudgeSettings
from perse.batch.scored import read_run
from perse.judging.trained import trained_question
from perse.questions import question_for
from perse.records import example_lines

PAST = [("A ferryman waits for a letter.", "Slow and true.", 9)]
TEXT = "A house is sold five times in one night."


def trained_on(question: str, model: Path, run: Path) -> Path:
    """What training on the question leaves."""
    shutil.copytree(model, run / "merged")
    (run / "manifest.json").write_text(json.dumps({"run": {"kind": "train", "question": question}}))
    return run


@pytest.fixture
def run(answering_model: Path, tmp_path: Path) -> Path:
    return trained_on("pointwise_score_stated", answering_model, tmp_path / "run")


def test_in_python_what_it_was_trained_on_is_asked_where_no_question_is_named(run: Path, answering_model: Path) -> None:
    settings = JudgeSettings(temperature=0, max_new_tokens=4)
    for place in (run, run / "merged"):
        judge = Judge.load(place, dtype="float32")
        assert judge.ask_one(reviews=PAST, text=TEXT, settings=settings).question == "pointwise_score_stated"
        tuples = [("ann", *past) for past in PAST]
        assert [one.question for one in judge.score(tuples, [TEXT], settings=settings)] == ["pointwise_score_stated"]
        assert judge.ask_one(reviews=PAST, text=TEXT, question="pointwise", settings=settings).question == "pointwise"
    unknown = Judge.load(answering_model, dtype="float32")
    assert unknown.ask_one(reviews=PAST, text=TEXT, settings=settings).question == "pointwise"


@pytest.mark.parametrize("driver", [[], ["--driver", "local"]])
def test_a_run_of_examples_asks_it_too_unless_told_otherwise(run: Path, tmp_path: Path, driver: list[str]) -> None:
    (tmp_path / "examples.jsonl").write_text("".join(example_lines(pointwise_examples(1, 2))))
    score = ["score", "--examples", tmp_path / "examples.jsonl", "--judge", run, "--dtype", "float32", "--max-new-tokens", 4]
    done = perse(*score, "--out", tmp_path / "own", *driver)
    assert done.returncode in (0, 1), done.stderr
    done = perse(*score, "--question", "pointwise_score", "--out", tmp_path / "other", *driver)
    assert done.returncode in (0, 1), done.stderr
    asked = [{one.question for one in read_run(tmp_path / out).judgements} for out in ("own", "other")]
    assert asked == [{"pointwise_score_stated"}, {"pointwise_score"}]


def test_pairs_are_asked_what_fits_them_whatever_single_texts_it_learned(run: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.jsonl").write_text("".join(example_lines(pairwise_examples(1)[:1])))
    done = perse(
        "score", "--examples", tmp_path / "pairs.jsonl", "--judge", run, "--dtype", "float32", "--out", tmp_path / "pairs"
    )
    assert done.returncode in (0, 1), done.stderr
    assert {one.question for one in read_run(tmp_path / "pairs").judgements} == {"pairwise"}


def test_one_that_learned_from_evidence_is_not_asked_without_it(answering_model: Path, tmp_path: Path) -> None:
    run = trained_on("pointwise_score_evidence", answering_model, tmp_path / "run")
    judge = Judge.load(run, dtype="float32")
    with pytest.raises(BadInput, match=r"was trained on .*pointwise_score_evidence.* question='pointwise_score_stated'"):
        judge.ask_one(reviews=PAST, text=TEXT)
    (tmp_path / "examples.jsonl").write_text("".join(example_lines(pointwise_examples(1, 1))))
    done = perse("score", "--examples", tmp_path / "examples.jsonl", "--judge", run, "--out", tmp_path / "out")
    assert done.returncode == 2 and "has no evidence" in done.stderr and not (tmp_path / "out").exists()


def test_of_a_model_with_an_adapter_it_is_the_adapters_question_and_not_the_bases(
    run: Path, answering_model: Path, tmp_path: Path
) -> None:
    second = trained_on("pointwise_score", answering_model, tmp_path / "second")
    assert trained_question([run, second]) == "pointwise_score"
    assert trained_question([run, answering_model]) is None, "nothing is known of the adapter"


@pytest.mark.parametrize(
    "manifest", ["[]", "{bad", '{"run": null}', '{"environment": "x"}', '{"run": {"kind": "train", "question": ["a"]}}']
)
def test_a_manifest_of_something_else_costs_no_judge(run: Path, manifest: str) -> None:
    (run / "manifest.json").write_text(manifest)
    assert trained_question([run]) is None


def test_a_question_that_is_not_known_here_is_said_and_no_other_asked_in_its_place() -> None:
    with pytest.raises(BadInput, match="own question is 'of_a_plugin', which is not known here"):
        question_for(pointwise_examples(1, 1), learned="of_a_plugin")
