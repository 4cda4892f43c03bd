"""Readers and texts of a catalogue while it is planned: each reader with the places of the texts that are judged for them.

A text is not asked about where the reader's profile has it, by its id, word for word or as a near-duplicate: the answer would stand in the question
(DESIGN.md, promise 5). The texts are in memory for it, the readers and the candidates are sorted and read one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from perse.batch.sharded.catalogue_inputs import PROFILE, Candidate, CatalogueReader, CatalogueText
from perse.batch.sharded.shards import digest, in_order
from perse.errors import BadInput
from perse.files.disk import writing
from perse.records.near import NearIndex

TEXTS = "texts.parquet"
TEXTS_A_GROUP = 1024
_AT_ONCE = 1024
"""Readers whose profiles are compared with the texts together."""

READERS = pa.schema(
    [
        pa.field("reader", pa.string(), nullable=False),
        pa.field("profile", pa.string(), nullable=False),
        pa.field("only", pa.list_(pa.int32())),  # null: all texts
        pa.field("without", pa.list_(pa.int32()), nullable=False),
        pa.field("stands", pa.string(), nullable=False),
    ]
)
TEXT_ROWS = pa.schema([pa.field("text", pa.string(), nullable=False), pa.field("shown", pa.string(), nullable=False)])
_CANDIDATES = pa.schema(
    [
        pa.field("reader", pa.string(), nullable=False),
        pa.field("place", pa.int32(), nullable=False),
        pa.field("stands", pa.string(), nullable=False),
    ]
)

Row = dict[str, Any]
"""A reader as it is kept, by `READERS`."""


@dataclass(frozen=True)
class KnownTexts:
    """The texts of a catalogue: where each stands, by id and by its words."""

    places: Mapping[str, int]
    index: NearIndex
    same: Sequence[Sequence[int]]
    """The places of the texts that are each of the index's."""
    lengths: npt.NDArray[np.int64]
    digest: str

    @classmethod
    def written(cls, stage: Path, texts: Iterable[CatalogueText]) -> KnownTexts:
        """Keep the texts, sorted.

        Raises:
            BadInput: an id stands twice, or there is no text.
            SaveFailed: they could not be written.
        """
        found: dict[str, CatalogueText] = {}
        for one in texts:
            if (other := found.setdefault(one.text, one)) is not one:
                raise BadInput(f"{one.where}: text '{one.text}' was already used in {other.where}; ids of texts must be unique")
        if not found:
            raise BadInput("there is no text to judge; give a file with some")
        rows = [found[name] for name in sorted(found)]
        with writing(stage):
            table = pa.Table.from_pylist([{"text": one.text, "shown": one.shown} for one in rows], TEXT_ROWS)
            parquet.write_table(table, stage / TEXTS, row_group_size=TEXTS_A_GROUP)
        index = NearIndex(one.shown for one in rows)
        same: list[list[int]] = [[] for _ in index.texts]
        for place, one in enumerate(rows):
            same[index.place(one.shown)].append(place)
        return cls(
            {one.text: place for place, one in enumerate(rows)},
            index,
            same,
            np.array([len(one.shown) for one in rows], dtype=np.int64),
            digest("\x1f".join(digest(f"{one.text}\x1f{one.shown}") for one in rows)),
        )

    def kept(self, readers: Iterable[CatalogueReader], *, apart: bool) -> Iterator[Row]:
        """The readers as they are kept; `without` has all texts that their profiles have.

        Args:
            apart: whether candidates are in a file of their own.
        Raises:
            BadInput: a candidate is no text, or stands with a reader although there is a file of them.
        """
        left = iter(readers)
        while some := [*islice(left, _AT_ONCE)]:
            shown = {past.text for one in some for past in one.profile}
            near = {text: [at for place in places for at in self.same[place]] for text, places in self.index.near(shown)}
            for one in some:
                if apart and one.candidates is not None:
                    raise BadInput(
                        f"{one.where}: the reader has candidates, and there is a file of candidates; give one of both"
                    )
                yield self._row(one, near)

    def candidates(self, given: Iterable[Candidate]) -> Iterator[Row]:
        """Candidates of a file of their own, with the places of the texts.

        Raises:
            BadInput: one is no text.
        """
        for one in given:
            yield {"reader": one.reader, "place": self._place(one.text, one.where), "stands": one.where}

    def asked(self, row: Row) -> npt.NDArray[np.int32]:
        """The places of the texts that are judged for a reader."""
        return asked(row["only"], row["without"], len(self.lengths))

    def _row(self, given: CatalogueReader, near: Mapping[str, Sequence[int]]) -> Row:
        without = {place for past in given.profile for place in near[past.text]}
        without |= {self.places[past.item_id] for past in given.profile if past.item_id and past.item_id in self.places}
        return {
            "reader": given.reader,
            "profile": PROFILE.dump_json(given.profile, exclude_none=True).decode(),
            "only": None if given.candidates is None else sorted({self._place(one, given.where) for one in given.candidates}),
            "without": sorted(without),
            "stands": given.where,
        }

    def _place(self, candidate: str, where: str) -> int:
        if candidate not in self.places:
            raise BadInput(f"{where}: candidate '{candidate}' is none of the texts; give its text, too")
        return self.places[candidate]


def asked(only: Sequence[int] | None, without: Sequence[int], texts: int) -> npt.NDArray[np.int32]:
    """The places of the texts that are judged for a reader, of so many."""
    if only is None:
        return np.delete(np.arange(texts, dtype=np.int32), without)
    return np.setdiff1d(np.array(only, dtype=np.int32), np.array(without, dtype=np.int32), assume_unique=True)


def sorted_readers(
    stage: Path, known: KnownTexts, readers: Iterable[CatalogueReader], candidates: Iterable[Candidate] | None
) -> Iterator[Row]:
    """The readers, sorted, each with the places of their texts.

    Raises:
        BadInput: what the rows raise; a reader twice; a candidate of nobody, or that is no text.
    """
    rows = _once(in_order(known.kept(readers, apart=candidates is not None), READERS, stage, order="reader, stands"))
    if candidates is not None:
        order = "reader, place, stands"
        rows = _joined(rows, in_order(known.candidates(candidates), _CANDIDATES, stage, order=order, spill="candidates"))
    for row in rows:
        if row["only"] is not None:
            row["without"] = sorted({*row["without"]} & {*row["only"]})
        yield row


def _once(rows: Iterable[Row]) -> Iterator[Row]:
    """The sorted readers.

    Raises:
        BadInput: one stands twice.
    """
    before: Row | None = None
    for row in rows:
        if before and row["reader"] == before["reader"]:
            raise BadInput(
                f"{row['stands']}: reader '{row['reader']}' stands in {before['stands']}, too; give each reader once"
            )
        yield row
        before = row


def _joined(rows: Iterable[Row], candidates: Iterable[Row]) -> Iterator[Row]:
    """The sorted readers with their candidates, which are sorted by reader, too; who has none is asked about nothing.

    Raises:
        BadInput: a candidate's reader is none of the readers.
    """
    groups = groupby(candidates, key=lambda one: str(one["reader"]))
    name, some = next(groups, (None, iter(())))
    for row in rows:
        if name is not None and name < row["reader"]:
            break
        row["only"] = sorted({one["place"] for one in some}) if name == row["reader"] else []
        yield row
        if name == row["reader"]:
            name, some = next(groups, (None, iter(())))
    if name is not None:
        raise BadInput(f"{next(some)['stands']}: reader '{name}' is none of the readers; give their profile, too")
