"""Which of two texts does a voter of this role choose, and why? The reason first, then the vote (DRPE, section 3.2).

Invented voters are told by a type and a description, real readers (`vote_reader`) by what they reviewed. One voter a prompt (`vote`), whose probability depends on no other voter; or all voters in one prompt (`votes`), as in the paper, where each also sees the
reasons and votes before its own. Asked in the given order alone: a reason speaks of A and B, so each order has its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from perse.errors import BadInput
from perse.prompts import macros
from perse.questions.base import AnswerLayout, Ask
from perse.records import ProfileReview, ReaderVoteExample, VoteExample, Voter, VotesExample
from perse.scale import CHOICES, Scale

TEMPLATE = "vote.jinja"
_NOT_LEARNED = "question '{}' has no examples to be trained on; choose another question"


class Vote:
    """A or B, behind a reason."""

    name = "vote"
    scale: Scale = CHOICES
    layout = AnswerLayout(text_prefix="Reason:", label_prefix="Vote: Text ")
    example_type: type = VoteExample
    delimiters = ("Article", "Text", "User")
    usual = False
    served = None
    writes_review = False

    def asks(self, example: VoteExample, profile: Sequence[Any]) -> tuple[Ask, ...]:
        wording, summaries = macros(TEMPLATE), example.article is not None
        query = wording.query(example.article, example.query.text_a, example.query.text_b)
        return (Ask(wording.instruction(summaries, example.wording), (), query, wording.ask(summaries, example.voter)),)

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: VoteExample) -> NoReturn:
        raise BadInput(_NOT_LEARNED.format(self.name))

    def clean(self, example: VoteExample, clean: Any) -> VoteExample:
        voter = None if example.voter is None else _clean_voter(example.voter, clean)
        return example.model_copy(update={**_clean_texts(example, clean), "voter": voter})


class ReaderVote:
    """A or B, behind a reason, of a real reader who is known by past reviews."""

    name = "vote_reader"
    scale: Scale = CHOICES
    layout = AnswerLayout(text_prefix="Reason:", label_prefix="Vote: Text ")
    example_type: type = ReaderVoteExample
    delimiters = ("Plot", "Review", "Score", "Article", "Text", "Answer")
    usual = False
    served = None
    writes_review = False

    def asks(self, example: ReaderVoteExample, profile: Sequence[ProfileReview]) -> tuple[Ask, ...]:
        wording, past, summaries = macros(TEMPLATE), macros("pointwise.jinja"), example.article is not None
        shown = tuple(past.profile(n, one.text, one.review, one.score) for n, one in enumerate(profile, start=1))
        query = wording.query(example.article, example.query.text_a, example.query.text_b)
        return (Ask(wording.reader_instruction(summaries), shown, query, wording.reader_ask(summaries)),)

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: ReaderVoteExample) -> NoReturn:
        raise BadInput(_NOT_LEARNED.format(self.name))

    def clean(self, example: ReaderVoteExample, clean: Any) -> ReaderVoteExample:
        profile = tuple(
            past.model_copy(update={"text": clean(past.text, lines=True), "review": past.review and clean(past.review)})
            for past in example.profile
        )
        return example.model_copy(update={**_clean_texts(example, clean), "profile": profile})


class Votes:
    """A or B for each of several voters, each behind a reason."""

    name = "votes"
    scale: Scale = CHOICES
    layout = AnswerLayout(text_prefix="Reason 1:", label_prefix="Vote 1: Text ")
    example_type: type = VotesExample
    delimiters = ("Article", "Text", "User")
    usual = False
    served = None
    writes_review = False

    def stem(self, number: int) -> str:
        return f"Vote {number}: Text "

    def text_stem(self, number: int) -> str:
        return f"Reason {number}:"

    def asks(self, example: VotesExample, profile: Sequence[Any]) -> tuple[Ask, ...]:
        wording, summaries = macros(TEMPLATE), example.article is not None
        query = wording.query(example.article, example.query.text_a, example.query.text_b)
        return (Ask(wording.instruction(summaries, example.wording), (), query, wording.ask_each(summaries, example.voters)),)

    def read(self, number: int, of: int, answer: str) -> tuple[str | None, str]:
        """The vote of voter `number`, None if there is none or two that differ, and its reason."""
        votes = {
            found.upper()
            for found in re.findall(rf"(?im)^\W*Vote\W*{number}\b\W*(?:Text\W*)?([AB])\b(?!\s*(?:/|or)\b)", answer)
        }
        reasons = re.findall(rf"(?im)^\W*Reason\W*{number}\b[\W_]*(\S.*)$", answer)
        return (votes.pop() if len(votes) == 1 else None), (reasons[0].strip() if reasons else "")

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        return tuple(probabilities)

    def answer(self, example: VotesExample) -> NoReturn:
        raise BadInput(_NOT_LEARNED.format(self.name))

    def clean(self, example: VotesExample, clean: Any) -> VotesExample:
        voters = tuple(_clean_voter(voter, clean) for voter in example.voters)
        return example.model_copy(update={**_clean_texts(example, clean), "voters": voters})


def _clean_texts(example: VoteExample | VotesExample | ReaderVoteExample, clean: Any) -> dict[str, Any]:
    texts = {"text_a": clean(example.query.text_a, lines=True), "text_b": clean(example.query.text_b, lines=True)}
    article = None if example.article is None else clean(example.article, lines=True)
    return {"article": article, "query": example.query.model_copy(update=texts)}


def _clean_voter(voter: Voter, clean: Any) -> Voter:
    return Voter(type=clean(voter.type), description=clean(voter.description))


VOTE = Vote()
VOTES = Votes()
VOTE_READER = ReaderVote()
