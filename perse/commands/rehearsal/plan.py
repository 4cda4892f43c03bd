"""`perse rehearsal plan`: what a run would ask, before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.options.rehearsal import Constants, Data, Methods, Samples
from perse.commands.showing import show_result
from perse.commands.terminal import err

if TYPE_CHECKING:
    from perse.rehearsal.planning import Count


@grouped
def plan(
    *,
    data: Data,
    method: Methods = None,
    samples: Samples = None,
    constants: Constants,
    answer_tokens: Annotated[int, typer.Option(min=1, help="How long an answer is assumed to be.")] = 200,
    iterations: Annotated[int, typer.Option(min=1, help="In which a supervisor is assumed to pass a response.")] = 2,
    context: options.Context = None,
    cache_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tokens of prompts that the engine remembers; vLLM says at its start how many.",
            show_default="all of them",
        ),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="Counts tokens: a model's folder or name.", show_default="4 characters a token")
    ] = None,
    prefill: Annotated[float | None, typer.Option(min=0.001, help="Tokens that the engine reads in a second.")] = None,
    decode: Annotated[
        float | None, typer.Option(min=0.001, help="Tokens that the engine writes in a second, all together.")
    ] = None,
    scored: Annotated[bool, typer.Option("--scored/--not-scored", help="Whether `perse rehearsal score` is counted.")] = True,
    medium: Medium,
) -> None:
    """Count calls, tokens and their shared part, and the hours at a stated rate; nothing is asked.

    Example:  perse rehearsal plan work/persum --prefill 20000 --decode 2000
    """
    from perse.errors import BadInput
    from perse.rehearsal.methods import PAPER
    from perse.rehearsal.planning import Assumed
    from perse.rehearsal.planning import plan as planned
    from perse.rehearsal.samples import read_samples
    from perse.rehearsal.telling import plan_result

    if (prefill is None) != (decode is None):
        raise BadInput("hours need both rates: give --prefill and --decode")
    given = read_samples(data, limit=samples)
    methods = [str(one.value) for one in method or []] or list(PAPER)
    with err.status("planning"):
        found = planned(
            given.samples, methods, constants.settings(),
            assumed=Assumed(answer_tokens, iterations, context, cache_tokens), count=_counted_by(tokenizer), scored=scored,
        )  # fmt: skip
    show_result(plan_result(found, prefill=prefill, decode=decode), medium)


def _counted_by(tokenizer: str | None) -> Count | None:
    if tokenizer is None:
        return None
    from perse.models.finding import find_tokenizer
    from perse.models.opening import tokenizer as opened

    counting = opened(find_tokenizer(tokenizer))
    return lambda text: len(counting.encode(text, add_special_tokens=False))
