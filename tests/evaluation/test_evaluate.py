import json
from math import isclose

import numpy as np
import pytest
from evaluation_builders import answered, failed, noisy_judge, pair, scored, world
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perse.errors import BadInput
from perse.evaluation.evaluate import Evaluation, Part, Row, Validation, evaluate, evaluate_many
from perse.evaluation.results import PAIRWISE_COLUMNS, POINTWISE_COLUMNS
from perse.judgement import Judgement, Status

# Four items of two readers; the judge fails on the last. The training mean is (9 + 5) / 2 = 7.
GOLD = (2, 4, 6, 10)
EXAMPLES = [scored(str(n), f"u{n // 2}", score, profile=(("i1", 5),)) for n, score in enumerate(GOLD)]
TRAIN = [scored("t0", "t0", 9, item="i1"), scored("t1", "t1", 5, item="i2")]
JUDGEMENTS = [
    answered("0", "3", distribution={"3": 0.5, "1": 0.5}),  # expected 2
    answered("1", "4", distribution={"4": 0.5, "6": 0.5}),  # expected 5
    answered("2", "8", distribution={"8": 1.0}),
    failed("3"),
]


def row(evaluation: Evaluation, name: str) -> Row:
    return {row.name: row for row in evaluation.rows}[name]


def value(evaluation: Evaluation, name: str, column: str) -> float | None:
    return row(evaluation, name).columns[column].value


def no_constants(text: str) -> object:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_correlations_are_of_the_ok_items_for_judges_and_baselines_alike() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN)
    assert [row.name for row in found.rows] == [
        "judge (expected)",
        "judge (label)",
        "profile average",
        "user+item bias",
        "matrix factorization",
        "majority",
        "random",
    ]
    assert (found.items, found.ok_items, found.reviewers) == (4, 3, 2)
    assert value(found, "judge (expected)", "pearson") == pytest.approx(stats.pearsonr([2, 4, 6], [2, 5, 8]).statistic)
    assert value(found, "judge (label)", "pearson") == pytest.approx(stats.pearsonr([2, 4, 6], [3, 4, 8]).statistic)
    assert value(found, "judge (expected)", "mae") == pytest.approx((0 + 1 + 2) / 3)
    assert all(row.columns["mae"].items == 3 for row in found.rows)
    assert all(set(row.columns) == set(POINTWISE_COLUMNS) for row in found.rows)


def test_failures_are_imputed_by_the_training_mean_beside_the_ok_items() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN)
    assert found.training_means == (7,)
    imputed = row(found, "judge (expected)").imputed
    assert imputed is not None
    # Predictions 2, 5, 8 and the mean 7 for the failed item, whose gold is 10.
    assert imputed["mae"].value == pytest.approx((0 + 1 + 2 + 3) / 4)
    # Gold 2 4 6 10, mean 5.5: -3.5 -1.5 .5 4.5; predictions mean 5.5: -3.5 -.5 2.5 1.5.
    # Products 12.25 + .75 + 1.25 + 6.75 = 21; squares 12.25 + 2.25 + .25 + 20.25 = 35 and 12.25 + .25 + 6.25 + 2.25 = 21.
    assert imputed["pearson"].value == pytest.approx(21 / (35 * 21) ** 0.5)
    # Ranks 1 2 3 4 and 1 2 4 3: one of six pairs is discordant.
    assert imputed["kendall"].value == pytest.approx(4 / 6)
    # A baseline answers everything: over all items it is its own prediction, 5.
    average = row(found, "profile average").imputed
    assert average is not None and average["mae"].value == pytest.approx((3 + 1 + 1 + 5) / 4)


def test_nothing_is_imputed_when_nothing_failed() -> None:
    found = evaluate(EXAMPLES[:3], JUDGEMENTS[:3], train=TRAIN)
    assert all(row.imputed is None for row in found.rows)


def test_without_training_data_failures_are_not_imputed_and_baselines_say_why() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=None)
    assert all(row.imputed is None for row in found.rows)
    assert "failures are not imputed: no training data at hand" in found.notes
    assert row(found, "user+item bias").unavailable == "no training data at hand"
    assert value(found, "profile average", "mae") == pytest.approx((3 + 1 + 1) / 3)


def test_a_constant_prediction_has_no_correlation_and_is_none_in_json() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN)
    assert value(found, "profile average", "pearson") is None
    assert value(found, "profile average", "within_pearson") is None
    assert row(found, "profile average").columns["within_pearson"].skipped_reviewers == 2


def test_the_label_stands_in_where_there_is_no_distribution_and_a_note_says_so() -> None:
    judgements = [JUDGEMENTS[0], answered("1", "6"), *JUDGEMENTS[2:]]
    found = evaluate(EXAMPLES, judgements, train=TRAIN)
    # Expected 2, label 6 in place of the absent expectation, expected 8.
    assert value(found, "judge (expected)", "mae") == pytest.approx((0 + 2 + 2) / 3)
    assert "judge (expected): 1 of 3 answers have no distribution, their label stands for it" in found.notes


def test_statuses_are_counted() -> None:
    statuses = (Status.UNPARSED, Status.TOO_LONG, Status.REFUSED, Status.ENGINE_ERROR)
    judgements = [failed(str(n), status) for n, status in enumerate(statuses)]
    found = evaluate(EXAMPLES, judgements, train=TRAIN)
    assert found.judges["judge"].statuses == {Status.OK: 0, **dict.fromkeys(statuses, 1)}
    assert (found.judges["judge"].ok, found.judges["judge"].asked) == (0, 4)
    assert row(found, "judge (label)").columns["mae"].value is None


def test_examples_without_reference_are_counted_and_left_out() -> None:
    found = evaluate([*EXAMPLES, scored("x", "u", None)], [*JUDGEMENTS, answered("x", "1")], train=TRAIN)
    assert (found.examples, found.without_reference, found.items) == (5, 1, 4)
    with pytest.raises(BadInput, match="none of the 1 examples has a reference"):
        evaluate([scored("x", "u", None)], [answered("x", "1")], train=None)


def test_an_unfinished_run_is_an_error_that_says_how_to_go_on() -> None:
    with pytest.raises(BadInput, match="not finished: 3 of 4 examples judged; run `perse score` again with the same command"):
        evaluate(EXAMPLES, JUDGEMENTS[:3], train=TRAIN)


@pytest.mark.parametrize(
    ("examples", "judgements", "message"),
    [
        (
            EXAMPLES,
            [*JUDGEMENTS, failed("stranger")],
            "1 judgements of judge answer none of the 4 examples, the first 'stranger'",
        ),
        (EXAMPLES, [*JUDGEMENTS, failed("3")], "id '3' appears twice among the judgements of judge"),
        ([*EXAMPLES, EXAMPLES[0]], JUDGEMENTS, "id '0' appears twice among the examples"),
        ([*EXAMPLES, pair("p", "u", "A")], JUDGEMENTS, "pointwise and pairwise examples together; evaluate them apart"),
        ([], [], "0 examples and 1 judges"),
        (EXAMPLES, [answered("0", "A"), *JUDGEMENTS[1:]], "ok with label 'A', expected one of 1, 2"),
        ([pair("p", "u", "A")], [answered("p", "7")], "ok with label '7', expected one of A, B"),
        ([pair("p", "u", "A")], [answered("p", "A", distribution={"neither": 1.0})], "label 'neither', expected one of A, B"),
    ],
)
def test_inputs_that_do_not_belong_together_are_refused(examples: list, judgements: list, message: str) -> None:
    with pytest.raises(BadInput) as error:
        evaluate(examples, judgements, train=None)
    assert message in str(error.value)


def test_training_data_of_the_other_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="differ in kind"):
        evaluate(EXAMPLES, JUDGEMENTS, train=[pair("p", "t", "A")])


def test_readers_seen_in_training_are_named_in_a_note() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=[*TRAIN, scored("t2", "u0", 5)])
    assert "1 of 2 reviewers are also in the training data; this is no test on unseen readers" in found.notes


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
    names = ["judge (likeliest)", "judge (label)", "copy the example", "majority", "random"]
    assert [row.name for row in found.rows] == names
    label, likeliest = row(found, "judge (label)"), row(found, "judge (likeliest)")
    assert label.columns["accuracy"].value == 2 / 4
    assert {aspect: estimate.value for aspect, estimate in label.aspects.items()} == {"Ending": 1 / 2, "Surprise": 1 / 2}
    # Item 0 is likelier B, 2 is an exact tie, 3 has no distribution and the wrong label.
    assert likeliest.columns["accuracy"].value == (0 + 0 + 1 / 2 + 0) / 4
    assert {aspect: estimate.value for aspect, estimate in likeliest.aspects.items()} == {"Ending": 0, "Surprise": 1 / 4}
    assert "judge (likeliest): 1 of 3 answers have no distribution, their label stands for it" in found.notes
    # Only two answers have an order gap, which is of distributions: it stands in their row.
    assert set(likeliest.columns) == set(PAIRWISE_COLUMNS) and set(label.columns) == {"accuracy"}
    assert likeliest.columns["order_gap"].value == pytest.approx(0.2)
    assert likeliest.columns["order_gap"].items == 2
    # Item 0: P(A) is 0.4 -+ 0.05, B both times; item 2: 0.5 -+ 0.15, A one way and B the other.
    assert likeliest.columns["order_consistency"].value == pytest.approx((1 + 0) / 2)
    assert {(row.asked, row.ok) for row in (likeliest, label)} == {(4, 3)}
    # The majority says A always: wrong once, in Ending.
    assert row(found, "majority").columns["accuracy"].value == 3 / 4
    assert row(found, "majority").aspects["Ending"].value == 1 / 2


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


def test_several_judges_stand_on_the_items_common_to_all() -> None:
    # Untrained has not judged item 0 and fails on item 1: every row is of items 2 and 3.
    trained = [*JUDGEMENTS[:3], answered("3", "9")]
    untrained = [failed("1"), answered("2", "5"), answered("3", "6")]
    found = evaluate_many({"trained": trained, "untrained": untrained}, [Part(EXAMPLES, TRAIN)])
    assert (found.items, found.ok_items) == (3, 2)
    assert "untrained has judged 3 of 4 examples; all rows are of the common ones" in found.notes
    assert value(found, "trained (label)", "mae") == pytest.approx((2 + 1) / 2)  # items 2 and 3: 8 for 6, 9 for 10
    assert value(found, "untrained (label)", "mae") == pytest.approx((1 + 4) / 2)
    assert {row.asked for row in found.rows} == {3}
    assert {name: summary.ok for name, summary in found.judges.items()} == {"trained": 3, "untrained": 2}
    trained_imputed = row(found, "trained (label)").imputed
    assert trained_imputed is not None and trained_imputed["mae"].value == pytest.approx((0 + 2 + 1) / 3)


def test_judges_without_a_common_item_are_refused() -> None:
    with pytest.raises(BadInput, match="judged by all of one, two"):
        evaluate_many({"one": JUDGEMENTS[:2], "two": JUDGEMENTS[2:]}, [Part(EXAMPLES, None)])


def test_evaluate_is_evaluate_many_of_one_judge_and_one_part() -> None:
    assert evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN) == evaluate_many({"judge": JUDGEMENTS}, [Part(EXAMPLES, TRAIN)])


# Two folds of EXAMPLES: readers u0 (items 0 and 1) and u1 (items 2 and 3), each fold trained on a reader of its own.
FOLDS = [
    Part(EXAMPLES[:2], [scored("f0", "t0", 1, item="i")]),
    Part(EXAMPLES[2:], [scored("f1", "t1", 9, item="i")]),
]


def test_folds_are_evaluated_together_with_the_baselines_of_each_ones_training_side() -> None:
    found = evaluate_many({"judge": JUDGEMENTS}, FOLDS)
    assert (found.examples, found.items, found.reviewers, found.training_means) == (4, 4, 2, (1, 9))
    assert any(note.startswith("cross-fitted over 2 folds") for note in found.notes)
    apart = [evaluate(part.examples, JUDGEMENTS[2 * n : 2 * n + 2], train=part.train) for n, part in enumerate(FOLDS)]
    for name in ("random", "user+item bias", "judge (expected)"):
        # Two ok items in the first fold, one in the second.
        first, second = (value(one, name, "mae") for one in apart)
        assert first is not None and second is not None
        assert value(found, name, "mae") == pytest.approx((2 * first + second) / 3)
    # The judge itself does not depend on how the examples are divided.
    assert row(found, "judge (label)").columns == row(evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN), "judge (label)").columns


def test_each_failure_is_imputed_by_its_own_folds_training_mean() -> None:
    judgements = [failed("0"), *JUDGEMENTS[1:3], failed("3")]
    imputed = row(evaluate_many({"judge": judgements}, FOLDS), "judge (label)").imputed
    # Gold 2 4 6 10; item 0 gets 1, labels 4 and 8, item 3 gets 9.
    assert imputed is not None and imputed["mae"].value == pytest.approx((1 + 0 + 2 + 1) / 4)


def test_a_fold_without_training_data_has_no_baseline_and_imputes_nothing_that_failed_there() -> None:
    found = evaluate_many({"judge": JUDGEMENTS}, [FOLDS[0], Part(EXAMPLES[2:], None)])
    assert row(found, "user+item bias").unavailable == "in 1 of 2 folds: no training data at hand"
    assert value(found, "profile average", "mae") is not None
    assert found.training_means == (1, None)
    assert all(row.imputed is None for row in found.rows)
    assert "failures are not imputed: no training data at hand" in found.notes
    # Item 3 is the only failure: where its own fold has a mean, it is imputed.
    other = evaluate_many({"judge": JUDGEMENTS}, [Part(EXAMPLES[:2], None), FOLDS[1]])
    assert row(other, "judge (label)").imputed is not None


def test_folds_of_pairs_have_each_ones_majority() -> None:
    parts = [
        Part([pair("0", "u0", "A")], [pair("t0", "t0", "A")]),
        Part([pair("1", "u1", "B")], [pair("t1", "t1", "B")]),
    ]
    found = evaluate_many({"judge": [answered("0", "A"), answered("1", "A")]}, parts)
    assert value(found, "majority", "accuracy") == 1
    assert value(found, "judge (label)", "accuracy") == 1 / 2


def test_small_folds_have_intervals_together() -> None:
    examples = world(12)
    judgements = noisy_judge(examples, noise=2, seed=0)
    halves = [
        Part([example for example in examples if (int(example.reviewer_id[3:]) < 6) is first], None) for first in (True, False)
    ]
    for part in halves:
        ids = {example.id for example in part.examples}
        alone = evaluate(part.examples, [judgement for judgement in judgements if judgement.id in ids], train=None)
        assert row(alone, "judge (expected)").columns["pearson"].interval.reason == "undefined (few reviewers)"
    together = row(evaluate_many({"judge": judgements}, halves), "judge (expected)").columns
    whole = row(evaluate(examples, judgements, train=None), "judge (expected)").columns
    assert together["pearson"].interval.low == pytest.approx(whole["pearson"].interval.low)


def test_a_reader_of_another_folds_training_side_is_not_seen_but_one_of_the_own_is() -> None:
    trains = [[scored("a", "u1", 5)], [scored("b", "u0", 5)]]
    unseen = [Part(EXAMPLES[:2], trains[0]), Part(EXAMPLES[2:], trains[1])]
    seen = [Part(EXAMPLES[:2], trains[0]), Part(EXAMPLES[2:], trains[0])]
    assert not any("also in the training data" in note for note in evaluate_many({"judge": JUDGEMENTS}, unseen).notes)
    notes = evaluate_many({"judge": JUDGEMENTS}, seen).notes
    assert "1 of 2 reviewers are also in the training data; this is no test on unseen readers" in notes


def test_folds_that_share_an_example_or_are_unfinished_are_refused() -> None:
    with pytest.raises(BadInput, match="id '1' appears twice among the examples of 2 folds"):
        evaluate_many({"judge": JUDGEMENTS}, [FOLDS[0], Part(EXAMPLES[1:], None)])
    with pytest.raises(BadInput, match="not finished: 2 of 4 examples judged"):
        evaluate_many({"judge": JUDGEMENTS[:2]}, FOLDS)


def test_a_fold_that_a_judge_has_not_judged_leaves_the_table() -> None:
    found = evaluate_many({"one": JUDGEMENTS, "two": JUDGEMENTS[:2]}, FOLDS)
    assert (found.examples, found.items, found.training_means) == (4, 2, (1,))
    assert "two has judged 2 of 4 examples; all rows are of the common ones" in found.notes
    assert not any("cross-fitted" in note for note in found.notes)


def test_the_same_seed_gives_the_same_evaluation_and_others_differ() -> None:
    examples = world(12)
    judgements = noisy_judge(examples, noise=2, seed=0)
    runs = [evaluate(examples, judgements, train=None, seed=seed, resamples=1000) for seed in (0, 0, 1, 2)]
    assert runs[0] == runs[1]
    intervals = [row(run, "judge (expected)").columns["kendall"].interval for run in runs[1:]]
    assert len({(interval.low, interval.high) for interval in intervals}) == 3


def test_the_order_of_examples_and_judgements_does_not_matter() -> None:
    examples = world(12)
    judgements = noisy_judge(examples, noise=2, seed=0, failures=0.1)
    plain, shuffled = (
        evaluate(examples, judgements, train=TRAIN, resamples=1000),
        evaluate(examples[::-1], sorted(judgements, key=lambda judgement: judgement.id), train=TRAIN, resamples=1000),
    )
    for one, other in zip(plain.rows, shuffled.rows, strict=True):
        for column, estimate in one.columns.items():
            twin = other.columns[column]
            assert estimate.value == pytest.approx(twin.value)
            assert estimate.interval.low == pytest.approx(twin.interval.low)


def test_intervals_hold_their_value_from_ten_reviewers_on_and_are_undefined_below() -> None:
    train = world(20, seed=5)
    for reviewers, defined in ((9, False), (10, True)):
        examples = world(reviewers)
        found = evaluate(examples, noisy_judge(examples, noise=2, seed=0, failures=0.05), train=train)
        for column, estimate in row(found, "judge (expected)").columns.items():
            interval = estimate.interval
            assert (interval.low is not None) == defined, column
            assert interval.reason == (None if defined else "undefined (few reviewers)")
            if defined:
                assert interval.low < estimate.value < interval.high


def test_within_reviewer_stands_in_both_conventions() -> None:
    columns = evaluate(EXAMPLES, JUDGEMENTS, train=None).rows[0].columns
    # Reader u0 is ordered perfectly (1); reader u1 has one ok item left.
    assert columns["within_pearson"].value == pytest.approx(1)
    assert columns["within_zero_pearson"].value == pytest.approx(1 / 2)
    assert [columns[f"within_{zero}pearson"].skipped_reviewers for zero in ("", "zero_")] == [1, 1]


def test_kappa_is_of_rounded_predictions_and_the_probability_score_of_distributions() -> None:
    found = evaluate(EXAMPLES[:3], JUDGEMENTS[:3], train=TRAIN)
    # Expected 2, 5, 8 against gold 2, 4, 6: squared distances 0 + 1 + 4 = 5. Were the two independent: every gold with every
    # prediction, (0 9 36) + (4 1 16) + (16 1 4) = 87, over 3 items 29.
    assert value(found, "judge (expected)", "qwk") == pytest.approx(1 - 5 / 29)
    # Gold 2, half on 1 and half on 3: misses 1/2 at 1 and at 2, (1/4 + 1/4) / 9. Gold 4, half on 4 and half on 6: 1/2 at 4 and
    # at 5. Gold 6, sure of 8: 1 at 6 and at 7.
    assert value(found, "judge (expected)", "rps") == pytest.approx((0.5 + 0.5 + 2) / 9 / 3)
    # The label alone is sure: 3 for 2, 4 for 4, 8 for 6.
    assert value(found, "judge (label)", "rps") == pytest.approx((1 + 0 + 2) / 9 / 3)


def test_pairs_in_order_are_of_one_reviewers_items_with_ties_fitted_on_the_other_half() -> None:
    examples = [scored(f"{u}{n}", u, gold) for u in ("a", "b") for n, gold in enumerate((3, 3, 7))]
    said = {"a": (4.0, 4.5, 8.0), "b": (5.0, 5.2, 9.0)}

    def near(id: str, mean: float) -> Judgement:
        low = int(mean)
        return answered(id, str(low), distribution={str(low): 1 - (mean - low), str(low + 1): mean - low})

    judgements = [near(f"{u}{n}", said[u][n]) for u in ("a", "b") for n in range(3)]
    found = row(evaluate(examples, judgements, train=None), "judge (expected)")
    # Reader a's best epsilon is 0.5, reader b's 0.2. b's ties at 0.2 are within 0.5, all 3 pairs right; a's 0.5 is not within
    # 0.2, so a's tie is missed: 2 of 3.
    assert sorted(found.epsilons or ()) == pytest.approx([0.2, 0.5])
    assert found.columns["pair_accuracy"].value == pytest.approx(5 / 6)


def test_ties_can_be_calibrated_on_a_validation_run_of_other_reviewers_only() -> None:
    examples, others = world(12), world(8, seed=3)
    judges, validation = ({"judge": noisy_judge(some, noise=1, seed=0)} for some in (examples, others))
    train = world(10, seed=5)
    found = evaluate_many(
        judges, [Part(examples, train)], resamples=100, validation=Validation(validation, [Part(others, train)])
    )
    assert all(len(row.epsilons or ()) == 1 for row in found.rows if row.columns)
    assert "pairs in order: ties are calibrated on the validation run" in found.notes
    with pytest.raises(BadInput, match="12 reviewers are in the evaluated run and in the validation run, the first 'w0-0'"):
        evaluate_many(judges, [Part(examples, None)], resamples=100, validation=Validation(judges, [Part(examples, None)]))


def test_texts_of_several_readers_are_noted_and_two_way_resamples_are_wider() -> None:
    examples = world(30)  # 40 texts, 10 each
    judgements = {"judge": noisy_judge(examples, noise=2, seed=0)}
    plain, both = (
        evaluate_many(judgements, [Part(examples, None)], resamples=300, resample=resample)
        for resample in ("reviewers", "two-way")
    )
    assert any("texts were judged by several readers" in note and "--resample two-way" in note for note in plain.notes)
    assert any(note.startswith("two-way: reviewers and 40 texts are both resampled") for note in both.notes)
    intervals = [row(found, "judge (expected)").columns["kendall"].interval for found in (plain, both)]
    assert intervals[0].high - intervals[0].low < intervals[1].high - intervals[1].low
    assert row(plain, "judge (expected)").columns["within_kendall"] == row(both, "judge (expected)").columns["within_kendall"]


def test_a_judge_that_answered_nothing_has_reasons_instead_of_values() -> None:
    found = evaluate(EXAMPLES, [failed(example.id) for example in EXAMPLES], train=TRAIN)
    judge = row(found, "judge (expected)").columns
    assert set(judge) == set(POINTWISE_COLUMNS)
    assert {(one.value, one.interval.reason) for one in judge.values()} == {(None, "undefined (nothing was answered)")}
    assert found.verdict == ("judge: answered none of 4; nothing can be said of it",)


def test_one_reviewer_and_equal_scores_leave_values_or_reasons() -> None:
    examples = [scored(str(n), "u", 5, profile=(("i1", 5),)) for n in range(6)]
    found = evaluate(examples, [answered(str(n), "5") for n in range(6)], train=TRAIN)
    no_constants(found.model_dump_json())
    for one in found.rows:
        assert all(cell.value is not None or cell.interval.reason for cell in one.columns.values()), one.name
    mae = row(found, "judge (label)").columns["mae"]
    assert (mae.value, mae.interval.reason) == (0, "undefined (one reviewer)")


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(BadInput, match="99 resamples are too few for a 95% interval; give at least 100"):
        evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN, resamples=99)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 10), st.integers(0, 10)), min_size=1, max_size=30), st.booleans())
def test_json_is_plain_and_round_trips_whatever_fails(rows: list[tuple[int, int, int]], trained: bool) -> None:
    examples = [scored(str(n), f"u{reader}", gold) for n, (reader, gold, _) in enumerate(rows)]
    judgements = [answered(str(n), str(label)) if label else failed(str(n)) for n, (_, _, label) in enumerate(rows)]
    found = evaluate(examples, judgements, train=TRAIN if trained else None, resamples=100)
    line = found.model_dump_json()
    no_constants(line)
    assert Evaluation.model_validate_json(line) == found


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
