"""Dates that can be sorted, and records sorted by them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

from perse.records.reviews import Comparison, Review

Record = TypeVar("Record", Review, Comparison)


_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_NAMED = re.compile(
    "(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
    r"\.? (\d\d?), (\d{4})",
    re.IGNORECASE | re.ASCII,
)


def sortable(time: str | None) -> datetime | None:
    """The moment that an ISO date (2018-11-10, with or without a time of day) or "November 10, 2018" names; None for anything else.

    Other formats are not guessed at: 02/03/2018 is ambiguous. A time without a zone is taken as UTC.
    """
    if time is not None and (named := _NAMED.fullmatch(time.strip())):
        month = _MONTHS.find(named[1][:3].casefold()) // 3 + 1
        try:
            return datetime(int(named[3]), month, int(named[2]), tzinfo=UTC)
        except ValueError:
            return None
    if time is None or not re.match(r"\d{4}-\d{2}-\d{2}", time):
        return None
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def oldest_first(profile: Sequence[Record]) -> list[Record]:
    """The profile by time if every time is an ISO date, else as it is. Equal times keep their order."""
    times = [sortable(record.time) for record in profile]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return list(profile)
    return [profile[place] for place in sorted(range(len(known)), key=known.__getitem__)]
