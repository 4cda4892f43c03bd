"""Which packed rows make which optimizer step, for a whole run before it begins: a function of (data, seed), not of time.

Every epoch is packed again, by its own seed and, where profiles are drawn by epoch, from its own draw. Each step takes
`rows_per_step` rows over all devices; the last is filled up with empty rows, so that no example is lost or seen twice
and every device computes equally many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from torch.utils.data import Dataset

from perse.training.rows.batches import filler
from perse.training.rows.branches import Branch
from perse.training.rows.label_tree import pairs_in_order
from perse.training.rows.trie import PackedRow, RowSize, pack, packed, row_size

_ROUNDING = 1e-9
"""Of a share of rows: 1.6 - 1 is a little more than 0.6, whose share of 15 rows is 9 and not 10."""


@dataclass(frozen=True)
class Schedule:
    """All rows of a run in their order; `share` as in `trie.packed`. `epochs` passes over the data."""

    rows: Sequence[Sequence[Branch]]
    rows_per_step: int
    epochs: float
    share: bool

    @property
    def steps(self) -> int:
        return len(self.rows) // self.rows_per_step

    def step_rows(self, step: int) -> list[PackedRow]:
        """The rows of optimizer step `step`, counted from 1, over all devices."""
        return [self.row(at) for at in range((step - 1) * self.rows_per_step, step * self.rows_per_step)]

    def pairs(self, step: int) -> int:
        """How often, in optimizer step `step`, counted from 1, two texts of a row have different scores of one reader."""
        rows = (self.rows[at] for at in range((step - 1) * self.rows_per_step, step * self.rows_per_step))
        return sum(len(pairs_in_order([branch.label for branch in row])) for row in rows)

    def size(self, at: int) -> RowSize:
        """The cost of row `at`; zero for an empty row."""
        return row_size(self.rows[at], share=self.share)

    def row(self, at: int) -> PackedRow:
        return packed(self.rows[at], share=self.share) if self.rows[at] else filler()


def schedule(
    draw: Callable[[int], Sequence[Branch]],
    *,
    epochs: float,
    steps: int | None,
    rows_per_step: int,
    row_tokens: int | None,
    batch_size: int,
    max_shared_examples: int,
    seed: int,
) -> Schedule:
    """The rows of `epochs` passes, or of `steps` optimizer steps where they are given.

    Args:
        draw: the data of epoch 0, 1, ...; asked only for the epochs that are needed.
        row_tokens: of a row at most; None: as many as `batch_size` of the longest.
    Raises:
        BadInput: a branch alone is longer than a row.
    """
    wanted = math.inf if steps is None else steps * rows_per_step
    rows: list[tuple[Branch, ...]] = []
    passes = 0.0
    for epoch in count() if steps is not None else range(math.ceil(epochs)):
        some = draw(epoch)
        packed_rows = pack(
            some,
            row_tokens=row_tokens or batch_size * max(branch.laid_out for branch in some),
            batch_size=batch_size,
            max_shared_examples=max_shared_examples,
            seed=f"{seed} {epoch}",
        )
        part = 1.0 if steps is not None else min(1.0, epochs - epoch)
        wanted_here = math.ceil(part * len(packed_rows) - _ROUNDING)
        taken = int(min(max(1, wanted_here), wanted - len(rows)))
        rows += packed_rows[:taken]
        passes += taken / len(packed_rows)
        if len(rows) >= wanted:
            break
    rows += [()] * (-len(rows) % rows_per_step)
    return Schedule(tuple(rows), rows_per_step, passes, share=max_shared_examples > 1)


class RowDataset(Dataset[PackedRow]):
    """The rows of a schedule for the Hugging Face Trainer, made on access. One whose labels are read knows the pairs of its step."""

    def __init__(self, rows: Schedule) -> None:
        self.schedule = rows
        self._pairs = (0, 0)  # of the step that was asked for last

    def __len__(self) -> int:
        return len(self.schedule.rows)

    def __getitem__(self, at: int) -> PackedRow:
        row = self.schedule.row(at)
        if row.reading is None:
            return row
        step = at // self.schedule.rows_per_step + 1
        if self._pairs[0] != step:
            self._pairs = step, self.schedule.pairs(step)
        return replace(row, reading=replace(row.reading, of_step=self._pairs[1]))
