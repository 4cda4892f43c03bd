"""Training rows on the disk: rendered and packed once, by one process, and mapped into the memory of all the others.

A row is a few numbers that point at branches, a branch a few that point at pieces of token ids, and equal pieces (instruction,
profile) are kept once. The files are read by mapping them, so that the processes of one machine share one copy, and a rank
holds no more than the row it computes. What is kept is a function of `key`; under another key it is made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from tokenize import TokenError
from types import SimpleNamespace
from typing import Annotated, Any, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from perse.data.dataset.folder import is_data_folder
from perse.errors import BadInput
from perse.files.disk import aside, staged
from perse.files.own_files import fresh_folder, replace_folder
from perse.files.runlog import MANIFEST, file_digest, write_whole
from perse.formats.json_text import parsed
from perse.formats.plain_files import own_bytes, refuse_endless
from perse.questions import QUESTIONS
from perse.rendering.prompt import Ids, Renderer
from perse.settings.training import TrainConfig
from perse.strict import Strict
from perse.training.rows.branches import Branch, Branches
from perse.training.rows.label_tree import LabelTree, TrueLabel
from perse.training.rows.prepare import Prepared
from perse.training.rows.schedule import Schedule
from perse.training.saving.checkpoints import to_disk

FOLDER = ".rows"
"""In the run folder."""
ABOUT = "about.json"
_FILES = tuple(f"{name}.npy" for name in ("tokens", "tokens-cuts", "paths", "paths-cuts", "rows", "rows-cuts", "facts", "ids"))

Numbers = NDArray[np.int64]


def rows_key(config: TrainConfig, tokenizer: Path) -> str:
    """Digest of everything that rows depend on: settings, the data's bytes, the tokenizer's, and perse's own code."""
    data, train = config.data, config.train
    packing = (
        "epochs",
        "steps",
        "batch_size",
        "row_tokens",
        "max_shared_examples",
        "rows_per_step",
        "seed",
        "rank_weight",
        "reads_labels",
    )
    said = {
        "data": data.model_dump(mode="json"),
        "train": {name: getattr(train, name) for name in packing},
        "context": config.model.context,
        "watch": config.watch and config.watch.model_dump(mode="json", exclude={"shown"}),  # decides who is held apart
        "files": [_of_data(Path(each)) for each in (data.path, *(mixed.path for mixed in data.mix))],
        "tokenizer": [file_digest(path) for path in sorted(tokenizer.iterdir()) if path.suffix in _TOKENIZER],
        "code": _digests(Path(str(files("perse")))),
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


_TOKENIZER = (".json", ".model", ".jinja", ".txt")


def _of_data(place: Path) -> list[str]:
    """Of a file of examples, or of a data set's own files: whatever else lies in its folder is not read, and a folder that is none is refused
    where it is."""
    own = [place / MANIFEST, *sorted(place.glob("*.parquet"))] if is_data_folder(place) else [place]
    return [file_digest(path) for path in own if path.is_file()]


def _digests(folder: Path) -> list[str]:
    """Of all files of a folder except Python's caches."""
    found = sorted(path for path in folder.rglob("*") if path.suffix != ".pyc")
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
    _write(making / "facts.npy", np.array([_facts(branch) for branch in branches], dtype=np.int64))
    _write(making / "ids.npy", np.array([branch.example_id for branch in branches]))
    planned = prepared.schedule
    about = {
        "key": key,
        "question": prepared.question.name,
        "data_digest": prepared.data_digest,
        "mixed_digests": list(prepared.mixed_digests),
        "digest": prepared.digest,
        "longest": prepared.longest,
        "examples": prepared.examples,
        "times": prepared.times,
        "too_long": list(prepared.branches.too_long),
        "reviewers": sorted(one for one in prepared.reviewers if one is not None),
        "unnamed": None in prepared.reviewers,
        "apart": sorted(prepared.apart),
        "unwatched": prepared.unwatched,
        "rows_per_step": planned.rows_per_step,
        "epochs": planned.epochs,
        "share": planned.share,
        "tree": None if branches[0].label is None else asdict(branches[0].label.tree),
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
        about = parsed(own_bytes(folder / ABOUT))
        if about["sha256"] != _own_digest(about) or about["key"] != key:
            return None
        told = About.model_validate(about)
        if told.files.keys() != set(_FILES) or any(file_digest(folder / name) != known for name, known in told.files.items()):
            return None
        branches = StoredBranches(
            _Lists.load(folder, "tokens", np.int32),
            _Lists.load(folder, "paths", np.int64),
            _array(folder, "facts", np.int64),
            _array(folder, "ids", np.str_),
            told.tree,
        )
        rows = StoredRows(_Lists.load(folder, "rows", np.int64), branches)
        question = QUESTIONS[told.question]
        _check(rows, branches, told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadInput, RecursionError, MemoryError):
        return None
    return Prepared(
        question=question,
        renderer=renderer,
        data_digest=told.data_digest,
        mixed_digests=told.mixed_digests,
        branches=Branches(branches, told.too_long),
        schedule=Schedule(rows, told.rows_per_step, told.epochs, told.share),
        reviewers=frozenset([*told.reviewers, *([None] if told.unnamed else [])]),
        digest=told.digest,
        longest=told.longest,
        examples=told.examples,
        times=told.times,
        apart=frozenset(told.apart),
        unwatched=told.unwatched,
    )


class About(Strict):
    """What is said of kept rows beside them."""

    question: str
    data_digest: str
    mixed_digests: tuple[str, ...]
    digest: str
    longest: Annotated[int, Field(ge=1)]
    examples: Annotated[int, Field(ge=1)]
    times: Annotated[float, Field(gt=0)]
    too_long: tuple[str, ...]
    reviewers: tuple[str, ...]
    unnamed: bool
    apart: tuple[str, ...]
    unwatched: str
    rows_per_step: Annotated[int, Field(ge=1)]
    epochs: Annotated[float, Field(gt=0)]
    share: bool
    tree: LabelTree | None
    files: dict[str, str]


def _check(rows: StoredRows, branches: StoredBranches, told: About) -> None:
    """That every number of the files points at something.

    Raises:
        ValueError: one does not.
    """
    facts, paths = branches.facts, branches.paths
    count, parts = len(branches.ids), np.diff(paths.cuts)
    wrong = (
        branches.ids.ndim != 1
        or len(paths) != count
        or facts.shape != (count, _FACTS)
        or (facts[:, :3] < 0).any()
        or (facts[:, 4] < NOBODY).any()
        or not np.isin(facts[:, 3], [NOBODY] if told.tree is None else range(len(told.tree.labels))).all()
        or (facts[:, 0] >= parts).any()  # so that each has an answer
        or (branches.tokens.flat < 0).any()
    )
    if wrong or len(rows) % told.rows_per_step or not len(rows.rows.flat):
        raise ValueError("the rows are no rows")
    paths.refuse_beyond(len(branches.tokens))
    if told.tree is not None:
        answers = np.diff(branches.tokens.cuts)[paths.flat[paths.cuts[1:] - 1]]  # how long each is
        labels = np.array([len(label) for label in told.tree.labels])[facts[:, 3]]
        if (answers < labels + told.tree.tail).any():
            raise ValueError("an answer is shorter than its label")
    rows.rows.refuse_beyond(count)


_FACTS = 5
NOBODY = -1
"""The number of a label that is not read, and of a reader without a name."""


def _facts(branch: Branch) -> list[int]:
    label, reader = NOBODY, NOBODY
    if branch.label is not None:
        label, reader = branch.label.index, NOBODY if branch.label.reader is None else branch.label.reader
    return [branch.shared, branch.k, branch.k_effective, label, reader]


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
    def load(cls, folder: Path, name: str, kind: type[np.generic]) -> _Lists:
        """Raises:
        ValueError: these are no lists.
        """
        found = cls(_array(folder, name, kind), _array(folder, f"{name}-cuts", np.int64))
        ends = found.cuts
        if (
            found.flat.ndim != 1
            or ends.ndim != 1
            or not len(ends)
            or ends[0]
            or ends[-1] != len(found.flat)
            or (np.diff(ends) < 0).any()
        ):
            raise ValueError(f"{name} is cut elsewhere than it ends")
        return found

    def refuse_beyond(self, count: int) -> None:
        """Raises:
        ValueError: a number is that of none of `count` things.
        """
        if ((self.flat < 0) | (self.flat >= count)).any():
            raise ValueError("a number points at nothing")

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


def _array(folder: Path, name: str, kind: type[np.generic]) -> NDArray[Any]:
    """Raises:
    ValueError: it is of another kind, or damaged.
    """
    refuse_endless(folder / f"{name}.npy")
    try:
        found: NDArray[Any] = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    except (EOFError, SyntaxError, TokenError) as error:  # numpy reads a file's head as Python
        raise ValueError(str(error)) from None
    if not (isinstance(found, np.ndarray) and np.issubdtype(found.dtype, kind)):
        raise ValueError(f"{name} holds other things")
    return found


@dataclass(frozen=True)
class StoredBranches(Sequence[Branch]):
    """Branches, made on access."""

    tokens: _Lists
    paths: _Lists
    facts: Numbers
    ids: NDArray[np.str_]
    tree: LabelTree | None = None

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
        shared, k, k_effective, index, reader = self.facts[at].tolist()
        label = None if self.tree is None else TrueLabel(self.tree, index, None if reader == NOBODY else reader)
        return Branch(str(self.ids[at]), tuple(segments), answer, shared, k, k_effective, label)

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
