"""Examples as training rows: which fit, and how a batch of them is laid out.

A row is the prompt's ids followed by the answer's; only the answer is learned, by construction from segments, not by
searching for a response string. Rows are padded on the left, so that answers end together and the LM head is computed
for the last K + 1 positions only, K being the longest answer of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from perse.errors import BadInput, TooLong
from perse.questions import Question
from perse.records import Example
from perse.rendering import ANSWER_TOKENS, Ids, Renderer

IGNORED = -100
"""Label of a position that is not learned, as torch's cross entropy has it."""


@dataclass(frozen=True)
class Row:
    """One training row: prompt ids, answer ids (end-of-turn included), and how much of the profile is in it."""

    example_id: str
    prompt: Ids
    answer: Ids
    k: int
    k_effective: int


@dataclass(frozen=True)
class Rows:
    """The rows that fit, and the ids of the examples that did not (`too_long`: counted, not trained on)."""

    rows: tuple[Row, ...]
    too_long: tuple[str, ...]


def training_rows(
    renderer: Renderer, question: Question, examples: Iterable[Example], *, answer_tokens: int = ANSWER_TOKENS
) -> Rows:
    """Every example's prompt with its true answer. Pairs are learned in the order given.

    Raises:
        BadInput: an example without a reference, or none that fits.
    """
    rows: list[Row] = []
    too_long: list[str] = []
    for example in examples:
        if example.reference is None:
            raise BadInput(f"example {example.id} has no 'reference'; training needs the reviewer's true answer")
        answer = renderer.completion(question, example)
        try:
            prompt = renderer.render(question, example, answer_tokens=answer_tokens, completion=answer)[0]
        except TooLong:
            too_long.append(example.id)
        else:
            ids = tuple(token for line in answer for token in line)
            rows.append(Row(example.id, prompt.ids, ids, len(example.profile), prompt.k_effective))
    if not rows:
        raise BadInput(
            f"none of the {len(too_long)} examples fits {renderer.context} tokens with {answer_tokens} kept for the answer; "
            "raise model.context or shorten the texts"
        )
    return Rows(tuple(rows), tuple(too_long))


class RowDataset(Dataset[Row]):
    """Rows for the Hugging Face Trainer; order and batches are its sampler's."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: int) -> Row:
        return self.rows[at]


def collate(rows: Sequence[Row], *, pad_id: int) -> dict[str, Any]:
    """A batch of N rows, L tokens long, whose K learned tokens end at the last position.

    Returns:
        `input_ids`, `attention_mask`, `position_ids`: (N, L); `labels`: (N, K + 1), column j being the token at position
        L - K - 1 + j, or `IGNORED`; `logits_to_keep`: K + 1.
    """
    longest = max(len(row.prompt) + len(row.answer) for row in rows)
    learned = max(len(row.answer) for row in rows)
    ids = torch.full((len(rows), longest), pad_id, dtype=torch.long)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    labels = torch.full((len(rows), learned + 1), IGNORED, dtype=torch.long)
    for at, row in enumerate(rows):
        tokens = torch.tensor(row.prompt + row.answer)
        ids[at, longest - len(tokens) :] = tokens
        mask[at, longest - len(tokens) :] = 1
        labels[at, learned + 1 - len(row.answer) :] = torch.tensor(row.answer)
    positions = mask.cumsum(1).sub(1).clamp(min=0)
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "position_ids": positions,
        "labels": labels,
        "logits_to_keep": learned + 1,
    }


def answer_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Negative log-likelihood of the learned tokens, summed and divided by their number in the whole optimizer step.

    L = -sum_t log p(y_t | prompt, y_<t) (PerSE, section 3), so accumulating k small batches equals one large batch.

    Args:
        outputs: with `logits` (N, K + 1, V) of the last K + 1 positions.
        labels: (N, K + 1) from `collate`.
        num_items_in_batch: learned tokens over all devices and accumulated batches; this batch's by default.
    """
    logits = outputs.logits[:, :-1].float()  # (N, K, V): position t predicts token t + 1
    targets = labels[:, 1:]  # (N, K)
    total = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), ignore_index=IGNORED, reduction="sum"
    )
    count = (targets != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    return total / count
