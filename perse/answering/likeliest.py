"""The probabilities of labels from the likeliest tokens that a server tells in the place of each that it wrote (top-k log-probabilities).

They are read where the label stands in the answer. A label has the probability of the tokens that spell it, with or without a space before
it, and of the tokens "1" and "0" one after the other where the model wrote these. What the list leaves open is added up: a label that is not among
the likeliest may have as much as the last of them ("10" too, which a tokenizer may have as one token, whatever a "1" goes on to), and a "1"
which is not the token that was written may go on to be "10". Where that is more than `OPEN` of what the labels have, there is no distribution (DESIGN.md, promise 4: not a guess). `mass` is a lower bound either way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from perse.engines.base import Told
from perse.scale import Scale

OPEN = 1e-3
"""Share of the labels' mass that may be left open: half a unit of the third digit of each of two labels."""


@dataclass(frozen=True)
class Likeliest:
    """`probabilities` over the labels, renormalised, or None where too much is left open; `mass` is what they have at least."""

    probabilities: tuple[float, ...] | None
    mass: float


@dataclass
class _Found:
    """Probabilities of labels, in lower case, and what may belong to any of them."""

    labels: dict[str, float]
    open: float = 0.0
    seen: set[str] = field(default_factory=set)

    def add(self, label: str, probability: float) -> None:
        self.labels[label] += probability
        self.seen.add(label)


def likeliest_labels(told: Sequence[Told], text: str, place: int, scale: Scale) -> Likeliest | None:
    """The label distribution of an answer.

    Args:
        told: the tokens of the answer, and the likeliest in the place of each.
        text: the answer.
        place: where its label begins.
    Returns:
        None if the tokens are not those of the text.
    """
    whole = "".join(one.token for one in told)
    before = whole.rfind(text.strip())  # what a server tells of thoughts comes before
    if before < 0 or not text.strip():
        return None
    at = before + place - (len(text) - len(text.lstrip()))
    first, begin = 0, 0
    while first < len(told) and begin + len(told[first].token) <= at:
        begin += len(told[first].token)
        first += 1
    if first == len(told):
        return None
    found = _Found(dict.fromkeys((label.casefold() for label in scale.labels), 0.0))
    _read(told[first:], "", whole[begin:at], 1.0, found)
    mass = math.fsum(found.labels.values())
    if mass <= 0 or found.open > OPEN * mass:
        return Likeliest(None, min(mass, 1.0))
    return Likeliest(tuple(found.labels[label.casefold()] / mass for label in scale.labels), min(mass, 1.0))


def _read(told: Sequence[Told], begun: str, lead: str, weight: float, found: _Found) -> None:
    """Add the probabilities of the labels that begin with `begun`, which has the probability `weight`.

    Args:
        told: the tokens from the place behind it.
        lead: what the first token has before the label, as a rule a space.
    """
    step = told[0]
    reached = [label for label in found.labels if label.startswith(begun) and label != begun]
    spelled = {_after(token, lead, begun).strip() for token, _ in step.likeliest}
    listed: set[str] = set()
    for token, logprob in step.likeliest:
        said, probability = _after(token, lead, begun), weight * math.exp(logprob)
        longer = [label for label in reached if said and label.startswith(said) and label != said]
        if longer and not spelled & set(longer):  # the tokenizer may spell the longer label with this token
            if said in found.labels:
                listed.add(said)
            if token == step.token and len(told) > 1:
                _read(told[1:], said, "", probability, found)
                continue
            found.open += probability
        if (label := said.strip()) in reached:
            found.add(label, probability)
            listed.add(label)
    rest = max(0.0, 1 - math.fsum(math.exp(logprob) for _, logprob in step.likeliest))
    unlisted = weight * min(rest, math.exp(step.most_unlisted) * sum(label not in listed for label in reached))
    found.open += unlisted
    if begun in found.labels:  # "1", and nothing that goes on from it
        found.add(begun, max(0.0, weight - math.fsum(found.labels[label] for label in reached)))


def _after(token: str, lead: str, begun: str) -> str:
    """The label that is spelled up to this token, in lower case; nothing where it does not go on like what was written."""
    if lead.strip():
        return token[len(lead) :].casefold() if token.startswith(lead) else ""
    return begun + (token.casefold() if begun else token.lstrip().casefold())
