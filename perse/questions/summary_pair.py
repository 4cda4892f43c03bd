"""Which of two summaries of a product would this reader rather have? Asked in both orders, probabilities averaged.

What Rehearsal leaves to a supervisor that looks at the user's words, asked of the reader's own judge about the summaries themselves. It is meant for
judges that were trained on other questions, so the prompt has as much of theirs as is true of products. A past review is shown with the lines that end
one in `pointwise`, "[Review ...] ..." and "[Score] ..." from 1 to 10, without the plot, which a product does not have; the query is a "[New pair]" of
texts A and B with the answer behind a name of the text, as in `pairwise`. A judge that was trained on pairs has seen no scores, and one that was trained on
scores no pairs: each meets half of what it knows, and the labels are read behind a given beginning, so none must guess the form of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from perse.errors import BadInput
from perse.prompts import macros
from perse.questions.base import AnswerLayout, Ask
from perse.records import PastReview, SummaryPairExample
from perse.scale import CHOICES, Scale


class SummaryPair:
    """A or B."""

    name = "summary_pair"
    scale: Scale = CHOICES
    layout = AnswerLayout(text_prefix=None, label_prefix="Summary ")
    example_type: type = SummaryPairExample
    delimiters = ("Review", "Score", "New pair", "Summary", "Answer")
    usual = False
    served = None
    writes_review = False

    def asks(self, example: SummaryPairExample, profile: Sequence[PastReview]) -> tuple[Ask, ...]:
        wording = macros("summary_pair.jinja")
        shown = tuple(wording.profile(n, past.review, past.score) for n, past in enumerate(profile, start=1))
        one, other = example.query.text_a, example.query.text_b
        instruction, ask = wording.instruction(), wording.ask()
        return tuple(Ask(instruction, shown, wording.query(*texts), ask) for texts in ((one, other), (other, one)))

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        as_given, swapped = probabilities
        return as_given, (swapped[1], swapped[0])

    def answer(self, example: SummaryPairExample) -> NoReturn:
        raise BadInput("question 'summary_pair' has no examples to be trained on; choose another question")

    def clean(self, example: SummaryPairExample, clean: Any) -> SummaryPairExample:
        profile = tuple(past.model_copy(update={"review": clean(past.review)}) for past in example.profile)
        texts = {"text_a": clean(example.query.text_a), "text_b": clean(example.query.text_b)}
        return example.model_copy(update={"profile": profile, "query": example.query.model_copy(update=texts)})


SUMMARY_PAIR = SummaryPair()
