"""The questions a judge can answer, by name. A new question is one file and one line here (docs/contributing.md)."""

from __future__ import annotations

from collections.abc import Sequence

from perse.errors import BadInput
from perse.questions.base import Ask, Question
from perse.questions.claims import MASK_CONFLICT, OPINION_ERROR, VERIFY_FACT, VERIFY_FACTS, VERIFY_OPINION
from perse.questions.coverage import COVERAGE, COVERAGE_100
from perse.questions.feedback import FEEDBACK
from perse.questions.pairwise import Pairwise, PairwiseAspectFirst, PairwiseOnce
from perse.questions.pointwise import POINTWISE, POINTWISE_REQUEST_FIRST, POINTWISE_SCORE
from perse.questions.pointwise_evidence import (
    POINTWISE_EVIDENCE,
    POINTWISE_SCORE_EVIDENCE,
    check_evidence_given,
    shows_evidence,
)
from perse.questions.pointwise_stated import POINTWISE_SCORE_STATED, POINTWISE_STATED
from perse.questions.recognition import RECOGNITION, RECOGNITION_PAIR
from perse.questions.sentiment import SENTIMENT, SENTIMENT_100
from perse.questions.summary_pair import SUMMARY_PAIR
from perse.questions.verbatim import VERBATIM_PAIRWISE, VERBATIM_POINTWISE, misfit, verbatim_question
from perse.questions.votes import VOTE, VOTE_READER, VOTES
from perse.records import Example, PointwiseExample, VerbatimExample
from perse.registry import Registry

QUESTIONS: Registry[Question] = Registry(
    "perse.questions",
    (
        *(POINTWISE, POINTWISE_SCORE, Pairwise(), PairwiseOnce()),
        *(POINTWISE_STATED, POINTWISE_SCORE_STATED, POINTWISE_REQUEST_FIRST, PairwiseAspectFirst()),
        *(POINTWISE_EVIDENCE, POINTWISE_SCORE_EVIDENCE),
        *(COVERAGE, SENTIMENT, COVERAGE_100, SENTIMENT_100),
        *(VERBATIM_POINTWISE, VERBATIM_PAIRWISE),
        *(RECOGNITION, RECOGNITION_PAIR),
        *(VERIFY_FACT, VERIFY_FACTS, VERIFY_OPINION, MASK_CONFLICT, OPINION_ERROR, FEEDBACK),
        *(SUMMARY_PAIR, VOTE, VOTES, VOTE_READER),
    ),
    needs=(
        *("scale", "layout", "example_type", "usual", "delimiters", "served", "writes_review"),
        *("asks", "to_label_order", "answer", "clean"),
    ),
)

__all__ = ["QUESTIONS", "Ask", "Question", "check_evidence_given", "question_for", "shows_evidence", "why_no_truth"]


def why_no_truth(name: str, kind: type[Example]) -> str | None:
    """Why answers to the question `name` cannot be held against the true answers of examples of `kind`: they are on another scale.

    None where they can, and for a question that is not known here, whose labels alone tell. A prompt's true answer is that of
    the question that it asks.
    """
    if name not in QUESTIONS or kind is VerbatimExample:
        return None
    given, true = QUESTIONS[name].scale, kind.scale
    if given.values is not None if true is None else given.labels == true.labels:
        return None
    what = "choices" if true is not None and true.values is None else "scores"
    told = "numbers" if true is None else true.shown
    return f"the question '{name}' answers with {given.shown}; the examples' true {what} are {told}: there is no truth to compare with"


def question_for(examples: Sequence[Example], name: str | None = None, *, own: str | None = None) -> Question:
    """The question `name`, or the usual one for these examples, checked to fit them.

    Args:
        own: the judge's own question (`judging.trained.own_question`): the usual one of all examples that it fits.
    Raises:
        BadInput: no such question, one that asks for another kind of example or shows evidence that an example has not, or prompts
            that do not tell which one they ask.
    """
    prompts = [example for example in examples if isinstance(example, VerbatimExample)]
    if name is None and prompts:
        name = verbatim_question(prompts)
        if name is None:
            raise BadInput(
                "neither a reference nor the prompts tell what is asked; give the question: verbatim_pointwise or verbatim_pairwise"
            )
    kind = type(examples[0]) if examples else PointwiseExample
    if name is None and own is not None and own not in QUESTIONS:
        raise BadInput(
            f"the judge's own question is '{own}', which is not known here; install the package that brings it, or say which question to ask"
        )
    if name is None and own is not None and QUESTIONS[own].example_type is kind:
        name = own
    if name is None:
        name = next((name for name, question in QUESTIONS.items() if question.usual and question.example_type is kind), None)
        if name is None:
            raise BadInput(f"no question is the usual one of {kind.plural}; give the question")
    if not isinstance(name, str) or name not in QUESTIONS:
        raise BadInput(f"there is no question '{name}'; choose from {', '.join(QUESTIONS)}")
    question = QUESTIONS[name]
    if examples and not isinstance(examples[0], question.example_type):
        raise BadInput(
            f"question '{name}' does not fit: the examples are {kind.plural}; leave the question out to get the usual one"
        )
    if other := misfit(question, examples):
        raise BadInput(
            f"question '{name}' does not fit: example {other.id} has a reference of another kind; leave the question out"
        )
    check_evidence_given(question, examples)
    return question
