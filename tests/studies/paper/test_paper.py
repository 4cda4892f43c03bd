"""The paper's tables: published figures that agree with each other, ours beside them, what is missing, and the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reading_builders import answered, failed, pair, run_folder, scored, scripted
from typer.testing import CliRunner

from perse.batch.comparing import gather
from perse.batch.local import score
from perse.commands.studies.app import app
from perse.data.load import LoadedExamples
from perse.errors import BadInput
from perse.evaluation.evaluate import evaluate_many
from perse.evaluation.stats.results import Row
from perse.files.runlog import write_whole
from perse.judging.judge import JudgeSettings
from perse.questions import QUESTIONS
from perse.records import ChoiceReference, Example, ProfileComparison, ProfileReview, ReviewReference, VerbatimExample
from perse.results.result import Estimate, Interval, Point, Result, Table
from perse.studies.paper.published import TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5
from perse.studies.paper.study import _answer, paper

ASPECTS = ("Interestingness", "ending")


def _run(examples: list[Example], question: str, said: str, out: Path) -> Path:
    loaded = LoadedExamples(examples, "digest", None, None)
    return score(scripted(lambda message: said), QUESTIONS[question], loaded, out, settings=JudgeSettings(temperature=0))


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    past = tuple(ProfileReview(text=f"t{n}", review="A fine story of ships.", score=4 + n) for n in range(3))
    examples: list[Example] = [
        scored(f"{reader}-{n}", f"r{reader}", 1 + (reader + n) % 10, profile=past[: 1 + n])
        for reader in range(12)
        for n in range(3)
    ]
    return _run(examples, "pointwise", "[Review] a fine story\n[Score] 6", tmp_path / "scores")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    examples: list[Example] = [
        pair(f"{reader}-{aspect}", f"r{reader}", "A" if reader % 3 else "B", aspect=aspect)
        for reader in range(12)
        for aspect in ASPECTS
    ]
    return _run(examples, "pairwise", "Plot A", tmp_path / "pairs")


def test_every_published_row_has_a_value_for_each_column() -> None:
    tables = (TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5)
    for table in tables:
        assert all(len(values) == len(table.columns) for _, values in table.rows), table.number
    assert [table.lost for table in tables] == [6, 2, 0, 0, 1]


def test_table_4_averages_are_those_of_its_aspects() -> None:
    # The two last columns ran together in our copy; the average tells them apart, to the printed digits.
    for name, (*aspects, average) in TABLE_4.rows:
        assert average is not None
        assert sum(one or 0 for one in aspects) / 5 == pytest.approx(average, abs=0.0011), name


def test_without_anything_of_ours_each_table_says_what_fills_it() -> None:
    result = paper()
    assert len(result.tables) == 5 and "No value of ours" in result.answer
    for table in result.tables:
        assert table.rows[-1] == ("ours (none yet)", *[None] * (len(table.header) - 1))
        assert table.notes[-1].startswith("ours: to fill it, `perse")
    lost = result.tables[1].rows[1]
    assert lost == ("Matrix factorization", "0.301", "0.302", None)
    assert '"-" among the published: 2 figures' in result.tables[1].notes[0]


def test_one_table_has_values_and_several_have(scores: Path, pairs: Path) -> None:
    assert paper(runs={"two": pairs}, resamples=100).answer.startswith("Table 4 of 1 to 5 has values of ours.")
    assert paper(runs={"one": scores}, resamples=100).answer.startswith("Tables 2, 3 of 1 to 5 have values of ours.")


def test_a_highest_value_that_is_told_is_said_to_be_chosen(scores: Path, pairs: Path) -> None:
    chosen = "the highest of several is chosen after looking, so its value is a little too high"
    told = paper(runs={"one": scores}, resamples=100)
    assert "The highest Kendall of a" in told.answer and chosen in told.notes
    assert chosen not in paper(runs={"two": pairs}, resamples=100).notes


def test_of_what_k_ours_are_stands_below_the_tables_that_have_one(scores: Path, pairs: Path, tmp_path: Path) -> None:
    tables = paper(runs={"one": scores, "two": pairs}, resamples=100).tables
    assert "ours: profiles of 1 to 3 entries" in tables[1].notes and "ours: profiles of 0 entries" in tables[3].notes
    past = (ProfileReview(text="t", review="r", score=4),)
    examples: list[Example] = [scored(f"{n}", f"r{n}", 1 + n % 10, profile=past) for n in range(12)]
    one = run_folder(tmp_path / "of-one", examples, [answered(each.id, "5") for each in examples])
    assert "ours: profiles of 1 entry" in paper(runs={"one": one}, resamples=100).tables[1].notes


def test_where_intervals_are_of_these_texts_alone_the_answer_says_so_and_no_value_is_told_without_its_name(
    tmp_path: Path,
) -> None:
    examples: list[Example] = [
        scored(f"{r}-{t}", f"r{r}", 1 + (3 * r + t) % 10, item=f"t{t}") for r in range(12) for t in range(5)
    ]
    run = run_folder(tmp_path / "run", examples, [answered(one.id, str(1 + n % 7)) for n, one in enumerate(examples)])
    result = paper(runs={"ours": run}, resamples=100)
    assert result.answer.endswith(
        "In table 2 PerSE-13b has a Kendall of 0.293, on the paper's data. Intervals are of these texts alone."
    )
    assert any(note.endswith("--train-data, which `perse evaluate` has") for note in result.tables[1].notes)


def test_runs_that_are_exactly_as_high_are_both_named() -> None:
    as_high = Estimate(value=0.4, interval=Interval(low=0.2, high=0.6), items=9)
    lower = Estimate(value=0.3, interval=Interval(low=0.1, high=0.5), items=9)
    rows = [
        Row(name=name, judge=name, asked=9, ok=9, columns={"kendall": value})
        for name, value in (("a", as_high), ("b", lower), ("c", as_high))
    ]
    assert "The highest Kendall of a judge of ours in table 2 is 0.400 [0.200, 0.600]: a and c." in _answer([2], rows)


def test_runs_fill_tables_2_to_4(scores: Path, pairs: Path) -> None:
    result = paper(runs={"one": scores, "two": pairs}, resamples=100)
    assert "Tables 2, 3, 4 of 1 to 5" in result.answer
    second = {str(row[0]): row[1:] for row in result.tables[1].rows if str(row[0]).startswith("ours")}
    assert list(second) == [f"ours: {name}" for name in ("one (expected)", "one (label)", "profile average", "random")]
    constant = second["ours: one (label)"][2]
    assert isinstance(constant, Estimate) and constant.value is None and "undefined" in str(constant.interval.reason)
    third, past = (row for row in result.tables[2].rows if str(row[0]).startswith("ours"))
    # "a fine story" against "r": no word in common
    assert isinstance(third[2], Estimate) and third[2].value == 0.0 and third[3:] == (None, None)
    assert (third[0], past[0]) == ("ours: one", "ours: a past review")
    fourth = next(row for row in result.tables[3].rows if row[0] == "ours: two (label)")
    # "Plot A" both ways: one of the two orders is drawn, so the label is A or B; it is the gold one or not
    assert isinstance(fourth[1], Estimate) and isinstance(fourth[5], Estimate) and fourth[2] is None
    assert isinstance(fourth[6], Estimate) and fourth[6].items == 24


def test_a_review_text_study_fills_table_5_and_another_is_refused(tmp_path: Path) -> None:
    estimate = Estimate(value=0.25, interval=Interval(low=0.2, high=0.3), items=9)
    point = Point(series="ours-7b", x="scores alone", metric="kendall", estimate=estimate)
    baseline = point.model_copy(update={"series": "random", "baseline": True})
    study = Result(
        name="review-text", asks="?", answer="!", plot="bars", x_label="", points=(baseline, point), tables=(), notes=()
    )
    write_whole(tmp_path / "study.json", study.model_dump_json())
    table = paper(studies=[tmp_path]).tables[4]
    assert table.rows[-1] == ("ours: ours-7b, scores alone", None, None, estimate)
    assert table.rows[-2] == ("ours: random, scores alone", None, None, estimate)
    assert not any("entries shown" in note for note in table.notes), "a study that does not tell it"
    told = Table(title="All rows", header=("who", "profile", "entries shown"), rows=(("j", "x", "2.50"), ("random", "x", None)))
    write_whole(tmp_path / "study.json", study.model_copy(update={"tables": (told,)}).model_dump_json())
    assert "ours: entries shown, on average: 2.50" in paper(studies=[tmp_path]).tables[4].notes
    write_whole(tmp_path / "study.json", study.model_copy(update={"name": "order"}).model_dump_json())
    with pytest.raises(BadInput, match="is a study of order; table 5 is filled from"):
        paper(studies=[tmp_path])


def test_data_sets_fill_table_1(tmp_path: Path) -> None:
    cell = {"reviewers": 7, "examples": 21, "words": 500.25, "shortened": 0, "too_long": 0}
    parts = [{"name": "Valid", "cells": [{"name": "k=3", **cell}]}]
    write_whole(tmp_path / "manifest.json", json.dumps({"kind": "pointwise", "counts": {"parts": parts}}))
    table = paper(mpst=tmp_path).tables[0]
    ours = [row for row in table.rows if str(row[0]).startswith("ours")]
    place = 1 + TABLE_1.columns.index("k=3")
    assert [row[place] for row in ours] == ["7", "21", "500.2"] and ours[0][place + 1] is None
    assert table.notes[0] == "ours without columns of aspects: give --doc DATASET"
    with pytest.raises(BadInput, match="is no data set of pairs"):
        paper(doc=tmp_path)


@pytest.mark.parametrize("damage", [{"examples": "x"}, {"reviewers": ""}, {"words": [[[[]]]]}, {"name": 3}])
def test_counts_that_are_damaged_are_one_sentence(damage: dict[str, Any], tmp_path: Path) -> None:
    cell = {"name": "k=3", "reviewers": 7, "examples": 21, "words": 500.25, "shortened": 0, "too_long": 0, **damage}
    parts = [{"name": "Valid", "cells": [cell]}]
    write_whole(tmp_path / "manifest.json", json.dumps({"kind": "pointwise", "counts": {"parts": parts}}))
    with pytest.raises(BadInput, match="'counts' is not as perse data writes it; build the data set again"):
        paper(mpst=tmp_path)


def test_the_commands_print_json_and_keep_a_study(scores: Path, pairs: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    out = tmp_path / "kept"
    args = ["paper", "--run", f"one={scores}", "--resamples", "100", "--json"]
    shown = runner.invoke(app, args)
    assert shown.exit_code == 0 and json.loads(shown.stdout)["name"] == "paper"
    assert runner.invoke(app, [*args, "--out", str(out)]).exit_code == 0
    first = (out / "study.json").read_bytes()
    assert runner.invoke(app, [*args, "--out", str(out)]).exit_code == 0 and (out / "study.json").read_bytes() == first
    other = runner.invoke(app, ["paper", "--run", f"one={pairs}", "--out", str(out)])
    assert "holds a run with other settings" in str(other.exception)
    markdown = runner.invoke(app, ["paper", "--markdown"])
    assert markdown.stdout.count("## Table") == 5


def test_tables_2_to_4_are_what_evaluate_finds_of_the_same_runs(tmp_path: Path) -> None:
    past = (ProfileReview(text="t", review="A slow film about ships.", score=4),)
    examples = [scored(f"{r}-{n}", f"r{r}", 1 + (3 * r + n) % 10, profile=past) for r in range(12) for n in range(4)]
    blank = ReviewReference(review="", score=5)
    examples[1:9:4] = [one.model_copy(update={"reference": blank}) for one in examples[1:9:4]]

    def folder(name: str, shift: int) -> Path:
        given = [
            failed(one.id)
            if n % 6 == shift
            else answered(one.id, str(1 + (n + shift) % 10), text="A slow film.").model_copy(update={"question": "pointwise"})
            for n, one in enumerate(examples)
        ]
        return run_folder(tmp_path / name, examples, given)

    folders = {"first": folder("a", 1), "second": folder("b", 2)}
    result = paper(runs=folders, resamples=100)
    gathered = gather(list(folders.values()))
    judges = dict(zip(folders, gathered.judges.values(), strict=True))
    expected = evaluate_many(judges, gathered.folds, resamples=100)
    second = {row[0]: row[1:] for row in result.tables[1].rows}
    third = {row[0]: row[1:] for row in result.tables[2].rows}
    for row in expected.rows:
        if row.columns:
            assert second[f"ours: {row.name}"] == tuple(row.columns[name] for name in ("pearson", "spearman", "kendall"))
        if row.text:
            assert third[f"ours: {row.judge or row.name}"] == (row.text["bleu"], row.text["rouge1"], None, None)
    rouge = third["ours: first"][1]
    assert isinstance(rouge, Estimate) and rouge.items == 46  # two readers wrote nothing; what was not answered counts
    assert "ours: of the 32 of 48 items: those answered by every judge of ours that answered any" in result.tables[1].notes


def test_runs_of_prompts_as_they_were_released_fill_the_tables_of_their_answers(tmp_path: Path) -> None:
    asked = [f"{n}" for n in range(12)]
    reviewed = [VerbatimExample(id=n, reviewer_id=n, prompt=n, reference=ReviewReference(review="r", score=5)) for n in asked]
    chosen = [VerbatimExample(id=n, reviewer_id=n, prompt=n, reference=ChoiceReference(preference="A")) for n in asked]
    run_folder(tmp_path / "reviews", reviewed, [answered(n, "5") for n in asked])
    run_folder(tmp_path / "choices", chosen, [answered(n, "A") for n in asked])
    result = paper(runs={name: tmp_path / name for name in ("reviews", "choices")}, resamples=100)
    assert "Tables 2, 4 of 1 to 5" in result.answer
    rows = {row[0]: row for table in result.tables for row in table.rows}
    assert "ours: reviews (label)" in rows
    average = rows["ours: choices (label)"][-1]
    assert isinstance(average, Estimate) and average.value == 1.0 and rows["ours: choices (label)"][1] is None
    unanswered = [VerbatimExample(id=n, reviewer_id=n, prompt=n) for n in asked]
    run_folder(tmp_path / "none", unanswered, [answered(n, "5") for n in asked])
    with pytest.raises(BadInput, match="of prompts without true answers"):
        paper(runs={"none": tmp_path / "none"}, resamples=100)


def test_copying_the_example_stands_in_table_4(tmp_path: Path) -> None:
    past = (ProfileComparison(text_a="one old story", text_b="another", preference={"Ending": "A"}),)
    examples = [pair(f"{r}", f"r{r}", "A" if r < 9 else "B").model_copy(update={"profile": past}) for r in range(12)]
    folder = run_folder(tmp_path / "run", examples, [answered(one.id, "A") for one in examples])
    rows = {row[0]: row for row in paper(runs={"run": folder}, resamples=100).tables[3].rows}
    copied = rows["ours: copy the example"][-1]
    # The example says A, and 9 of 12 readers say A.
    assert isinstance(copied, Estimate) and copied.value == pytest.approx(0.75) and "ours: random" in rows


def test_our_average_in_table_4_is_that_of_the_aspects_as_the_papers_whatever_their_sizes(tmp_path: Path) -> None:
    """9 pairs of Ending of which all are right, 3 of Surprise of which none is: (1 + 0) / 2, where of the pairs 9 in 12 are right."""
    examples = [pair(f"{r}", f"r{r}", "A", aspect="Ending") for r in range(9)]
    examples += [pair(f"{r}", f"r{r}", "B", aspect="Surprise") for r in range(9, 12)]
    folder = run_folder(tmp_path / "run", examples, [answered(one.id, "A") for one in examples])
    table = paper(runs={"run": folder}, resamples=100).tables[3]
    (ours,) = (dict(zip(table.header, row, strict=True)) for row in table.rows if row[0] == "ours: run (label)")
    assert [getattr(ours[name], "value", None) for name in ("Ending", "Surprise", "Average")] == pytest.approx([1.0, 0.0, 0.5])
    assert any("the average is the mean of the aspects" in note for note in table.notes)
    notes = paper(runs={"run": folder}, resamples=100).notes
    assert any("intervals of shares (such as accuracy)" in note and "not resampled but exact" in note for note in notes)
    assert not any("exact" in note for note in paper().notes), "of no pairs"


@pytest.mark.parametrize("command", ["risk-coverage", "calibration", "paper"])
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("stranger", "answer none of the 12 examples, the first 'nobody'"),
        ("unfinished", "the run is not finished: 5 of 12 examples judged"),
        ("off the scale", "is ok with label 'banana', expected one of 1, 2"),
    ],
)
def test_what_evaluate_refuses_no_study_reads(tmp_path: Path, command: str, case: str, message: str) -> None:
    examples = [scored(f"{n}", f"r{n}", 1 + n % 10) for n in range(12)]
    given = [answered(one.id, "5", distribution={"5": 0.5, "6": 0.5}) for one in examples]
    if case == "stranger":
        given.append(answered("nobody", "5", distribution={"5": 1.0}))
    elif case == "unfinished":
        given = given[:5]
    else:
        given[3] = answered("3", "banana")
    run = run_folder(tmp_path / "run", examples, given)
    with pytest.raises(BadInput, match=message):
        _read(command, [run], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["risk-coverage", "paper"])
def test_runs_of_other_data_or_given_twice_are_refused_and_an_unfinished_one_is_noted(tmp_path: Path, command: str) -> None:
    examples = [scored(f"{n}", f"r{n}", 1 + n % 10) for n in range(12)]
    given = [answered(one.id, "5", distribution={"5": 0.5, "6": 0.5}) for one in examples]
    run = run_folder(tmp_path / "run", examples, given)
    strangers = [one.model_copy(update={"query": "another text"}) for one in examples]
    other = run_folder(tmp_path / "other", strangers, given)
    with pytest.raises(BadInput, match="has another query in"):
        _read(command, [run, other], tmp_path / "out")
    with pytest.raises(BadInput, match="run is given twice"):
        _read(command, [run, run], tmp_path / "out")
    short = run_folder(tmp_path / "short", examples, given[:5])
    told = _read(command, [run, short], tmp_path / "out")
    assert "has judged 5 of 12 examples; all rows are of the common ones" in told


def _read(command: str, runs: list[Path], out: Path) -> str:
    """What a command prints of runs, as JSON."""
    given = [f"--run=j{n}={run}" for n, run in enumerate(runs)] if command == "paper" else [str(run) for run in runs]
    found = CliRunner().invoke(app, [command, *given, "--resamples", "100", "--json", "--out", str(out)])
    if found.exception:
        raise found.exception
    return found.stdout


def test_a_run_named_twice_or_not_at_all_is_refused(scores: Path) -> None:
    twice = CliRunner().invoke(app, ["paper", "--run", f"one={scores}", "--run", f"one={scores}"])
    assert "'one' is given twice" in str(twice.exception)
    unnamed = CliRunner().invoke(app, ["paper", "--run", str(scores)])
    assert isinstance(unnamed.exception, BadInput) and "expected NAME=PATH" in str(unnamed.exception)


def test_risk_coverage_of_written_answers_says_why_not(scores: Path) -> None:
    found = CliRunner().invoke(app, ["risk-coverage", str(scores)])
    assert isinstance(found.exception, BadInput) and "does not tell how sure it was" in str(found.exception)
