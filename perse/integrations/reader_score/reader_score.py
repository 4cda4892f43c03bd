"""A judge as a module of Hugging Face's `evaluate`: how much particular readers would like texts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from perse.installing import needing
from perse.judgement import Status
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.one import example_of
from perse.questions import question_for

with needing("integrations"):
    import datasets
    import evaluate

_DESCRIPTION = """
Would this reader like this text? The score from 1 to 10 that a reader, known by a few past reviews, is expected to give each text.
"""

_INPUTS = """
Args:
    predictions: the texts.
    reviews: for each text its reader's past reviews, {"text", "review", "score"} each.
    judge: a judge's name, as for `perse.Judge.load`, or a `perse.Judge`.
    question: pointwise_score, or another about one text.
Returns:
    scores: the expected score of each text, or the label where the judge tells no distribution; None where it was not answered.
    mean_score: of those that were answered; None if none was.
    answered: how many those are.
Example:
    >>> metric = evaluate.load(perse.integrations.path("reader_score"))
    >>> metric.compute(predictions=["a new plot"], reviews=[[{"text": "a plot", "review": "Dull.", "score": 3}]], judge="runs/first")
"""


class ReaderScore(evaluate.Metric):  # type: ignore[misc]
    """Expected scores of a judge."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        past = datasets.List({"text": text, "review": text, "score": datasets.Value("float64")})
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation="",
            inputs_description=_INPUTS,
            features=datasets.Features({"predictions": text, "reviews": past}),
        )

    def _compute(
        self,
        predictions: Sequence[str],
        reviews: Sequence[Sequence[dict[str, Any]]],
        judge: str | Judge,
        question: str = "pointwise_score",
    ) -> dict[str, Any]:
        loaded = judge if isinstance(judge, Judge) else Judge.load(judge)
        examples = [
            example_of(past, text, name=str(n)) for n, (past, text) in enumerate(zip(reviews, predictions, strict=True))
        ]
        judgements = loaded.ask(question_for(examples, question), examples, JudgeSettings(temperature=0))
        scores = [
            None if one.status is not Status.OK else one.expected if one.expected is not None else float(str(one.label))
            for one in judgements
        ]
        known = [score for score in scores if score is not None]
        return {"scores": scores, "mean_score": fmean(known) if known else None, "answered": len(known)}
