"""What is text and what is a number, wherever records come in: files, requests, answers of servers, settings.

A number is a number: true, "9" and Infinity are not, though Python and pydantic would take them. A text is whole characters:
half of a surrogate pair ("\\ud800" alone) can be written to no file. Other characters may stand in a text, control
characters too (real reviews hold some, and the renderer takes them out of prompts), but in no name, since names stand in
tables, file names and terminals.
"""

from __future__ import annotations

import json
import math
import unicodedata
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ValidationInfo, field_validator

HALF = "found half of a surrogate pair (\\ud...), expected whole characters"


def name_problem(name: str) -> str | None:
    """What keeps `name` from being an id or a name, or None. A line break is no problem: joined columns make one."""
    if name.isprintable():
        return None
    odd = next((each for each in name if each != "\n" and unicodedata.category(each) == "Cc"), None)
    if odd is not None:
        return f"found the control character U+{ord(odd):04X}, expected a name without"
    return HALF if is_half(name) else None


def is_half(text: str) -> bool:
    """Whether half of a surrogate pair stands in `text`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _name(value: str) -> str:
    if problem := name_problem(value):
        raise ValueError(problem)
    return value


Name = Annotated[str, AfterValidator(_name)]
"""An id or a name: a text without control characters."""


class Strict(BaseModel):
    """A model whose numbers are numbers and whose texts are whole characters."""

    number_as_text: ClassVar[bool] = False
    """Whether "9" is a number all the same, as in settings: YAML takes 3e-4 for a text."""

    @field_validator("*", mode="before")
    @classmethod
    def _as_meant(cls, value: Any, info: ValidationInfo) -> Any:
        numeric, texts = _kind(cls, info.field_name or "")
        if numeric and (isinstance(value, bool | bytes) or (isinstance(value, str) and not cls.number_as_text)):
            raise ValueError(f"found {json.dumps(value, default=repr)[:40]}, expected a number")
        if isinstance(value, str) and is_half(value):
            raise ValueError(HALF)
        if isinstance(value, Integral):
            return value if isinstance(value, int) else int(value)  # numpy's
        if isinstance(value, Real):
            if not math.isfinite(value):
                raise ValueError(f"found {float(value)}, expected a finite number")
            return float(value)
        if texts and isinstance(value, list | tuple | dict):
            parts = [*value, *value.values()] if isinstance(value, dict) else value
            if any(isinstance(part, str) and is_half(part) for part in parts):
                raise ValueError(HALF)
        return value


@cache
def _kind(model: type[BaseModel], field: str) -> tuple[bool, bool]:
    """Whether a field takes a number and neither truth nor text; whether it is a collection of no further models."""
    if field not in model.model_fields:
        return False, False
    leaves = set(_leaves(model.model_fields[field].annotation))
    numeric = bool(leaves & {int, float}) and not leaves & {bool, str, Any}
    return numeric, not any(isinstance(leaf, type) and issubclass(leaf, BaseModel) for leaf in _leaves_within(leaves))


def _leaves(annotation: Any) -> list[Any]:
    """The alternatives of a type."""
    if get_origin(annotation) is Annotated:
        return _leaves(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [leaf for each in get_args(annotation) for leaf in _leaves(each)]
    return [annotation]


def _leaves_within(annotations: set[Any]) -> list[Any]:
    """All types that these are made of."""
    found: list[Any] = []
    for each in annotations:
        inner = [] if get_origin(each) is Literal else [leaf for part in get_args(each) for leaf in _leaves(part)]
        found += [each, *(_leaves_within(set(inner)) if inner else [])]
    return found
