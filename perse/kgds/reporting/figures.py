"""The paper's figures 2 to 9 of the models at hand, and how opinions went wrong as stacked bars.

All figures are always drawn, so that every report has the same files; one without data says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from perse.drawing.figure import Cell, Figure
from perse.drawing.marks import DIM, LINE, PAPER, Style, draw, empty, legend_above, legend_height, plain, style
from perse.drawing.named_rows import name_row, value_in_words
from perse.kgds.benchmark import PARADIGMS, Pattern
from perse.kgds.outcomes import ErrorType
from perse.kgds.reporting.ranked_rows import ROW, Values, cells, looks_of, paradigm_handles, ranked
from perse.kgds.reporting.tables import PATTERN_NAMES, metric_name
from perse.kgds.scoring.results import Correlation, Metric, Results, Scores
from perse.reporting.trust_figures import listed

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

_ERRORS: Mapping[ErrorType, str] = {
    ErrorType.OFI: "OFI, wrong fact",
    ErrorType.OSD: "OSD, wrong stance",
    ErrorType.IRU: "IRU, unclear or left out",
    ErrorType.IRIC: "IRIC, reference wrong",
    ErrorType.OM: "OM, wrong speaker",
}


def kgds_figures(results: Results) -> dict[str, Figure]:
    """All figures, by name. A figure without data says why.

    Raises:
        BadInput: matplotlib is not installed.
    """
    gaps: Values = {}
    means: Values = {}
    for one in results.across:
        gaps.setdefault(one.model, {})[one.paradigm] = one.gap
        means.setdefault(one.model, {})[one.paradigm] = one.mean
    both = "not known under both patterns"
    drawn = [
        ranked(
            results,
            _of_metric(results, "ebs-aos", "retrieved"),
            name="figure-2-retrieval",
            title="Paragraphs extracted, in percent of the article's",
            missing=_why_missing(results, "ebs-aos"),
            line=(f"the experts' choice, {results.supporting_share:.2f} on average", results.supporting_share),
        ),
        ranked(
            results,
            _win_rates(results),
            name="figure-3-experts-preferred",
            title="Experts' selection preferred to the model's own, in percent",
            missing=lambda _: "no feedback was asked for",
            line=("no preference", 50.0),
        ),
        _scatter(results, "ebs-aos", name="figure-4-background-and-opinions"),
        _scatter(results, "abs-aos", name="figure-5-background-and-opinions"),
        _overall(results, "ebs-aos", name="figure-6-overall-ebs-aos"),
        ranked(
            results,
            gaps,
            name="figure-7-gap",
            title="Gap: overall performance under EBS-AOS minus that under ABS-AOS",
            missing=lambda _: both,
            line=("no gap", 0.0),
        ),
        _overall(results, "abs-aos", name="figure-8-overall-abs-aos"),
        ranked(
            results, means, name="figure-9-mean", title="Overall performance, mean of both patterns", missing=lambda _: both
        ),
        _error_bars(results, "ebs-aos"),
        _error_bars(results, "abs-aos"),
    ]
    return {figure.name: figure for figure in drawn}


def _win_rates(results: Results) -> Values:
    """Of a model that was asked in both ways, the second turn's, which is the paper's."""
    ordered = sorted(results.win_rates, key=lambda one: one.second_turn)
    return {one.model: {"structured": one.share} for one in ordered}


def _of_metric(results: Results, pattern: Pattern, metric: Metric) -> Values:
    values: Values = {}
    for scores in results.scores:
        if scores.pattern == pattern and metric in scores.values:
            values.setdefault(scores.model, {})[scores.paradigm] = scores.values[metric]
    return values


def _why_missing(results: Results, pattern: Pattern) -> Callable[[str], str]:
    there = {scores.model for scores in results.scores if scores.pattern == pattern}
    name = PATTERN_NAMES[pattern]
    return lambda model: "not known" if model in there else f"no summaries under {name}"


def _overall(results: Results, pattern: Pattern, *, name: str) -> Figure:
    return ranked(
        results,
        _of_metric(results, pattern, "op"),
        name=name,
        title=f"Overall performance under {PATTERN_NAMES[pattern]}",
        missing=_why_missing(results, pattern),
    )


def _scatter(results: Results, pattern: Pattern, *, name: str) -> Figure:
    """F1 of the background against recall of opinions: a point for each model, a least-squares line for each paradigm."""
    across, up = metric_name("f1", pattern), metric_name("cao", pattern)
    title = f"{across} and {up} under {PATTERN_NAMES[pattern]}"
    header = ("model", "paradigm", across, "low", "high", up, "low", "high")
    points = [scores for scores in results.scores if scores.pattern == pattern and _point(scores) is not None]
    correlations = [one for one in results.correlations if one.pattern == pattern and one.models]
    if not points:
        return empty(name, title=title, reason="no model has both values", header=header)
    looks = {model: look for model, look in looks_of(results).items() if any(scores.model == model for scores in points)}
    paradigms = [paradigm for paradigm in PARADIGMS if any(scores.paradigm == paradigm for scores in points)]
    said = [line for one in correlations for line in _correlated(one, alone=len(paradigms) == 1)]
    labels = [*looks, *(paradigms if "reflection" in paradigms else ())]

    def paint(sheet: Sheet) -> None:
        axis = sheet.subplots()
        for paradigm in paradigms:
            of_it = [point for scores in points if scores.paradigm == paradigm if (point := _point(scores))]
            correlation = next((one for one in correlations if one.paradigm == paradigm), None)
            if correlation and correlation.pearson.value is not None and (ends := _least_squares(of_it)):
                dash = (0, (5, 3)) if paradigm == "reflection" else (0, ())
                axis.plot(*zip(*ends, strict=True), color=DIM, linewidth=1.1, linestyle=dash)
        for model, look in looks.items():
            of_model = {scores.paradigm: point for scores in points if scores.model == model and (point := _point(scores))}
            axis.plot(*zip(*of_model.values(), strict=True), color=look.colour, linewidth=0.9)
            for paradigm, (x, y) in of_model.items():
                face = PAPER if paradigm == "reflection" else look.colour
                axis.plot(x, y, look.marker, color=look.colour, markerfacecolor=face, markersize=6.5, zorder=3)
        axis.margins(0.08)
        axis.set(xlabel=f"{across}, percent", ylabel=f"{up}, percent")
        axis.set_title("\n".join(said), fontsize=8.5, color=DIM)
        axis.grid(color=LINE)
        handles = _model_handles(looks)
        legend_above(sheet, handles + (paradigm_handles(paradigms, lines=True) if "reflection" in paradigms else []))

    return draw(
        name,
        paint,
        height=3.0 + legend_height(labels) + 0.16 * len(said),
        title=title,
        alt=f"{title}: {len(looks)} {'model' if len(looks) == 1 else 'models'}. {_sentence(said)}".strip(),
        header=header,
        rows=[(s.model, s.paradigm, *cells(s.values["f1"])[:3], *cells(s.values["cao"])[:3]) for s in points],
    )


def _point(scores: Scores) -> tuple[float, float] | None:
    f1, cao = scores.values.get("f1"), scores.values.get("cao")
    return None if f1 is None or cao is None or f1.value is None or cao.value is None else (f1.value, cao.value)


def _correlated(one: Correlation, *, alone: bool) -> list[str]:
    """Pearson and Spearman in lines that fit above a plot, or why there are none."""
    start = "" if alone and one.paradigm == "structured" else f"{one.paradigm}: "
    if one.pearson.value is None and one.spearman.value is None:
        reason = (one.pearson.interval.reason or "undefined").removeprefix("undefined").strip(" ()")
        return [plain(f"{start}no correlation" + (f" ({reason})" if reason else ""), 66)]
    lines = [f"{start}Pearson {value_in_words(one.pearson)}", f"Spearman {value_in_words(one.spearman)}"]
    return [", ".join(lines)] if len(", ".join(lines)) <= 66 else [lines[0] + ",", lines[1]]


def _sentence(lines: Sequence[str]) -> str:
    words = "; ".join(lines).replace(",; ", ", ")
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def _least_squares(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Ends of the line of y on x; none for fewer than three points, or if all x are equal."""
    if len(points) < 3:
        return []
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if not spread:
        return []
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return [(x, mean_y + slope * (x - mean_x)) for x in (min(points)[0], max(points)[0])]


def _error_bars(results: Results, pattern: Pattern) -> Figure:
    """Shares of the five types, a bar for each model and paradigm."""
    name, title = f"errors-{pattern}", f"Why opinions are not covered under {PATTERN_NAMES[pattern]}"
    header = ("model", "paradigm", *map(str, ErrorType), "classified", "not covered")
    rows = [scores for scores in results.scores if scores.pattern == pattern]
    asked = [scores for scores in rows if scores.errors is not None]
    if not any(scores.errors.shares for scores in asked if scores.errors):
        reason = "no errors were asked about" if rows and not asked else "no opinion was classified" if rows else "no summaries"
        return empty(name, title=title, reason=reason, header=header)

    def paint(sheet: Sheet) -> None:
        from matplotlib.patches import Patch

        axis = sheet.subplots()
        for place, scores in enumerate(rows):
            label = scores.model if scores.paradigm == "structured" else f"{plain(scores.model, 30)}, reflection"
            _stack(axis, -place, scores, label)
        axis.set(xlim=(0, 100), ylim=(-len(rows) + 0.5, 0.75), yticks=[], xlabel="percent")
        axis.spines["left"].set_visible(False)
        looks = {error: style(n) for n, error in enumerate(ErrorType)}
        legend_above(
            sheet,
            [Patch(facecolor=look.colour, hatch=look.hatch, edgecolor=PAPER, label=_ERRORS[e]) for e, look in looks.items()],
        )

    said = [
        f"{scores.model}{' after reflection' if scores.paradigm == 'reflection' else ''} has "
        + ", ".join(f"{error} {share:.2f}" for error, share in scores.errors.shares.items())
        for scores in asked
        if scores.errors and scores.errors.shares
    ]
    return draw(
        name,
        paint,
        height=0.6 + ROW * len(rows) + legend_height(list(_ERRORS.values())),
        title=title,
        alt=f"{title}: in percent of those classified, {listed(said)}.",
        header=header,
        rows=[_error_cells(scores) for scores in asked],
    )


def _stack(axis: Axes, y: float, scores: Scores, label: str) -> None:
    errors = scores.errors
    if errors is None or errors.shares is None:
        name_row(axis, y, label, "", strong=False)
        words = "no errors were asked about" if errors is None else "every opinion is covered"
        words = words if errors is None or not errors.uncovered else f"none of {errors.uncovered} opinions was classified"
        axis.text(0, y, words, transform=axis.get_yaxis_transform(), color=DIM, fontsize=8.5, va="center", style="italic")
        return
    name_row(axis, y, label, f"{errors.classified} of {errors.uncovered} classified")
    left = 0.0
    for nth, error in enumerate(ErrorType):
        look, share = style(nth), errors.shares.get(error, 0.0)
        if share:
            axis.barh(y, share, 0.44, left=left, color=look.colour, hatch=look.hatch, edgecolor=PAPER, linewidth=0.4)
        left += share


def _error_cells(scores: Scores) -> tuple[Cell, ...]:
    errors = scores.errors
    if errors is None:
        return (scores.model, scores.paradigm, *(None for _ in ErrorType), None, None)
    shares = errors.shares or {}
    return (scores.model, scores.paradigm, *map(shares.get, ErrorType), errors.classified, errors.uncovered)


def _model_handles(looks: Mapping[str, Style]) -> list[Artist]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle="", markersize=6, label=model)
        for model, look in looks.items()
    ]
