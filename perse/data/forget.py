"""A person leaves: their reviews and examples go from data sets, exports and scored runs (DESIGN.md, promise 11).

A profile holds its own reviewer's reviews only, so nobody else's example changes; in PerSum the person's reviews also leave the
product reviews of other samples. Files are written whole beside the old ones and renamed; a folder's counts are made again, and
its digest changes, so what was made from it before can be told apart. The original files, the models trained on the data and
their answers are not ours to reach: see docs/data.md for what is left to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.data.folder import is_data_folder, load_folder, write_folder
from perse.data.parts import parts_of
from perse.data.pseudonyms import pseudonym, salt_from_seed
from perse.errors import BadInput
from perse.runlog import MANIFEST, read_lines, read_manifest, write_whole


@dataclass(frozen=True)
class Forgotten:
    """What went from one place: how many records and examples; 0 and 0 if the person was not in it."""

    path: Path
    records: int
    """Reviews or comparisons; of a file of lines, those inside other people's samples."""
    examples: int


def forget(person: str, path: Path, *, salt: str | None = None) -> Forgotten:
    """Removes a person from a data set folder, a PerSum folder, a folder of released data, a scored run, or a file of examples.

    Args:
        person: a pseudonym, or the name as the raw files have it.
        salt: of the pseudonyms, where the data set was built with one.
    Raises:
        BadInput: `path` is none of these, the salt is needed, or nothing would be left.
    """
    if path.is_file():
        left, gone = _without(path, {person, *_pseudonyms(person, path.parent, salt)})
        if gone:
            write_whole(path, left)
        return Forgotten(path, 0, gone)
    if is_data_folder(path):
        return _from_data_set(person, path, salt)
    if (path / MANIFEST).is_file():
        return _from_lines(person, path, salt)
    raise BadInput(f"{path}: found no data set, scored run or file of examples to forget a person in")


def _from_data_set(person: str, path: Path, salt: str | None) -> Forgotten:
    data = load_folder(path)
    ids = {person, *_pseudonyms(person, path, salt)}
    rows = [row for row in data.rows if row.reviewer_id not in ids]
    records: list[Any] = [*data.reviews.values(), *data.comparisons.values()]
    kept = [one for one in records if one.reviewer_id not in ids]
    gone = Forgotten(path, len(records) - len(kept), len(data.rows) - len(rows))
    if not gone.records:
        return gone
    options = data.manifest["options"]
    reviews = {one: record for one, record in data.reviews.items() if record.reviewer_id not in ids}
    comparisons = {one: record for one, record in data.comparisons.items() if record.reviewer_id not in ids}
    parts = parts_of(rows, reviews, comparisons, options)
    counts = {
        "reviewers": len({row.reviewer_id for row in rows}),
        "records": len(kept),
        "parts": [part.model_dump(mode="json") for part in parts],
    }
    said = {name: value for name, value in data.manifest.items() if name not in ("schema", "kind")}
    said |= {"counts": counts, "forgotten": data.manifest.get("forgotten", 0) + 1}
    files = {
        file.name: file.read_text("utf-8") for file in sorted(path.glob("*.jsonl"))
    }  # no names of reviewers stand in these
    write_folder(path, kept, kind=data.kind, rows=rows, manifest=said, files=files, overwrite=True)
    return gone


def _from_lines(person: str, path: Path, salt: str | None) -> Forgotten:
    """From a folder of JSON lines: a scored run, PerSum, released data."""
    ids = {person, *_pseudonyms(person, path, salt)}
    files = {file: read_lines(file) for file in sorted(path.glob("*.jsonl"))}
    theirs = {row["id"] for rows in files.values() for row in rows if "id" in row and _reviewer(row) in ids}
    changed: dict[Path, str] = {}
    examples: set[str] = set()
    records = 0
    for file, rows in files.items():
        kept = []
        for row in rows:
            cleaned, inside = _without_reviews(row, ids)
            records += inside
            if _reviewer(row) in ids or row.get("id") in theirs or cleaned.get("product_reviews") == []:
                examples.add(str(row.get("id")))
            else:
                kept.append(cleaned)
        if kept != rows:
            changed[file] = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept)
    if changed:
        manifest = read_manifest(path)
        manifest["forgotten"] = manifest.get("forgotten", 0) + 1
        for file, text in changed.items():
            write_whole(file, text)
        write_whole(path / MANIFEST, json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    return Forgotten(path, records, len(examples))


def _reviewer(row: Mapping[str, Any]) -> object:
    """Whose line it is: an example says so itself, a PerSum sample in the user's own review."""
    own = row.get("own")
    return own.get("reviewer_id") if isinstance(own, dict) else row.get("reviewer_id")


def _without_reviews(row: Mapping[str, Any], ids: set[str]) -> tuple[dict[str, Any], int]:
    """A line without the person's reviews among those of others (PerSum's product reviews), and how many went."""
    found = row.get("product_reviews")
    if not isinstance(found, list):
        return dict(row), 0
    kept = [one for one in found if not (isinstance(one, dict) and one.get("reviewer_id") in ids)]
    return dict(row) | {"product_reviews": kept}, len(found) - len(kept)


def _without(path: Path, ids: set[str]) -> tuple[str, int]:
    rows = read_lines(path)
    kept = [row for row in rows if row.get("reviewer_id") not in ids]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept), len(rows) - len(kept)


def _pseudonyms(person: str, folder: Path, salt: str | None) -> set[str]:
    """The pseudonyms that the person may have there; none where names were kept or nothing is known of the salt."""
    if salt is not None:
        return {pseudonym(person, salt=salt)}
    if not (folder / MANIFEST).is_file():
        return set()
    options = read_manifest(folder).get("options", {})
    if options.get("salt") == "given" and not _is_pseudonym(person):
        raise BadInput(f"{folder} was built with a salt of its own; give it with --salt, or the person's pseudonym")
    return {pseudonym(person, salt=salt_from_seed(options["seed"]))} if options.get("salt") == "from seed" else set()


def _is_pseudonym(person: str) -> bool:
    return len(person) == 13 and person[0] == "r" and all(char in "0123456789abcdef" for char in person[1:])
