"""A packed row as the model's input, and the loss of its output.

The LM head is computed at the places that predict a learned token only (`logits_to_keep` as an index map: a place may stand
in it several times, where branches share the last token of their prompts).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from perse.settings.training import Attention
from perse.training.rows.attention import dense_mask
from perse.training.rows.trie import PackedRow, Span, Tree

IGNORED = -100
"""The label that torch's cross entropy ignores."""


def collate(rows: Sequence[PackedRow], *, attention: Attention = "tree") -> dict[str, Any]:
    """One row of L tokens, T of them learned, as a batch of one.

    Returns:
        `input_ids`, `position_ids`: (1, L); `logits_to_keep`: (T,) places whose next token is learned; `labels`: (1, T + 1),
        the learned tokens behind one that is ignored (the Trainer counts labels from the second on); `use_cache`, false: set in
        the model's configuration it would be saved with the model; and `tree`, or `attention_mask` (1, 1, L, L). Where labels are read,
        `logits_to_keep` and `labels` go on with the places that only this wants, ignored by the likelihood, and `reading` is for the loss.
    """
    (row,) = rows
    beside = (IGNORED,) * (len(row.sources) - len(row.targets))
    structure = {"attention_mask": dense_mask(row.tree)} if attention == "mask" else {"tree": row.tree}
    return {
        "input_ids": torch.tensor([row.ids]),
        "position_ids": torch.tensor([row.positions]),
        "logits_to_keep": torch.tensor(row.sources, dtype=torch.long),
        "labels": torch.tensor([(IGNORED, *row.targets, *beside)]),
        "use_cache": False,
        **structure,
        **({} if row.reading is None else {"reading": row.reading}),
    }


def filler() -> PackedRow:
    """An empty row, so that every device computes equally many rows in the last step of a run."""
    return PackedRow((0,), (0,), Tree(1, 1, (Span(0, 1, 1),)), (0,), (IGNORED,), (), 0)


def answer_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Negative log-likelihood of the learned tokens, summed and divided by their number in the whole optimizer step.

    L = -sum_t log p(y_t | prompt, y_<t) (PerSE, section 3), so accumulating k rows equals one large row.

    Args:
        outputs: with `logits` (1, T, V) at the places that `collate` asked for.
        labels: (1, T + 1) from `collate`.
        num_items_in_batch: learned tokens over all devices and accumulated rows; this row's by default.
    """
    targets = labels[0, 1:]  # (T,)
    total = torch.nn.functional.cross_entropy(outputs.logits[0].float(), targets, ignore_index=IGNORED, reduction="sum")
    count = (targets != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    return total / count
