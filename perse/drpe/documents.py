"""What is voted on: documents with references and candidates, as SummEval has them.

    {"id": "a", "article": "...", "references": ["..."], "candidates": [{"system": "M1", "text": "...", "scores": {"coherence": 4.3}}]}

SummEval's own names (doc_id, src, refs, systems, summary) are read, too. An article may be absent: then two texts are compared as they are, which is
how stories and plots are voted on. `scores` are people's, by dimension; only `correlate` needs them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field, ValidationError

from perse.data.sources.lines import read_json_lines
from perse.errors import BadInput
from perse.records import explain
from perse.strict import Name, Strict

REMEDY = "give SummEval's lines, or lines of the form of docs/drpe.md"


LARGEST = 1e6
"""Of a score; sums of squares of larger ones leave a double's range."""


def _told(text: str) -> str:
    if not text.strip():
        raise ValueError("found an empty text; give one that is not empty")
    return text


Text = Annotated[str, AfterValidator(_told)]
"""With something in it."""
Score = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]


class _Record(Strict):
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class Candidate(_Record):
    """A text that is voted on, and what people gave it."""

    system: Name = Field(min_length=1)
    """Who wrote it; no two candidates of a document have the same."""
    text: Text = Field(validation_alias=AliasChoices("text", "summary"))
    scores: Mapping[Name, Score] | None = None
    """People's means, by dimension."""


class Document(_Record):
    """An article, texts that people wrote of it, and candidates."""

    id: Name = Field(min_length=1, validation_alias=AliasChoices("id", "doc_id"))
    article: str | None = Field(default=None, validation_alias=AliasChoices("article", "src"))
    references: tuple[Text, ...] = Field(default=(), validation_alias=AliasChoices("references", "refs"))
    candidates: tuple[Candidate, ...] = Field(min_length=1, validation_alias=AliasChoices("candidates", "systems"))

    @property
    def summarized(self) -> bool:
        """Whether its texts summarize an article; else they are compared as they are."""
        return self.article is not None


@dataclass(frozen=True)
class Documents:
    """In the order of the file; `digest` is of these alone."""

    documents: tuple[Document, ...]
    left_out: int = 0
    """Candidates that people's scores left out: all but the two best and two worst."""

    @property
    def digest(self) -> str:
        return hashlib.sha256("".join(one.model_dump_json() + "\n" for one in self.documents).encode()).hexdigest()


def read_documents(path: Path, *, limit: int | None = None) -> Documents:
    """The documents of a file of JSON lines (`.gz` too), or its first so many.

    Raises:
        BadInput: a file that cannot be read, an invalid line, a document twice, or a system twice in one; the message names line and field.
    """
    found: dict[str, Document] = {}
    for line, fields in read_json_lines(path):
        if len(found) == limit:
            break
        document = _document(fields, f"{path}, line {line}")
        if document.id in found:
            raise BadInput(f"{path}, line {line}: the document '{document.id}' was there before; ids must be unique")
        found[document.id] = document
    return Documents(tuple(found.values()))


def _document(fields: Any, where: str) -> Document:
    try:
        document = Document.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"{where}: {explain(error)}; {REMEDY}") from None
    systems = [one.system for one in document.candidates]
    if twice := next((name for name in systems if systems.count(name) > 1), None):
        raise BadInput(f"{where}: the document '{document.id}' has two candidates of '{twice}'; give each its own name")
    return document
