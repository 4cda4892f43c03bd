"""One's own examples in the words of a prompt that PerSE's authors released: what they showed a judge, about other readers.

The words are taken from a released Per-MPST file, which is not part of perse: of its first prompt with two reviews or more, all that is
not a plot, a review, a score or a number stays. The results are prompts that are asked as they are (`perse.questions.verbatim`), so
texts are made safe here, and the limit of words is kept here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perse.data.sources.faults import Faults
from perse.data.sources.release import NEW_PLOT, REVIEWED, read_release
from perse.errors import BadInput
from perse.questions.pointwise import POINTWISE
from perse.records import Example, PointwiseExample, ProfileReview, VerbatimExample
from perse.rendering.prompt import MAX_WORDS, TextRenderer

_ANSWER = re.compile(r'\A(.*?"Review"\s*:\s*)".*"(\s*,\s*"Score"\s*:\s*)\d+(.*)\Z', re.DOTALL)
_THEIRS = re.compile(r"\[(?=The (?:Start|End)\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Wording:
    """The words of a released prompt: before the first review, inside one (around plot, review and score, `{n}` for its number),
    between two, before the new plot, and behind it."""

    lead: str
    entry: tuple[str, str, str, str]
    first: int
    gap: str
    ask: str
    end: str

    def prompt(self, profile: Sequence[ProfileReview], query: str) -> str:
        """Texts must be safe already."""
        entries = (self._entry(self.first + at, past) for at, past in enumerate(profile))
        return f"{self.lead}{self.gap.join(entries)}{self.ask}{query}{self.end}"

    def _entry(self, number: int, past: ProfileReview) -> str:
        before, to_review, to_score, after = (part.replace("{n}", str(number)) for part in self.entry)
        review = json.dumps(past.review or "", ensure_ascii=False)
        return f"{before}{past.text}{to_review}{review}{to_score}{past.score}{after}"


def wording_of(path: Path) -> Wording:
    """The words of a released Per-MPST file.

    Raises:
        BadInput: it is none, or no prompt of it shows two reviews in the released shape.
    """
    for released in read_release([path], Faults()):
        found = _wording(released.verbatim.prompt) if released.example is not None else None
        if found is not None:
            return found
    raise BadInput(
        f"{path}: no prompt shows two reviews and a new plot as released Per-MPST prompts do; give a released file of k = 2 or more"
    )


def _wording(prompt: str) -> Wording | None:
    shown, query = [*REVIEWED.finditer(prompt)], NEW_PLOT.search(prompt)
    if len(shown) < 2 or query is None:
        return None
    first, second = shown[:2]
    answer = _ANSWER.match(first["json"])
    if answer is None:
        return None

    def numbered(part: str) -> str:
        return re.sub(rf"(?<=Plot ){first['n']}\b", "{n}", part)

    return Wording(
        lead=prompt[: first.start()],
        entry=(
            numbered(prompt[first.start() : first.start("text")]),
            numbered(prompt[first.end("text") : first.start("json")]) + answer[1],
            answer[2],
            answer[3] + prompt[first.end("json") : first.end()],
        ),
        first=int(first["n"]),
        gap=prompt[first.end() : second.start()],
        ask=prompt[shown[-1].end() : query.start(1)],
        end=prompt[query.end(1) :],
    )


def in_wording(examples: Iterable[Example], wording: Wording, *, max_words: int = MAX_WORDS) -> Iterator[VerbatimExample]:
    """Each example as a whole prompt; the oldest reviews leave it, whole, until it has at most `max_words`.

    Raises:
        BadInput: one is not of a single text, or its profile has no reviews, which these words need.
    """
    clean = TextRenderer().clean

    def safe(text: str, *, lines: bool) -> str:
        return _THEIRS.sub("[ ", clean(text, lines=lines, question=POINTWISE))

    for one in examples:
        if not isinstance(one, PointwiseExample):
            raise BadInput(f"example '{one.id}' is one of {one.plural}; the released words are of reviews of single texts")
        if any(past.review is None for past in one.profile):
            raise BadInput(f"the profile of example '{one.id}' shows no review texts, which the released words stand around")
        shown = [
            past.model_copy(update={"text": safe(past.text, lines=True), "review": safe(past.review or "", lines=False)})
            for past in one.profile
        ]
        query = safe(one.query, lines=True)
        while len((prompt := wording.prompt(shown, query)).split()) > max_words and shown:
            del shown[0]
        yield VerbatimExample(id=one.id, reviewer_id=one.reviewer_id, prompt=prompt, reference=one.reference)
