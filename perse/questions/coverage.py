"""Does a text cover what these reviews mostly talk about? From 1 to 5, or from 0 to 100 in steps of 20.

One of the two questions that compare a text with reviews (Rehearsal, sections 4.1 and 4.2). Both show the same prompt up to the
ask, so that whoever asks both of one text pays for the reviews once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perse.prompts import macros
from perse.questions.base import AnswerLayout, Ask
from perse.records import SummaryExample
from perse.scale import GRADES, HUNDREDS, Scale


@dataclass(frozen=True)
class AgainstReviews:
    """A number that compares a text with reviews; `template` has the ask."""

    name: str
    scale: Scale
    template: str
    usual: bool = False
    example_type: type = SummaryExample
    delimiters: tuple[str, ...] = ("Review", "Text", "Answer", "Score")
    served: str | None = None
    writes_review: bool = False

    @property
    def layout(self) -> AnswerLayout:
        return AnswerLayout(text_prefix=None, label_prefix="[Score] ")

    def asks(self, example: SummaryExample, profile: Sequence[str]) -> tuple[Ask, ...]:
        shared = macros("coverage.jinja")
        shown = tuple(shared.profile(n, review) for n, review in enumerate(profile, start=1))
        ask = macros(self.template).ask(self.scale)
        return (Ask(shared.instruction(), shown, shared.query(example.summary), ask),)

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: SummaryExample) -> tuple[str, str | None]:
        """The label nearest to people's answer, the lower on a tie."""
        assert example.reference is not None and self.scale.values is not None
        score = example.reference.score
        nearest = min(zip(self.scale.values, self.scale.labels, strict=True), key=lambda one: abs(one[0] - score))
        return nearest[1], None

    def clean(self, example: SummaryExample, clean: Any) -> SummaryExample:
        reviews = tuple(clean(review) for review in example.reviews)
        return example.model_copy(update={"reviews": reviews, "summary": clean(example.summary)})


COVERAGE = AgainstReviews(
    "coverage", GRADES, "coverage.jinja", usual=True, served="how much of what the reviews talk about the text covers"
)
COVERAGE_100 = AgainstReviews("coverage_100", HUNDREDS, "coverage.jinja", served=f"{COVERAGE.served}, from 0 to 100")
