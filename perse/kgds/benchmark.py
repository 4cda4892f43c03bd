"""The KGDS benchmark: an article, a discussion of it, and what a good summary must and must not say (KGDS, section 4).

One JSON file holds a list of samples in the authors' own format, whose keys are the aliases below. A sample is known by its number, its
place in the file from 1, as in the authors' file names. Inconsistent samples are refused, with sample and field.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from perse.errors import BadInput
from perse.formats.json_text import file_bytes, json_kind, json_value, shortened
from perse.records import explain
from perse.strict import Strict

Pattern = Literal["ebs-aos", "abs-aos"]
"""The form of a summary: paragraphs of the article or a background in own words, and the opinions."""

Paradigm = Literal["structured", "reflection"]
"""One structured prompt, or a second turn in which the model looks at its answer again (KGDS, section 5)."""

FactMode = Literal["single", "paragraph"]
"""How a judge is asked about facts: one by one, or a paragraph's at a time."""

PATTERNS: tuple[Pattern, ...] = ("ebs-aos", "abs-aos")
PARADIGMS: tuple[Paradigm, ...] = ("structured", "reflection")

NONSUPPORTING, KEY, NON_KEY, REPEATED, MASKED = 0, 1, 2, 3, 4
"""Types of facts. 4 to 6 are masked: both a nonsupporting and a supporting paragraph state them. Only 0 and 1 count."""


class _Part(Strict):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Paragraph(_Part):
    """A paragraph of the article; `index` counts from 1."""

    index: int = Field(alias="paragraph_index", ge=1, strict=True)
    text: str = Field(alias="paragraph_text", min_length=1)


class Utterance(_Part):
    """One turn of the discussion."""

    participant: str = Field(min_length=1)
    utterance: str = Field(min_length=1)


class AtomicFact(_Part):
    """A statement that a paragraph makes; see the types above."""

    text: str = Field(alias="atomic_fact", min_length=1)
    type: int = Field(ge=0, le=6, strict=True)


class ParagraphFacts(_Part):
    """The facts of one paragraph."""

    index: int = Field(alias="paragraph_index", ge=1, strict=True)
    facts: tuple[AtomicFact, ...] = Field(alias="atomic_facts")


@dataclass(frozen=True)
class PlacedFact:
    """A fact and its place: `at` counts from 1 within its paragraph."""

    paragraph: int
    at: int
    text: str
    type: int


class Sample(_Part):
    """One task: summarize `discussion` for somebody who has not read `article`."""

    number: int = Field(ge=1)
    """Its place in the benchmark, from 1."""
    article: tuple[Paragraph, ...] = Field(alias="SBK", min_length=1)
    discussion: tuple[Utterance, ...] = Field(alias="KGD", min_length=1)
    supporting: tuple[Paragraph, ...] = Field(alias="BSP", min_length=1)
    """The paragraphs that the discussion cannot be understood without."""
    opinions: tuple[str, ...] = Field(alias="CAO", min_length=1)
    """Clear atomic opinions; a reference that was made clear stands between `**`."""
    supporting_facts: tuple[ParagraphFacts, ...] = Field(alias="BSPAF")
    nonsupporting_facts: tuple[ParagraphFacts, ...] = Field(alias="BNPAF")

    @field_validator("supporting_facts")
    @classmethod
    def _has_a_key_fact(cls, parts: tuple[ParagraphFacts, ...]) -> tuple[ParagraphFacts, ...]:
        """Refuses a sample without them, whose coverage is undefined, before anything is paid for."""
        if not any(fact.type == KEY for part in parts for fact in part.facts):
            # One of pydantic's own errors, so that the field is named.
            raise PydanticCustomError(
                "no_key_fact",
                "no fact has type 1 (key), and a sample needs one to be scored by; annotate one, or take the sample out",
            )
        return parts

    @field_validator("opinions")
    @classmethod
    def _has_opinions(cls, opinions: tuple[str, ...]) -> tuple[str, ...]:
        """Refuses an opinion that says nothing: every summary would be asked about it."""
        empty = next((at for at, opinion in enumerate(opinions, start=1) if not opinion.replace("*", "").strip()), None)
        if empty is not None:
            raise PydanticCustomError("empty_opinion", "opinion {at} is empty; write it, or take it out", {"at": empty})
        return opinions

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        indices = [paragraph.index for paragraph in self.article]
        for expected, index in enumerate(indices, start=1):
            if index != expected:
                raise ValueError(f"SBK numbers its paragraph {expected} as {index}; expected 1 to {len(indices)}, in order")
        supporting = [paragraph.index for paragraph in self.supporting]
        for name, listed in (
            ("BSP", supporting),
            ("BSPAF", [one.index for one in self.supporting_facts]),
            ("BNPAF", [one.index for one in self.nonsupporting_facts]),
        ):
            if twice := [index for at, index in enumerate(listed) if index in listed[:at]]:
                raise ValueError(f"{name} lists paragraph {twice[0]} twice; expected each once")
            if strange := sorted(set(listed) - set(indices)):
                raise ValueError(f"{name} lists paragraph {strange[0]}; the article has {len(indices)}")
        if {one.index for one in self.supporting_facts} != set(supporting):
            raise ValueError("BSPAF and BSP list different paragraphs; expected the same")
        if {one.index for one in self.nonsupporting_facts} != set(indices) - set(supporting):
            raise ValueError("BNPAF must list every paragraph that BSP does not")
        for where, parts, never in (
            ("BSPAF", self.supporting_facts, (NONSUPPORTING,)),
            ("BNPAF", self.nonsupporting_facts, (KEY, NON_KEY)),
        ):
            wrong = [fact for one in parts for fact in one.facts if fact.type in never]
            if wrong:
                raise ValueError(
                    f"{where} has a fact of type {wrong[0].type}, which no fact there has: {shortened(wrong[0].text)}; correct its type"
                )
        return self

    @property
    def supporting_indices(self) -> frozenset[int]:
        return frozenset(paragraph.index for paragraph in self.supporting)

    @cached_property
    def facts(self) -> tuple[PlacedFact, ...]:
        """All facts, as they are asked: those of supporting paragraphs, then the others', each in the order of the file."""
        return tuple(
            PlacedFact(one.index, at, fact.text, fact.type)
            for one in (*self.supporting_facts, *self.nonsupporting_facts)
            for at, fact in enumerate(one.facts, start=1)
        )

    def paragraph(self, index: int) -> str:
        """The text of paragraph `index`."""
        return self.article[index - 1].text


@dataclass(frozen=True)
class Benchmark:
    """The samples of one file, by number, and the digest of its bytes."""

    path: Path
    samples: dict[int, Sample]
    digest: str

    def first(self, limit: int | None) -> Benchmark:
        """The first `limit` samples."""
        return Benchmark(self.path, dict(list(self.samples.items())[:limit]), self.digest)


def read_benchmark(path: Path) -> Benchmark:
    """The samples of `path`.

    Raises:
        BadInput: no such file, not JSON, no list, or a sample that does not fit; the message names sample and field.
    """
    remedy = "give the benchmark's JSON file"
    data = file_bytes(path, remedy=remedy)
    raw = json_value(data, where=f"{path} is", remedy=remedy, distinct=True)
    if not isinstance(raw, list) or not raw:
        raise BadInput(f"{path} holds no samples; expected a JSON list of objects with SBK, KGD, BSP, CAO, BSPAF, BNPAF")
    samples = {number: _sample(one, number, path) for number, one in enumerate(raw, start=1)}
    refuse_twice({number: ([part.text for part in one.article], one.discussion) for number, one in samples.items()}, path)
    return Benchmark(path, samples, hashlib.sha256(data).hexdigest())


def refuse_twice(texts: Mapping[int, tuple[Sequence[str], Sequence[Utterance]]], path: Path, *, what: str = "sample") -> None:
    """A sample that is there twice would count twice in every average.

    Args:
        texts: number -> the paragraphs of the article, and the discussion.
        what: the word for one, as in "sample 2".
    Raises:
        BadInput: two have the same of both.
    """
    seen: dict[str, int] = {}
    for number, (article, discussion) in texts.items():
        both = json.dumps([list(article), [turn.utterance for turn in discussion]])
        if both in seen:
            raise BadInput(
                f"{path}, {what} {number}: article and discussion are those of {what} {seen[both]}; take one of the two out"
            )
        seen[both] = number


def write_benchmark(samples: Sequence[Sample]) -> str:
    """The samples as the authors write them, for `read_benchmark`."""
    return (
        json.dumps([one.model_dump(by_alias=True, exclude={"number"}) for one in samples], indent=1, ensure_ascii=False) + "\n"
    )


def _sample(raw: object, number: int, path: Path) -> Sample:
    if not isinstance(raw, dict):
        raise BadInput(f"{path}, sample {number}: expected a JSON object, found {json_kind(raw)}")
    if "number" in raw:
        raise BadInput(f"{path}, sample {number}: field 'number': extra inputs are not permitted")
    try:
        return Sample.model_validate({**raw, "number": number})
    except ValidationError as error:
        raise BadInput(f"{path}, sample {number}: {explain(error)}") from None
