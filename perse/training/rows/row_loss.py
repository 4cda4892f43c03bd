"""The loss of a row beyond its answers' likelihood: the order in which a reader scored its texts, and labels that are nearly right.

A row holds many texts of one reader, so that what a judge is scored by, the order within a reader, can be trained directly. Each
example's expected score is read from the label distribution that the judge reads (`perse.engines.labels`), and of two texts that a
reader scored differently the probability that they stand in that order is the logistic function of the difference of their expected scores
(RankNet: Burges et al., Learning to Rank using Gradient Descent, ICML 2005). With soft labels, a part of the target goes to the two
neighbouring labels. The trade-off: pairs that do not stand in one row are not seen.

Letters: B examples of a row, N nodes of the labels' tree, S labels, T' places whose next token is predicted, V tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from perse.engines.labels import direct_extensions
from perse.settings.training import Train
from perse.training.rows.batches import IGNORED, answer_loss
from perse.training.rows.label_tree import LabelTree, Reading

_MOST = 1 - 2.0**-24
"""The share that longer labels may take of one that they go on from; with all of it the logarithm of the rest would be infinite."""


class RowLoss:
    """Loss of the answers, and `rank_weight` times that of the order; adds both up until `numbers` is asked for.

    Args:
        rank_weight: 0 leaves the order out.
        ordinal_smoothing: share of a label's target that goes to its neighbours; 0 learns the label's tokens as any others.
    """

    def __init__(self, *, rank_weight: float, ordinal_smoothing: float) -> None:
        self.rank_weight = rank_weight
        self.ordinal_smoothing = ordinal_smoothing
        self._sums: Tensor | None = None

    def __call__(
        self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None, *, reading: Reading | None = None
    ) -> Tensor:
        """Of one row, as its share of the loss of the whole optimizer step.

        Args:
            outputs: with `logits` (1, T', V); labels: (1, T' + 1), from `collate`, as is `reading` (None: an empty row).
            num_items_in_batch: as for `answer_loss`.
        """
        logits = outputs.logits[0].float()
        count = (labels[0, 1:] != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
        if reading is None:
            answers = answer_loss(SimpleNamespace(logits=logits[None]), labels, count)
            nothing = torch.zeros((), device=answers.device)
            self._add(answers, nothing, nothing, 0)
            return answers
        told = log_labels(logits, reading)  # (B, S)
        if self.ordinal_smoothing:
            learned = labels.clone()
            learned[0, 1 + torch.tensor(_label_places(reading), device=labels.device)] = IGNORED
            soft = soft_targets(reading.tree, reading.index, self.ordinal_smoothing).to(told.device)
            answers = answer_loss(SimpleNamespace(logits=logits[None]), learned, count) - (soft * told).sum() / count
        else:
            answers = answer_loss(SimpleNamespace(logits=logits[None]), labels, count)
        above = differences(expected_scores(told, reading.tree), reading)  # (pairs,)
        rank = torch.nn.functional.softplus(-above).sum() / max(1, reading.of_step)
        self._add(answers, rank, (above > 0).sum(), len(reading.pairs))
        return answers + self.rank_weight * rank if self.rank_weight else answers

    def numbers(self, rows_per_step: int, total: Callable[[Tensor], Tensor]) -> dict[str, float]:
        """Since the last call, over all devices: means over steps of `answer_loss` and `rank_loss`, whose weighted sum is the loss; the
        `rank_pairs` of all these steps, and the share of them whose expected scores are in the reader's order (`rank_ordered`).

        Args:
            total: adds up over devices.
        """
        if self._sums is None:
            return {}
        answers, rank, ordered, pairs, rows = total(self._sums).tolist()
        self._sums = None
        steps = rows / rows_per_step
        found = {"answer_loss": answers / steps}
        if self.rank_weight:
            found |= {"rank_loss": rank / steps, "rank_pairs": pairs}
            found |= {"rank_ordered": ordered / pairs} if pairs else {}
        return found

    def _add(self, answers: Tensor, rank: Tensor, ordered: Tensor, pairs: int) -> None:
        counts = torch.tensor([pairs, 1.0], device=answers.device)
        new = torch.cat([torch.stack([each.detach().float() for each in (answers, rank, ordered)]), counts])
        self._sums = new if self._sums is None else self._sums + new


def row_loss_for(settings: Train) -> RowLoss | None:
    """None where the likelihood of the answers is all that is asked for."""
    if not settings.reads_labels:
        return None
    return RowLoss(rank_weight=settings.rank_weight, ordinal_smoothing=settings.ordinal_smoothing)


def log_labels(logits: Tensor, reading: Reading) -> Tensor:
    """(B, S): logarithms of the probabilities of all labels in each example, not renormalised: what is left to 1 is no label.

    Args:
        logits: (T', V) in float32.
    """
    tree = reading.tree
    nodes = torch.tensor(reading.nodes, device=logits.device)  # (B, N)
    edges = sorted({(tree.nodes.index(label[:n]), label[n]) for label in tree.labels for n in range(len(label))})
    node_of, token_of = torch.tensor(edges, device=logits.device).T  # (E,) each
    mass = torch.logsumexp(logits[nodes], dim=-1)  # (B, N)
    steps = logits[nodes[:, node_of], token_of] - mass[:, node_of]  # (B, E)
    on_way = [[edges.index((tree.nodes.index(label[:n]), label[n])) for n in range(len(label))] for label in tree.labels]
    whole = torch.stack([steps[:, way].sum(1) for way in on_way], dim=1)  # (B, S): logs of P(all tokens of the label)
    own = []
    for at, longer in enumerate(direct_extensions(tree.labels)):
        if longer:
            taken = (whole[:, list(longer)] - whole[:, [at]]).exp().sum(1).clamp(max=_MOST)
            own.append(whole[:, at] + torch.log1p(-taken))
        else:
            own.append(whole[:, at])
    return torch.stack(own, dim=1)


def expected_scores(told: Tensor, tree: LabelTree) -> Tensor:
    """(B,) from `log_labels`: values weighted by the probabilities, renormalised over the labels, as the judge's expected score is."""
    values = torch.tensor(tree.values, dtype=told.dtype, device=told.device)
    return (torch.softmax(told, dim=1) * values).sum(1)


def differences(expected: Tensor, reading: Reading) -> Tensor:
    """(pairs,): how far the expected score of the text that the reader scored higher is above the other's, in steps of the scale."""
    if not reading.pairs:
        return expected[:0]
    high, low = torch.tensor(reading.pairs, device=expected.device).T
    return (expected[high] - expected[low]) / reading.tree.step


def soft_targets(tree: LabelTree, index: Sequence[int], smoothing: float) -> Tensor:
    """(B, S): 1 - `smoothing` on the true label and half of `smoothing` on each of its neighbours; what has no place beyond an end of the
    scale stays on the true label."""
    found = torch.zeros(len(index), len(tree.labels))
    for row, at in enumerate(index):
        found[row, at] = 1 - smoothing
        for neighbour in (at - 1, at + 1):
            found[row, neighbour if 0 <= neighbour < len(tree.labels) else at] += smoothing / 2
    return found


def _label_places(reading: Reading) -> list[int]:
    """Places of the labels' tokens among the learned tokens."""
    return [
        begin + n for begin, at in zip(reading.begins, reading.index, strict=True) for n in range(len(reading.tree.labels[at]))
    ]
