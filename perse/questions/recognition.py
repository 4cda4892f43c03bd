"""Which work is this, and how good is it? Asked without a reader, to find out what a judge knows by heart.

The evaluations of PerSE, appendix A.1, named deviations: an answer is laid out as our questions are (a free line, then the
label's line), not as JSON; the titles come before the score or choice, which the paper asks for first; and no reason is asked
for. Whoever names the work first may lean on it more, so what these questions find of contamination is rather too much than
too little.

A pair is asked once, in the order given, other than by `pairwise`: position bias is what is measured, so nothing may average it
away. Whoever wants both orders asks of two examples. Neither question has an answer to be learned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from perse.errors import BadInput
from perse.prompts import macros
from perse.questions.base import AnswerLayout, Ask
from perse.records import PairwiseExample, PointwiseExample
from perse.scale import CHOICES, SCORES, Scale


class Recognition:
    """The title on one line, then a score from 1 to 10. A profile is not shown."""

    name = "recognition"
    scale: Scale = SCORES
    layout = AnswerLayout(text_prefix="[Title]", label_prefix="[Score] ")
    example_type: type = PointwiseExample
    delimiters = ("New plot", "Answer", "Title", "Score")
    usual = False
    served = None
    writes_review = False

    def asks(self, example: PointwiseExample, profile: Sequence[Any]) -> tuple[Ask, ...]:
        wording = macros("recognition.jinja")
        return (Ask(wording.instruction(), (), wording.query(example.query), wording.ask()),)

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: PointwiseExample) -> NoReturn:
        raise BadInput(_NOT_LEARNED.format(self.name))

    def clean(self, example: PointwiseExample, clean: Any) -> PointwiseExample:
        return example.model_copy(update={"profile": (), "query": clean(example.query, lines=True)})


class RecognitionPair:
    """Both titles on one line, then A or B. Neither a profile nor the aspect is shown."""

    name = "recognition_pair"
    scale: Scale = CHOICES
    layout = AnswerLayout(text_prefix="[Titles]", label_prefix="Plot ")
    example_type: type = PairwiseExample
    delimiters = ("Plot", "Answer", "Titles")
    usual = False
    served = None
    writes_review = False

    def asks(self, example: PairwiseExample, profile: Sequence[Any]) -> tuple[Ask, ...]:
        wording = macros("recognition.jinja")
        query = wording.pair_query(example.query.text_a, example.query.text_b)
        return (Ask(wording.pair_instruction(), (), query, wording.pair_ask()),)

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: PairwiseExample) -> NoReturn:
        raise BadInput(_NOT_LEARNED.format(self.name))

    def clean(self, example: PairwiseExample, clean: Any) -> PairwiseExample:
        texts = {"text_a": clean(example.query.text_a, lines=True), "text_b": clean(example.query.text_b, lines=True)}
        return example.model_copy(update={"profile": (), "query": example.query.model_copy(update=texts)})


RECOGNITION = Recognition()
RECOGNITION_PAIR = RecognitionPair()

_NOT_LEARNED = "question '{}' asks what a judge already knows; there is no answer to train on, choose another question"


def both_titles(written: str) -> tuple[str, str]:
    """The titles that a judge gave to plot A and plot B; empty where the line does not tell which is which."""
    found = re.search(r"\bA\s*[:=]\s*(.*?)[\s;,|/]*(?:\bPlot\s+)?\bB\s*[:=]\s*(.*)", written, flags=re.DOTALL)
    return (found[1].strip(), found[2].strip()) if found else ("", "")
