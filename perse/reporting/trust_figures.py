"""Can one believe how sure a judge says it is? P(label) against how often it was right, and error against how sure it was.

Both read the distribution, so answers without one are in neither; the numbers say how many there were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perse.drawing.figure import Cell, Figure
from perse.drawing.marks import DIM, LINE, draw, empty, legend_above, panels, say, style
from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.results import Evaluation
from perse.reporting.report_data import RunData
from perse.results.result import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

BINS = 10
SHARES = tuple(n / 10 for n in range(10, 0, -1))
NO_DISTRIBUTION = "no judge gave label distributions to items whose true answer is known"


def listed(parts: Sequence[str], *, longest: int = 4) -> str:
    """Parts of a sentence, no more than a listener can follow."""
    more = f"; and {len(parts) - longest} more" if len(parts) > longest else ""
    return "; ".join(parts[:longest]) + more


def panel_height(number: int) -> float:
    """Inches of a figure with so many plots, two abreast."""
    return 3.1 if number == 1 else 0.5 + 1.9 * -(-number // 2)


def whiskers(axis: Axes, x: float, estimate: Estimate, colour: str) -> None:
    """The interval of a point, where it has one."""
    low, high = estimate.interval.low, estimate.interval.high
    if low is not None and high is not None:
        axis.plot([x, x], [low, high], color=colour, linewidth=1.2)


def xy(points: Sequence[tuple[float, Estimate]]) -> tuple[list[float], list[float]]:
    """Points as matplotlib wants them."""
    known = [(x, estimate.value) for x, estimate in points if estimate.value is not None]
    return [x for x, _ in known], [y for _, y in known]


def binned(
    predicted: FloatArray, true: FloatArray, bin_of: IntArray, *, reviewer: IntArray, resamples: int, seed: int
) -> list[tuple[float, Estimate]]:
    """Of each bin that holds something: the mean prediction, and the mean truth with its interval over reviewers."""
    if not len(predicted):
        return []
    _, compact = np.unique(reviewer, return_inverse=True)
    bootstrap = Bootstrap.over(compact.astype(np.int64), resamples=resamples, seed=seed)
    found = []
    for one in np.unique(bin_of).tolist():
        chosen: BoolArray = bin_of == one
        found.append((float(predicted[chosen].mean()), bootstrap.mean(true, chosen)))
    return found


def reliability(runs: Mapping[str, RunData], evaluation: Evaluation) -> Figure:
    """Probabilities in ten bins against how often what they were of came true; of pairs, the probability of A."""
    pairs = evaluation.kind == "pairwise"
    name, title = "reliability", f"Is P({'A' if pairs else 'score'}) right?"
    header = ("judge", "mean probability", "came true", "low", "high", "how many", "reason")
    points = {judge: _reliability_points(run, evaluation) for judge, run in runs.items()}
    if not any(points.values()):
        return empty(name, title=title, reason=NO_DISTRIBUTION, header=header)

    def paint(sheet: Sheet) -> None:
        for nth, (axis, (judge, found)) in enumerate(zip(panels(sheet, list(runs), columns=2), points.items(), strict=True)):
            look = style(list(runs).index(judge))
            axis.plot([0, 1], [0, 1], color=DIM, linewidth=1, linestyle=(0, (4, 3)))
            most = max((estimate.items for _, estimate in found), default=1)
            for x, estimate in found:
                whiskers(axis, x, estimate, look.colour)
            sizes = [14 + 70 * estimate.items / most for _, estimate in found]
            axis.scatter(*xy(found), s=sizes, marker=look.marker, color=look.colour, zorder=3)
            axis.plot(*xy(found), color=look.colour, linewidth=1.2)
            if not found:
                say(axis, "no distributions")
            axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
            axis.grid(color=LINE)
            if nth == 0:
                axis.set_ylabel("how often it came true")
        sheet.supxlabel(f"P({'A' if pairs else 'score'}) (dashed: exactly right)", fontsize=9.5)

    said = [f"{judge} is off by {_off(found):.3f} on average" for judge, found in points.items() if found]
    what = "of A" if pairs else "of each score"
    return draw(
        name,
        paint,
        height=panel_height(len(runs)),
        title=title,
        alt=f"Probability {what} against how often it came true, in {BINS} bins: {listed(said)} (expected calibration error).",
        header=header,
        rows=[(judge, x, *_cells(estimate)) for judge, found in points.items() for x, estimate in found],
    )


def _reliability_points(run: RunData, evaluation: Evaluation) -> list[tuple[float, Estimate]]:
    rows = run.told
    if run.kind == "pairwise":
        chance, right = run.distributions[rows, :1], (run.gold[rows] == 0)[:, None]
    else:  # a truth between two labels, as of summaries, counts for the nearest
        nearest = np.abs(run.gold[rows][:, None] - run.values).argmin(axis=1)
        chance, right = run.distributions[rows], np.arange(len(run.labels)) == nearest[:, None]
    reviewer = np.repeat(run.reviewer[rows], chance.shape[1])
    flat = chance.ravel()
    bin_of = np.minimum((flat * BINS).astype(np.int64), BINS - 1)
    came = right.ravel().astype(np.float64)
    return binned(flat, came, bin_of, reviewer=reviewer, resamples=evaluation.resamples, seed=evaluation.seed)


def _off(points: Sequence[tuple[float, Estimate]]) -> float:
    """Expected calibration error."""
    total = sum(estimate.items for _, estimate in points)
    return sum(abs(x - (estimate.value or 0.0)) * estimate.items for x, estimate in points) / total


def _cells(estimate: Estimate) -> tuple[Cell, ...]:
    interval = estimate.interval
    return (estimate.value, interval.low, interval.high, estimate.items, interval.reason)


def risk_coverage(runs: Mapping[str, RunData]) -> Figure:
    """The error of the answers with the least entropy, by how many are kept; and of the best possible order."""
    pairs = next(iter(runs.values())).kind == "pairwise"
    error = "share of wrong choices" if pairs else "mean absolute error"
    name, title = "risk-coverage", "Is it right when it is sure?"
    header = ("judge", "share kept", error, "in random order", "in the best order", "answers")
    found = {judge: _kept(run) for judge, run in runs.items()}
    if not any(len(curve[0]) for curve in found.values()):
        return empty(name, title=title, reason=NO_DISTRIBUTION, header=header)

    top = 1.08 * max(0.05, *(risk for ours, best, _ in found.values() for risk in (*ours, *best)))

    def paint(sheet: Sheet) -> None:
        from matplotlib.lines import Line2D

        for nth, (axis, (judge, (ours, best, items))) in enumerate(
            zip(panels(sheet, list(runs), columns=2), found.items(), strict=True)
        ):
            look = style(list(runs).index(judge))
            if not items:
                say(axis, "no distributions")
                continue
            axis.plot(SHARES, ours, color=look.colour, marker=look.marker, markersize=4)
            axis.plot(SHARES, best, color=DIM, linewidth=1.2, linestyle=(0, (1.5, 1.5)))
            axis.axhline(ours[0], color=DIM, linewidth=1.2, linestyle=(0, (6, 3)))
            axis.set(xlim=(1.03, 0.07), xticks=[1, 0.75, 0.5, 0.25], ylim=(0, top))
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
            axis.grid(color=LINE)
            if nth == 0:
                axis.set_ylabel(error)
        sheet.supxlabel("answers kept, surest first", fontsize=9.5)
        one = style(0)
        first = Line2D([], [], color=one.colour, marker=one.marker, markersize=4, label="surest first")
        dashed = Line2D([], [], color=DIM, linestyle=(0, (6, 3)), label="random order")
        dotted = Line2D([], [], color=DIM, linestyle=(0, (1.5, 1.5)), label="best order")
        legend_above(sheet, [first, dashed, dotted])

    said = [
        f"{judge} errs by {ours[0]:.2f} over all {items} answers and by {ours[5]:.2f} over the surest half"
        for judge, (ours, _, items) in found.items()
        if items
    ]
    return draw(
        name,
        paint,
        height=panel_height(len(runs)) + 0.25,
        title=title,
        alt=f"{error.capitalize()} by share of the answers kept, least entropy first: {listed(said)}.",
        header=header,
        rows=[
            (judge, share, risk, float(ours[0]), oracle, items)
            for judge, (ours, best, items) in found.items()
            for share, risk, oracle in zip(SHARES, ours.tolist(), best.tolist(), strict=False)
        ],
    )


def _kept(run: RunData) -> tuple[FloatArray, FloatArray, int]:
    """Error of each share of the answers that is kept, in the judge's order and in the best; and how many answers."""
    rows = run.told
    if not rows.any():
        return np.empty(0), np.empty(0), 0
    if run.kind == "pairwise":
        chance = np.take_along_axis(run.distributions[rows], run.gold[rows].astype(np.int64)[:, None], axis=1)[:, 0]
        error = np.where(np.isclose(chance, 0.5, rtol=0, atol=1e-12), 0.5, (chance < 0.5).astype(np.float64))
    else:
        error = np.abs(run.gold[rows] - run.expected[rows])
    return _curve(error, run.entropy[rows]), _curve(error, error), len(error)


def _curve(error: FloatArray, doubt: FloatArray) -> FloatArray:
    """Mean error of the surest shares; answers of equal doubt come together, so that no order of the file decides."""
    groups, of_item = np.unique(np.round(doubt, 12), return_inverse=True)
    size = np.bincount(of_item, minlength=len(groups)).cumsum()
    total = np.bincount(of_item, weights=error, minlength=len(groups)).cumsum()
    wanted = np.array(SHARES) * len(error)
    found: FloatArray = np.interp(wanted, [0, *size], [0, *total]) / wanted
    return found
