"""Can one believe how sure a judge says it is? P(label) against how often it was right, and error against how sure it was.

Both read the distribution, so answers without one are in neither; the numbers say how many there were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perse.drawing.figure import Cell, Figure
from perse.drawing.marks import DIM, LINE, draw, empty, legend_above, panels, say, style
from perse.evaluation.calibration.reliability import BINS, Bin, calibration_error, reliability_bins
from perse.evaluation.calibration.risk_coverage import SHARES, curve, equally_sure
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.results import Evaluation
from perse.reporting.report_data import RunData
from perse.results.result import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

BETWEEN_LABELS = "true scores lie between labels, as means of several people do: no probability of a label is right of them"
NO_DISTRIBUTION = "no judge gave label distributions to items whose true answer is known"


def listed(parts: Sequence[str], *, longest: int = 4) -> str:
    """Parts of a sentence, no more than a listener can follow."""
    more = f"; and {len(parts) - longest} more" if len(parts) > longest else ""
    return "; ".join(parts[:longest]) + more


def panel_height(number: int) -> float:
    """Inches of a figure with so many plots, two abreast."""
    return 3.1 if number == 1 else 0.5 + 1.9 * -(-number // 2)


def points_of(bins: Iterable[Bin]) -> list[tuple[float, Estimate]]:
    """Each bin as a point: the mean prediction across, what came true upwards."""
    return [(one.predicted.value, one.true) for one in bins if one.predicted.value is not None]


def whiskers(axis: Axes, x: float, estimate: Estimate, colour: str) -> None:
    """The interval of a point, where it has one."""
    low, high = estimate.interval.low, estimate.interval.high
    if low is not None and high is not None:
        axis.plot([x, x], [low, high], color=colour, linewidth=1.2)


def xy(points: Sequence[tuple[float, Estimate]]) -> tuple[list[float], list[float]]:
    """Points as matplotlib wants them."""
    known = [(x, estimate.value) for x, estimate in points if estimate.value is not None]
    return [x for x, _ in known], [y for _, y in known]


def reliability(runs: Mapping[str, RunData], evaluation: Evaluation) -> Figure:
    """Probabilities of at most k, of all k, in ten bins against how often it was so; of pairs P(A)."""
    what = "P(A)" if evaluation.kind == "pairwise" else "P(score at most k)"
    name, title = "reliability", f"Is {what} right?"
    header = ("judge", "mean probability", "how often it was so", "low", "high", "how many", "reason")
    points = {
        judge: points_of(reliability_bins(run.promised, resamples=evaluation.resamples, seed=evaluation.seed))
        for judge, run in runs.items()
        if run.kind == "pairwise" or run.on_labels
    }
    if not points:
        return empty(name, title=title, reason=BETWEEN_LABELS, header=header)
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
                axis.set_ylabel("how often it was so")
        sheet.supxlabel(f"{what} (dashed: exactly right)", fontsize=9.5)

    off = {judge: calibration_error(runs[judge].promised) for judge in points if points[judge]}
    each = "" if evaluation.kind == "pairwise" else ", of each k by itself"
    said = [f"{judge} is off by {error:.3f} on average{each}" for judge, error in off.items()]
    return draw(
        name,
        paint,
        height=panel_height(len(runs)),
        title=title,
        alt=f"{what} against how often it was so, in {BINS} bins{'' if evaluation.kind == 'pairwise' else ' of all k together'}: {listed(said)} (expected calibration error, of which chance makes some: perse study calibration says how much).",
        header=header,
        rows=[(judge, x, *_cells(estimate)) for judge, found in points.items() for x, estimate in found],
    )


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

    def words(judge: str) -> str:
        ours, _, items = found[judge]
        run, said = runs[judge], f"{judge} errs by {ours[0]:.2f} over all {items} answers that have probabilities"
        if equally_sure(run.entropy[run.told]):
            return f"{said} and is equally sure of all"
        return f"{said} and by {ours[SHARES.index(0.5)]:.2f} over the surest half"

    said = [words(judge) for judge, (*_, items) in found.items() if items]
    return draw(
        name,
        paint,
        height=panel_height(len(runs)) + 0.25,
        title=title,
        alt=f"{error.capitalize()} by share of the answers kept, least entropy first: {listed(said)} (chance may make a difference: perse study risk-coverage says whether it is shown).",
        header=header,
        rows=[
            (judge, share, risk, float(ours[0]), oracle, items)
            for judge, (ours, best, items) in found.items()
            for share, risk, oracle in zip(SHARES, ours.tolist(), best.tolist(), strict=False)
        ],
    )


def _kept(run: RunData) -> tuple[FloatArray, FloatArray, int]:
    """Error of each share of the answers that is kept, in the judge's order and in the best; and how many answers."""
    error = run.error[run.told]
    if not len(error):
        return np.empty(0), np.empty(0), 0
    return curve(error, -run.entropy[run.told])[0], curve(error, -error)[0], len(error)
