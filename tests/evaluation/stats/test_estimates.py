"""Every value of all resamples at once, against its slow twin: each resample built row by row, and scipy asked."""

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.evaluation.stats import pooled
from perse.evaluation.stats.correlation import (
    COEFFICIENTS,
    BoolArray,
    Coefficient,
    Convention,
    FloatArray,
    IntArray,
    between_reviewers,
    kendall_a,
    within_reviewers,
)
from perse.evaluation.stats.estimates import EVEN, NO_COEFFICIENT, POOLED, SCORE_COLUMNS, Bootstrap
from perse.evaluation.stats.intervals import ALIKE, FEW_REVIEWERS, RESTS_ON_FEW, expanded_levels
from perse.evaluation.stats.resamples import Resamples, times_drawn

Data = tuple[FloatArray, FloatArray, IntArray, IntArray]
KINDS = ("fine", "tied", "labels", "no ties", "by reviewer")


def data(kind: str, *, reviewers: int = 15, seed: int = 0) -> Data:
    """Gold, predictions, reviewers of unequal numbers of items (rows of a reviewer not together), and items."""
    generator = np.random.default_rng(seed)
    reviewer = np.repeat(np.arange(reviewers), generator.integers(1, 14, reviewers))
    generator.shuffle(reviewer)
    gold = generator.integers(1, 11, len(reviewer)).astype(float)
    predicted = gold + generator.normal(0, 3, len(reviewer))
    if kind == "fine":
        predicted = np.round(predicted, 1)
    elif kind == "tied":
        predicted = np.round(predicted / 2)
    elif kind == "labels":
        gold, predicted = np.clip(np.round(gold / 3), 1, 3), np.clip(np.round(predicted / 3), 1, 3)
    elif kind == "no ties":
        gold = gold + generator.normal(size=len(gold))
    elif kind == "by reviewer":
        predicted = generator.normal(size=reviewers)[reviewer]
    return gold, predicted, reviewer, generator.integers(0, 12, len(reviewer))


def rebuilt(bootstrap: Bootstrap, rows: int) -> list[IntArray]:
    """Each resample as the rows that it holds, as often as it holds them."""
    drawn, reviewer = bootstrap.resamples.drawn.astype(int), bootstrap.resamples.reviewer
    own = [
        (bootstrap.resamples.item, bootstrap.resamples.items_drawn),
        (bootstrap.resamples.row, bootstrap.resamples.rows_drawn),
    ]
    resamples = []
    for one in range(drawn.shape[1]):
        held = []
        for row in range(rows):
            times = drawn[reviewer[row], one]
            for draw, drawn_alone in own:
                if draw is not None and drawn_alone is not None:
                    times *= int(drawn_alone[draw[row], one])
            held += [row] * times
        resamples.append(np.array(held, dtype=np.int64))
    return resamples


def slow_twin(statistic: Callable[[IntArray], float | None], bootstrap: Bootstrap, rows: int) -> list[float]:
    found = [statistic(held) for held in rebuilt(bootstrap, rows)]
    return [np.nan if value is None else value for value in found]


@pytest.mark.parametrize("two_way", [False, True], ids=["reviewers", "two-way"])
@pytest.mark.parametrize("kind", KINDS)
def test_pooled_resamples_equal_their_slow_twin(kind: str, two_way: bool) -> None:
    gold, predicted, reviewer, item = data(kind)
    bootstrap = Bootstrap.over(reviewer, resamples=40, seed=4, item=item if two_way else None)
    fast = bootstrap.resampled_scores(gold, predicted)
    for name, coefficient in POOLED.items():
        slow = slow_twin(lambda held, c=coefficient: c(gold[held], predicted[held]), bootstrap, len(gold))
        np.testing.assert_allclose(fast[name], slow, atol=1e-12, err_msg=name)
    slow = slow_twin(lambda held: float(np.abs(gold - predicted)[held].mean()), bootstrap, len(gold))
    np.testing.assert_allclose(fast["mae"], slow, atol=1e-12)


@pytest.mark.parametrize("two_way", [False, True], ids=["reviewers", "two-way"])
@pytest.mark.parametrize("kind", ["fine", "tied", "no ties"])
def test_many_blocks_of_cells_equal_their_slow_twin(kind: str, two_way: bool) -> None:
    gold, predicted, reviewer, item = data(kind, reviewers=90, seed=3)  # some 600 rows: several blocks of 64 cells
    bootstrap = Bootstrap.over(reviewer, resamples=5, seed=1, item=item if two_way else None)
    fast = bootstrap.resampled_scores(gold, predicted)
    for name, coefficient in POOLED.items():
        slow = slow_twin(lambda held, c=coefficient: c(gold[held], predicted[held]), bootstrap, len(gold))
        np.testing.assert_allclose(fast[name], slow, atol=1e-12, err_msg=name)


SMALL = st.lists(st.tuples(*[st.integers(1, 5)] * 2, *[st.integers(0, 3)] * 2), min_size=1, max_size=15)


@settings(deadline=None, max_examples=60)
@given(SMALL, st.integers(0, 3), st.booleans())
def test_small_tables_full_of_ties_and_constants_equal_their_slow_twin(
    rows: list[tuple[int, int, int, int]], seed: int, two_way: bool
) -> None:
    columns = np.array(rows).T
    gold, predicted, reviewer, item = columns[0] / 10, columns[1] / 7, columns[2], columns[3]
    bootstrap = Bootstrap.over(reviewer, resamples=6, seed=seed, item=item if two_way else None)
    fast = bootstrap.resampled_scores(gold, predicted)
    for name, coefficient in POOLED.items():
        slow = slow_twin(lambda held, c=coefficient: c(gold[held], predicted[held]), bootstrap, len(gold))
        np.testing.assert_allclose(fast[name], slow, atol=1e-12, err_msg=name)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(SMALL)
def test_drawing_everybody_once_gives_the_value_itself(rows: list[tuple[int, int, int, int]]) -> None:
    columns = np.array(rows).T
    gold, predicted, reviewer = columns[0] / 10, columns[1] / 7, columns[2]
    bootstrap = Bootstrap.over(reviewer, resamples=1, seed=0)
    bootstrap.resamples.drawn[:] = 1
    values, resampled = bootstrap.scores(gold, predicted), bootstrap.resampled_scores(gold, predicted)
    for name, estimate in values.items():
        np.testing.assert_allclose(resampled[name], [np.nan if estimate.value is None else estimate.value], atol=1e-12)


def own_values(
    coefficient: Coefficient, bootstrap: Bootstrap, one: int, *, gold: FloatArray, predicted: FloatArray
) -> FloatArray:
    """(C,) each reviewer's value in resample `one`, the rows repeated as often as they are in it."""
    rows = np.arange(len(gold))
    weight = bootstrap.resamples.weights_within(rows)[:, one].astype(int)
    held = np.repeat(rows, weight)
    found = within_reviewers(coefficient, gold[held], predicted=predicted[held], reviewer=bootstrap.reviewer[held])
    values = np.full(bootstrap.reviewers, np.nan)
    values[found.reviewers] = found.values
    return values


@pytest.mark.parametrize("two_way", [False, True], ids=["reviewers", "two-way"])
@pytest.mark.parametrize("name", COEFFICIENTS)
def test_macro_and_between_resamples_equal_their_slow_twin(name: str, two_way: bool) -> None:
    gold, predicted, reviewer, item = data("fine", seed=2)
    bootstrap = Bootstrap.over(reviewer, resamples=50, seed=6, item=item if two_way else None)
    within = within_reviewers(COEFFICIENTS[name], gold, predicted=predicted, reviewer=reviewer)
    assert within.skipped > 0
    constant = np.isnan(within.values)
    slow: dict[str, list[float | None]] = {"within": [], "within_zero": [], "between": []}
    for one, times in enumerate(bootstrap.resamples.drawn.T.astype(int)):
        drawn = np.repeat(np.arange(15), times)
        found = own_values(COEFFICIENTS[name], bootstrap, one, gold=gold, predicted=predicted)[drawn]
        slow["within"].append(np.nanmean(found))
        counted = ~np.isnan(found) | constant[drawn]  # without a value for the draw of items alone: left out
        slow["within_zero"].append(np.nan_to_num(found[counted]).mean())
        rows = [(row, nth) for nth, one in enumerate(drawn) for row in np.flatnonzero(reviewer == one)]
        held, clones = np.array(rows).T  # a reviewer drawn twice is two reviewers
        slow["between"].append(between_reviewers(COEFFICIENTS[name], gold[held], predicted=predicted[held], reviewer=clones))
    for prefix, values in slow.items():
        fast = bootstrap.resampled(f"{prefix}_{name}", gold, predicted)
        np.testing.assert_allclose(fast, np.array(values, dtype=float), atol=1e-12, err_msg=prefix)


def test_values_are_those_of_the_rows_whose_prediction_is_known() -> None:
    gold, predicted, reviewer, _ = data("fine")
    predicted[::4] = np.nan
    known = ~np.isnan(predicted)
    scores = Bootstrap.over(reviewer, resamples=100, seed=0).scores(gold, predicted)
    assert tuple(scores) == SCORE_COLUMNS
    assert {estimate.items for estimate in scores.values()} == {int(known.sum())}
    for name, coefficient in POOLED.items():
        assert scores[name].value == coefficient(gold[known], predicted[known])
    within = within_reviewers(COEFFICIENTS["kendall"], gold[known], predicted=predicted[known], reviewer=reviewer[known])
    assert scores["within_kendall"].value == pytest.approx(within.mean(Convention.SKIP_CONSTANT))
    assert scores["within_zero_kendall"].value == pytest.approx(within.mean(Convention.CONSTANT_AS_ZERO))
    assert scores["within_kendall"].skipped_reviewers == within.skipped
    assert scores["mae"].value == pytest.approx(np.abs(gold - predicted)[known].mean())


def test_one_column_is_the_column_of_all() -> None:
    gold, predicted, reviewer, item = data("tied")
    bootstrap = Bootstrap.over(reviewer, resamples=30, seed=2, item=item)
    together = bootstrap.resampled_scores(gold, predicted)
    for name in SCORE_COLUMNS:
        np.testing.assert_array_equal(bootstrap.resampled(name, gold, predicted), together[name])


def test_intervals_are_the_expanded_percentiles_of_the_resamples() -> None:
    gold, predicted, reviewer, _ = data("fine")
    bootstrap = Bootstrap.over(reviewer, resamples=200, seed=0)
    resampled = bootstrap.resampled("kendall", gold, predicted)
    interval = bootstrap.interval(0.5, resampled, reviewers=15)
    low, high = np.quantile(resampled, expanded_levels(15))
    assert (interval.low, interval.high) == (low, high)


@pytest.mark.parametrize("two_way", [False, True], ids=["reviewers", "two-way"])
def test_a_statistic_of_tables_equals_its_slow_twin(two_way: bool) -> None:
    gold, _, reviewer, item = data("labels")
    cell = gold.astype(np.int64) - 1
    chosen = np.arange(len(gold)) % 5 > 0

    def share_of_last(tables: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            share: FloatArray = tables[:, 2] / tables.sum(axis=1)
        return share

    bootstrap = Bootstrap.over(reviewer, resamples=300, seed=3, item=item if two_way else None)
    estimate = bootstrap.of_tables(cell, 3, share_of_last, chosen)
    assert estimate.value == pytest.approx((cell[chosen] == 2).mean())
    assert estimate.items == chosen.sum()
    slow = np.array([np.mean(cell[held[chosen[held]]] == 2) for held in rebuilt(bootstrap, len(gold))])
    low, high = np.quantile(slow[:300], expanded_levels(12 if two_way else 15))
    if two_way:  # around the value, drawn together to the spread that reviewers, items and rows have apart
        by_reviewers, by_items, by_rows = (part.var() for part in np.split(slow[300:], 3))
        wanted = max(by_reviewers, by_items, by_reviewers + by_items - by_rows)
        together, centre = np.sqrt(wanted / slow[:300].var()), slow[:300].mean()
        value = estimate.value or 0.0
        low, high = value + together * (low - centre), value + together * (high - centre)
    assert (estimate.interval.low, estimate.interval.high) == (pytest.approx(low), pytest.approx(high))


def test_a_ratio_is_of_sums_over_the_drawn_reviewers() -> None:
    # Reader 0 has 3 pairs, none right, reader 1 has 1, right: 0 (0, 0), 1/4 (once each), 1 (1, 1).
    bootstrap = Bootstrap.over(np.array([0, 1]), resamples=3, seed=0)
    bootstrap.resamples.drawn[:] = [[2, 1, 0], [0, 1, 2]]
    estimate = bootstrap.ratio(np.array([0.0, 1.0]), np.array([3.0, 1.0]))
    assert (estimate.value, estimate.interval.reason) == (0.25, FEW_REVIEWERS)
    numbers = np.array([0.0, 0.0, 0.0, 1.0])
    rows = Bootstrap.over(np.array([0, 0, 0, 1]), resamples=3, seed=0)
    rows.resamples.drawn[:] = [[2, 1, 0], [0, 1, 2]]
    np.testing.assert_allclose(rows.resampled_mean(numbers, np.ones(4, dtype=bool)), [0, 0.25, 1])


def test_reviewers_without_a_denominator_do_not_stand_behind_a_ratio() -> None:
    bootstrap = Bootstrap.over(np.arange(12), resamples=100, seed=0)
    denominator = np.where(np.arange(12) < 9, 2.0, 0.0)
    assert bootstrap.ratio(denominator / 2, denominator).interval.reason == RESTS_ON_FEW
    nothing = bootstrap.ratio(np.zeros(12), np.zeros(12))
    assert nothing.value is None and nothing.interval.reason is not None


def test_reviewers_not_rows_are_resampled() -> None:
    # Half of 20 readers are always right, half always wrong, 30 items each. A resample of readers has a share of right
    # answers that is a whole number of twentieths; one of 600 rows would nearly never be, and its interval would be
    # sqrt(30) times narrower: 0.08 instead of 0.44.
    reviewer = np.repeat(np.arange(20), 30)
    bootstrap = Bootstrap.over(reviewer, resamples=1000, seed=0)
    hits, everything = (reviewer % 2).astype(float), np.ones(600, dtype=bool)
    shares = bootstrap.resampled_mean(hits, everything) * 20
    np.testing.assert_allclose(shares, np.round(shares), atol=1e-9)
    interval = bootstrap.mean(hits, everything).interval
    assert interval.low is not None and interval.high is not None
    assert interval.high - interval.low > 0.3


def test_two_way_resamples_also_speak_of_other_items() -> None:
    # 40 readers agree on which of 10 items are good: other readers would say the same, other items would not.
    reviewer, item = np.repeat(np.arange(40), 10), np.tile(np.arange(10), 40)
    good, everything = (item % 2).astype(float), np.ones(400, dtype=bool)
    one_way = Bootstrap.over(reviewer, resamples=500, seed=0).mean(good, everything).interval
    two_way = Bootstrap.over(reviewer, resamples=500, seed=0, item=item).mean(good, everything).interval
    assert one_way.reason == ALIKE, "each reader has the same mean"
    assert two_way.low is not None and two_way.high is not None
    assert two_way.high - two_way.low > 0.4


def test_resamples_draw_as_many_reviewers_as_there_are() -> None:
    times = times_drawn(12, resamples=50, seed=7)
    assert times.shape == (12, 50)
    np.testing.assert_array_equal(times.sum(axis=0), np.full(50, 12))
    many = times_drawn(3000, resamples=200, seed=7)  # more than are drawn at once
    assert many.shape == (3000, 200) and len(np.unique(many, axis=1).T) == 200
    np.testing.assert_array_equal(many.sum(axis=0), np.full(200, 3000))


def test_seeds_decide_the_resamples_and_items_are_drawn_apart_from_reviewers() -> None:
    np.testing.assert_array_equal(times_drawn(12, resamples=20, seed=7), times_drawn(12, resamples=20, seed=7))
    assert (times_drawn(12, resamples=20, seed=7) != times_drawn(12, resamples=20, seed=8)).any()
    both = Bootstrap.over(np.arange(12), resamples=20, seed=7, item=np.arange(12)).resamples
    assert both.items_drawn is not None and (both.items_drawn != both.drawn).any()


def test_fewer_reviewers_behind_a_value_than_resampled_count() -> None:
    reviewer = np.repeat(np.arange(12), 3)
    gold = np.tile([1.0, 2.0, 3.0], 12) + reviewer % 5
    predicted = np.where(reviewer < 4, np.nan, gold + reviewer)
    scores = Bootstrap.over(reviewer, resamples=100, seed=0).scores(gold, predicted)
    assert {estimate.interval.reason for estimate in scores.values()} == {RESTS_ON_FEW}
    one = Bootstrap.over(reviewer, resamples=100, seed=0).scores(gold, np.where(reviewer == 5, predicted, np.nan))
    assert one["kendall"].value == 1 and one["kendall"].interval.reason == RESTS_ON_FEW
    assert one["between_kendall"].value is None and one["between_kendall"].interval == NO_COEFFICIENT


def test_readers_without_a_coefficient_do_not_stand_behind_the_mean_within_readers() -> None:
    # Of 4 of 12 readers the judge says the same of every text: the mean is over 8, and promises what 8 can.
    reviewer, gold = np.repeat(np.arange(12), 3), np.tile([1.0, 2.0, 3.0], 12)
    predicted = np.where(reviewer < 4, 5.0, gold + reviewer % 2)
    scores = Bootstrap.over(reviewer, resamples=100, seed=0).scores(gold, predicted)
    for name in COEFFICIENTS:
        skipping, as_zero = scores[f"within_{name}"], scores[f"within_zero_{name}"]
        assert (skipping.value, skipping.skipped_reviewers) == (pytest.approx(1), 4)
        assert skipping.interval.reason == RESTS_ON_FEW
        assert as_zero.value == pytest.approx(8 / 12) and as_zero.interval.reason == RESTS_ON_FEW


@pytest.mark.parametrize("predicted", [np.full(24, 3.0), np.full(24, np.nan)], ids=["constant", "nothing known"])
def test_what_cannot_be_computed_is_undefined_with_its_reason(predicted: FloatArray) -> None:
    bootstrap = Bootstrap.over(np.repeat(np.arange(12), 2), resamples=100, seed=0)
    gold = np.tile([1.0, 9.0], 12)
    for name, estimate in bootstrap.scores(gold, predicted).items():
        if estimate.value is None:
            assert estimate.interval.low is None and estimate.interval.reason, name
        else:
            assert name == "mae" or name.startswith("within_zero"), name


def test_chunks_of_resamples_do_not_change_them(monkeypatch: pytest.MonkeyPatch) -> None:
    gold, predicted, reviewer, item = data("no ties")
    bootstrap = Bootstrap.over(reviewer, resamples=150, seed=0, item=item)
    whole = bootstrap.resampled_scores(gold, predicted)
    monkeypatch.setattr(pooled, "_IN_CACHE", 1)  # chunks of 64
    parts = bootstrap.resampled_scores(gold, predicted)
    for name, values in whole.items():
        np.testing.assert_array_equal(values, parts[name])


def test_weights_too_large_for_single_precision_are_still_exact() -> None:
    # 5,000 readers of 4 rows each, one of which is in every resample 4,000 times: squares and cubes of weights in a block are
    # far above 2**24. Compared with the same in Python's whole numbers.
    gold, predicted = np.array([1.0, 2.0, 3.0, 2.0, 5.0]), np.array([2.0, 1.0, 3.0, 4.0, 5.0])
    bootstrap = Bootstrap.over(np.arange(5), resamples=1, seed=0)
    times = [4001, 3999, 5003, 1, 60007]
    bootstrap.resamples.drawn[:, 0] = times
    pairs = [(i, j) for i in range(5) for j in range(i)]
    net = sum(int(np.sign(gold[i] - gold[j]) * np.sign(predicted[i] - predicted[j])) * times[i] * times[j] for i, j in pairs)
    untied = [sum(times[i] * times[j] for i, j in pairs if side[i] != side[j]) for side in (gold, predicted)]
    found = bootstrap.resampled("kendall", gold, predicted)[0]
    assert found == pytest.approx(net / (untied[0] * untied[1]) ** 0.5, abs=1e-14)
    everything: BoolArray = np.ones(5, dtype=bool)
    assert bootstrap.resampled_mean(gold, everything)[0] == pytest.approx(
        sum(g * t for g, t in zip(gold, times, strict=True)) / sum(times)
    )


MANY_ROWS = """
import numpy as np
from perse.evaluation.stats.estimates import Bootstrap
generator = np.random.default_rng(0)
reviewer = np.repeat(np.arange(1500), 8)  # 12,000 rows: enough for BLAS to share out a dot product
gold = generator.integers(1, 11, len(reviewer)).astype(float)
predicted = gold + generator.normal(0, 2, len(reviewer))
bootstrap = Bootstrap.over(reviewer, resamples=100, seed=1)
print({name: value.model_dump_json() for name, value in bootstrap.scores(gold, predicted).items()})
"""


@pytest.mark.slow
def test_the_number_of_threads_changes_no_digit() -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", MANY_ROWS],
            env={**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize("two_way", [False, True])
def test_a_row_is_present_in_the_resamples_that_hold_it(two_way: bool) -> None:
    *_, reviewer, item = data("fine")
    bootstrap = Bootstrap.over(reviewer, resamples=20, seed=3, item=item if two_way else None)
    for resample, held in enumerate(rebuilt(bootstrap, len(reviewer))):
        assert set(np.flatnonzero(bootstrap.resamples.present(resample))) == set(held)


def test_where_ties_count_for_neither_resamples_equal_the_pairs_counted_one_by_one() -> None:
    generator = np.random.default_rng(3)
    reviewer = np.repeat(np.arange(12), 4)
    gold, predicted = generator.integers(1, 6, 48).astype(float), np.round(generator.normal(5, 2, 48))
    bootstrap = Bootstrap.over(reviewer, resamples=6, seed=0)
    for at, found in enumerate(bootstrap.resampled(EVEN, gold, predicted)):
        rows = np.repeat(np.arange(48), bootstrap.resamples.drawn[reviewer, at].astype(int))
        x, y = gold[rows], predicted[rows]
        signs = np.sign(x[:, None] - x) * np.sign(y[:, None] - y)
        assert found == pytest.approx(signs.sum() / len(rows) ** 2, abs=1e-12)
    assert bootstrap.one(EVEN, gold, predicted).value == pytest.approx(kendall_a(gold, predicted))


@pytest.mark.parametrize("size", [1, 3, 7, 8, 20])
def test_resamples_come_in_parts_no_larger_than_asked_and_are_the_same_together(size: int) -> None:
    reviewer, item = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0])
    for whole in (
        Resamples(reviewer, times_drawn(3, resamples=8, seed=1)),
        Resamples.two_way(reviewer, item, resamples=4, seed=1),
    ):
        parts = list(whole.split(size))
        numbers = [part.number for part in parts]
        assert sum(numbers) == whole.number and max(numbers) <= size and len(parts) == -(-whole.number // size)
        for name in ("drawn", "items_drawn", "rows_drawn"):
            held = [getattr(part, name) for part in parts]
            assert (held[0] is None) == (getattr(whole, name) is None)
            if held[0] is not None:
                np.testing.assert_array_equal(np.hstack(held), getattr(whole, name))


def test_resamples_of_both_stand_before_those_of_reviewers_items_and_rows_alone() -> None:
    reviewer, item = np.repeat(np.arange(4), 5), np.tile(np.arange(5), 4)
    found = Resamples.two_way(reviewer, item, resamples=10, seed=3)
    assert (found.number, found.both) == (25, 10) and found.items_drawn is not None and found.rows_drawn is not None
    ones = {
        name: [bool((times[:, start:end] == 1).all()) for start, end in ((0, 10), (10, 15), (15, 20), (20, 25))]
        for name, times in (("reviewers", found.drawn), ("items", found.items_drawn), ("rows", found.rows_drawn))
    }
    assert ones == {
        "reviewers": [False, False, True, True],
        "items": [False, True, False, True],
        "rows": [True, True, True, False],
    }
    assert (found.drawn.sum(0) == 4).all() and (found.items_drawn.sum(0) == 5).all() and (found.rows_drawn.sum(0) == 20).all()
