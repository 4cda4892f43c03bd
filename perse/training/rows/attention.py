"""Tree attention: every token attends to its own path through a packed row, and nothing else is computed.

A path is cut into pieces that need no mask: each span on itself (causal), and all that branches off from a span on that
span (whole). The kernel gives the log-sum-exp of every piece, by which the pieces are merged; going back, each piece is given
the merged output and log-sum-exp, from which it finds its exact share of the gradient. So a row costs its `Tree.pairs`
and not L x L, and keeps queries, keys, values and output once. On a GPU, where many small kernels wait for each other, `flex` does
the same in one. `dense_mask` is the slow twin, for models whose attention takes a mask only.

Letters: L tokens, H query heads, G key-value heads, D width of a head. The row is a batch of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from perse.errors import BadInput
from perse.settings.training import Attention
from perse.training.model.adapting import without_adapter
from perse.training.model.heads import head_widths
from perse.training.rows.flex import flex_attention, has_flex
from perse.training.rows.packable import looks_back
from perse.training.rows.trie import Tree

NAMES: dict[Attention, str] = {"tree": "perse_tree", "flex": "perse_flex"}
"""Under these names transformers finds `tree_attention_forward` and `flex_attention_forward`."""


def use_tree_attention(model: Any, way: Attention = "tree", *, computed: torch.dtype | None = None) -> None:
    """Let `model` attend by the `tree` that a batch carries: piece by piece (`tree`), or by one compiled kernel (`flex`).

    Raises:
        BadInput: the model's attention cannot be exchanged; the message names the setting that works.
    """
    possible = ways(model, computed=computed or model.dtype)
    if way not in possible:
        kernel = "torch compiles no kernel for it here, which needs a GPU, Triton and heads of 16 and more"
        if way == "tree":
            kernel = "the GPU has no flash kernel for its type and width"
        raise BadInput(
            f"the attention of {type(model).__name__} cannot be exchanged for {way} attention (transformers does not allow it, "
            f"it does more than plain attention, or {kernel}); set train.attention={possible[0]}, which is exact, too"
            + (", and slower" if possible[0] == "mask" else "")
        )
    AttentionInterface.register(NAMES[way], tree_attention_forward if way == "tree" else flex_attention_forward)
    model.set_attn_implementation(NAMES[way])


def use_mask(model: Any) -> None:
    """Let `model` attend by the `dense_mask` that a batch carries, with capped scores (Gemma 2) where it has them."""
    if _caps_scores(model):
        model.set_attn_implementation("eager")
    elif model.config._attn_implementation in NAMES.values():
        model.set_attn_implementation("sdpa")
    if model.config._attn_implementation == "eager":
        model.base_model.register_forward_pre_hook(_added_mask, with_kwargs=True)


def _added_mask(module: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Eager attention adds its mask to the scores, to which true and false are 1 and 0."""
    mask = kwargs.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.dim() != 4:  # evaluation uses the model's own mask
        return args, kwargs
    added = torch.zeros(mask.shape, dtype=module.dtype, device=mask.device).masked_fill(~mask, torch.finfo(module.dtype).min)
    return args, {**kwargs, "attention_mask": added}


def ways(model: Any, *, computed: torch.dtype) -> list[Attention]:
    """How a row of this model can be kept to its paths, the fastest first.

    Other than by a mask, only where transformers lets the attention be exchanged and it is plain: no dropout on its weights, capped
    scores, sinks, or values of another width.
    """
    config = model.config.get_text_config()
    sinks = any(name.endswith("sinks") for name, _ in model.named_parameters())
    dropped = any(getattr(config, name, 0.0) for name in ("attention_dropout", "attn_pdrop", "attention_probs_dropout_prob"))
    plain = not (sinks or dropped or getattr(config, "v_head_dim", None) or _caps_scores(model))
    if not (plain and model._supports_attention_backend):
        return ["mask"]
    found: list[Attention] = ["flex"] if has_flex(model) else []
    return [*found, *(["tree"] if _has_flash(model, computed) else []), "mask"]  # type: ignore[list-item]


def _has_flash(model: Any, computed: torch.dtype) -> bool:
    """Whether torch has a flash kernel for what is `computed`: on a GPU that is for 16 bits and some widths only."""
    if model.device.type == "cuda" or (model.device.type == "cpu" and torch.cuda.is_available()):  # where the Trainer puts it
        strange = any(width % 8 or width > 256 for width in head_widths(model))
        if computed == torch.float32 or strange or torch.cuda.get_device_capability() < (8, 0):
            return False
    return True


def _caps_scores(model: Any) -> bool:
    """Transformers does so in eager attention alone; its sdpa leaves it out without a word."""
    return bool(getattr(model.config.get_text_config(), "attn_logit_softcapping", None))


def _piece_by_piece(query: Tensor, key: Tensor, value: Tensor, tree: Tree, scale: float) -> Tensor:
    """(1, H, L, D); keys and values are (1, G, L, D)."""
    return _TreeAttention.apply(query, key, value, tree, scale)  # type: ignore[no-untyped-call,no-any-return]


def tree_attention_forward(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    tree: Tree | None = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    compute: Callable[[Tensor, Tensor, Tensor, Tree, float], Tensor] = _piece_by_piece,
    **others: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in each layer.

    Args:
        query: (1, H, L, D); key, value: (1, G, L, D).
    Returns:
        (1, L, H, D), and no attention weights.
    Raises:
        BadInput: the layer does more than plain attention.
    """
    more = _beyond_plain(dropout, softcap, s_aux, {"attention_mask": attention_mask, **others})
    if tree is None:
        more = "layers do not hand the row's structure on to their attention"
    elif value.shape[-1] != query.shape[-1]:
        more = "values are not as wide as its queries"
    if more:
        raise BadInput(f"this model's {more}, which tree attention does not do; set train.attention=mask")
    assert tree is not None
    if sliding_window is not None and sliding_window < tree.depth:
        raise BadInput(looks_back(sliding_window, tree.depth))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    # Under autocast the rotation leaves queries and keys in float32; values have the type to compute in.
    out = compute(query.to(value.dtype), key.to(value.dtype), value, tree, scale)
    return out.transpose(1, 2).contiguous(), None


flex_attention_forward = partial(tree_attention_forward, compute=flex_attention)
"""The same by one compiled kernel."""


_USED = {"position_ids", "cache_position", "position_embeddings"}
"""Tensors that layers hand on and have used already."""


def _beyond_plain(dropout: float, softcap: float | None, sinks: Tensor | None, others: Mapping[str, Any]) -> str:
    """What a layer asks for beyond plain attention, in words; empty if nothing. A mask or a tensor of its own would be left out in silence."""
    if softcap is not None or sinks is not None:
        return "attention scores are capped, or it has attention sinks"
    if dropout:
        return f"attention has a dropout of {dropout:g}"
    own = sorted(name for name, value in others.items() if isinstance(value, Tensor) and value.dim() > 1 and name not in _USED)
    return f"layers give their attention a {own[0]} of their own" if own else ""


def dense_mask(tree: Tree) -> Tensor:
    """(1, 1, L, L), true where the row's token sees the column's."""
    seen = torch.zeros(tree.length, tree.length, dtype=torch.bool)
    for span in tree.spans:
        seen[span.start : span.own, span.start : span.own] = True
        seen[span.own : span.end, span.start : span.own] = True
    return seen.tril()[None, None]


def _pieces(tree: Tree) -> Iterator[tuple[slice, slice, bool]]:
    """Queries, keys, and whether they are the same tokens, seen causally. A span comes before what branches off from it."""
    for span in tree.spans:
        yield slice(span.start, span.own), slice(span.start, span.own), True
    for span in tree.spans:
        if span.end > span.own:
            yield slice(span.own, span.end), slice(span.start, span.own), False


class _TreeAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, tree: Tree, scale: float) -> Tensor:
        keys, values = _per_query_head(query, key), _per_query_head(query, value)
        out = torch.empty(query.shape, dtype=torch.float32, device=query.device)  # (1, H, L, D)
        logsumexp = torch.empty(query.shape[:-1], dtype=torch.float32, device=query.device)  # (1, H, L)
        for at, seen, causal in _pieces(tree):
            own, own_lse = _attend(query[:, :, at], keys[:, :, seen], values[:, :, seen], causal=causal, scale=scale)
            if causal:  # every token's first piece
                out[:, :, at], logsumexp[:, :, at] = own, own_lse
            else:
                before = logsumexp[:, :, at]
                merged = torch.logaddexp(before, own_lse)
                out[:, :, at] *= (before - merged).exp()[..., None]
                out[:, :, at] += own * (own_lse - merged).exp()[..., None]
                logsumexp[:, :, at] = merged
        out = out.to(query.dtype)
        ctx.save_for_backward(query, key, value, out, logsumexp)
        ctx.tree, ctx.scale = tree, scale
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        query, key, value, out, logsumexp = ctx.saved_tensors
        dtype, grad = query.dtype, grads[0]
        if query.device.type == "cpu":
            # There the kernel's way back takes 3 ms a piece in bfloat16 before it begins; in float32 it is as fast on pieces of
            # 900 tokens and 4 times as fast on pieces of 100.
            grad, query, out = grad.float(), query.float(), out.float()
        keys, values = (_per_query_head(query, part.to(query.dtype)) for part in (key, value))
        dq, dk, dv = (torch.empty(query.shape, dtype=torch.float32, device=query.device) for _ in range(3))
        for at, seen, causal in _pieces(ctx.tree):
            dqs, dks, dvs = _attend_backward(
                grad[:, :, at].contiguous(),
                query[:, :, at],
                keys[:, :, seen],
                values[:, :, seen],
                out[:, :, at].contiguous(),
                logsumexp[:, :, at].contiguous(),
                causal=causal,
                scale=ctx.scale,
            )
            if causal:  # every token's first piece, as query and as key
                dq[:, :, at], dk[:, :, seen], dv[:, :, seen] = dqs, dks, dvs
            else:
                dq[:, :, at] += dqs
                dk[:, :, seen] += dks
                dv[:, :, seen] += dvs
        return dq.to(dtype), _per_key_head(dk, key), _per_key_head(dv, value), None, None


def _per_query_head(query: Tensor, part: Tensor) -> Tensor:
    """Keys or values (1, G, L, D) as (1, H, L, D): each serves H / G query heads."""
    return part.repeat_interleave(query.shape[1] // part.shape[1], dim=1)


def _per_key_head(grad: Tensor, part: Tensor) -> Tensor:
    """The gradient (1, H, L, D) of `_per_query_head(part)`, summed to (1, G, L, D)."""
    heads, (_, _, length, width) = part.shape[1], grad.shape
    return grad.view(1, heads, -1, length, width).sum(2).to(part.dtype)


def _attend(query: Tensor, key: Tensor, value: Tensor, *, causal: bool, scale: float) -> tuple[Tensor, Tensor]:
    """Output (1, H, N, D) and log-sum-exp (1, H, N) of plain attention, by torch's flash kernel of the device."""
    if query.device.type == "cpu":
        out, logsumexp = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, causal, scale=scale)
    else:
        out, logsumexp, *_ = torch.ops.aten._scaled_dot_product_flash_attention(
            query.contiguous(), key.contiguous(), value.contiguous(), 0.0, causal, scale=scale
        )
    return out, logsumexp


def _attend_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    *,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value of a piece, given the output and log-sum-exp of all pieces together."""
    if query.device.type == "cpu":
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(  # type: ignore[no-any-return]
            grad, query, key, value, out, logsumexp, 0.0, causal, scale=scale
        )
    none = torch.zeros((), dtype=torch.int64, device=query.device)  # the seed and offset of a dropout that is not there
    parts = (query.contiguous(), key.contiguous(), value.contiguous())
    lengths = (None, None, query.shape[2], key.shape[2])
    return torch.ops.aten._scaled_dot_product_flash_attention_backward(  # type: ignore[no-any-return]
        grad, *parts, out, logsumexp, *lengths, 0.0, causal, none, none, scale=scale
    )


def set_attention(model: Any, asked: Attention | None, *, computed: torch.dtype | None = None) -> Attention:
    """Make `model` attend as `asked`, or in the way it can; returns which.

    Args:
        computed: the type that attention is computed in; the model's own by default.
    Raises:
        BadInput: tree attention was asked of a model that cannot.
    """
    inner = without_adapter(model)
    way = asked or ways(inner, computed=computed or model.dtype)[0]
    if way == "mask":
        use_mask(inner)
    else:
        use_tree_attention(inner, way, computed=computed or model.dtype)
    return way


@contextmanager
def plain_attention(model: Any) -> Iterator[None]:
    """Meanwhile the model attends as it would without us: prompts one by one, with a cache and without a tree."""
    ours = model.config._attn_implementation
    if ours not in NAMES.values():
        yield
        return
    model.set_attn_implementation("sdpa")
    try:
        yield
    finally:
        model.set_attn_implementation(ours)
