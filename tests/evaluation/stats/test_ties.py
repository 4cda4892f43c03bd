from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perse.evaluation.stats.ties import calibrated_pairs, fit_epsilon, reviewer_halves, right_order

rows = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 8), st.integers(0, 3)), max_size=14)


def arrays(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    gold, predicted, reviewer = (np.array(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    return np.array(gold, float), np.array(predicted, float) / 3, np.array(reviewer, np.int64)


def slow_right(gold, predicted, one: int, other: int, epsilon: float) -> bool:
    """The verdict on one pair, word for word; gaps compared with some room for thirds in binary."""
    called_tied = abs(predicted[one] - predicted[other]) <= epsilon + 1e-6
    if called_tied or gold[one] == gold[other]:
        return called_tied and gold[one] == gold[other]
    return (gold[one] > gold[other]) == (predicted[one] > predicted[other])


def slow_count(gold, predicted, reviewer, epsilon: float) -> dict[int, list[int]]:
    counts = {int(who): [0, 0] for who in range(4)}
    for one, other in combinations(range(len(gold)), 2):
        if reviewer[one] == reviewer[other]:
            counts[int(reviewer[one])][0] += slow_right(gold, predicted, one, other, epsilon)
            counts[int(reviewer[one])][1] += 1
    return counts


def slow_epsilon(gold, predicted, reviewer) -> float | None:
    gaps = [abs(predicted[i] - predicted[j]) for i, j in combinations(range(len(gold)), 2) if reviewer[i] == reviewer[j]]
    best, most = None, -1
    for epsilon in sorted({0.0, *np.round(gaps, 9)}) if gaps else []:
        right = sum(count for count, _ in slow_count(gold, predicted, reviewer, epsilon).values())
        if right > most:
            best, most = float(epsilon), right
    return best


def test_epsilon_and_accuracy_of_a_hand_derived_case() -> None:
    # One reader: gold 5 5 8, predictions 6.0 6.2 7.0. Pairs: (1, 2) gold tied, gap 0.2; (1, 3) same way, gap 1.0; (2, 3) same
    # way, gap 0.8. Epsilon 0: 2 of 3 right. Epsilon 0.2: all 3. Epsilon 0.8: the tie and (1, 3), 2. So 0.2.
    gold, predicted = np.array([5.0, 5, 8]), np.array([6.0, 6.2, 7.0])
    assert fit_epsilon(gold, predicted, np.zeros(3, int)) == pytest.approx(0.2)
    # The other reader says the same: the epsilon of one half serves the other, nobody's own.
    twice = [np.tile(side, 2) for side in (gold, predicted)]
    found = calibrated_pairs(*twice, np.repeat([0, 1], 3), fold_of_reviewer=np.array([0, 1]))
    assert found.right.tolist() == [3, 3]
    assert found.pairs.tolist() == [3, 3]
    assert found.epsilons == (pytest.approx(0.2), pytest.approx(0.2))
    assert found.accuracy == 1


def test_a_reader_is_judged_by_the_other_halfs_epsilon() -> None:
    # Reader 0 never ties, so the best epsilon is 0; reader 1 always ties, so it is the largest gap, 2.
    gold = np.array([1.0, 2, 3, 5, 5, 5])
    predicted = np.array([1.0, 2, 3, 1, 2, 3])
    found = calibrated_pairs(gold, predicted, np.repeat([0, 1], 3), fold_of_reviewer=np.array([0, 1]))
    assert found.epsilons == (0.0, 2.0)
    assert found.right.tolist() == [0, 0]  # each would have had all 3 with their own
    swapped = calibrated_pairs(gold, predicted, np.repeat([0, 1], 3), fold_of_reviewer=np.array([1, 0]))
    assert swapped.epsilons == (2.0, 0.0)
    assert swapped.right.tolist() == [0, 0]


def test_an_epsilon_from_a_validation_run_serves_everybody() -> None:
    gold, predicted = np.array([1.0, 2, 5, 5]), np.array([1.0, 2, 1, 1.5])
    found = calibrated_pairs(gold, predicted, np.array([0, 0, 1, 1]), fold_of_reviewer=np.array([0, 0, 1]), epsilon=0.5)
    assert found.epsilons == (0.5,)
    assert (found.right.tolist(), found.pairs.tolist()) == ([1, 1, 0], [1, 1, 0])


def test_a_predicted_tie_on_texts_that_the_reader_tells_apart_is_wrong() -> None:
    found = calibrated_pairs(
        np.array([1.0, 9]), np.array([4.0, 4]), np.zeros(2, int), fold_of_reviewer=np.array([0]), epsilon=0.0
    )
    assert (found.right.sum(), found.pairs.sum()) == (0, 1)


def test_without_a_calibrating_half_the_pairs_are_left_out_not_wrong() -> None:
    found = calibrated_pairs(np.array([1.0, 2]), np.array([1.0, 2]), np.zeros(2, int), fold_of_reviewer=np.array([0]))
    assert found.epsilons == (0.0, None)
    assert found.pairs.sum() == 0
    assert found.accuracy is None
    assert fit_epsilon(np.array([1.0]), np.array([1.0]), np.array([0])) is None


def test_thirds_that_differ_in_the_last_bit_are_one_gap() -> None:
    predicted = np.array([19 / 3, 6, 17 / 3, 16 / 3])
    assert abs(predicted[0] - predicted[1]) != abs(predicted[2] - predicted[3])
    epsilon = fit_epsilon(np.array([5.0, 5]), predicted[:2], np.zeros(2, int))
    found = calibrated_pairs(
        np.array([5.0, 5]), predicted[2:], np.zeros(2, int), fold_of_reviewer=np.array([0]), epsilon=epsilon
    )
    assert found.right.sum() == 1


@given(rows)
def test_the_sweep_finds_the_epsilon_of_trying_all_gaps(given_rows: list[tuple[int, int, int]]) -> None:
    gold, predicted, reviewer = arrays(given_rows)
    found, slow = fit_epsilon(gold, predicted, reviewer), slow_epsilon(gold, predicted, reviewer)
    assert (found is None) == (slow is None)
    if found is not None:
        assert found == pytest.approx(slow)


@given(rows, st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_calibrated_pairs_equal_a_loop_over_all_pairs(given_rows: list[tuple[int, int, int]], halves: list[int]) -> None:
    gold, predicted, reviewer = arrays(given_rows)
    fold = np.array(halves)
    found = calibrated_pairs(gold, predicted, reviewer, fold_of_reviewer=fold)
    for side in (0, 1):
        mine, other = np.isin(reviewer, np.flatnonzero(fold == side)), np.isin(reviewer, np.flatnonzero(fold != side))
        epsilon = slow_epsilon(gold[other], predicted[other], reviewer[other])
        counts = slow_count(gold[mine], predicted[mine], reviewer[mine], epsilon or 0.0)
        for who in np.flatnonzero(fold == side):
            expected = [0, 0] if epsilon is None else counts[int(who)]
            assert [found.right[who], found.pairs[who]] == expected


def test_the_order_of_rows_does_not_matter() -> None:
    generator = np.random.default_rng(1)
    reviewer = generator.integers(0, 6, 60)
    gold, predicted = generator.integers(1, 11, 60).astype(float), generator.normal(size=60)
    mixed = generator.permutation(60)
    fold = np.array([0, 1, 0, 1, 0, 1])
    plain = calibrated_pairs(gold, predicted, reviewer, fold_of_reviewer=fold)
    other = calibrated_pairs(gold[mixed], predicted[mixed], reviewer[mixed], fold_of_reviewer=fold)
    assert plain.epsilons == other.epsilons
    assert plain.right.tolist() == other.right.tolist()


def test_halves_are_seeded_even_and_independent_of_the_order_of_ids() -> None:
    ids = [f"reader {n}" for n in range(31)]
    halves = reviewer_halves(ids, seed=3)
    assert sorted(np.bincount(halves)) == [15, 16]
    assert reviewer_halves(ids[::-1], seed=3)[::-1].tolist() == halves.tolist()
    assert reviewer_halves(ids, seed=4).tolist() != halves.tolist()


def test_predictions_that_were_not_given_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        fit_epsilon(np.array([1.0, 2]), np.array([1.0, np.nan]), np.zeros(2, int))
    with pytest.raises(ValueError, match="as many"):
        fit_epsilon(np.array([1.0, 2]), np.array([1.0]), np.zeros(2, int))
    for lengths in product((1, 2), repeat=3):  # of gold scores, predictions, readers
        if len(set(lengths)) > 1:
            with pytest.raises(ValueError, match="must be as many"):
                fit_epsilon(*(np.zeros(length, int) for length in lengths))


@pytest.mark.parametrize(
    ("gold", "judge", "right"),
    [
        (0, 0.0, True),
        (0, 0.1, True),
        (0, 0.5, False),
        (0, -0.5, False),
        (2, 0.5, True),
        (2, 0.0, False),
        (2, 0.1, False),
        (2, -0.5, False),
        (-2, -0.5, True),
        (-2, 0.5, False),
        (-2, -0.1, False),
        (-2, 0.0, False),
    ],
)
def test_a_pair_is_right_where_both_call_it_tied_or_both_order_it_alike(gold: int, judge: float, right: bool) -> None:
    assert right_order(np.array([gold]), np.array([judge]), epsilon=np.array([0.1])).tolist() == [right]
