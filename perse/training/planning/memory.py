"""Bytes that training holds: exact for weights, gradients and the optimizer's state; activations by computing a row without numbers.

The row goes forward and backward through the model's own code on fake tensors, which have shapes, types and lifetimes but no
data, while every storage is followed from its making to its end. So gradient checkpointing, adapters, autocast and the loss
count as they are, for a model of any size, on a machine without room for it. The trade-off: seconds of Python instead of a
formula. What a device's kernels take for themselves is not seen.

Letters: L tokens of a row, T learned tokens.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from perse.settings.training import Attention, Optimizer
from perse.training.model.quantized import held_bytes, unpacked_bytes
from perse.training.optimizers import state_bytes
from perse.training.rows.attention import set_attention
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.trie import PackedRow, Span, Tree


@dataclass(frozen=True)
class StaticMemory:
    """Bytes that do not depend on the row, on one device that holds all of it."""

    weights: int
    gradients: int
    optimizer: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer


def static_memory(model: Any, *, optimizer: Optimizer = "adamw") -> StaticMemory:
    """Of a model as the Trainer trains it by `optimizer` (`optimizers.state_bytes`). Buffers count as weights; tied parameters
    once; what will be packed in 4 bits, as packed."""
    parameters = list(model.parameters())
    gradients = sum(each.nbytes for each in parameters if each.requires_grad)
    weights = sum(held_bytes(each) for each in (*parameters, *model.buffers()))
    return StaticMemory(weights, gradients, state_bytes(model, optimizer))


def gathered(model: Any, *, itemsize: int) -> int:
    """Bytes of weights that fully sharded training has whole at one time: the embedding, the head and two layers (one is
    computed while the next is fetched), in the type they are computed in."""
    kinds = set(model._no_split_modules or ())
    layers = [sum(p.numel() for p in each.parameters()) for each in model.modules() if type(each).__name__ in kinds]
    root = sum(p.numel() for p in model.parameters()) - sum(layers)
    whole: int = (root + 2 * max(layers, default=0)) * itemsize
    return whole


@dataclass(frozen=True)
class Activations:
    """Bytes beyond `StaticMemory` in one forward and backward pass.

    `saved`: held between forward and backward. `peak`: the most at any time. `saved_sharded`, `peak_sharded`: the same
    without copies of whole weights in the type they are computed in, which sharded training makes and drops layer by layer.
    """

    saved: int
    peak: int
    saved_sharded: int
    peak_sharded: int


def activations(
    model: Any,
    *,
    tokens: int,
    learned: int,
    bf16: bool,
    checkpointing: bool,
    attention: Attention | None = None,
    loss: Callable[[Any, Tensor], Tensor] = answer_loss,
) -> Activations:
    """Of a row of L = `tokens` tokens, T = `learned` of them learned or read, by a model on the meta device, which is used up by this.

    What attention saves depends on L alone (tree: queries, keys, values, output, log-sum-exp), so a single path stands for
    the row, or as few as a model's sliding window allows. Gradients are taken to be there already, as they are when several
    rows are accumulated.

    Args:
        attention: as `train.attention`.
        loss: of the model's output and the labels.
    Raises:
        BadInput: tree attention was asked of a model that cannot.
    """
    used = set_attention(model, "tree" if attention == "flex" else attention)  # both save the same
    if checkpointing:
        model.gradient_checkpointing_enable()
    model.train()
    unpacked = unpacked_bytes(model)  # one layer at a time, to compute with
    longest = getattr(model.config.get_text_config(), "sliding_window", None) or tokens
    cuts = [*range(0, tokens, longest), tokens]
    paths = Tree(tokens, min(longest, tokens), tuple(Span(start, end, end) for start, end in pairwise(cuts)))
    row = PackedRow((0,) * tokens, tuple(range(tokens)), paths, (0,) * learned, (0,) * learned, (), tokens)
    with FakeTensorMode():
        _fill(model)
        batch = collate([row], attention=used)
        labels = batch.pop("labels")
        parameters = list(model.parameters())
        for each in parameters:
            if each.requires_grad:
                each.grad = torch.zeros_like(each)
        standing = [*parameters, *model.buffers(), *(p.grad for p in parameters if p.grad is not None)]
        with _Followed(standing, weights=parameters) as held:
            with torch.autocast("cpu", dtype=torch.bfloat16) if bf16 else nullcontext():
                found = loss(model(**batch), labels)
            saved, saved_sharded = held.all.now, held.without_copies.now
            found.backward()  # type: ignore[no-untyped-call]
    return Activations(saved, held.all.peak + unpacked, saved_sharded, held.without_copies.peak + unpacked)


def _fill(model: Any) -> None:
    """Put fake tensors on the CPU in place of those on the meta device; what is tied stays tied."""
    made: dict[int, Tensor] = {}
    for store in (store for module in model.modules() for store in (module._parameters, module._buffers)):
        for name, tensor in store.items():
            if tensor is None:
                continue
            if id(tensor) not in made:
                fake = torch.empty(tensor.shape, dtype=tensor.dtype)
                is_parameter = isinstance(tensor, torch.nn.Parameter)
                made[id(tensor)] = torch.nn.Parameter(fake, requires_grad=tensor.requires_grad) if is_parameter else fake
            store[name] = made[id(tensor)]


class _Tally:
    """Bytes held now, and the most there were."""

    def __init__(self) -> None:
        self.now = self.peak = 0

    def add(self, size: int) -> None:
        self.now += size
        self.peak = max(self.peak, self.now)


class _Followed(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows every storage that an operation makes, except those that exist already."""

    def __init__(self, standing: Iterable[Tensor], *, weights: Iterable[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.all, self.without_copies = _Tally(), _Tally()
        self._known = {_key(tensor) for tensor in standing}
        self._weights = {_key(tensor) for tensor in weights}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        copies = func is torch.ops.aten._to_copy.default and _key(args[0]) in self._weights
        for tensor in _tensors(made):
            self._follow(tensor, () if copies else (self.without_copies,))
        return made

    def _follow(self, tensor: Tensor, others: tuple[_Tally, ...]) -> None:
        storage, key = tensor.untyped_storage(), _key(tensor)
        if key in self._known:
            return
        self._known.add(key)
        size = storage.nbytes()
        for tally in (self.all, *others):
            tally.add(size)

        def ended() -> None:
            self._known.discard(key)
            for tally in (self.all, *others):
                tally.add(-size)

        weakref.finalize(storage, ended)


def _tensors(made: Any) -> Iterator[Tensor]:
    return (each for each in tree_leaves(made) if isinstance(each, Tensor))


def _key(tensor: Tensor) -> int:
    key: int = tensor.untyped_storage()._cdata
    return key
