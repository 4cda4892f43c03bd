"""Does a claim follow from a text? Made where it is asked, and read from no file (KGDS, sections 4.4 and 4.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pydantic import Field

from perse.records.base import Record
from perse.strict import Name


class ClaimExample(Record):
    """Does `claim` follow from `text`? Asked of summaries and paragraphs."""

    kind: ClassVar[str] = "claim"
    limited: ClassVar[bool] = False
    """A text that claims are about is as long as it is."""
    shortened: ClassVar[bool] = False
    profile: ClassVar[tuple[()]] = ()

    id: Name
    reviewer_id: Name
    """Whose text this is: claims about one text are asked one after the other, so that they share the work on it."""
    text: str
    claim: str

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        """The text is meant to show whether the claim holds."""
        return False


class ClaimsExample(Record):
    """Which of `claims` follow from `text`? Asked in one prompt; the judgement of claim n, from 1, is `ID/n`."""

    kind: ClassVar[str] = "claims"
    limited: ClassVar[bool] = False
    shortened: ClassVar[bool] = False
    profile: ClassVar[tuple[()]] = ()

    id: Name
    reviewer_id: Name
    text: str
    claims: tuple[str, ...] = Field(min_length=1)

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        """The text is meant to show which claims hold."""
        return False

    def each(self) -> tuple[ClaimExample, ...]:
        """The claims one by one, each with the id that its judgement has."""
        return tuple(
            ClaimExample(id=f"{self.id}/{number}", reviewer_id=self.reviewer_id, text=self.text, claim=claim)
            for number, claim in enumerate(self.claims, start=1)
        )
