"""The slow twin of a packed row: every example alone, unpadded, the plain way. And how far two sets of gradients are apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from perse.settings.training import Attention
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.branches import Branch
from perse.training.rows.trie import packed

Gradients = dict[str, torch.Tensor]


def loss_alone(model: Any, branch: Branch, learned: int) -> torch.Tensor:
    """An example's share of the loss over `learned` tokens: no positions, mask or index map given, logits of every place."""
    ids = torch.tensor([branch.prompt + branch.answer], device=model.device)
    logits = model(input_ids=ids, use_cache=False).logits[0, :-1].float()
    return -torch.log_softmax(logits, -1)[torch.arange(len(logits)), ids[0, 1:]][-len(branch.answer) :].sum() / learned


def alone(model: Any, branches: Sequence[Branch]) -> tuple[float, Gradients]:
    """Loss and gradients of the branches one after the other."""
    model.zero_grad()
    learned = sum(len(branch.answer) for branch in branches)
    total = 0.0
    for branch in branches:
        loss = loss_alone(model, branch, learned)
        loss.backward()
        total += float(loss.detach())
    return total, gradients(model)


def together(model: Any, branches: Sequence[Branch], attention: Attention, *, share: bool = True) -> tuple[float, Gradients]:
    """Loss and gradients of the branches as one packed row."""
    model.zero_grad()
    batch = collate([packed(branches, share=share)], attention=attention)
    batch = {name: value.to(model.device) if isinstance(value, torch.Tensor) else value for name, value in batch.items()}
    labels = batch.pop("labels")
    loss = answer_loss(model(**batch), labels)
    loss.backward()
    return float(loss.detach()), gradients(model)


def gradients(model: Any) -> Gradients:
    return {name: each.grad.clone() for name, each in model.named_parameters() if each.grad is not None}


def furthest(one: Gradients, other: Gradients, *, floor: float = 0.0) -> float:
    """The largest ||d|| / ||g|| of a parameter; with `floor`, ||g|| counts as at least that share of the whole gradient's norm."""
    assert one.keys() == other.keys() and other
    least = floor * float(torch.stack([each.double().norm() for each in other.values()]).norm())
    return max(
        float((one[name] - g).double().norm()) / max(float(g.double().norm()), least, 1e-30) for name, g in other.items()
    )


def least_cosine(one: Gradients, other: Gradients) -> float:
    """The smallest cosine of a parameter's two gradients, in float64: in bfloat16 the products alone would stray by more."""
    assert one.keys() == other.keys() and other
    pairs = [(one[name].double().flatten(), g.double().flatten()) for name, g in other.items()]
    return min(float(a @ b / (a.norm() * b.norm())) for a, b in pairs)


def cosine(one: Gradients, other: Gradients) -> float:
    """Of the whole gradients, in float64."""
    assert one.keys() == other.keys() and other
    both = first = second = 0.0
    for name, g in other.items():
        a, b = one[name].double().flatten(), g.double().flatten()
        both, first, second = both + float(a @ b), first + float(a @ a), second + float(b @ b)
    return both / (first * second) ** 0.5
