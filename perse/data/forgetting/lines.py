"""Files of lines: which of a folder's are perse's own, and their lines with the bytes that they have.

A name alone says nothing, since a person may keep their own `pairs.jsonl` in a scored run: what is perse's own depends on what the kind
of the folder, told in its manifest, writes there. Exports are known by what is in them, wherever they lie. Lines keep their bytes, so that
whatever stays is as it was, numbers and escapes too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perse.data.dataset.folder import DATA_SET
from perse.data.persum.folder import PERSUM
from perse.data.release import RELEASE
from perse.errors import BadInput
from perse.files.belongings import Belongings, listed_files, manifest_of, written_in
from perse.formats.json_text import parsed, shortened
from perse.formats.plain_files import own_bytes, refuse_other_than_plain
from perse.identity import catalogue_names
from perse.secrets import without_keys

_FOLDERS: tuple[Belongings, ...] = (DATA_SET, PERSUM, RELEASE)

BALLOTS = "ballots.jsonl"
"""Who was asked about what, in a run of votes."""

_JUDGED = frozenset({"judgements.jsonl", "timing.jsonl"})
_RUNS: Mapping[str, frozenset[str]] = {
    "score": _JUDGED | {"examples.jsonl"},
    "drpe-vote": frozenset({BALLOTS}),
    "drpe-single": _JUDGED,
    "drpe-batch": _JUDGED,
    "persum": _JUDGED,
    "study": frozenset({"arms.jsonl"}),
    "kgds-agreement": _JUDGED,
    "kgds-errors": _JUDGED,
    "kgds-feedback": _JUDGED,
    "kgds-generate": frozenset({"summaries.jsonl"}),
    "kgds-masking": _JUDGED,
    "kgds-verify": _JUDGED,
}
"""What each kind of run writes; their rooms lie above this one."""
_STUDIES: Mapping[str, frozenset[str]] = {"kgds-agreement": frozenset({"asked.jsonl", "pairs.jsonl"})}
"""What a study writes in place of `arms.jsonl`."""

_WHOLE = frozenset({"examples.jsonl", "pairs.jsonl"})
"""Files of runs that are written at once and do not grow."""

_GIVE = "give a file of examples or judgements, as perse writes them"


@dataclass(frozen=True)
class Line:
    """One line of a file."""

    content: bytes
    """With its end, which the last of a file may lack."""
    row: Mapping[str, Any]
    """Empty if the line is."""
    reviewer: str | None = None
    """Whom it names as its reviewer."""
    number: int = 0
    """In its file, from 1."""

    def rewritten(self, row: Mapping[str, Any]) -> Line:
        """The line with another value."""
        text = without_keys(json.dumps(row, ensure_ascii=False))
        end = b"\n" if self.content.endswith(b"\n") else b""
        return replace(
            self, content=text.encode("utf-8", "backslashreplace") + end, row=row
        )  # half a surrogate pair, as JSON escapes it


def own_lines(folder: Path) -> frozenset[str]:
    """The names of the files of lines in a folder that perse wrote there, by its manifest."""
    manifest = manifest_of(folder) or {}
    run = manifest.get("run")
    if isinstance(run, dict):
        kind, study = str(run.get("kind")), str(run.get("study"))
        return _STUDIES.get(study, _RUNS["study"]) if kind == "study" else _RUNS.get(kind, frozenset())
    if "schema" not in manifest:
        return frozenset(written_in(folder)) if "rewriting" in manifest else frozenset()  # OUT.work of a table
    listed = listed_files(manifest)
    may_own = {name for one in _FOLDERS if manifest.get("kind") in one.kinds for name in one.names}
    return frozenset(may_own if listed is None else may_own & listed)


def is_own(file: Path) -> bool:
    """Whether a file of lines is perse's: not a raw file, a note or anything else of a user's."""
    return not file.is_symlink() and (file.name in own_lines(file.parent) or is_export(file))


def is_export(file: Path) -> bool:
    """Whether every line is an example."""
    if file.is_symlink():
        return False
    try:
        rows = [parsed(_text(line)) for line in _split(own_bytes(file)) if line.strip()]
    except (OSError, ValueError):
        return False
    return bool(rows) and all(isinstance(row, dict) and "id" in row and ("query" in row or "prompt" in row) for row in rows)


def lines_of(file: Path) -> list[Line]:
    """The lines of a file of perse's. An end that a kill tore off a run's own log is left out, as the run itself would.

    Raises:
        BadInput: a line is no JSON object, or the file is none of perse's; the message says which.
    """
    refuse_other_than_plain(file)
    if file.name.endswith(".gz"):
        raise BadInput(f"{file}: is packed, and lines are taken out of plain files alone; unpack it with gunzip, and {_GIVE}")
    own = file.name in own_lines(file.parent)
    contents = _split(file.read_bytes())
    lines = []
    for number, content in enumerate(contents, start=1):
        if not content.strip():
            lines.append(Line(content, {}, number=number))
            continue
        try:
            row = parsed(_text(content))
        except ValueError as error:
            if own and _grows(file) and number == len(contents) and not content.endswith(b"\n"):
                break
            raise BadInput(f"{file}, line {number}: not JSON ({error}); {_GIVE}") from None
        if not isinstance(row, dict):
            raise BadInput(f"{file}, line {number}: found {shortened(row)}, expected a JSON object; {_GIVE}")
        if not own and not _is_written(row):
            raise BadInput(
                f"{file}, line {number}: is no example or judgement as perse writes them; raw files are changed by hand"
            )
        lines.append(Line(content, row, _reviewer(row), number))
    if not own and _is_catalogue([line.row for line in lines if line.row]):  # those of a run go with its examples
        lines = [replace(line, reviewer=catalogue_names(line.row["id"])[0]) if line.row else line for line in lines]
    return lines


def _reviewer(row: Mapping[str, Any]) -> str | None:
    """Whom a line names: an example itself, a PerSum sample in the user's own review, a text among somebody's best (`perse score merge --top`), the ballot of a
    real reader."""
    own, role = row.get("own"), row.get("role")
    if isinstance(role, dict) and role.get("source") == "reader" and "judgement" in row:
        return str(role.get("type"))
    reviewer = own.get("reviewer_id") if isinstance(own, dict) else row.get("reader" if _is_ranked(row) else "reviewer_id")
    return reviewer if isinstance(reviewer, str) else None


def _is_ranked(row: Mapping[str, Any]) -> bool:
    return {"reader", "text", "rank", "tied", "status", "id"} <= row.keys()


def _is_catalogue(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all lines are judgements of readers and texts, whose ids name both and which say nothing else of whom they are of."""
    return bool(rows) and all(
        _is_judgement(row) and "reviewer_id" not in row and isinstance(row.get("id"), str) and row["id"].count("/") == 1
        for row in rows
    )


def _split(content: bytes) -> list[bytes]:
    """At newlines alone."""
    *whole, last = content.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def _text(line: bytes) -> str:
    return line.decode("utf-8-sig")  # some editors put a mark before the first


def _grows(file: Path) -> bool:
    """Whether a file is a run's log."""
    return isinstance((manifest_of(file.parent) or {}).get("run"), dict) and file.name not in _WHOLE


def _is_written(row: Mapping[str, Any]) -> bool:
    """Whether a line is an example, a judgement, a PerSum sample or a text among somebody's best."""
    return "id" in row and ("query" in row or "prompt" in row or "own" in row or _is_judgement(row) or _is_ranked(row))


def _is_judgement(row: Mapping[str, Any]) -> bool:
    return {"question", "status"} <= row.keys()
