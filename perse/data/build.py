"""Raw tables -> a data set folder: reads, hides names, filters, splits, draws, checks, writes.

Only the steps' order lives here: pseudonyms come first, so that no later step sees a name; the target is checked before the
first file is read; the leak check stands between drawing and writing (in `write_folder`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import perse
from perse.data.card import shared_texts_notes
from perse.data.folder import Kind, check_target, folder_digest, write_folder
from perse.data.identity import shuffled, works
from perse.data.options import BuildOptions, PairwiseOptions, PointwiseOptions
from perse.data.profiles import ExampleRow, pairwise_rows, pointwise_rows, sortable
from perse.data.pseudonyms import hide_annotators, hide_reviewers, salt_from_seed
from perse.data.sources.faults import Faults
from perse.data.sources.table import read_comparisons, read_reviews
from perse.data.splits import review_pools, reviewer_folds, sides, touched, valid_share
from perse.data.summary import Part, Summary, describe, dropped_lines, shared_texts, summary_table
from perse.errors import BadInput
from perse.records import Comparison, Review
from perse.runlog import file_digest

__all__ = [
    "PairwiseOptions",
    "PointwiseOptions",
    "Summary",
    "build_pairwise",
    "build_pointwise",
    "dropped_lines",
    "summary_table",
]

Record = TypeVar("Record", Review, Comparison)

Dropped = dict[str, Counter[str]]


def build_pointwise(options: PointwiseOptions) -> Summary:
    """Builds a data set of reviews (Per-MPST's construction; PerSE, section 4.1).

    Raises:
        BadInput: settings, a file or a row that cannot be used, no reviewer or example left, a leak, or `out` is taken.
    """
    check_target(options.out, overwrite=options.overwrite)
    faults = Faults(options.on_error)
    read = read_reviews(options.reviews, options.items, faults, columns=options.columns, scale=options.scale)
    reviews = read if options.keep_names else hide_reviewers(read, salt=_salt(options))
    dropped: Dropped = {"rows": faults.counts, "reviews": Counter(), "reviewers": Counter(), "examples": Counter()}
    long = [review for review in reviews if len(review.review) >= options.min_review_chars]
    dropped["reviews"][f"shorter than {options.min_review_chars} characters"] = len(reviews) - len(long)
    by_reviewer = _enough(_by_reviewer(long), options, dropped, unit="reviews")
    about = works(long)

    def draw_rows(pools: Mapping[str, Sequence[Review]]) -> list[ExampleRow]:
        return pointwise_rows(
            pools, about, k=options.k, profiles=options.profiles, max_queries=options.max_queries, seed=options.seed
        )

    if options.folds is not None:
        rows = _folded(draw_rows(by_reviewer), by_reviewer, options)
    else:
        valid = valid_share(by_reviewer, share=options.valid, seed=options.seed, what="reviewers")
        pools: Mapping[str, Sequence[Review]] = by_reviewer
        if options.split == "reviewer_item":
            known = {about[review.review_id] for theirs in by_reviewer.values() for review in theirs}
            valid_works = valid_share(known, share=options.valid_items, seed=options.seed, what="items")
            pools = review_pools(by_reviewer, about, valid=valid, valid_works=valid_works)
        rows = _on_sides(draw_rows(pools), valid)
        if pools is not by_reviewer:
            dropped["examples"]["crossing the split"] = len(draw_rows(by_reviewer)) - len(rows)
    notes = _scale_notes(long, options.scale) + _time_notes(long, options.k)
    sources = {"reviews": options.reviews, "items": options.items}
    return _finish(by_reviewer, rows, options, kind_sources=sources, dropped=dropped, notes=notes)


def build_pairwise(options: PairwiseOptions) -> Summary:
    """Builds a data set of comparisons (Per-DOC's construction; PerSE, section 4.1). Raises as `build_pointwise`."""
    check_target(options.out, overwrite=options.overwrite)
    faults = Faults(options.on_error)
    read = read_comparisons(options.pairs, options.items, faults, columns=options.columns)
    comparisons = read if options.keep_names else hide_annotators(read, salt=_salt(options))
    dropped: Dropped = {"rows": faults.counts, "reviewers": Counter(), "examples": Counter()}
    by_reviewer = _enough(_by_reviewer(comparisons), options, dropped, unit="comparisons")
    by_id = {one.comparison_id: one for one in comparisons}

    def draw_rows(pools: Mapping[str, Sequence[Comparison]]) -> list[ExampleRow]:
        return pairwise_rows(pools, k=options.k, profiles=options.profiles, max_queries=options.max_queries, seed=options.seed)

    rows = draw_rows(by_reviewer)
    if options.folds is not None:
        rows = _folded(rows, by_reviewer, options)
    else:
        valid = valid_share(by_reviewer, share=options.valid, seed=options.seed, what="reviewers")
        if options.split == "reviewer_item":
            for_valid = [row for row in rows if row.reviewer_id in valid]
            theirs = touched(for_valid, by_id)
            pools = {
                reviewer: [one for one in own if one.pair_id not in theirs]
                for reviewer, own in by_reviewer.items()
                if reviewer not in valid
            }
            apart = for_valid + draw_rows(pools)
            dropped["examples"]["crossing the split"] = len(rows) - len(apart)
            rows = sorted(apart, key=lambda row: row.reviewer_id)  # stable: a reviewer's examples keep their order
        rows = _on_sides(rows, valid)
    sources = {"pairs": options.pairs, "items": options.items}
    notes = _time_notes(comparisons, options.k)
    return _finish(by_reviewer, rows, options, kind_sources=sources, dropped=dropped, notes=notes)


def _salt(options: BuildOptions) -> str:
    return salt_from_seed(options.seed) if options.salt is None else options.salt


def _by_reviewer(records: Sequence[Record]) -> dict[str, list[Record]]:
    grouped: dict[str, list[Record]] = {}
    for record in records:
        grouped.setdefault(record.reviewer_id, []).append(record)
    return grouped


def _enough(grouped: dict[str, list[Record]], options: BuildOptions, dropped: Dropped, *, unit: str) -> dict[str, list[Record]]:
    """The reviewers with enough records, at most `max_reviewers` of them, drawn by the seed."""
    name, least = options.least
    kept = [reviewer for reviewer, theirs in grouped.items() if len(theirs) >= least]
    if not kept:
        most = max((len(theirs) for theirs in grouped.values()), default=0)
        holders = sum(len(theirs) == most for theirs in grouped.values())
        filters = " or --min-review-chars" if dropped.get("reviews", Counter()).total() else ""
        raise BadInput(
            f"no reviewer has {least} usable {unit}: of {len(grouped)} reviewers, {holders} have the most, {most}; "
            f"lower --{name.replace('_', '-')}{filters} (it must stay above k = {options.k})"
        )
    dropped["reviewers"][f"with fewer than {least} {unit}"] = len(grouped) - len(kept)
    if options.max_reviewers is not None:
        drawn = shuffled(kept, seed=options.seed, purpose="max_reviewers")[: options.max_reviewers]
        dropped["reviewers"][f"beyond the {options.max_reviewers} asked for"] = len(kept) - len(drawn)
        kept = drawn
    return {reviewer: grouped[reviewer] for reviewer in sorted(kept)}


def _folded(rows: Sequence[ExampleRow], reviewers: Mapping[str, Any], options: BuildOptions) -> list[ExampleRow]:
    assert options.folds is not None
    fold_of = reviewer_folds(reviewers, folds=options.folds, seed=options.seed)
    return [replace(row, fold=fold_of[row.reviewer_id]) for row in rows]


def _on_sides(rows: Sequence[ExampleRow], valid: frozenset[str]) -> list[ExampleRow]:
    return [replace(row, split="valid" if row.reviewer_id in valid else "train") for row in rows]


def _finish(
    by_reviewer: Mapping[str, Sequence[Record]],
    rows: list[ExampleRow],
    options: PointwiseOptions | PairwiseOptions,
    *,
    kind_sources: Mapping[str, Path | None],
    dropped: Dropped,
    notes: tuple[str, ...],
) -> Summary:
    """Writes the folder and says what it holds. Reviewers without an example are left out of it."""
    kind: Kind = "pointwise" if isinstance(options, PointwiseOptions) else "pairwise"
    asked = {row.reviewer_id for row in rows}
    dropped["reviewers"]["without enough left for a query and its profile"] = len(by_reviewer) - len(asked)
    records: list[Any] = [record for reviewer, theirs in by_reviewer.items() if reviewer in asked for record in theirs]
    reviews = {one.review_id: one for one in records if isinstance(one, Review)}
    comparisons = {one.comparison_id: one for one in records if isinstance(one, Comparison)}
    parts = _parts(rows, options, reviews, comparisons)
    for part in parts:
        if part.train_examples is not None:
            crossing = len(rows) - part.examples - part.train_examples
            dropped["examples"][f"crossing the split when {part.name.lower()} validates"] = crossing
    left_out = {unit: dict(sorted((+counts).items())) for unit, counts in dropped.items() if counts.total()}
    counts: dict[str, Any] = {
        "reviewers": len(asked),
        "records": len(records),
        "parts": [part.model_dump(mode="json") for part in parts],
    }
    manifest = {
        "perse": perse.__version__,
        "options": options.for_manifest(),
        "sources": {
            role: {"name": path.name, "sha256": file_digest(path)} for role, path in kind_sources.items() if path is not None
        },
        "counts": counts,
        "dropped": left_out,
    }
    write_folder(options.out, records, kind=kind, rows=rows, manifest=manifest, overwrite=options.overwrite)
    return Summary(
        out=options.out,
        kind=kind,
        k=options.k,
        digest=folder_digest(options.out, kind=kind),
        reviewers=len(asked),
        records=len(records),
        parts=parts,
        dropped=left_out,
        notes=shared_texts_notes(counts["parts"], split=options.split) + notes,
    )


def _parts(
    rows: Sequence[ExampleRow],
    options: BuildOptions,
    reviews: Mapping[str, Review],
    comparisons: Mapping[str, Comparison],
) -> tuple[Part, ...]:
    """The sides described, each with at least one example."""
    apart = comparisons if options.split == "reviewer_item" else None
    parts: list[Part] = []
    for fold in [None] if options.folds is None else range(options.folds):
        train, valid = sides(rows, fold, apart=apart)
        for name, side in (("training", train), ("validation", valid)):
            if not side:
                where = "" if fold is None else f" of fold {fold}"
                looser = " or give --split reviewer" if options.split == "reviewer_item" else ""
                least = options.least[0].replace("_", "-")
                raise BadInput(f"no example is left for {name}{where}; add reviewers, raise --{least}{looser}")
        if fold is None:
            parts.append(describe("Train", train, reviews=reviews, comparisons=comparisons))
        validation = describe("Valid" if fold is None else f"Fold {fold}", valid, reviews=reviews, comparisons=comparisons)
        seen = {
            "train_examples": None if fold is None else len(train),
            "texts_in_training": shared_texts(train, valid, comparisons) if comparisons else None,
        }
        parts.append(validation.model_copy(update=seen))
    return tuple(parts)


def _time_notes(records: Sequence[Review] | Sequence[Comparison], k: int) -> tuple[str, ...]:
    """That profiles cannot stand oldest first, if dates are written in a way that does not sort."""
    odd = [record.time for record in records if record.time is not None and sortable(record.time) is None]
    if not odd or k < 2:
        return ()
    return (
        f"profiles are not oldest first where a time is no ISO date (2018-11-10): {len(odd):,} of {len(records):,} are not, "
        f"such as '{odd[0][:30]}'; those profiles keep the order drawn",
    )


def _scale_notes(reviews: Sequence[Review], scale: tuple[float, float]) -> tuple[str, ...]:
    """That the scale may be another one, if nobody used its upper half."""
    most = max(review.original_score for review in reviews)
    if most > sum(scale) / 2:
        return ()
    low, high = scale
    return (f"no score is above {most:g} on the scale {low:g}-{high:g}; if it ends there, give --scale {low:g}-{most:g}",)
