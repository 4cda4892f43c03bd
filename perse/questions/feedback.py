"""Which of two selections of an article's paragraphs is the better background of a discussion? Asked in both orders (KGDS, section 6.1).

The example's premise is article and discussion, its two texts the selections; a reader's preference is not asked about, so there is no
profile and the aspect is not shown. `SecondTurn` asks in the conversation in which one of the two was made, which shows all that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from perse.errors import BadInput
from perse.prompts import macros
from perse.questions.base import AnswerLayout, Ask
from perse.records import PairwiseExample
from perse.scale import CHOICES, Scale


class Feedback:
    """A or B."""

    name = "feedback"
    scale: Scale = CHOICES
    layout = AnswerLayout(text_prefix=None, label_prefix="Selection ")
    example_type: type = PairwiseExample
    delimiters = ("Article", "Discussion", "Selection A", "Selection B")
    usual = False
    served = None
    writes_review = False

    def asks(self, example: PairwiseExample, profile: Sequence[Any]) -> tuple[Ask, ...]:
        wording = macros("feedback.jinja")
        one, other, query = example.query.text_a, example.query.text_b, wording.query(example.query.premise)
        return tuple(Ask(wording.instruction(), (), query, wording.ask(*texts)) for texts in ((one, other), (other, one)))

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        as_given, swapped = probabilities
        return as_given, (swapped[1], swapped[0])

    def answer(self, example: PairwiseExample) -> NoReturn:
        raise BadInput("question 'feedback' has no examples to be trained on; choose another question")

    def clean(self, example: PairwiseExample, clean: Any) -> PairwiseExample:
        query = example.query
        texts = {
            "text_a": clean(query.text_a),
            "text_b": clean(query.text_b),
            "premise": clean(query.premise or "", lines=True),
        }
        return example.model_copy(update={"profile": (), "query": query.model_copy(update=texts)})


class SecondTurn(Feedback):
    """The same as the next words of a conversation.

    Args:
        conversations: the turns before, by the example's id; safe to show.
    """

    name = "feedback_second_turn"

    def __init__(self, conversations: Mapping[str, tuple[str, ...]]) -> None:
        self._conversations = conversations

    def asks(self, example: PairwiseExample, profile: Sequence[Any]) -> tuple[Ask, ...]:
        wording, before = macros("feedback.jinja"), self._conversations[example.id]
        one, other = example.query.text_a, example.query.text_b
        return tuple(Ask(wording.second_turn(*texts), (), "", "", before) for texts in ((one, other), (other, one)))


FEEDBACK = Feedback()
