"""A prompt that is used as it is, with whatever profile and query stand in it (released data)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Discriminator, Field, Tag

from perse.identity import text_key
from perse.records.base import Parts, Record
from perse.records.pairwise import ChoiceReference
from perse.records.pointwise import ReviewReference
from perse.scale import Scale
from perse.strict import Name


def _kind_of_reference(given: object) -> str:
    return "choice" if isinstance(given, ChoiceReference) or (isinstance(given, dict) and "preference" in given) else "review"


class VerbatimExample(Record):
    """A prompt that is used as it is; what it asks is told by its reference, or by its own words."""

    kind: ClassVar[str] = "verbatim"
    plural: ClassVar[str] = "prompts"
    scale: ClassVar[Scale | None] = None
    verdict: ClassVar[tuple[str, ...]] = ()
    limited: ClassVar[bool] = True
    shortened: ClassVar[bool] = False
    aspect: ClassVar[None] = None
    profile: ClassVar[tuple[()]] = ()
    """A profile inside a prompt is not shortened."""

    id: Name
    reviewer_id: Name | None = None
    prompt: str = Field(min_length=1)
    reference: (
        Annotated[
            Annotated[ReviewReference, Tag("review")] | Annotated[ChoiceReference, Tag("choice")],
            Discriminator(_kind_of_reference),
        ]
        | None
    ) = None

    @classmethod
    def recognises(cls, fields: Mapping[str, Any]) -> bool:
        return "prompt" in fields

    @property
    def in_one_file(self) -> str:
        """A prompt without an answer goes with either kind of answer."""
        if self.reference is None:
            return self.kind
        return f"{self.kind} {'pairwise' if isinstance(self.reference, ChoiceReference) else 'pointwise'}"

    @property
    def truth(self) -> float | str | None:
        if isinstance(self.reference, ChoiceReference):
            return self.reference.preference
        return None if self.reference is None else self.reference.score

    @property
    def written(self) -> str | None:
        return self.reference.review if isinstance(self.reference, ReviewReference) else None

    @property
    def work(self) -> str:
        return text_key(self.prompt)

    @property
    def shown_query(self) -> Parts:
        return (("Prompt", self.prompt),)

    @property
    def shown_profile(self) -> tuple[tuple[str, Parts], ...]:
        return ()

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        """What stands in the prompt is not told apart."""
        return False
