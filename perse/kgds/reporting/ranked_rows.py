"""Models in rows, the highest on top: a mark with its interval for the structured prompt, a hollow one for reflection.

The paper draws bars from zero; marks show better how far models are apart and how sure that is. The price
is that the eye cannot compare lengths; the values stand beside the names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from perse.drawing.figure import Cell, Figure
from perse.drawing.marks import DIM, PAPER, Style, draw, empty, legend_above, legend_height, plain, style
from perse.drawing.named_rows import NamedRow, around, name_row, no_interval, reference_line, value_in_words
from perse.kgds.benchmark import PARADIGMS, Paradigm
from perse.kgds.reporting.tables import models
from perse.kgds.scoring.results import Results
from perse.reporting.trust_figures import listed
from perse.results.result import Estimate

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

ROW, TWO_MARKS = 0.36, 0.46
"""Inches of a row with one mark, and with two."""
_HEADER = ("model", "paradigm", "value", "low", "high", "items", "reason")
Values = dict[str, dict[Paradigm, Estimate]]
"""By model, what is known of it under each paradigm."""


def ranked(
    results: Results,
    values: Values,
    *,
    name: str,
    title: str,
    missing: Callable[[str], str],
    line: tuple[str, float] | None = None,
) -> Figure:
    """A row for each model, the highest on top, those without a value below; `line`: a value to compare with, in words and as a number."""
    order = sorted(models(results), key=lambda model: _first_value(values.get(model, {})), reverse=True)
    estimates = [estimate for model in order for estimate in values.get(model, {}).values()]
    known = [estimate for estimate in estimates if estimate.value is not None]
    if not known:
        reasons = [estimate.interval.reason or "undefined" for estimate in estimates] or [missing(model) for model in order]
        return empty(name, title=title, reason="; ".join(dict.fromkeys(reasons)) or "no models", header=_HEADER)
    paradigms = [paradigm for paradigm in PARADIGMS if any(paradigm in given for given in values.values())]
    looks = looks_of(results)
    labels = [*(paradigms if "reflection" in paradigms else ()), *([line[0]] if line else ())]
    row = TWO_MARKS if any(len(given) > 1 for given in values.values()) else ROW

    def paint(sheet: Sheet) -> None:
        axis = sheet.subplots()
        for place, model in enumerate(order):
            given = values.get(model, {})
            name_row(axis, -place, model, _in_row(given), strong=bool(given))
            _marks(axis, -place, given, looks[model], missing=missing(model))
        ends = [end for e in known for end in (e.value, e.interval.low, e.interval.high) if end is not None]
        around(axis, [*ends, *([line[1]] if line else [])], least=1.0)
        if line:
            rows = [NamedRow(model, _first(values.get(model, {})), looks[model]) for model in order]
            reference_line(axis, line[1], rows=rows, baseline=True)
        axis.set(ylim=(-len(order) + 0.5, 0.75), yticks=[], xlabel="percent")
        axis.spines["left"].set_visible(False)
        handles = paradigm_handles(paradigms) if "reflection" in paradigms else []
        if line:
            from matplotlib.lines import Line2D

            handles.append(Line2D([], [], color=DIM, linestyle=(0, (3, 2)), linewidth=1.2, label=line[0]))
        if handles:
            legend_above(sheet, handles)

    said = [f"{model} {_in_words(values[model])}" for model in order if _first_value(values.get(model, {})) > float("-inf")]
    beside = f" Dashed: {line[0]}." if line else ""
    return draw(
        name,
        paint,
        height=0.6 + row * len(order) + (legend_height(labels) if labels else 0.0),
        title=title,
        alt=f"{title}: highest first, {listed(said)}.{beside}{no_interval(known)}",
        header=_HEADER,
        rows=[(m, paradigm, *cells(estimate)) for m in order for paradigm, estimate in values.get(m, {}).items()],
    )


def _first(given: Mapping[Paradigm, Estimate]) -> Estimate | None:
    """What a model is ranked by: its structured prompt where that has a value."""
    known = [given[paradigm] for paradigm in PARADIGMS if paradigm in given and given[paradigm].value is not None]
    return known[0] if known else None


def _first_value(given: Mapping[Paradigm, Estimate]) -> float:
    first = _first(given)
    return float("-inf") if first is None or first.value is None else first.value


def _in_row(given: Mapping[Paradigm, Estimate]) -> str:
    """ "76.24, then 77.28" where both paradigms are there: the intervals of both would leave no room for a name."""
    if len(given) < 2:
        return "".join(map(value_in_words, given.values()))
    return ", then ".join("undefined" if e.value is None else f"{e.value:.2f}" for e in map(given.__getitem__, PARADIGMS))


def _in_words(given: Mapping[Paradigm, Estimate]) -> str:
    words = {paradigm: value_in_words(given[paradigm]) for paradigm in PARADIGMS if paradigm in given}
    if "reflection" not in words:
        return words["structured"]
    reflected = f"{words['reflection']} after reflection"
    return f"{words['structured']}, {reflected}" if "structured" in words else reflected


def _marks(axis: Axes, y: float, given: Mapping[Paradigm, Estimate], look: Style, *, missing: str) -> None:
    """A mark with its interval for each paradigm that has a value, below the row's name."""
    known = [(p, value, given[p].interval) for p in PARADIGMS if p in given and (value := given[p].value) is not None]
    if not known:
        reasons = [estimate.interval.reason for estimate in given.values() if estimate.interval.reason]
        words = plain(reasons[0] if reasons else missing, 58)
        axis.text(0, y, words, transform=axis.get_yaxis_transform(), color=DIM, fontsize=8.5, va="center", style="italic")
        return
    for nth, (paradigm, value, interval) in enumerate(known):
        at = y + (0.09 - 0.28 * nth if len(known) > 1 else 0.0)
        if interval.low is not None and interval.high is not None:
            axis.plot([interval.low, interval.high], [at, at], color=look.colour, linewidth=2, solid_capstyle="butt")
        face = PAPER if paradigm == "reflection" else look.colour
        axis.plot(value, at, look.marker, color=look.colour, markerfacecolor=face, markersize=6, zorder=3)


def looks_of(results: Results) -> dict[str, Style]:
    """A model looks the same in all figures."""
    return {model: style(n) for n, model in enumerate(models(results))}


def cells(estimate: Estimate) -> tuple[Cell, ...]:
    interval = estimate.interval
    return (estimate.value, interval.low, interval.high, estimate.items, interval.reason)


def paradigm_handles(paradigms: Sequence[Paradigm], *, lines: bool = False) -> list[Artist]:
    """Filled and hollow; `lines`: with the dash of a least-squares line."""
    from matplotlib.lines import Line2D

    faces, dashes = {"structured": DIM, "reflection": PAPER}, {"structured": "-", "reflection": (0, (3, 2))}
    return [
        Line2D(
            [], [], color=DIM, marker="o", markerfacecolor=faces[p], linestyle=dashes[p] if lines else "", markersize=6, label=p
        )
        for p in paradigms
    ]
