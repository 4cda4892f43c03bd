"""The files released with PerSE as they are: Per-MPST (reviews of one critic) and Per-DOC (one file for each aspect).

A row becomes its prompt, taken verbatim, and, where the prompt has the released shape, an example with profile and query. The
prompt is trusted, since it is what a judge was shown; `examples` is only compared with it. The last entry of
`examples` is the very review that is asked for: it names the item and is never shown. Names are as released; `data.release`
hides them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from perse.data.sources.facts import Facts, text_in
from perse.data.sources.faults import BadRow, Faults
from perse.data.sources.lines import read_json_lines, read_records
from perse.data.sources.rows import NUL
from perse.data.sources.source import Head, Source
from perse.errors import BadInput
from perse.formats.json_text import shortened
from perse.identity import normalised, pair_key
from perse.questions.written import json_fields
from perse.records import (
    ASPECTS,
    Choice,
    ChoiceReference,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileComparison,
    ProfileReview,
    ReviewReference,
    VerbatimExample,
)

NOT_PARSED = "prompt of another shape"
"""Why a row has no example: counted, and its prompt is kept."""

_JSON = r"```json\s*(?P<json>.*?)\s*```"
REVIEWED = re.compile(
    rf"^\[The Start of Plot (?P<n>\d+)\]\n(?P<text>.*?)\n\[The End of Plot (?P=n)\]\s*\[Review\]\s*{_JSON}",
    re.DOTALL | re.MULTILINE,
)
NEW_PLOT = re.compile(r"^\[The Start of Plot\]\n(.*)\n\[The End of Plot\]$", re.DOTALL | re.MULTILINE)
_PAIR = (
    r"\[The Start of Plot A\]\n(?P<a>.*?)\n\[The End of Plot A\]\s*\[The Start of Plot B\]\n(?P<b>.*?)\n\[The End of Plot B\]"
)
_PREFERRED = re.compile(
    rf"^\[The Start of User Preference\]\n{_PAIR}.*?{_JSON}\s*\[The End of User Preference\]", re.DOTALL | re.MULTILINE
)
_NEW_PAIR = re.compile(_PAIR, re.DOTALL)


@dataclass(frozen=True)
class Released:
    """One released row: the prompt verbatim, the example in it or None, and its names."""

    verbatim: VerbatimExample
    example: PointwiseExample | PairwiseExample | None
    comparison: str | None = None
    """Per-DOC's `idx`: the same for the aspects of one comparison."""
    title: str | None = None
    """Of the plot that is asked about, as the public knows it."""
    profile_titles: tuple[str, ...] = ()
    repeated: bool = False
    """Whether a row before it has its `idx`, so that its id ends in a number more."""

    def named(self, name: str) -> Released:
        """A row that repeats another's `idx`, under an id of its own."""
        example = None if self.example is None else self.example.model_copy(update={"id": name})
        return replace(self, repeated=True, verbatim=self.verbatim.model_copy(update={"id": name}), example=example)


def read_release(paths: Sequence[Path], faults: Faults, *, aspect: str | None = None) -> list[Released]:
    """The rows of released files, in their order. Reviewers and annotators stand under their own names.

    The release has rows with one `idx`, annotator and query and different profiles, and files of several k ask the same: all are read,
    and the second has an id that ends in -2.

    Args:
        faults: takes rows without prompt or answer, and rows whose prompt and `examples` disagree.
        aspect: of all Per-DOC files, if their names do not tell it.
    Raises:
        BadInput: a file that cannot be read, or a Per-DOC file whose aspect is not known; a bad row, if those are to stop.
    """
    found: list[Released] = []
    times: Counter[str] = Counter()
    for path in paths:
        for line, fields in read_json_lines(path, faults):
            row = _Row(path, line, fields if isinstance(fields, dict) else {})
            try:
                if row.fields.keys() >= {"idx", "prompt", "completion", "examples"}:
                    one = _mpst(row)
                elif row.fields.keys() >= {"idx", "prompt", "completion", "review_id"}:
                    one = _doc(row, aspect_of(path) if aspect is None else aspect_named(aspect))
                else:
                    keys = ", ".join(map(str, row.fields)) or shortened(fields)
                    row.bad(
                        None, f"found {keys}, expected idx, prompt, completion and examples (Per-MPST) or review_id (Per-DOC)"
                    )
                times[one.verbatim.id] += 1
                if (time := times[one.verbatim.id]) > 1:
                    one = one.named(f"{one.verbatim.id}-{time}")
            except BadRow as error:
                faults.add(error)
            else:
                found.append(one)
    return found


def aspect_of(path: Path) -> str:
    """The aspect that a Per-DOC file's name tells, by a part that is its first letter or its name: PerDOC.I.sample.jsonl.

    Raises:
        BadInput: none, or several.
    """
    name = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", path.name)
    words = name.casefold().split()
    told = {a for a in ASPECTS if a[0].casefold() in words or a.split()[0].casefold() in words}
    if len(told) != 1:
        raise BadInput(
            f"{path}: the name tells {' and '.join(sorted(told)) or 'no aspect'}; give the aspect, or a name as PerDOC.I.jsonl "
            f"({', '.join(f'{a[0]}: {a}' for a in ASPECTS)})"
        )
    return told.pop()


def aspect_named(given: str) -> str:
    """The aspect whose first letter or name is `given`. Raises `BadInput` where there is none."""
    for aspect in ASPECTS:
        if given.casefold() in (aspect[0].casefold(), aspect.casefold(), aspect.split()[0].casefold()):
            return aspect
    raise BadInput(f"aspect '{given}' is none of Per-DOC's; choose from {', '.join(f'{a[0]} ({a})' for a in ASPECTS)}")


def unwrapped(prompt: str) -> str:
    """A released prompt without the marks of its turns. It ends after the last mark, where the answer begins."""
    prompt = re.sub(r"\A\s*<\|prompter\|>", "", prompt)
    asked, mark, begun = prompt.rpartition("<|assistant|>")
    return (asked.rstrip(" ").removesuffix("</s>") + begun if mark else prompt).removesuffix("</s>")


@dataclass(frozen=True)
class MergedAspects:
    """Per-DOC with its files brought together; `conflicts` counts by reason what was not merged."""

    released: tuple[Released, ...]
    conflicts: Mapping[str, int]


def merge_aspects(released: Sequence[Released]) -> MergedAspects:
    """Rows of one comparison (`idx`) and annotator told about each other: an example's profile shows what the annotator said of
    the same profile pair on other aspects, and the query stands in the same order everywhere.

    Rows of one `idx` that ask another pair, or another annotator, are left as they are and counted. So is a profile pair with two
    answers on one aspect; there a row keeps its own.
    """
    conflicts = {"an idx with several annotators": 0, "an idx with several pairs": 0, "a profile pair with two answers": 0}
    groups: dict[str | None, list[Released]] = defaultdict(list)
    for one in released:
        if isinstance(one.example, PairwiseExample):
            groups[one.comparison].append(one)
    merged: dict[str, Released] = {}
    for group in groups.values():
        examples = [one.example for one in group if isinstance(one.example, PairwiseExample)]
        if len({example.reviewer_id for example in examples}) > 1:
            conflicts["an idx with several annotators"] += 1
        elif len({pair_key(example.query.text_a, example.query.text_b) for example in examples}) > 1:
            conflicts["an idx with several pairs"] += 1
        else:
            told, disagreed = _told(examples)
            conflicts["a profile pair with two answers"] += disagreed
            for one, example in zip(group, examples, strict=True):
                merged[one.verbatim.id] = replace(one, example=_shown_whole(example, told, like=examples[0].query))
    kept = tuple(merged.get(one.verbatim.id, one) for one in released)
    return MergedAspects(kept, {reason: count for reason, count in conflicts.items() if count})


Told = dict[str, dict[str, Choice]]
"""pair -> aspect -> preference, the texts of a pair in alphabetical order."""


def _told(examples: Sequence[PairwiseExample]) -> tuple[Told, int]:
    """The answers in the profiles without contradictory ones, and the number of these."""
    said: dict[tuple[str, str], set[Choice]] = defaultdict(set)
    for example in examples:
        for past in example.profile:
            for aspect, choice in past.preference.items():
                said[pair_key(past.text_a, past.text_b), aspect].add(_turned(choice, past))
    told: Told = defaultdict(dict)
    for (pair, aspect), choices in said.items():
        if len(choices) == 1:
            told[pair][aspect] = next(iter(choices))
    return told, sum(len(choices) > 1 for choices in said.values())


def _shown_whole(example: PairwiseExample, told: Told, *, like: Pair) -> PairwiseExample:
    profile = []
    for past in example.profile:
        others = {aspect: _turned(choice, past) for aspect, choice in told.get(pair_key(past.text_a, past.text_b), {}).items()}
        both = others | past.preference
        in_order = sorted(both, key=lambda aspect: (ASPECTS.index(aspect), aspect))
        profile.append(past.model_copy(update={"preference": {aspect: both[aspect] for aspect in in_order}}))
    update: dict[str, object] = {"profile": tuple(profile)}
    if normalised(example.query.text_a) != normalised(like.text_a):
        update["query"] = like
        if example.reference is not None:
            update["reference"] = ChoiceReference(preference=_other(example.reference.preference))
    return example.model_copy(update=update)


def _turned(choice: Choice, past: ProfileComparison) -> Choice:
    """`choice` for the texts in alphabetical order, or back from it."""
    return choice if normalised(past.text_a) <= normalised(past.text_b) else _other(choice)


def _other(choice: Choice) -> Choice:
    return "B" if choice == "A" else "A"


@dataclass(frozen=True)
class _Row:
    path: Path
    line: int
    fields: Mapping[str, object]

    def bad(self, field: str | None, message: str, *, reason: str = "no released row") -> NoReturn:
        raise BadRow(self.path, self.line, message, reason=reason, field=field)

    def number(self, field: str) -> str:
        given = self.fields[field]
        if isinstance(given, bool) or not re.fullmatch(r"\d+", str(given), re.ASCII):
            self.bad(field, f"found {shortened(given)}, expected a whole number", reason="no index")
        return str(given)

    @property
    def prompt(self) -> str:
        given = self.fields["prompt"]
        text = given[0] if isinstance(given, list) and len(given) == 1 else given
        if not isinstance(text, str) or not text.strip():
            self.bad("prompt", f"found {shortened(given)}, expected a text, or a list of one", reason="no prompt")
        if "\0" in text:
            self.bad("prompt", NUL, reason="a NUL character")
        return unwrapped(text)

    def answer(self, *keys: str) -> dict[str, str]:
        """The completion's values of these keys."""
        given = self.fields["completion"]
        found = dict(json_fields(given, keys)) if isinstance(given, str) else {}
        if missing := [key for key in keys if not found.get(key, "").strip()]:
            self.bad("completion", f"found {shortened(given)}, expected an answer with {missing[0]}", reason="no answer")
        if any("\0" in text for text in found.values()):
            self.bad("completion", NUL, reason="a NUL character")
        return found

    def score(self, field: str, given: object) -> int:
        if not re.fullmatch(r"10|[1-9]", str(given).strip()) or isinstance(given, bool):
            self.bad(
                field, f"found score {shortened(given)}, expected a whole number from 1 to 10", reason="score not from 1 to 10"
            )
        return int(str(given))


def _mpst(row: _Row) -> Released:
    prompt, entries = row.prompt, _entries(row)
    answer = row.answer("Review", "Score")
    reference = ReviewReference(review=answer["Review"].strip(), score=row.score("completion", answer["Score"]))
    target, past = entries[-1], entries[:-1]
    reviewer = target["reviewer_name"]
    if any(one["reviewer_name"] != reviewer for one in past):
        row.bad("examples", f"found several reviewers beside '{reviewer}', expected one", reason="several reviewers")
    _agree(row, "completion", reference, target)
    verbatim = VerbatimExample(
        id=f"permpst-{row.number('idx')}-{row.number('review_index') if 'review_index' in row.fields else 0}",
        reviewer_id=reviewer,
        prompt=prompt,
        reference=reference,
    )
    released = Released(
        verbatim, None, title=target["movie_title"] or None, profile_titles=tuple(one["movie_title"] for one in past)
    )
    profile, query = _profile(row, prompt, past), NEW_PLOT.search(prompt)
    if profile is None or query is None:
        return released
    if normalised(query[1]) != normalised(target["summ_plot"]):
        row.bad("prompt", "the new plot is not that of the last of 'examples'", reason="prompt and examples disagree")
    about = [target["movie_id"], normalised(query[1])]
    if any(one.item_id == about[0] or normalised(one.text) == about[1] for one in profile):
        row.bad(
            "prompt", "the new plot stands in the profile; the judge would only have to copy", reason="query in its profile"
        )
    example = PointwiseExample(
        id=verbatim.id, reviewer_id=reviewer, item_id=about[0], profile=profile, query=query[1].strip(), reference=reference
    )
    return replace(released, example=example)


_ENTRY = ("reviewer_name", "movie_id", "movie_title", "summ_plot", "clean_review", "score")


def _entries(row: _Row) -> list[dict[str, str]]:
    """`examples` with the fields that are used, as text."""
    given = row.fields["examples"]
    if not isinstance(given, list) or not given:
        row.bad(
            "examples", f"found {shortened(given)}, expected a list that ends with the review asked for", reason="no examples"
        )
    for at, entry in enumerate(given):
        missing = [key for key in _ENTRY if not isinstance(entry, dict) or _blank(entry.get(key))]
        if missing and missing != ["movie_title"]:
            row.bad(f"examples.{at}.{missing[0]}", f"found {shortened(entry)}, expected a value", reason="no examples")
    return [{key: str(entry.get(key) or "").strip() for key in _ENTRY} for entry in given]


def _blank(value: object) -> bool:
    return value is None or not str(value).strip()


def _profile(row: _Row, prompt: str, past: Sequence[Mapping[str, str]]) -> tuple[ProfileReview, ...] | None:
    """The reviews that the prompt shows, which must be those of `past`; None if the prompt has another shape."""
    shown_reviews = [*REVIEWED.finditer(prompt)]
    if len(shown_reviews) != prompt.count("\n[Review]\n") or (past and not shown_reviews):
        return None
    if len(shown_reviews) != len(past):
        what = f"shows {len(shown_reviews)} reviews where 'examples' has {len(past)} and the one asked for"
        row.bad("prompt", what, reason="prompt and examples disagree")
    profile = []
    for found, entry in zip(shown_reviews, past, strict=True):
        fields = dict(json_fields(found["json"], ("Review", "Score")))
        if not fields.keys() >= {"Review", "Score"}:
            return None
        review = ReviewReference(review=fields["Review"].strip(), score=row.score("prompt", fields["Score"]))
        _agree(row, "prompt", review, entry)
        if normalised(found["text"]) != normalised(entry["summ_plot"]):
            row.bad("prompt", f"plot {found['n']} is not that of 'examples'", reason="prompt and examples disagree")
        profile.append(
            ProfileReview(
                text=found["text"].strip(), review=review.review or None, score=review.score, item_id=entry["movie_id"]
            )
        )
    return tuple(profile)


def _agree(row: _Row, field: str, review: ReviewReference, entry: Mapping[str, str]) -> None:
    """Refuses a review or a score that is not the entry's. Quotes and backslashes may have been lost on the way into JSON."""

    def bare(text: str) -> str:
        return normalised(re.sub(r"[\"'\\]", "", text))

    if bare(review.review) != bare(entry["clean_review"]) or review.score != row.score("examples", entry["score"]):
        what = f"found score {review.score} and {shortened(review.review)}, expected {entry['score']} and {shortened(entry['clean_review'])}"
        row.bad(field, f"{what} as in 'examples'", reason="prompt and examples disagree")


def _doc(row: _Row, aspect: str) -> Released:
    prompt, worker = row.prompt, str(row.fields["review_id"] or "").strip()
    if not worker:
        row.bad("review_id", "found nothing, expected who compared the plots", reason="no annotator")
    reference = ChoiceReference(preference=_choice(row, "completion", row.answer("Choice")["Choice"]))
    idx = row.number("idx")
    verbatim = VerbatimExample(id=f"perdoc-{aspect[0]}-{idx}", reviewer_id=worker, prompt=prompt, reference=reference)
    past = [*_PREFERRED.finditer(prompt)]
    query = _NEW_PAIR.search(prompt, past[-1].end() if past else 0)
    if query is None or len(past) != prompt.count("[The Start of User Preference]\n"):
        return Released(verbatim, None, comparison=idx)
    profile = []
    for one in past:
        choice = _choice(row, "prompt", dict(json_fields(one["json"], ("Choice",))).get("Choice", ""))
        profile.append(ProfileComparison(text_a=one["a"].strip(), text_b=one["b"].strip(), preference={aspect: choice}))
    asked = Pair(text_a=query["a"].strip(), text_b=query["b"].strip())
    if pair_key(asked.text_a, asked.text_b) in {pair_key(one.text_a, one.text_b) for one in profile}:
        row.bad(
            "prompt", "the new pair stands in the profile; the judge would only have to copy", reason="query in its profile"
        )
    example = PairwiseExample(
        id=verbatim.id, reviewer_id=worker, aspect=aspect, profile=tuple(profile), query=asked, reference=reference
    )
    return Released(verbatim, example, comparison=idx)


def _choice(row: _Row, field: str, given: str) -> Choice:
    plain = re.sub(r"[\W_]+", " ", given).casefold().strip()
    if plain not in ("plot a", "plot b", "a", "b"):
        row.bad(field, f"found choice {shortened(given)}, expected Plot A or Plot B", reason="choice not Plot A or Plot B")
    return "A" if plain.endswith("a") else "B"


_SCORE = re.compile(r'"Score"\s*:\s*"?(\d+)')
_CHOICE = re.compile(r'"Choice"\s*:\s*"?Plot ([AB])')


def _facts(path: Path, faults: Faults) -> Iterator[Facts]:
    """The facts of rows as they stand: what `read_release` would refuse in them shows when a data set is built."""
    for _, values in read_records(path, faults):
        prompt, examples = values.get("prompt"), values.get("examples")
        completion = text_in(values.get("completion")) or ""
        score, choice = _SCORE.search(completion), _CHOICE.search(completion)
        first = examples[0] if isinstance(examples, list) and examples and isinstance(examples[0], dict) else {}
        prompts = prompt if isinstance(prompt, list) else [prompt]
        yield Facts(
            reviewer=text_in(first.get("reviewer_name")) or text_in(values.get("review_id")),
            score=None if score is None else score.group(1),
            answers={} if choice is None else {"preference": choice.group(1)},
            text_words=tuple(len(text.split()) for text in prompts if isinstance(text, str)),
        )


def _is_released(head: Head) -> bool:
    return {"idx", "prompt", "completion"} <= set(head.names)


RELEASED_MPST = Source(
    name="released-mpst",
    title="released Per-MPST examples",
    recognise=lambda head: _is_released(head) and "examples" in head.names,
    facts=_facts,
    next=lambda seen: f"perse data release {seen.file} --out {seen.out}",
)

RELEASED_DOC = replace(RELEASED_MPST, name="released-doc", title="released Per-DOC examples", recognise=_is_released)
