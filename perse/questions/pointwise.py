"""Would this reader like this text, and what would they say? Review, then score 1-10; or the score alone.

Generating the review first and the score after it is the review-enhanced evaluation of PerSE, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perse.prompts import macros
from perse.questions.base import AnswerLayout, Ask
from perse.records import PointwiseExample, ProfileReview
from perse.scale import SCORES, Scale


class Pointwise:
    """The review on one line, then the score."""

    name = "pointwise"
    scale: Scale = SCORES
    layout = AnswerLayout(free_stem="[Review]", label_stem="[Score] ")
    example_type: type = PointwiseExample
    _ask = "ask_review_then_score"

    def asks(self, example: PointwiseExample, profile: Sequence[ProfileReview]) -> tuple[Ask, ...]:
        wording = macros("pointwise.jinja")
        shown = tuple(wording.profile(n, past.text, past.review, past.score) for n, past in enumerate(profile, start=1))
        return (Ask(wording.instruction(), shown, wording.query(example.query), getattr(wording, self._ask)()),)

    def unswap(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: PointwiseExample) -> tuple[str, str | None]:
        assert example.reference is not None
        return str(example.reference.score), example.reference.review

    def clean(self, example: PointwiseExample, clean: Any) -> PointwiseExample:
        profile = tuple(
            past.model_copy(update={"text": clean(past.text, lines=True), "review": past.review and clean(past.review)})
            for past in example.profile
        )
        reference = example.reference and example.reference.model_copy(update={"review": clean(example.reference.review)})
        return example.model_copy(
            update={"profile": profile, "query": clean(example.query, lines=True), "reference": reference}
        )


class PointwiseScore(Pointwise):
    """The score alone: cheaper, and what the review-first answer is compared with."""

    name = "pointwise_score"
    layout = AnswerLayout(free_stem=None, label_stem="[Score] ")
    _ask = "ask_score"
