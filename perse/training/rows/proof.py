"""Proves, on the very model that will be trained, that a packed row is what its examples are alone.

What is known of a model's configuration is checked before (`packable`); this finds what is not. A row of two examples, the longest that
is at hand and another of its row, is computed three ways: as it will be trained; each example alone by the model's own attention;
and with other words in the first example. The second must then stay as it was, and both must be what they are alone. A
leak from one example to another shows in either, a wrong attention or rotation in the second.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from perse.errors import BadInput
from perse.settings.training import Attention
from perse.training.model.adapting import without_adapter
from perse.training.model.looking import only_looking
from perse.training.rows.attention import plain_attention, set_attention, ways
from perse.training.rows.batches import collate
from perse.training.rows.branches import Branch
from perse.training.rows.schedule import Schedule
from perse.training.rows.trie import packed

log = logging.getLogger(__name__)

LOOKED_AT = 64
"""Rows among which the longest example is looked for: they are shuffled, and all of a run may be a hundred million tokens."""
ALONE = {torch.float32: 1e-3, torch.bfloat16: 0.5}
"""Nats by which a learned token may differ from what it is alone, root mean square: rounding through all layers. The embedded model
differs by 4e-6 in float32 and by 0.07 in bfloat16."""
LEAK = {torch.float32: 1e-4, torch.bfloat16: 5e-3}
"""The same for a token whose neighbours in the row have other words. It is 0 to the last bit but for mixtures of experts, which
compute the tokens of an expert together."""


@dataclass(frozen=True)
class Proof:
    """Root mean squares over learned tokens, in nats: packed against `alone`, and moved by another's words (`leak`)."""

    alone: float
    leak: float | None
    """None where a row holds one example, which nothing stands beside."""
    dtype: torch.dtype
    """What was computed in, which decides how much is rounding."""

    @property
    def holds(self) -> bool:
        """Where the examples alone have no finite numbers there is nothing to compare, and training stops at its first step."""
        if math.isnan(self.alone):
            return True
        leak = self.leak or 0.0
        return self.alone <= ALONE.get(self.dtype, ALONE[torch.bfloat16]) and leak <= LEAK.get(self.dtype, LEAK[torch.bfloat16])

    def told(self, model: str = "this model") -> str:
        """What was found of `model`, in words."""
        if self.leak is None:
            return f"one example, packed by itself in a row of {model}, is {self.alone:.2g} nats from what it is unpacked"
        return (
            f"two examples in one row of {model} are {self.alone:.2g} nats from what they are alone, {self.leak:.2g} by other words in "
            "one of them"
        )


def prove(model: Any, branches: Sequence[Branch], *, attention: Attention, share: bool, dtype: torch.dtype) -> Proof:
    """How far the learned tokens of one or two examples in a row are from what they are alone; the model is left as it was.

    Args:
        dtype: what training computes in; where the weights are of another type, under autocast.
    """
    with only_looking(model), torch.no_grad(), torch.autocast(model.device.type, dtype, enabled=dtype != model.dtype):
        together = _packed_nats(model, branches, attention, share)
        with plain_attention(model):
            alone = [_nats_alone(model, branch) for branch in branches]
        leak = None
        if len(branches) > 1:
            first, second = branches
            moved = _packed_nats(
                model, [_other_words(first, model.config.get_text_config().vocab_size), second], attention, share
            )
            leak = _size([together[1] - moved[1]])
    if not all(bool(torch.isfinite(each).all()) for each in alone):
        return Proof(math.nan, None if leak is None else math.nan, dtype)
    differences = [one - other for one, other in zip(together, alone, strict=True)]
    return Proof(_size(differences), leak, dtype)


def proven_attention(
    model: Any, branches: Sequence[Branch], attention: Attention, *, share: bool, asked: Attention | None, dtype: torch.dtype
) -> Attention:
    """The attention that is proven on these examples: the one that is set, or where none was asked for, the next that the model takes.

    Raises:
        BadInput: examples in a row of this model are not what they are alone.
    """
    inner = without_adapter(model)
    slower = [] if asked is not None else ways(inner, computed=dtype)
    slower = slower[slower.index(attention) + 1 :] if attention in slower else []
    try:
        found = prove(model, branches, attention=attention, share=share, dtype=dtype)
    except BadInput as error:  # a layer does what this attention does not, or torch made no kernel
        if not slower:
            raise
        told = str(error)
    else:
        if found.holds or not slower:
            refuse_unproven(type(inner).__name__, found, attention)
            log.info("%s (train.attention=%s)", found.told(), attention)
            return attention
        told = found.told()
    log.warning(
        "rows are computed by train.attention=%s, as by %s, which is faster, they cannot be: %s", slower[0], attention, told
    )
    set_attention(model, slower[0], computed=dtype)
    return proven_attention(model, branches, slower[0], share=share, asked=asked, dtype=dtype)


def refuse_unproven(name: str, found: Proof, attention: Attention) -> None:
    """
    Raises:
        BadInput: examples in a row of this model are not what they are alone.
    """
    if not found.holds:
        remedy = "" if attention == "mask" else "train.attention=mask, or "
        raise BadInput(
            f"{found.told(f'{name} with train.attention={attention}')}, which is more than rounding in "
            f"{str(found.dtype).removeprefix('torch.')}; nothing would be learned as it is asked. Set {remedy}model.path to another"
        )


class ProveFirst(TrainerCallback):
    """Proves it before the first step on a model that is divided among devices, which has no whole weights before."""

    def __init__(self, schedule: Schedule, attention: Attention, dtype: torch.dtype) -> None:
        self.schedule, self.attention, self.dtype = schedule, attention, dtype

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, *, model: Any = None, **_: Any
    ) -> None:
        found = prove(model, to_prove(self.schedule), attention=self.attention, share=self.schedule.share, dtype=self.dtype)
        refuse_unproven(type(model).__name__, found, self.attention)
        if state.is_world_process_zero:
            log.info("%s", found.told())


def to_prove(schedule: Schedule) -> tuple[Branch, ...]:
    """The longest example of the first rows that hold two, and the one of its row that shares most with it, shortest first among
    equals; the longest alone where no row holds two. Without what labels are read after: these are branches as any others."""
    rows = [
        row
        for at in range(min(LOOKED_AT, len(schedule.rows)))
        if (row := [replace(one, label=None) for one in schedule.rows[at]])
    ]
    several = [row for row in rows if len({branch.example_id for branch in row}) > 1] or rows
    row = max(several, key=lambda row: max(branch.tokens for branch in row))
    longest = max(row, key=lambda branch: branch.tokens)
    others = [branch for branch in row if branch.example_id != longest.example_id]
    return (longest, min(others, key=lambda branch: (-_alike(longest, branch), branch.tokens))) if others else (longest,)


def _alike(one: Branch, other: Branch) -> int:
    """How many leading segments are equal."""
    same = [a == b for a, b in zip(one.segments, other.segments, strict=False)]
    return same.index(False) if False in same else len(same)


def _other_words(branch: Branch, vocabulary: int) -> Branch:
    """The example with every token of its last segment and its answer another one, so that the row is laid out as before."""
    *before, last = branch.segments
    return replace(
        branch,
        segments=(*before, tuple((token + 1) % vocabulary for token in last)),
        answer=tuple((token + 1) % vocabulary for token in branch.answer),
    )


def _packed_nats(model: Any, branches: Sequence[Branch], attention: Attention, share: bool) -> list[Tensor]:
    """Of the learned tokens of each branch, from one row."""
    batch = {key: _on(model, value) for key, value in collate([packed(branches, share=share)], attention=attention).items()}
    targets = batch.pop("labels")[0, 1:]
    nats = _nats(_computed(model, batch)[0], targets)
    return list(torch.split(nats, [len(branch.answer) for branch in branches]))


def _computed(model: Any, batch: dict[str, Any]) -> Tensor:
    """
    Raises:
        BadInput: the model's code does not take such a row (one mask for each place, positions, an index map for the head).
    """
    try:
        return model(**batch).logits  # type: ignore[no-any-return]
    except (torch.OutOfMemoryError, BadInput):
        raise
    except (RuntimeError, TypeError, ValueError, AttributeError, AssertionError, LookupError) as error:
        said = str(error).partition("\n")[0][:200]
        raise BadInput(
            f"{type(without_adapter(model)).__name__} does not compute a packed row ({type(error).__name__}: {said}); "
            "expected a model that takes a mask and a position for each token, so set model.path to another"
        ) from error


def _nats_alone(model: Any, branch: Branch) -> Tensor:
    ids = torch.tensor([branch.prompt + branch.answer], device=model.device)
    kept = len(branch.answer) + 1
    logits = model(input_ids=ids, use_cache=False, logits_to_keep=kept).logits[0, -kept:-1]
    return _nats(logits, ids[0, -len(branch.answer) :])


def _nats(logits: Tensor, targets: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none")


def _on(model: Any, value: Any) -> Any:
    return value.to(model.device) if isinstance(value, Tensor) else value


def _size(parts: Sequence[Tensor]) -> float:
    """Root mean square; 0 of nothing, and infinite where a number is not finite."""
    if not parts:
        return 0.0
    found = float(torch.cat(list(parts)).double().square().mean().sqrt())
    return math.inf if math.isnan(found) else found
