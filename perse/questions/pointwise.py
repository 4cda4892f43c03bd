"""Would this reader like this text, and what would they say? Review, then score 1-10; or the score alone.

Generating the review first and the score after it is the review-enhanced evaluation of PerSE, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perse.prompts import macros
from perse.questions.base import AnswerLayout, Ask, request_first
from perse.records import PointwiseExample, ProfileReview
from perse.scale import SCORES, Scale


@dataclass(frozen=True)
class Pointwise:
    """A score of one text; `layout` says whether a review is written before it, `ask` is the macro that asks for it."""

    name: str
    layout: AnswerLayout
    ask: str
    statement: Callable[[Sequence[ProfileReview]], str] | None = None
    """Whole lines that stand behind the last review shown, made of the reviews shown."""
    evidence: Callable[[PointwiseExample, Sequence[ProfileReview]], str] | None = None
    """Whole lines that stand behind the query, made of what the training side says of it and of the reviews shown."""
    arranged: Callable[[Ask], Ask] = lambda ask: ask
    """Puts the parts of the prompt in another order."""
    served: str | None = None
    usual: bool = False
    scale: Scale = SCORES
    example_type: type = PointwiseExample
    delimiters: tuple[str, ...] = ("Plot", "New plot", "Review", "Score", "Answer")

    @property
    def writes_review(self) -> bool:
        return self.layout.text_prefix is not None

    def asks(self, example: PointwiseExample, profile: Sequence[ProfileReview]) -> tuple[Ask, ...]:
        wording = macros("pointwise.jinja")
        shown = [wording.profile(n, past.text, past.review, past.score) for n, past in enumerate(profile, start=1)]
        if shown and self.statement is not None:
            shown[-1] += self.statement(profile)  # no entry of its own: entries are counted as reviews
        query = wording.query(example.query)
        if self.evidence is not None:
            query += self.evidence(example, profile)
        ask = Ask(wording.instruction(), tuple(shown), query, getattr(wording, self.ask)())
        return (self.arranged(ask),)

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
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


POINTWISE = Pointwise(
    "pointwise",
    AnswerLayout(text_prefix="[Review]", label_prefix="[Score] "),
    "ask_review_then_score",
    served="writes the review, then gives the score",
    usual=True,
)
"""The review on one line, then the score."""

POINTWISE_SCORE = replace(
    POINTWISE,
    name="pointwise_score",
    layout=AnswerLayout(text_prefix=None, label_prefix="[Score] "),
    ask="ask_score",
    served="gives the score alone",
    usual=False,
)
"""The score alone: cheaper, and what the review-first answer is compared with."""

POINTWISE_REQUEST_FIRST = replace(
    POINTWISE,
    name="pointwise_request_first",
    arranged=request_first,
    served="writes the review, then gives the score, asked before the text is shown, as in the paper",
    usual=False,
)
"""The order of PerSE, figure 9: what is wanted stands before the new plot."""
