"""`perse rehearsal run`: write the summaries of all methods."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.rehearsal import Cast, Constants, Data, Methods, Samples
from perse.commands.terminal import err, say
from perse.progress import shown_on

if TYPE_CHECKING:
    from pathlib import Path

    from perse.judging.judge import Judge


@grouped
def run(
    *,
    data: Data,
    cast: Cast,
    out: options.Out,
    method: Methods = None,
    samples: Samples = None,
    constants: Constants,
    loading: Loading,
    as_json: options.AsJson = False,
) -> None:
    """Write a summary for every sample by each method; the same command continues after a stop, and adds methods.

    Example:  perse rehearsal run work/persum --writer smollm2-135m --max-iterations 2 --max-new-tokens 128 --out runs/rehearsal

    As the paper:  perse rehearsal run work/persum --writer openai:https://api.openai.com/v1#gpt-4o --out runs/gpt-4o

    One method:  perse rehearsal run work/persum --writer vllm:MODEL --method rehearsal --method sum-perchan --out runs/two

    The reader's own judge beside the paper's supervisor:  perse rehearsal run work/persum --writer MODEL --supervisor personal:runs/judge --out runs/both
    """
    from perse.rehearsal.folder import summary_of_run
    from perse.rehearsal.methods import METHODS, PAPER, check_judged
    from perse.rehearsal.preferring import PersonalJudge
    from perse.rehearsal.process import rehearse
    from perse.rehearsal.samples import read_samples
    from perse.writing.writer import Writer

    settings = constants.settings()
    given = read_samples(data, limit=samples)
    own = cast.personal
    methods = [str(one.value) for one in method or []] or list(METHODS if own else PAPER)
    check_judged(methods, personal=own is not None)
    scored = settings.best != "last"
    names = {str(role): name for role, name in cast.roles.items()}
    if scored:
        names["judge"] = cast.judge or cast.writer
    if own:
        names["personal judge"] = own
    loaded: dict[str, Judge] = {}
    for name in names.values():
        if name not in loaded:
            loaded[name] = loading.load(name, writes=name not in (names.get("judge"), own))
    writers = {role: Writer(loaded[name]) for role, name in cast.roles.items()}
    with shown_on(err) as on_part:
        rehearse(
            writers, loaded[names["judge"]] if scored else None, given.samples, out,
            digest=given.digest, methods=methods, settings=settings, on_progress=on_part,
            personal=PersonalJudge(loaded[own], cast.gain) if own else None,
        )  # fmt: skip
    told = summary_of_run(out)
    for line in told.lines():
        say(line)
    say(f"summaries: {out}  next: {next_command(data, out, limit=samples)}")
    if as_json:
        typer.echo(json.dumps({"run": str(out), "methods": told.methods, "rates": told.rates, "ends": told.ends}, indent=2))


def next_command(data: Path, out: Path, *, limit: int | None) -> str:
    """What scores these summaries: of the same samples, or it is refused."""
    return f"perse rehearsal score {data} {out}{'' if limit is None else f' --limit {limit}'} --judge JUDGE"
