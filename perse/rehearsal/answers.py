"""What Rehearsal's agents answer, read: summaries, a user's response, the supervisor's verdict, numbers of reviews."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from perse.rehearsal.folder import Response, Verdict
from perse.writing.loop import Bad, Good, Kind
from perse.writing.objects import last_object, object_form, text_of, texts_form

SUMMARY = "Summary"
ANALYSIS = "Analysis"
SUGGESTIONS = "Suggestions"
NUMBERS = "Numbers"

_HEADING = r"(?im)^\W*{name}\W*?(?::|$)"
_PASSED = re.compile(r"(?:\d+\s*[.):])?\s*no suggestions?\s*[.!]?", re.IGNORECASE)
_MARKS = "*_`\"'#- \t\r\n"


class Fault(StrEnum):
    """Problems of an answer that is not JSON."""

    NO_VERDICT = "no_verdict"
    """The supervisor's answer has no line of suggestions."""


def summary_form(max_new_tokens: int) -> dict[str, object]:
    return texts_form([SUMMARY], max_new_tokens=max_new_tokens)


def read_text(answer: str, key: str) -> Good[str] | Bad:
    """The text under `key` of a JSON answer."""
    try:
        return Good(text_of(last_object(answer, key), key))
    except ValueError as error:
        return Bad(Kind.BAD_JSON, f"{error}.")


def read_response(answer: str) -> Good[Response] | Bad:
    """The user's analysis and suggestions; a list of suggestions is joined."""
    try:
        found = last_object(answer, SUGGESTIONS)
        listed = found[SUGGESTIONS]
        if isinstance(listed, list) and all(isinstance(one, str) for one in listed):
            found[SUGGESTIONS] = "\n".join(listed)
        return Good(Response(analysis=text_of(found, ANALYSIS), suggestions=text_of(found, SUGGESTIONS)))
    except ValueError as error:
        return Bad(Kind.BAD_JSON, f"{error}.")


def read_verdict(answer: str) -> Good[Verdict] | Bad:
    """Thought and recommendations. It has passed if behind the last "Suggestions" stands "No suggestions" alone, in any case, with or without a
    full stop."""
    headings = [*re.finditer(_HEADING.format(name="suggestions"), answer)]
    if not headings:
        return Bad(Fault.NO_VERDICT, 'there is no line that begins with "Suggestions:".')
    thought = re.sub(_HEADING.format(name="thoughts?"), "", answer[: headings[-1].start()], count=1).strip(_MARKS)
    told = answer[headings[-1].end() :].strip(_MARKS)
    if not told:
        return Bad(Fault.NO_VERDICT, 'nothing stands behind "Suggestions:"; write "No suggestions" if there are none.')
    passed = _PASSED.fullmatch(told) is not None
    return Good(Verdict(thought=thought, recommendations="" if passed else told, passed=passed))


def numbers_form(number: int) -> dict[str, object]:
    """JSON Schema of a list of so many numbers."""
    items = {"type": "integer", "minimum": 1, "maximum": 99_999}
    return object_form({NUMBERS: {"type": "array", "items": items, "minItems": number, "maxItems": number}})


@dataclass(frozen=True)
class Numbers:
    """Numbers of reviews as they were given: perhaps too few, too many, twice, or of no review."""

    given: tuple[int, ...]

    def valid(self, among: int) -> tuple[int, ...]:
        """Each once, in the order given, of reviews 1 to `among`."""
        return tuple(dict.fromkeys(number for number in self.given if 1 <= number <= among))


def read_numbers(answer: str) -> Good[Numbers] | Bad:
    """Whole numbers under the key, also in quotes, or one without a list."""
    try:
        found = last_object(answer, NUMBERS)[NUMBERS]
    except ValueError as error:
        return Bad(Kind.BAD_JSON, f"{error}.")
    listed = found if isinstance(found, list) else [found]
    numbers = [_number(one) for one in listed]
    if not numbers or None in numbers:
        return Bad(Kind.BAD_JSON, f"the key {NUMBERS} must have a list of numbers, found {json.dumps(found)[:60]}.")
    return Good(Numbers(tuple(number for number in numbers if number is not None)))


def _number(value: object) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\s*(?:review\s*)?\d{1,5}\s*", value, re.IGNORECASE | re.ASCII):
        return int(re.sub(r"\D", "", value))
    return value if isinstance(value, int) and not isinstance(value, bool) else None
