"""The structure of a row for torch's FlexAttention: on a GPU one compiled kernel does what tree attention does piece by piece.

A token sees those before it whose span, with all that branches off from it, has not ended before it: `other <= at < ends[other]`.
That is all the kernel is told of a row, and by blocks of tokens, which of them it need not look at and which it need not mask. Rows
are filled up to whole blocks, so that one compiled kernel serves rows of every length; what fills them sees itself alone and is
cut off again.

Letters: L tokens, H query heads, G key-value heads, D width of a head, B blocks.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

import torch
import torch._dynamo
from torch import Tensor

from perse.errors import BadInput
from perse.training.model.heads import head_widths
from perse.training.rows.trie import Tree

BLOCK = 128
"""Tokens of a block, the kernel's own size."""
NARROWEST = 16
"""Width of a head."""


def has_flex(model: Any) -> bool:
    """Whether `model` is trained on a GPU for which torch compiles such a kernel, and its heads are wide enough."""
    if min(head_widths(model)) < NARROWEST:
        return False
    on_gpu = model.device.type == "cuda" or (
        model.device.type == "cpu" and torch.cuda.is_available()
    )  # where the Trainer puts it
    return on_gpu and find_spec("triton") is not None and torch.cuda.get_device_capability() >= (8, 0)


def flex_attention(query: Tensor, key: Tensor, value: Tensor, tree: Tree, scale: float) -> Tensor:
    """Attention by each token's own path.

    Args:
        query: (1, H, L, D); key, value: (1, G, L, D).
    Returns:
        (1, H, L, D).
    Raises:
        BadInput: torch made no kernel for it.
    """
    more = -tree.length % BLOCK
    query, key, value = (torch.nn.functional.pad(part, (0, 0, 0, more)) for part in (query, key, value))
    groups = query.shape[1] != key.shape[1]
    try:
        out: Tensor = _kernel()(query, key, value, block_mask=block_mask(tree, query.device), scale=scale, enable_gqa=groups)
    except torch._dynamo.exc.TorchDynamoException as error:  # all that compiling can raise
        said = str(error).partition("\n")[0][:200]
        raise BadInput(
            f"torch compiled no attention kernel for this GPU and these layers ({type(error).__name__}: {said}); it wants Triton and a C "
            "compiler; set train.attention=tree, which is exact, too"
        ) from error
    return out[:, :, : tree.length]


@cache
def _kernel() -> Any:
    """Compiled once, at its first row, for rows of any length."""
    from torch.nn.attention.flex_attention import flex_attention as plain

    return torch.compile(plain, dynamic=True)


@lru_cache(maxsize=2)
def block_mask(tree: Tree, device: torch.device) -> Any:
    """What the kernel is told of a row: a `BlockMask`, the same for all layers and heads."""
    from torch.nn.attention.flex_attention import BlockMask

    ends = last_seen(tree, device)
    by_block = ends.view(-1, BLOCK)
    blocks = torch.arange(len(by_block), device=device)
    begins, before = blocks[:, None] * BLOCK, blocks[:, None] > blocks[None, :]  # of queries; keys of an earlier block
    some = before & (by_block.amax(1)[None, :] > begins)
    whole = before & (by_block.amin(1)[None, :] >= begins + BLOCK)
    partly = (some & ~whole) | (blocks[:, None] == blocks[None, :])

    def seen(batch: Tensor, head: Tensor, at: Tensor, other: Tensor) -> Tensor:
        return (other <= at) & (at < ends[other])

    return BlockMask.from_kv_blocks(*_listed(partly), *_listed(whole), BLOCK_SIZE=BLOCK, mask_mod=seen)


def last_seen(tree: Tree, device: torch.device) -> Tensor:
    """(B x BLOCK,): for each token of the row, filled up, the first one that does not see it, of those behind it."""
    ends = torch.arange(1, tree.length + -tree.length % BLOCK + 1, dtype=torch.int32)
    for span in tree.spans:
        ends[span.start : span.own] = span.end
    return ends.to(device)


def _listed(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Blocks of keys (B queries, B keys, true where chosen) as their number for each block of queries, and the blocks, chosen ones first."""
    order = torch.argsort(chosen.to(torch.int8), dim=1, descending=True, stable=True)
    return chosen.sum(1, dtype=torch.int32)[None, None], order.to(torch.int32)[None, None]
