"""The plan of a run in shards: examples sorted by reader, cut on the boundaries between readers, each shard a row group of a Parquet file.

    RUN/plan/rows-00000.parquet    the examples as JSON, sorted; a row group is a shard
    RUN/plan/shards.parquet        a row for each shard: what it is called, where it lies, what it costs

A shard is named by its rows and by all that its answers depend on (`identity`), so equal shards of equal runs have equal names, whatever order the
input files had. A reader with more examples than a shard has rows goes on in the next. A catalogue, which is all pairs of readers and texts, has a plan of its
own kind (`perse.batch.sharded.catalogue`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter

from perse.batch.sharded.catalogue import catalogue_plan
from perse.batch.sharded.catalogue_rows import TEXTS
from perse.batch.sharded.inputs import Row
from perse.batch.sharded.pieces import GROUPS, Pieces
from perse.batch.sharded.shards import (
    FOLDER,
    SHARDS,
    Groups,
    Plan,
    Shard,
    Totals,
    checked,
    digest,
    group_file,
    in_order,
    of_another_size,
    sorting,
    staged,
    write_shards,
)
from perse.batch.sharded.stored import parsed_examples, read_stored, rows_of_table
from perse.bounded import first_line
from perse.errors import BadInput
from perse.records import Example, PointwiseExample

ROWS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("reader", pa.string(), nullable=False),
        pa.field("adapter", pa.string(), nullable=False),
        pa.field("example", pa.string(), nullable=False),
        pa.field("chars", pa.int64(), nullable=False),
        pa.field("profile", pa.string(), nullable=False),
        pa.field("profile_chars", pa.int64(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
_PROFILE = TypeAdapter(tuple[Any, ...])
"""Writes a profile as it stands in its example."""
_NAME = "rows"
_DRAWN = pa.field("drawn", pa.string(), nullable=False)


@dataclass(frozen=True)
class StoredRows:
    """Examples that the plan keeps: a row group for each shard."""

    folder: Path

    def examples(self, shard: Shard) -> list[Example]:
        """The examples of a shard.

        Raises:
            BadInput: the file is damaged, or gone.
        """
        return parsed_examples(self._column(shard, "example"), self._file(shard))

    def ids(self, shard: Shard) -> list[str]:
        """The ids of a shard's examples."""
        return self._column(shard, "id")

    def pairs(self, shard: Shard) -> list[tuple[str, str]]:
        """The reader and the text of each of a shard's examples.

        Raises:
            BadInput: these are not of single texts.
        """
        told = self.examples(shard)
        single = [one for one in told if isinstance(one, PointwiseExample)]
        if len(single) < len(told):
            raise BadInput(
                "the best texts of a reader are told of single texts that were scored, and these examples are others"
            )
        return [(one.reviewer_id, one.item_id) for one in single]

    def _file(self, shard: Shard) -> Path:
        return group_file(self.folder, _NAME, shard.file)

    def _column(self, shard: Shard, name: str) -> list[str]:
        column = read_stored(self._file(shard), [ROWS.field(name)], group=shard.group).column(name)
        if len(column) != shard.rows:
            raise of_another_size(self._file(shard), shard, len(column))
        return column.to_pylist()  # type: ignore[no-any-return]


def make_plan(
    run: Path,
    rows: Iterable[Row],
    *,
    identity: str,
    size: int,
    limit: int | None = None,
    seed: int = 0,
    weights: Callable[[str], str] = lambda adapter: adapter,
) -> Plan:
    """Sort, check and cut the examples of `rows`, into `run/plan`.

    Args:
        identity: of everything besides the rows that the answers depend on.
        size: most rows of a shard.
        limit: examples to draw by `seed`; None for all.
        weights: the digest of the weights of an adapter that a row names.
    Raises:
        BadInput: what `rows` raises; none at all; or an id that stands twice.
        SaveFailed: it could not be written.
    """
    with staged(run) as stage:
        drawn = "" if limit is None else f"(SELECT * FROM given ORDER BY drawn, id LIMIT {limit})"
        fields = (_fields(row, seed) for row in rows)
        ordered = in_order(fields, ROWS.append(_DRAWN), stage, order="adapter, reader, profile, id, file, line", drawn=drawn)
        shards = [*_written(stage, ordered, identity=identity, size=size, weights=weights)]
        if not shards:
            raise BadInput("there is no example to judge; give a file with some")
        write_shards(stage, shards)
        _check_ids(stage)
    return Plan(run / FOLDER, shards, StoredRows(run / FOLDER), Totals.of(shards))


def read_plan(run: Path) -> Plan:
    """The plan that `make_plan` or `make_catalogue` wrote.

    Raises:
        BadInput: there is none, or it is damaged.
    """
    folder = run / FOLDER
    path = folder / (GROUPS if (folder / TEXTS).exists() else SHARDS)
    if not path.exists():
        raise BadInput(f"{run} has no plan; give the folder of a run that `perse score --driver` began")
    try:
        if path.name == GROUPS:
            return catalogue_plan(folder, Pieces.read(folder))
        shards = checked([Shard(**row) for row in rows_of_table(read_stored(path), path)], path)
    except TypeError as error:
        raise BadInput(f"{path} is damaged ({first_line(error)}); score into another folder") from None
    return Plan(folder, shards, StoredRows(folder), Totals.of(shards))


def cut(rows: Iterable[Mapping[str, Any]], size: int) -> Iterator[list[Mapping[str, Any]]]:
    """The rows of each shard, given rows sorted by adapter and reader: a shard has one adapter, and readers stay whole where they have
    no more than `size` rows."""
    for _, some in groupby(rows, key=lambda row: row.get("adapter")):
        yield from _cut(some, size)


def _cut(rows: Iterable[Mapping[str, Any]], size: int) -> Iterator[list[Mapping[str, Any]]]:
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


def _fields(row: Row, seed: int) -> dict[str, Any]:
    example = row.example
    text = example.model_dump_json(exclude_none=True)
    profile = repr(example.profile) if example.profile else ""
    return {
        "id": example.id,
        "reader": example.reviewer_id or "",
        "adapter": row.adapter,
        "example": text,
        "chars": len(text),
        "profile": digest(profile) if profile else "",
        "profile_chars": len(_PROFILE.dump_json(example.profile, exclude_none=True).decode()) if profile else 0,
        "file": row.file,
        "line": row.line,
        "drawn": digest(f"{seed}\x1f{example.id}"),
    }


def _written(
    stage: Path, rows: Iterable[Mapping[str, Any]], *, identity: str, size: int, weights: Callable[[str], str]
) -> Iterator[Shard]:
    """Writes the sorted rows, a row group for each shard, and says what it wrote."""
    groups = Groups(stage, _NAME, ROWS)
    try:
        for some in cut(rows, size):
            adapter = weights(some[0]["adapter"])
            yield _shard(some, *groups.write(some), f"{identity}+{adapter}" if adapter else identity)
    finally:
        groups.close()


def _shard(rows: Sequence[Mapping[str, Any]], file: int, group: int, identity: str) -> Shard:
    return Shard(
        id=digest("\n".join((identity, *(row["example"] for row in rows)))),
        file=file,
        group=group,
        rows=len(rows),
        readers=len({row["reader"] for row in rows}),
        adapter=rows[0]["adapter"],
        chars=sum(row["chars"] for row in rows),
        shared=sum(
            row["profile_chars"] for before, row in pairwise(rows) if row["profile"] and row["profile"] == before["profile"]
        ),
    )


def _check_ids(stage: Path) -> None:
    """Raises:
    BadInput: an id stands twice.
    """
    files = str(stage / f"{_NAME}-*.parquet")
    with sorting(stage) as database:
        found = database.execute(
            "SELECT id, list(file || ', line ' || line ORDER BY file, line)[:2] FROM read_parquet(?) GROUP BY id HAVING count(*) > 1 "
            "ORDER BY id LIMIT 1",
            [files],
        ).fetchone()
    if found:
        name, (first, second) = found
        raise BadInput(f"{second}: id '{name}' was already used in {first}; ids must be unique")
