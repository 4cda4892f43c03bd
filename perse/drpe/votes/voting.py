"""The vote: every role on every candidate; the same command goes on after a kill.

    RUN/manifest.json     the documents, the roles, the judge, the settings
    RUN/documents.jsonl   the documents, with the candidates that are voted on
    RUN/ballots.jsonl     who is asked about what, and which answer is theirs
    RUN/single/  batch/   the judge's answers: a role a prompt, or all roles in one

Votes about one article follow each other, so that an engine which remembers what prompts begin with reads it once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perse.answering.base import JudgeSettings
from perse.drpe.documents import Documents, read_documents
from perse.drpe.roles import GENERAL_PUBLIC, Role
from perse.drpe.votes.ballots import NAMES, PAIRS, PROMPTINGS, Ballot, Ballots, Prompting, Voting, make_ballots
from perse.drpe.votes.ballots import Question as Voted
from perse.drpe.votes.readers import Reader
from perse.drpe.votes.scoring import Decision, decisions
from perse.errors import BadInput
from perse.files.disk import write_whole
from perse.files.runlog import MANIFEST, RunLog, read_lines, read_manifest, what_it_is
from perse.formats.json_text import shortened
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge
from perse.judging.loop import JUDGEMENTS, TIMING, answer_all, read_judgements, read_timing
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
    explain,
)
from perse.scale import CHOICES

KIND = "drpe-vote"
BALLOTS = "ballots.jsonl"
DOCUMENTS = "documents.jsonl"
ANEW = "vote again in another folder"


@dataclass(frozen=True)
class Run:
    """What a run folder holds. `seconds`: (judgements timed, seconds) by prompting."""

    judge: str
    settings: Mapping[str, Any]
    documents: Documents
    """With the candidates that are voted on."""
    ballots: tuple[Ballot, ...]
    answers: Mapping[Prompting, Mapping[str, Judgement]]
    seconds: Mapping[Prompting, tuple[int, float]]
    unreferenced: tuple[str, ...]
    readers: Mapping[str, int]
    """Readers who voted, and how many of the data set each stands for."""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return decisions(self.ballots, self.answers)


def vote(
    judge: Judge,
    documents: Documents,
    roles: Mapping[str, Sequence[Role]],
    out: Path,
    voting: Voting,
    *,
    readers: Sequence[Reader] = (),
    on_progress: OnPart = unseen_part,
) -> Path:
    """Ask for all votes that `out` does not have yet.

    Args:
        documents: with the candidates that are voted on.
        roles: who votes on each document, by its id; an empty sequence, and no readers: nobody in particular.
        readers: who votes on all documents beside them.
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
    with RunLog(out, _identity(judge, documents, roles, readers, voting, made), lines=BALLOTS) as log:
        if not (out / DOCUMENTS).exists():
            write_whole(out / DOCUMENTS, "".join(one.model_dump_json() + "\n" for one in documents.documents))
        have = _ballots(out)
        for line, (ballot, wanted) in enumerate(zip(have, made.ballots, strict=False), start=1):
            if ballot != wanted:
                raise BadInput(f"{out / BALLOTS}, line {line}: is not the ballot that this run asked for; {ANEW}")
        log.append(ballot.model_dump_json() + "\n" for ballot in made.ballots[len(have) :])
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


def read_run(run: Path) -> Run:
    """What a run has so far.

    Raises:
        BadInput: no such run, or a damaged line; the message names it.
    """
    if not (run / MANIFEST).is_file() or read_manifest(run).get("run", {}).get("kind") != KIND:
        holds = f"holds {what_it_is(read_manifest(run))}" if (run / MANIFEST).is_file() else f"has no {MANIFEST}"
        raise BadInput(f"{run} {holds}; give a folder that `perse drpe vote` wrote")
    about = read_manifest(run)["run"]
    ballots, settings = _ballots(run), _settings(run, about.get("settings", {}))
    if not ballots:
        raise BadInput(f"{run} has no ballots yet; give the command that began it again")
    there = [prompting for prompting in PROMPTINGS if any(ballot.prompting == prompting for ballot in ballots)]
    judge, documents = about.get("judge", {}), read_documents(run / DOCUMENTS)
    if (digest := about.get("documents", {}).get("sha256")) != documents.digest:
        raise BadInput(f"{run / DOCUMENTS}: is not what was voted on ({MANIFEST} has {shortened(digest)}); {ANEW}")
    readers = _readers(run, about.get("readers", {}), ballots)
    if not readers:  # these have none on what they reviewed themselves
        _refuse_incomplete(run, ballots, documents, settings.prompting)
    return Run(
        "+".join(one for one in (judge.get("model"), judge.get("adapter")) if one and isinstance(one, str)) or "?",
        about.get("settings", {}),
        documents,
        ballots,
        {one: _votes(run / one / JUDGEMENTS) for one in there},
        {one: read_timing(run / one / TIMING) for one in there},
        tuple(one.id for one in documents.documents if not one.references),
        readers,
    )


def _ballots(run: Path) -> tuple[Ballot, ...]:
    """Raises:
    BadInput: an invalid line; the message names it.
    """
    found = []
    for line, fields in enumerate(read_lines(run / BALLOTS, remedy=ANEW), start=1):
        try:
            found.append(Ballot.model_validate(fields))
        except ValidationError as error:
            raise BadInput(f"{run / BALLOTS}, line {line}: {explain(error)}; {ANEW}") from None
    return tuple(found)


def _votes(path: Path) -> dict[str, Judgement]:
    """The answers of a file, by id.

    Raises:
        BadInput: one is none of the question's; the message names it.
    """
    found = {id: said for (_, id), said in read_judgements(path).items()}
    for id, said in found.items():
        odd = said.status is Status.OK and said.label not in CHOICES.labels
        if odd or (said.distribution is not None and set(said.distribution) != set(CHOICES.labels)):
            raise BadInput(
                f"{path}: the answer '{id}' has {shortened(said.label if odd else said.distribution)}, expected A or B; remove its line to have it asked again"
            )
    return found


def _refuse_incomplete(run: Path, ballots: Sequence[Ballot], documents: Documents, promptings: Sequence[Prompting]) -> None:
    """A decision that lacks its ballots would be missing without a word.

    Raises:
        BadInput: there are none for some candidate.
    """
    there = {(one.document, one.system, one.prompting) for one in ballots}
    wanted = {
        (document.id, candidate.system, prompting)
        for document in documents.documents
        if document.references
        for candidate in document.candidates
        for prompting in promptings
    }
    if lacking := len(wanted - there):
        raise BadInput(
            f"{run / BALLOTS} has no ballots for {lacking:,} of {len(wanted):,} decisions; give the command that began the run again"
        )


def _settings(run: Path, found: Mapping[str, Any]) -> Voting:
    """Raises:
    BadInput: they are none of a vote.
    """
    try:
        return Voting(**{**found, **{name: tuple(found[name]) for name in ("prompting", "wordings")}})
    except (TypeError, KeyError, BadInput):
        raise BadInput(
            f"{run / MANIFEST}: 'run.settings' is {shortened(found)}, expected the settings of a vote; {ANEW}"
        ) from None


def _readers(run: Path, found: object, ballots: Sequence[Ballot]) -> dict[str, int]:
    """Real readers, and how many each stands for.

    Raises:
        BadInput: the manifest says something else, or nothing of one who voted.
    """
    voted = {one.role.type for one in ballots if one.role is not None and one.role.source == "reader"}
    if isinstance(found, dict) and not voted <= found.keys():
        raise BadInput(f"{run / MANIFEST}: 'run.readers' lacks {shortened(min(voted - found.keys()))}, who voted; {ANEW}")
    if isinstance(found, dict) and all(isinstance(one, dict) and type(one.get("stands_for")) is int for one in found.values()):
        return {str(name): one["stands_for"] for name, one in found.items()}
    raise BadInput(f"{run / MANIFEST}: 'run.readers' is {shortened(found)}, expected readers with 'stands_for'; {ANEW}")
