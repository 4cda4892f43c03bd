"""Which of two texts does the same reader like better: ties are calibrated on other readers."""

import pytest
from evaluation_builders import answered, failed, noisy_judge, row, scored, world

from perse.errors import BadInput
from perse.evaluation.evaluate import Evaluation, Fold, Validation, evaluate, evaluate_many
from perse.judgement import Judgement


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
        judges, [Fold(examples, train)], resamples=100, validation=Validation(validation, [Fold(others, train)])
    )
    assert all(len(row.epsilons or ()) == 1 for row in found.rows if row.columns)
    assert "pairs in order: ties are calibrated on the validation run" in found.notes
    with pytest.raises(BadInput, match="12 reviewers are in the evaluated run and in the validation run, the first 'w0-0'"):
        evaluate_many(judges, [Fold(examples, None)], resamples=100, validation=Validation(judges, [Fold(examples, None)]))


def test_a_validation_run_without_pairs_is_refused_and_one_row_without_is_told() -> None:
    examples, others = world(12), world(8, seed=3)
    judges = {name: noisy_judge(examples, noise=1, seed=0) for name in ("one", "two")}
    single = [next(one for one in others if one.reviewer_id == reader) for reader in sorted({o.reviewer_id for o in others})]

    def calibrated(some: list, *, silent: bool) -> Evaluation:
        given = noisy_judge(some, noise=1, seed=0)
        both = {"one": given, "two": [failed(example.id) for example in some] if silent else given}
        return evaluate_many(judges, [Fold(examples, None)], resamples=100, validation=Validation(both, [Fold(some, None)]))

    with pytest.raises(BadInput, match="no two answered items of one reader, so it cannot calibrate ties"):
        calibrated(single, silent=False)
    found = calibrated(others, silent=True)
    assert len(row(found, "one (label)").epsilons or ()) == 1 and len(row(found, "two (label)").epsilons or ()) == 2
    assert (
        "pairs in order: ties are calibrated on the validation run, but those of two (expected), two (label), of which it has no "
        "pairs, on the other half of the readers"
    ) in found.notes
