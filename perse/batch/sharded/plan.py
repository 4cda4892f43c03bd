"""The plan of a run in shards: examples sorted by reader, cut on the boundaries between readers, each shard a row group of a Parquet file.

    RUN/plan/rows-00000.parquet    the examples as JSON, sorted; a row group is a shard
    RUN/plan/shards.parquet        a row for each shard: what it is called, where it lies, what it costs

Sorting is DuckDB's, which spills to the disk, so the examples may be more than memory holds. A shard is named by its rows and by all that
its answers depend on (`identity`), so equal shards of equal runs have equal names, whatever order the input files had. A reader with more
examples than a shard has rows goes on in the next.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from perse.batch.sharded.inputs import Row
from perse.errors import BadInput
from perse.files.disk import aside, writing
from perse.installing import needing

FOLDER = "plan"
SHARDS = "shards.parquet"
SHARDS_A_FILE = 500
"""Row groups of a file of rows: its footer, which a worker reads, stays below a megabyte."""

_BATCH = 2048
_MEMORY = "1GB"
"""Of DuckDB, before it spills to the disk."""

ROWS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("reader", pa.string(), nullable=False),
        pa.field("example", pa.string(), nullable=False),
        pa.field("chars", pa.int64(), nullable=False),
        pa.field("profile", pa.string(), nullable=False),
        pa.field("profile_chars", pa.int64(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
_DRAWN = pa.field("drawn", pa.string(), nullable=False)


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


@dataclass(frozen=True)
class Plan:
    """All shards, in the order of their readers."""

    folder: Path
    shards: Sequence[Shard]

    @property
    def rows(self) -> int:
        """Examples of all shards."""
        return sum(shard.rows for shard in self.shards)

    def examples(self, shard: Shard) -> list[str]:
        """The examples of a shard, as JSON."""
        with parquet.ParquetFile(_rows_file(self.folder, shard.file)) as file:
            return file.read_row_group(shard.group, columns=["example"]).column("example").to_pylist()  # type: ignore[no-any-return]

    def ids(self, shard: Shard) -> list[str]:
        """The ids of a shard's examples."""
        with parquet.ParquetFile(_rows_file(self.folder, shard.file)) as file:
            return file.read_row_group(shard.group, columns=["id"]).column("id").to_pylist()  # type: ignore[no-any-return]


def make_plan(run: Path, rows: Iterable[Row], *, identity: str, size: int, limit: int | None = None, seed: int = 0) -> Plan:
    """Sort, check and cut the examples of `rows`, into `run/plan`.

    Args:
        identity: of everything besides the rows that the answers depend on.
        size: most rows of a shard.
        limit: examples to draw by `seed`; None for all.
    Raises:
        BadInput: what `rows` raises; none at all; or an id that stands twice.
        SaveFailed: it could not be written.
    """
    final = run / FOLDER
    stage = aside(final)
    shutil.rmtree(stage, ignore_errors=True)
    with writing(stage):
        stage.mkdir(parents=True)
    try:
        shards = [*_written(stage, _sorted(rows, stage, limit=limit, seed=seed), identity=identity, size=size)]
        if not shards:
            raise BadInput("there is no example to judge; give a file with some")
        with writing(final):
            parquet.write_table(pa.Table.from_pylist([asdict(shard) for shard in shards]), stage / SHARDS)
            _check_ids(stage)
            stage.rename(final)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return Plan(final, shards)


def read_plan(run: Path) -> Plan:
    """The plan that `make_plan` wrote.

    Raises:
        BadInput: there is none, or it is damaged.
    """
    path = run / FOLDER / SHARDS
    try:
        rows = parquet.read_table(path).to_pylist()
        return Plan(run / FOLDER, [Shard(**row) for row in rows])
    except FileNotFoundError:
        raise BadInput(f"{run} has no plan; give the folder of a run that `perse score --driver` began") from None
    except (pa.ArrowException, OSError, TypeError) as error:
        raise BadInput(f"{path} is damaged ({str(error).splitlines()[0]}); score into another folder") from None


def cut(rows: Iterable[Mapping[str, Any]], size: int) -> Iterator[list[Mapping[str, Any]]]:
    """The rows of each shard, given rows sorted by reader: readers stay whole where they have no more than `size` rows."""
    shard: list[Mapping[str, Any]] = []
    own: list[Mapping[str, Any]] = []  # of one reader, at most `size`
    for row in rows:
        if own and (row["reader"] != own[0]["reader"] or len(own) == size):
            if len(shard) + len(own) > size and shard:
                yield shard
                shard = []
            shard, own = shard + own, []
        own.append(row)
    if len(shard) + len(own) > size and shard:
        yield shard
        shard = []
    if shard + own:
        yield shard + own


def _sorted(rows: Iterable[Row], stage: Path, *, limit: int | None, seed: int) -> Iterator[Mapping[str, Any]]:
    with needing("batch"):
        import duckdb

    failed: list[BaseException] = []

    def read() -> Iterator[pa.RecordBatch]:
        try:
            yield from _batches(rows, seed)
        except BaseException as error:
            failed.append(error)  # DuckDB would make a text of it
            raise

    reader = pa.RecordBatchReader.from_batches(ROWS.append(_DRAWN), read())
    drawn = "" if limit is None else f"(SELECT * FROM reader ORDER BY drawn, id LIMIT {limit})"
    with duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": str(stage / "sorting")}) as database:
        database.register("reader", reader)
        try:
            asked = database.sql(f"SELECT * FROM {drawn or 'reader'} ORDER BY reader, profile, id, file, line")
            for batch in asked.to_arrow_reader(_BATCH):
                yield from batch.to_pylist()
        except duckdb.Error:
            if failed:
                raise failed[0] from None
            raise
    shutil.rmtree(stage / "sorting", ignore_errors=True)


def _batches(rows: Iterable[Row], seed: int) -> Iterator[pa.RecordBatch]:
    held: list[dict[str, Any]] = []
    for row in rows:
        held.append(_fields(row, seed))
        if len(held) == _BATCH:
            yield pa.RecordBatch.from_pylist(held, ROWS.append(_DRAWN))
            held = []
    yield pa.RecordBatch.from_pylist(held, ROWS.append(_DRAWN))


def _fields(row: Row, seed: int) -> dict[str, Any]:
    example = row.example
    text = example.model_dump_json(exclude_none=True)
    profile = repr(example.profile) if example.profile else ""
    return {
        "id": example.id,
        "reader": example.reviewer_id or "",
        "example": text,
        "chars": len(text),
        "profile": _digest(profile) if profile else "",
        "profile_chars": len(profile),
        "file": row.file,
        "line": row.line,
        "drawn": _digest(f"{seed}\x1f{example.id}"),
    }


def _written(stage: Path, rows: Iterable[Mapping[str, Any]], *, identity: str, size: int) -> Iterator[Shard]:
    """Writes the sorted rows, a row group for each shard, and says what it wrote."""
    writer: parquet.ParquetWriter | None = None
    try:
        for number, some in enumerate(cut(rows, size)):
            file, group = divmod(number, SHARDS_A_FILE)
            with writing(stage):
                if group == 0:
                    if writer is not None:
                        writer.close()
                    writer = parquet.ParquetWriter(_rows_file(stage, file), ROWS)
                assert writer is not None
                writer.write_table(pa.Table.from_pylist(some, ROWS), row_group_size=len(some))
            yield _shard(some, file, group, identity)
    finally:
        if writer is not None:
            with writing(stage):
                writer.close()


def _shard(rows: Sequence[Mapping[str, Any]], file: int, group: int, identity: str) -> Shard:
    return Shard(
        id=_digest("\n".join((identity, *(row["example"] for row in rows)))),
        file=file,
        group=group,
        rows=len(rows),
        readers=len({row["reader"] for row in rows}),
        chars=sum(row["chars"] for row in rows),
        shared=sum(
            row["profile_chars"] for before, row in pairwise(rows) if row["profile"] and row["profile"] == before["profile"]
        ),
    )


def _check_ids(stage: Path) -> None:
    """Raises:
    BadInput: an id stands twice.
    """
    import duckdb

    files = str(stage / "rows-*.parquet")
    with duckdb.connect(config={"memory_limit": _MEMORY, "temp_directory": str(stage / "sorting")}) as database:
        found = database.execute(
            "SELECT id, list(file || ', line ' || line ORDER BY file, line)[:2] FROM read_parquet(?) GROUP BY id HAVING count(*) > 1 "
            "ORDER BY id LIMIT 1",
            [files],
        ).fetchone()
    shutil.rmtree(stage / "sorting", ignore_errors=True)
    if found:
        name, (first, second) = found
        raise BadInput(f"{second}: id '{name}' was already used in {first}; ids must be unique")


def _rows_file(folder: Path, number: int) -> Path:
    return folder / f"rows-{number:05}.parquet"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
