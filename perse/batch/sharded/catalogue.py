"""A catalogue: readers and texts, every pair of which is judged, or each reader's candidates; the product is never written out.

    RUN/plan/readers-00000.parquet   readers with their profiles, sorted; a row group for the readers of a shard, or for one of several shards
    RUN/plan/texts.parquet           the texts, sorted by id

A shard is some readers with all their texts or, where one reader has more than a shard holds, that reader with a part of them. Examples are made
when a worker asks for them. What a reader has reviewed in the profile, by its id or word for word, is not asked about: the answer would stand in the question.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from perse.batch.sharded.catalogue_inputs import PROFILE, CatalogueReader, CatalogueText
from perse.batch.sharded.shards import (
    FOLDER,
    Groups,
    Plan,
    Shard,
    digest,
    group_file,
    in_order,
    read_group,
    staged,
    write_shards,
)
from perse.errors import BadInput
from perse.files.disk import writing
from perse.identity import text_key
from perse.records import PointwiseExample

TEXTS = "texts.parquet"
TEXTS_A_GROUP = 1024

Places = npt.NDArray[np.int32]

_NAME = "readers"
_READERS = pa.schema(
    [
        pa.field("reader", pa.string(), nullable=False),
        pa.field("profile", pa.string(), nullable=False),
        pa.field("only", pa.list_(pa.int32())),  # null: all texts
        pa.field("without", pa.list_(pa.int32()), nullable=False),
        pa.field("stands", pa.string(), nullable=False),
    ]
)
_TEXTS = pa.schema([pa.field("text", pa.string(), nullable=False), pa.field("shown", pa.string(), nullable=False)])


@dataclass(frozen=True)
class Catalogue:
    """Makes the examples of shards from readers and texts; see the module."""

    folder: Path

    @property
    def left_out(self) -> int:
        """Pairs that are not judged, since the profile has the text."""
        files = self.folder.glob(f"{_NAME}-*.parquet")
        return sum(
            len(row) for path in files for row in parquet.read_table(path, columns=["without"]).column("without").to_pylist()
        )

    def examples(self, shard: Shard) -> list[str]:
        """The examples of a shard, as JSON."""
        made = []
        for row, places in self._pairs(shard, ["reader", "profile", "only", "without"]):
            profile = PROFILE.validate_json(row["profile"])
            for text, shown in _texts_at(self.folder, places):
                one = PointwiseExample(
                    id=pair_id(row["reader"], text), reviewer_id=row["reader"], item_id=text, profile=profile, query=shown
                )
                made.append(one.model_dump_json(exclude_none=True))
        return made

    def ids(self, shard: Shard) -> list[str]:
        """The ids of a shard's examples."""
        names = _names(self.folder)
        return [
            pair_id(row["reader"], names[place])
            for row, places in self._pairs(shard, ["reader", "only", "without"])
            for place in places.tolist()
        ]

    def pairs(self, shard: Shard) -> list[tuple[str, str]]:
        """The reader and the text of each of a shard's examples."""
        return [names_of(id) for id in self.ids(shard)]

    def _pairs(self, shard: Shard, columns: Sequence[str]) -> Iterator[tuple[Mapping[str, Any], Places]]:
        """The shard's readers, each with the places of their texts."""
        before, size = 0, len(_names(self.folder))
        for row in read_group(group_file(self.folder, _NAME, shard.file), shard.group, columns).to_pylist():
            places = _asked(row["only"], row["without"], size)
            begin, end = (min(max(at - before, 0), len(places)) for at in (shard.first, shard.first + shard.rows))
            if begin < end:
                yield row, places[begin:end]
            before += len(places)


def pair_id(reader: str, text: str) -> str:
    """The id of a pair: READER/TEXT, in which % and / of a name are %25 and %2F."""
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in (reader, text))


def names_of(id: str) -> tuple[str, str]:
    """Reader and text of a `pair_id`."""
    reader, text = id.split("/")
    return unquote(reader), unquote(text)


def make_catalogue(
    run: Path, readers: Iterable[CatalogueReader], texts: Iterable[CatalogueText], *, identity: str, size: int
) -> Plan:
    """Sort, check and cut, into `run/plan`. The texts are in memory for it, the readers are not.

    Args:
        identity: of everything besides the rows that the answers depend on.
        size: most pairs of a shard.
    Raises:
        BadInput: what the rows raise; a reader or a text twice; a candidate that is no text; or no pair at all.
        SaveFailed: it could not be written.
    """
    with staged(run) as stage:
        known = _Known.written(stage, texts)
        identity = digest("\n".join((identity, known.digest)))
        shards: list[Shard] = []
        groups = Groups(stage, _NAME, _READERS)
        try:
            ordered = in_order((known.placed(one) for one in readers), _READERS, stage, order="reader, stands")
            for some in _together(_once(ordered), size, len(known.lengths)):
                shards += _shards(
                    some, *groups.write([row for row, _ in some]), identity=identity, size=size, lengths=known.lengths
                )
        finally:
            groups.close()
        if not shards:
            raise BadInput("there is no pair to judge; give readers, and texts that are not in their profiles")
        write_shards(stage, shards)
    return Plan(run / FOLDER, shards, Catalogue(run / FOLDER))


@dataclass(frozen=True)
class _Known:
    """The texts of a catalogue while it is planned: where each stands, by id and by its words."""

    by_id: Mapping[str, int]
    by_words: Mapping[str, Sequence[int]]
    lengths: npt.NDArray[np.int64]
    digest: str

    @classmethod
    def written(cls, stage: Path, texts: Iterable[CatalogueText]) -> _Known:
        """Keep the texts, sorted.

        Raises:
            BadInput: an id stands twice, or there is no text.
        """
        found: dict[str, CatalogueText] = {}
        for one in texts:
            if (other := found.setdefault(one.text, one)) is not one:
                raise BadInput(f"{one.where}: text '{one.text}' was already used in {other.where}; ids of texts must be unique")
        if not found:
            raise BadInput("there is no text to judge; give a file with some")
        rows = [found[name] for name in sorted(found)]
        with writing(stage):
            table = pa.Table.from_pylist([{"text": one.text, "shown": one.shown} for one in rows], _TEXTS)
            parquet.write_table(table, stage / TEXTS, row_group_size=TEXTS_A_GROUP)
        by_words: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(rows):
            by_words[text_key(one.shown)].append(place)
        return cls(
            {one.text: place for place, one in enumerate(rows)},
            by_words,
            np.array([len(one.shown) for one in rows], dtype=np.int64),
            digest("\x1f".join(digest(f"{one.text}\x1f{one.shown}") for one in rows)),
        )

    def placed(self, given: CatalogueReader) -> dict[str, Any]:
        """The reader as it is kept.

        Raises:
            BadInput: a candidate is no text.
        """
        only: list[int] | None = None
        if given.candidates is not None:
            strange = next((name for name in given.candidates if name not in self.by_id), None)
            if strange is not None:
                raise BadInput(f"{given.where}: candidate '{strange}' is none of the texts; give its text, too")
            only = sorted({self.by_id[name] for name in given.candidates})
        without = {place for past in given.profile for place in self.by_words.get(text_key(past.text), ())}
        without |= {self.by_id[past.item_id] for past in given.profile if past.item_id and past.item_id in self.by_id}
        if only is not None:
            without &= set(only)
        return {
            "reader": given.reader,
            "profile": PROFILE.dump_json(given.profile, exclude_none=True).decode(),
            "only": only,
            "without": sorted(without),
            "stands": given.where,
        }


def _once(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The sorted readers.

    Raises:
        BadInput: one stands twice.
    """
    before: Mapping[str, Any] | None = None
    for row in rows:
        if before and row["reader"] == before["reader"]:
            raise BadInput(
                f"{row['stands']}: reader '{row['reader']}' stands in {before['stands']}, too; give each reader once"
            )
        yield row
        before = row


def _together(rows: Iterable[Mapping[str, Any]], size: int, texts: int) -> Iterator[list[tuple[Mapping[str, Any], Places]]]:
    """Readers that make a shard together, or one that has more texts than a shard holds."""
    held: list[tuple[Mapping[str, Any], Places]] = []
    pairs = 0
    for row in rows:
        places = _asked(row["only"], row["without"], texts)
        if held and pairs + len(places) > size:
            yield held
            held, pairs = [], 0
        if len(places):
            held.append((row, places))
            pairs += len(places)
    if held:
        yield held


def _shards(
    some: Sequence[tuple[Mapping[str, Any], Places]],
    file: int,
    group: int,
    *,
    identity: str,
    size: int,
    lengths: npt.NDArray[np.int64],
) -> Iterator[Shard]:
    profile = [len(row["profile"]) for row, _ in some]
    who = digest(json.dumps([identity, *([row["reader"], row["profile"], row["only"], row["without"]] for row, _ in some)]))
    of_pair = np.repeat(np.arange(len(some)), [len(places) for _, places in some])
    chars = lengths[np.concatenate([places for _, places in some])] + np.array(profile)[of_pair]
    for first in range(0, len(of_pair), size):
        part = of_pair[first : first + size]
        begins = np.diff(part, prepend=-1) != 0
        yield Shard(
            id=digest(f"{who}\x1f{first}\x1f{len(part)}"),
            file=file,
            group=group,
            rows=len(part),
            readers=int(begins.sum()),
            chars=int(chars[first : first + size].sum()),
            shared=int(np.array(profile)[part[~begins]].sum()),
            first=first,
        )


def _asked(only: Sequence[int] | None, without: Sequence[int], texts: int) -> Places:
    """The places of the texts that are judged for a reader."""
    if only is None:
        return np.delete(np.arange(texts, dtype=np.int32), without)
    return np.setdiff1d(np.array(only, dtype=np.int32), np.array(without, dtype=np.int32), assume_unique=True)


@lru_cache(maxsize=2)
def _names(folder: Path) -> list[str]:
    """The ids of all texts."""
    return parquet.read_table(folder / TEXTS, columns=["text"]).column("text").to_pylist()  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _group_of_texts(folder: Path, group: int) -> list[tuple[str, str]]:
    table = read_group(folder / TEXTS, group, ["text", "shown"])
    return [*zip(table.column("text").to_pylist(), table.column("shown").to_pylist(), strict=True)]


def _texts_at(folder: Path, places: Places) -> Iterator[tuple[str, str]]:
    for place in places.tolist():
        yield _group_of_texts(folder, place // TEXTS_A_GROUP)[place % TEXTS_A_GROUP]
