"""Training rows on the disk: rendered and packed once, by one process, and mapped into the memory of all the others.

A row is a few numbers that point at branches, a branch a few that point at pieces of token ids, and equal pieces (instruction,
profile) are kept once. The files are read by mapping them, so that the processes of one machine share one copy, and a rank
holds no more than the row it computes. What is kept is a function of `key`; under another key it is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from perse.errors import BadInput
from perse.files.disk import aside, staged
from perse.files.own_files import fresh_folder, replace_folder
from perse.files.runlog import file_digest, write_whole
from perse.formats.json_text import parsed
from perse.formats.plain_files import own_bytes, refuse_endless
from perse.questions import QUESTIONS
from perse.rendering.prompt import Ids, Renderer
from perse.settings.training import TrainConfig
from perse.training.rows.branches import Branch, Branches
from perse.training.rows.prepare import Prepared
from perse.training.rows.schedule import Schedule
from perse.training.saving.checkpoints import to_disk

FOLDER = ".rows"
"""In the run folder."""
ABOUT = "about.json"

Numbers = NDArray[np.int64]


def rows_key(config: TrainConfig, tokenizer: Path) -> str:
    """Digest of everything that rows depend on: settings, the data's bytes, the tokenizer's, and perse's own code."""
    data, train = config.data, config.train
    packing = ("epochs", "steps", "batch_size", "row_tokens", "max_shared_examples", "rows_per_step", "seed")
    said = {
        "data": data.model_dump(mode="json"),
        "train": {name: getattr(train, name) for name in packing},
        "context": config.model.context,
        "watch": config.watch and config.watch.model_dump(mode="json", exclude={"shown"}),  # decides who is held apart
        "files": [_digests(Path(each)) for each in (data.path, *(mixed.path for mixed in data.mix))],
        "tokenizer": [file_digest(path) for path in sorted(tokenizer.iterdir()) if path.suffix in _TOKENIZER],
        "code": _digests(Path(str(files("perse")))),
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


_TOKENIZER = (".json", ".model", ".jinja", ".txt")


def _digests(place: Path) -> list[str]:
    """Of a file, or of all files of a folder except Python's caches."""
    found = sorted(path for path in place.rglob("*") if path.suffix != ".pyc") if place.is_dir() else [place]
    return [file_digest(path) for path in found if path.is_file()]


def write_rows(prepared: Prepared, folder: Path, *, key: str) -> None:
    """Keep `prepared` in `folder`, whole or not at all."""
    if folder.exists() and not (folder / ABOUT).exists():
        raise BadInput(f"{folder} is there and holds no rows; choose another output, or move it away")
    making = aside(folder)
    fresh_folder(making)
    branches = list(prepared.branches.fitting)
    place = {id(branch): at for at, branch in enumerate(branches)}
    pieces: dict[Ids, int] = {}
    paths = [[pieces.setdefault(part, len(pieces)) for part in (*branch.segments, branch.answer)] for branch in branches]
    _save(making, "tokens", [list(piece) for piece in pieces], np.int32)
    _save(making, "paths", paths, np.int64)
    _save(making, "rows", [[place[id(branch)] for branch in row] for row in prepared.schedule.rows], np.int64)
    facts = [[branch.shared, branch.k, branch.k_effective] for branch in branches]
    _write(making / "facts.npy", np.array(facts, dtype=np.int64))
    _write(making / "ids.npy", np.array([branch.example_id for branch in branches]))
    planned = prepared.schedule
    about = {
        "key": key,
        "question": prepared.question.name,
        "data_digest": prepared.data_digest,
        "digest": prepared.digest,
        "longest": prepared.longest,
        "too_long": list(prepared.branches.too_long),
        "reviewers": sorted(one for one in prepared.reviewers if one is not None),
        "unnamed": None in prepared.reviewers,
        "apart": sorted(prepared.apart),
        "unwatched": prepared.unwatched,
        "rows_per_step": planned.rows_per_step,
        "epochs": planned.epochs,
        "share": planned.share,
        "files": {path.name: file_digest(path) for path in sorted(making.iterdir())},
    }
    for path in making.iterdir():
        to_disk(path)
    with staged(making, folder):
        write_whole(making / ABOUT, json.dumps(about | {"sha256": _own_digest(about)}) + "\n")
    replace_folder(making, folder)
    to_disk(folder.parent)


def read_rows(folder: Path, renderer: Renderer, *, key: str) -> Prepared | None:
    """What `write_rows` kept under `key`; None if that is something else, damaged, or nothing."""
    try:
        about: dict[str, Any] = parsed(own_bytes(folder / ABOUT))
        if about["sha256"] != _own_digest(about) or about["key"] != key:
            return None
        if any(file_digest(folder / name) != known for name, known in about["files"].items()):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    pieces, paths = _Lists.load(folder, "tokens"), _Lists.load(folder, "paths")
    branches = StoredBranches(pieces, paths, _array(folder, "facts"), _array(folder, "ids"))
    rows = StoredRows(_Lists.load(folder, "rows"), branches)
    return Prepared(
        question=QUESTIONS[about["question"]],
        renderer=renderer,
        data_digest=about["data_digest"],
        branches=Branches(branches, tuple(about["too_long"])),
        schedule=Schedule(rows, about["rows_per_step"], about["epochs"], about["share"]),
        reviewers=frozenset([*about["reviewers"], *([None] if about["unnamed"] else [])]),
        digest=about["digest"],
        longest=about["longest"],
        apart=frozenset(about["apart"]),
        unwatched=about["unwatched"],
    )


def _own_digest(about: Mapping[str, Any]) -> str:
    """Of what is said, but for the digest itself."""
    said = {name: value for name, value in about.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def needed(prepared: Prepared | None, folder: Path) -> Prepared:
    """The rows that another process has written.

    Raises:
        BadInput: this process does not see them.
    """
    if prepared is None:
        raise BadInput(
            f"the rows that the first process wrote to {folder} are not to be seen here; give an output folder on a file system that all "
            "machines share"
        )
    return prepared


@dataclass(frozen=True)
class _Lists:
    """Lists of numbers, concatenated in `flat`; list i is from `cuts[i]` to `cuts[i + 1]`."""

    flat: NDArray[Any]
    cuts: Numbers

    @classmethod
    def load(cls, folder: Path, name: str) -> _Lists:
        return cls(_array(folder, name), _array(folder, f"{name}-cuts"))

    def __len__(self) -> int:
        return len(self.cuts) - 1

    def at(self, index: int) -> list[int]:
        found: list[int] = self.flat[self.cuts[index] : self.cuts[index + 1]].tolist()
        return found


def _save(folder: Path, name: str, lists: Sequence[Sequence[int]], kind: type[np.signedinteger[Any]]) -> None:
    flat = np.fromiter((number for one in lists for number in one), dtype=kind)
    _write(folder / f"{name}.npy", flat)
    _write(folder / f"{name}-cuts.npy", np.array([0, *accumulate(map(len, lists))], dtype=np.int64))


def _write(path: Path, array: NDArray[Any]) -> None:
    """`np.save` gives a file to C to write to, and anything else it writes to itself: C says nothing of the last bytes that a full disk does not take."""
    with path.open("wb") as file:
        no_file: Any = SimpleNamespace(write=file.write)
        np.save(no_file, array, allow_pickle=False)


def _array(folder: Path, name: str) -> NDArray[Any]:
    refuse_endless(folder / f"{name}.npy")
    found: NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    return found


@dataclass(frozen=True)
class StoredBranches(Sequence[Branch]):
    """Branches, made on access."""

    tokens: _Lists
    paths: _Lists
    facts: Numbers
    ids: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, at: int) -> Branch: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Branch]: ...
    def __getitem__(self, at: int | slice) -> Branch | Sequence[Branch]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        at %= len(self)
        *segments, answer = (tuple(self.tokens.at(piece)) for piece in self.paths.at(at))
        shared, k, k_effective = self.facts[at].tolist()
        return Branch(str(self.ids[at]), tuple(segments), answer, shared, k, k_effective)

    def __iter__(self) -> Iterator[Branch]:
        return (self[at] for at in range(len(self)))


@dataclass(frozen=True)
class StoredRows(Sequence[tuple[Branch, ...]]):
    """Rows of branches, made on access."""

    rows: _Lists
    branches: StoredBranches

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> tuple[Branch, ...]: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[tuple[Branch, ...]]: ...
    def __getitem__(self, at: int | slice) -> tuple[Branch, ...] | Sequence[tuple[Branch, ...]]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return tuple(self.branches[one] for one in self.rows.at(at % len(self)))

    def __iter__(self) -> Iterator[tuple[Branch, ...]]:
        return (self[at] for at in range(len(self)))
