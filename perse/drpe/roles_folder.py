"""A folder of invented roles.

    ROLES/manifest.json      the documents, the model, how it was asked
    ROLES/roles.jsonl        one line for each document: all roles that were invented, and what was not
    ROLES/answers.sqlite     every answer, as it was given: the same command goes on from these

Which roles vote is not decided here: they are clustered when votes are asked, and as often as one likes, without asking a model again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from perse.drpe.documents import Documents
from perse.drpe.inventing import Invented, Inventing, invent, wording_digest
from perse.drpe.roles import Role
from perse.errors import BadInput
from perse.files.runlog import MANIFEST, RunLog, read_lines, read_manifest, what_it_is
from perse.progress import OnPart, unseen_part
from perse.records import explain
from perse.writing.cache import AnswerCache
from perse.writing.writer import Writer

LINES = "roles.jsonl"
ANSWERS = "answers.sqlite"
KIND = "drpe-roles"
MADE_BY = "give a folder that `perse drpe roles` wrote"


def invent_roles(
    writer: Writer, given: Documents, out: Path, *, settings: Inventing, on_progress: OnPart = unseen_part
) -> Path:
    """Invent the roles that `out` does not have yet.

    Raises:
        BadInput: no documents, or as `invent`.
        RunMismatch: the folder was begun with another model, other documents or settings; the message names what differs.
        EngineLost: the engine is gone, or failed at some answers; the same command goes on.
    """
    if not given.documents:
        raise BadInput("there are no documents; give a file with some")
    identity = {
        "kind": KIND,
        "documents": {"count": len(given.documents), "sha256": given.digest},
        "writer": {**writer.identity, "context": writer.context},
        "settings": settings.decisive,
        "prompts_sha256": wording_digest(),
    }
    with RunLog(out, identity, lines=LINES) as log, AnswerCache(out / ANSWERS) as cache:
        have = read_invented(out) if log.read() else {}
        missing = [document for document in given.documents if document.id not in have]
        if missing:
            found = invent(writer, missing, cache=cache, settings=settings, on_progress=on_progress)
            log.append(one.model_dump_json(exclude_defaults=True) + "\n" for one in found)
    return out


@dataclass(frozen=True)
class RolesFolder:
    """What a folder holds, in the order of the documents."""

    invented: dict[str, Invented]
    documents: str
    """sha256 of the documents: `Documents.digest`."""


def read_folder(folder: Path) -> RolesFolder:
    """Raises:
    BadInput: no such folder, no roles yet, or an invalid line; the message names it.
    """
    invented = read_invented(folder)
    if not invented:
        raise BadInput(f"{folder} has no roles yet; run `perse drpe roles` to its end first")
    return RolesFolder(invented, str(read_manifest(folder).get("run", {}).get("documents", {}).get("sha256")))


def read_roles(folder: Path) -> dict[str, tuple[Role, ...]]:
    """document -> all roles that were invented for it; none where none could be.

    Raises:
        BadInput: as `read_folder`.
    """
    return {name: one.roles for name, one in read_folder(folder).invented.items()}


def read_invented(folder: Path) -> dict[str, Invented]:
    """document -> what came of it, as far as there is something.

    Raises:
        BadInput: no such folder, or an invalid line; the message names it.
    """
    manifest = read_manifest(folder) if (folder / MANIFEST).is_file() else {}
    if manifest.get("run", {}).get("kind") != KIND:
        raise BadInput(f"{folder} holds {what_it_is(manifest) if manifest else 'no roles'}; {MADE_BY}")
    found: dict[str, Invented] = {}
    remedy = "remove the line, and give the same command again"
    for line, row in enumerate(read_lines(folder / LINES, remedy=remedy), start=1):
        where = f"{folder / LINES}, line {line}"
        try:
            one = Invented.model_validate(row)
        except ValidationError as error:
            raise BadInput(f"{where}: {explain(error)}; {remedy}") from None
        if one.id in found:
            raise BadInput(f"{where}: the document '{one.id}' was there before; {remedy}")
        found[one.id] = one
    return found
