"""A run of votes as a folder: what lies where, and what it holds so far.

    RUN/manifest.json     the documents, the roles, the judge, the settings, how many ballots there are
    RUN/documents.jsonl   the documents, with the candidates that are voted on
    RUN/ballots.jsonl     who is asked about what, and which answer is theirs
    RUN/single/  batch/   the judge's answers: a role a prompt, or all roles in one

`perse.drpe.votes.voting` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perse.drpe.documents import Documents, read_documents
from perse.drpe.votes.ballots import PROMPTINGS, Ballot, Prompting, Voting
from perse.drpe.votes.scoring import Decision, decisions
from perse.errors import BadInput
from perse.files.runlog import MANIFEST, count_and_digest, read_lines, read_manifest, what_it_is
from perse.formats.json_text import shortened
from perse.judgement import Judgement, Status
from perse.judging.loop import JUDGEMENTS, TIMING, read_judgements, read_timing
from perse.records import explain
from perse.scale import CHOICES

KIND = "drpe-vote"
BALLOTS = "ballots.jsonl"
DOCUMENTS = "documents.jsonl"
LEFT_OUT = "candidates_left_out"
"""In the manifest: how many people's scores left out."""
ROLES_LEFT_OUT = "roles_left_out"
"""There, too: how many clustering left out, over all documents."""
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
    roles_left_out: int = 0
    """Roles that clustering left out, over all documents: they did not vote."""

    @property
    def decisions(self) -> tuple[Decision, ...]:
        return decisions(self.ballots, self.answers)


def read_run(run: Path) -> Run:
    """What a run has so far.

    Raises:
        BadInput: no such run, or a damaged line; the message names it.
    """
    if not (run / MANIFEST).is_file() or read_manifest(run).get("run", {}).get("kind") != KIND:
        holds = f"holds {what_it_is(read_manifest(run))}" if (run / MANIFEST).is_file() else f"has no {MANIFEST}"
        raise BadInput(f"{run} {holds}; give a folder that `perse drpe vote` wrote")
    about = read_manifest(run)["run"]
    ballots = read_ballots(run)
    _refuse_other_settings(run, about.get("settings", {}))
    if not ballots:
        raise BadInput(f"{run} has no ballots yet; give the command that began it again")
    there = [prompting for prompting in PROMPTINGS if any(ballot.prompting == prompting for ballot in ballots)]
    judge, documents = about.get("judge", {}), read_documents(run / DOCUMENTS)
    roles_left_out = read_manifest(run).get("context", {}).get(ROLES_LEFT_OUT)
    if (digest := about.get("documents", {}).get("sha256")) != documents.digest:
        raise BadInput(f"{run / DOCUMENTS}: is not what was voted on ({MANIFEST} has {shortened(digest)}); {ANEW}")
    _refuse_others(run, ballots, about.get("ballots"))
    readers = _readers(run, about.get("readers", {}), ballots)
    return Run(
        "+".join(one for one in (judge.get("model"), judge.get("adapter")) if one and isinstance(one, str)) or "?",
        about.get("settings", {}),
        documents,
        ballots,
        {one: _votes(run / one / JUDGEMENTS) for one in there},
        {one: read_timing(run / one / TIMING) for one in there},
        tuple(one.id for one in documents.documents if not one.references),
        readers,
        roles_left_out if isinstance(roles_left_out, int) else 0,
    )


def read_ballots(run: Path) -> tuple[Ballot, ...]:
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


def ballot_line(ballot: Ballot) -> str:
    return ballot.model_dump_json() + "\n"


def _refuse_others(run: Path, ballots: Sequence[Ballot], wanted: object) -> None:
    """Votes without a ballot would be missing without a word.

    Args:
        wanted: what the manifest says of the ballots.
    Raises:
        BadInput: they are not those.
    """
    if not isinstance(wanted, dict) or type(wanted.get("count")) is not int:
        raise BadInput(f"{run / MANIFEST}: 'run.ballots' is {shortened(wanted)}, expected the count of ballots; {ANEW}")
    if len(ballots) < wanted["count"]:
        raise BadInput(
            f"{run / BALLOTS} has {len(ballots):,} of {wanted['count']:,} ballots; give the command that began the run again"
        )
    if count_and_digest(ballot_line(one).encode() for one in ballots) != wanted:
        raise BadInput(f"{run / BALLOTS}: is not what was asked ({MANIFEST} has {shortened(wanted.get('sha256'))}); {ANEW}")


def _refuse_other_settings(run: Path, found: Mapping[str, Any]) -> None:
    """Raises:
    BadInput: they are none of a vote.
    """
    try:
        Voting(**{**found, **{name: tuple(found[name]) for name in ("prompting", "wordings")}})
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
