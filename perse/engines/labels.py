"""From next-token probabilities to the probabilities of labels (DESIGN.md, promise 4).

Labels are paths in a tree of tokens. A label's probability is that of its whole path, less that of the longer labels that
go on from it: "1" is not "10", however the tokenizer splits. Engines that answer requests (vLLM, its server) read the
tree by `reads`: a request tells the next-token probabilities after a node and, by forcing one token, after one child too.
So the scores 1-10 take one request whether or not the tokenizer splits "10".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from perse.engines.base import LabelDistribution
from perse.errors import BadInput
from perse.rendering.prompt import Ids, LabelTokens

Logprobs = Mapping[int, float]
"""Natural log-probability of some tokens at one position, the model's own: before temperature, masks or penalties."""

MAX_READ = 128
"""Most token ids whose log-probabilities vLLM tells at a position."""


@dataclass(frozen=True)
class Read:
    """One request of at most two steps: after `node`, tell the log-probabilities of `tokens`; with `force`, write that token
    and tell those of `tokens` again after it."""

    node: Ids
    tokens: tuple[int, ...]
    force: int | None

    @property
    def nodes(self) -> tuple[Ids, ...]:
        """The nodes that are read, one for each step."""
        return (self.node,) if self.force is None else (self.node, (*self.node, self.force))


def reads(support: LabelTokens) -> list[Read]:
    """The fewest requests that read every inner node of the tree of labels.

    Raises:
        BadInput: more different tokens at once than vLLM tells.
    """
    children: dict[Ids, set[int]] = {}
    for label in support.labels:
        for n, token in enumerate(label):
            children.setdefault(label[:n], set()).add(token)
    waiting = sorted(children, key=lambda node: (len(node), node))
    found: list[Read] = []
    while waiting:
        node = waiting.pop(0)
        force = next((child for child in sorted(children[node]) if (*node, child) in waiting), None)
        tokens = set(children[node])
        if force is not None:
            waiting.remove((*node, force))
            tokens |= children[(*node, force)]
        if len(tokens) > MAX_READ:
            raise BadInput(
                f"{len(tokens)} different tokens begin the labels; vLLM tells at most {MAX_READ} at a time; use the embedded engine"
            )
        found.append(Read(node, tuple(sorted(tokens)), force))
    return found


def distribution(support: LabelTokens, after: Mapping[Ids, Logprobs], *, cached: int) -> LabelDistribution:
    """The label distribution from the log-probabilities told after every inner node."""
    whole = [math.exp(math.fsum(after[label[:n]][token] for n, token in enumerate(label))) for label in support.labels]
    return label_probabilities(whole, support, cached=cached)


def label_probabilities(whole: Sequence[float], support: LabelTokens, *, cached: int = 0) -> LabelDistribution:
    """Probabilities of labels from those of their token sequences.

    P(label) = P(its ids) less the sum over the longer labels that extend it *directly*: "1" is not "10". (A label two
    extensions away is already taken off from the one between.)

    Args:
        whole: P(all ids of label i | prefix, stem), for each label.
    """

    own = [
        max(0.0, p - sum(whole[at] for at in longer))
        for p, longer in zip(whole, direct_extensions(support.labels), strict=True)
    ]
    mass = sum(own)
    # A mass of exactly 0 (underflow) leaves nothing to renormalise: uniform, and the mass says how little it is worth.
    probabilities = tuple(p / mass for p in own) if mass > 0 else (1 / len(own),) * len(own)
    return LabelDistribution(probabilities, mass, cached)


@lru_cache(maxsize=64)
def direct_extensions(labels: tuple[Ids, ...]) -> tuple[tuple[int, ...], ...]:
    """For each label, the places of those that go on from it, but for those that go on from one of these already."""

    def extends(longer: Ids, shorter: Ids) -> bool:
        return len(longer) > len(shorter) and longer[: len(shorter)] == shorter

    found = []
    for ids in labels:
        longer = [at for at, other in enumerate(labels) if extends(other, ids)]
        found.append(tuple(at for at in longer if not any(extends(labels[at], labels[other]) for other in longer)))
    return tuple(found)
