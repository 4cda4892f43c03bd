"""A run of votes without one of the real readers who voted in it (`perse drpe vote --roles readers:DATASET`).

A ballot names its reader and the answer to it; the answers lie in a folder for each way of prompting and name nobody, so both are found by the ballots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from perse.data.forgetting.lines import BALLOTS, Line, lines_of
from perse.files.belongings import MANIFEST
from perse.files.replacing import manifest_text
from perse.files.runlog import count_and_digest, read_manifest

VOTE = "drpe-vote"
"""The kind of such a run, and of the folders of answers in it; their rooms lie above this one."""
ANSWERS: Mapping[str, str] = {"drpe-single": "single", "drpe-batch": "batch"}
JUDGEMENTS = "judgements.jsonl"


def logs(run: Path) -> Iterator[Path]:
    """The files that a vote writes to while it runs, as far as they are there."""
    yield from (one for one in (run / BALLOTS, *(run / name / JUDGEMENTS for name in ANSWERS.values())) if one.is_file())


def without_reader(ids: set[str], run: Path) -> tuple[int, bool, dict[str, bytes]]:
    """How many votes of the reader go (1 if the manifest alone names them), whether others are left, and the files of the run that change, by path in it.

    Raises:
        BadInput: a damaged line; the message names it.
    """
    ballots = lines_of(run / BALLOTS) if (run / BALLOTS).is_file() else []
    kept = [one for one in ballots if one.reviewer not in ids]
    theirs = {str(one.row.get("judgement")) for one in ballots if one.reviewer in ids}
    manifest = read_manifest(run)
    told = manifest.get("run", {})
    readers = told.get("readers")
    named = isinstance(readers, dict) and not ids.isdisjoint(readers)
    if not theirs and not named:
        return 0, True, {}
    changed = {BALLOTS: _bytes(kept)} if theirs else {}
    for log in logs(run):
        if log.parent == run:
            continue
        answers = lines_of(log)
        left = [one for one in answers if str(one.row.get("id")) not in theirs]
        if left != answers:
            changed[log.relative_to(run).as_posix()] = _bytes(left)
    if told.get("ballots") == count_and_digest(one.content for one in ballots):  # a file that lost some stays one that did
        told["ballots"] = count_and_digest(one.content for one in kept)
    if named:
        told["readers"] = {name: one for name, one in readers.items() if name not in ids}
    manifest["forgotten"] = manifest.get("forgotten", 0) + 1
    return max(len(theirs), int(named)), bool(kept), changed | {MANIFEST: manifest_text(manifest).encode()}


def _bytes(lines: list[Line]) -> bytes:
    return b"".join(line.content for line in lines)
