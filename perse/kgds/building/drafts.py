"""Drafts of a new benchmark: an article, a discussion, what two annotators call supporting, and the clear opinions (KGDS, section 4.3).

Paragraphs that both call supporting are, those that neither does are not; the others are boundary paragraphs, and leave the article. What
stays is renumbered, as in the published benchmark; annotators and messages keep the draft's own numbers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from perse.data.sources.lines import read_json_lines
from perse.errors import BadInput
from perse.formats.json_text import json_kind, json_value
from perse.formats.plain_files import refuse_endless
from perse.kgds.benchmark import Utterance, refuse_twice
from perse.kgds.building.consistency import Consistency, consistency
from perse.records import explain
from perse.strict import Strict

SHEET_COLUMNS = ("sample", "paragraph", "fact number", "fact")
"""Columns of the sheet before the annotators' own; no annotator may have such a name."""

ANNOTATORS = 2

_Text = Annotated[str, StringConstraints(pattern=r"\S")]


class _Part(Strict):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Draft(_Part):
    """One draft as it is read."""

    article: tuple[_Text, ...] = Field(min_length=1)
    discussion: tuple[Utterance, ...] = Field(min_length=1)
    supporting: dict[str, tuple[Annotated[int, Field(strict=True)], ...]]
    """Annotator -> the paragraphs that he or she calls supporting, counted from 1."""
    opinions: tuple[_Text, ...] = Field(min_length=1)
    """Clear atomic opinions; clarified references are between `**`."""


@dataclass(frozen=True)
class Agreed:
    """A draft without its boundary paragraphs. `number` is its place in the file, from 1, and that of the sample."""

    number: int
    draft: Draft
    kept: tuple[int, ...]
    """The draft's numbers of the paragraphs that stay: paragraph p of the sample is `kept[p - 1]` of the draft."""
    supporting: tuple[int, ...]
    """The sample's numbers of the supporting paragraphs."""

    @property
    def article(self) -> tuple[str, ...]:
        """The texts of the paragraphs that stay."""
        return tuple(self.draft.article[number - 1] for number in self.kept)

    @property
    def annotators(self) -> tuple[str, str]:
        """The two, as they are named."""
        one, other = self.draft.supporting
        return one.strip(), other.strip()


def read_drafts(path: Path) -> list[Draft]:
    """The drafts of a file of JSON lines, or of one JSON list.

    Raises:
        BadInput: a file that cannot be read, a draft that does not fit, or one that is there twice; the message names draft and field.
    """
    drafts = [_draft(value, f"{path}, draft {number}") for number, value in enumerate(_values(path), start=1)]
    if not drafts:
        raise BadInput(f"{path} holds no drafts; give one object with article, discussion, supporting and opinions a line")
    refuse_twice({number: (one.article, one.discussion) for number, one in enumerate(drafts, start=1)}, path, what="draft")
    return drafts


def agreed(drafts: Sequence[Draft], path: Path) -> tuple[list[Agreed], Consistency]:
    """The drafts without their boundary paragraphs, and how consistent the annotators were over all paragraphs.

    Raises:
        BadInput: a draft in which the two agree on no supporting paragraph, or two that only their boundary paragraphs tell apart.
    """
    found, answers = [], []
    for number, draft in enumerate(drafts, start=1):
        one, other = (set(listed) for listed in draft.supporting.values())
        numbers = range(1, len(draft.article) + 1)
        answers += [(index in one, index in other) for index in numbers]
        kept = tuple(index for index in numbers if (index in one) == (index in other))
        supporting = tuple(at for at, index in enumerate(kept, start=1) if index in one)
        if not supporting:
            names = " and ".join(draft.supporting)
            raise BadInput(
                f"{path}, draft {number}: field 'supporting': {names} agree on no supporting paragraph, and a sample needs one; "
                "have the draft annotated again, or take it out"
            )
        found.append(Agreed(number, draft, kept, supporting))
    refuse_twice({one.number: (one.article, one.draft.discussion) for one in found}, path, what="draft")
    return found, consistency(answers)


def _values(path: Path) -> Iterable[object]:
    """The values of a JSON list, or of JSON lines, told apart by the first character."""
    refuse_endless(path)
    try:
        text = "" if path.suffix in (".gz", ".parquet") else path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; give a file of drafts") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not UTF-8; save the file as UTF-8") from None
    if not text.lstrip().startswith("["):
        return (value for _, value in read_json_lines(path))
    try:
        found: list[object] = json_value(
            text, where=f"{path} is", remedy="correct it, or give one JSON object a line", distinct=True
        )
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadInput(f"{path} holds what no text has: half a character (\\ud...); correct it") from None
    return found


def _draft(raw: object, where: str) -> Draft:
    if not isinstance(raw, dict):
        raise BadInput(f"{where}: found {json_kind(raw)}, expected an object with article, discussion, supporting and opinions")
    try:
        draft = Draft.model_validate(raw)
    except ValidationError as error:
        raise BadInput(f"{where}: {_explained(error)}") from None
    if problem := _problem(draft):
        raise BadInput(f"{where}: {problem}")
    return draft


def _explained(error: ValidationError) -> str:
    """As `explain`, but an empty text is called empty, not by the pattern it fails."""
    first: Any = error.errors(include_url=False, include_context=False)[0]
    if first["type"] == "string_pattern_mismatch":
        return f"field '{'.'.join(map(str, first['loc']))}': the text is empty; write it, or take it out"
    return explain(error)


def _problem(draft: Draft) -> str | None:
    """Inconsistencies of a draft whose fields have the right types."""
    names = [name.strip() for name in draft.supporting]
    if len(names) != ANNOTATORS or len(set(names)) < ANNOTATORS:
        named = f" ({', '.join(names)})" if names else ""
        return f"field 'supporting': {len(set(names))} annotators{named}, expected two: consistency is that of two people"
    for name in names:
        if not name or name in SHEET_COLUMNS:
            taken = f"is called '{name}', as a column of the sheet" if name else "has no name"
            return f"field 'supporting': an annotator {taken}; give another name"
    size = len(draft.article)
    for name, listed in draft.supporting.items():
        if strange := [index for index in listed if not 1 <= index <= size]:
            return f"field 'supporting.{name}': there is no paragraph {strange[0]}; the article has paragraphs 1 to {size}"
        if twice := [index for index, times in Counter(listed).items() if times > 1]:
            return f"field 'supporting.{name}': paragraph {twice[0]} is listed twice; list it once"
    for at, opinion in enumerate(draft.opinions):
        if opinion.count("**") % 2:
            return f"field 'opinions.{at}': a ** opens here and does not close; put what was made clear between two"
    return None
