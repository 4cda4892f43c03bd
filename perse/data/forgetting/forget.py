"""A person leaves: their reviews and examples go from data sets, exports and scored runs (DESIGN.md, promise 11).

All places are named at once, since only a data set folder tells under which pseudonym a name stands in the exports and runs
made from it. A profile holds its own reviewer's reviews only, so other people's examples do not change; in PerSum the person's reviews
also leave the product reviews of other samples. Each folder is changed wholly or not at all (`perse.files.replacing`); counts and cards are
made again, and a data set's digest changes, so what was made from it before can be told apart. The raw files, models trained
on the data and what they learned are out of reach: see docs/data.md for what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from perse.data.dataset.folder import DATA_SET, is_data_folder, load_folder, write_folder
from perse.data.dataset.split_counts import parts_of
from perse.data.forgetting.lines import Line, is_export, is_own, lines_of, own_lines
from perse.data.forgetting.manifests import check_manifest, data_folder_of
from perse.data.forgetting.voters import ANSWERS, VOTE, logs, without_reader
from perse.data.pseudonyms import is_pseudonym, pseudonym, salt_from_seed
from perse.errors import BadInput
from perse.files.belongings import CARD, kind_of, manifest_of, resolved
from perse.files.disk import sweep_temporaries, write_bytes
from perse.files.locking import locked
from perse.files.replacing import claimed, manifest_text, settle, update_files
from perse.files.runlog import MANIFEST, read_manifest, run_closed
from perse.formats.json_text import shortened
from perse.records import parse_example


@dataclass(frozen=True)
class Forgotten:
    """Counts removed from one place; 0 and 0 if the person was not in it."""

    path: Path
    records: int
    """Reviews or comparisons; of files of lines, those inside other people's samples."""
    examples: int


Planned = tuple[Forgotten, Callable[[], None]]
"""The counts to remove, and the function that removes."""


def forget(person: str, paths: Sequence[Path], *, salt: str | None = None) -> list[Forgotten]:
    """Removes a person from data set folders, PerSum folders and their work folders, folders of released data, scored runs, votes
    of real readers, and files of examples.

    All places are locked and searched before the first is changed. Then one after the other is changed, each wholly or not at
    all: after a kill or a full disk in between, the same command finishes the rest.

    Args:
        person: a pseudonym, or the name as the raw files have it.
        salt: of the pseudonyms, where a data set was built with one.
    Raises:
        BadInput: a path of another kind, or one that would become empty; a name without a known pseudonym, because no data
            set is among the paths or it was built with a salt that is not given. Nothing is changed then.
        RunMismatch: another process writes one of them. Nothing is changed then.
        SaveFailed: the disk is full; the places before are done, this one is as it was.
    """
    if not person.strip():
        raise BadInput("no person is named; give a pseudonym, or the name as the raw files have it")
    for path in paths:
        if path.is_symlink():
            raise BadInput(f"{path}: is a link to {path.readlink()}, and is not written through; name what it leads to")
        if path.is_file() and path.suffix == ".parquet" and not is_data_folder(path.parent):
            raise BadInput(
                f"{path}: is a file of Parquet, of which nobody is taken out; remove it, and write it again (perse score merge) once the person "
                "is forgotten in what it was made of"
            )
        if not path.is_file() and not is_data_folder(path) and not (path / MANIFEST).is_file():
            raise BadInput(f"{path}: found no data set, scored run or file of examples to forget a person in")
        if any((path / "plan" / name).exists() for name in ("shards.parquet", "groups.parquet")):
            raise BadInput(
                f"{path}: is a run in shards, of which nobody can be taken out; forget the person in the data, remove the folder, and "
                "score again"
            )
        if _run_kind(path).startswith("rehearsal"):
            raise BadInput(
                f"{path}: is a run of perse rehearsal, whose summaries and answers are made of many people's reviews, and nobody can be taken out; "
                "forget the person in the samples, remove the folder, and run again"
            )
        if _run_kind(path) in ANSWERS:
            raise BadInput(
                f"{path}: holds answers to votes, of which {path.resolve().parent} tells whose they are; name that folder"
            )
    ids = known_as(person, paths, salt=salt)
    places = _once_each(paths)
    for path in places:
        if path.is_file() and path.name in own_lines(path.parent):
            raise BadInput(f"{path}: goes with the other files of {path.parent}, which hold the person too; name the folder")
    with ExitStack() as held:
        planned = [_planned(ids, path, held) for path in places]
        for _, change in planned:
            change()
    return [gone for gone, _ in planned]


def _run_kind(path: Path) -> str:
    """Which command's run a folder is; empty if it is none."""
    run = (manifest_of(path) or {}).get("run") if path.is_dir() else None
    return str(run.get("kind")) if isinstance(run, dict) else ""


def _once_each(paths: Sequence[Path]) -> list[Path]:
    """Each place once; a file that goes with a folder which is named too is none of its own."""
    places = {resolved(path): path for path in paths}
    return [path for at, path in places.items() if not (at.parent in places and at.suffix == ".jsonl" and is_own(at))]


def known_as(person: str, paths: Sequence[Path], *, salt: str | None = None) -> set[str]:
    """The person's name and pseudonyms, as far as these places tell. Raises as `forget`."""
    for folder in paths:
        if folder.is_dir():
            check_manifest(folder)
    return {person, *_pseudonyms(person, paths, salt)}


def _planned(ids: set[str], path: Path, held: ExitStack) -> Planned:
    if is_data_folder(path):
        return _data_set(ids, path, held)
    return _votes(ids, path, held) if _run_kind(path) == VOTE else _lines(ids, path, held)


def _votes(ids: set[str], path: Path, held: ExitStack) -> Planned:
    """A run of votes, in which the person may be a reader."""
    held.enter_context(locked(resolved(path)))
    settle(path)
    for log in logs(path):
        held.enter_context(run_closed(log))
    votes, others, contents = without_reader(ids, path)
    if votes and not others:
        raise _nothing_left(path)
    return Forgotten(path, 0, votes), lambda: update_files(path, contents) if contents else None


def _data_set(ids: set[str], path: Path, held: ExitStack) -> Planned:
    place = held.enter_context(claimed(path, DATA_SET, overwrite=True))
    data = load_folder(path)
    sweep_temporaries(path)
    files = [file for file in sorted(path.glob("*.jsonl")) if DATA_SET.may_own(file.name)]
    own = {file.name: _bytes(_without(file, ids)).decode() for file in files}
    # An export may also be in the folder; other files are not perse's.
    exports = [file for file in sorted(path.glob("*.jsonl")) if file not in files and is_export(file)]
    lost = {file.name: len(lines_of(file)) - len(_without(file, ids)) for file in exports}
    also = {file.name: _bytes(_without(file, ids)) for file in exports if lost[file.name]}
    rows = [row for row in data.rows if row.reviewer_id not in ids]
    reviews = {one: record for one, record in data.reviews.items() if record.reviewer_id not in ids}
    comparisons = {one: record for one, record in data.comparisons.items() if record.reviewer_id not in ids}
    kept: list[Any] = [*reviews.values(), *comparisons.values()]
    gone = Forgotten(path, len(data.reviews) + len(data.comparisons) - len(kept), len(data.rows) - len(rows))
    if not gone.records:  # they may be removed already, but an export was added since
        return Forgotten(path, 0, sum(lost.values())), lambda: update_files(path, also) if also else None
    if not rows:
        raise _nothing_left(path)
    parts = parts_of(rows, reviews, comparisons, data.manifest["options"], empty_side=True)
    counts = {
        "reviewers": len({row.reviewer_id for row in rows}),
        "records": len(kept),
        "parts": [part.model_dump(mode="json") for part in parts],
    }
    said = {name: value for name, value in data.manifest.items() if name not in ("schema", "kind", "evidence")}
    # Evidence is made of all readers' scores, so it goes with the first who leaves.
    said |= {"counts": counts, "forgotten": data.manifest.get("forgotten", 0) + 1}
    return gone, lambda: write_folder(
        place, kept, kind=data.kind, rows=rows, manifest=said, files=own, also=also, keep_edited=False
    )


def _lines(ids: set[str], path: Path, held: ExitStack) -> Planned:
    """One file of lines, or a folder of them: a scored run, PerSum or its work folder, released data."""
    held.enter_context(locked(resolved(path)))
    settle(path)
    sweep_temporaries(path if path.is_dir() else path.parent)
    found = [path] if path.is_file() else [file for file in sorted(path.glob("*.jsonl")) if is_own(file)]
    for file in found:
        if path.is_dir():
            held.enter_context(run_closed(file))  # lines that a running run appends would be lost
    files = {file.name: lines_of(file) for file in found}
    named = {
        file.name: {str(line.row["id"]) for line in files[file.name] if "id" in line.row and _is_theirs(line, ids)}
        for file in found
    }
    # One folder's own files are about the same examples; in an export, or a file alone, the same id may be another person's.
    own = own_lines(path) if path.is_dir() else frozenset()
    of_the_folder = {one for name in named.keys() & own for one in named[name]}
    changed: dict[str, list[Line]] = {}
    examples: set[str] = set()
    records = 0
    for name, lines in files.items():
        theirs = of_the_folder if name in own else named[name]
        kept = []
        for line in lines:
            cleaned, inside = _without_reviews(line.row, ids)
            by_id = line.reviewer is None and str(line.row.get("id")) in theirs
            if _is_theirs(line, ids) or by_id or (inside and not cleaned["product_reviews"]):
                examples.add(str(line.row.get("id")))
            else:
                records += inside
                kept.append(line.rewritten(cleaned) if inside else line)
        if kept != lines:
            changed[name] = kept
    left = {name: [(line.number, line.row) for line in lines if line.row] for name, lines in (files | changed).items()}
    if changed and kind_of(path) is not None and not any(left.values()):
        raise _nothing_left(path)
    contents = {name: _bytes(kept) for name, kept in changed.items()}
    gone = Forgotten(path, records, len(examples))
    if path.is_file():
        return gone, lambda: write_bytes(path, contents[path.name]) if contents else None
    whole = contents | _counted_again(path, left, contents) if contents else {}
    return gone, lambda: update_files(path, whole) if whole else None


def _counted_again(
    folder: Path, left: Mapping[str, Sequence[tuple[int, Mapping[str, Any]]]], contents: Mapping[str, bytes]
) -> dict[str, bytes]:
    """The manifest, and the card where there is one, of a folder from which lines are taken.

    Args:
        left: all lines that stay, by file, with their numbers.
        contents: the files that change.
    """
    manifest = read_manifest(folder)
    manifest["forgotten"] = manifest.get("forgotten", 0) + 1
    new = dict(contents)
    if manifest.get("kind") == "persum":
        from perse.data.persum.card import persum_card
        from perse.data.persum.folder import GROUPS, SAMPLES, counted_samples, parse_samples

        samples = parse_samples(left.get(SAMPLES, ()), folder / SAMPLES)
        there = manifest.get("samples")
        counts = counted_samples(
            samples, {**(there if isinstance(there, dict) else {}), **{one.category: {} for one in samples}}
        )
        if isinstance(there, dict):
            manifest["samples"] = counts
        if manifest.get("options"):  # else made by hand: the card is its maker's, or there is none
            new[CARD] = persum_card({**manifest, "samples": counts}, groups=GROUPS).encode()
    elif manifest.get("kind") == "release":
        from perse.data.release import counted, release_card

        read = [[parse_example(row) for _, row in left.get(name, ())] for name in ("verbatim.jsonl", "examples.jsonl")]
        manifest["counts"] = counted(*read)
        new[CARD] = release_card(manifest).encode()
    if isinstance(manifest.get("files"), dict):
        manifest["files"] |= {name: sha256(content).hexdigest() for name, content in new.items() if name in manifest["files"]}
    return new | {MANIFEST: manifest_text(manifest).encode()}


def _is_theirs(line: Line, ids: set[str]) -> bool:
    """Whether a line is about the person: it says so itself, or is a judgement by an id that begins with, or holds, a pseudonym."""
    return line.reviewer in ids or any(is_pseudonym(one) and one in str(line.row.get("id", "")) for one in ids)


def _without(file: Path, ids: set[str]) -> list[Line]:
    """The file's lines without the person's."""
    return [line for line in lines_of(file) if not _is_theirs(line, ids)]


def _bytes(lines: Iterable[Line]) -> bytes:
    return b"".join(line.content for line in lines)


def _without_reviews(row: Mapping[str, Any], ids: set[str]) -> tuple[dict[str, Any], int]:
    """A line without the person's reviews among those of others (PerSum's product reviews), and how many went."""
    found = row.get("product_reviews")
    if not isinstance(found, list):
        return dict(row), 0
    kept = [one for one in found if not (isinstance(one, dict) and _is_one_of(one.get("reviewer_id"), ids))]
    return dict(row) | {"product_reviews": kept}, len(found) - len(kept)


def _is_one_of(value: object, ids: set[str]) -> bool:
    return isinstance(value, str) and value in ids


def _pseudonyms(person: str, paths: Sequence[Path], salt: str | None) -> set[str]:
    """The pseudonyms that the person may have in any of the places."""
    if salt is not None:
        return {pseudonym(person, salt=salt)}
    if is_pseudonym(person):
        return set()
    built = [options for path in paths if (options := _options(path, person)) is not None]
    if not built and any(_stands_in(person, path) for path in paths):
        return set()
    if not built:
        raise BadInput(
            f"nothing here tells under which pseudonym '{person}' stands; name the data set folder too, or give --salt, or the "
            "pseudonym"
        )
    if any(options.get("salt") == "given" for options in built):
        raise BadInput("a data set here was built with a salt of its own; give it with --salt, or the person's pseudonym")
    return {pseudonym(person, salt=salt_from_seed(one["seed"])) for one in built if one.get("salt") == "from seed"}


def _stands_in(person: str, path: Path) -> bool:
    """Whether the name itself is the reviewer's in a file, or in one of a folder, that does not say how it was built."""
    found = [path] if path.is_file() else [file for file in path.glob("*.jsonl") if is_own(file)]
    return any(line.reviewer == person for file in found for line in lines_of(file))


def _options(path: Path, person: str) -> Mapping[str, Any] | None:
    """The options with which the data of a place was built; those of a scored run are its data set's, while that is there."""
    folder = path if path.is_dir() else path.parent
    if not (folder / MANIFEST).is_file():
        return None
    manifest = read_manifest(folder)
    data = data_folder_of(manifest, folder)
    if "options" not in manifest and data is not None and (data / MANIFEST).is_file():
        folder, manifest = data, read_manifest(data)
    options = manifest.get("options")
    if not isinstance(options, dict) or "salt" not in options:
        return None
    if options["salt"] == "from seed" and type(options.get("seed")) is not int:
        if _stands_in(person, path):  # made by hand, without pseudonyms
            return None
        raise BadInput(
            f"{folder / MANIFEST}: field 'options.seed' is {shortened(options.get('seed'))}, expected the number of which the pseudonyms were "
            "made; give --salt, or the person's pseudonym"
        )
    return options


def _nothing_left(path: Path) -> BadInput:
    return BadInput(f"{path}: nothing would be left without this person; delete it")
