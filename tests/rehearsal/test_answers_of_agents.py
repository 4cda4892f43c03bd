"""What the agents answer is read as it is meant, and nothing is made up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perse.rehearsal.answers import SUMMARY, Fault, Numbers, read_numbers, read_response, read_text, read_verdict
from perse.rehearsal.folder import Response, Verdict
from perse.writing.loop import Bad, Good, Kind


@pytest.mark.parametrize(
    "told",
    [
        "No suggestions",
        "No suggestions.",
        "NO SUGGESTIONS",
        "no suggestions!",
        "1. No suggestions.",
        "**No suggestions.**",
        '"No suggestions."',
        "\n\nNo Suggestions\n",
        "no suggestion",
    ],
)
def test_a_supervisor_without_suggestions_has_passed_the_response(told: str) -> None:
    found = read_verdict(f"Thought: it is fine.\nSuggestions: {told}")
    assert found == Good(Verdict(thought="it is fine.", recommendations="", passed=True))


@pytest.mark.parametrize(
    "told",
    [
        "No suggestions for the tone. Mention the price.",
        "No suggestions, but be shorter.",
        "I have no suggestions about exposure",
        "1. Mention the price.\n2. No suggestions.",
        "None",
    ],
)
def test_a_supervisor_who_says_anything_else_has_not_passed_it(told: str) -> None:
    found = read_verdict(f"Thought: so so.\nSuggestions:\n{told}")
    assert isinstance(found, Good) and not found.value.passed and found.value.recommendations == told


@pytest.mark.parametrize("heading", ["Suggestions:", "### Suggestions", "**Suggestions:**", "SUGGESTIONS:\n", "Suggestions"])
def test_the_last_heading_counts_however_it_is_marked(heading: str) -> None:
    answer = f"Thought:\nSuggestions: are what I give below.\n{heading}\nBe shorter."
    found = read_verdict(answer)
    assert isinstance(found, Good) and found.value.recommendations == "Be shorter."


@pytest.mark.parametrize("answer", ["It is fine.", "No suggestions", "Thought: fine", "Suggestions:", "Suggestions:\n  \n"])
def test_an_answer_without_a_verdict_is_none(answer: str) -> None:
    found = read_verdict(answer)
    assert isinstance(found, Bad) and found.kind is Fault.NO_VERDICT


def test_a_response_has_an_analysis_and_suggestions_also_as_a_list() -> None:
    listed = json.dumps({"Analysis": "I like it loud.", "Suggestions": ["More on volume.", "Less on price."]})
    assert read_response(f"Response:\n```json\n{listed}\n```") == Good(
        Response(analysis="I like it loud.", suggestions="More on volume.\nLess on price.")
    )


@pytest.mark.parametrize(
    "answer",
    ["I would say more.", '{"Suggestions": "More."}', '{"Analysis": "I", "Suggestions": ""}', '{"Analysis": "I"}', "{"],
)
def test_half_a_response_is_none(answer: str) -> None:
    found = read_response(answer)
    assert isinstance(found, Bad) and found.kind is Kind.BAD_JSON


def test_a_summary_stands_under_its_key() -> None:
    assert read_text('Here: {"Summary": "Loud, and cheap."}', SUMMARY) == Good("Loud, and cheap.")
    assert isinstance(read_text("Loud, and cheap.", SUMMARY), Bad)


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ('{"Numbers": [3, 1]}', (3, 1)),
        ('{"Numbers": ["3", "Review 1"]}', (3, 1)),
        ('{"Numbers": 3}', (3,)),
        ('{"Numbers": [0, 99, -1]}', (0, 99, -1)),
    ],
)
def test_numbers_are_read_as_they_were_given(answer: str, numbers: tuple[int, ...]) -> None:
    assert read_numbers(answer) == Good(Numbers(numbers))


@pytest.mark.parametrize(
    "answer", ['{"Numbers": []}', '{"Numbers": [true]}', '{"Numbers": ["all"]}', '{"Numbers": [1.5]}', "3, 1"]
)
def test_what_is_no_list_of_numbers_is_none(answer: str) -> None:
    assert isinstance(read_numbers(answer), Bad)


def test_numbers_of_no_review_and_repeated_ones_are_not_valid() -> None:
    assert Numbers((3, 0, 3, 7, 1)).valid(6) == (3, 1)


@given(st.text())
def test_any_text_is_read_or_refused(answer: str) -> None:
    for read in (read_verdict, read_response, read_numbers):
        assert isinstance(read(answer), Good | Bad)
    assert isinstance(read_text(answer, SUMMARY), Good | Bad)
