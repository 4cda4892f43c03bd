"""Reads examples from JSON lines; refuses profiles that show the query (DESIGN.md, promise 5)."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from perse.data.sources.lines import read_json_lines
from perse.errors import BadInput
from perse.records import Example, ProfileReview, Served, explain, from_own_scale, parse_example
from perse.records.near import near_duplicate
from perse.scale import OwnScale


def read_examples(path: Path) -> list[Example]:
    """Examples from JSON lines. All of one kind, ids unique.

    Raises:
        BadInput: file, line and field of the first problem.
    """
    examples: list[Example] = []
    lines_of: dict[str, int] = {}
    known = ""
    for line, fields in read_json_lines(path):
        try:
            example = parse_example(fields)
        except BadInput as error:
            raise BadInput(f"{path}, line {line}: {error}") from None
        if shown_query(example):
            raise BadInput(
                f"{path}, line {line}: the query stands in its own profile; the judge would only have to copy the answer"
            )
        if example.id in lines_of:
            raise BadInput(
                f"{path}, line {line}: id '{example.id}' was already used on line {lines_of[example.id]}; ids must be unique"
            )
        kind = example.in_one_file
        if not (kind.startswith(known) or known.startswith(kind)):
            raise BadInput(f"{path}, line {line}: {known} and {kind} examples in one file; put them in two")
        known = max(known, kind, key=len)  # a prompt without an answer goes with either kind of answer
        lines_of[example.id] = line
        examples.append(example)
    return examples


def read_profile(path: Path, *, scale: OwnScale | None = None) -> list[ProfileReview]:
    """Past reviews from JSON lines, their scores on `scale` if not on 1 to 10.

    Raises:
        BadInput: file, line and field of the first problem; a text or a review that is blank.
    """
    reviews = []
    for line, fields in read_json_lines(path):
        try:
            reviews.append(ProfileReview.model_validate(_rescaled(fields, scale)))
        except ValidationError as error:
            off = any(
                one["loc"] == ("score",) and one["type"] in ("less_than_equal", "greater_than_equal") for one in error.errors()
            )
            hint = "; scores are 1 to 10: of others say the scale, such as --scale 0-100" if off else ""
            raise BadInput(f"{path}, line {line}: {explain(error)}{hint}") from None
        except BadInput as error:
            raise BadInput(f"{path}, line {line}: {error}; give the scale with --scale LOW-HIGH") from None
    return reviews


def _rescaled(fields: object, scale: OwnScale | None) -> object:
    return from_own_scale(fields, scale) if isinstance(fields, dict) else fields


def shown_query(example: Served) -> bool:
    """Whether the profile gives the query away (DESIGN.md, promise 5): it holds one of its texts or a near-duplicate."""
    return example.gives_away(near_duplicate)
