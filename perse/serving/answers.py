"""Validates a judge server's answers: the items that were asked, labels of the question's scale,
valid probabilities. Anything else is a `ServerError`, whose message holds no key.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from perse.errors import PerseError
from perse.judgement import Judgement, Status
from perse.questions import QUESTIONS
from perse.records import explain
from perse.scale import Scale
from perse.secrets import printable, redact, without_keys

ROUNDING = 1e-3
"""Probabilities may add up to so much more or less than 1."""

LONGEST = 1000
"""Characters of a server's words in one of our errors."""


@dataclass(frozen=True)
class Problem:
    """The error of one item of a list."""

    message: str
    code: int
    details: Mapping[str, int]


class ServerError(PerseError):
    """The server refused a request, cannot be reached, or gave an invalid answer; `code` is the HTTP status, 0 without one."""

    def __init__(self, message: str, code: int, details: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.details = dict(details or {})

    def problems(self, count: int) -> list[Problem]:
        """The same for `count` items that were not asked because of it."""
        return [Problem(str(self), self.code, self.details)] * count


@dataclass(frozen=True)
class Answers:
    """Reads what the server at `url`, which was sent `key`, answers."""

    url: str
    key: str | None

    def fields(self, content: bytes) -> dict[str, Any]:
        """A successful answer's JSON object."""
        try:
            found = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.strange(f"no JSON that can be read ({type(error).__name__})") from None
        if not isinstance(found, dict):
            raise self.strange(f"a JSON {type(found).__name__}, expected an object")
        return found

    def problem(self, content: bytes, status: int) -> Problem:
        """An error answer."""
        try:
            error = json.loads(content)["error"]
            return self._problem(error, status)
        except (ValueError, KeyError, TypeError, RecursionError):
            said = self.words(content[: 10 * LONGEST].decode("utf-8", "replace"))
            return Problem(f"the server answered {status}: {said[:200]}", status, {})

    def judgement(self, found: object, item: object, question: str) -> Judgement:
        """The judgement of `item`, which was asked `question`."""
        try:
            judgement = Judgement.model_validate(found)
        except ValidationError as error:
            raise self.strange(f"a judgement with {explain(error)}") from None
        asked = item.get("id") if isinstance(item, Mapping) else None
        if isinstance(asked, str) and asked and judgement.id != asked:
            raise self.strange(f"a judgement of '{judgement.id}', asked was '{asked}'")
        if judgement.question != question:
            raise self.strange(f"a judgement of question '{judgement.question}', asked was '{question}'")
        if question in QUESTIONS and (why := impossible(judgement, QUESTIONS[question].scale)):
            raise self.strange(why)
        profile = item.get("profile") if isinstance(item, Mapping) else None
        if isinstance(profile, list | tuple) and judgement.k_effective > len(profile):
            raise self.strange(f"k_effective {judgement.k_effective} of a profile of {len(profile)}")
        clean = {name: self._without_key(said) for name in ("text", "error") if (said := getattr(judgement, name))}
        return judgement.model_copy(update=clean)

    def results(self, answer: Mapping[str, Any], items: Sequence[object], question: str) -> list[Judgement | Problem]:
        """A judgement or a problem for each of `items`, in their order."""
        found = answer.get("results")
        if not isinstance(found, list) or len(found) != len(items):
            told = f"{len(found)} results" if isinstance(found, list) else "no list of results"
            raise self.strange(f"{told} for {len(items)} items")
        return [self._result(one, item, question) for one, item in zip(found, items, strict=True)]

    def claims(self, answer: Mapping[str, Any], item: Mapping[str, Any], question: str) -> list[Judgement]:
        """A judgement for each of an item's claims, in their order."""
        found, name, claims = answer.get("results"), item.get("id"), item.get("claims")
        asked = len(claims) if isinstance(claims, list | tuple) else 0
        if not isinstance(found, list) or len(found) != asked:
            told = f"{len(found)} results" if isinstance(found, list) else "no list of results"
            raise self.strange(f"{told} for {asked} claims")
        ids = [f"{name}/{number}" if name else None for number in range(1, len(found) + 1)]
        return [self.judgement(one, {"id": claim}, question) for one, claim in zip(found, ids, strict=True)]

    def strange(self, why: str) -> ServerError:
        """The error for an answer that cannot be a judge server's."""
        return ServerError(f"{self.url} answered what no judge does: {self.words(why)[:300]}; is it perse's server?", 200)

    def _result(self, found: object, item: object, question: str) -> Judgement | Problem:
        if not isinstance(found, dict) or "error" not in found or "question" in found:
            return self.judgement(found, item, question)
        try:
            error = found["error"]
            return self._problem(error, error["code"])
        except (KeyError, TypeError):
            raise self.strange("a result that is neither a judgement nor an error") from None

    def _problem(self, error: Mapping[str, Any], code: int) -> Problem:
        details = error.get("details") if isinstance(error, dict) else None
        numbers = details.items() if isinstance(details, dict) else ()
        if isinstance(code, bool) or not isinstance(code, int):
            raise TypeError("the code is no number")
        return Problem(
            self.words(str(error["message"]))[:LONGEST],
            code,
            {self.words(name): n for name, n in numbers if isinstance(n, int) and name.isidentifier()},
        )

    def words(self, text: str) -> str:
        """What the server said, or what was said of it, as an error may repeat it."""
        return printable(" ".join(redact(self._without_key(text[: 100 * LONGEST])).split()))

    def _without_key(self, text: str) -> str:
        return without_keys(text, *([self.key] if self.key else []))


def impossible(judgement: Judgement, scale: Scale) -> str | None:
    """What is impossible in a judgement, or None."""
    shares, values = judgement.distribution, scale.values
    if judgement.status is Status.OK and judgement.label not in scale.labels:
        return f"label '{judgement.label}', expected one of {scale.shown}"
    if shares is not None and set(shares) != set(scale.labels):
        return f"a distribution over {len(shares)} labels, expected {scale.shown}"
    if shares is not None and (min(shares.values()) < 0 or abs(math.fsum(shares.values()) - 1) > ROUNDING):
        return f"an invalid distribution: {list(shares.values())[:20]}"
    if shares is not None and judgement.label is not None and shares[judgement.label] == 0:
        return f"label '{judgement.label}', to which its own distribution gives nothing"
    if shares is not None and judgement.mass is None:
        return "a distribution without its mass"
    for name in ("mass", "order_gap"):
        value = getattr(judgement, name)
        if value is not None and not 0 <= value <= 1 + ROUNDING:
            return f"{name} {value}, expected 0 to 1"
    if judgement.expected is not None:
        if values is None or not min(values) - ROUNDING <= judgement.expected <= max(values) + ROUNDING:
            return f"expected {judgement.expected}, which is outside the scale"
        mean = scale.expected(tuple(shares[label] for label in scale.labels)) if shares else None
        if mean is not None and abs(mean - judgement.expected) > ROUNDING * max(values):
            return f"expected {judgement.expected}, which is not that of its distribution"
    if judgement.stacked is not None and set(judgement.stacked.distribution) != set(scale.labels):
        return f"a stacked distribution over {len(judgement.stacked.distribution)} labels, expected {scale.shown}"
    if judgement.status is Status.OK and values is not None and (shares is None) != (judgement.expected is None):
        return "a distribution without its expected score, or the score without the distribution"
    return None
