"""A plan as a `Result`."""

from __future__ import annotations

from perse.rehearsal.planning import Load, Plan
from perse.results.result import Cell, Result, Table

REHEARSAL_PLAN = "rehearsal-plan"


def plan_result(found: Plan, *, prefill: float | None, decode: float | None) -> Result:
    """What is asked of whom.

    Args:
        prefill, decode: tokens a second, read and written, that are assumed of the engine; without them no hours are told.
    """
    total = found.total
    hours = _hours(total, prefill, decode)
    share = total.shared / total.prompt if total.prompt else 0.0
    told = f"{total.calls:,} calls, {total.prompt:,} prompt tokens, of which {share:.0%} begin as an earlier prompt did, and {total.generated:,} written"
    at = f" At {prefill:,g} tokens read and {decode:,g} written a second it takes {hours}." if hours else ""
    rows = [*found.loads.items(), ("all", total)]
    return Result(
        name=REHEARSAL_PLAN,
        asks=f"What do {found.samples} samples under {len(found.methods)} methods ask of the models?",
        answer=f"{told}.{at}",
        tables=(
            Table(
                title="By role",
                header=("role", "calls", "prompt tokens", "shared", "written", *(("hours",) if hours else ())),
                rows=tuple((name, *_cells(load), *((_hours(load, prefill, decode),) if hours else ())) for name, load in rows),
                breaks=(len(rows) - 1,),
            ),
        ),
        notes=(
            f"assumed: answers of {found.assumed.answer_tokens} tokens, responses that pass in iteration {found.assumed.iterations}, no answer in the "
            f"wrong form, and an engine that remembers {'all prompts' if found.assumed.cache is None else f'{found.assumed.cache:,} tokens of prompts'}, and shares "
            "what a new one begins with",
            *(
                (
                    "all samples go through a step before the next begins, so an engine that remembers less than their reviews shares much less: --cache-tokens",
                )
                if found.assumed.cache is None
                else ()
            ),
            *(
                ("assumed, too: a personal judge that would rather have every rewriting",)
                if "personal judge" in found.loads
                else ()
            ),
            *(f"{count} prompts of '{step}' would not fit, and be None" for step, count in found.none.items()),
        ),
        details={"loads": {name: vars(load) for name, load in rows}},
    )


def _cells(load: Load) -> tuple[Cell, ...]:
    share = load.shared / load.prompt if load.prompt else 0.0
    return f"{load.calls:,}", f"{load.prompt:,}", f"{share:.0%}", f"{load.generated:,}"


def _hours(load: Load, prefill: float | None, decode: float | None) -> str | None:
    if not (prefill and decode):
        return None
    hours = ((load.prompt - load.shared) / prefill + load.generated / decode) / 3600
    return f"{hours:.1f} hours" if hours >= 0.1 else f"{60 * hours:.1f} minutes"
