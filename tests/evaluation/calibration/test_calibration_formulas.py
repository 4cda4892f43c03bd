"""Calibration error, bins, entropy, and risk against coverage: by hand, and against slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_builders import answered, graded
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perse.evaluation.calibration.reliability import (
    Promised,
    bin_of,
    calibration_error,
    chance_errors,
    nearest_label,
    off_by_chance,
    on_labels,
    promised,
    reliability_bins,
    reliability_by_label,
)
from perse.evaluation.calibration.risk_coverage import area, curve, entropy, kept
from perse.scale import Scale

ONE = np.ones((1, 4))


def promise(probability: object, truth: object, *, each: int = 1) -> Promised:
    """Of readers with `each` items."""
    given = np.array(probability, dtype=float)
    return Promised(tuple("ABCDEFGHIJ"[: given.shape[1]]), given, np.array(truth), np.arange(len(given)) // each)


def test_the_calibration_error_is_that_computed_by_hand() -> None:
    # P(A) is 0.8 twice, true once: 0.8 against 1/2.
    assert calibration_error(promise([[0.8, 0.2], [0.8, 0.2]], [0, 1])) == pytest.approx(0.3)
    assert calibration_error(promise([[1.0, 0.0]], [0])) == 0.0
    # At most A: 0.5 and 0.2 against 1 and 0, other bins, (0.5 + 0.2) / 2. At most B: 0.8 twice against 1/2. Mean of both.
    three = promise([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]], [0, 2])
    assert calibration_error(three) == pytest.approx((0.35 + 0.3) / 2)


def test_a_tenth_for_every_score_is_wrong_where_scores_are_not_as_frequent() -> None:
    # Of all labels in one heap, a tenth comes true. At most k: k / 10, where all are at most 6 and none is at most 5.
    same = promise(np.full((50, 10), 0.1), np.full(50, 5))
    assert calibration_error(same) == pytest.approx((0.1 + 0.2 + 0.3 + 0.4 + 0.5 + 0.4 + 0.3 + 0.2 + 0.1) / 9)
    assert calibration_error(same) > np.quantile(chance_errors(same, seed=0), 0.95)


@pytest.mark.slow
def test_shares_of_the_wrong_scores_are_wrong() -> None:
    # 5, 15, 18 and 62 of 100, where 15 and 18 changed places: 18 and 15 fall into one bin, and of one heap that bin is right.
    truth = np.repeat(np.arange(4), [50, 150, 180, 620])
    same = promise(np.tile([0.05, 0.18, 0.15, 0.62], (1000, 1)), truth)
    assert calibration_error(same) == pytest.approx(0.03 / 3)  # at most A is right, at most B by 0.23 against 0.2, C is right
    wrong = promise(np.tile([0.05, 0.18, 0.15, 0.62], (20_000, 1)), np.repeat(np.arange(4), [1000, 3000, 3600, 12_400]))
    assert calibration_error(wrong) > chance_errors(wrong, seed=0).max()


def test_chance_is_that_of_readers_and_a_judge_that_is_always_right_has_none() -> None:
    assert chance_errors(promise([[1.0, 0.0], [0.0, 1.0]], [0, 1]), seed=0, draws=5) == pytest.approx(np.zeros(5))
    generator = np.random.default_rng(0)
    truth = (generator.random(400) > 0.75).astype(int)
    alone = chance_errors(promise(np.tile([0.75, 0.25], (400, 1)), truth), seed=0)
    assert alone.mean() == pytest.approx(np.sqrt(2 / np.pi) * np.sqrt(0.75 * 0.25 / 400), abs=0.002)
    # Readers whose 8 items all come out alike: as many independent answers as readers.
    together = chance_errors(promise(np.tile([0.75, 0.25], (3200, 1)), np.repeat(truth, 8), each=8), seed=0)
    assert together == pytest.approx(alone)


def test_a_judge_that_is_sure_and_never_wrong_is_not_called_wrong_for_want_of_errors() -> None:
    # Of 30 answers sure to 0.99 none is wrong in 74 of 100 worlds; a wrong one of every reader is too many.
    sure = promise(np.tile([0.99, 0.01], (30, 1)), np.zeros(30, dtype=int), each=3)
    assert off_by_chance(sure, chance_errors(sure, seed=0))
    wrong = promise(np.tile([0.99, 0.01], (30, 1)), np.arange(30) % 3 == 0, each=3)
    assert not off_by_chance(wrong, chance_errors(wrong, seed=0))


@pytest.mark.slow
def test_a_sure_judge_that_is_right_is_called_wrong_in_at_most_5_of_100_worlds() -> None:
    """Sides sure to 0.99, of 40 readers with three items each. By signs of readers alone it was 30."""
    alarms = []
    for seed in range(400):
        first = np.random.default_rng((11, seed)).random((2, 120))
        p = np.where(first[0] < 0.5, 0.99, 0.01)
        given = promise(np.stack([p, 1 - p], axis=1), first[1] > p, each=3)
        alarms.append(not off_by_chance(given, chance_errors(given, seed=seed, draws=300)))
    assert np.mean(alarms) <= 0.083  # 5% and 3 standard errors of 400 worlds


@pytest.mark.slow
def test_a_calibrated_judge_of_readers_who_differ_is_called_wrong_in_5_of_100_worlds() -> None:
    """A coin of 0.7 for each reader, whose answers are alike but for one in five. With items drawn one by one it was 7 to 35."""
    alarms = []
    for seed in range(400):
        generator = np.random.default_rng((7, seed))
        own = np.repeat(generator.random(40) > 0.7, 10)
        truth = np.where(generator.random(400) < 0.2, generator.random(400) > 0.7, own).astype(int)
        given = promise(np.tile([0.7, 0.3], (400, 1)), truth, each=10)
        alarms.append(not off_by_chance(given, chance_errors(given, seed=seed, draws=300)))
    assert 0.02 <= np.mean(alarms) <= 0.085  # 400 worlds: 5% +- 3 standard errors, and what 40 readers allow


def test_the_curve_and_the_area_are_those_computed_by_hand() -> None:
    # Surest first: risks 0, 1, 2, 5. Risk of what is kept: 0, 1/2, 1, 2. Their mean: 3.5 / 4 = 0.875.
    risk, sure = np.array([5.0, 0.0, 2.0, 1.0]), np.array([1.0, 4.0, 2.0, 3.0])
    assert curve(risk, sure, weights=ONE, shares=(1.0, 0.75, 0.5, 0.25))[0] == pytest.approx([2.0, 1.0, 0.5, 0.0])
    assert area(risk, sure, weights=ONE)[0] == pytest.approx(0.875)


def test_equally_sure_answers_come_and_go_together() -> None:
    # Two groups: {1, 3} surest, mean 2, then {0, 0}. Half of the first group is kept with its mean, whatever the order.
    for risk in ([1.0, 3.0, 0.0, 0.0], [3.0, 1.0, 0.0, 0.0]):
        found = curve(np.array(risk), np.array([2.0, 2.0, 1.0, 1.0]), weights=ONE, shares=(0.25, 0.5, 1.0))[0]
        assert found == pytest.approx([2.0, 2.0, 1.0])
        # the area: the first two have risk 2 among those as sure, the others 1
        assert area(np.array(risk), np.array([2.0, 2.0, 1.0, 1.0]), weights=ONE)[0] == pytest.approx(1.5)


def test_random_order_has_the_risk_of_all_and_the_oracle_the_least() -> None:
    generator = np.random.default_rng(0)
    risk, sure = generator.random(50), generator.random(50)
    ones = np.ones((1, 50))
    assert area(risk, np.zeros(50), weights=ones)[0] == pytest.approx(risk.mean())
    assert area(risk, -risk, weights=ones)[0] <= area(risk, sure, weights=ones)[0]


@settings(max_examples=60)
@given(st.data())
def test_weights_are_the_resample_built_row_by_row(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 8))
    small = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    risk, sure = np.array(data.draw(small), dtype=float), np.array(data.draw(small), dtype=float)
    weights = np.array(data.draw(small), dtype=float)
    if not weights.any():
        assert np.isnan(area(risk, sure, weights=weights[None])[0])
        return
    rows = np.repeat(np.arange(n), weights.astype(int))
    ones = np.ones((1, len(rows)))
    assert area(risk, sure, weights=weights[None])[0] == pytest.approx(area(risk[rows], sure[rows], weights=ones)[0])
    assert curve(risk, sure, weights=weights[None])[0] == pytest.approx(curve(risk[rows], sure[rows], weights=ones)[0])
    # the slow twin of the area: for each row, the mean risk of all rows at least as sure
    slow = [risk[rows][sure[rows] >= sure[row]].mean() for row in rows]
    assert area(risk, sure, weights=weights[None])[0] == pytest.approx(np.mean(slow))


def test_entropy_is_in_bits() -> None:
    # 1/2, 1/4, 1/4: 0.5 * 1 + 0.25 * 2 + 0.25 * 2 = 1.5; certainty is 0, and 0, not -0
    found = entropy(np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [np.nan] * 3]))
    assert found[0] == 1.5 and str(found[1]) == "0.0" and np.isnan(found[2])


def test_a_rounding_error_makes_no_answer_surer() -> None:
    sure = np.array([-0.3, -(0.1 + 0.2), -0.3, -(0.1 + 0.2)])
    assert sure[0] != sure[1]
    assert curve(np.array([0.0, 1.0, 0.0, 1.0]), sure, shares=(1.0, 0.5))[0] == pytest.approx([0.5, 0.5])


def test_bins_hold_every_k_with_how_often_it_was_at_most_that() -> None:
    # At most A 0.25 twice, once so; at most B 0.85 twice, always so.
    sides = promise([[0.25, 0.6, 0.15], [0.25, 0.6, 0.15]], [0, 1])
    low, high = reliability_bins(sides, resamples=100, seed=0)
    assert (low.place, high.place) == (2, 8)
    assert (low.predicted.value, low.true.value, low.true.items) == (pytest.approx(0.25), 0.5, 2)
    assert (high.predicted.value, high.true.value, high.true.items) == (pytest.approx(0.85), 1.0, 2)
    assert [one.true.value for one in reliability_by_label(sides, resamples=100, seed=0)] == [0.5, 1.0]
    # Sums of probabilities stray: 0.7 + 0.1 is 0.7999999999999999.
    assert [one.place for one in reliability_bins(promise([[0.7, 0.1, 0.2]], [0]), resamples=100, seed=0)] == [7, 8]


def test_how_often_it_was_so_has_an_interval_where_it_always_was() -> None:
    # Of 20 readers with an item each it was always so: Clopper and Pearson's lower end is 0.025 ** (1 / 20). Four k of an item are one item.
    never = promise([[0.01, 0.01, 0.01, 0.01, 0.96]] * 20, [4] * 20)
    [low] = reliability_bins(never, resamples=100, seed=0)
    assert (low.true.value, low.true.items, low.true.interval.low) == (0.0, 80, 0.0)
    assert low.true.interval.high == pytest.approx(1 - 0.025 ** (1 / 20))
    for one in reliability_by_label(never, resamples=100, seed=0):
        assert one.true.interval == low.true.interval


def test_the_last_bin_holds_certainty() -> None:
    assert bin_of(np.array([[0.0, 0.1, 0.95, 1.0]])).tolist() == [[0, 1, 9, 9]]


def test_a_truth_between_two_labels_counts_for_the_nearest_and_midway_for_the_lower() -> None:
    values = np.array([0.0, 20.0, 40.0])
    assert nearest_label(np.array([0.0, 12.0, 30.0, 40.0]), values).tolist() == [0, 1, 1, 2]


def test_no_probability_of_a_label_is_right_of_true_scores_between_labels() -> None:
    scale = Scale("three", ("1", "2", "3"), (1.0, 2.0, 3.0))
    assert on_labels([1, 3.0, None], scale) and not on_labels([1, 2.5], scale)
    examples = [graded(str(n), f"p{n}", score) for n, score in enumerate((1, 2.5, 3))]
    judgements = [answered(one.id, "2", distribution={"1": 0.2, "2": 0.6, "3": 0.2}, question="coverage") for one in examples]
    assert promised(examples, judgements, scale=scale) is None
    assert promised(examples[::2], judgements, scale=scale) is not None


@pytest.mark.slow
def test_right_probabilities_are_seldom_called_wrong_where_readers_share_texts() -> None:
    # A judge that gives everybody the shares of all scores is right; what a text is worth moves all of its readers together.
    alarms = {"readers": 0, "both": 0}
    scores = np.arange(1, 11)
    for world in range(60):
        generator = np.random.default_rng((3, world))
        worth, own = generator.normal(0, 1.3, 30), generator.normal(0, 0.5, 40)
        reader = np.repeat(np.arange(40), 12)
        text = np.concatenate([generator.choice(30, 12, replace=False) for _ in range(40)])
        truth = np.clip(np.round(6.5 + worth[text] + own[reader] + generator.normal(0, 1, 480)), 1, 10).astype(int) - 1
        edges = stats.norm.cdf((scores[:-1] + 0.5 - 6.5) / np.sqrt(1.3**2 + 0.5**2 + 1))
        shares = np.tile(np.diff(np.concatenate([[0], edges, [1]])), (480, 1))
        for name, texts in (("readers", None), ("both", text)):
            made = Promised(tuple(map(str, scores)), shares, truth, reader, texts)
            alarms[name] += not off_by_chance(made, chance_errors(made, seed=world, draws=300))
    assert alarms["both"] <= 9, "5 of 100 are meant"
    assert alarms["readers"] >= 20, "which is why texts are drawn, too"


def test_with_a_text_of_its_own_for_each_item_texts_change_no_more_than_the_draw() -> None:
    generator = np.random.default_rng(1)
    given = generator.dirichlet(np.ones(4), 300)
    alone = Promised(tuple("ABCD"), given, generator.integers(0, 4, 300), np.arange(300) // 10)
    both = Promised(alone.labels, given, alone.truth, alone.reviewer, np.arange(300))
    one, other = (chance_errors(each, seed=0, draws=4000) for each in (alone, both))
    assert np.quantile(one, 0.95) == pytest.approx(np.quantile(other, 0.95), rel=0.05)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=30), st.sampled_from([0.1, 0.25, 0.5, 1.0]))
def test_weights_of_the_surest_share_give_its_risk(answers: list[tuple[float, int]], share: float) -> None:
    risk, sureness = (np.array(values, dtype=float) for values in zip(*answers, strict=True))
    weights = kept(sureness, share)
    assert weights.sum() == pytest.approx(share * len(risk))
    assert np.average(risk, weights=weights) == pytest.approx(curve(risk, sureness, shares=(share,))[0, 0])
