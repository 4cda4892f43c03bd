"""`perse drpe plan`: what a vote would ask, before it begins."""

from __future__ import annotations

from typing import Annotated

import typer

from perse.commands.options.drpe import DocumentsFile, FirstDocuments, Thinning
from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.options.rates import Rates
from perse.commands.options.voting import Ballot
from perse.commands.showing import show_result
from perse.commands.terminal import err


@grouped
def plan(
    *,
    documents: DocumentsFile,
    limit: FirstDocuments = None,
    ballot: Ballot,
    thinning: Thinning,
    invented: Annotated[
        int,
        typer.Option(min=0, max=1000, help="Plan with so many invented roles a document, before there are any; at most 1,000."),
    ] = 0,
    assumed_reason: Annotated[int, typer.Option(min=1, help="How many tokens a reason is assumed to have.")] = 30,
    rates: Rates,
    medium: Medium,
) -> None:
    """Count the calls of a vote, their tokens and the shared part, and the hours at a stated rate; nothing is asked.

    Example:  perse drpe plan summeval.jsonl.gz --invented 4 --prompting both --prefill 20000 --decode 2000
    """
    from perse.drpe.documents import read_documents
    from perse.drpe.votes.planning import Assumed, plan_result, with_stand_ins
    from perse.drpe.votes.planning import plan as planned

    rates.check()
    given = ballot.chosen(read_documents(documents, limit=limit))
    assumed = Assumed(assumed_reason, rates.cache_tokens)
    with err.status("planning"):
        who = ballot.electorate(given, thinning)
        roles = with_stand_ins(who.roles, invented)
        made, prompts = planned(
            who.documents, roles, ballot.voting(), readers=who.readers, assumed=assumed, count=rates.count()
        )
    notes = [f"{invented} roles of each document are made up for the plan"] if invented else []
    show_result(plan_result(made, prompts, assumed=assumed, prefill=rates.prefill, decode=rates.decode, notes=notes), medium)
