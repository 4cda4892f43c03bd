"""What a plan of a run in shards is made of, whatever its examples come from: shards, where their rows are, and how they are sorted.

Sorting is DuckDB's, which spills to the disk, so that rows may be more than memory holds.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import parquet

from perse.errors import BadInput, RunMismatch
from perse.files.disk import aside, writing
from perse.formats.json_text import parsed
from perse.formats.plain_files import own_bytes
from perse.installing import needing
from perse.records import Example

FOLDER = "plan"
SHARDS = "shards.parquet"
WRITTEN = "files.json"
"""The plan's files and their sizes."""
GROUPS_A_FILE = 500
"""Row groups of a file: its footer, which a worker reads, stays below a megabyte."""
MEMORY = "1GB"
"""Of DuckDB, before it spills to the disk."""

SHARD_ID = r"[0-9a-f]{16}"
"""What `digest` gives: a shard's name, of which names of files are made."""

_BATCH = 2048


@dataclass(frozen=True)
class Shard:
    """Some examples of few readers, judged by one worker at a time."""

    id: str
    file: int
    group: int
    rows: int
    readers: int
    chars: int
    """Of its examples, as JSON."""
    shared: int
    """Those of `chars` that belong to the profile of the example before."""
    adapter: str = ""
    """The name of the one that judges its examples; empty for the judge as it is."""
    first: int = 0
    """The shard's first row of its row group; of a catalogue, its first pair."""


@dataclass(frozen=True)
class Totals:
    """What all shards of a plan have together; a reader of several shards may count in each."""

    rows: int
    readers: int
    chars: int
    shared: int

    @classmethod
    def of(cls, shards: Sequence[Shard]) -> Totals:
        """The sums over these shards."""
        return cls(*(sum(getattr(one, name) for one in shards) for name in ("rows", "readers", "chars", "shared")))


class Source(Protocol):
    """Where the rows of shards are."""

    def examples(self, shard: Shard) -> list[Example]:
        """The examples of a shard."""
        ...

    def ids(self, shard: Shard) -> list[str]:
        """The ids of a shard's examples."""
        ...

    def pairs(self, shard: Shard) -> list[tuple[str, str]]:
        """The reader and the text of each of a shard's examples.

        Raises:
            BadInput: these are not of single texts.
        """
        ...


@dataclass(frozen=True)
class Plan:
    """All shards, in the order of their readers."""

    folder: Path
    shards: Sequence[Shard]
    source: Source
    totals: Totals

    @property
    def rows(self) -> int:
        """Examples of all shards."""
        return self.totals.rows

    def examples(self, shard: Shard) -> list[Example]:
        """The examples of a shard."""
        return self.source.examples(shard)

    def ids(self, shard: Shard) -> list[str]:
        """The ids of a shard's examples."""
        return self.source.ids(shard)


def digest(text: str) -> str:
    """16 hex digits."""
    return blake2b(text.encode(), digest_size=8).hexdigest()


@contextmanager
def staged(run: Path) -> Iterator[Path]:
    """A folder that becomes `run/plan` at the end of the block, and nothing where it fails.

    Raises:
        SaveFailed: it could not be written.
    """
    final = run / FOLDER
    stage = aside(final)
    _remove_own(final)
    shutil.rmtree(stage, ignore_errors=True)
    with writing(stage):
        stage.mkdir(parents=True)
    try:
        yield stage
        with writing(final):
            (stage / WRITTEN).write_text(json.dumps(_sizes(stage.iterdir()), sort_keys=True) + "\n")
            stage.rename(final)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _remove_own(plan: Path) -> None:
    """Remove the plan that a start left which was killed before it could say what it is of: that of which all files are as it wrote them.

    Raises:
        RunMismatch: there is something else.
    """
    if not os.path.lexists(plan):
        return
    inside = [] if plan.is_symlink() or not plan.is_dir() else [*plan.iterdir()]
    try:
        written = parsed(own_bytes(plan / WRITTEN))
    except (OSError, ValueError, BadInput):
        written = None
    if _sizes(one for one in inside if one.name != WRITTEN) != written:
        raise RunMismatch(f"{plan} is there already, and is not as perse left one; choose another folder, or move it away")
    with writing(plan):
        for one in inside:
            one.unlink()
        plan.rmdir()


def _sizes(files: Iterable[Path]) -> dict[str, int]:
    return {one.name: one.lstat().st_size for one in files}


def checked(shards: Sequence[Shard], path: Path) -> Sequence[Shard]:
    """Shards as they were read from a file, of whose names others are made.

    Raises:
        BadInput: one has a name or a number that no plan gives.
    """
    for one in shards:
        named = isinstance(one.id, str) and re.fullmatch(SHARD_ID, one.id)
        numbers = (one.file, one.group, one.rows, one.readers, one.chars, one.shared, one.first)
        if not (named and isinstance(one.adapter, str) and all(type(each) is int and each >= 0 for each in numbers)):
            raise BadInput(f"{path} is damaged (it has a shard that no plan has); score into another folder")
    if len({one.id for one in shards}) < len(shards):
        raise BadInput(f"{path} is damaged (it has a shard twice); score into another folder")
    return shards


def write_shards(stage: Path, shards: Sequence[Shard]) -> None:
    """Keep the list of shards."""
    with writing(stage):
        parquet.write_table(pa.Table.from_pylist([asdict(shard) for shard in shards]), stage / SHARDS)


def in_order(
    rows: Iterable[Mapping[str, Any]],
    schema: pa.Schema,
    stage: Path,
    *,
    order: str,
    drawn: str = "",
    spill: str = "sorting",
) -> Iterator[dict[str, Any]]:
    """The rows, sorted.

    Args:
        order: columns, as SQL names them.
        drawn: a subquery that takes some of the table `given`; by default all are taken.
        spill: the folder in `stage` for what memory does not hold; of no other sorting at the same time.
    Raises:
        whatever `rows` raises.
    """
    failed: list[BaseException] = []

    def read() -> Iterator[pa.RecordBatch]:
        try:
            yield from _batches(rows, schema)
        except BaseException as error:
            failed.append(error)  # DuckDB would make a text of it
            raise

    given = pa.RecordBatchReader.from_batches(schema, read())
    with sorting(stage, spill) as database:
        database.register("given", given)
        try:
            for batch in database.sql(f"SELECT * FROM {drawn or 'given'} ORDER BY {order}").to_arrow_reader(_BATCH):
                yield from batch.to_pylist()
        except Exception:
            if failed:
                raise failed[0] from None
            raise


@contextmanager
def sorting(stage: Path, spill: str = "sorting") -> Iterator[Any]:
    """DuckDB in bounded memory, without a bar of its own on stdout; what it spilled is removed.

    Raises:
        BadInput: it is not installed.
    """
    with needing("batch"):
        import duckdb
    spilled = stage / spill
    try:
        with duckdb.connect(config={"memory_limit": MEMORY, "temp_directory": str(spilled)}) as database:
            database.execute("SET enable_progress_bar = false")
            yield database
    finally:
        shutil.rmtree(spilled, ignore_errors=True)


class Groups:
    """Writes row groups to files of `GROUPS_A_FILE` each: `NAME-00000.parquet` and so on."""

    def __init__(self, folder: Path, name: str, schema: pa.Schema) -> None:
        self._folder, self._name, self._schema = folder, name, schema
        self._writer: parquet.ParquetWriter | None = None
        self._number = 0

    def write(self, rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
        """Add a row group; the number of its file, and its own in that."""
        file, group = divmod(self._number, GROUPS_A_FILE)
        with writing(self._folder):
            if group == 0:
                self.close()
                # Without statistics, which would hold the longest texts of each row group twice more.
                self._writer = parquet.ParquetWriter(
                    group_file(self._folder, self._name, file), self._schema, compression="zstd", write_statistics=False
                )
            assert self._writer is not None
            self._writer.write_table(pa.Table.from_pylist(list(rows), self._schema), row_group_size=len(rows))
        self._number += 1
        return file, group

    def close(self) -> None:
        if self._writer is not None:
            with writing(self._folder):
                self._writer.close()
            self._writer = None


def group_file(folder: Path, name: str, number: int) -> Path:
    """A file that `Groups` wrote."""
    return folder / f"{name}-{number:05}.parquet"


def of_another_size(path: Path, shard: Shard, found: int) -> BadInput:
    """The error where a plan's files do not agree on a shard."""
    return BadInput(
        f"{path} is damaged (shard {shard.id} has {found} rows, and the plan says {shard.rows}); score into another folder"
    )


def _batches(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    held: list[Mapping[str, Any]] = []
    for row in rows:
        held.append(row)
        if len(held) == _BATCH:
            yield pa.RecordBatch.from_pylist(held, schema)
            held = []
    yield pa.RecordBatch.from_pylist(held, schema)
