"""Counterfactual profiles: a judge that knows a reader's leniency loses by another's profile and not by their own dealt anew."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from judging_builders import asking, average, point, scripted
from reading_builders import answered

from perse.batch.comparing import gather
from perse.data.profiles.views import View
from perse.errors import BadInput
from perse.records import example_lines
from perse.results.result import Estimate, Result
from perse.studies.counterfactual import ANOTHER, EMPTY, OWN, SHUFFLED, _profiles, _result, counterfactual
from perse.studies.frame.measuring import Condition


def gain(result: Result, series: str, over: str, metric: str) -> Estimate:
    table = result.tables[0]
    (row,) = [row for row in table.rows if row[:2] == (series, over)]
    cell = row[table.header.index(metric)]
    assert isinstance(cell, Estimate)
    return cell


@pytest.mark.slow
def test_leniency_is_lost_with_anothers_profile_and_kept_with_ones_own_dealt_anew(readers: Path, tmp_path: Path) -> None:
    result = counterfactual(asking(readers), tmp_path, load=scripted(average))
    lost = gain(result, "script", ANOTHER, "MAE")
    assert lost.value is not None and lost.value < 0, "less error with the own profile"
    assert lost.interval.high is not None and lost.interval.high < 0
    kept = gain(result, "script", SHUFFLED, "Kendall tau-b")
    assert kept.value == 0 and kept.interval.low is not None
    assert kept.interval.low < 0 and kept.interval.high == pytest.approx(-kept.interval.low)  # of answers that nobody saw
    assert re.search(
        r"the reader's own verdicts on the wrong texts \+0\.000 \[-0\.\d+, 0\.\d+\] \(p by Holm 1\.000\), not shown",
        result.answer,
    )


def test_a_judge_that_reads_no_profile_gains_nothing(readers: Path, tmp_path: Path) -> None:
    def by_length(message: str, seed: int) -> str:
        return f"[Review] long\n[Score] {1 + len(message.rpartition('[New plot]')[2]) % 10}"

    result = counterfactual(asking(readers), tmp_path, load=scripted(by_length))
    assert [gain(result, "script", over, "MAE").value for over in (EMPTY, ANOTHER, SHUFFLED)] == [0, 0, 0]
    assert result.answer.count("not shown") == 3


def test_every_arm_shows_the_same_queries(readers: Path, tmp_path: Path) -> None:
    result = counterfactual(asking(readers, limit=12), tmp_path, load=scripted(average))
    assert {p.x for p in result.points} == {OWN, EMPTY, ANOTHER, SHUFFLED}
    ids = {
        tuple(line.partition(',"reviewer_id"')[0] for line in (arm / "examples.jsonl").read_text().splitlines())
        for arm in (tmp_path / "arms").iterdir()
    }
    assert len(ids) == 1
    shown = {json.loads((arm / "manifest.json").read_text())["context"]["profile"] for arm in (tmp_path / "arms").iterdir()}
    assert shown == {"own", "empty", "another", "shuffled"}, "as tables of arms read it"
    arms = [tmp_path / "arms" / name for name in ("another-readers", "own")]
    assert [example.profile for fold in gather(arms).folds for example in fold.examples] == [
        example.profile for fold in gather(arms[::-1]).folds for example in fold.examples
    ], "whichever is named first"
    assert any(
        note.startswith("p by Holm: answers exchanged reader by reader, adjusted over the gains")
        and note.endswith("the interval leaves out 0 (of Kendall tau-b where ties count for neither, too)")
        for note in result.notes
    )
    assert any("what they like only where scores are the same" in note for note in result.notes)
    assert any("nothing is adjusted for how many there are" in note for note in result.tables[0].notes)


@pytest.mark.slow
def test_profiles_of_one_cannot_be_dealt_anew_which_is_said_and_the_others_stand(couples: Path, tmp_path: Path) -> None:
    result = counterfactual(asking(couples), tmp_path, load=scripted(lambda message, seed: "Plot B"))
    assert {p.x for p in result.points} == {OWN, EMPTY, ANOTHER}
    assert any(note.startswith(f"{SHUFFLED}: ") and "one entry" in note for note in result.notes)
    two = counterfactual(asking(couples), tmp_path / "two", k=2, load=scripted(lambda message, seed: "Plot B"))
    assert {p.x for p in two.points} == {OWN, EMPTY, ANOTHER, SHUFFLED}


def test_preferences_that_are_dealt_anew_and_stay_as_they_were_are_counted(couples: Path) -> None:
    source = asking(couples).open()
    made, missing = _profiles(source, View(k=2), seed=0)
    same = sum(a.profile == b.profile for a, b in zip(made[OWN].examples, made[SHUFFLED].examples, strict=True))
    total = len(made[OWN].examples)
    assert 0 < same < total
    assert missing == [
        f"{SHUFFLED}: {same} of {total} examples show the own profile again, since verdicts that changed places are the same"
    ]
    answers = {one.id: answered(one.id, "AB"[n % 2]) for n, one in enumerate(made[OWN].examples)}
    result = _result(
        asking(couples), [Condition("j", name, (answers,), loaded.examples) for name, loaded in made.items()], missing
    )
    said = next(note for note in result.notes if note.startswith("re-drawn: "))
    assert "preferences are attached to the wrong pairs" in said
    assert not any(word in said for word in ("lenient", "scores", "reviews", "within"))


def test_one_reader_alone_has_nobody_to_swap_with(readers: Path, tmp_path: Path) -> None:
    examples = asking(readers).open().shown().examples
    file = tmp_path / "one.jsonl"
    file.write_text("".join(example_lines([one for one in examples if one.reviewer_id == examples[0].reviewer_id])))
    with pytest.raises(BadInput, match="profiles of 1 reader; give data of two or more readers"):
        counterfactual(asking(file), tmp_path / "out", load=scripted(average))
    assert not (tmp_path / "out").exists()


def test_a_file_of_examples_is_enough(readers: Path, tmp_path: Path) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text("".join(example_lines(asking(readers).open().shown().examples)))
    result = counterfactual(asking(file, limit=10), tmp_path / "out", load=scripted(average))
    assert point(result, "script", OWN, "mae").estimate.items == 10
