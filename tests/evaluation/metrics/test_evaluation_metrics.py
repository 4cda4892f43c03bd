"""Metrics: two shapes that agree with closed forms and with scipy, and what another package's metric does to a table."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation_builders import EXAMPLES, JUDGEMENTS, TRAIN, answered, failed, noisy_judge, pair, row, world
from scipy import stats

from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.comparing.telling import comparison_result
from perse.evaluation.evaluate import evaluate, evaluate_many
from perse.evaluation.metrics import (
    CHOICES,
    ERRORS,
    METRICS,
    TEXTS,
    Metric,
    Scored,
    Sheet,
    mean_of,
    metrics_of,
    of_sample,
    title_of,
)
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.unseen import of_correlation, of_error
from perse.evaluation.telling import evaluation_result
from perse.results.markdown import markdown
from perse.results.result import Estimate, Interval
from perse.scale import SCORES

DOCS = Path(__file__).parents[3] / "docs"


def sample(*, two_way: bool = False, reviewers: int = 20, constant: bool = False) -> Scored:
    generator = np.random.default_rng(3)
    reviewer = np.repeat(np.arange(reviewers), generator.integers(1, 9, reviewers))
    gold = generator.integers(1, 11, len(reviewer)).astype(float)
    predicted = np.full(len(gold), 4.0) if constant else np.clip(gold + generator.normal(0, 3, len(gold)), 1, 10)
    item = generator.integers(0, 12, len(reviewer)) if two_way else None
    bootstrap = Bootstrap.over(reviewer, resamples=200, seed=1, item=item)
    half = np.arange(reviewers) % 2
    return Scored(bootstrap=bootstrap, gold=gold, predicted=predicted, scale=SCORES, half=half)


def same(one: Estimate, other: Estimate) -> None:
    assert one.items == other.items and one.interval.undefined_resamples == other.interval.undefined_resamples
    for mine, theirs in zip(numbers(one), numbers(other), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-12)


def numbers(estimate: Estimate) -> list[float]:
    found = (estimate.value, estimate.interval.low, estimate.interval.high)
    assert None not in found
    return [number for number in found if number is not None]


def absolute_error(scored: Scored) -> np.ndarray:
    return np.abs(scored.gold - scored.predicted)


def mean_absolute_error(gold: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.abs(gold - predicted).mean())


@pytest.mark.parametrize("two_way", [False, True], ids=["reviewers", "two-way"])
def test_an_error_is_the_same_given_by_item_and_as_a_statistic(two_way: bool) -> None:
    scored = sample(two_way=two_way)
    closed = mean_of(absolute_error)(scored)
    same(of_sample(mean_absolute_error)(scored), closed)
    same(of_error(closed, scored.gold, scored.predicted), scored.correlations["mae"])


@pytest.mark.parametrize("two_way", [False, True], ids=["reviewers", "two-way"])
def test_a_statistic_of_scipy_has_the_intervals_of_ours(two_way: bool) -> None:
    scored = sample(two_way=two_way)
    for name, statistic in (("pearson", stats.pearsonr), ("kendall", stats.kendalltau)):
        found = of_sample(lambda gold, predicted, ask=statistic: ask(gold, predicted).statistic)(scored)
        assert found.value == pytest.approx(statistic(scored.gold, scored.predicted).statistic)
        same(of_correlation(found), scored.correlations[name])


def test_a_statistic_that_does_not_exist_is_undefined_and_not_0() -> None:
    found = of_sample(lambda gold, predicted: None)(sample())
    assert found.value is None and found.interval.reason and found.interval.reason.startswith("undefined")


def test_items_without_a_value_are_left_out_of_a_mean() -> None:
    scored = sample()
    found = mean_of(lambda one: np.where(one.gold > 5, one.gold, np.nan))(scored)
    assert found.value == pytest.approx(scored.gold[scored.gold > 5].mean()) and found.items == (scored.gold > 5).sum()
    assert mean_of(lambda one: np.full(len(one.gold), np.nan))(scored).value is None


def test_a_metric_says_what_it_is_or_cannot_be_made() -> None:
    good = {"name": "close", "title": "t", "direction": "higher", "about": "a", "sheet": ERRORS, "function": absolute_error}
    Metric(**good)  # type: ignore[arg-type]
    for change in ({"name": "two words"}, {"direction": "up"}, {"sheet": "Errors"}, {"sheet": Sheet("S", "sounds")}):  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="metric"):
            Metric(**{**good, **change})  # type: ignore[arg-type]


def test_every_column_is_in_the_page_that_explains_them() -> None:
    page = (DOCS / "evaluation.md").read_text()
    assert [one.title for one in METRICS.own.values() if one.title.removeprefix("Kendall ").split("-")[0] not in page] == []


def test_the_page_for_contributors_has_two_whole_metrics() -> None:
    page = (DOCS / "contributing.md").read_text()
    code = page[page.index("    import numpy as np") : page.index("It is then a column")]
    assert "from perse.evaluation.metrics import" not in code, "a file of that package cannot import the package"
    known: dict[str, Metric] = {}
    exec(textwrap.dedent(code), known)
    scored = sample()
    assert known["NEAR"].function(scored).value == (absolute_error(scored) <= 1).mean()  # type: ignore[union-attr]
    lin = known["LIN"].function(scored)
    pearson = scored.correlations["pearson"].value
    assert lin is not None and lin.value is not None and pearson is not None and 0 < lin.value < pearson


def test_a_name_that_is_no_metric_is_told_in_words() -> None:
    assert title_of("within_kendall") == "Kendall tau-b within reviewer" and title_of("gone_away") == "gone away"


def add(monkeypatch: pytest.MonkeyPatch, *brought: Metric) -> None:
    """As if installed packages had brought them."""
    monkeypatch.setitem(vars(METRICS), "_all", {**METRICS.own, **{one.name: one for one in brought}})


def raises(*_: object) -> float:
    raise ZeroDivisionError("\x1b[31mno\nluck")


def added(name: str, function: object, *, sheet: Sheet = ERRORS, direction: str = "lower") -> Metric:
    return Metric(name, name.replace("_", " "), direction, f"what {name} is", sheet, function)  # type: ignore[arg-type]


def test_a_metric_of_another_package_is_a_column_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    before = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN, resamples=100)
    add(
        monkeypatch,
        added("own_mae", mean_of(absolute_error)),
        added("alone", of_sample(mean_absolute_error), sheet=Sheet("Mine", "scores")),
    )
    found = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN, resamples=100)
    for one in found.rows:
        for columns in filter(None, (one.columns, one.imputed)):
            assert columns["own_mae"].value == columns["alone"].value == columns["mae"].value
    kept = {name: estimate for name, estimate in row(found, "judge (label)").columns.items() if name in METRICS.own}
    assert kept == row(before, "judge (label)").columns
    shown = markdown(evaluation_result(found))
    assert "| own mae |" in shown and "own mae: what own_mae is; less is better" in shown and "Mine: 3 items answered" in shown
    assert "| own mae |" not in markdown(evaluation_result(before)), "an evaluation of before it was installed has none"


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        raises,
        lambda one: one.gold.sort(),
        lambda one: 0.5,
        lambda one: Estimate(value=np.nan, interval=Interval(), items=1),
        lambda one: Estimate.model_construct(value=one.gold, interval=Interval(), items=1),
        lambda one: Estimate(value=1, interval=Interval(), items=1).model_copy(update={"interval": None}),
        mean_of(lambda one: one.gold[:1]),
    ],
    ids=["raises", "sorts what it is given", "a number", "NaN", "an array", "no interval", "one value too few"],
)
def test_a_metric_that_fails_takes_its_own_cell_and_no_other(monkeypatch: pytest.MonkeyPatch, function: object) -> None:
    before = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN, resamples=100)
    add(monkeypatch, added("bad", function))
    found = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN, resamples=100)
    bad = row(found, "judge (expected)").columns["bad"]
    assert bad.value is None and bad.interval.reason and bad.interval.reason.startswith("undefined (metric bad of ")
    assert bad.interval.reason.isprintable()
    assert row(found, "judge (expected)").columns["mae"] == row(before, "judge (expected)").columns["mae"]
    assert "metric bad of" in markdown(evaluation_result(found))


def test_a_value_that_is_a_number_of_another_type_is_written_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    half = Estimate(value=0, interval=Interval(), items=1).model_copy(update={"value": np.float32(0.5)})
    add(monkeypatch, added("half", lambda _: half))
    found = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN, resamples=100)
    assert row(found, "judge (label)").columns["half"].value == 0.5
    assert '"value":0.5' in evaluation_result(found).model_dump_json()


def notes(given: dict[object, object]) -> object:
    def function(written: Any) -> Estimate:
        written.settings.update(given)
        return Estimate(value=1, interval=Interval(), items=1)

    return function


def test_a_metric_notes_what_it_was_computed_with_and_nothing_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    add(
        monkeypatch,
        added("noted", notes({"noted": "model \x1b[31m7"}), sheet=TEXTS),
        *(
            added(f"bad{n}", notes({name: said}), sheet=TEXTS)
            for n, (name, said) in enumerate([("bleu", "mine"), ("bad1", 5), (5, "x"), ("noted", "gone")])
        ),
    )
    wrote = [answered(one.id, "3", text="four", question="pointwise") for one in EXAMPLES]
    found = evaluate(EXAMPLES, wrote, train=TRAIN)
    texts = row(found, "judge (label)").text
    assert texts["noted"].value == 1 and texts["bleu"].value is not None
    for n in range(4):
        assert texts[f"bad{n}"].value is None and "into settings, expected a text" in str(texts[f"bad{n}"].interval.reason)
    shown = markdown(evaluation_result(found))
    assert "noted: model" in shown and "\x1b" not in shown
    assert "BLEU: mine" not in shown and "noted: gone" not in shown


def test_choices_and_texts_take_metrics_too(monkeypatch: pytest.MonkeyPatch) -> None:
    add(
        monkeypatch,
        added("misses", mean_of(lambda one: 1 - one.hits), sheet=CHOICES),
        added("says_a", of_sample(lambda gold, given: float((given == "A").mean())), sheet=Sheet("Mine", "choices")),
        added("length", of_sample(lambda own, written: float(np.mean([len(text) for text in written]))), sheet=TEXTS),
    )
    pairs = [pair(str(n), f"u{n}", "A" if n % 2 else "B") for n in range(12)]
    found = evaluate(pairs, [answered(one.id, "A") for one in pairs], train=None)
    columns = row(found, "judge (label)").columns
    assert columns["misses"].value == 0.5 and columns["says_a"].value == 1
    titles = [table.title for table in evaluation_result(found).tables]
    assert "Mine: 12 pairs, not answered = wrong" in titles
    wrote = [answered(one.id, "3", text="four", question="pointwise") for one in EXAMPLES]
    texts = row(evaluate(EXAMPLES, wrote, train=TRAIN), "judge (label)").text
    assert texts["length"].value == 4


def test_a_text_metric_that_cannot_be_had_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: object) -> Estimate:
        raise BadInput("its model is not here")

    add(monkeypatch, added("learned", missing, sheet=TEXTS), added("scored", missing))
    wrote = [answered(one.id, "3", text="four", question="pointwise") for one in EXAMPLES]
    found = evaluate(EXAMPLES, wrote, train=TRAIN)
    assert found.text_skipped["learned"] == "its model is not here"
    assert "its model is not here" in str(row(found, "judge (label)").columns["scored"].interval.reason)


def test_judges_are_compared_by_it_as_by_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = world(20, per_reviewer=5)
    judges = {"a": noisy_judge(examples, noise=1, seed=1, failures=0.1), "b": noisy_judge(examples, noise=3, seed=2)}
    add(
        monkeypatch,
        added("by_item", mean_of(absolute_error)),
        added("whole", of_sample(mean_absolute_error)),
        added("bad", of_sample(raises)),
    )
    found = compare(judges, [Fold(examples, None)], resamples=100, permutations=150, metrics=["mae", "by_item", "bad", "whole"])
    for pairing in found.pairings:
        mae, by_item, bad, whole = pairing.contrasts
        for ours in (by_item, whole):
            assert ours.difference == pytest.approx(mae.difference) and (ours.p, ours.items) == (mae.p, mae.items)
            assert (ours.interval.low, ours.interval.high) == pytest.approx((mae.interval.low, mae.interval.high))
            assert ours.reviewers == mae.reviewers and ours.better == mae.better
        assert bad.difference is None and bad.p is None and "metric bad of" in str(bad.interval.reason)
    assert found.baselines[0].values["whole"].value == pytest.approx(found.baselines[0].values["mae"].value)
    assert "| whole (less is better) |" in markdown(comparison_result(found))
    alone = compare(judges, [Fold(examples, None)], resamples=100, permutations=150, metrics=["whole"])
    assert alone.metrics == ("whole",) and alone.pairings[0].contrasts[0].p is not None


def test_two_judges_who_answered_nothing_in_common_are_not_compared_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = world(12, per_reviewer=2)
    silent = [failed(one.id) for one in examples]
    add(monkeypatch, added("largest", of_sample(lambda gold, predicted: float(predicted.max()))))
    judges = {"a": noisy_judge(examples, noise=1, seed=1), "b": silent}
    found = compare(judges, [Fold(examples, None)], resamples=100, permutations=150, metrics=["largest"])
    assert found.pairings[0].contrasts[0].p_reason == "undefined (no item answered by both)"


def test_a_mean_of_distributions_is_compared_by_what_was_said_and_not_by_points(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = world(20, per_reviewer=5)
    judges = {"a": noisy_judge(examples, noise=1, seed=1), "b": noisy_judge(examples, noise=3, seed=2)}
    add(monkeypatch, added("sure", mean_of(lambda one: one.masses.max(axis=1))))
    found = compare(judges, [Fold(examples, None)], resamples=100, permutations=150, metrics=["sure"])
    table = evaluate_many(judges, [Fold(examples, None)], resamples=100)
    [contrast] = found.pairings[0].contrasts
    values = {name: row(table, f"{name} (expected)").columns["sure"].value for name in judges}
    assert (contrast.one, contrast.other) == pytest.approx((values["b"], values["a"]))
    assert contrast.one is not None and contrast.one < 1


def test_ours_are_named_once_and_of_every_kind() -> None:
    titles = [one.alone for one in METRICS.own.values()]
    assert len(set(titles)) == len(titles)
    assert all(metrics_of(kind) for kind in ("scores", "choices", "texts"))
