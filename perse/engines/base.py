"""What every engine offers the judge, and what it declares it can do.

An engine sees token ids only; prompts, labels and their meaning stay with the judge. It finds shared prefixes by
comparing ids, so callers gain by sending prompts of one reviewer next to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from perse.rendering import Ids, LabelSupport


@dataclass(frozen=True)
class Sampling:
    """How to write free text. Defaults are the paper's (PerSE, section 4.2); temperature 0 is greedy."""

    temperature: float = 0.8
    max_new_tokens: int = 600
    stop_ids: frozenset[int] = frozenset()
    """Generation ends with the first of these, which is part of the result."""


@dataclass(frozen=True)
class Generation:
    """What was written: ids (stop token included), why it ended, and the mean natural log-probability of its tokens
    under the model itself, at temperature 1."""

    ids: Ids
    finish_reason: str  # "stop" | "length"
    mean_logprob: float | None
    cached: int


@dataclass(frozen=True)
class LabelDistribution:
    """`probabilities` over the labels, renormalised; `mass` is what the model gave to any label before that."""

    probabilities: tuple[float, ...]
    mass: float
    cached: int


@dataclass(frozen=True)
class Capabilities:
    """`accepts_token_ids`: prompts are ids. `exact_distribution`: label probabilities are the model's own, not a guess."""

    accepts_token_ids: bool
    exact_distribution: bool


class Engine(Protocol):
    """Computes for one model. Prompts are whole (template, profile, query, ask, begun answer)."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def settings(self) -> dict[str, str]:
        """What the numbers depend on besides the weights: engine, dtype, device."""

    def generate(self, prompts: Sequence[Ids], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation]:
        """Free text after each prompt. The same prompt and seed give the same text whatever else is in the list, up to the
        rounding of the dtype: in bfloat16 a near tie can fall the other way."""

    def label_distributions(self, prefixes: Sequence[Ids], support: LabelSupport) -> list[LabelDistribution]:
        """Exact probability of each label after each prefix, `support.stem` put between them."""


def label_probabilities(whole: Sequence[float], support: LabelSupport, *, cached: int = 0) -> LabelDistribution:
    """Probabilities of labels from those of their token sequences (DESIGN.md, promise 4).

    P(label) = P(its ids) less the sum over the longer labels that extend it *directly*: "1" is not "10". (A label two
    extensions away is already taken off from the one between.)

    Args:
        whole: P(all ids of label i | prefix, stem), for each label.
    """

    def extends(longer: Ids, shorter: Ids) -> bool:
        return len(longer) > len(shorter) and longer[: len(shorter)] == shorter

    own = []
    for i, ids in enumerate(support.labels):
        longer = [j for j, other in enumerate(support.labels) if extends(other, ids)]
        direct = [j for j in longer if not any(extends(support.labels[j], support.labels[k]) for k in longer)]
        own.append(max(0.0, whole[i] - sum(whole[j] for j in direct)))
    mass = sum(own)
    # A mass of exactly 0 (underflow) leaves nothing to renormalise: uniform, and the mass says how little it is worth.
    probabilities = tuple(p / mass for p in own) if mass > 0 else (1 / len(own),) * len(own)
    return LabelDistribution(probabilities, mass, cached)
