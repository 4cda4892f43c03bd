"""What models answer when they are asked for readers: what is read, what is counted, what is asked for again."""

from __future__ import annotations

import json

import pytest
from drpe_builders import readers
from hypothesis import given
from hypothesis import strategies as st

from perse.drpe.inventions import Fault, Listed, read_listed
from perse.writing.loop import Bad, Fair, Good

TWO = (("Drivers", "They want another way."), ("Nurses", "They must get to work."))


def good(answer: str, number: int = 2) -> Listed:
    found = read_listed(answer, number=number)
    assert isinstance(found, Good), found
    return found.value


@pytest.mark.parametrize(
    "answer",
    [
        readers(*TWO),
        f"Here they are:\n```json\n{readers(*TWO)}\n```",
        "Drivers: They want another way.\nNurses: They must get to work.",
        "1. Drivers: They want another way.\n2. Nurses: They must get to work.",
        "1) Drivers : They want another way.\n\n2) Nurses: They must get to work.",
        "- **Drivers:** They want another way.\n- **Nurses:** They must get to work.",
        "* Drivers - They want another way.\n* Nurses \u2014 They must get to work.",
        "Here are two types of readers:\n1. Drivers: They want another way.\n2. Nurses: They must get to work.\nI hope this helps: ask for more.",
        "Two types:\nDrivers: They want another way.\nNurses: They must get to work.",
    ],
)
def test_lists_of_any_clear_form_are_read(answer: str) -> None:
    assert good(answer).pairs == TWO


def test_a_type_that_comes_twice_is_dropped_and_counted() -> None:
    found = good(readers(TWO[0], ("drivers ", "They drive."), TWO[1]))
    assert found.pairs == TWO and found.dropped == {"duplicate": 1}


def test_more_than_was_asked_for_is_dropped_and_counted() -> None:
    found = good(readers(*TWO, ("Teachers", "They tell."), ("Poets", "They write.")))
    assert found.pairs == TWO and found.dropped == {"extra": 2}


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (("", ""), "empty"),
        (("Teachers", " "), "without description"),
        (("12", "They tell."), "malformed"),
        (("Type", "They tell."), "malformed"),
        (("People who have read about the bridge in the paper and all of its ends", "They tell."), "malformed"),
    ],
)
def test_entries_that_are_no_role_are_counted_and_asked_for_again(entry: tuple[str, str], why: str) -> None:
    found = read_listed(readers(*TWO, entry), number=3)
    assert isinstance(found, Fair) and found.kind == Fault.FEW_ROLES
    assert found.value.pairs == TWO and found.value.dropped == {why: 1} and f"there are 2, 1 {why}." in found.reason


def test_entries_of_another_shape_are_counted() -> None:
    answer = json.dumps({"Readers": ["Drivers", {"Who": ["x"], "About": 3}, {"Who": "Nurses", "About": "They work."}]})
    found = read_listed(answer, number=2)
    assert isinstance(found, Fair) and found.value.dropped == {"empty": 2}


@pytest.mark.parametrize(
    "answer", ["I like bridges.", "{}", '{"Readers": 3}', '{"Readers": []}', '{"Readers": [{}]}', "1.\n2.\n3.", ":", "{" * 5000]
)
def test_answers_without_any_role_are_bad(answer: str) -> None:
    found = read_listed(answer, number=2)
    assert isinstance(found, Bad) and found.kind == Fault.NO_ROLES and found.reason.endswith(".")


def test_what_is_read_has_no_line_breaks_control_characters_or_halves() -> None:
    found = good('{"Readers": [{"Who": "A\\u001b[31m\\nB", "About": "x\\ud800\\u0000y"}]}', 1)
    assert found.pairs == (("A [31m B", "x?" + " y"),)


@given(st.text(max_size=200))
def test_any_text_is_read_without_a_failure(text: str) -> None:
    found = read_listed(text, number=3)
    assert isinstance(found, Good | Fair | Bad)
