"""Summaries that were graded: another scale, true scores that are averages, products in the place of reviewers."""

import numpy as np
import pytest
from evaluation_builders import answered, failed, graded

from perse.errors import BadInput
from perse.evaluation.evaluate import Evaluation, Row, evaluate
from perse.evaluation.metrics import metrics_of
from perse.judgement import Judgement
from perse.records import SummaryExample


def row(evaluation: Evaluation, name: str) -> Row:
    return {row.name: row for row in evaluation.rows}[name]


def products(scores: list[float]) -> list[SummaryExample]:
    return [graded(str(n), f"p{n // 3}", score) for n, score in enumerate(scores)]


def said(labels: list[int], question: str = "coverage") -> list[Judgement]:
    return [answered(str(n), str(label), question=question) for n, label in enumerate(labels)]


def test_averaged_grades_have_correlations_and_errors_but_no_kappa() -> None:
    found = evaluate(products([1, 2.5, 4, 5, 3, 2]), said([1, 3, 4, 5, 4, 2]), train=[graded("t", "t", 3.5)])
    assert (found.kind, found.labels) == ("pointwise", ("1", "2", "3", "4", "5"))
    columns = row(found, "judge (label)").columns
    assert set(columns) == {metric.name for metric in metrics_of("scores")}
    assert columns["mae"].value == pytest.approx((0 + 0.5 + 0 + 0 + 1 + 0) / 6)
    assert columns["qwk"].interval.reason == columns["rps"].interval.reason == "undefined (true scores lie between labels)"
    assert [row.name for row in found.rows if row.judge is None] == ["training mean", "training median", "majority", "random"]
    assert row(found, "training mean").columns["mae"].value == pytest.approx((2.5 + 1 + 0.5 + 1.5 + 0.5 + 1.5) / 6)


def test_grades_that_are_labels_have_a_kappa_on_their_own_scale() -> None:
    found = evaluate(products([0, 20, 100]), said([0, 20, 100], "coverage_100"), train=None)
    assert row(found, "judge (label)").columns["qwk"].value == pytest.approx(1)
    assert row(found, "judge (label)").columns["rps"].value == 0
    assert row(found, "training mean").unavailable == "no training data at hand"


def test_failures_are_imputed_by_the_mean_of_the_training_grades() -> None:
    judgements = [*said([1, 3]), failed("2", question="coverage")]
    found = evaluate(products([1, 3, 5]), judgements, train=[graded("t", "t", 4)])
    imputed = row(found, "judge (label)").imputed
    assert found.training_means == (4,) and imputed is not None
    assert imputed["mae"].value == pytest.approx(1 / 3)


def test_the_verdict_is_against_chance_where_no_baseline_orders_anything() -> None:
    scores = [float(1 + n % 5) for n in range(60)]
    found = evaluate(products(scores), said([int(score) for score in scores]), train=[graded("t", "t", 3)])
    assert found.verdict[0].startswith(
        "judge: better than chance: Kendall tau-b 1.00 [0.88, 1.00]. Within the summaries of the same reviews 1.00 ["
    )
    assert found.verdict[0].endswith(": it orders the summaries of the same reviews")
    assert any(note.startswith("these are summaries of reviews: where readers are named") for note in found.notes)
    turned = evaluate(products(scores), said([int(6 - score) for score in scores]), train=[graded("t", "t", 3)])
    assert turned.verdict[0].endswith(": it orders the summaries of the same reviews the wrong way round")
    noise = np.random.default_rng(0).integers(1, 6, 60).tolist()
    unclear = evaluate(products(scores), said(noise), train=[graded("t", "t", 3)])
    assert unclear.verdict[0].endswith(": not shown to order the summaries of the same reviews")


def test_what_is_no_question_about_summaries_is_refused() -> None:
    with pytest.raises(BadInput, match="asked 'pointwise', which is no question about them; these are: coverage"):
        evaluate(products([1, 2]), said([1, 2], "pointwise"), train=None)


def test_two_questions_in_one_table_are_refused() -> None:
    judgements = [*said([1]), answered("1", "2", question="sentiment")]
    with pytest.raises(BadInput, match="different questions \\(coverage, sentiment\\)"):
        evaluate(products([1, 2]), judgements, train=None)
