"""What comes back for one request of vLLM's, and what it means: the same in this process, in vLLM's server and over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perse.engines.base import Failure, Generation, LabelDistribution, Sampling
from perse.engines.labels import Logprobs, Read, distribution
from perse.rendering import Ids, LabelSupport

NEVER = -1000.0
"""No model says so of a token: less is vLLM's word for one that was masked, or left out."""


@dataclass(frozen=True)
class Completion:
    """The tokens written, the raw log-probability of each, and at each step those of the tokens that were asked for."""

    ids: Ids
    logprobs: tuple[float, ...]
    steps: tuple[Logprobs, ...]
    finish_reason: str
    cached: int


def distribution_of(
    support: LabelSupport, plan: Sequence[Read], answers: Sequence[Completion | Failure]
) -> LabelDistribution | Failure:
    """The label distribution from the answers to `plan`, one a read."""
    after: dict[Ids, Logprobs] = {}
    cached = 0
    for read, answer in zip(plan, answers, strict=True):
        if isinstance(answer, Failure):
            return answer
        if len(answer.steps) != len(read.nodes) or any(not step.keys() >= set(read.tokens) for step in answer.steps):
            return Failure("the server did not tell the log-probability of every label")
        if not all(NEVER < step[token] < 1e-3 for step in answer.steps for token in read.tokens):
            return Failure(f"vLLM told log-probabilities that are none: {answer.steps}")
        after |= zip(read.nodes, answer.steps, strict=True)
        cached = answer.cached if not read.node else cached
    return distribution(support, after, cached=cached)


def generation_of(answer: Completion | Failure, sampling: Sampling) -> Generation | Failure:
    """What was written, from the answer to a request for it."""
    if isinstance(answer, Failure):
        return answer
    reason = "stop" if answer.ids and answer.ids[-1] in sampling.stop_ids else answer.finish_reason
    # A grammar renormalises what it leaves: there is nothing to read under one.
    mean = sum(answer.logprobs) / len(answer.ids) if answer.ids and not sampling.schema else None
    return Generation(answer.ids, reason, mean, answer.cached)
