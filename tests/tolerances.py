"""How far apart two float32 computations of one number may lie, on any CPU: an estimate, generous for what is computed here.

A sum has no order of its own: each kernel (AVX2, AVX-512, AMX; one thread or more; a packed row or a lone one) adds in the order
that suits its registers, and every addition rounds by at most half of EPS, relative to the sum so far. After n roundings the sum is
off by n / 2 of EPS at worst; as they fall to either side it is off by about sqrt(n) / 2, and two kernels that stray in opposite
directions are apart by twice that (Higham and Mary, A new approach to probabilistic rounding error analysis, 2019). So

    two orders of the same sums agree within EPS * sqrt(n), n being the lengths of all sums between the input and the number,

relative to the size of what is added: for log-probabilities that is the largest logit. How layers amplify or damp what reaches them is
left out, and kernels that add in blocks are much better than one sum after the other: the tests' models stay 20 to 100 times below. It is an estimate for one number, such
as a loss; the largest of many, and a gradient, whose terms partly cancel, are allowed LARGEST times as much. tests/whole/test_tolerances.py holds the bound against sums in many orders, and against faults, which are far outside.

It is a bound of one pass. None can be given once AdamW has divided a gradient by its own size: a weight whose gradient is rounding
alone moves by the whole learning rate, to either side. What is compared after several steps is held to TRAINED and
TRAINED_WEIGHTS.

What is computed in float64 (statistics, metrics) is four or more digits better than pytest's own 1e-6, or 1e-9 or 1e-12 where a test
says so, whatever the order; such comparisons, and those with decimals worked out by hand, stand as they are.

And it is a bound of numbers, not of choices: which token is drawn flips where two lie closer than this. Ids are therefore only
compared between runs on one CPU; where the shapes differ too (a batch and a lone row), of models whose choices are far apart.
"""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import Any

EPS = 2.0**-23
"""The distance of two neighbouring float32 numbers, relative to them."""

LOGITS = 9.0
"""Largest logit of the tiny models. A log-probability is off by as much as its logits are, a probability relatively by that."""

WIDE_LOGITS = 20.0
"""Of the tiny models of width 128, which vLLM takes."""

EMBEDDED_LOGITS = 40.0
"""Largest logit of the embedded model."""

LARGEST = 3.0
"""How many typical distances the farthest of many numbers may be off. sqrt(n) / 2 * EPS supposes that every rounding is the largest
possible; they are less than half of it in the root of their mean square, so this is some six of their standard deviations."""

TRAINED = 1e-5
"""Losses, relative, after some steps of AdamW: chosen, not derived. Other rows or seeds are apart by 1e-2 and more."""

TRAINED_WEIGHTS = 1e-4
"""Weights, relative to their norm, after some steps of AdamW: chosen, too."""


def rounding(*sums: int) -> float:
    """Sums of these lengths, each made of the one before: how far apart two orders are, relative to what is added."""
    return EPS * sqrt(sum(sums))


def forward(model: Any, tokens: int) -> float:
    """A loss, relative, where an example has `tokens` tokens. `model`: one, or its folder."""
    return rounding(_path(model, tokens))


def logprob(model: Any, tokens: int, *, logits: float = LOGITS) -> float:
    """Logits and log-probabilities, absolute."""
    return LARGEST * logits * forward(model, tokens)


def probability(model: Any, tokens: int, *, logits: float = LOGITS) -> float:
    """A probability, relative: as far off as its logarithm is absolutely. Also absolute, as it is at most 1."""
    return logprob(model, tokens, logits=logits)


def share(model: Any, tokens: int, *, logits: float = LOGITS) -> float:
    """A label's probability among all labels, absolute: where the logarithms move by `logprob` at most, p moves by p (1 - p) of how
    far its own and the others' move apart: a quarter of twice that."""
    return logprob(model, tokens, logits=logits) / 2


def gradient(model: Any, tokens: int) -> float:
    """A gradient, relative to its norm: the sums of the pass, the same ones back, and one over the tokens."""
    return LARGEST * rounding(2 * _path(model, tokens), tokens)


def _path(model: Any, tokens: int) -> int:
    """In each layer a norm and a projection, attention's scores, softmax and values, the projection back, a norm and the MLP's two
    matrices; at last a norm, the head and the sum over the vocabulary."""
    if isinstance(model, Path):
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(model)
    else:
        config = model.config
    width, heads = config.hidden_size, config.num_attention_heads
    head = getattr(config, "head_dim", None) or width // heads
    inner = getattr(config, "intermediate_size", None) or 4 * width
    layer = 2 * width + head + 2 * tokens + heads * head + 2 * width + inner
    return int(config.num_hidden_layers * layer + 2 * width + config.vocab_size)
