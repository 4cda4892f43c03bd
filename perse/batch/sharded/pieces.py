"""The shards of a catalogue, computed when they are looked at: a thousand million pairs have millions, too many to list.

    RUN/plan/groups.parquet   a row for each row group of readers: what it is called, how many pairs it has, what these cost

The pairs of a row group are cut after every `size` of them, so where a shard lies follows from its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import parquet

from perse.batch.sharded.shards import GROUPS_A_FILE, Shard, Totals, digest
from perse.batch.sharded.stored import read_stored
from perse.errors import BadInput
from perse.files.disk import writing

GROUPS = "groups.parquet"
MOST = 10**9
"""Shards of a plan."""
_NUMBER = re.compile(rb"[0-9]{1,15}")
_SIZE, _LEFT_OUT, _IDLE = b"size", b"left_out", b"idle"

_GROUPS = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("pairs", pa.int64(), nullable=False),
        pa.field("readers", pa.int64(), nullable=False),
        pa.field("chars", pa.int64(), nullable=False),
        pa.field("shared", pa.int64(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Pieces(Sequence[Shard]):
    """All shards of a catalogue, in the order of their readers."""

    groups: pa.Table

    @classmethod
    def of(cls, groups: Sequence[Mapping[str, Any]], *, size: int, left_out: int, idle: int) -> Pieces:
        """The shards of these row groups, each with `name`, `pairs`, `readers`, `chars` and `shared`.

        Args:
            size: most pairs of a shard.
            left_out: pairs that are not judged, since the profile has the text.
            idle: readers who have no pair.
        """
        told = {_SIZE: str(size), _LEFT_OUT: str(left_out), _IDLE: str(idle)}
        return cls(pa.Table.from_pylist(list(groups), _GROUPS.with_metadata(told)))

    @classmethod
    def read(cls, folder: Path) -> Pieces:
        """What `write` wrote.

        Raises:
            BadInput: it holds what no plan has.
        """
        table = read_stored(folder / GROUPS, [*_GROUPS])
        told = table.schema.metadata or {}
        fits = table.schema.equals(_GROUPS) and all(
            _NUMBER.fullmatch(told.get(name, b"")) for name in (_SIZE, _LEFT_OUT, _IDLE)
        )
        if fits:
            numbers = [table.column(name).to_numpy() for name in ("pairs", "readers", "chars", "shared")]
            size = int(told[_SIZE])
            fits = size > 0 and all(((one >= 0) & (one < 2**53)).all() for one in numbers) and (numbers[0] / size).sum() < MOST
        if not fits:
            raise BadInput(f"{folder / GROUPS} is damaged (it has what no plan has); score into another folder")
        return cls(table)

    def write(self, folder: Path) -> None:
        """Keep what the shards are computed from.

        Raises:
            SaveFailed: it could not be written.
        """
        with writing(folder):
            parquet.write_table(self.groups, folder / GROUPS)

    @property
    def totals(self) -> Totals:
        """What all shards have together."""
        return Totals(*(int(self._numbers[name].sum()) for name in ("pairs", "readers", "chars", "shared")))

    @property
    def left_out(self) -> int:
        """Pairs that are not judged, since the profile has the text."""
        return int(self.groups.schema.metadata[_LEFT_OUT])

    @property
    def idle(self) -> int:
        """Readers who have no pair."""
        return int(self.groups.schema.metadata[_IDLE])

    @cached_property
    def _size(self) -> int:
        return int(self.groups.schema.metadata[_SIZE])

    @cached_property
    def _numbers(self) -> dict[str, npt.NDArray[np.int64]]:
        return {name: self.groups.column(name).to_numpy() for name in ("pairs", "readers", "chars", "shared")}

    @cached_property
    def _ends(self) -> npt.NDArray[np.int64]:
        """How many shards there are up to the end of each row group."""
        return np.cumsum(-(-self._numbers["pairs"] // self._size))

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, number: int) -> Shard: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Shard]: ...
    def __getitem__(self, number: int | slice) -> Shard | Sequence[Shard]:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"shard {number} of {len(self)}")
        number %= len(self)
        group = int(np.searchsorted(self._ends, number, side="right"))
        return next(self._of_group(group, number - (int(self._ends[group - 1]) if group else 0)))

    def __iter__(self) -> Iterator[Shard]:
        for group in range(len(self.groups)):
            yield from self._of_group(group)

    def _of_group(self, group: int, begin: int = 0) -> Iterator[Shard]:
        """The shards of a row group, from one on. What the group's pairs cost is spread over them evenly, without a remainder."""
        name = self.groups.column("name")[group].as_py()
        pairs, readers, chars, shared = (int(self._numbers[one][group]) for one in ("pairs", "readers", "chars", "shared"))
        file, within = divmod(group, GROUPS_A_FILE)
        for first in range(begin * self._size, pairs, self._size):
            end = min(first + self._size, pairs)
            yield Shard(
                id=digest(f"{name}\x1f{first}\x1f{end - first}"),
                file=file,
                group=within,
                rows=end - first,
                readers=readers,  # one, where a row group is more than a shard
                chars=chars * end // pairs - chars * first // pairs,
                shared=shared * end // pairs - shared * first // pairs,
                first=first,
            )
