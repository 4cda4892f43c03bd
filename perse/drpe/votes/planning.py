"""What a vote would ask, before it begins: the same ballots, counted instead of asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perse.drpe.documents import Documents
from perse.drpe.roles import Role
from perse.drpe.votes.ballots import NAMES, PAIRS, Ballots, Voting, make_ballots
from perse.drpe.votes.readers import Reader
from perse.questions.votes import VOTE, VOTE_READER, VOTES
from perse.records import PairwiseExample, ReaderVoteExample, VotesExample
from perse.results.result import Result, Table
from perse.writing.load import Count, Prompts, quarter, total_of

DRPE_PLAN = "drpe-plan"
LABEL = 1
"""Tokens of a vote itself."""


@dataclass(frozen=True)
class Assumed:
    """What a plan cannot know. `reason`: tokens of one; `cache`: tokens of prompts that the engine remembers, None for all."""

    reason: int = 30
    cache: int | None = None


def plan(
    documents: Documents,
    roles: Mapping[str, Sequence[Role]],
    voting: Voting,
    *,
    readers: Sequence[Reader] = (),
    assumed: Assumed,
    count: Count | None = None,
) -> tuple[Ballots, Prompts]:
    """The ballots, and their prompts in the order in which they would be asked.

    Raises:
        BadInput: as `make_ballots`.
    """
    made = make_ballots(documents.documents, roles, voting, readers)
    prompts = Prompts(count or quarter, assumed.cache)
    for prompting, examples in made.examples.items():
        for example in sorted(examples, key=lambda one: one.reviewer_id):  # as `Judge.stream` asks them
            if isinstance(example, VotesExample):
                [ask] = VOTES.asks(example, ())
                prompts.note(NAMES[prompting], ask.text, generated=len(example.voters) * (assumed.reason + LABEL))
            elif isinstance(example, PairwiseExample):
                [ask] = PAIRS.asks(example, example.profile)
                prompts.note("real readers", ask.text, generated=LABEL)
            elif isinstance(example, ReaderVoteExample):
                [ask] = VOTE_READER.asks(example, example.profile)
                prompts.note("real readers", ask.text, generated=assumed.reason + LABEL)
            else:
                [ask] = VOTE.asks(example, ())
                prompts.note(NAMES[prompting], ask.text, generated=assumed.reason + LABEL)
    return made, prompts


def with_stand_ins(roles: Mapping[str, Sequence[Role]], number: int) -> dict[str, tuple[Role, ...]]:
    """So many more roles of each document, of a usual length."""
    made = tuple(
        Role(
            type=f"Reader {n}",
            description="Has a reason of their own to read this, and asks what the text does for it.",
            source="coarse",
        )
        for n in range(1, number + 1)
    )
    return {name: (*of_one, *made) for name, of_one in roles.items()}


def plan_result(
    made: Ballots, prompts: Prompts, *, assumed: Assumed, prefill: float | None, decode: float | None, notes: Sequence[str] = ()
) -> Result:
    """Calls, tokens and, at stated rates, hours."""
    whole = total_of(prompts.loads)
    rows = [*prompts.loads.items(), ("all", whole)]
    hours = whole.time(prefill, decode)
    decisions = len({(one.document, one.system, one.prompting) for one in made.ballots})
    at = f" At {prefill:,g} tokens read and {decode:,g} written a second it takes {hours}." if hours else ""
    return Result(
        name=DRPE_PLAN,
        asks="What does this vote ask of the judge?",
        answer=f"{len(made.ballots):,} votes for {decisions:,} decisions: {whole.calls:,} calls, {whole.prompt:,} prompt tokens, of which {whole.share:.0%} begin as an earlier "
        f"prompt did, and {whole.generated:,} written.{at}",
        tables=(
            Table(
                title="By prompting",
                header=("prompting", "calls", "prompt tokens", "shared", "written", *(("hours",) if hours else ())),
                rows=tuple((name, *load.cells, *((load.time(prefill, decode),) if hours else ())) for name, load in rows),
                breaks=(len(rows) - 1,),
            ),
        ),
        notes=(
            f"assumed: reasons of {assumed.reason} tokens, and an engine that remembers {'all prompts' if assumed.cache is None else f'{assumed.cache:,} tokens of prompts'}, "
            "and shares what a new one begins with",
            *notes,
            *((f"{len(made.unreferenced):,} documents have no reference, and are left out",) if made.unreferenced else ()),
        ),
        details={"loads": {name: vars(load) for name, load in rows}},
    )
