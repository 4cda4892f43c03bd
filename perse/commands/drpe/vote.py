"""`perse drpe vote`: every role on every candidate."""

from __future__ import annotations

from perse.commands import options
from perse.commands.options.drpe import DocumentsFile, FirstDocuments, Thinning
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.medium import Medium
from perse.commands.options.voting import Ballot
from perse.commands.showing import show_result
from perse.commands.terminal import err, say
from perse.progress import shown_on


@grouped
def vote(
    *,
    documents: DocumentsFile,
    judge: options.JudgeName,
    out: options.Out,
    limit: FirstDocuments = None,
    ballot: Ballot,
    thinning: Thinning,
    loading: Loading,
    medium: Medium,
    everything: options.Everything = False,
) -> None:
    """Let role-players vote between each candidate and a reference; the same command continues after a stop.

    Example:  perse drpe vote summeval.jsonl.gz --judge smollm2-135m --limit 2 --out runs/votes

    As published:  perse drpe vote summeval.jsonl.gz --judge MODEL --roles static --roles runs/roles --prompting batch --orders 1 --out runs/published

    Real readers:  perse drpe vote summeval.jsonl.gz --judge runs/judge --roles readers:work/critics --out runs/readers

    Then:  perse drpe correlate summeval.jsonl.gz runs/votes
    """
    from perse.drpe.documents import read_documents
    from perse.drpe.votes.run_folder import read_run
    from perse.drpe.votes.telling import vote_result
    from perse.drpe.votes.voting import refuse_taken
    from perse.drpe.votes.voting import vote as ask

    refuse_taken(out)
    voting = ballot.voting()
    given = ballot.chosen(read_documents(documents, limit=limit))
    who = ballot.electorate(given, thinning, judge)
    if who.without_invented:
        left = f", and {len(who.silent)} of these are left out, since nobody else votes" if who.silent else ""
        say(f"note: for {len(who.without_invented)} documents no role was invented{left}")
    loaded = loading.load(judge)
    with shown_on(err) as on_part:
        ask(
            loaded, who.documents, who.roles, out, voting,
            readers=who.readers, roles_left_out=who.left_out, on_progress=on_part,
        )  # fmt: skip
    say(f"votes: {out}  next: perse drpe correlate {documents} {out}")
    show_result(vote_result(read_run(out)), medium, everything=everything)
