"""Decoding: the mean of several samples is their mean, one greedy answer costs one, and only texts are asked this way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from judging_builders import asking, average, scripted

from perse.errors import BadInput
from perse.evaluation.stats.correlation import kendall
from perse.judging.judge import JudgeSettings
from perse.results.result import Estimate, Result
from perse.studies.decoding import _both, decoding
from perse.studies.frame.arms import answers_of
from perse.studies.frame.summarizing import predictions


def cell(result: Result, way: str, column: str, table: int = 0) -> object:
    (row,) = [row for row in result.tables[table].rows if row[0] == way]
    return row[result.tables[table].header.index(column)]


@pytest.mark.slow
def test_every_way_is_read_from_the_same_answers_with_its_cost_beside_it(
    answering_model: Path, readers: Path, tmp_path: Path
) -> None:
    one = asking(readers, judge=str(answering_model), limit=20)
    result = decoding(one, tmp_path, passes=2)
    examples = one.open().shown().examples
    passes = [predictions(examples, answers_of(tmp_path / "arms" / f"sampled{n}"), "expected") for n in (1, 2)]
    gold = np.array([example.reference.score for example in examples], dtype=np.float64)  # type: ignore[union-attr]
    assert passes[0] is not None and passes[1] is not None
    both = cell(result, "mean of 2 samples, expected", "Kendall tau-b")
    assert isinstance(both, Estimate) and both.value == pytest.approx(kendall(gold, (passes[0] + passes[1]) / 2))
    single = cell(result, "one sample, expected", "Kendall tau-b")
    values = [kendall(gold, given) or 0.0 for given in passes]
    assert isinstance(single, Estimate) and single.value == pytest.approx(sum(values) / 2)
    assert cell(result, "one sample, expected", "sd of Kendall tau-b") == f"{np.std(values, ddof=1):.3f}"
    assert cell(result, "greedy, label", "written") == "8.0" and cell(result, "mean of 2 samples, label", "written") == "16.0"
    assert cell(result, "score alone, expected", "written") == "0.0"
    for tokens in ("prompt tokens", "written"):
        alone, together = (float(str(cell(result, way, tokens))) for way in ("one sample, label", "mean of 2 samples, label"))
        assert together == pytest.approx(2 * alone, abs=0.15), "one sample costs what the passes do on average"
    difference = cell(result, "mean of 2 samples, expected", "one sample, expected", table=1)
    assert isinstance(difference, Estimate) and difference.value == pytest.approx((both.value or 0) - (single.value or 0))
    assert result.answer.startswith("Highest Kendall tau-b: ")


def test_a_judge_in_words_has_labels_only_and_its_samples_follow_their_seeds(readers: Path, tmp_path: Path) -> None:
    def by_seed(message: str, seed: int) -> str:
        return f"[Review] so\n[Score] {1 + seed % 10}"

    result = decoding(asking(readers, limit=12), tmp_path, passes=3, load=scripted(by_seed))
    first, second = (answers_of(tmp_path / "arms" / f"sampled{n}") for n in (1, 2))
    assert [first[key].label for key in first] != [second[key].label for key in first]
    ways = [row[0] for row in result.tables[0].rows]
    assert ways == ["greedy, label", "score alone, label", "one sample, label", "mean of 3 samples, label"], (
        "nothing stands there twice"
    )
    assert "highest of 8" not in result.answer
    apart = [cell for row in result.tables[1].rows for cell in row[1:] if isinstance(cell, Estimate)]
    assert apart and all(one.difference for one in apart), "also of the mean over three passes, each a third"


def test_a_judge_in_words_is_told_to_be_the_highest_of_the_four_ways_that_there_are(readers: Path, tmp_path: Path) -> None:
    scripts = scripted(lambda message, seed: f"[Review] so\n[Score] {1 + (len(message) + (seed % 3)) % 10}")
    answer = decoding(asking(readers, limit=12), tmp_path, passes=2, load=scripts).answer
    assert "the highest of 4" in answer


def test_what_no_pass_answered_is_noted_and_not_counted_among_those_that_all_answered(readers: Path, tmp_path: Path) -> None:
    def alone(message: str, seed: int) -> str:
        return "[Score] 5" if "[Review]" not in message.rpartition("[New plot]")[2] else "cut off"

    one = asking(readers, limit=12, settings=JudgeSettings(max_new_tokens=8, temperature=0.3))
    notes = decoding(one, tmp_path, passes=2, load=scripted(alone)).notes
    assert notes[0] == "12 of 12 items stand behind each value: those that have an answer in every pass that has any"
    assert {f"{arm}: 0 of 12 answered (12 unparsed)" for arm in ("greedy", "sampled1", "sampled2")} <= {*notes}
    assert any("at temperature 0.3; " in note and "what the paper does once at 0.8" in note for note in notes)


def test_ways_that_are_exactly_as_high_are_all_named_and_none_is_ahead(readers: Path, tmp_path: Path) -> None:
    answer = decoding(asking(readers, limit=12), tmp_path, passes=2, load=scripted(average)).answer
    assert answer.startswith(
        "Highest Kendall tau-b: greedy, label and score alone, label and one sample, label and mean of 2 samples, label, "
    )
    assert "Minus" not in answer


@pytest.mark.slow
def test_nothing_that_varies_is_said_so(readers: Path, tmp_path: Path) -> None:
    result = decoding(asking(readers, limit=12), tmp_path, load=scripted(lambda message, seed: "[Review] so\n[Score] 5"))
    assert result.answer.startswith("No way to read the answer has a value")
    again = decoding(asking(readers, limit=12), tmp_path / "silent", load=scripted(lambda message, seed: "no"))
    assert again.answer.startswith("No way to read the answer has a value") and again.notes[0].startswith("0 of 12 items")


def test_what_cannot_be_compared_is_refused(readers: Path, couples: Path, tmp_path: Path) -> None:
    for given, passes, message in (
        (asking(readers), 1, "found 1 passes"),
        (asking(readers, settings=JudgeSettings(temperature=0)), 3, "temperature 0 samples nothing"),
        (asking(couples), 3, "holds pairs"),
        (replace(asking(readers), question="pointwise_score"), 3, "found question 'pointwise_score'"),
    ):
        with pytest.raises(BadInput, match=message):
            decoding(given, tmp_path / "out", passes=passes, load=scripted(average))
    assert not (tmp_path / "out").exists()


def test_the_score_alone_is_asked_with_the_same_prompt_or_not_at_all() -> None:
    """The paper's order has no question of its own for the score alone, and another order would be another prompt."""
    assert [one.name for one in _both("pointwise_stated")] == ["pointwise_stated", "pointwise_score_stated"]
    assert [one.name for one in _both("pointwise_evidence")] == ["pointwise_evidence", "pointwise_score_evidence"]
    with pytest.raises(
        BadInput,
        match="found question 'pointwise_request_first'; this study asks pointwise or pointwise_stated or "
        "pointwise_evidence, and",
    ):
        _both("pointwise_request_first")


def test_the_highest_way_is_held_against_the_next_where_it_is_the_papers_own(readers: Path, tmp_path: Path) -> None:
    """A maximum of several ways is a little too high: whether it differs from the next is said with an interval."""
    scripts = scripted(lambda message, seed: f"[Review] so\n[Score] {1 + (len(message) + (seed % 3)) % 10}")
    answer = decoding(asking(readers, limit=12), tmp_path, passes=2, load=scripts).answer
    assert answer.count("Minus ") == 1 and (
        ", as the paper reads it (which samples at 0.8), and flattered" in answer or "Minus the next, " in answer
    )
