"""A verdict says of which readers, products and judges its numbers are, and names no row that knows the answers."""

import pytest
from evaluation_builders import answered, failed, graded, noisy_judge, scored, world

from perse.evaluation.evaluate import Fold, evaluate, evaluate_many
from perse.evaluation.stats.results import Difference, Row
from perse.evaluation.telling import evaluation_result
from perse.evaluation.verdict import _taste, left_out
from perse.judgement import Stacked
from perse.results.result import Estimate, Interval


def estimate(skipped: int | None = None, *, value: float = 0.5) -> Estimate:
    return Estimate(value=value, interval=Interval(low=value - 0.1, high=value + 0.1), items=90, skipped_reviewers=skipped)


def test_readers_of_whom_nothing_was_answered_are_counted_among_those_left_out() -> None:
    examples = world(30)
    refused = {f"w0-{reader}" for reader in range(12)}
    good = noisy_judge(examples, noise=0.5, seed=1)
    given = [failed(one.id) if one.reviewer_id in refused else said for one, said in zip(examples, good, strict=True)]
    words = evaluate(examples, given, train=world(30, seed=7), resamples=100).verdict[0]
    assert "(without 12 readers of at most one answered text or whose texts it, or they, score all alike)" in words
    assert "it orders these readers' texts better" in words
    assert left_out(estimate(1), 0) == " (without 1 reader of one answered text or whose texts it, or they, score all alike)"
    assert left_out(estimate(0), 0) == ""


def test_how_few_readers_training_knows_texts_of_is_said_where_order_is_held_against_the_row() -> None:
    row = Row(name="j (expected)", judge="j", asked=90, ok=90, columns={"within_kendall": estimate(2)})
    apart = Difference(
        judge="j", row="j (expected)", baseline="unpersonalized", column="within_kendall", estimate=estimate(138)
    )
    _, said = _taste(row, apart, None, "", None, 0)
    assert (
        "on the readers whose texts both order (without 136 more), " in said and "it orders these readers' texts better" in said
    )


def test_the_row_of_other_readers_is_not_held_against_a_judge_where_training_holds_the_answers() -> None:
    examples = world(30)
    found = evaluate(examples, noisy_judge(examples, noise=0.5, seed=1), train=examples, resamples=100)
    assert "unpersonalized" not in found.verdict[0] and found.conclusions[0].taste is None
    assert "is not known, since the training side at hand holds these very answers" in found.verdict[0]


def test_who_answered_nothing_is_not_said_to_have_answered_what_is_compared() -> None:
    examples = world(30)
    given = {
        "a": noisy_judge(examples, noise=0.5, seed=1),
        "gaps": noisy_judge(examples, noise=0.5, seed=2, failures=0.4),
        "silent": [failed(one.id) for one in examples],
    }
    found = evaluate_many(given, [Fold(examples, None)], resamples=100)
    assert f"(of the {found.ok_items} of 300 items that every judge but silent answered)" in found.verdict[0]
    titles = [table.title for table in evaluation_result(found).tables]
    assert any(title.endswith(f"{found.ok_items} items answered by every judge but silent") for title in titles)


def test_products_whose_summaries_are_told_alike_are_counted() -> None:
    examples = [graded(f"{n}", f"p{n // 4}", float(1 + n % 4)) for n in range(160)]
    given = [answered(one.id, str(1 + n % 4 if n < 60 else 3), question="coverage") for n, one in enumerate(examples)]
    words = evaluate(examples, given, train=[graded("t", "t", 3)], resamples=100).verdict[0]
    left = "(without 25 products of one answered summary or whose summaries it, or people, grade all alike)"
    assert f" {left}: it orders the summaries of the same reviews" in words


@pytest.mark.parametrize("train", [None, [scored("t", "t", 5, item="i1"), scored("u", "u", 8, item="i2")]])
def test_folds_without_a_training_side_are_not_said_to_be_cross_fitted(train: list | None) -> None:
    first, second = world(12), world(12, seed=3)
    given = noisy_judge([*first, *second], noise=1, seed=1)
    found = evaluate_many({"a": given}, [Fold(first, train), Fold(second, train)], resamples=100)
    assert any("cross-fitted" in note for note in found.notes) is (train is not None)


def test_a_row_of_what_is_stacked_counts_the_examples_that_have_it() -> None:
    examples = world(30)
    given = noisy_judge(examples, noise=0.5, seed=1)
    stacked = Stacked(expected=5.0, distribution={str(label): 0.1 for label in range(1, 11)})
    some = [one.model_copy(update={"stacked": stacked}) if n < 90 else one for n, one in enumerate(given)]
    rows = {row.name: row for row in evaluate(examples, some, train=None, resamples=100).rows}
    assert (rows["judge (stacked)"].ok, rows["judge (expected)"].ok) == (90, 300)


def test_of_one_reader_pairs_lack_others_to_calibrate_ties_on() -> None:
    examples = world(1)
    rows = evaluate(examples, noisy_judge(examples, noise=0.5, seed=1), train=None, resamples=100).rows
    [reason] = {row.columns["pair_accuracy"].interval.reason for row in rows if row.judge}
    assert reason == "undefined (no pairs of other reviewers to calibrate ties on)"


@pytest.mark.parametrize("own", [True, False])
def test_an_answer_in_another_profile_is_said_of_readers_own_profiles_alone(own: bool) -> None:
    past = (("i0", 5), ("i1", 6))  # "text 0 i0" and "text 1 i1" are asked about in other examples
    examples = [
        scored(f"{reader}-{n}", f"u{reader}", 5 + n, item=f"i{n}", profile=past).model_copy(update={"query": f"text {n} i{n}"})
        for reader in range(12)
        for n in range(3)
    ]
    given = noisy_judge(examples, noise=1, seed=1)
    found = evaluate_many({"a": given}, [Fold(examples, None, own_scores=own)], resamples=100)
    assert any("stands in the profile of another example" in note for note in found.notes) is own
