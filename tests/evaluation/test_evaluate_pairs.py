"""A table of pairs: what was not answered is wrong, and counted as a class of its own."""

from math import isclose

import numpy as np
import pytest
from evaluation_builders import answered, failed, no_constants, pair, row, value
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.evaluation.alignment import Fold, align
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.comparing.sides import choosers
from perse.evaluation.evaluate import evaluate
from perse.evaluation.metrics import metrics_of
from perse.judgement import Judgement, Status


def test_pairs_not_answered_are_wrong_overall_and_per_aspect() -> None:
    examples = [
        pair("0", "u0", "A", aspect="Ending"),
        pair("1", "u0", "B", aspect="Ending"),
        pair("2", "u1", "A", aspect="Surprise"),
        pair("3", "u1", "A", aspect="Surprise"),
    ]
    judgements = [
        answered("0", "A", distribution={"A": 0.4, "B": 0.6}, order_gap=0.1),
        failed("1", Status.TOO_LONG),
        answered("2", "A", distribution={"A": 0.5, "B": 0.5}, order_gap=0.3),
        answered("3", "B"),
    ]
    train = [pair("t0", "t", "A", aspect="Ending")]
    found = evaluate(examples, judgements, train=train)
    names = ["judge (likeliest)", "judge (label)", "copy the example"]
    names += ["unpersonalized", "Bradley-Terry", "text ridge", "majority", "random"]
    assert [row.name for row in found.rows] == names
    label, likeliest = row(found, "judge (label)"), row(found, "judge (likeliest)")
    assert label.columns["accuracy"].value == 2 / 4
    assert {aspect: estimate.value for aspect, estimate in label.aspects.items()} == {"Ending": 1 / 2, "Surprise": 1 / 2}
    # Item 0 is likelier B, 2 is an exact tie, 3 has no distribution and the wrong label.
    assert likeliest.columns["accuracy"].value == (0 + 0 + 1 / 2 + 0) / 4
    assert {aspect: estimate.value for aspect, estimate in likeliest.aspects.items()} == {"Ending": 0, "Surprise": 1 / 4}
    assert "judge (likeliest): 1 of 3 answers have no distribution, their label stands for it" in found.notes
    # Only two answers have an order gap, which is of distributions: it stands in their row.
    assert set(likeliest.columns) == {metric.name for metric in metrics_of("choices")} and set(label.columns) == {
        "accuracy",
        "macro_accuracy",
    }
    assert likeliest.columns["order_gap"].value == pytest.approx(0.2)
    assert likeliest.columns["order_gap"].items == 2
    # Item 0: P(A) is 0.4 -+ 0.05, B both times; item 2: 0.5 -+ 0.15, A one way and B the other.
    assert likeliest.columns["order_consistency"].value == pytest.approx((1 + 0) / 2)
    assert {(row.asked, row.ok) for row in (likeliest, label)} == {(4, 3)}
    # The majority says A always: wrong once, in Ending.
    assert row(found, "majority").columns["accuracy"].value == 3 / 4
    assert row(found, "majority").aspects["Ending"].value == 1 / 2


def test_a_judge_in_words_that_goes_by_the_order_has_half_of_these_pairs_in_every_table_and_it_is_said() -> None:
    examples = [pair(f"{n}", f"u{n % 12}", "AB"[n % 2]) for n in range(24)]
    given = [answered(one.id, "A", order_gap=float(n >= 4)) for n, one in enumerate(examples)]
    found = evaluate(examples, given, train=None)
    assert row(found, "judge (likeliest)").columns["accuracy"].value == (2 + 20 / 2) / 24
    assert row(found, "judge (likeliest)").columns["order_consistency"].value == 4 / 24
    said = "24 of 24 answers have no distribution, their label stands for it, and half a one for the 20 whose label is another when the two are swapped"
    assert f"judge (likeliest): {said}" in found.notes
    sides = choosers(align([Fold(examples, None)], {"judge": given}))
    assert sides["judge"].readings["label"].mean() == (2 + 20 / 2) / 24
    beside = compare({"judge": given, "same": given}, [Fold(examples, None)], resamples=100, permutations=199)
    assert beside.pairings[0].contrasts[0].one == (2 + 20 / 2) / 24
    said = "half a one counts where a judge without distributions chose the other text when the two were swapped: judge 20, same 20"
    assert said in beside.notes


def test_the_average_of_table_4_is_of_aspects_and_not_of_pairs() -> None:
    """Of 30 pairs on one aspect all are right, of 10 on another none: 0.75 of the pairs, 0.5 of the aspects."""
    examples = [pair(f"{n}", f"u{n % 10}", "A", aspect="Ending") for n in range(30)]
    examples += [pair(f"s{n}", f"u{n}", "B", aspect="Surprise") for n in range(10)]
    found = evaluate(examples, [answered(one.id, "A") for one in examples], train=None)
    columns = row(found, "judge (label)").columns
    assert columns["accuracy"].value == 0.75 and columns["macro_accuracy"].value == 0.5
    assert columns["macro_accuracy"].items == 40
    low, high = columns["macro_accuracy"].interval.low, columns["macro_accuracy"].interval.high
    assert low is not None and high is not None and 0.25 < low < 0.4 and low + high == pytest.approx(1)
    plain = columns["accuracy"].interval
    assert plain.low is not None and plain.high is not None and high - low > plain.high - plain.low, (
        "ten pairs count as thirty do"
    )
    one = evaluate(examples[:30], [answered(each.id, "A") for each in examples[:30]], train=None)
    assert "macro_accuracy" not in row(one, "judge (label)").columns, "of one aspect the accuracy says it"


def test_what_was_answered_is_counted_by_aspect_with_no_answer_a_class_of_its_own() -> None:
    examples = [pair("0", "u0", "A"), pair("1", "u0", "B"), pair("2", "u1", "A"), pair("3", "u1", "A", aspect="Surprise")]
    judgements = [answered("0", "A"), failed("1"), answered("2", "B"), failed("3")]
    counts = row(evaluate(examples, judgements, train=None), "judge (label)").counts
    assert counts["Ending"] == {"A": {"A": 1, "B": 1, "N/A": 0}, "B": {"A": 0, "B": 0, "N/A": 1}}
    assert counts["Surprise"] == {"A": {"A": 0, "B": 0, "N/A": 1}, "B": {"A": 0, "B": 0, "N/A": 0}}


def test_pairs_without_probabilities_have_no_order_gap_and_say_why() -> None:
    found = evaluate([pair("0", "u0", "A")], [answered("0", "A")], train=None)
    gap = row(found, "judge (likeliest)").columns["order_gap"]
    assert (gap.value, gap.interval.reason) == (None, "undefined (no answer has probabilities of both orders)")


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from("AB"), st.sampled_from("AB-")), min_size=1, max_size=30))
def test_accuracy_is_right_answers_over_all_asked(rows: list) -> None:
    examples = [pair(str(n), f"u{reader}", gold) for n, (reader, gold, _) in enumerate(rows)]
    judgements: list[Judgement] = [failed(str(n)) if a == "-" else answered(str(n), a) for n, (_, _, a) in enumerate(rows)]
    found = evaluate(examples, judgements, train=None, resamples=100)
    no_constants(found.model_dump_json())
    for name in ("judge (label)", "judge (likeliest)"):  # no distributions: the label stands for the likeliest
        accuracy = value(found, name, "accuracy")
        assert accuracy is not None and isclose(accuracy, np.mean([gold == answer for _, gold, answer in rows]))


def test_what_a_judge_is_ahead_of_a_coin_is_its_accuracy_less_half_also_where_there_are_too_few_readers_for_an_interval() -> (
    None
):
    examples = [pair(f"{n}", f"u{n % 4}", "A" if n % 3 else "B") for n in range(12)]
    found = evaluate(examples, [answered(one.id, "A") for one in examples], train=None)
    [ahead] = [one.estimate for one in found.differences if one.baseline == "chance"]
    assert ahead.value == pytest.approx(8 / 12 - 0.5) and ahead.difference
    assert ahead.interval.low is None and ahead.interval.reason == "undefined (few reviewers)"
