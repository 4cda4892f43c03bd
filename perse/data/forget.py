"""A person leaves: their reviews and examples go from data sets, exports and scored runs (DESIGN.md, promise 11).

All places are named at once, since only a data set folder tells under which pseudonym a name stands in the exports and runs
made from it. A profile holds its own reviewer's reviews only, so nobody else's example changes; in PerSum the person's reviews
also leave the product reviews of other samples. Files are written whole beside the old ones and renamed; counts and cards are
made again, and a data set's digest changes, so what was made from it before can be told apart. The raw files, the models trained
on the data and what they learned are not ours to reach: see docs/data.md for what is left to do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.belongings import kind_of
from perse.data.folder import DATA_SET, is_data_folder, load_folder, write_folder
from perse.data.parts import parts_of
from perse.data.pseudonyms import is_pseudonym, pseudonym, salt_from_seed
from perse.errors import BadInput
from perse.replacing import Claim, claimed
from perse.runlog import MANIFEST, read_lines, read_manifest, refuse_open_run, write_whole


@dataclass(frozen=True)
class Forgotten:
    """What went from one place; 0 and 0 if the person was not in it."""

    path: Path
    records: int
    """Reviews or comparisons; of files of lines, those inside other people's samples."""
    examples: int


def forget(person: str, paths: Sequence[Path], *, salt: str | None = None) -> list[Forgotten]:
    """Removes a person from data set folders, PerSum folders and their work folders, folders of released data, scored runs, and
    files of examples.

    Args:
        person: a pseudonym, or the name as the raw files have it.
        salt: of the pseudonyms, where a data set was built with one.
    Raises:
        BadInput: a path is none of these, or would be left with nothing; a name of which no pseudonym is known, because no data
            set is among the paths or it was built with a salt that is not given. Nothing is changed then.
    """
    for path in paths:
        if not path.is_file() and not is_data_folder(path) and not (path / MANIFEST).is_file():
            raise BadInput(f"{path}: found no data set, scored run or file of examples to forget a person in")
    for path in paths:
        for lines in path.glob("*.jsonl") if path.is_dir() else ():
            refuse_open_run(lines)  # what a run that goes on adds would be lost
    ids = known_as(person, paths, salt=salt)
    return [_from_data_set(ids, path) if is_data_folder(path) else _from_lines(ids, path) for path in paths]


def known_as(person: str, paths: Sequence[Path], *, salt: str | None = None) -> set[str]:
    """The person's name and pseudonyms, as far as these places tell. Raises as `forget`."""
    return {person, *_pseudonyms(person, paths, salt)}


def _from_data_set(ids: set[str], path: Path) -> Forgotten:
    with claimed(path, DATA_SET, overwrite=True) as place:
        return _from_claimed(ids, path, place)


def _from_claimed(ids: set[str], path: Path, place: Claim) -> Forgotten:
    data = load_folder(path)
    for file in sorted(path.glob("*.jsonl")):  # an export may lie in the folder, too; whatever else does is not perse's
        if not DATA_SET.may_own(file.name) and _is_export(file):
            write_whole(file, _without(file, ids))
    rows = [row for row in data.rows if row.reviewer_id not in ids]
    reviews = {one: record for one, record in data.reviews.items() if record.reviewer_id not in ids}
    comparisons = {one: record for one, record in data.comparisons.items() if record.reviewer_id not in ids}
    kept: list[Any] = [*reviews.values(), *comparisons.values()]
    gone = Forgotten(path, len(data.reviews) + len(data.comparisons) - len(kept), len(data.rows) - len(rows))
    if not gone.records:
        return gone
    if not rows:
        raise _nothing_left(path)
    parts = parts_of(rows, reviews, comparisons, data.manifest["options"], empty_side=True)
    counts = {
        "reviewers": len({row.reviewer_id for row in rows}),
        "records": len(kept),
        "parts": [part.model_dump(mode="json") for part in parts],
    }
    said = {name: value for name, value in data.manifest.items() if name not in ("schema", "kind")}
    said |= {"counts": counts, "forgotten": data.manifest.get("forgotten", 0) + 1}
    own = {file.name: _without(file, ids) for file in sorted(path.glob("*.jsonl")) if DATA_SET.may_own(file.name)}
    write_folder(place, kept, kind=data.kind, rows=rows, manifest=said, files=own)
    return gone


def _from_lines(ids: set[str], path: Path) -> Forgotten:
    """From one file of lines, or from a folder of them: a scored run, PerSum or its work folder, released data."""
    files = {file: _rows(file) for file in ([path] if path.is_file() else sorted(path.glob("*.jsonl")))}
    theirs = {row["id"] for rows in files.values() for row in rows if "id" in row and _is_theirs(row, ids)}
    changed: dict[Path, list[dict[str, Any]]] = {}
    examples: set[str] = set()
    records = 0
    for file, rows in files.items():
        kept = []
        for row in rows:
            cleaned, inside = _without_reviews(row, ids)
            if _is_theirs(row, ids) or row.get("id") in theirs or cleaned.get("product_reviews") == []:
                examples.add(str(row.get("id")))
            else:
                records += inside
                kept.append(cleaned)
        if kept != rows:
            changed[file] = kept
    if changed and kind_of(path) is not None and not any(changed.get(file, rows) for file, rows in files.items()):
        raise _nothing_left(path)
    for file, kept in changed.items():
        write_whole(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept))
    if changed and path.is_dir():
        _counted_again(path)
    return Forgotten(path, records, len(examples))


def _counted_again(folder: Path) -> None:
    """The manifest, and the card where there is one, of a folder from which lines were taken."""
    manifest = read_manifest(folder)
    manifest["forgotten"] = manifest.get("forgotten", 0) + 1
    card = None
    if manifest.get("kind") == "persum":
        from perse.data.persum_folder import counted_samples, load_persum, persum_card

        manifest["samples"] = counted_samples(load_persum(folder), manifest["samples"])
        card = persum_card(manifest)
    elif manifest.get("kind") == "release":
        from perse.data.release import counted_lines, release_card

        manifest["counts"] = counted_lines(folder)
        card = release_card(manifest)
    write_whole(folder / MANIFEST, json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    if card is not None:
        write_whole(folder / "README.md", card)


def _is_theirs(row: Mapping[str, Any], ids: set[str]) -> bool:
    """Whether a line is about the person: an example says so itself, a PerSum sample in the user's own review, a judgement by an
    id that begins with, or holds, a pseudonym."""
    own = row.get("own")
    reviewer = own.get("reviewer_id") if isinstance(own, dict) else row.get("reviewer_id")
    return reviewer in ids or any(is_pseudonym(one) and one in str(row.get("id", "")) for one in ids)


def _rows(file: Path) -> list[dict[str, Any]]:
    """The lines of a file, also the last one if no newline ends it: editors leave it out, and it may be somebody else's."""
    rows = read_lines(file)
    last = file.read_bytes().rpartition(b"\n")[2]
    with suppress(ValueError):
        rows += [json.loads(last)] if last.strip() else []
    return rows


def _without(file: Path, ids: set[str]) -> str:
    """The file's lines without the person's; the others as they are."""
    lines = file.read_text("utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not (line.strip() and _is_theirs(json.loads(line), ids)))


def _is_export(file: Path) -> bool:
    """Whether every line is an example: not a raw file, a note or anything else of a user's."""
    if file.is_symlink():
        return False
    try:
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, ValueError):
        return False
    return bool(rows) and all(isinstance(row, dict) and "id" in row and ("query" in row or "prompt" in row) for row in rows)


def _without_reviews(row: Mapping[str, Any], ids: set[str]) -> tuple[dict[str, Any], int]:
    """A line without the person's reviews among those of others (PerSum's product reviews), and how many went."""
    found = row.get("product_reviews")
    if not isinstance(found, list):
        return dict(row), 0
    kept = [one for one in found if not (isinstance(one, dict) and one.get("reviewer_id") in ids)]
    return dict(row) | {"product_reviews": kept}, len(found) - len(kept)


def _pseudonyms(person: str, paths: Sequence[Path], salt: str | None) -> set[str]:
    """The pseudonyms that the person may have in any of the places."""
    if salt is not None:
        return {pseudonym(person, salt=salt)}
    if is_pseudonym(person):
        return set()
    built = [options for path in paths if (options := _options(path)) is not None]
    if not built:
        raise BadInput(
            f"nothing here tells under which pseudonym '{person}' stands; name the data set folder too, or give --salt, or the "
            "pseudonym"
        )
    if any(options.get("salt") == "given" for options in built):
        raise BadInput("a data set here was built with a salt of its own; give it with --salt, or the person's pseudonym")
    return {pseudonym(person, salt=salt_from_seed(one["seed"])) for one in built if one.get("salt") == "from seed"}


def _options(path: Path) -> Mapping[str, Any] | None:
    """The options with which the data of a place was built; those of a scored run are its data set's, while that is there."""
    folder = path if path.is_dir() else path.parent
    if not (folder / MANIFEST).is_file():
        return None
    manifest = read_manifest(folder)
    data = manifest.get("context", {}).get("data_folder")
    if "options" not in manifest and data and (Path(data) / MANIFEST).is_file():
        manifest = read_manifest(Path(data))
    options = manifest.get("options")
    return options if isinstance(options, dict) and "salt" in options else None


def _nothing_left(path: Path) -> BadInput:
    return BadInput(f"{path}: nothing would be left without this person; delete it")
