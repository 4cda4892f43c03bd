"""What is a number and what is a text is looked at within lists and mappings, too, wherever records come from files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import pytest
from pydantic import SkipValidation, ValidationError

from perse.records import explain
from perse.strict import Name, Strict


class Part(Strict):
    number: int = 0


class Kept(Strict):
    """A record with collections in it."""

    shares: dict[str, float] | None = None
    places: tuple[int, ...] = ()
    counts: Mapping[Name, dict[str, int]] = {}
    parts: tuple[Part, ...] = ()
    named: Mapping[str, Part] = {}
    stars: Literal[1, 2] = 1
    either: tuple[int | str, ...] = ()
    free: Mapping[str, Any] = {}
    items: Any = None
    skipped: SkipValidation[Part | list[Part]] = Part()


class Setting(Kept):
    """As settings are, whose YAML has 3e-4 for a text."""

    number_as_text: ClassVar[bool] = True


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"shares": {"a": 0.5, "b": "9"}}, "field 'shares.b': found \"9\", expected a number"),
        ({"shares": {"a": True}}, "field 'shares.a': found true, expected a number"),
        ({"shares": {"a": float("nan")}}, "field 'shares.a': found nan, expected a finite number"),
        ({"places": [1, True]}, "field 'places.1': found true, expected a number"),
        ({"places": ["1"]}, "field 'places.0': found \"1\", expected a number"),
        ({"counts": {"history": {"few": "4"}}}, "field 'counts.history.few': found \"4\", expected a number"),
        ({"parts": [{"number": 1}, {"number": "2"}]}, "field 'parts.1.number': found \"2\", expected a number"),
        ({"named": {"a": {"number": False}}}, "field 'named.a.number': found false, expected a number"),
        ({"stars": True}, "field 'stars': found true, expected a number"),
        ({"free": {"a": [{"b": "\ud800"}]}}, "field 'free.a.0.b': found half of a surrogate pair"),
        ({"free": {"a": {"\ud800": 1}}}, "field 'free.a': found half of a surrogate pair"),
    ],
)
def test_nine_in_quotes_is_no_number_in_a_list_or_a_mapping_either(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Kept.model_validate(given)
    assert explain(refused.value).startswith(told)


def test_what_may_be_a_text_stays_one_and_numbers_stay_numbers() -> None:
    found = Kept.model_validate(
        {"either": ["1", 2], "free": {"a": ["1", True, None]}, "shares": {"a": 1}, "places": [3], "counts": {"a": {"b": 2}}}
    )
    assert found.either == ("1", 2) and found.free == {"a": ["1", True, None]} and found.shares == {"a": 1.0}
    assert found.places == (3,) and found.counts == {"a": {"b": 2}}


def test_items_that_are_read_one_by_one_afterwards_are_left_to_that() -> None:
    """One of them that is wrong fails alone, and not the list."""
    items = [{"id": "\ud800"}, {"score": float("inf")}, "\ud800"]
    assert Kept.model_validate({"items": items}).items == items
    assert Kept.model_validate({"skipped": items}).skipped == items


def test_a_number_may_be_written_as_text_within_settings() -> None:
    assert Setting.model_validate({"shares": {"a": "3e-4"}, "places": ["7"]}).shares == {"a": 3e-4}
