"""k-review profiles: for each query the reviewer's past that the judge is shown (PerSE, section 3).

`per_example_apart` is the paper's way: a part of each reviewer's reviews is held apart for profiles, each query gets one drawn from it,
and no query stands in any profile. How large that part is, the paper does not say; here it is half of them, at least k, and all that
`max_queries` leaves over. `per_example` draws from all of the reviewer's others: more queries for readers with few reviews, but what is
asked in one example stands answered in another's profile (a build says how often). `per_reviewer_epoch` draws a profile once and
asks about the rest, so that all questions about one reader share the work on it (DESIGN.md, section 5); training re-draws it in every
epoch (`epoch`), everything else uses epoch 0. In all three a profile
never holds the query's own work (pairs: no comparison that shares a text with the query), nor, unless `keep_repeats`, a review
that says the same as the query's (`perse.data.works.repeats`).

A row keeps the ids in the order of choice (`perse.data.profiles.selection`), so that its first k are the profile of k; how they are
shown, oldest first or otherwise, is decided when examples are made (`perse.data.profiles.views`).

`max_queries` defaults to 10 in the builds: Table 1 counts 920 examples of 92 reviewers at k = 3. For pairs it is counted per
reviewer *and aspect*, since Table 1 has a data set for each aspect (13 examples per annotator in the one of Interestingness).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from perse.data.profiles.selection import AT_RANDOM, Prepare
from perse.data.works import repeats, text_groups
from perse.identity import draw
from perse.records import Comparison, Review, Split

Profiles = Literal["per_example", "per_example_apart", "per_reviewer_epoch"]

Record = TypeVar("Record", Review, Comparison)


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """An example by the ids of its parts: a row of examples.parquet. Either `split` or `fold` says which side it is on."""

    example_id: str
    reviewer_id: str
    query_id: str
    profile_ids: tuple[str, ...]
    """Most wanted first."""
    aspect: str | None = None
    split: Split | None = None
    fold: int | None = None


@dataclass(frozen=True)
class Drawing:
    """How queries and profiles are drawn. The same drawing and records give the same rows."""

    k: int
    """How many reviews (comparisons) a profile holds."""
    profiles: Profiles = "per_example"
    max_queries: int | None = None
    """At most so many queries of one reviewer (pairs: and aspect); None for all."""
    seed: int = 0
    epoch: int = 0
    """`per_reviewer_epoch`: which draw."""
    keep_repeats: bool = False
    """Reviews: let a profile show one that says the same as the review asked for."""

    def apart(self, shuffled: list[Record], mine: Sequence[Record], *, capped: bool) -> tuple[list[Record], Sequence[Record]]:
        """(queries, what profiles are drawn from) of one reviewer; both are all of `mine` unless they are held apart.

        Args:
            shuffled: `mine` in the order in which they are asked about.
            capped: whether `max_queries` counts records, as with reviews.
        """
        if self.profiles != "per_example_apart":
            return shuffled, mine
        left_over = len(shuffled) - self.max_queries if capped and self.max_queries is not None else 0
        asked = len(shuffled) - max(self.k, len(shuffled) // 2, left_over)
        return shuffled[: max(0, asked)], shuffled[max(0, asked) :]

    def purpose(self, what: str) -> str:
        """The purpose of a random choice, which includes the epoch."""
        return what if self.epoch == 0 else f"{what}, epoch {self.epoch}"


def pointwise_rows(
    reviews: Mapping[str, Sequence[Review]],
    works: Mapping[str, str],
    drawing: Drawing,
    *,
    prepare: Prepare = AT_RANDOM,
) -> list[ExampleRow]:
    """Queries and profiles for every reviewer, on no side of a split yet.

    Args:
        reviews: reviewer_id -> the reviews that queries and profiles may be drawn from.
        works: review_id -> the work reviewed (`perse.data.works`).
        prepare: how profiles are picked; at random by default.
    Returns:
        Rows by reviewer. Reviewers without k reviews of other works get no rows.
    """
    k, seed = drawing.k, drawing.seed
    rows: list[ExampleRow] = []
    for reviewer in sorted(reviews):
        mine = reviews[reviewer]
        queries = _shuffled(mine, seed=seed, who=reviewer, purpose=drawing.purpose("queries"))
        pick = prepare(mine)
        said = {} if drawing.keep_repeats else repeats(mine)
        marks = {one.review_id: {works[one.review_id], "said:" + said.get(one.review_id, one.review_id)} for one in mine}
        drawn: list[tuple[Review, list[Review]]] = []
        if drawing.profiles == "per_reviewer_epoch":
            generator = draw(seed, reviewer, drawing.purpose("profile"))
            shared = pick(queries[0], mine, k, generator) if queries else []
            seen = {mark for review in shared for mark in marks[review.review_id]}
            drawn = [(query, shared) for query in queries if len(shared) == k and seen.isdisjoint(marks[query.review_id])]
        else:
            queries, pool = drawing.apart(queries, mine, capped=True)
            if drawing.profiles == "per_example_apart":  # no work of a query, and nothing it says, stands in any profile
                seen = {mark for review in pool for mark in marks[review.review_id]}
                queries = [query for query in queries if seen.isdisjoint(marks[query.review_id])]
            for query in queries:
                others = [review for review in pool if marks[review.review_id].isdisjoint(marks[query.review_id])]
                if len(others) >= k:
                    profile = pick(query, others, k, draw(seed, reviewer, f"profile for {query.review_id}"))
                    if len(profile) == k:
                        drawn.append((query, profile))
                if len(drawn) == drawing.max_queries:
                    break
        rows += [
            ExampleRow("", reviewer, query.review_id, tuple(review.review_id for review in profile))
            for query, profile in drawn[: drawing.max_queries]
        ]
    return _numbered(rows)


def pairwise_rows(
    comparisons: Mapping[str, Sequence[Comparison]], drawing: Drawing, *, prepare: Prepare = AT_RANDOM
) -> list[ExampleRow]:
    """As `pointwise_rows`, a query being a comparison and one of its aspects, and the works its two texts.

    A comparison that shares one text with the query, or nearly, is kept out of its profile as the query's own pair is: its preference
    says how this reader liked a text that is being asked about.

    A profile is drawn from comparisons that judge the query's aspect while there are any, then from the others
    (`per_reviewer_epoch`, whose profile serves all aspects: from those that judge most aspects). All aspects of one comparison
    draw from one order, so that questions about the same query share as much of their profile as can be.
    """
    k, seed = drawing.k, drawing.seed
    groups = text_groups(text for theirs in comparisons.values() for one in theirs for text in (one.text_a, one.text_b))
    rows: list[ExampleRow] = []
    for reviewer in sorted(comparisons):
        mine = comparisons[reviewer]
        queries = _shuffled(mine, seed=seed, who=reviewer, purpose=drawing.purpose("queries"))
        pick = prepare(mine)
        shared: list[Comparison] = []
        if drawing.profiles == "per_reviewer_epoch":
            shared = pick(queries[0], mine, len(mine), draw(seed, reviewer, drawing.purpose("profile")))
            shared.sort(key=lambda one: -len(one.preference))
        texts = {one.comparison_id: {groups[one.text_a], groups[one.text_b]} for one in mine}
        asked: Counter[str] = Counter()
        queries, pool = drawing.apart(queries, mine, capped=False)
        for query in queries:
            own = texts[query.comparison_id]
            if drawing.profiles == "per_reviewer_epoch":
                if any(own & texts[one.comparison_id] for one in shared[:k]):
                    continue
                candidates = shared
            else:
                others = [one for one in pool if not own & texts[one.comparison_id]]
                candidates = pick(query, others, len(others), draw(seed, reviewer, f"profile for {query.comparison_id}"))
            if len(candidates) < k:
                continue
            for aspect in sorted(query.preference):
                if asked[aspect] == drawing.max_queries:
                    continue
                asked[aspect] += 1
                if drawing.profiles != "per_reviewer_epoch":
                    profile = sorted(candidates, key=lambda one: aspect not in one.preference)[:k]
                else:
                    profile = candidates[:k]
                ids = tuple(one.comparison_id for one in profile)
                rows.append(ExampleRow("", reviewer, query.comparison_id, ids, aspect))
    return _numbered(rows)


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
