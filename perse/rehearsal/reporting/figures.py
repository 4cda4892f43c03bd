"""The paper's figure 3 of the run at hand, pass rate by iteration, and the methods' average scores.

Both are always drawn, so that every report has the same files; one without data says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perse.drawing.figure import Figure
from perse.drawing.marks import BASELINE, DIM, draw, empty, legend_above, legend_height, style
from perse.drawing.named_rows import ROW, NamedRow, around, dots, no_interval, value_in_words
from perse.rehearsal.methods import METHODS
from perse.rehearsal.scoring.results import AVERAGE, USER, Results
from perse.rehearsal.settings import EARLY, EARLY_PERCENT, LATE_PERCENT, MOST
from perse.reporting.trust_figures import listed
from perse.results.words import in_percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

Rates = Mapping[str, Sequence[float]]
"""What was played -> the share of samples that had passed after each iteration."""

AFTER, WITHOUT, PRACTICE = "suggestions after practice", "suggestions without practice", "practice"
_STOPS = f"stops at {EARLY_PERCENT}%, from {EARLY + 1} on at {LATE_PERCENT}%"
_DASHED = (0, (3, 2))
_HEADER = ("played", "demonstrations", "iteration", "passed, percent", "stops at, percent")


def rehearsal_figures(found: Results | None, rates: Rates, *, together: bool) -> tuple[Figure, ...]:
    """Args:
    found: None where nothing can be compared.
    together: whether a round of practice was shown the passed responses of those before it.
    Raises:
        BadInput: matplotlib is not installed.
    """
    return (pass_rates(rates, together=together), averages(found, AVERAGE), averages(found, USER))


def shown(name: str, *, together: bool) -> bool:
    """Whether this was played with demonstrations."""
    return name == AFTER or (together and name.startswith(PRACTICE) and name != f"{PRACTICE} 1")


def stop_at(iteration: int) -> float:
    """At which pass rate the role-play stops after this iteration."""
    return EARLY_PERCENT if iteration <= EARLY else LATE_PERCENT if iteration <= MOST else 0.0


def pass_rates(rates: Rates, *, together: bool) -> Figure:
    """Figure 3: a line for the suggestions with and without demonstrations, a thin one for each round of practice, and where it stops."""
    name, title = "figure-3-pass-rates", "Figure 3: pass rate by iteration, with and without demonstrations"
    if not any(rates.values()):
        return empty(name, title=title, reason="nobody was supervised", header=_HEADER)
    lines = [_line(of_one, rates[of_one], together=together) for of_one in in_order(rates)]
    looks = {line.label: line for line in lines}
    last = max(map(len, rates.values()))
    end = max(last, 2) + 0.35

    def paint(sheet: Sheet) -> None:
        from matplotlib.lines import Line2D

        axis = sheet.subplots()
        axis.plot(*zip(*_steps(end), strict=True), color=BASELINE, linewidth=1.2, linestyle=_DASHED, zorder=1)
        for line in reversed(lines):  # the suggestions over the practice
            percent = [100 * rate for rate in line.rates]
            axis.plot(range(1, len(percent) + 1), percent, clip_on=False, **line.drawn)
        axis.set(xlim=(0.65, end), ylim=(0, 103), xlabel="iteration", ylabel="passed, percent of samples")
        axis.set_xticks(range(1, max(last, 2) + 1))
        axis.grid(axis="y")
        handles = [Line2D([], [], label=label, **line.drawn) for label, line in looks.items()]
        legend_above(sheet, [*handles, Line2D([], [], color=BASELINE, linewidth=1.2, linestyle=_DASHED, label=_STOPS)])

    said = [f"{of_one} {_path(rates[of_one])}" for of_one in in_order(rates) if not of_one.startswith(PRACTICE)]
    return draw(
        name,
        paint,
        height=2.7 + legend_height([*looks, _STOPS]),
        title=title,
        alt=f"{title}: {listed(said or [f'{of_one} {_path(rates[of_one])}' for of_one in in_order(rates)])}. Dashed: {_STOPS}.",
        header=_HEADER,
        rows=[
            (of_one, "yes" if shown(of_one, together=together) else "no", iteration, 100 * rate, stop_at(iteration) or None)
            for of_one in in_order(rates)
            for iteration, rate in enumerate(rates[of_one], start=1)
        ],
    )


@dataclass(frozen=True)
class _Line:
    """A line of figure 3. Rounds of practice that were shown the same look the same."""

    label: str
    rates: Sequence[float]
    drawn: dict[str, Any]


def _line(name: str, rates: Sequence[float], *, together: bool) -> _Line:
    """With demonstrations in one colour, without in another; practice thin."""
    with_them = shown(name, together=together)
    look = style(0 if with_them else 1)
    drawn: dict[str, Any] = {"color": look.colour, "marker": look.marker, "linewidth": 1.9, "markersize": 6, "zorder": 3}
    if not name.startswith(PRACTICE):
        return _Line(name, rates, drawn)
    label = f"rounds of practice{', with demonstrations' if with_them else ''}"
    return _Line(label, rates, {**drawn, "linewidth": 1.0, "markersize": 3.5, "linestyle": (0, (1.5, 1.5)), "zorder": 2})


def in_order(rates: Rates) -> list[str]:
    """What was played: the suggestions, then the rounds of practice."""
    return [
        *(name for name in (AFTER, WITHOUT) if rates.get(name)),
        *(n for n in rates if n not in (AFTER, WITHOUT) and rates[n]),
    ]


def _steps(end: float) -> list[tuple[float, float]]:
    """Where the role-play stops, up to iteration `end`."""
    edges = [(0.65, EARLY + 0.5, EARLY_PERCENT), (EARLY + 0.5, MOST + 0.5, LATE_PERCENT)]
    return [(x, float(percent)) for start, stop, percent in edges if start < end for x in (start, min(stop, end))]


def _path(rates: Sequence[float]) -> str:
    """ "41% after iteration 1, 87% after iteration 6"."""
    ends = dict.fromkeys((1, len(rates)))
    return ", ".join(f"{in_percent(rates[place - 1])} after iteration {place}" for place in ends)


def averages(found: Results | None, of: str) -> Figure:
    """A row for each method, in the paper's order: the mean of all six scores, or of the two against the user's own review."""
    title = {AVERAGE: "Average of all six scores", USER: "Mean of the two scores against the user's own review"}[of]
    header = ("method", "value", "low", "high", "samples")
    if found is None:
        return empty(f"scores-{of}", title=title, reason="no sample has scores under every method", header=header)
    values = {METHODS[method].published: estimates[of] for method, estimates in found.rows.items()}
    rows = [
        NamedRow(METHODS[method].published, estimates[of], style(0 if METHODS[method].plays else 1))
        for method, estimates in found.rows.items()
    ]

    def paint(sheet: Sheet) -> None:
        axis = sheet.subplots()
        dots(axis, rows)
        ends = [end for e in values.values() for end in (e.value, e.interval.low, e.interval.high) if end is not None]
        around(axis, ends, least=1.0)
        axis.set_xlabel("score, 0 to 100")
        axis.xaxis.label.set_color(DIM)

    said = [f"{name} {value_in_words(estimate)}" for name, estimate in values.items()]
    return draw(
        f"scores-{of}",
        paint,
        height=0.6 + ROW * len(rows),
        title=title,
        alt=f"{title}: {listed(said)}. Each interval is of one value.{no_interval(list(values.values()))}",
        header=header,
        rows=[(name, e.value, e.interval.low, e.interval.high, e.items) for name, e in values.items()],
    )
