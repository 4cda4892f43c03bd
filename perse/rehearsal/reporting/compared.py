"""With which text each text of a trace is compared: a revised response with the one before it, a version with what it was rewritten from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perse.rehearsal.folder import Played, Response, Round, Trace, Turn, Version


@dataclass(frozen=True)
class ComparedTurn:
    """A turn, and the response that was revised; None of the first, and where there is no response."""

    turn: Turn
    before: Response | None


@dataclass(frozen=True)
class ComparedVersion:
    """A rewriting, and the summary that it was made from; None where there is no version."""

    version: Version
    before: str | None


@dataclass(frozen=True)
class ComparedRound:
    """A round under the personal judge, and the summary that it began from; None where there is no rewriting."""

    round: Round
    before: str | None


def in_chain(made: Mapping[str, Any]) -> bool:
    """Whether each version was made from the one before it, by the run's manifest."""
    rewriting: object = made.get("run", {}).get("settings", {}).get("rewriting")
    return rewriting != "fresh"


def turns(played: Played) -> list[ComparedTurn]:
    """In order. A response that could not be had is passed over: the next is a revision of the one before."""
    found: list[ComparedTurn] = []
    last: Response | None = None
    for turn in played.turns:
        found.append(ComparedTurn(turn, last if turn.response is not None else None))
        last = turn.response or last
    return found


def versions(trace: Trace, *, chain: bool) -> list[ComparedVersion]:
    """In order.

    Args:
        chain: as `in_chain`; otherwise all were made from the general summary.
    """
    found: list[ComparedVersion] = []
    last = trace.general
    for version in trace.versions:
        found.append(ComparedVersion(version, last if version.summary is not None else None))
        last = (version.summary if chain else None) or last
    return found


def rounds(trace: Trace) -> list[ComparedRound]:
    """In order; each began from the last summary that stood."""
    found: list[ComparedRound] = []
    standing = trace.general
    for one in trace.rounds:
        found.append(ComparedRound(one, standing if one.summary is not None else None))
        standing = one.summary if one.stands else standing
    return found
