"""Folds in one table: baselines and training means are those of each fold."""

import pytest
from evaluation_builders import EXAMPLES, JUDGEMENTS, TRAIN, answered, failed, noisy_judge, pair, row, scored, value, world

from perse.errors import BadInput
from perse.evaluation.evaluate import Fold, evaluate, evaluate_many

# Two folds of EXAMPLES: readers u0 (items 0 and 1) and u1 (items 2 and 3), each fold trained on a reader of its own.
FOLDS = [
    Fold(EXAMPLES[:2], [scored("f0", "t0", 1, item="i")]),
    Fold(EXAMPLES[2:], [scored("f1", "t1", 9, item="i")]),
]


@pytest.mark.slow
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
    found = evaluate_many({"judge": JUDGEMENTS}, [FOLDS[0], Fold(EXAMPLES[2:], None)])
    assert row(found, "user+item bias").unavailable == "in 1 of 2 folds: no training data at hand"
    assert value(found, "profile average", "mae") is not None
    assert found.training_means == (1, None)
    assert all(row.imputed is None for row in found.rows)
    assert "failures are not imputed: no training data at hand" in found.notes
    # Item 3 is the only failure: where its own fold has a mean, it is imputed.
    other = evaluate_many({"judge": JUDGEMENTS}, [Fold(EXAMPLES[:2], None), FOLDS[1]])
    assert row(other, "judge (label)").imputed is not None


def test_folds_of_pairs_have_each_ones_majority() -> None:
    parts = [
        Fold([pair("0", "u0", "A")], [pair("t0", "t0", "A")]),
        Fold([pair("1", "u1", "B")], [pair("t1", "t1", "B")]),
    ]
    found = evaluate_many({"judge": [answered("0", "A"), answered("1", "A")]}, parts)
    assert value(found, "majority", "accuracy") == 1
    assert value(found, "judge (label)", "accuracy") == 1 / 2


@pytest.mark.slow
def test_small_folds_have_intervals_together() -> None:
    examples = world(12)
    judgements = noisy_judge(examples, noise=2, seed=0)
    halves = [
        Fold([example for example in examples if (int(example.reviewer_id[3:]) < 6) is first], None) for first in (True, False)
    ]
    for part in halves:
        ids = {example.id for example in part.examples}
        alone = evaluate(part.examples, [judgement for judgement in judgements if judgement.id in ids], train=None)
        assert row(alone, "judge (expected)").columns["pearson"].interval.reason == "undefined (few reviewers)"
    together = row(evaluate_many({"judge": judgements}, halves), "judge (expected)").columns
    whole = row(evaluate(examples, judgements, train=None), "judge (expected)").columns
    assert together["pearson"].interval.low == pytest.approx(whole["pearson"].interval.low)


def test_a_reader_of_another_folds_training_side_is_not_seen_but_one_of_the_own_is() -> None:
    trains = [[scored("a", "u1", 5, item="elsewhere")], [scored("b", "u0", 5)]]
    unseen = [Fold(EXAMPLES[:2], trains[0]), Fold(EXAMPLES[2:], trains[1])]
    seen = [Fold(EXAMPLES[:2], trains[0]), Fold(EXAMPLES[2:], trains[0])]
    assert not any("also in the training data" in note for note in evaluate_many({"judge": JUDGEMENTS}, unseen).notes)
    notes = evaluate_many({"judge": JUDGEMENTS}, seen).notes
    assert "1 of 2 reviewers are also in the training data; this is no test on unseen readers" in notes


def test_folds_that_share_an_example_or_are_unfinished_are_refused() -> None:
    with pytest.raises(BadInput, match="id '1' appears twice among the examples of 2 folds"):
        evaluate_many({"judge": JUDGEMENTS}, [FOLDS[0], Fold(EXAMPLES[1:], None)])
    with pytest.raises(BadInput, match="not finished: 2 of 4 examples judged"):
        evaluate_many({"judge": JUDGEMENTS[:2]}, FOLDS)


def test_a_fold_that_a_judge_has_not_judged_leaves_the_table() -> None:
    found = evaluate_many({"one": JUDGEMENTS, "two": JUDGEMENTS[:2]}, FOLDS)
    assert (found.examples, found.items, found.training_means) == (4, 2, (1,))
    assert "two has judged 2 of 4 examples; all rows are of the common ones" in found.notes
    assert not any("cross-fitted" in note for note in found.notes)
