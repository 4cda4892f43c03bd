"""Correlations with people: beside scipy's, on what every method scored, with differences that are shown or not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from drpe_correlate_builders import candidate, document, documents, graded
from scipy import stats

from perse.drpe.correlation import of_many as of_many_module
from perse.drpe.correlation.correlating import Correlations, absolute, correlate
from perse.drpe.correlation.of_many import of_many
from perse.drpe.correlation.systems import by_resamples_alone, by_system
from perse.drpe.documents import Documents
from perse.drpe.selection import Key, Selected, select
from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import expanded_levels
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.evaluation.stats.unseen import none_of
from perse.results.result import Estimate, Interval

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def drawn(number: int, systems: int = 5, *, seed: int = 0) -> Documents:
    """Documents whose candidates have two dimensions, in halves, so that there are ties."""
    generator = np.random.default_rng(seed)
    return documents(
        *(
            document(
                f"d{n}",
                *(
                    candidate(
                        f"M{at}", wit=float(round(2 * generator.normal(at / 2, 1)) / 2), form=float(generator.integers(1, 6))
                    )
                    for at in range(systems)
                ),
            )
            for n in range(number)
        )
    )


def noisy(selected: Selected, noise: float, *, seed: int, scale: float = 1.0) -> dict[Key, float | None]:
    generator = np.random.default_rng(seed)
    return {item.key: scale * (item.people + noise * float(generator.normal())) for item in selected.items}


def scored(selected: Selected, methods: Mapping[str, Mapping[Key, float | None]]) -> Correlations:
    return correlate(selected, methods, resamples=200, seed=0)


def people_and(selected: Selected, scores: Mapping[Key, float | None]) -> tuple[FloatArray, FloatArray]:
    return np.array([item.people for item in selected.items]), np.array(
        [scores[item.key] for item in selected.items], dtype=float
    )


def test_pooled_values_are_scipy_s_of_the_mean_and_of_each_dimension() -> None:
    selected = select(drawn(15), which="all")
    scores = noisy(selected, 1.0, seed=1)
    row = scored(selected, {"metric": scores}).rows["metric"]
    people, given = people_and(selected, scores)
    for name, test in SCIPY.items():
        assert row.mean["pooled"][name].value == pytest.approx(test(people, given).statistic)
        for dimension in ("wit", "form"):
            gold = [(item.candidate.scores or {})[dimension] for item in selected.items]
            assert row.dimensions[dimension]["pooled"][name].value == pytest.approx(test(gold, given).statistic)


def test_within_values_are_the_mean_of_scipy_s_by_document() -> None:
    selected = select(drawn(15), which="all")
    scores = noisy(selected, 1.0, seed=1)
    row = scored(selected, {"metric": scores}).rows["metric"]
    people, given = people_and(selected, scores)
    for name, test in SCIPY.items():
        each = [test(people[at : at + 5], given[at : at + 5]).statistic for at in range(0, len(people), 5)]
        assert row.mean["within"][name].value == pytest.approx(np.mean(each))


def test_values_by_system_are_scipy_s_of_the_systems_means() -> None:
    selected = select(drawn(15), which="extremes")
    scores = noisy(selected, 1.0, seed=1)
    row = scored(selected, {"metric": scores}).rows["metric"]
    people, given = people_and(selected, scores)
    system = np.array([item.candidate.system for item in selected.items])
    means = [[values[system == one].mean() for one in np.unique(system)] for values in (people, given)]
    for name, test in SCIPY.items():
        assert row.mean["systems"][name].value == pytest.approx(test(*means).statistic)
        assert row.mean["systems"][name].items == 5


def test_resampled_values_by_system_are_those_of_documents_drawn_one_by_one() -> None:
    """Slow twin: the rows of each resample written out, and scipy; a system that was not drawn is left out."""
    generator = np.random.default_rng(3)
    document_of = np.repeat(np.arange(12), 3)
    system = np.array([generator.permutation(4)[:3] for _ in range(12)]).ravel()
    people, given = generator.integers(1, 4, (2, len(system))).astype(np.float64)
    resamples = Resamples(document_of, times_drawn(12, resamples=150, seed=5))
    slow: dict[str, list[float]] = {name: [] for name in SCIPY}
    for nth in range(150):
        rows = np.repeat(np.arange(len(system)), resamples.drawn[document_of, nth].astype(int))
        there = np.unique(system[rows])
        means = [[round(values[rows][system[rows] == one].mean(), 12) for one in there] for values in (people, given)]
        for name, test in SCIPY.items():
            slow[name].append(test(*means).statistic if all(len(set(side)) > 1 for side in means) else np.nan)
    found = by_resamples_alone(people, given, system=system, resamples=resamples)
    for name, values in slow.items():
        value, interval = found[name].value, found[name].interval
        assert value is not None
        moved = value - np.nanmean(values)
        low, high = np.nanquantile(values, expanded_levels(12))
        assert interval.low == pytest.approx(max(-1, min(low, low + moved)))
        assert interval.high == pytest.approx(min(1, max(high, high + moved)))
        assert interval.undefined_resamples == int(np.isnan(values).sum())


@pytest.mark.parametrize("seed", range(12))
def test_no_interval_of_systems_reaches_beyond_what_a_correlation_can_be(seed: int) -> None:
    resamples = Resamples(np.repeat(np.arange(12), 4), times_drawn(12, resamples=100, seed=0))
    people, given = np.random.default_rng(seed).normal(0, 1, (2, 48))
    for one in by_system(people, given, system=np.tile([0, 1, 2, 3], 12), resamples=resamples).values():
        assert one.interval.low is not None and one.interval.high is not None
        assert -1 <= one.interval.low <= one.interval.high <= 1


def test_a_system_without_a_candidate_among_those_looked_at_is_none() -> None:
    resamples = Resamples(np.repeat(np.arange(10), 2), times_drawn(10, resamples=100, seed=0))
    generator = np.random.default_rng(0)
    people, given = generator.normal(0, 1, (2, 20))
    dense = np.tile([0, 1, 2, 3], 5)
    gaps = np.array([1, 4, 5, 9])[dense]
    assert by_system(people, given, system=gaps, resamples=resamples) == by_system(
        people, given, system=dense, resamples=resamples
    )


def test_candidates_of_a_document_are_drawn_together() -> None:
    """Each document's four candidates are alike: as many again say nothing more, so the interval stays as wide."""
    few = documents(*(graded(f"d{n}", {"A": n % 5, "B": n % 5}) for n in range(30)))
    many = documents(*(graded(f"d{n}", dict.fromkeys("ABCDEFGH", n % 5)) for n in range(30)))
    widths = []
    for given in (few, many):
        selected = select(given, which="all")
        generator = np.random.default_rng(0)
        by_document = {f"d{n}": n % 5 + 2 * float(generator.normal()) for n in range(30)}
        found = scored(selected, {"metric": {item.key: by_document[item.document.id] for item in selected.items}})
        interval = found.rows["metric"].mean["pooled"]["pearson"].interval
        assert interval.low is not None and interval.high is not None
        widths.append(interval.high - interval.low)
    assert widths[0] == pytest.approx(widths[1], rel=0.05)  # of unseen candidates more are possible beside 60 than beside 240


def test_methods_are_compared_on_the_candidates_that_all_of_them_scored() -> None:
    selected = select(drawn(20), which="all")
    whole = noisy(selected, 1.0, seed=1)
    partly = {key: None if key[0] in ("d0", "d1") else value for key, value in noisy(selected, 1.0, seed=2).items()}
    found = scored(selected, {"whole": whole, "partly": partly})
    assert (found.compared, found.documents) == (90, 18)
    assert {name: row.scored for name, row in found.rows.items()} == {"whole": 100, "partly": 90}
    people, given = people_and(selected, whole)
    assert found.rows["whole"].mean["pooled"]["pearson"].value == pytest.approx(
        stats.pearsonr(people[10:], given[10:]).statistic
    )
    assert found.rows["whole"].own.value == pytest.approx(stats.pearsonr(people, given).statistic)


def test_a_method_that_scored_none_of_the_candidates_is_named_and_leaves_the_others() -> None:
    selected = select(drawn(12), which="all")
    found = scored(selected, {"metric": noisy(selected, 1.0, seed=1), "elsewhere": {("other", "M0"): 1.0}})
    assert found.left_out == ("elsewhere",) and list(found.rows) == ["metric"] and found.compared == 60
    with pytest.raises(BadInput, match="no method has a score for any of the candidates"):
        scored(selected, {"elsewhere": {}})


def test_methods_without_a_common_candidate_are_refused_with_the_one_to_leave_out() -> None:
    selected = select(drawn(12), which="all")
    whole = noisy(selected, 1.0, seed=1)
    first = {key: value for key, value in whole.items() if key[0] == "d0"}
    rest = {key: value for key, value in whole.items() if key[0] != "d0"}
    with pytest.raises(BadInput, match="the fewest are of first: leave it out"):
        scored(selected, {"rest": rest, "first": first})


def test_an_absolute_value_has_no_interval_below_0() -> None:
    def estimate(value: float, low: float, high: float) -> Estimate:
        return Estimate(value=value, interval=Interval(low=low, high=high), items=4)

    def ends(one: Estimate) -> tuple[float | None, float | None, float | None]:
        return one.value, one.interval.low, one.interval.high

    assert ends(absolute(estimate(-0.1, -0.3, 0.2))) == (0.1, 0.0, 0.3)
    assert ends(absolute(estimate(-0.4, -0.6, -0.2))) == (0.4, 0.2, 0.6)
    assert ends(absolute(estimate(0.4, 0.2, 0.6))) == (0.4, 0.2, 0.6)
    nothing = Estimate(value=None, interval=Interval(reason="undefined"), items=0)
    assert absolute(nothing) == nothing


def test_a_metric_that_orders_candidates_the_wrong_way_round_keeps_its_sign() -> None:
    selected = select(drawn(20), which="all")
    wrong = {item.key: -item.people for item in selected.items}
    row = scored(selected, {"wrong": wrong}).rows["wrong"]
    assert row.absolute.value == pytest.approx(1) and row.mean["pooled"]["pearson"].value == pytest.approx(-1)


def test_a_better_method_is_shown_to_be_and_the_scale_of_its_scores_does_not_matter() -> None:
    selected = select(drawn(60), which="all")
    methods = {"coarse": noisy(selected, 4.0, seed=1), "fine": noisy(selected, 0.2, seed=2, scale=100.0)}
    of_both = {one.of: one for one in scored(selected, methods).differences}
    assert all(one.shown and one.estimate.above_zero and one.method == "fine" for one in of_both.values())
    plain = {"coarse": methods["coarse"], "fine": noisy(selected, 0.2, seed=2)}
    for one in scored(selected, plain).differences:
        assert one.p == of_both[one.of].p


def test_a_method_beside_itself_is_not_shown_to_differ() -> None:
    selected = select(drawn(20), which="all")
    same = noisy(selected, 1.0, seed=1)
    found = scored(selected, {"one": same, "other": {key: 7 * (value or 0) for key, value in same.items()}})
    assert not any(one.shown for one in found.differences)
    assert [one.p.p for one in found.differences] == [1.0, 1.0]


def test_p_values_are_adjusted_over_all_differences() -> None:
    selected = select(drawn(20), which="all")
    found = scored(selected, {name: noisy(selected, 2.0, seed=n) for n, name in enumerate("abc")})
    assert len(found.differences) == 6
    smallest = min(found.differences, key=lambda one: one.p.p or 0)
    assert smallest.adjusted == pytest.approx(min(1.0, 6 * (smallest.p.p or 0)))


def test_fewer_than_ten_documents_have_no_interval_and_the_reason_speaks_of_documents() -> None:
    selected = select(drawn(6), which="all")
    row = scored(selected, {"metric": noisy(selected, 1.0, seed=1)}).rows["metric"]
    for level in row.mean.values():
        for one in level.values():
            assert one.interval.low is None and "document" in (one.interval.reason or "")


def test_a_constant_method_has_no_correlation_rather_than_none_of_0() -> None:
    selected = select(drawn(12), which="all")
    found = scored(selected, {"constant": {item.key: 1.0 for item in selected.items}, "metric": noisy(selected, 1.0, seed=1)})
    for level in found.rows["constant"].mean.values():
        assert all(one.value is None for one in level.values())
    assert not any(one.shown for one in found.differences)


def test_a_correlation_of_systems_knows_of_candidates_that_a_metric_is_far_off() -> None:
    """Of 20 documents of 16 systems none here is far off; 1.1% of others may be, by the range of the scores."""
    generator = np.random.default_rng(5)
    document, system = np.repeat(np.arange(20), 16), np.tile(np.arange(16), 20)
    people = np.repeat(generator.normal(0, 0.4, (1, 16)), 20, axis=0).ravel() + generator.normal(0, 0.6, 320)
    metric = people + generator.normal(0, 0.1, 320)
    resamples = Resamples(document, times_drawn(20, resamples=200, seed=5))
    alone, told = (
        found(people, metric, system=system, resamples=resamples)["pearson"] for found in (by_resamples_alone, by_system)
    )
    assert alone.value is not None and alone.interval.low is not None and told.interval.low is not None
    means = [metric[system == one].mean() for one in range(16)]
    noise = none_of(320) * np.ptp(metric) ** 2 / 20
    lost = alone.value * (1 - 1 / np.sqrt(1 + noise / np.var(means)))
    assert told.interval.low == pytest.approx(alone.value - np.hypot(alone.value - alone.interval.low, lost))
    assert told.interval.high == alone.interval.high and lost > 0.01


@pytest.mark.slow
def test_where_people_mostly_give_one_grade_metrics_that_are_far_higher_now_and_then_agree_no_more_than_by_chance() -> None:
    # Of 50 documents one candidate in ten has another grade; by resamples of documents alone 15 of such 60 worlds "agreed".
    said = 0
    for world in range(60):
        generator = np.random.default_rng((81, world))
        people = np.where(generator.random(200) < 0.1, generator.uniform(1, 4, 200), 5.0)
        metrics = {str(n): np.exp(generator.normal(0, 1.5, 200)) for n in range(5)}
        found = of_many(people, metrics, Bootstrap.over(np.repeat(np.arange(50), 4), resamples=100, seed=world), deals=200)
        said += min(found[name, "pooled"] for name in metrics) <= 0.05
    assert said <= 5  # 2.5 of 100 are meant


def test_of_few_deals_each_is_counted_as_it_is_made_by_hand() -> None:
    people, scores = np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 3.0, 2.0, 9.0])
    document = np.array([0, 0, 1, 1])
    places = of_many_module._dealt(document, seed=3, deals=50)
    assert {tuple(sorted(one[:2])) for one in places} == {(0, 1), (2, 3)}, "documents change places whole"
    every = {"m": scores, "again": scores}
    found = of_many_module._of_deals(people, every, document, seed=3, deals=50)
    by_hand = [np.corrcoef(people[one], scores)[0, 1] for one in places]
    spread = np.std(by_hand)
    highest = [
        max(pooled / spread, within)
        for pooled, within in zip(by_hand, _within_of_deals(people, scores, document, places), strict=True)
    ]
    own = np.corrcoef(people, scores)[0, 1] / spread
    assert (
        found["m", "pooled"] == found["again", "pooled"] == min(1.0, 2 * (1 + sum(one >= own - 1e-9 for one in highest)) / 51)
    )


def _within_of_deals(people: np.ndarray, scores: np.ndarray, document: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The mean of both documents' correlations in each deal, in its spread."""
    found = np.array(
        [np.mean([np.corrcoef(people[one][document == d], scores[document == d])[0, 1] for d in (0, 1)]) for one in places]
    )
    return found / found.std()


def test_p_of_so_many_is_of_a_correlation_above_0_alone() -> None:
    generator = np.random.default_rng(6)
    people = generator.normal(0, 1, 80)
    metrics = {"right": people + generator.normal(0, 1, 80), "reversed": -people + generator.normal(0, 1, 80)}
    found = of_many(people, metrics, Bootstrap.over(np.repeat(np.arange(20), 4), resamples=200, seed=0))
    assert found["right", "pooled"] <= 0.05 and found["reversed", "pooled"] == 1
