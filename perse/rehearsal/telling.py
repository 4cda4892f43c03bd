"""A plan as a `Result`."""

from __future__ import annotations

from perse.rehearsal.planning import Plan
from perse.results.result import Result, Table

REHEARSAL_PLAN = "rehearsal-plan"


def plan_result(found: Plan, *, prefill: float | None, decode: float | None) -> Result:
    """What is asked of whom.

    Args:
        prefill, decode: tokens a second, read and written, that are assumed of the engine; without them no hours are told.
    """
    total = found.total
    hours = total.time(prefill, decode)
    told = f"{total.calls:,} calls, {total.prompt:,} prompt tokens, of which {total.share:.0%} begin as an earlier prompt did, and {total.generated:,} written"
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
                rows=tuple((name, *load.cells, *((load.time(prefill, decode),) if hours else ())) for name, load in rows),
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
