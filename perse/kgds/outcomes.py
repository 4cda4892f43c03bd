"""Outcomes of one model's summaries: the paragraphs they extract, the facts and opinions they cover, the errors in opinions.

Our own runs (`folder`) and the authors' released files (`released`) are both read into this, and the metrics read nothing else. Unanswered
questions are not covered, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from perse.judgement import Judgement, Tokens
from perse.kgds.benchmark import Paradigm, Pattern


class ErrorType(StrEnum):
    """Why a summary does not cover an opinion (KGDS, section 4.5), in the order of the paper's table 2."""

    OFI = "OFI"
    """Opinion fact inconsistency: a fact in the opinion is another."""
    OSD = "OSD"
    """Opinion sentiment distortion: the stance is another."""
    IRU = "IRU"
    """Implicit reference unclarified: the reference is left as vague as in the discussion."""
    IRIC = "IRIC"
    """Implicit reference incorrectly clarified: the reference is resolved wrongly."""
    OM = "OM"
    """Opinion misattribution: it is attributed to somebody else."""


NUMBERED: Mapping[str, ErrorType] = MappingProxyType(
    {"1": ErrorType.OM, "2": ErrorType.IRIC, "3": ErrorType.IRU, "4": ErrorType.OSD, "5": ErrorType.OFI}
)
"""Types by the numbers that the authors' files and the labels of the question about errors have."""


@dataclass(frozen=True)
class Outcome:
    """One sample's summary under one pattern.

    `facts` and `opinions` are in the order of `Sample.facts` and `Sample.opinions`: True where covered; None if not asked.
    """

    cited: frozenset[int] | None = None
    """ebs-aos: the extracted paragraphs, missing ones included; empty if the summary failed. None: abs-aos."""
    tags: frozenset[str] | None = None
    """ebs-aos: what was extracted as it is written, such as "<Paragraph_3>"; what names no paragraph is not in `cited`."""
    odd: int = 0
    """How many of the tags name no paragraph, such as "Paragraphs 4-6"."""
    facts: tuple[bool, ...] | None = None
    opinions: tuple[bool, ...] | None = None
    errors: tuple[ErrorType, ...] | None = None
    """Of the opinions that are not covered, those that were classified."""
    error_shares: Mapping[ErrorType, float] | None = None
    """Sums of the classified opinions' probabilities of each type; None where they are not known."""
    failed: str | None = None
    """Why there is no summary; all else is then empty or False."""
    unanswered: int = 0
    """Questions about it that the judge did not answer, which count as not covered: without those of a kind of which it answered none."""


@dataclass(frozen=True)
class Asked:
    """One kind of question that was put to a model about the summaries of a pattern and paradigm, and its tokens."""

    what: str
    """"summaries", "facts", "opinions", "errors" or "feedback"."""
    model: str
    questions: int
    prompt: int
    cached: int
    """Of the prompt tokens, those that the engine knew from an earlier question."""
    generated: int

    @classmethod
    def of(cls, what: str, model: str, judgements: Sequence[Judgement]) -> Asked:
        """What these judgements took."""
        return cls.of_tokens(what, model, [one.tokens for one in judgements])

    @classmethod
    def of_tokens(cls, what: str, model: str, tokens: Sequence[Tokens]) -> Asked:
        """What as many questions took."""
        prompt, cached, generated = (sum(getattr(one, part) for one in tokens) for part in ("prompt", "cached", "generated"))
        return cls(what, model, len(tokens), prompt, cached, generated)


def tag(paragraph: int) -> str:
    """How the authors write a paragraph's number."""
    return f"<Paragraph_{paragraph}>"


@dataclass(frozen=True)
class Outcomes:
    """One model under one pattern and paradigm, by sample number."""

    model: str
    pattern: Pattern
    paradigm: Paradigm
    samples: Mapping[int, Outcome]
    source: str
    """The folder that it was read from."""
    notes: tuple[str, ...] = field(default=())
    verified_by: str | None = None
    """The judge, where that is known."""
    facts_asked: str | None = None
    """abs-aos: how it was asked about facts, "one by one" or "in lists", where that is known."""
    asked: tuple[Asked, ...] = ()
    """What verification took, where that is known."""
    refused: str | None = None
    """Why its files cannot be read; there are then no samples, and the others are compared without it."""
