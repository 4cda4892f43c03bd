"""p values of single correlations are scipy's, asked for by an option, and told with what they take for granted."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_builders import EXAMPLES, JUDGEMENTS, TRAIN
from scipy import stats

from perse.evaluation.alignment import Fold
from perse.evaluation.evaluate import evaluate_many
from perse.evaluation.stats.p_values import p_values
from perse.evaluation.telling import evaluation_tables
from perse.results.words import ABSENT


def test_they_are_those_of_scipy() -> None:
    generator = np.random.default_rng(5)
    gold = generator.integers(1, 11, 60).astype(float)
    predicted = gold + generator.normal(0, 6, 60)
    found = p_values(gold, predicted)
    assert found["pearson"] == pytest.approx(stats.pearsonr(gold, predicted).pvalue)
    assert found["spearman"] == pytest.approx(stats.spearmanr(gold, predicted).pvalue)
    assert found["kendall"] == pytest.approx(stats.kendalltau(gold, predicted).pvalue)
    n, r = 60, stats.pearsonr(gold, predicted).statistic  # by hand: t of n - 2 degrees of freedom
    assert found["pearson"] == pytest.approx(2 * stats.t.sf(abs(r) * np.sqrt((n - 2) / (1 - r * r)), n - 2))


@pytest.mark.parametrize("predicted", [[1.0, 2.0], [3.0, 3.0, 3.0]])
def test_of_a_constant_or_of_two_items_there_is_none(predicted: list[float]) -> None:
    gold = np.arange(len(predicted), dtype=float)
    assert set(p_values(gold, np.array(predicted)).values()) == {None}


def test_items_of_few_readers_make_them_too_small() -> None:
    """20 readers with 20 items each, whose mood is all that gold and prediction have: unrelated, and still p is below 0.05 in most worlds."""
    small = 0
    for world in range(100):
        generator = np.random.default_rng(world)
        gold, predicted = (np.repeat(generator.normal(0, 1, 20), 20) + generator.normal(0, 0.3, 400) for _ in range(2))
        found = p_values(gold, predicted)["pearson"]
        small += found is not None and found < 0.05
    assert small > 40


def test_a_table_has_them_only_when_asked_and_says_that_nothing_rests_on_them() -> None:
    folds, judges = [Fold(EXAMPLES, TRAIN)], {"judge": JUDGEMENTS}
    plain = evaluate_many(judges, folds)
    asked = evaluate_many(judges, folds, p_values=True)
    assert not any(row.p_values for row in plain.rows) and plain.conclusions == asked.conclusions
    assert not any(table.title.startswith("p of") for table in evaluation_tables(plain))
    [table] = [table for table in evaluation_tables(asked) if table.title.startswith("p of")]
    assert table.rows[0][0] == "judge (expected)" and "no sentence rests on them" in table.notes[0]
    expected = stats.pearsonr([2, 4, 6], [2, 5, 8]).pvalue
    assert asked.rows[0].p_values["pearson"] == pytest.approx(expected) and table.rows[0][1] == f"{expected:.2g}"
    assert next(row for row in table.rows if row[0] == "training mean")[1:] == (ABSENT,) * 3
