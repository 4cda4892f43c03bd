"""What would this reader answer to a prompt that is used as it is? A review and a score, or one of two plots, in JSON.

For released data, whose prompts hold the profile, the query and the wording (PerSE, section 4.1). Nothing in such a prompt is
neutralised, shortened, shared with another or asked in both orders, so whoever writes it speaks to the model with all its
special tokens. The answer is laid out as the released prompts ask, but for indentation: a segment may not begin with a space.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from perse.questions.base import AnswerLayout, Ask, Question
from perse.records import ChoiceReference, Example, ReviewReference, VerbatimExample
from perse.scale import CHOICES, SCORES, Scale


@dataclass(frozen=True)
class Verbatim:
    """A prompt as it is; `layout` says how the answer to it is written."""

    name: str
    scale: Scale
    layout: AnswerLayout
    reference_type: type
    example_type: type = VerbatimExample
    delimiters: tuple[()] = ()
    """Nothing in such a prompt is neutralised."""
    usual: bool = False
    """What is asked is told by the prompts (`verbatim_question`)."""
    served: None = None

    @property
    def writes_review(self) -> bool:
        return self.layout.text_prefix is not None

    def asks(self, example: VerbatimExample, profile: Sequence[Any]) -> tuple[Ask, ...]:
        return (Ask(instruction=example.prompt, profile=(), query="", ask=""),)

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: VerbatimExample) -> tuple[str, str | None]:
        assert isinstance(example.reference, self.reference_type), example.id
        if isinstance(example.reference, ReviewReference):
            return str(example.reference.score), example.reference.review
        assert example.reference is not None
        return example.reference.preference, None

    def clean(self, example: VerbatimExample, clean: Any) -> VerbatimExample:
        """The prompt stays; a review that is to be learned is read back as any other, so it is neutralised as any other."""
        if not isinstance(example.reference, ReviewReference):
            return example
        reference = example.reference.model_copy(update={"review": clean(example.reference.review)})
        return example.model_copy(update={"reference": reference})


VERBATIM_POINTWISE = Verbatim(
    "verbatim_pointwise",
    SCORES,
    AnswerLayout('```json\n{\n"Review":', '"Score": ', closing="\n}\n```", keys=("Review", "Score")),
    ReviewReference,
)

VERBATIM_PAIRWISE = Verbatim(
    "verbatim_pairwise",
    CHOICES,
    # The comma is in the released answers too.
    AnswerLayout(None, '```json\n{\n"Choice": "Plot ', closing='",\n}\n```', keys=("Choice",)),
    ChoiceReference,
)


def verbatim_question(examples: Sequence[VerbatimExample]) -> str | None:
    """The name of the question that these prompts ask, told by a reference, else by the one key that all of them name."""
    both = (VERBATIM_POINTWISE, VERBATIM_PAIRWISE)
    answered = [example.reference for example in examples if example.reference is not None]
    if answered:
        return next(question.name for question in both if isinstance(answered[0], question.reference_type))
    wanted = [question.name for question in both if all(f'"{question.layout.keys[-1]}":' in one.prompt for one in examples)]
    return wanted[0] if len(wanted) == 1 else None


def misfit(question: Question, examples: Sequence[Example]) -> VerbatimExample | None:
    """The first verbatim example whose reference answers another question."""
    if not isinstance(question, Verbatim):
        return None
    prompts = (example for example in examples if isinstance(example, VerbatimExample) and example.reference is not None)
    return next((example for example in prompts if not isinstance(example.reference, question.reference_type)), None)
