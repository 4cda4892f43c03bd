"""What judges cost: tokens, money, time, and how much of the profiles they were shown.

Counted over a judge's whole run, not over the items of a table: the run is what is paid for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from perse.errors import BadInput
from perse.evaluation.stats.results import Spent
from perse.judgement import Judgement, Prices, Status

_UNSHOWN = {Status.ENGINE_ERROR, Status.TOO_LONG}
"""Judgements of which no prompt was read."""


def spent(judgements: Sequence[Judgement], *, prices: Prices | None = None, seconds: float | None = None) -> Spent:
    """Tokens of all judgements, though of requests that failed none are known; cost and time where they are known."""
    shown = [one.k_effective for one in judgements if one.status not in _UNSHOWN]
    return Spent(
        judgements=len(judgements),
        prompt=sum(judgement.tokens.prompt for judgement in judgements),
        cached=sum(judgement.tokens.cached for judgement in judgements),
        generated=sum(judgement.tokens.generated for judgement in judgements),
        k_effective=fsum(shown) / len(shown) if shown else None,
        prices=prices,
        cost=prices.cost(judgements) if prices else None,
        seconds=seconds,
    )


def parse_prices(given: Sequence[str], names: Iterable[str]) -> dict[str, Prices]:
    """From "NAME=INPUT,OUTPUT" or "NAME=INPUT,OUTPUT,CACHED", per million tokens.

    Raises:
        BadInput: not so written, or of no judge of the table.
    """
    known = list(names)
    found: dict[str, Prices] = {}
    for price in given:
        name, sign, numbers = price.rpartition("=")
        if not sign:
            raise BadInput(f"--prices '{price}' names no judge; write NAME=INPUT,OUTPUT or NAME=INPUT,OUTPUT,CACHED")
        if name not in known:
            raise BadInput(f"--prices names '{name}', but the judges are {', '.join(known)}; use one of these names")
        found[name] = Prices.parse(numbers)
    return found


def with_costs(
    judges: Mapping[str, Sequence[Judgement]], *, prices: Mapping[str, Prices], seconds: Mapping[str, float]
) -> dict[str, Spent]:
    """`spent` of each judge."""
    return {name: spent(judgements, prices=prices.get(name), seconds=seconds.get(name)) for name, judgements in judges.items()}
