"""A Comparison as text: what it comes to in a sentence a pair, then the numbers, for a terminal of 120 columns or as Markdown.

Both are made from the same sheets, so that they cannot tell different things.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from perse.evaluation.comparing.results import LEVEL, Comparison, Contrast, Pairing
from perse.evaluation.comparing.words import difference_shown, metric_name, p_shown
from perse.evaluation.stats.results import LOWER_IS_BETTER, Estimate

ABSENT = "-"
_READINGS = {"expected": "expected scores", "likeliest": "likeliest choices", "label": "labels"}


@dataclass(frozen=True)
class _Sheet:
    title: str
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    footnotes: tuple[str, ...] = ()


def comparison_view(comparison: Comparison) -> RenderableType:
    """The sentences, then the tables."""
    said = [_text(f"{pairing.verdict}.") for pairing in comparison.pairings]
    return Group(*said, *(_rich(sheet) for sheet in _sheets(comparison)))


def comparison_markdown(comparison: Comparison) -> str:
    """The same as Markdown. Names from files are escaped."""
    said = [f"- {_escaped(pairing.verdict)}." for pairing in comparison.pairings]
    return "\n".join([*said, "", *(_markdown(sheet) for sheet in _sheets(comparison))])


def _sheets(comparison: Comparison) -> Iterator[_Sheet]:
    yield _runs(comparison)
    yield _baselines(comparison)
    for pairing in comparison.pairings:
        yield _pairing(pairing, chosen=comparison.kind == "pairwise")


def _runs(comparison: Comparison) -> _Sheet:
    lines = []
    for name, asked in comparison.judges.items():
        more = ", ..." if asked.dropped > len(asked.dropped_ids) else ""
        dropped = f"{asked.dropped}" + (f" ({', '.join(asked.dropped_ids)}{more})" if asked.dropped else "")
        lines.append((name, str(asked.judged), str(asked.common), str(asked.ok), dropped))
    drawn_from = "reviewers and the texts" if comparison.resample == "two-way" else "reviewers"
    drawn = f"{comparison.permutations} exchanges drawn"
    if any(contrast.p_exact for pairing in comparison.pairings for contrast in pairing.contrasts):
        drawn = f"of all exchanges where there are at most {comparison.permutations}, else {drawn}"
    notes = [
        f"intervals: 95%, bootstrap over the {drawn_from}, {comparison.resamples} resamples, seed {comparison.seed}",
        f"p: two-sided, answers exchanged reviewer by reviewer, {drawn}",
        f"p (Holm): adjusted over all {comparison.family} p values here; at most {LEVEL} is called a difference",
        *comparison.notes,
    ]
    if "pearson" in comparison.metrics:
        notes.append("p (Williams): for comparability with papers only; it takes the items of a reviewer for independent")
    title = f"Compared on {comparison.items} items of {comparison.reviewers} reviewers"
    return _Sheet(title, ("judge", "judged", "common", "answered", "dropped"), tuple(lines), tuple(notes))


def _baselines(comparison: Comparison) -> _Sheet:
    """What needs no judge, whether or not it is compared with."""
    header = ("", *map(metric_name, comparison.metrics))
    lines, notes = [], []
    for one in comparison.baselines:
        if one.unavailable is not None:
            lines.append((one.name, *[ABSENT] * len(comparison.metrics)))
            notes.append(f"{one.name}: {one.unavailable}")
            continue
        lines.append((one.name, *(_estimate(one.values[metric]) for metric in comparison.metrics)))
        notes += [f"{one.name}: {given.interval.reason}" for given in one.values.values() if given.interval.reason]
    return _Sheet(f"Without a judge, all {comparison.items} items", header, tuple(lines), tuple(dict.fromkeys(notes)))


def _estimate(estimate: Estimate) -> str:
    """Why there is no interval is told below the table."""
    low, high = estimate.interval.low, estimate.interval.high
    if estimate.value is None or low is None or high is None:
        return _value(estimate.value)
    return f"{estimate.value:z.3f} [{low:z.3f}, {high:z.3f}]"


def _pairing(pairing: Pairing, *, chosen: bool) -> _Sheet:
    williams = any(contrast.williams_p is not None for contrast in pairing.contrasts)
    header = ("", pairing.one, pairing.other, "difference", "p", "p (Holm)", *(["p (Williams)"] if williams else []))
    where = f"{_READINGS[pairing.reading]}, {pairing.answered} of {pairing.items} items answered by both"
    if chosen:
        where += ", not answered = wrong"
    lines, notes = [], []
    for contrast in pairing.contrasts:
        last = [ABSENT if contrast.williams_p is None else p_shown(contrast.williams_p)] if williams else []
        lower = " (less is better)" if contrast.metric in LOWER_IS_BETTER else ""
        values = (
            _value(contrast.one),
            _value(contrast.other),
            _difference(contrast),
            p_shown(contrast.p),
            p_shown(contrast.p_holm),
        )
        lines.append((metric_name(contrast.metric) + lower, *values, *last))
        notes += [f"p: {contrast.p_reason}"] if contrast.p is None and contrast.p_reason else []
        notes += [f"interval: {contrast.interval.reason}"] if contrast.interval.reason else []
    title = f"{pairing.one} minus {pairing.other}: {where}"
    return _Sheet(title, header, tuple(lines), tuple(dict.fromkeys(notes)))


def _value(value: float | None) -> str:
    return "undefined" if value is None else f"{value:z.3f}"


def _difference(contrast: Contrast) -> str:
    """Why there is no interval is told below the table."""
    if contrast.difference is not None and contrast.interval.reason:
        return f"{contrast.difference:+z.3f} [undefined]"
    return difference_shown(contrast)


def _rich(sheet: _Sheet) -> RenderableType:
    """The footnotes are no caption of the table, which would break them to its width."""
    table = Table(
        title=_text("\n" + sheet.title),
        title_style="bold",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for position, name in enumerate(sheet.header):
        table.add_column(_text(name), justify="left" if _is_text(position, name) else "right", overflow="fold")
    for line in sheet.lines:
        table.add_row(*map(_text, line))
    notes = [Padding(Text(_text(note).plain, style="dim"), (0, 0, 0, 1)) for note in sheet.footnotes]
    return Group(table, *notes)


def _is_text(position: int, name: str) -> bool:
    return position == 0 or name == "dropped"


def _text(shown: str) -> Text:
    """Names come from files: no markup, no control characters."""
    return Text("".join(letter for letter in shown if letter.isprintable() or letter == "\n"))


def _markdown(sheet: _Sheet) -> str:
    rule = "".join("---|" if _is_text(position, name) else "---:|" for position, name in enumerate(sheet.header))
    lines = [f"### {_escaped(sheet.title)}", "", _line(sheet.header), f"|{rule}", *map(_line, sheet.lines)]
    notes = [f"- {_escaped(note)}" for note in sheet.footnotes]
    return "\n".join([*lines, *([""] if notes else []), *notes, ""])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return html.escape(plain, quote=False).replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`")
