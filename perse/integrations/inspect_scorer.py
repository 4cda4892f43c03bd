"""A scorer of inspect_ai: would this reader like what the model wrote?

    Task(dataset=..., solver=generate(), scorer=reader_score("runs/first"))

The reader's past reviews are the scorer's own, or each sample's `metadata["reviews"]`: {"text", "review", "score"} or (text, review, score) each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from perse.errors import BadInput
from perse.installing import needing
from perse.judgement import Status
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.one import example_of
from perse.questions import question_for

with needing("integrations"):
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]
def reader_score(
    judge: str,
    *,
    reviews: Sequence[Any] = (),
    question: str = "pointwise_score",
    temperature: float = 0.0,
    max_new_tokens: int = 600,
) -> Scorer:
    """The expected score, 1 to 10, or the score that was written where the judge tells no distribution; what was not answered is not scored.

    Args:
        judge: named as for `Judge.load`; loaded once.
        reviews: of the reader, for samples that bring none in their metadata.
        question: a question about one text; `pointwise` also writes the review, which is the explanation.
    Raises:
        BadInput: what is given here cannot be used, whichever sample comes: reviews that are none, another sort of question, settings.
    """
    settings = JudgeSettings(temperature=temperature, max_new_tokens=max_new_tokens)
    reader = example_of(reviews, "any text")
    question_for([reader], question)

    async def score(state: TaskState, target: Target) -> Score:
        loaded = await asyncio.get_running_loop().run_in_executor(None, _judge, judge)
        told = state.metadata if isinstance(state.metadata, Mapping) else {}
        shown = told.get("reviews", reader.profile)
        try:
            example = example_of(shown, state.output.completion, name=f"{state.sample_id}:{state.epoch}")
        except BadInput as error:
            return Score.unscored(answer=state.output.completion, explanation=str(error))
        [judgement] = await loaded.aask(question_for([example], question), [example], settings)
        whole = judgement.model_dump(mode="json")
        if judgement.status is not Status.OK:
            return Score.unscored(
                answer=state.output.completion, explanation=f"{judgement.status}: {judgement.error}", metadata=whole
            )
        value = judgement.expected if judgement.expected is not None else float(str(judgement.label))
        return Score(value=value, answer=judgement.label, explanation=judgement.text or None, metadata=whole)

    return score


@cache
def _judge(name: str) -> Judge:
    return Judge.load(name)
