"""A catalogue: readers and texts, every pair of which is judged, or each reader's candidates; the product is never written out.

    RUN/plan/readers-00000.parquet   readers with their profiles, sorted; a row group for the readers of a shard, or for one of several shards
    RUN/plan/texts.parquet           the texts, sorted by id
    RUN/plan/groups.parquet          a row for each row group of readers, from which the shards are computed

A shard is some readers with all their texts or, where one reader has more than a shard holds, that reader with a part of them. Examples are made
when a worker asks for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from perse.batch.sharded.catalogue_inputs import PROFILE, Candidate, CatalogueReader, CatalogueText
from perse.batch.sharded.catalogue_rows import READERS, TEXT_ROWS, TEXTS, TEXTS_A_GROUP, KnownTexts, Row, asked, sorted_readers
from perse.batch.sharded.pieces import Pieces
from perse.batch.sharded.shards import FOLDER, Groups, Plan, Shard, digest, group_file, of_another_size, staged
from perse.batch.sharded.stored import read_stored
from perse.errors import BadInput
from perse.identity import catalogue_id
from perse.records import Example, PointwiseExample, explain

Places = npt.NDArray[np.int32]

_NAME = "readers"


@dataclass(frozen=True)
class Catalogue:
    """Makes the examples of shards from readers and texts; see the module."""

    folder: Path

    def examples(self, shard: Shard) -> list[Example]:
        """The examples of a shard.

        Raises:
            BadInput: a file of the plan is damaged, or gone.
        """
        made: list[Example] = []
        for row, places in self._pairs(shard, ["reader", "profile", "only", "without"]):
            try:
                profile = PROFILE.validate_json(row["profile"])
                for text, shown in _texts_at(self.folder, places):
                    name = catalogue_id(row["reader"], text)
                    made.append(
                        PointwiseExample(id=name, reviewer_id=row["reader"], item_id=text, profile=profile, query=shown)
                    )
            except ValidationError as error:
                raise BadInput(f"{self._file(shard)} is damaged ({explain(error)}); score into another folder") from None
        return made

    def ids(self, shard: Shard) -> list[str]:
        """The ids of a shard's examples."""
        return [catalogue_id(reader, text) for reader, text in self.pairs(shard)]

    def pairs(self, shard: Shard) -> list[tuple[str, str]]:
        """The reader and the text of each of a shard's examples."""
        names = _names(self.folder)
        return [
            (row["reader"], names[place])
            for row, places in self._pairs(shard, ["reader", "only", "without"])
            for place in places.tolist()
        ]

    def _pairs(self, shard: Shard, columns: Sequence[str]) -> Iterator[tuple[Mapping[str, Any], Places]]:
        """The shard's readers, each with the places of their texts."""
        before, size, found = 0, len(_names(self.folder)), 0
        file = self._file(shard)
        for row in read_stored(file, [READERS.field(name) for name in columns], group=shard.group).to_pylist():
            if not all(0 <= place < size for place in (*(row["only"] or ()), *row["without"])):
                raise BadInput(f"{file} is damaged (a reader has a text that is none); score into another folder")
            places = asked(row["only"], row["without"], size)
            begin, end = (min(max(at - before, 0), len(places)) for at in (shard.first, shard.first + shard.rows))
            if begin < end:
                yield row, places[begin:end]
            before, found = before + len(places), found + end - begin
        if found != shard.rows:
            raise of_another_size(file, shard, found)

    def _file(self, shard: Shard) -> Path:
        return group_file(self.folder, _NAME, shard.file)


def make_catalogue(
    run: Path,
    readers: Iterable[CatalogueReader],
    texts: Iterable[CatalogueText],
    candidates: Iterable[Candidate] | None = None,
    *,
    identity: str,
    size: int,
) -> Plan:
    """Sort, check and cut, into `run/plan`. The texts are in memory for it, the readers and candidates are not.

    Args:
        candidates: the texts that are judged for each reader, where they are not with the readers; None for all.
        identity: of everything besides the rows that the answers depend on.
        size: most pairs of a shard.
    Raises:
        BadInput: what the rows raise; a reader or a text twice; a candidate that is no text, or nobody's; or no pair at all.
        SaveFailed: it could not be written.
    """
    with staged(run) as stage:
        known = KnownTexts.written(stage, texts)
        identity = digest("\n".join((identity, known.digest)))
        told: list[dict[str, Any]] = []
        left_out = idle = 0
        groups = Groups(stage, _NAME, READERS)
        try:
            for some, without in _together(sorted_readers(stage, known, readers, candidates), known, size):
                left_out += sum(len(row["without"]) for row in (*some, *without))
                idle += len(without)
                if some:
                    groups.write(some)
                    told.append(_group(some, known, identity=identity, size=size))
        finally:
            groups.close()
        if not told:
            raise BadInput("there is no pair to judge; give readers, and texts that are not in their profiles")
        shards = Pieces.of(told, size=size, left_out=left_out, idle=idle)
        shards.write(stage)
    return catalogue_plan(run / FOLDER, shards)


def catalogue_plan(folder: Path, shards: Pieces) -> Plan:
    """The plan in a folder that `make_catalogue` wrote."""
    return Plan(folder, shards, Catalogue(folder), shards.totals)


def _together(rows: Iterable[Row], known: KnownTexts, size: int) -> Iterator[tuple[list[Row], list[Row]]]:
    """Readers that make a shard together, or one that has more texts than a shard holds; and those before them who have none."""
    held: list[Row] = []
    without: list[Row] = []
    pairs = 0
    for row in rows:
        own = len(known.asked(row))
        if held and pairs + own > size:
            yield held, without
            held, without, pairs = [], [], 0
        (held if own else without).append(row)
        pairs += own
    yield held, without


def _group(some: Sequence[Row], known: KnownTexts, *, identity: str, size: int) -> dict[str, Any]:
    """What the shards of a row group are computed from."""
    places = [known.asked(row) for row in some]
    pairs, shards = [len(one) for one in places], -(-sum(map(len, places)) // size)
    profiles = [len(row["profile"]) for row in some]
    again = [count - 1 if len(some) > 1 else count - shards for count in pairs]  # pairs whose profile the one before has
    return {
        "name": digest(json.dumps([identity, *([row["reader"], row["profile"], row["only"], row["without"]] for row in some)])),
        "pairs": sum(pairs),
        "readers": len(some),
        "chars": sum(
            int(known.lengths[at].sum()) + count * profile for at, count, profile in zip(places, pairs, profiles, strict=True)
        ),
        "shared": sum(count * profile for count, profile in zip(again, profiles, strict=True)),
    }


@lru_cache(maxsize=2)
def _names(folder: Path) -> list[str]:
    """The ids of all texts."""
    return read_stored(folder / TEXTS, [TEXT_ROWS.field("text")]).column("text").to_pylist()  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _group_of_texts(folder: Path, group: int) -> list[tuple[str, str]]:
    table = read_stored(folder / TEXTS, [*TEXT_ROWS], group=group)
    if len(table) != (expected := min(TEXTS_A_GROUP, len(_names(folder)) - group * TEXTS_A_GROUP)):
        why = f"row group {group} has {len(table)} texts, expected {expected}"
        raise BadInput(f"{folder / TEXTS} is damaged ({why}); score into another folder")
    return [*zip(table.column("text").to_pylist(), table.column("shown").to_pylist(), strict=True)]


def _texts_at(folder: Path, places: Places) -> Iterator[tuple[str, str]]:
    for place in places.tolist():
        yield _group_of_texts(folder, place // TEXTS_A_GROUP)[place % TEXTS_A_GROUP]
