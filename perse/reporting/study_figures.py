"""Pictures of studies, from their points alone; and of a training's loss.

Lines with a band, or bars with whiskers. These are 95% intervals; of lines whose every point was asked in several passes the bands are
the spread of the passes (figures 3 and 4 of PerSE). One kind in a figure. One figure for each metric of the points, whatever the study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perse.drawing.figure import Cell, Figure
from perse.drawing.marks import (
    DIM,
    INK,
    LINE,
    PAPER,
    Style,
    draw,
    empty,
    file_name,
    legend_above,
    legend_height,
    plain,
    style,
)
from perse.drawing.named_rows import no_interval, value_in_words
from perse.evaluation.metrics import title_of
from perse.reporting.trust_figures import listed
from perse.results.result import Estimate, Point, Result

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

BAR = 0.19
"""Inches of a bar."""
_OTHERS = {"moved": "answer moves by"}
"""Points of studies that are no metric of an evaluation."""
_HEADER = ("series", "baseline", "x", "value", "low", "high", "items", "reason", "standard deviation")


def study_figures(result: Result) -> list[Figure]:
    """A figure for each metric of a study's points, in their order.

    Raises:
        BadInput: matplotlib is not installed.
    """
    metrics = list(dict.fromkeys(point.metric for point in result.points))
    if not metrics:
        return [empty(file_name(result.name), title=result.asks, reason="the study has no points", header=_HEADER)]
    return [_figure(result, metric) for metric in metrics]


def _figure(result: Result, metric: str) -> Figure:
    points = [point for point in result.points if point.metric == metric]
    ticks = list(dict.fromkeys(point.x for point in points))
    series: dict[str, list[Point]] = {}
    for point in points:
        series.setdefault(point.series, []).append(point)
    name, title = file_name(result.name, metric), f"{_heading(metric)}: {result.asks}"
    if all(point.estimate.value is None for point in points):
        reasons = dict.fromkeys(point.estimate.interval.reason for point in points if point.estimate.interval.reason)
        reason = f"{_heading(metric)}: {'; '.join(filter(None, reasons)) or 'undefined'}"
        return empty(name, title=title, reason=reason, header=_HEADER)
    looks, spreads = _looks(series), _spreads(points, lines=result.plot == "lines")
    height = legend_height(list(series))
    height += 2.8 if result.plot == "lines" else 0.6 + BAR * (len(points) + 1.4 * len(ticks))

    def paint(sheet: Sheet) -> None:
        axis = sheet.subplots()
        if result.plot == "lines":
            _lines(axis, series, ticks, looks, spreads=spreads)
            axis.set(xlabel=plain(result.x_label, 52), ylabel=_heading(metric))
        else:
            _bars(axis, series, ticks, looks)
            axis.set_xlabel(_heading(metric))
        legend_above(sheet, _handles(looks, lines=result.plot == "lines"))

    rows = [_cells(point) for point in points]
    return draw(
        name,
        paint,
        height=height,
        title=title,
        alt=_in_words(metric, series, lines=result.plot == "lines", spreads=spreads),
        header=_HEADER,
        rows=rows,
    )


def _heading(metric: str) -> str:
    name = _OTHERS.get(metric) or title_of(metric)
    return name[:1].upper() + name[1:]


def _looks(series: Mapping[str, Sequence[Point]]) -> dict[str, Style]:
    judges = [name for name, points in series.items() if not points[0].baseline]
    baselines = [name for name in series if name not in judges]
    looks = {name: style(n) for n, name in enumerate(judges)}
    looks |= {name: style(n, baseline=True) for n, name in enumerate(baselines)}
    return {name: looks[name] for name in series}


def _spreads(points: Sequence[Point], *, lines: bool) -> bool:
    """Whether the bands are standard deviations: every judge's point of a line has one, and baselines, which have none, have no band."""
    judged = [point for point in points if not point.baseline and point.estimate.value is not None]
    return lines and bool(judged) and all(point.spread is not None for point in judged)


def _lines(
    axis: Axes,
    series: Mapping[str, Sequence[Point]],
    ticks: Sequence[str],
    looks: Mapping[str, Style],
    *,
    spreads: bool,
) -> None:
    places = _places(ticks)
    for name, points in series.items():
        look = looks[name]
        known = [(places[p.x], p.estimate.value, _band(p, spreads=spreads)) for p in points if p.estimate.value is not None]
        axis.plot(
            [x for x, *_ in known],
            [value for _, value, _ in known],
            color=look.colour,
            marker=look.marker,
            linestyle=look.dash,
            markersize=5,
            linewidth=1.6,
        )
        banded = [(x, *band) for x, _, band in known if band]
        if points[0].baseline or not banded:
            continue
        at, lows, highs = zip(*banded, strict=True)
        if len(banded) > 1:
            axis.fill_between(at, lows, highs, color=look.colour, alpha=0.16, linewidth=0)
        else:
            axis.vlines(at, lows, highs, color=look.colour, linewidth=1.4)
    axis.set_xticks(list(places.values()), [plain(tick, 14) for tick in ticks])
    if sum(len(plain(tick, 14)) for tick in ticks) > 40:
        axis.tick_params(axis="x", rotation=35)
        for label in axis.get_xticklabels():
            label.set_horizontalalignment("right")
    axis.margins(x=0.04)
    axis.grid(axis="y")


def _places(ticks: Sequence[str]) -> dict[str, float]:
    """Places of ticks: whole numbers at their values, so that k = 1, 3, 5 are to scale; others in order."""
    numbers = all(tick.isascii() and tick.isdigit() for tick in ticks)
    return {tick: float(tick) if numbers else float(n) for n, tick in enumerate(ticks)}


def _band(point: Point, *, spreads: bool) -> tuple[float, float] | None:
    """The standard deviation of the passes on both sides, or the interval."""
    value, low, high = point.estimate.value, point.estimate.interval.low, point.estimate.interval.high
    if value is None:
        return None
    if spreads:
        return None if point.spread is None else (value - point.spread, value + point.spread)
    return None if low is None or high is None else (low, high)


def _bars(axis: Axes, series: Mapping[str, Sequence[Point]], ticks: Sequence[str], looks: Mapping[str, Style]) -> None:
    y, drawn = 0.0, []
    for tick in ticks:
        axis.text(0, y, plain(tick, 50), transform=axis.get_yaxis_transform(), va="center", fontsize=9.5, fontweight="bold")
        for name, points in series.items():
            for point in points:
                if point.x == tick:
                    y -= 1
                    drawn += _bar(axis, y, point, looks[name])
        y -= 1.4
    left, right = min([0.0, *drawn]), max([0.0, *drawn])
    margin = 0.04 * (right - left or 1.0)
    axis.set(xlim=(left - (margin if left < 0 else 0), right + margin), ylim=(y + 0.7, 0.8), yticks=[])
    axis.spines["left"].set_visible(False)
    axis.grid(axis="x", color=LINE)
    axis.axvline(0.0, color=DIM, linewidth=1)


def _bar(axis: Axes, y: float, point: Point, look: Style) -> list[float]:
    """Draws it and returns its end."""
    value, band = point.estimate.value, _band(point, spreads=False)
    if value is None:
        words = plain(point.estimate.interval.reason or "undefined", 50)
        axis.text(0.01, y, words, transform=axis.get_yaxis_transform(), va="center", fontsize=8, style="italic", color=DIM)
        return []
    axis.barh(y, value, 0.82, color=look.colour, hatch=look.hatch, edgecolor=PAPER, linewidth=0.4)
    if band:
        axis.plot(band, [y, y], color=PAPER, linewidth=3.6, solid_capstyle="butt")
        axis.plot(band, [y, y], color=INK, linewidth=1.4, solid_capstyle="butt")
    return [value, *(band or ())]


def _handles(looks: Mapping[str, Style], *, lines: bool) -> list[Artist]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if lines:
        return [
            Line2D([], [], color=look.colour, marker=look.marker, linestyle=look.dash, markersize=5, label=name)
            for name, look in looks.items()
        ]
    return [Patch(facecolor=look.colour, hatch=look.hatch, edgecolor=PAPER, label=name) for name, look in looks.items()]


def _in_words(metric: str, series: Mapping[str, Sequence[Point]], *, lines: bool, spreads: bool) -> str:
    said = []
    for name, points in series.items():
        known = [point for point in points if point.estimate.value is not None]
        if not known:
            said.append(f"{name} undefined")
            continue
        ends = known if lines else sorted(known, key=lambda point: -(point.estimate.value or 0.0))
        ends = ends if len(ends) <= (2 if lines else 4) else [ends[0], ends[-1]]
        values = [f"{_value(point, spreads=spreads)} at {point.x}" for point in ends]
        said.append(f"{name} " + (" to " if lines else ", ").join(values))
    # Baselines have no bands.
    points = [point for some in series.values() for point in some if not (lines and point.baseline)]
    kind = "standard deviations over repeated passes" if spreads else "95% intervals"
    drawn = any(_band(point, spreads=spreads) for point in points)
    which = f" {'Bands' if lines else 'Whiskers'} are {kind}." if drawn else ""
    return f"{_heading(metric)}: {listed(said, longest=6)}.{which}{'' if spreads else no_interval([point.estimate for point in points])}"


def _value(point: Point, *, spreads: bool) -> str:
    estimate: Estimate = point.estimate
    return value_in_words(estimate) if not spreads or point.spread is None else f"{estimate.value:.2f} (sd {point.spread:.2f})"


def _cells(point: Point) -> tuple[Cell, ...]:
    estimate, interval = point.estimate, point.estimate.interval
    numbers = (estimate.value, interval.low, interval.high, estimate.items, interval.reason, point.spread)
    return (point.series, str(point.baseline).lower(), point.x, *numbers)
