"""Asking for votes: every role on every candidate; the same command goes on after a kill.

Votes about one article follow each other, so that an engine which remembers what prompts begin with reads it once. `perse.drpe.votes.run_folder` says what the folder holds.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

from perse.answering.base import JudgeSettings
from perse.drpe.documents import Documents
from perse.drpe.roles import GENERAL_PUBLIC, Role
from perse.drpe.votes.ballots import NAMES, PAIRS, Ballots, Prompting, Voting, make_ballots
from perse.drpe.votes.ballots import Question as Voted
from perse.drpe.votes.readers import Reader
from perse.drpe.votes.run_folder import ANEW, BALLOTS, DOCUMENTS, KIND, LEFT_OUT, ROLES_LEFT_OUT, ballot_line, read_ballots
from perse.errors import BadInput, RunMismatch
from perse.files.disk import write_whole
from perse.files.runlog import MANIFEST, RunLog, count_and_digest, make_folder, read_manifest, refuse_strangers, what_it_is
from perse.judging.judge import Judge
from perse.judging.loop import JUDGEMENTS, answer_all
from perse.progress import OnPart, unseen_part
from perse.questions import Question
from perse.questions.votes import VOTE, VOTE_READER, VOTES
from perse.records import (
    Asked,
    Pair,
    PairwiseExample,
    ProfileComparison,
    ProfileReview,
    ReaderVoteExample,
    VoteExample,
    Voter,
    VotesExample,
)


def refuse_taken(out: Path) -> None:
    """Before a judge is loaded: that votes can be kept in `out`.

    Raises:
        BadInput: it cannot be read, or no folder is it.
        RunMismatch: it holds something else.
    """
    if not os.path.lexists(out):
        return
    make_folder(out)
    refuse_strangers(out, BALLOTS)
    if (out / MANIFEST).exists() and (holds := what_it_is(read_manifest(out))) != what_it_is({"run": {"kind": KIND}}):
        raise RunMismatch(f"{out} holds {holds}, and no votes; choose another folder")


def vote(
    judge: Judge,
    documents: Documents,
    roles: Mapping[str, Sequence[Role]],
    out: Path,
    voting: Voting,
    *,
    readers: Sequence[Reader] = (),
    roles_left_out: int = 0,
    on_progress: OnPart = unseen_part,
) -> Path:
    """Ask for all votes that `out` does not have yet.

    Args:
        documents: with the candidates that are voted on.
        roles: who votes on each document, by its id; an empty sequence, and no readers: nobody in particular.
        readers: who votes on all documents beside them.
        roles_left_out: how many were invented and are not in `roles`, since clustering left them out; kept for `perse drpe ablate`, which needs all.
    Raises:
        BadInput: no document has a reference, or one has no entry in `roles`.
        RunMismatch: the folder was begun with another judge, other documents, roles or settings.
        EngineLost: the engine is gone for good, or failed at every vote; the same command goes on.
    """
    if lacking := [one.id for one in documents.documents if one.id not in roles]:
        raise BadInput(
            f"there are no roles for {len(lacking)} of {len(documents.documents)} documents, such as '{lacking[0]}'; make them with "
            "`perse drpe roles` of the same documents"
        )
    made = make_ballots(documents.documents, roles, voting, readers)
    identity = _identity(judge, documents, roles, readers, voting, made)
    context = {LEFT_OUT: documents.left_out, ROLES_LEFT_OUT: roles_left_out}
    with RunLog(out, identity, lines=BALLOTS, context=context) as log:
        if not (out / DOCUMENTS).exists():
            write_whole(out / DOCUMENTS, "".join(one.model_dump_json() + "\n" for one in documents.documents))
        have = read_ballots(out)
        for line, (ballot, wanted) in enumerate(zip_longest(have, made.ballots[: len(have)]), start=1):
            if ballot != wanted:
                raise BadInput(f"{out / BALLOTS}, line {line}: is not the ballot that this run asked for; {ANEW}")
        log.append(map(ballot_line, made.ballots[len(have) :]))
        for prompting in voting.prompting:
            _ask(judge, made.examples[prompting], out / prompting, voting, prompting, on_progress)
    return out


def _ask(
    judge: Judge,
    examples: Sequence[Voted],
    folder: Path,
    voting: Voting,
    prompting: Prompting,
    on_progress: OnPart,
) -> None:
    settings = JudgeSettings(voting.temperature, voting.max_new_tokens, voting.seed)
    asked: list[tuple[Question, Sequence[Asked]]] = [
        (question, some)
        for question in (VOTE, VOTES, VOTE_READER, PAIRS)
        if (some := [one for one in examples if isinstance(one, question.example_type)])
    ]
    identity = {"kind": f"drpe-{prompting}", "judge": judge.for_manifest, "prompts_sha256": _prompts(judge, voting)}
    with RunLog(folder, identity, lines=JUDGEMENTS) as log:
        if asked:
            answer_all(
                judge, asked, log,
                settings=settings, on_progress=lambda done, total: on_progress(f"votes, {NAMES[prompting]}", done, total),
            )  # fmt: skip


def _identity(
    judge: Judge,
    documents: Documents,
    roles: Mapping[str, Sequence[Role]],
    readers: Sequence[Reader],
    voting: Voting,
    made: Ballots,
) -> dict[str, Any]:
    who = hashlib.sha256()
    for document in documents.documents:
        who.update("\0".join((document.id, *(role.model_dump_json() for role in roles[document.id]), "\n")).encode())
    return {
        "kind": KIND,
        "documents": {
            "count": len(documents.documents),
            "sha256": documents.digest,
            "without_reference": list(made.unreferenced),
        },
        "roles_sha256": who.hexdigest(),
        "ballots": count_and_digest(ballot_line(ballot).encode() for ballot in made.ballots),
        "readers": {reader.id: {"sha256": reader.digest, "stands_for": reader.stands_for} for reader in readers},
        "judge": judge.for_manifest,
        "settings": {**asdict(voting), "prompting": list(voting.prompting), "wordings": list(voting.wordings)},
        "prompts_sha256": _prompts(judge, voting),
    }


def _prompts(judge: Judge, voting: Voting) -> dict[str, str]:
    voter, pair = (
        Voter(type=GENERAL_PUBLIC.type, description=GENERAL_PUBLIC.description),
        Pair(text_a="A text.", text_b="Another."),
    )
    settings = JudgeSettings(voting.temperature, voting.max_new_tokens, voting.seed)
    alone = [
        VoteExample(id="probe", reviewer_id="probe", article="An article.", query=pair, voter=voter, wording=wording)
        for wording in voting.wordings
    ]
    together = [
        VotesExample(id="probe", reviewer_id="probe", article="An article.", query=pair, voters=(voter,), wording=wording)
        for wording in voting.wordings
    ]
    past = ProfileReview(text="A text.", review="A review.", score=5)
    reader = ReaderVoteExample(id="probe", reviewer_id="probe", profile=(past,), article="An article.", query=pair)
    compared = ProfileComparison(text_a="A text.", text_b="Another.", preference={"Ending": "A"})
    compares = PairwiseExample(id="probe", reviewer_id="probe", aspect="Ending", profile=(compared,), query=pair)
    return {
        VOTE_READER.name: judge.prompt_digest(VOTE_READER, [reader], settings),
        PAIRS.name: judge.prompt_digest(PAIRS, [compares], settings),
        VOTE.name: judge.prompt_digest(VOTE, alone, settings),
        VOTES.name: judge.prompt_digest(VOTES, together, settings),
    }
