"""A table's conclusion in words: is this judge better than the reader's own average, and how sure is that?

The judge's reading that uses all it said (expected score, likeliest choice) is compared with the baseline that the paper
compares with: the mean of the shown scores, or the answer of the shown pair. Where that does not order texts,
because no profile was shown, the judge is compared with chance. "Better" means that the 95% interval of the difference, both
values resampled together, lies above 0; anything else is "not shown to be better", which is not "equal". Kendall within each reader
stands beside it: a judge may be better for knowing who is lenient, and not know what anybody likes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perse.evaluation.metrics import METRICS
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.results import Difference, JudgeSummary, Row
from perse.results.result import Estimate
from perse.results.words import shown as cell

COMPARED = "kendall"
WITHIN = "within_kendall"
CHANCE = "chance"
IN_WORDS = {
    "profile average": "the reader's own average",
    "copy the example": "copying the shown answer",
    "majority": "the majority answer",
    "random": "a coin",
}
WELL_COVERED = 0.95
"""Below this share of answered items the sentence says how many were answered."""


def sentences(judges: Mapping[str, JudgeSummary], rows: Sequence[Row], differences: Sequence[Difference]) -> tuple[str, ...]:
    """One sentence per judge, in order."""
    by_name = {row.name: row for row in rows}
    found = {difference.judge: difference for difference in differences}
    return tuple(f"{name}: {_sentence(summary, found.get(name), by_name)}" for name, summary in judges.items())


def score_difference(
    row: Row,
    baseline: Row | None,
    *,
    gold: FloatArray,
    predicted: FloatArray,
    resampled: FloatArray | None,
    reviewer: IntArray,
    bootstrap: Bootstrap,
) -> Difference:
    """Kendall's tau of a judge minus that of a baseline, or minus 0 (chance) where the baseline has none.

    Args:
        row, baseline: of the table; the baseline is None if it is unavailable.
        gold: (n,).
        predicted: of the judge, (n,), NaN where not answered.
        resampled: the baseline's tau in each resample, (R,); None without one.
        reviewer: (n,).
    """
    mine, theirs = row.columns[COMPARED], baseline.columns.get(COMPARED) if baseline else None
    judge = row.judge or row.name
    if mine.value is None or baseline is None or resampled is None or theirs is None or theirs.value is None:
        return Difference(judge=judge, row=row.name, baseline=CHANCE, column=COMPARED, estimate=mine)
    value = mine.value - theirs.value
    apart = bootstrap.resampled(COMPARED, gold, predicted) - resampled
    behind = len(np.unique(reviewer[~np.isnan(predicted)]))
    estimate = Estimate(value=value, interval=bootstrap.interval(value, apart, reviewers=behind), items=mine.items)
    return Difference(judge=judge, row=row.name, baseline=baseline.name, column=COMPARED, estimate=estimate)


def choice_difference(row: Row, baseline: Row, *, hits: FloatArray, other: FloatArray, bootstrap: Bootstrap) -> Difference:
    """Accuracy of a judge minus that of a baseline; `hits` and `other` are (n,), 1 where they are right."""
    estimate = bootstrap.mean(hits - other, np.ones(len(hits), dtype=bool))
    return Difference(judge=row.judge or row.name, row=row.name, baseline=baseline.name, column="accuracy", estimate=estimate)


def shown(estimate: Estimate) -> str:
    """A value with its interval, or why it is undefined."""
    return cell(estimate, digits=2)


def _sentence(summary: JudgeSummary, difference: Difference | None, rows: Mapping[str, Row]) -> str:
    if not summary.ok:
        return f"answered none of {summary.asked}; nothing can be said of it"
    if difference is None:
        return "nothing to compare it with"
    mine = rows[difference.row].columns[difference.column]
    column, against = METRICS[difference.column].title, IN_WORDS.get(difference.baseline, difference.baseline)
    covered = "" if summary.ok >= WELL_COVERED * summary.asked else f" (answered {summary.ok} of {summary.asked})"
    said = f"{column} {shown(mine)}{covered}"
    if mine.value is None:
        return f"{said}; no verdict"
    within = rows[difference.row].columns.get(WITHIN)
    if within:
        said += f", within each reader {shown(within)}"
    if difference.baseline in rows:
        said += f"; {against} {shown(rows[difference.baseline].columns[difference.column])}"
        said += f"; difference {shown(difference.estimate)}"
    concluded = _conclusion(difference.estimate, against) + _of_taste(difference.estimate, within)
    return f"{said}: {concluded}{_surpassed(mine.value, difference, rows)}"


def _of_taste(difference: Estimate, within: Estimate | None) -> str:
    """A judge that only knows which readers are lenient is better over all readers, but not within one."""
    if within is None or not above_zero(difference) or above_zero(within):
        return ""
    return "; no evidence that it knows which texts a reader likes"


def above_zero(estimate: Estimate) -> bool:
    """Whether the whole interval is above 0."""
    return estimate.interval.low is not None and estimate.interval.low > 0


def _surpassed(value: float, difference: Difference, rows: Mapping[str, Row]) -> str:
    """The best other baseline, if it beats the judge: with its training data no judge is needed."""
    others = {row.name: row.columns.get(difference.column) for row in rows.values() if not row.judge}
    values = {
        name: one.value
        for name, one in others.items()
        if one and one.value is not None and name not in (difference.baseline, "random")
    }
    best = max(values, key=lambda name: values[name], default=None)
    return f"; {best} reaches {values[best]:z.2f}" if best is not None and values[best] > value else ""


def _conclusion(difference: Estimate, against: str) -> str:
    low, high = difference.interval.low, difference.interval.high
    if low is None or high is None:
        return f"too little to say whether it is better than {against}"
    if low > 0:
        return f"better than {against}"
    return f"worse than {against}" if high < 0 else f"not shown to be better than {against}"
