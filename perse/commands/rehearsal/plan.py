"""`perse rehearsal plan`: what a run would ask, before it begins."""

from __future__ import annotations

from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.options.rates import Rates
from perse.commands.options.rehearsal import Constants, Data, Methods, Samples
from perse.commands.showing import show_result
from perse.commands.terminal import err


@grouped
def plan(
    *,
    data: Data,
    method: Methods = None,
    samples: Samples = None,
    constants: Constants,
    answer_tokens: Annotated[int, typer.Option(min=1, max=1_000_000, help="How long an answer is assumed to be.")] = 200,
    iterations: Annotated[int, typer.Option(min=1, max=1000, help="In which a supervisor is assumed to pass a response.")] = 2,
    context: options.Context = None,
    rates: Rates,
    scored: Annotated[bool, typer.Option("--scored/--not-scored", help="Whether `perse rehearsal score` is counted.")] = True,
    medium: Medium,
) -> None:
    """Count calls, tokens and their shared part, and the hours at a stated rate; nothing is asked.

    Example:  perse rehearsal plan work/persum --prefill 20000 --decode 2000
    """
    from perse.rehearsal.methods import PAPER
    from perse.rehearsal.planning import Assumed
    from perse.rehearsal.planning import plan as planned
    from perse.rehearsal.samples import read_samples
    from perse.rehearsal.telling import plan_result

    rates.check()
    given = read_samples(data, limit=samples)
    methods = [str(one.value) for one in method or []] or list(PAPER)
    with err.status("planning"):
        found = planned(
            given.samples, methods, constants.settings(),
            assumed=Assumed(answer_tokens, iterations, context, rates.cache_tokens), count=rates.count(), scored=scored,
        )  # fmt: skip
    show_result(plan_result(found, prefill=rates.prefill, decode=rates.decode), medium)
