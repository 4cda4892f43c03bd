"""Scoring from the command line: resumable after kill -9, evaluated by itself, kind about mistakes."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import Reworded, pairwise_examples, pointwise_examples
from command_line import perse
from kills import signalled
from places import SAMPLES
from tolerances import probability

from perse.batch.local import score
from perse.data.load import LoadedExamples
from perse.engines.scripted import ScriptedEngine
from perse.errors import RunMismatch
from perse.judging.judge import Judge, JudgeSettings
from perse.questions import QUESTIONS
from perse.records import Example, example_lines
from perse.rendering.prompt import TextRenderer

PERSE = [sys.executable, "-m", "perse"]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    path = tmp_path / "examples.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(12, 8))), encoding="utf-8")
    return path


def arguments(examples: Path, model: Path, out: Path) -> list[object]:
    return ["score", "--examples", examples, "--judge", model, "--out", out, "--dtype", "float32", "--max-new-tokens", "16"]


def judgements(run: Path) -> dict[str, dict[str, object]]:
    lines = [json.loads(line) for line in (run / "judgements.jsonl").read_text().splitlines()]
    by_id = {line["id"]: line for line in lines}
    assert len(by_id) == len(lines), "an example was judged twice"
    return by_id


@pytest.mark.numeric
@pytest.mark.integration
def test_a_killed_run_is_continued_by_the_same_command_and_equals_one_never_killed(
    examples: Path, tiny_model_folder: Path, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert perse(*arguments(examples, tiny_model_folder, whole)).returncode == 0

    lines = killed / "judgements.jsonl"
    done = signalled(signal.SIGKILL, lines, 1, *arguments(examples, tiny_model_folder, killed))
    assert done.returncode == -signal.SIGKILL and 0 < len(lines.read_text().splitlines()) < 96

    done = perse(*arguments(examples, tiny_model_folder, killed))
    assert done.returncode == 0, done.stderr
    one, two = judgements(whole), judgements(killed)
    assert one.keys() == two.keys() and len(one) == 96
    for name in one:
        assert (one[name]["text"], one[name]["label"]) == (two[name]["text"], two[name]["label"])
        # A chunk begins with another cache. An expected score is off by no more than the probabilities are, relatively.
        assert one[name]["expected"] == pytest.approx(two[name]["expected"], rel=2 * probability(tiny_model_folder, 1023))


@pytest.mark.integration
def test_a_folder_begun_with_other_settings_is_refused(examples: Path, tiny_model_folder: Path, tmp_path: Path) -> None:
    given = [*arguments(examples, tiny_model_folder, tmp_path / "run"), "--question", "pointwise_score", "--limit", "4"]
    assert perse(*given).returncode == 0
    refused = perse(*given, "--seed", "3", "--limit", "4")
    assert refused.returncode == 2 and "holds a run with other settings" in refused.stderr
    again = perse(*given, "--json")
    assert again.returncode == 0 and "judging: 4 of 4" in again.stderr
    told = json.loads(again.stdout)
    assert sum(told["statuses"].values()) == 4 and told["spent"]["judgements"] == 4 and told["spent"]["cost"] is None


EIGHT = pointwise_examples(2, 4)
OTHERS = [example.model_copy(update={"query": f"{example.query} Really."}) for example in EIGHT]


def begun(
    out: Path,
    *,
    settings: JudgeSettings = JudgeSettings(),  # noqa: B008
    renderer: TextRenderer | None = None,
    script: str = "a script",
    question: str = "pointwise",
    examples: Sequence[Example] = EIGHT,
    fold: int | None = 0,
    **judge: str,
) -> Path:
    """A run by a judge that says one thing to everybody; every argument is one that answers depend on."""
    engine = ScriptedEngine(lambda message, seed: "[Review] Fine.\n[Score] 7", name=script)
    asked = Judge(engine, renderer or TextRenderer(), **({"name": "m"} | judge))  # type: ignore[arg-type]
    loaded = LoadedExamples(list(examples), "digest", None, fold)
    return score(asked, QUESTIONS[question], loaded, out, settings=settings)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"settings": JudgeSettings(temperature=0)}, r"settings\.temperature was 0\.8, is 0"),
        ({"settings": JudgeSettings(max_new_tokens=9)}, r"settings\.max_new_tokens was 600, is 9"),
        ({"settings": JudgeSettings(seed=1)}, r"settings\.seed was 0, is 1"),
        ({"renderer": Reworded()}, "prompts_sha256 was"),
        ({"fold": 1}, "fold was 0, is 1"),
        ({"fold": None}, "fold was 0, is null"),
        ({"question": "pointwise_score"}, 'question was "pointwise", is "pointwise_score"'),
        ({"examples": EIGHT[:7]}, r"examples\.count was 8, is 7"),
        ({"examples": OTHERS}, r"examples\.sha256 was"),
        ({"name": "n"}, r'judge\.model was "m", is "n"'),
        ({"adapter": "a"}, r'judge\.adapter was null, is "a"'),
        ({"digest": "d"}, r'judge\.digest was "", is "d"'),
        ({"script": "another"}, r'judge\.script was "a script", is "another"'),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, dict) else "",
)
def test_a_run_goes_on_only_as_it_was_begun(tmp_path: Path, other: dict[str, Any], named: str) -> None:
    """Anything else that answers depend on, changed alone, is another run; and what was answered stays as it is."""
    run = begun(tmp_path / "run")
    before = (run / "judgements.jsonl").read_bytes()
    with pytest.raises(RunMismatch, match=named):
        begun(tmp_path / "run", **other)
    assert (run / "judgements.jsonl").read_bytes() == before
    begun(tmp_path / "run")
    assert (run / "judgements.jsonl").read_bytes() == before


@pytest.mark.slow
def test_an_unfinished_run_cannot_be_evaluated_and_says_how_to_finish_it(
    examples: Path, tiny_model_folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    perse(*arguments(examples, tiny_model_folder, run), "--question", "pointwise_score", "--limit", "8")
    lines = (run / "judgements.jsonl").read_text().splitlines(keepends=True)
    (run / "judgements.jsonl").write_text("".join(lines[:5]))
    refused = perse("evaluate", run)
    assert refused.returncode == 2
    assert "5 of 8" in refused.stderr and "perse score" in refused.stderr


@pytest.mark.integration
def test_data_train_score_evaluate_ask_from_files_alone(tiny_model_folder: Path, tmp_path: Path) -> None:
    """The whole path with a tiny model, as a user types it."""
    samples = SAMPLES
    data, judge, run = tmp_path / "data", tmp_path / "judge", tmp_path / "run"
    built = perse(
        "data",
        "pointwise",
        "--reviews",
        samples / "reviews.jsonl",
        "--items",
        samples / "items.jsonl",
        "--valid",
        0.34,
        "--out",
        data,
    )
    assert built.returncode == 0, built.stderr
    trained = perse(
        "train", "--config", "embedded_lora", f"model.path={tiny_model_folder}", "model.dtype=float32",
        f"data.path={data}", "data.max_examples=4", f"output={judge}",
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    assert "examples that fit" in trained.stderr and "k_effective 3" in trained.stderr
    scored = perse("score", "--examples", data, "--judge", judge, "--out", run, "--question", "pointwise_score", "--limit", 24)
    assert scored.returncode == 0, scored.stderr
    table = perse("evaluate", run)
    assert table.returncode == 0, table.stderr
    for row in ("profile average", "random", "user+item bias"):
        assert row in table.stdout
    result = json.loads(perse("evaluate", run, "--json").stdout)["details"]
    assert result["items"] == 24 and result["reviewers"] >= 10
    asked = perse(
        "ask",
        "--judge",
        judge,
        "--reviews",
        samples / "ask" / "reviews.jsonl",
        "--text",
        f"@{samples / 'ask' / 'plot.txt'}",
        "--json",
    )
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["k_effective"] == 3


@pytest.mark.integration
def test_pairs_from_table_to_table(tiny_model_folder: Path, tmp_path: Path) -> None:
    samples = SAMPLES
    data, run = tmp_path / "data", tmp_path / "run"
    built = perse(
        "data", "pairwise", "--pairs", samples / "pairs.jsonl", "--items", samples / "items.jsonl", "--folds", 3, "--out", data
    )
    assert built.returncode == 0, built.stderr
    runs = [tmp_path / f"run-{fold}" for fold in range(3)]
    for fold, run in enumerate(runs):
        scored = perse("score", "--examples", data, "--fold", fold, "--judge", tiny_model_folder, "--limit", 24, "--out", run)
        assert scored.returncode == 0, scored.stderr
    table = perse("evaluate", *runs)
    assert table.returncode == 0, table.stderr
    assert "copy the" in table.stdout and "cross-fitted over 3 folds" in " ".join(table.stdout.split())
    assert json.loads(perse("evaluate", *runs, "--json").stdout)["details"]["items"] == 72
    uneven = perse("evaluate", shutil.copytree(runs[0], tmp_path / "again"), *runs[:2])
    assert uneven.returncode == 2 and "found runs of fold 0: 2, fold 1: 1" in uneven.stderr


def test_asking_bare_is_a_conversation(tiny_model_folder: Path) -> None:
    answers = "a plot about a ferry\nloved it\n11\n9\n\na plot about a ghost\n"
    asked = perse("ask", "--judge", tiny_model_folder, "--max-new-tokens", 8, "--json", stdin=answers)
    assert asked.returncode == 0, asked.stderr
    assert "text 1" in asked.stderr and "Please select one of the available options" in asked.stderr
    assert json.loads(asked.stdout)["k_effective"] == 1


@pytest.mark.slow
def test_exported_pairs_are_judged_directly(tiny_model_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(example_lines(pairwise_examples())), encoding="utf-8")
    assert perse("score", "--examples", path, "--judge", tiny_model_folder, "--out", tmp_path / "run").returncode == 0
    assert all(line["order_gap"] is not None for line in judgements(tmp_path / "run").values())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["score", "--examples", "{nowhere}", "--judge", "{model}", "--out", "{out}"], "nowhere"),
        (["score", "--examples", "{examples}", "--judge", "{nowhere}", "--out", "{out}"], "there is no model"),
        (["score", "--examples", "{examples}", "--judge", "{model}", "--out", "{out}", "--dtype", "int8"], "--dtype is 'int8'; choose"),
        (["score", "--examples", "{examples}", "--judge", "{model}", "--out", "{out}", "--split", "test"], "--split is 'test'; choose"),
        (["score", "--examples", "{examples}", "--judge", "{model}", "--out", "{out}", "--fold", "0"], "has no folds"),
        (["evaluate", "{nowhere}"], "is not a run folder"),
        (["train", "--config", "embedded_lora"], "setting 'data.path' is missing"),
        (["train", "--config", "embedded_lora", "data.path={examples}", "train.step=3"], "did you mean 'train.steps'?"),
        (["train", "--config", "embedded_lora", "data.path={examples}", "model.path={nowhere}"], "there is no model"),
        (["models", "pull", "gpt-5"], "there is no embedded model 'gpt-5'; choose from smollm2-135m"),
        (["ask", "--reviews", "{nowhere}", "--text", "x"], "nowhere"),
        (["ask", "--reviews", "{examples}", "--text", "x"], "examples.jsonl, line 1: field"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_exit_code_2(
    given: list[str], message: str, examples: Path, tiny_model_folder: Path, tmp_path: Path
) -> None:
    places = {"nowhere": tmp_path / "nowhere", "model": tiny_model_folder, "out": tmp_path / "out", "examples": examples}
    done = perse(*(part.format(**places) for part in given))
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr and done.stderr.strip().count("\n") == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.integration
def test_what_the_engine_failed_at_is_asked_again(examples: Path, tiny_model_folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    given = [*arguments(examples, tiny_model_folder, run), "--question", "pointwise_score", "--limit", "4"]
    assert perse(*given).returncode == 0
    path = run / "judgements.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1] |= {"status": "engine_error", "label": None, "error": "RuntimeError: out of memory"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    again = perse(*given)
    assert again.returncode == 0 and "engine_error" not in again.stderr
    assert len(path.read_text().splitlines()) == 5


@pytest.mark.integration
def test_a_judge_is_not_scored_on_readers_it_was_trained_on(tiny_model_folder: Path, tmp_path: Path) -> None:
    samples = SAMPLES
    data, judge = tmp_path / "data", tmp_path / "judge"
    built = perse(
        "data", "pairwise", "--pairs", samples / "pairs.jsonl", "--items", samples / "items.jsonl", "--folds", 3, "--out", data
    )
    assert built.returncode == 0, built.stderr
    trained = perse(
        "train", f"model.path={tiny_model_folder}", "model.dtype=float32", f"data.path={data}", "data.fold=0", "data.max_examples=4",
        f"output={judge}",
    )  # fmt: skip
    assert trained.returncode == 0, trained.stderr
    refused = perse("score", "--examples", data, "--fold", 1, "--judge", judge, "--out", tmp_path / "run")
    assert refused.returncode == 2 and "has seen the readers of fold 1; score --fold 0" in refused.stderr


@pytest.mark.integration
def test_ctrl_c_says_that_the_same_command_goes_on(examples: Path, tiny_model_folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = signalled(signal.SIGINT, run / "judgements.jsonl", 1, *arguments(examples, tiny_model_folder, run))
    assert done.returncode == 130
    assert "the same command resumes from here" in done.stderr and "Traceback" not in done.stderr


def test_a_run_in_which_the_engine_only_failed_exits_with_1(
    examples: Path, tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from perse import Judge
    from perse.commands.app import app

    judge = Judge.load(tiny_model_folder)

    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(judge.engine, "label_distributions", fail)
    monkeypatch.setattr(Judge, "load", lambda *_, **__: judge)
    given = [
        "score",
        "--examples",
        str(examples),
        "--judge",
        "x",
        "--out",
        str(tmp_path / "run"),
        "--question",
        "pointwise_score",
    ]
    done = CliRunner().invoke(app, [*given, "--limit", "3"])
    assert done.exit_code == 1, done.output
    assert {row["status"] for row in judgements(tmp_path / "run").values()} == {"engine_error"}


@pytest.mark.integration
def test_a_run_keeps_its_prices_whose_profiles_it_showed_and_how_long_it_took(
    examples: Path, tiny_model_folder: Path, tmp_path: Path
) -> None:
    from perse.batch.scored import read_run

    given = [*arguments(examples, tiny_model_folder, tmp_path / "run"), "--question", "pointwise_score"]
    done = perse(*given, "--profile", "empty", "--prices", "0.5,1.5")
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path / "run")
    assert run.prices is not None and (run.prices.input, run.prices.output, run.prices.cached) == (0.5, 1.5, 0.5)
    assert run.seconds is not None and run.seconds > 0
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["context"]["profile"] == "empty"
    assert {judgement.k_effective for judgement in run.judgements} == {0}
    assert all(example.profile == () for example in run.examples)


def test_shots_of_a_file_are_refused_since_it_has_no_training_side(
    examples: Path, tiny_model_folder: Path, tmp_path: Path
) -> None:
    done = perse(*arguments(examples, tiny_model_folder, tmp_path / "run"), "--profile", "shots")
    assert done.returncode == 2 and "give the data set folder, not a file of examples" in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_what_the_folder_alone_refuses_is_refused_before_the_judge_is_loaded(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object, **__: object) -> Judge:
        raise AssertionError("the judge is loaded, which may take minutes")

    monkeypatch.setattr(Judge, "load", load)
    run = begun(tmp_path / "run", examples=pointwise_examples(12, 8), fold=None)
    trained, notes = tmp_path / "trained", tmp_path / "notes"
    for folder in (trained, notes):
        folder.mkdir()
    (trained / "manifest.json").write_text('{"run": {"kind": "train"}}')
    (notes / "thesis.tex").write_text("years of work")
    (tmp_path / "file").touch()
    for out, options, words in (
        (trained, [], "holds a run of perse train, not of perse score; choose another folder"),
        (notes, [], "is not empty and holds no run; choose another folder"),
        (tmp_path / "file", [], "cannot make the run folder"),
        (run, ["--seed", 3], "settings.seed was 0, is 3"),
        (run, ["--limit", 5], "examples.count was 96, is 5"),
    ):
        refused = perse("score", "--examples", examples, "--judge", "smollm2-135m", "--out", out, *options)
        assert refused.returncode == 2 and words in " ".join(refused.stderr.split()), refused.stderr
    went_on = perse("score", "--examples", examples, "--judge", "smollm2-135m", "--out", run)
    assert "the judge is loaded, which may take minutes" in went_on.stderr


@pytest.mark.parametrize(
    ("entries", "told"), [((1, 1, 3), "note: 2 of 3 examples left out: "), ((1, 1), "leaves no example to judge: ")]
)
def test_examples_whose_profile_cannot_be_shuffled_are_told_of(tmp_path: Path, entries: Sequence[int], told: str) -> None:
    (one,) = pointwise_examples(1, 1)
    some = [one.model_copy(update={"id": f"e{n}", "profile": one.profile[:1] * k}) for n, k in enumerate(entries)]
    (file := tmp_path / "in.jsonl").write_text("".join(example_lines(some)), encoding="utf-8")
    done = perse("score", "--examples", file, "--judge", tmp_path / "gone", "--profile", "shuffled", "--out", tmp_path / "run")
    assert done.returncode == 2 and not (tmp_path / "run").exists()
    assert f"{told}a profile of fewer than two entries cannot be shuffled" in " ".join(done.stderr.split()), done.stderr
