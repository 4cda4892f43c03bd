"""A judge is asked what it was trained on, wherever nobody names a question: of another it never saw the prompts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from builders import pairwise_examples, pointwise_examples
from command_line import perse
from evaluation_builders import fitted

from perse import BadInput, Judge
from perse.answering.base import JudgeSettings
from perse.batch.scored import read_run
from perse.files.runlog import read_manifest
from perse.judging.loading import weights_digest
from perse.judging.trained import own_question, trained_question
from perse.questions import question_for
from perse.records import example_lines
from perse.stacking.file import StackedJudge, write_stacking

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_one_that_learned_from_evidence_is_not_asked_without_it(answering_model: Path, tmp_path: Path) -> None:
    run = trained_on("pointwise_score_evidence", answering_model, tmp_path / "run")
    judge = Judge.load(run, dtype="float32")
    with pytest.raises(
        BadInput, match=r"no evidence, which the question 'pointwise_score_evidence' shows.* pointwise_score_stated"
    ):
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
        question_for(pointwise_examples(1, 1), own="of_a_plugin")


def asked_by(command: list[object], out: Path) -> set[str]:
    done = perse("score", *command, "--dtype", "float32", "--max-new-tokens", 4, "--temperature", 0, "--out", out)
    assert done.returncode in (0, 1), done.stderr
    return {one.question for one in read_run(out).judgements}


@pytest.mark.slow
def test_what_its_stacking_was_fitted_on_comes_first_and_the_stacking_of_another_is_no_matter(
    run: Path, tmp_path: Path
) -> None:
    place, mine = run / "stacking.json", StackedJudge(model="run/merged", sha256=weights_digest(str(run)))
    (tmp_path / "examples.jsonl").write_text("".join(example_lines(pointwise_examples(1, 1))))
    score: list[object] = ["--examples", tmp_path / "examples.jsonl", "--judge", run]
    write_stacking(place, fitted("pointwise_score", mine))
    assert own_question(str(run)) == Judge.load(run, dtype="float32").own_question == "pointwise_score"
    assert asked_by(score, tmp_path / "fitted") == {"pointwise_score"}
    assert asked_by([*score, "--no-stacking"], tmp_path / "without") == {"pointwise_score_stated"}
    assert asked_by([*score, "--driver", "local"], tmp_path / "shards") == {"pointwise_score"}
    write_stacking(place, fitted("pointwise_score", StackedJudge(model="run/merged", sha256="ab" * 32)))
    assert own_question(str(run)) == Judge.load(run, dtype="float32").own_question == "pointwise_score_stated"
    write_stacking(tmp_path / "given.json", fitted("pointwise", mine))
    assert own_question(str(run), tmp_path / "given.json") == "pointwise"
    assert own_question(str(run), stacking=False) == "pointwise_score_stated"


@pytest.mark.slow
def test_at_the_command_line_one_reader_s_text_is_asked_about_so(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text('{"text": "A ferryman waits.", "review": "Slow and true.", "score": 9}\n')
    ask = ["ask", "--judge", run, "--reviews", tmp_path / "mine.jsonl", "--text", TEXT, "--dtype", "float32", "--json"]
    done = perse(*ask, "--max-new-tokens", 4)
    assert json.loads(done.stdout)["question"] == "pointwise_score_stated", done.stderr


@pytest.mark.slow
def test_every_reader_about_every_text_is_asked_so_and_a_run_in_shards_goes_on_when_it_is_not_known_any_more(
    run: Path, tmp_path: Path
) -> None:
    (tmp_path / "r.jsonl").write_text('{"reviewer_id": "r", "profile": [{"text": "x", "review": "Good.", "score": 7}]}\n')
    (tmp_path / "t.jsonl").write_text('{"item_id": "a", "text": "A house is sold."}\n')
    catalogue: list[object] = ["--readers", tmp_path / "r.jsonl", "--texts", tmp_path / "t.jsonl", "--driver", "local"]
    score = ["score", *catalogue, "--judge", run / "merged", "--dtype", "float32", "--out", tmp_path / "out"]
    assert (done := perse(*score)).returncode == 0, done.stderr
    before = read_manifest(tmp_path / "out")
    assert before["context"]["question"] == "pointwise_score_stated"
    (run / "manifest.json").rename(tmp_path / "elsewhere.json")
    assert (done := perse(*score)).returncode == 0, done.stderr
    assert read_manifest(tmp_path / "out") == before


def test_a_catalogue_is_not_asked_what_shows_evidence(answering_model: Path, tmp_path: Path) -> None:
    run = trained_on("pointwise_score_evidence", answering_model, tmp_path / "run")
    (tmp_path / "r.jsonl").write_text('{"reviewer_id": "r", "profile": []}\n')
    (tmp_path / "t.jsonl").write_text('{"item_id": "a", "text": "A house is sold."}\n')
    score = ["score", "--readers", tmp_path / "r.jsonl", "--texts", tmp_path / "t.jsonl", "--driver", "local", "--judge", run]
    done = perse(*score, "--out", tmp_path / "out")
    assert done.returncode == 2 and "READER/TEXT" in done.stderr and "'pointwise_score_evidence' shows" in done.stderr
    assert not (tmp_path / "out").exists()
