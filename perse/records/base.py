"""The base of all examples, so that no caller asks for their type; and the errors of lines of JSON.

`Asked` is what a judge can be asked about, `Example` what is also read from files, with the true answer where it is known. A
new type of example is one file beside this one, and one line in `perse.records.kinds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Protocol, Self

from pydantic import ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from perse.formats.json_text import json_kind
from perse.scale import Scale
from perse.strict import Strict

Choice = Literal["A", "B"]

Parts = tuple[tuple[str, str | None], ...]
"""Texts as a person is shown them, each behind its caption; None: there is no such text."""


_LONGEST = 300
"""Characters that are told of a problem: it may repeat what a file holds."""


class Record(Strict):
    """A record is not changed, and has no field that is not known."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Asked(Protocol):
    """What a judge can be asked about."""

    limited: ClassVar[bool]
    """Whether its prompt has the limit of words of prompts for readers (PerSE, section 4.1)."""
    shortened: ClassVar[bool]
    """Whether entries leave `profile` where the prompt is too long."""

    @property
    def id(self) -> str: ...
    @property
    def reviewer_id(self) -> str | None:
        """Whose taste, text or product this is about; those of one reviewer are asked one after the other."""

    @property
    def profile(self) -> tuple[Any, ...]:
        """What the renderer may shorten, oldest first."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self: ...
    def model_dump(self, *, mode: str = "python", exclude: Any = None, exclude_none: bool = False) -> dict[str, Any]: ...
    def model_dump_json(self, *, exclude_none: bool = False) -> str: ...


class SeveralAsked(Asked, Protocol):
    """What is asked about in one prompt and has several answers; the judgement of number n, from 1, is `ID/n`."""

    def each(self) -> tuple[Asked, ...]:
        """One by one, each with the id that its judgement has."""


class Served(Asked, Protocol):
    """What a judge can be asked about over HTTP."""

    kind: ClassVar[str]
    """The type's name, such as "pairwise"; also the name of the server's route for it."""

    @classmethod
    def model_validate(cls, obj: Any) -> Self: ...

    def gives_away(self, near: Callable[[str, str], bool]) -> bool:
        """Whether the profile shows what is asked about (DESIGN.md, promise 5); `near` says whether two texts are nearly the same."""


class Example(Served, Protocol):
    """What is read from files, with the true answer where it is known."""

    plural: ClassVar[str]
    """What several are called in a sentence, such as "pairs"."""
    scale: ClassVar[Scale | None]
    """Of the true answers; None: that of the question that is asked."""
    verdict: ClassVar[tuple[str, ...]]
    """The fields of a profile's entry that say what the reader thought of it; none where the profile is not a reader's."""

    @classmethod
    def recognises(cls, fields: Mapping[str, Any]) -> bool:
        """Whether a JSON object is of this type, well made or not."""

    @property
    def reference(self) -> Any:
        """The true answer, or None."""

    @property
    def in_one_file(self) -> str:
        """What all examples of a file must be: words that begin with `kind`."""

    @property
    def aspect(self) -> str | None:
        """What is asked about in particular, if anything is."""

    @property
    def truth(self) -> float | str | None:
        """The true score, or the true choice's label; None if it is not known."""

    @property
    def written(self) -> str | None:
        """What the reviewer wrote, where a reference says so."""

    @property
    def work(self) -> str:
        """Of the text or texts that are asked about: the same for all their readers."""

    @property
    def shown_query(self) -> Parts:
        """What is asked about, for a person to read."""

    @property
    def shown_profile(self) -> tuple[tuple[str, Parts], ...]:
        """Each entry of the profile for a person to read: what the reader thought of it in a few words, and its texts."""


class PersonalExample(Example, Protocol):
    """An example whose profile is a reader's own past answers, so that it can be shown without them, or with another's."""

    @property
    def reviewer_id(self) -> str: ...

    def as_entry(self) -> Any:
        """The example, whose answer is known, as an entry of a profile."""


def explain(error: ValidationError) -> str:
    """The first problem of a validation error as "field 'a.b': what was wrong", of the whole as what was wrong alone; not at length."""
    first = error.errors(include_url=False)[0]
    where, said = ".".join(str(part) for part in first["loc"]), first["msg"]
    message = said.removeprefix("Value error, ")
    told = _in_our_words(first) or (message if message != said else message[0].lower() + message[1:])
    told = told if len(told) <= _LONGEST else f"{told[:_LONGEST]}..."
    return f"field '{where}': {told}" if where else told


def _in_our_words(error: ErrorDetails) -> str | None:
    """What is wrong with a list, or an empty text: a file has no tuples, and knows nothing of validation."""
    if error["type"] in ("tuple_type", "list_type"):
        return f"found {json_kind(error['input'])}, expected a list"
    if error["type"] in ("too_short", "string_too_short") and error["input"] == "":
        return "found an empty text; give one that is not empty"
    if error["type"] != "too_short":
        return None
    least, found = error["ctx"]["min_length"], error["ctx"]["actual_length"]
    return f"found {f'{found} entries' if found else 'an empty list'}, expected at least {least} {'entry' if least == 1 else 'entries'}"
