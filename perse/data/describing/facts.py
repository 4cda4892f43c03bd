"""Describes a file: its format, people, scores, lengths, dates and problems, and the command that builds from it.

One pass; what is kept grows with the number of reviewers and items, not with the texts. Bad rows are counted and never stop the
description, so that all problems of a file are seen at once.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from perse.data.describing.beside import filled_in
from perse.data.describing.obstacles import CROSSED, NO_FILE, no_rows, repeated, too_few, wrapped
from perse.data.sources import recognised
from perse.data.sources.examples import FOLDER, UNKNOWN
from perse.data.sources.facts import Facts
from perse.data.sources.faults import Faults
from perse.data.sources.source import Head, Seen, Source
from perse.data.sources.table import PAIR_TABLE, REVIEW_TABLE, mapped_table, odd_scores, stopping_scores, unrated
from perse.errors import BadInput
from perse.files.runlog import file_digest
from perse.records.dates import sortable

ENOUGH = 6
"""Reviews that a reviewer must have to be kept by default (PerSE, section 4.1)."""

SHOWN_PROBLEMS = 5
"""Most bad rows that are shown with their line."""

MOST_ANSWERS = 40
"""Aspects, and answers of one, beyond these are counted together: a column of free text may have been taken for answers."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Spread(_Part):
    """The distribution of a number."""

    least: int
    median: float
    most: int


class PerReviewer(_Part):
    """Reviews or comparisons per reviewer."""

    spread: Spread
    enough: int
    """How many reviewers have `ENOUGH` or more."""


class Dates(_Part):
    """When records were written."""

    iso: int
    """How many are ISO dates (2018-11-10), which alone can be put in order."""
    other: int
    first: str | None
    """The earliest ISO date."""
    last: str | None
    example: str | None
    """A date that is not ISO."""


class Problems(_Part):
    """Rows that a build would stop at or leave out."""

    counts: dict[str, int]
    """reason -> how many, commonest first."""
    first: tuple[str, ...]
    """The first of them, with line and field."""


class Description(_Part):
    """What `perse data describe` prints; `--json` prints it as it is."""

    file: str
    """Its name, without the folder."""
    format: str
    """The title of its source (`perse.data.sources`)."""
    bytes: int
    sha256: str
    """Of the file; of a data set folder, its digest."""
    rows: int
    """Records that could be read, up to the limit."""
    whole: bool
    """Whether all rows were read."""
    columns: tuple[str, ...]
    fields: dict[str, str]
    """our field -> the column that is taken for it."""
    reviewers: int
    items: int
    per_reviewer: PerReviewer | None
    scores: dict[str, int]
    """score as it stands there -> how many."""
    answers: dict[str, dict[str, int]]
    """aspect -> answer as it stands there -> how many."""
    text_words: Spread | None
    """Words of the texts judged, one for each row."""
    review_words: Spread | None
    dates: Dates | None
    problems: Problems
    note: str | None
    """What must be known before the command is typed, or, where there is none, what stands in its way."""
    next: str | None
    """The command that builds something from it; what stands in capitals is not known and to be filled in. None if none could as it is."""


def describe(path: Path, *, limit: int | None = None, columns: Mapping[str, str] | None = None) -> Description:
    """Describes a raw file, a file of examples or a data set folder; at most `limit` rows are read.

    Args:
        columns: our field -> the column of a table of reviews or comparisons, binding.
    Raises:
        BadInput: with `columns` it is no such table; it cannot be read at all: absent, empty, damaged, or a folder that is no data set.
    """
    if limit is not None and limit < 1:
        raise BadInput(f"limit is {limit}, expected 1 or more")
    source = mapped_table(Head(path), columns) if columns else recognised(path)
    if path.is_dir() and source is UNKNOWN:
        raise BadInput(f"{path}: the folder is no perse data set; give a file in it")
    faults = Faults("skip", keep=SHOWN_PROBLEMS)
    tally = _Tally()
    for facts in source.facts_of(path, faults):
        if tally.rows == limit:
            tally.whole = False
            break
        tally.add(facts)
    counts = faults.counts + tally.repeated(source)
    table = source.name == REVIEW_TABLE.name
    counts += Counter(odd_scores(tally.scores) if table else {})
    found = source.columns(path)
    scores = _sorted_scores(tally.scores)
    # Amazon's builds leave out what is reviewed twice; a table's stop at it.
    stops = bool(faults.met or (table and (tally.twice or stopping_scores(tally.scores))))
    chosen = +tally.chosen if source.name == PAIR_TABLE.name else tally.reviewers
    usable = tally.usable(found.fields) if source.kind == "pointwise" else chosen
    shared = _shared_count(usable) if tally.whole else None
    without, kept = tally.without_profiles(usable, shared) if source.kind == "pointwise" else (0, 0)
    repeats = without >= max(1, int(kept * 0.1 + 0.5))  # so many that one side of the split may be left empty
    crossed = source.kind == "pairwise" and tally.whole and tally.crossed()
    seen = Seen(
        shlex.quote(str(path)),
        found.fields,
        scores,
        stops=stops,
        shared_count=shared,
        repeats=repeats,
        crossed=crossed,
        **filled_in(path),
    )
    readable = (tally.rows or not counts) and not any("\0" in name for name in found.names)  # as UTF-16 has it
    obstacle = None if readable else NO_FILE
    if source is UNKNOWN and not path.is_dir() and tally.rows < 2:
        obstacle = wrapped(path) or obstacle
    elif table or source.name == PAIR_TABLE.name:
        obstacle = obstacle or _obstacle(tally, usable, faults, unit="reviews" if table else "comparisons")
    elif source is FOLDER:
        from perse.data.dataset.folder import other_schema  # needs pyarrow

        obstacle = obstacle or other_schema(path)
    notes = [
        source.note(seen) if source.note is not None else None,
        repeated(without, kept) if repeats else None,
        CROSSED if crossed else None,
    ]
    note = "; ".join(filter(None, notes)) or None
    return Description(
        file=path.resolve().name,
        format=source.title,
        bytes=_bytes(path),
        sha256=_digest(path),
        rows=tally.rows,
        whole=tally.whole,
        columns=found.names,
        fields=dict(found.fields),
        reviewers=len(tally.reviewers),
        items=len(tally.items),
        per_reviewer=_per_reviewer(tally.reviewers.values()),
        scores=scores,
        answers={aspect: dict(sorted(found.items())) for aspect, found in sorted(tally.answers.items())},
        text_words=_spread(tally.text_words),
        review_words=_spread(tally.review_words),
        dates=tally.dates(),
        problems=Problems(
            counts=dict(sorted(counts.items(), key=lambda one: (-one[1], one[0]))),
            first=tuple(str(bad).removeprefix(f"{path}, ") for bad in faults.rows),
        ),
        note=obstacle or note,
        next=None if obstacle else source.next_command(seen),
    )


class _Tally:
    """The counts of one pass."""

    def __init__(self) -> None:
        self.rows = 0
        self.whole = True
        self.reviewers: Counter[str] = Counter()
        self.items: Counter[str] = Counter()
        self.numbers: dict[str, int] = {}
        self.pairs: set[int] = set()
        self.chosen: Counter[str] = Counter()
        """reviewer -> rows of a table that say which of two texts is preferred."""
        self.twice = 0
        self.whole_rows: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        """Without and with a text: reviewer -> rows that have all that a build asks for."""
        self.said: Counter[int] = Counter()
        """Whose, with or without a text, and what they said -> how many such rows."""
        self.zeros: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        """Those of them whose score is 0, which may mean "not rated"."""
        self.scores: Counter[str] = Counter()
        self.answers: dict[str, Counter[str]] = {}
        self.compared: set[int] = set()
        """Who compared which two texts."""
        self.text_words: Counter[int] = Counter()
        self.review_words: Counter[int] = Counter()
        self.iso = self.other = 0
        self.first: str | None = None
        self.last: str | None = None
        self.odd: str | None = None

    def add(self, facts: Facts) -> None:
        self.rows += 1
        if facts.reviewer is not None:
            self.reviewers[facts.reviewer] += 1
            self.chosen[facts.reviewer] += facts.chosen
        if facts.item is not None:
            self.items[facts.item] += 1
        again = False
        if facts.reviewer is not None and facts.item is not None:
            # Numbers take a third of the memory of two names per row.
            pair = self._number("r" + facts.reviewer) << 40 | self._number("i" + facts.item)
            again = pair in self.pairs
            self.twice += again
            self.pairs.add(pair)
        if facts.reviewer is not None and facts.score is not None and facts.review_words and not again:
            with_text = bool(facts.text_words)
            self.whole_rows[with_text][facts.reviewer] += 1
            self.zeros[with_text][facts.reviewer] += facts.score == "0"
            if facts.said is not None:
                self.said[self._saying(facts.reviewer, with_text) << 64 | facts.said % 2**64] += 1
        if facts.reviewer is not None and facts.pair is not None:
            self.compared.add(self._number("r" + facts.reviewer) << 64 | facts.pair % 2**64)
        if facts.score is not None:
            self.scores[facts.score] += 1
        for aspect, answer in facts.answers.items():
            found = self.answers.setdefault(
                aspect if aspect in self.answers or len(self.answers) < MOST_ANSWERS else "others", Counter()
            )
            found[answer if answer in found or len(found) < MOST_ANSWERS else "others"] += 1
        self.text_words.update(facts.text_words)
        if facts.review_words is not None:
            self.review_words[facts.review_words] += 1
        if facts.time is not None:
            self._add_time(facts.time)

    def usable(self, fields: Collection[str]) -> Counter[str]:
        """reviewer -> rows that have all that a build asks for: a score that is one, a review, a text where the file has texts."""
        texts = (True,) if "text" in fields else (True, False)
        found = sum((self.whole_rows[one] for one in texts), Counter[str]())
        return found - sum((self.zeros[one] for one in texts), Counter[str]()) if unrated(self.scores) else found

    def without_profiles(self, usable: Mapping[str, int], shared: int | None) -> tuple[int, int]:
        """How many of the readers whom a build keeps have no query with a whole profile of other words, and how many readers those are in all."""
        enough = min(ENOUGH, shared) if shared is not None else ENOUGH
        k = min(3, enough - 1)
        kept = {reviewer: count for reviewer, count in usable.items() if count >= max(enough, 2)}
        rarest: dict[int, int] = {}
        for key, count in self.said.items():
            rarest[key >> 64] = min(count, rarest.get(key >> 64, count))
        least = {
            reviewer: min((rarest[one] for one in self._sayings(reviewer) if one in rarest), default=0) for reviewer in kept
        }
        return sum(count - least[reviewer] < k for reviewer, count in kept.items()), len(kept)

    def crossed(self) -> bool:
        """Whether a reader of the training side would have less than one pair left on average that none of the validation side, a tenth of
        the readers, compares."""
        readers, pairs = ({one >> 64 for one in self.compared}, {one % 2**64 for one in self.compared})
        if len(readers) < 2:
            return False
        each = len(self.compared) / len(readers)
        return each * (1 - each / len(pairs)) ** max(1, int(len(readers) * 0.1 + 0.5)) < 1

    def _saying(self, reviewer: str, with_text: bool) -> int:
        return self._number("r" + reviewer) << 1 | with_text

    def _sayings(self, reviewer: str) -> tuple[int, int]:
        return self._saying(reviewer, False), self._saying(reviewer, True)

    def _number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def _add_time(self, time: str) -> None:
        moment = sortable(time)
        if moment is None:
            self.other += 1
            self.odd = self.odd or time[:40]
            return
        self.iso += 1
        day = moment.date().isoformat()
        self.first = day if self.first is None else min(self.first, day)
        self.last = day if self.last is None else max(self.last, day)

    def repeated(self, source: Source) -> Counter[str]:
        """Problems that only show across rows."""
        if source.once == "item":
            return Counter({"item listed twice": self.items.total() - len(self.items)})
        return Counter({"reviewed twice": self.twice} if source.once == "review" else {})

    def dates(self) -> Dates | None:
        if not self.iso + self.other:
            return None
        return Dates(iso=self.iso, other=self.other, first=self.first, last=self.last, example=self.odd)


def _obstacle(tally: _Tally, usable: Mapping[str, int], faults: Faults, *, unit: str) -> str | None:
    """Why no command could build from a table that can be read, if none could."""
    if not usable and faults.met:
        return no_rows(tally.rows, faults.met)
    return too_few(usable, unit) if tally.whole else None


def _shared_count(usable: Counter[str]) -> int | None:
    """The most usable rows that each of two reviewers have; None where there are no two."""
    two = [count for _, count in usable.most_common(2)]
    return two[1] if len(two) == 2 else None


def _sorted_scores(scores: Counter[str]) -> dict[str, int]:
    """Numbers by size, then fractions like "3/5"."""
    return dict(sorted(scores.items(), key=lambda one: ("/" in one[0], float(one[0].partition("/")[0]), one[0])))


def _spread(counts: Mapping[int, int]) -> Spread | None:
    """Of numbers given by how often each occurs; the median of an even number lies between the middle two."""
    if not counts:
        return None
    total = sum(counts.values())
    wanted = ((total - 1) // 2, total // 2)
    middle: list[int] = []
    passed = 0
    for number, count in sorted(counts.items()):
        middle += [number for place in wanted if passed <= place < passed + count]
        passed += count
    return Spread(least=min(counts), median=sum(middle) / 2, most=max(counts))


def _per_reviewer(numbers: Iterable[int]) -> PerReviewer | None:
    counts = Counter(numbers)
    spread = _spread(counts)
    return (
        None
        if spread is None
        else PerReviewer(spread=spread, enough=sum(n for number, n in counts.items() if number >= ENOUGH))
    )


def _bytes(path: Path) -> int:
    return sum(part.stat().st_size for part in path.iterdir() if part.is_file()) if path.is_dir() else path.stat().st_size


def _digest(path: Path) -> str:
    if not path.is_dir():
        return file_digest(path)
    from perse.data.dataset.folder import folder_digest

    return folder_digest(path, kind="pointwise" if (path / "reviews.parquet").exists() else "pairwise")
