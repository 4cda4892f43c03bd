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
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, SkipValidation, ValidationError, ValidationInfo, field_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

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
    """A model whose numbers are numbers and whose texts are whole characters, also within lists and mappings."""

    number_as_text: ClassVar[bool] = False
    """Whether "9" is a number all the same, as in settings: YAML takes 3e-4 for a text."""

    @field_validator("*", mode="before")
    @classmethod
    def _as_meant(cls, value: Any, info: ValidationInfo) -> Any:
        kind = _kind(cls, info.field_name or "")
        if kind is None or (kind.anything and isinstance(value, dict | list | tuple)):  # items, each of which is read apart
            return value
        return _meant(value, kind, (), number_as_text=cls.number_as_text)


@dataclass(frozen=True)
class _Kind:
    """What a place takes, as far as it matters here."""

    numeric: bool
    """A number, and neither truth nor text."""
    model: bool
    """Perhaps a further model, which looks at its own fields."""
    anything: bool
    """Whatever comes."""
    parts: _Kind | None
    """What the values of its lists and mappings take; None: it has none."""


_ANYTHING = _Kind(numeric=False, model=False, anything=True, parts=None)


def _meant(value: Any, kind: _Kind, place: tuple[str | int, ...], *, number_as_text: bool) -> Any:
    """The value as plain Python.

    Args:
        place: of the value in its field.
    Raises:
        ValidationError: something in it is another thing than is meant; its location is `place`.
    """
    if kind.numeric and (isinstance(value, bool | bytes) or (isinstance(value, str) and not number_as_text)):
        raise _refused(f"found {json.dumps(value, default=repr)[:40]}, expected a number", place, value)
    if isinstance(value, str) and is_half(value):
        raise _refused(HALF, place, value)
    if isinstance(value, Integral):
        return value if isinstance(value, int) else int(value)  # numpy's
    if isinstance(value, Real):
        if not math.isfinite(value):
            raise _refused(f"found {float(value)}, expected a finite number", place, value)
        return float(value)
    within = kind.parts or _ANYTHING
    if isinstance(value, dict) and not kind.model:
        if any(isinstance(key, str) and is_half(key) for key in value):
            raise _refused(HALF, place, value)
        return {key: _meant(one, within, (*place, str(key)), number_as_text=number_as_text) for key, one in value.items()}
    if isinstance(value, list | tuple):
        found = [_meant(one, within, (*place, at), number_as_text=number_as_text) for at, one in enumerate(value)]
        return found if isinstance(value, list) else tuple(found)
    return value


def _refused(why: str, place: tuple[str | int, ...], value: object) -> ValueError:
    """pydantic puts the field's name before the location of an error that it is given whole."""
    if not place:
        return ValueError(why)
    error = InitErrorDetails(
        type=PydanticCustomError("value_error", "Value error, {why}", {"why": why}), loc=place, input=value
    )
    return ValidationError.from_exception_data("", [error])


@cache
def _kind(model: type[BaseModel], field: str) -> _Kind | None:
    """None: of a field that is not looked at here, since something else does."""
    found = model.model_fields.get(field)
    if found is None or any(isinstance(each, SkipValidation) for each in found.metadata):  # type: ignore[misc]
        return None
    return _kind_of({*_leaves(found.annotation)})


def _kind_of(leaves: set[Any]) -> _Kind:
    """Args: leaves: the alternatives that a place takes."""
    inner = {leaf for each in leaves for part in _values(each) for leaf in _leaves(part)}
    return _Kind(
        numeric=bool(leaves & {int, float}) and not leaves & {bool, str, Any},
        model=any(isinstance(leaf, type) and issubclass(leaf, BaseModel) for leaf in leaves),
        anything=Any in leaves,
        parts=_kind_of(inner) if inner else None,
    )


def _values(annotation: Any) -> tuple[Any, ...]:
    """The types of a collection's values; a mapping's keys are texts in every file."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if not (isinstance(origin, type) and issubclass(origin, Collection)):
        return ()
    return parts[1:] if issubclass(origin, Mapping) else tuple(part for part in parts if part is not Ellipsis)


def _leaves(annotation: Any) -> list[Any]:
    """The alternatives of a type; of fixed values, their types."""
    if get_origin(annotation) is Annotated:
        return _leaves(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [leaf for each in get_args(annotation) for leaf in _leaves(each)]
    if get_origin(annotation) is Literal:
        return [type(each) for each in get_args(annotation)]
    return [annotation]
