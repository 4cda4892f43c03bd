"""A cell in words, the same in every medium: a value with its interval, a text, or a placeholder.

Media with room (Markdown, HTML, CSV) say in the cell why an interval is undefined; a terminal says it once below the table.
"""

from __future__ import annotations

from collections.abc import Sequence

from perse.results.result import FINEST, Cell, Estimate, Table

ABSENT = "-"
UNDEFINED = "undefined"
MARK = "*"
"""Behind an interval that is of fewer resamples than were drawn."""


def value_and_interval(estimate: Estimate, *, digits: int = 3, reasons: bool = True) -> tuple[str, str]:
    """A value, and its interval in brackets ("" where the value itself is undefined).

    Args:
        digits: decimals of both; more, up to `FINEST`, where an end that is not 0 would look like 0.
        reasons: spell out why a value is undefined.
    """
    reason = (estimate.interval.reason if reasons else None) or UNDEFINED
    if estimate.value is None:
        return reason, ""
    sign = "+" if estimate.difference else ""
    low, high = estimate.interval.low, estimate.interval.high
    mark = MARK if estimate.of_fewer_resamples else ""
    if low is None or high is None:
        between = f"[{reason}]"
    else:
        digits = _telling_apart_from_zero(low, high, digits=digits)
        between = f"[{low:z.{digits}f}, {high:z.{digits}f}]{mark}"
    return f"{estimate.value:{sign}z.{digits}f}", between


def _telling_apart_from_zero(low: float, high: float, *, digits: int) -> int:
    """Rounding must not contradict the word: an interval above 0 is not shown as one that begins at 0."""
    finest = max(digits, FINEST)
    nonzero = [end for end in (low, high) if round(end, finest)]
    return next((more for more in range(digits, finest) if all(round(end, more) for end in nonzero)), finest)


def telling_apart(one: float, other: float, *, digits: int = 3) -> int:
    """Decimals with which a number does not look like its bound: `digits`, or more, up to `FINEST`."""
    finest = max(digits, FINEST)
    return next(
        (more for more in range(digits, finest) if round(one, more) != round(other, more)), finest if one != other else digits
    )


def in_percent(share: float, *, digits: int = 0) -> str:
    """A share, with more decimals where it would look like none or all and is neither: 0% and 100% are said of these alone."""
    percent = 100 * share
    whole = 100.0 if share > 0.5 else 0.0
    return f"{percent:.{digits if abs(percent - whole) < 1e-9 else telling_apart(percent, whole, digits=digits)}f}%"


def shown(cell: Cell, *, digits: int = 3, reasons: bool = True) -> str:
    """A cell in one line, as in a sentence: without the asterisk, which a table explains below it; see `value_and_interval`."""
    if cell is None:
        return ABSENT
    if isinstance(cell, str):
        return cell
    value, between = value_and_interval(cell, digits=digits, reasons=reasons)
    return f"{value} {between.removesuffix(MARK)}".strip()


def alike(said: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Names with what is said of each, those of which the same is said together: "one, other: what"."""
    names: dict[str, list[str]] = {}
    for name, what in said:
        names.setdefault(what, []).append(name)
    return tuple(f"{', '.join(some)}: {what}" for what, some in names.items())


def footnotes(table: Table) -> tuple[str, ...]:
    """The table's own notes, then why its values and intervals are undefined, and the meaning of an asterisk."""
    values = list(table.estimates())
    no_value = dict.fromkeys(one.interval.reason or UNDEFINED for one in values if one.value is None)
    no_interval = dict.fromkeys(one.interval.reason for one in values if one.value is not None and one.interval.reason)
    said = [f"some values are {reason}" for reason in no_value if reason != UNDEFINED]
    said += [f"some intervals are {reason}" for reason in no_interval]
    if most := max((one.interval.undefined_resamples for one in values if one.of_fewer_resamples), default=0):
        said.append(f"{MARK}: the value is undefined in some resamples (at most {most}); the interval is that of the others")
    return (*table.notes, *said)


def one_line(text: str) -> str:
    """A text from a file in one line, without control characters."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
