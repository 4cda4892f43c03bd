"""The k-curve: nested profiles of the same queries, honest where nothing is known, and the same after a kill."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import numpy as np
import pytest
from judging_builders import asking, average, point, scripted
from kills import signalled
from typer.testing import CliRunner

from perse.commands.studies.app import app
from perse.errors import BadInput
from perse.evaluation.stats.correlation import kendall
from perse.judgement import Judgement, Status, Tokens
from perse.records import PointwiseExample, ProfileReview, ReviewReference
from perse.results.result import Result
from perse.studies.frame.arms import answers_of
from perse.studies.frame.measuring import Condition, measure
from perse.studies.frame.summarizing import predictions
from perse.studies.k_curve import _answer, k_curve


@pytest.mark.slow
def test_every_k_of_the_folder_is_asked_and_stands_beside_the_average_of_the_same_profile(
    readers: Path, tmp_path: Path
) -> None:
    result = k_curve(asking(readers), tmp_path, load=scripted(average))
    assert sorted({p.x for p in result.points}) == ["0", "1", "2", "3", "4"]
    assert {p.series for p in result.points if p.baseline} == {"profile average", "random"}
    # This judge says the profile's one score, so at k = 1 it is the baseline, to the last digit.
    assert point(result, "script", "1").estimate == point(result, "profile average", "1").estimate
    # At k = 0 there is nothing to take the average of, and this judge says 5 of everything.
    assert {p.x for p in result.points if p.series == "profile average"} == {"1", "2", "3", "4"}
    assert {p.x for p in result.points if p.series == "random"} == {"0", "1", "2", "3", "4"}
    assert {row[0] for row in result.tables[1].rows} == {"script"}
    assert point(result, "script", "0").estimate.interval.reason == "undefined (constant or too few items)"
    assert point(result, "script", "0", "mae").estimate.value is not None
    assert "gain over k = 0: undefined" in result.answer


def test_values_are_those_of_the_answers_in_the_arms(readers: Path, tmp_path: Path) -> None:
    result = k_curve(asking(readers), tmp_path, ks=[1, 3], load=scripted(average))
    examples = asking(readers).open().shown().examples
    predicted = predictions(examples, answers_of(tmp_path / "arms" / "k3"), "expected")
    gold = np.array([example.reference.score for example in examples], dtype=np.float64)  # type: ignore[union-attr]
    assert predicted is not None
    assert point(result, "script", "3").estimate.value == pytest.approx(kendall(gold, predicted), abs=1e-12)


def test_a_judge_that_answers_nothing_leaves_undefined_cells_and_no_crash(readers: Path, tmp_path: Path) -> None:
    result = k_curve(
        asking(readers, limit=8), tmp_path, ks=[0, 3], load=scripted(lambda message, seed: "I would rather not say")
    )
    assert point(result, "script", "3").estimate.value is None
    assert "0 of 8 items stand behind each value" in result.notes[0]
    assert "undefined" in result.answer and "script, 3, pass 1: 0 of 8 answered (8 unparsed)" in result.notes


def test_where_one_k_fails_at_everything_the_others_keep_their_values(readers: Path, tmp_path: Path) -> None:
    def only_with_a_profile(message: str, seed: int) -> str:
        return average(message, seed) if "[Plot 1]" in message else "no idea"

    result = k_curve(asking(readers), tmp_path, ks=[0, 3], load=scripted(only_with_a_profile))
    assert point(result, "script", "0").estimate.interval.reason == "undefined (nothing was answered)"
    assert point(result, "script", "3").estimate.value is not None
    (gain,) = [row for row in result.tables[1].rows if row[0] == "script"]
    assert "undefined (no value of script at 0: nothing was answered)" in str(gain[2])
    assert (
        result.notes[0]
        == "60 of 60 items stand behind each value: those that have an answer under every condition that has any"
    )
    assert any(note.startswith("the profile average begins at k = 3: ") for note in result.notes)
    assert any(note.endswith("asked at every k as it is, where the paper trains one for each") for note in result.notes)


def test_few_readers_have_values_without_intervals(readers: Path, tmp_path: Path) -> None:
    result = k_curve(asking(readers, limit=5), tmp_path, ks=[1, 3], load=scripted(average))
    estimate = point(result, "script", "3", "mae").estimate
    assert estimate.value is not None and estimate.interval.reason == "undefined (few reviewers)"


def test_pairs_have_a_curve_of_accuracy(couples: Path, tmp_path: Path) -> None:
    def first(message: str, seed: int) -> str:
        return "Plot A"  # in both orders, so that a coin decides: no label is sure, and all are answered

    result = k_curve(asking(couples), tmp_path, load=scripted(first))
    assert {p.metric for p in result.points} == {"accuracy"} and {p.x for p in result.points} == {"0", "1", "2"}
    assert {p.series for p in result.points} == {"script", "copy the example", "random"}


def test_pairs_that_were_not_answered_are_not_left_out_of_those_behind_a_value(couples: Path, tmp_path: Path) -> None:
    def some(message: str, seed: int) -> str:
        return "Plot A" if len(message) % 3 else "hm"

    notes = k_curve(asking(couples), tmp_path, ks=[0, 1], load=scripted(some)).notes
    assert any("unparsed" in note for note in notes)
    assert notes[0].endswith(": those asked under every condition; one that was not answered is a wrong one")
    assert notes[0].startswith(f"{len(asking(couples).open().shown().examples)} of ")


def test_pairs_of_which_none_was_answered_have_no_value_and_no_difference(couples: Path, tmp_path: Path) -> None:
    result = k_curve(asking(couples), tmp_path, load=scripted(lambda message, seed: "neither"))
    estimate = point(result, "script", "2", "accuracy").estimate
    assert (estimate.value, estimate.interval.reason) == (None, "undefined (nothing was answered)")
    assert "0.000" not in result.answer
    assert "gain over k = 0: undefined (no value of script at 2: nothing was answered)" in result.answer


@pytest.mark.parametrize(
    ("ks", "message"), [([3], "needs two or more k, found 3"), ([0, 9], "keeps profiles of 4, found k = 9")]
)
def test_a_curve_that_cannot_be_drawn_is_refused_before_anything_is_asked(
    readers: Path, tmp_path: Path, ks: list[int], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        k_curve(asking(readers), tmp_path / "out", ks=ks, load=scripted(average))
    assert not (tmp_path / "out").exists()


JUDGED = 60


@pytest.mark.numeric
@pytest.mark.integration
def test_a_killed_study_is_continued_by_the_same_command_and_equals_one_never_killed(
    answering_model: Path, readers: Path, tmp_path: Path
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    options = [
        "k-curve", "--examples", readers, "--judge", answering_model, "--ks", "0,3", "--dtype", "float32",
        "--question", "pointwise_score", "--resamples", "100", "--json",
    ]  # fmt: skip
    done = CliRunner().invoke(app, [*map(str, options), "--out", str(whole)])
    assert done.exit_code == 0, done.output
    assert Result.model_validate_json(done.stdout) == Result.model_validate_json((whole / "study.json").read_text())

    lines = killed / "arms" / "k3" / "judgements.jsonl"  # the second arm, so that the first is finished
    ended = signalled(signal.SIGKILL, lines, 1, "study", *options, "--out", killed)
    assert ended.returncode == -signal.SIGKILL and 0 < len(lines.read_text().splitlines()) < JUDGED
    assert not (killed / "study.json").exists()
    first = (killed / "arms" / "k0" / "judgements.jsonl").read_bytes()

    again = CliRunner().invoke(app, [*map(str, options), "--out", str(killed)])
    assert again.exit_code == 0, again.output
    assert (killed / "arms" / "k0" / "judgements.jsonl").read_bytes() == first
    one, two = (json.loads((folder / "study.json").read_text()) for folder in (whole, killed))
    assert [p["series"] for p in one["points"]] == [p["series"] for p in two["points"]]
    # What is in the cache when a chunk begins changes the rounding, by far less than this; but a near tie between two expected
    # scores may turn round, and each that does takes 2 of the pairs' number from Kendall's sum: two may.
    turned = 2 * 2 / (JUDGED * (JUDGED - 1) / 2)
    for mine, theirs in zip(one["points"], two["points"], strict=True):
        for side in ("low", "high"):  # of a resample, in which a reader may stand three times, and so a pair nine times
            assert theirs["estimate"]["interval"][side] == pytest.approx(
                mine["estimate"]["interval"][side], abs=9 * turned, rel=0
            )
        assert theirs["estimate"]["value"] == pytest.approx(mine["estimate"]["value"], abs=turned, rel=0)
    assert (killed / "figures").is_dir() and (killed / "table.md").exists()


def test_a_judge_that_rounds_the_average_is_not_above_the_average_as_a_label() -> None:
    generator = np.random.default_rng(4)
    examples, answers = [], {}
    for reader in range(30):
        for at in range(3):
            shown = generator.integers(1, 11, 3)
            past = tuple(ProfileReview(text=f"t{n}", review="r", score=int(score)) for n, score in enumerate(shown))
            one = PointwiseExample(
                id=f"{reader}-{at}", reviewer_id=f"u{reader}", item_id=f"i{reader}-{at}", profile=past, query=f"q{reader}-{at}",
                reference=ReviewReference(review="r", score=int(np.clip(round(shown.mean() + generator.normal()), 1, 10))),
            )  # fmt: skip
            examples.append(one)
            label = str(int(np.floor(shown.mean() + 0.5)))
            answers[one.id] = Judgement(
                id=one.id, question="score", status=Status.OK, label=label, k_effective=3, tokens=Tokens(prompt=1, cached=0, generated=1), model="m"
            )  # fmt: skip
    found = measure([Condition("judge", "3", (answers,), examples)], resamples=100, seed=0)
    rounded = found.over_rounded("judge", "profile average", "3")
    assert rounded is not None and rounded.value == 0 and rounded.interval.low is not None
    assert rounded.interval.low < 0 and rounded.interval.high == pytest.approx(-rounded.interval.low)
    assert found.over_rounded("profile average", "profile average", "3") is None, "it is no label"
    told = _answer(found, "judge", "3", "3")
    assert (
        "Minus 'profile average' at k = 3, told as coarsely as its answers are: +0.000" in told
        and "not shown (as it is, where ties differ, " in told
    )


def test_of_a_k_at_which_nothing_was_answered_no_difference_from_the_average_is_told(readers: Path, tmp_path: Path) -> None:
    def not_at_three(message: str, seed: int) -> str:
        return "hm" if "[Plot 3]" in message else average(message, seed)

    answer = k_curve(asking(readers), tmp_path, ks=[1, 3], load=scripted(not_at_three)).answer
    assert answer.endswith("Minus 'profile average' at k = 3: undefined (no value of script at 3: nothing was answered).")
