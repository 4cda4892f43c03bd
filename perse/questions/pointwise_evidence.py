"""The stated questions with one line more, behind the new text: what the training side says of it (`perse data evidence`).

How many other readers scored it, their mean and spread, and what a regression on the text's words expects of this reader. A judge
of a few million weights does not learn these numbers from texts; a regression does, and the judge may weigh them. The numbers come with the
example (`perse.records.Evidence`), so whoever asks, in training, from a file or over HTTP, shows the same line; the reader's own share is
computed from the reviews that are shown. All that a reader's queries share stays in front of the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from perse.errors import BadInput
from perse.prompts import macros
from perse.questions.pointwise import Pointwise
from perse.questions.pointwise_stated import POINTWISE_SCORE_STATED, POINTWISE_STATED
from perse.records import PointwiseExample, ProfileReview


def evidence_line(example: PointwiseExample, profile: Sequence[ProfileReview]) -> str:
    """One line on the scores of other readers and the estimate for the reader of `profile`; newline included.

    Raises:
        BadInput: the example has no evidence.
    """
    known = example.evidence
    if known is None:
        raise BadInput(_missing(example.id, "this question"))
    personal = any(past.estimate is not None for past in profile)
    wording = macros("pointwise.jinja")
    return str(wording.evidence(known.others, known.mean, known.spread, known.for_reader(profile), personal))


def shows_evidence(question: object) -> bool:
    """Whether examples need evidence to be asked it."""
    return isinstance(question, Pointwise) and question.evidence is not None


def check_evidence_given(question: object, examples: Sequence[object]) -> None:
    """That what the question shows is there, before anything is asked.

    Raises:
        BadInput: the question shows evidence, and an example has none.
    """
    if isinstance(question, Pointwise) and shows_evidence(question):
        for example in examples:
            if isinstance(example, PointwiseExample) and example.evidence is None:
                raise BadInput(_missing(example.id, f"the question '{question.name}'"))


def _missing(example: str, question: str) -> str:
    return (
        f"example '{example}' has no evidence, which {question} shows: what a training side says of the text. Add it to a data set with "
        "`perse data evidence`, or name another question (--question; in Python question=), such as pointwise_score_stated"
    )


EVIDENCE = "and, of the text, other readers' mean and an estimate from its words, which the request has to bring"

POINTWISE_EVIDENCE = replace(
    POINTWISE_STATED, name="pointwise_evidence", evidence=evidence_line, served=f"{POINTWISE_STATED.served}, {EVIDENCE}"
)
"""The review on one line, then the score."""

POINTWISE_SCORE_EVIDENCE = replace(
    POINTWISE_SCORE_STATED,
    name="pointwise_score_evidence",
    evidence=evidence_line,
    served=f"{POINTWISE_SCORE_STATED.served}, {EVIDENCE}",
)
"""The score alone."""
