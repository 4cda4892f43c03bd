"""The readers and the texts of a catalogue, one by one, each with the place where it stands; formats are those of `inputs`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from perse.batch.sharded.inputs import files_at, nested
from perse.data.sources.lines import read_records
from perse.errors import BadInput
from perse.records import ProfileReview, explain

PROFILE = TypeAdapter(tuple[ProfileReview, ...])


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
    for path, name in files_at(place):
        for line, fields in read_records(path):
            where = f"{name}, line {line}"
            try:
                told = nested(fields)
                if "profile" not in told:
                    raise BadInput(
                        "field 'profile' is missing: what the reader said before; give an empty list for one of whom nothing is known"
                    )
                profile = PROFILE.validate_python(told["profile"] or ())
            except ValidationError as error:
                raise BadInput(f"{where}: field 'profile', {explain(error)}") from None
            except BadInput as error:
                raise BadInput(f"{where}: {error}") from None
            candidates = told.get("candidates")
            if candidates is not None and not (
                isinstance(candidates, list) and all(isinstance(one, str) for one in candidates)
            ):
                raise BadInput(f"{where}: field 'candidates' is no list of ids of texts")
            reader = _name(told.get("reviewer_id"), where, "reviewer_id")
            yield CatalogueReader(reader, profile, None if candidates is None else tuple(candidates), where)


def read_texts(place: str) -> Iterator[CatalogueText]:
    """Rows with `item_id` and `text`.

    Raises:
        BadInput: file, line and field of the first problem.
    """
    for path, name in files_at(place):
        for line, fields in read_records(path):
            where = f"{name}, line {line}"
            yield CatalogueText(_name(fields.get("item_id"), where, "item_id"), _name(fields.get("text"), where, "text"), where)


def read_candidates(place: str) -> Iterator[Candidate]:
    """Rows with `reviewer_id` and `item_id`.

    Raises:
        BadInput: file, line and field of the first problem.
    """
    for path, name in files_at(place):
        for line, fields in read_records(path):
            where = f"{name}, line {line}"
            reader, text = (_name(fields.get(field), where, field) for field in ("reviewer_id", "item_id"))
            yield Candidate(reader, text, where)


def _name(value: object, where: str, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadInput(f"{where}: field '{field}' has no text")
    return value
