"""Reads the answer to one request of vLLM's: the same in this process, in vLLM's server and over HTTP."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perse.engines.base import Failure, Generation, LabelDistribution, Sampling
from perse.engines.labels import Logprobs, Read, distribution
from perse.rendering.prompt import Ids, LabelTokens

NEVER = -1000.0
"""Below any model's log-probability: vLLM's value of masked or missing tokens."""

ROUNDING = 1e-3
"""A log-probability may be so much above 0, and what all tokens have together so much above 1."""

LARGEST_ID = 1 << 22
"""More tokens than any vocabulary; today's have a quarter of a million."""


@dataclass(frozen=True)
class Completion:
    """The tokens written, the raw log-probability of each, and at each step those of the tokens that were asked for."""

    ids: Ids
    logprobs: tuple[float, ...]
    steps: tuple[Logprobs, ...]
    finish_reason: str
    cached: int


def distribution_of(
    support: LabelTokens, plan: Sequence[Read], answers: Sequence[Completion | Failure]
) -> LabelDistribution | Failure:
    """The label distribution from the answers to `plan`, one a read."""
    after: dict[Ids, Logprobs] = {}
    cached = 0
    for read, answer in zip(plan, answers, strict=True):
        if isinstance(answer, Failure):
            return answer
        if len(answer.steps) != len(read.nodes) or any(not step.keys() >= set(read.tokens) for step in answer.steps):
            return Failure("the server did not tell the log-probability of every label")
        if read.force is not None and answer.ids[:1] != (read.force,):
            return Failure(f"the server wrote token {answer.ids[0]} where {read.force} alone was allowed")
        for step in answer.steps:
            told = [step[token] for token in read.tokens]
            # Of a token that was not asked for, -inf is vLLM's padding where requests of many lengths are read together.
            if not possible(told) or not all(each < ROUNDING for each in step.values()):
                return Failure(f"invalid log-probabilities: {list(step.values())[:20]}")
            if (together := math.fsum(map(math.exp, step.values()))) > 1 + ROUNDING:
                return Failure(f"the tokens of a step were told to have {together:.4g} of the probability, more than all of it")
        after |= zip(read.nodes, answer.steps, strict=True)
        cached = answer.cached if not read.node else cached
    return distribution(support, after, cached=cached)


def generation_of(answer: Completion | Failure, sampling: Sampling) -> Generation | Failure:
    """The written text, from the answer to a request for it."""
    if isinstance(answer, Failure):
        return answer
    if len(answer.ids) > sampling.max_new_tokens:
        return Failure(f"{len(answer.ids)} tokens were written where {sampling.max_new_tokens} were asked for")
    if not all(0 <= token < LARGEST_ID for token in answer.ids):
        odd = next(token for token in answer.ids if not 0 <= token < LARGEST_ID)
        return Failure(f"token {odd} was written, which no vocabulary has")
    if not sampling.schema and not possible(answer.logprobs):
        return Failure(f"invalid log-probabilities: {list(answer.logprobs[:20])}")
    reason = "stop" if answer.ids and answer.ids[-1] in sampling.stop_ids else answer.finish_reason
    # A grammar renormalises what it leaves: there is nothing to read under one.
    mean = sum(answer.logprobs) / len(answer.ids) if answer.ids and not sampling.schema else None
    return Generation(answer.ids, reason, mean, answer.cached)


def possible(logprobs: Iterable[float]) -> bool:
    """Whether these can be a model's log-probabilities: none is above 0, masked or NaN."""
    return all(NEVER < each < ROUNDING for each in logprobs)
