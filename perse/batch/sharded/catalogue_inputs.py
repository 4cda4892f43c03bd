"""The readers and the texts of a catalogue, one by one, each with the place where it stands; formats are those of `inputs`.

A field is found by its name, or by the other names that such columns usually have, as in raw files (`perse.records.columns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from perse.batch.sharded.inputs import files_at, nested
from perse.data.sources.lines import read_records
from perse.errors import BadInput
from perse.records import ProfileReview, explain
from perse.records.columns import ALIASES, Header, Role, named_columns

PROFILE = TypeAdapter(tuple[ProfileReview, ...])

_NAMES = {**ALIASES, "item_id": (*ALIASES["item_id"], "id")}
_READERS = Role(("reviewer_id", "profile", "candidates"), _NAMES)
_TEXTS = Role(("item_id", "text"), _NAMES)
_CANDIDATES = Role(("reviewer_id", "item_id"), _NAMES)


@dataclass(frozen=True)
class CatalogueReader:
    """A reader with the past that is shown of them, and the ids of the texts that are judged for them; None for all."""

    reader: str
    profile: tuple[ProfileReview, ...]
    candidates: tuple[str, ...] | None
    where: str


@dataclass(frozen=True)
class CatalogueText:
    """A text and its id."""

    text: str
    shown: str
    where: str


@dataclass(frozen=True)
class Candidate:
    """A reader and the id of a text that is judged for them."""

    reader: str
    text: str
    where: str


def read_readers(place: str) -> Iterator[CatalogueReader]:
    """Rows with `reviewer_id`, `profile` and, if each reader has texts of their own, `candidates`.

    Raises:
        BadInput: file, line and field of the first problem.
    """
    for told, where in _rows(place, _READERS):
        try:
            given = nested(told)
            if "profile" not in given:
                raise BadInput(
                    "field 'profile' is missing: what the reader said before; give an empty list for one of whom nothing is known"
                )
            profile = PROFILE.validate_python(given["profile"] or ())
        except ValidationError as error:
            raise BadInput(f"{where}: field 'profile', {explain(error)}") from None
        except BadInput as error:
            raise BadInput(f"{where}: {error}") from None
        candidates = given.get("candidates")
        if candidates is not None and not (isinstance(candidates, list) and all(map(_is_name, candidates))):
            raise BadInput(f"{where}: field 'candidates' is no list of ids of texts")
        reader = _name(told, "reviewer_id", where)
        yield CatalogueReader(reader, profile, None if candidates is None else tuple(map(str, candidates)), where)


def read_texts(place: str) -> Iterator[CatalogueText]:
    """Rows with `item_id` and `text`.

    Raises:
        BadInput: file, line and field of the first problem.
    """
    for told, where in _rows(place, _TEXTS):
        yield CatalogueText(_name(told, "item_id", where), _name(told, "text", where), where)


def read_candidates(place: str, hints: Mapping[str, str] | None = None) -> Iterator[Candidate]:
    """Rows with `reviewer_id` and `item_id`.

    Args:
        hints: field -> a column that is taken for it where there is one of that name.
    Raises:
        BadInput: file, line and field of the first problem.
    """
    for told, where in _rows(place, _CANDIDATES, hints):
        yield Candidate(_name(told, "reviewer_id", where), _name(told, "item_id", where), where)


def _rows(place: str, role: Role, hints: Mapping[str, str] | None = None) -> Iterator[tuple[dict[str, Any], str]]:
    """The fields of each row, by our names, and where it stands.

    Raises:
        BadInput: as `read_records`; a row without a column for the reader, or for the text.
    """
    headers: dict[tuple[str, ...], Header] = {}
    for path, name in files_at(place):
        for line, fields in read_records(path):
            where, columns = f"{name}, line {line}", tuple(fields)
            if columns not in headers:
                headers[columns] = Header(columns, {}, role=role, hints=hints)
            found = {field: headers[columns].columns_for(field) for field in role.fields}
            for field, at in found.items():
                if at is None and field not in ("profile", "candidates"):
                    raise BadInput(
                        f"{where}: no column for field '{field}'; columns found: {named_columns(columns)}; name one of them '{field}'"
                    )
            yield {field: fields[at[0]] for field, at in found.items() if at is not None}, where


def _is_name(value: object) -> bool:
    """Whole numbers pass as names, as in raw files."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def _name(told: dict[str, Any], field: str, where: str) -> str:
    value = told[field]
    if not _is_name(value) or not str(value).strip():
        raise BadInput(f"{where}: field '{field}' has no text; fill it in, or take the row out")
    return str(value)
