"""Which of two texts would this reader prefer, on one aspect? Asked in both orders, probabilities averaged.

The aspect-enhanced evaluation of PerSE, section 3. Judges lean towards the first text (PerSE, table 6), so the query is
asked as given and with its texts swapped; half the difference would be hidden by asking once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perse.prompts import macros
from perse.questions.base import AnswerLayout, Ask, request_first
from perse.records import ASPECTS, PairwiseExample, ProfileComparison
from perse.scale import CHOICES, Scale


class Pairwise:
    """A or B for one aspect."""

    name: str = "pairwise"
    scale: Scale = CHOICES
    layout = AnswerLayout(text_prefix=None, label_prefix="Plot ")
    example_type: type = PairwiseExample
    usual: bool = True
    # The aspects stand in brackets too; those of other data begin a line, where no bracket of a text stays as it is.
    delimiters = ("Pair", "New pair", "Premise", "Plot", "Aspect", *ASPECTS)
    served: str | None = "chooses a text on one aspect, asked in both orders"
    writes_review = False

    def asks(self, example: PairwiseExample, profile: Sequence[ProfileComparison]) -> tuple[Ask, ...]:
        wording = macros("pairwise.jinja")
        shown = tuple(
            wording.profile(n, past.text_a, past.text_b, past.premise, sorted(past.preference.items()))
            for n, past in enumerate(profile, start=1)
        )
        query = example.query
        instruction, ask = wording.instruction(), wording.ask(example.aspect)
        return (
            Ask(instruction, shown, wording.query(query.text_a, query.text_b, query.premise), ask),
            Ask(instruction, shown, wording.query(query.text_b, query.text_a, query.premise), ask),
        )

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        as_given, swapped = probabilities
        return as_given, (swapped[1], swapped[0])

    def answer(self, example: PairwiseExample) -> tuple[str, str | None]:
        assert example.reference is not None
        return example.reference.preference, None

    def clean(self, example: PairwiseExample, clean: Any) -> PairwiseExample:
        def texts(pair: Any) -> dict[str, str | None]:
            premise = pair.premise and clean(pair.premise)
            return {"text_a": clean(pair.text_a, lines=True), "text_b": clean(pair.text_b, lines=True), "premise": premise}

        profile = tuple(
            past.model_copy(
                update=texts(past) | {"preference": {clean(aspect): choice for aspect, choice in past.preference.items()}}
            )
            for past in example.profile
        )
        query = example.query.model_copy(update=texts(example.query))
        return example.model_copy(update={"aspect": clean(example.aspect), "profile": profile, "query": query})


class PairwiseOnce(Pairwise):
    """Asked in the given order alone, as the paper asks: whatever leans towards a place stays in the answer, and is not measured."""

    name = "pairwise_once"
    usual = False
    served = "chooses a text on one aspect, asked in the given order alone"

    def asks(self, example: PairwiseExample, profile: Sequence[ProfileComparison]) -> tuple[Ask, ...]:
        return super().asks(example, profile)[:1]

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)


class PairwiseAspectFirst(PairwiseOnce):
    """The order of PerSE, figure 9: the aspect stands before the two texts, so that each aspect reads them anew."""

    name = "pairwise_aspect_first"
    served = "chooses a text on one aspect, asked in the given order alone and before the texts are shown, as in the paper"

    def asks(self, example: PairwiseExample, profile: Sequence[ProfileComparison]) -> tuple[Ask, ...]:
        return tuple(map(request_first, super().asks(example, profile)))
