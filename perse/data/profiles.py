"""k-review profiles: for each query the reviewer's past that the judge is shown (PerSE, section 3).

`per_example` is the paper's way: each query gets k reviews drawn anew from the reviewer's others. `per_reviewer` draws k
reviews once and asks about the rest, so that all questions about one reader share the work on their profile (DESIGN.md,
section 5). Either way a profile never holds the query's own work (pairs: no comparison that shares a text with the query), and
it stands oldest first if all its times are ISO dates; otherwise in the order drawn.

`max_queries` defaults to 10 in the builds: Table 1 counts 920 examples of 92 reviewers at k = 3. For pairs it is counted per
reviewer *and aspect*, since Table 1 has a data set for each aspect (13 examples per annotator in the one of Interestingness).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal, TypeVar

from perse.data.identity import draw, text_key
from perse.records import Comparison, Review, Split

Profiles = Literal["per_example", "per_reviewer"]

Record = TypeVar("Record", Review, Comparison)


@dataclass(frozen=True)
class ExampleRow:
    """An example by the ids of its parts: a row of examples.parquet. Either `split` or `fold` says which side it is on."""

    example_id: str
    reviewer_id: str
    query_id: str
    profile_ids: tuple[str, ...]
    aspect: str | None = None
    split: Split | None = None
    fold: int | None = None


def pointwise_rows(
    reviews: Mapping[str, Sequence[Review]],
    works: Mapping[str, str],
    *,
    k: int,
    profiles: Profiles,
    max_queries: int | None,
    seed: int,
) -> list[ExampleRow]:
    """Queries and profiles for every reviewer, on no side of a split yet.

    Args:
        reviews: reviewer_id -> the reviews that queries and profiles may be drawn from.
        works: review_id -> the work reviewed (`identity.works`).
        max_queries: at most so many queries of one reviewer; None for all.
    Returns:
        Rows by reviewer. Reviewers without k reviews of other works than a query's have none.
    """
    rows: list[ExampleRow] = []
    for reviewer in sorted(reviews):
        queries = _shuffled(reviews[reviewer], seed=seed, who=reviewer, purpose="queries")
        drawn: list[tuple[Review, list[Review]]] = []
        if profiles == "per_reviewer":
            shared = _shuffled(reviews[reviewer], seed=seed, who=reviewer, purpose="profile")[:k]
            seen = {works[review.review_id] for review in shared}
            drawn = [(query, shared) for query in queries if len(shared) == k and works[query.review_id] not in seen]
        else:
            for query in queries:
                others = [review for review in reviews[reviewer] if works[review.review_id] != works[query.review_id]]
                if len(others) >= k:
                    drawn.append((query, draw(seed, reviewer, f"profile for {query.review_id}").sample(others, k)))
                if len(drawn) == max_queries:
                    break
        rows += [
            ExampleRow("", reviewer, query.review_id, tuple(review.review_id for review in oldest_first(profile)))
            for query, profile in drawn[:max_queries]
        ]
    return _numbered(rows)


def pairwise_rows(
    comparisons: Mapping[str, Sequence[Comparison]], *, k: int, profiles: Profiles, max_queries: int | None, seed: int
) -> list[ExampleRow]:
    """As `pointwise_rows`, a query being a comparison and one of its aspects, and the works its two texts.

    A comparison that shares one text with the query is kept out of its profile as the query's own pair is: its preference
    says how this reader liked a text that is being asked about.

    A profile is drawn from comparisons that judge the query's aspect while there are any, then from the others
    (`per_reviewer`, whose profile serves all aspects: from those that judge most aspects). All aspects of one comparison draw
    from one shuffle, so that questions about the same query share as much of their profile as can be.
    """
    rows: list[ExampleRow] = []
    for reviewer in sorted(comparisons):
        queries = _shuffled(comparisons[reviewer], seed=seed, who=reviewer, purpose="queries")
        shared = _shuffled(comparisons[reviewer], seed=seed, who=reviewer, purpose="profile")
        shared.sort(key=lambda one: -len(one.preference))
        texts = {one.comparison_id: {text_key(one.text_a), text_key(one.text_b)} for one in comparisons[reviewer]}
        asked: Counter[str] = Counter()
        for query in queries:
            own = texts[query.comparison_id]
            if profiles == "per_reviewer":
                if any(own & texts[one.comparison_id] for one in shared[:k]):
                    continue
                candidates = shared
            else:
                others = [one for one in comparisons[reviewer] if not own & texts[one.comparison_id]]
                candidates = _shuffled(others, seed=seed, who=reviewer, purpose=f"profile for {query.comparison_id}")
            if len(candidates) < k:
                continue
            for aspect in sorted(query.preference):
                if asked[aspect] == max_queries:
                    continue
                asked[aspect] += 1
                if profiles == "per_example":
                    profile = sorted(candidates, key=lambda one: aspect not in one.preference)[:k]
                else:
                    profile = candidates[:k]
                ids = tuple(one.comparison_id for one in oldest_first(profile))
                rows.append(ExampleRow("", reviewer, query.comparison_id, ids, aspect))
    return _numbered(rows)


def oldest_first(profile: Sequence[Record]) -> list[Record]:
    """The profile by time if every time is an ISO date, else as it is. Equal times keep their order."""
    times = [sortable(record.time) for record in profile]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return list(profile)
    return [profile[place] for place in sorted(range(len(known)), key=known.__getitem__)]


def sortable(time: str | None) -> datetime | None:
    """The moment that an ISO date (2018-11-10, with or without a time of day) names; None for anything else.

    Other ways to write dates are not guessed at: 02/03/2018 is two days. A time without a zone is taken as UTC.
    """
    if time is None or not re.match(r"\d{4}-\d{2}-\d{2}", time):
        return None
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _shuffled(records: Iterable[Record], *, seed: int, who: str, purpose: str) -> list[Record]:
    shuffled = list(records)
    draw(seed, who, purpose).shuffle(shuffled)
    return shuffled


def _numbered(rows: Iterable[ExampleRow]) -> list[ExampleRow]:
    """The rows with ids: the reviewer and the count of their examples, as in r1a2b3c4d5e6-p01."""
    counts: Counter[str] = Counter()
    numbered: list[ExampleRow] = []
    for row in rows:
        counts[row.reviewer_id] += 1
        numbered.append(replace(row, example_id=f"{row.reviewer_id}-p{counts[row.reviewer_id]:02d}"))
    return numbered
