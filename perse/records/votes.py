"""Which of two texts would somebody of this role vote for? Made where it is asked, and read from no file (DRPE; docs/drpe.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pydantic import Field

from perse.records.base import Record
from perse.records.pairwise import Pair
from perse.records.pointwise import ProfileReview
from perse.strict import Name


class Voter(Record):
    """A role as the judge is shown it."""

    type: str
    description: str


class VoteExample(Record):
    """Which text would this voter choose?"""

    kind: ClassVar[str] = "vote"
    limited: ClassVar[bool] = False
    """An article is as long as it is."""
    shortened: ClassVar[bool] = False
    profile: ClassVar[tuple[()]] = ()

    id: Name
    reviewer_id: Name
    """The document: votes about one are asked one after the other, so that they share the work on it."""
    article: str | None
    """What the texts are summaries of; None: they are compared as they are."""
    query: Pair
    voter: Voter | None
    """None: nobody in particular, which is the plain comparison."""
    wording: int = Field(default=0, ge=0, le=4)
    """Which of five paraphrases of the prompt."""

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        """The article is meant to show what a summary is worth."""
        return False


class ReaderVoteExample(Record):
    """Which text would this reader choose? A real one, known by past reviews.

    The limit of words is for it: a judge that was trained for readers has seen no longer prompt (PerSE, section 4.1).
    """

    kind: ClassVar[str] = "vote_reader"
    limited: ClassVar[bool] = True
    shortened: ClassVar[bool] = True

    id: Name
    reviewer_id: Name
    """The reader: votes of one are asked one after the other, so that they share the work on the profile."""
    profile: tuple[ProfileReview, ...] = Field(min_length=1)
    article: str | None
    query: Pair

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        """Whether the reader has reviewed one of the texts."""
        return any(near(past.text, text) for past in self.profile for text in (self.query.text_a, self.query.text_b))


class VotesExample(Record):
    """Which text would each of these voters choose? Asked in one prompt; the judgement of voter n, from 1, is `ID/n`."""

    kind: ClassVar[str] = "votes"
    limited: ClassVar[bool] = False
    shortened: ClassVar[bool] = False
    profile: ClassVar[tuple[()]] = ()

    id: Name
    reviewer_id: Name
    article: str | None
    query: Pair
    voters: tuple[Voter, ...] = Field(min_length=1)
    wording: int = Field(default=0, ge=0, le=4)

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        """As of one vote."""
        return False

    def each(self) -> tuple[VoteExample, ...]:
        """The votes one by one, each with the id that its judgement has."""
        return tuple(
            VoteExample(
                id=f"{self.id}/{n}",
                reviewer_id=self.reviewer_id,
                article=self.article,
                query=self.query,
                voter=voter,
                wording=self.wording,
            )
            for n, voter in enumerate(self.voters, start=1)
        )
