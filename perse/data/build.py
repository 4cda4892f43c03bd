"""Raw files -> a data set folder: reads, hides names, filters, splits, draws, checks, writes.

Only the steps' order lives here: pseudonyms come first, so that no later step sees a name; the target is claimed before the
first file is read; the leak check stands between drawing and writing (in `write_folder`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import perse
from perse.data.dataset.card import parts_notes
from perse.data.dataset.folder import DATA_SET, folder_digest, write_folder
from perse.data.dataset.split_counts import parts_of
from perse.data.dataset.summary import Summary, dropped_lines, summary_table
from perse.data.options import BuildOptions, PairwiseOptions, PointwiseOptions
from perse.data.profiles.profiles import ExampleRow, pairwise_rows, pointwise_rows
from perse.data.profiles.selection import Selection, selection
from perse.data.profiles.splits import review_pools, reviewer_folds, touched, valid_share
from perse.data.pseudonyms import hidden, numbered
from perse.data.sources import source_named
from perse.data.sources.faults import Faults, skipped_lines
from perse.data.sources.source import Source, Wanted
from perse.data.works import repeats, works
from perse.errors import BadInput
from perse.files.replacing import Claim, claimed
from perse.files.runlog import name_and_digest
from perse.formats.plain_files import unchanged_while_read
from perse.identity import shuffled
from perse.records import Comparison, Kind, Review
from perse.records.dates import sortable

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


@dataclass(frozen=True, kw_only=True)
class Material:
    """The output of a source: records under real names, their files, and how they were prepared."""

    records: Sequence[Review] | Sequence[Comparison]
    sources: Mapping[str, Mapping[str, str]]
    """role -> file, as the manifest names it (`name_and_digest`)."""
    faults: Faults
    dropped: Mapping[str, Counter[str]] = field(default_factory=dict)
    """unit -> reason -> how many, of what was left out before."""
    made: Mapping[str, Any] = field(default_factory=dict)
    """More for the manifest: which engine rewrote the texts, with what result."""
    files: Mapping[str, str] = field(default_factory=dict)
    """name -> text of more files for the folder."""
    notes: tuple[str, ...] = ()


def build_pointwise(options: PointwiseOptions) -> Summary:
    """Builds a data set of reviews (Per-MPST's construction; PerSE, section 4.1).

    Raises:
        BadInput: settings, a file or a row that cannot be used, no reviewer or example left, a leak, or `out` is taken.
    """
    source = source_named(options.source, "pointwise")
    scale = source.scale or options.scale
    wanted = Wanted(file=options.reviews, items=options.items, columns=options.columns, scale=scale, limit=options.limit)
    with _read(source, wanted, options) as (material, place):
        return pointwise_set(material, replace(options, scale=scale), place)


def build_pairwise(options: PairwiseOptions) -> Summary:
    """Builds a data set of comparisons (Per-DOC's construction; PerSE, section 4.1). Raises as `build_pointwise`."""
    source = source_named(options.source, "pairwise")
    wanted = Wanted(file=options.pairs, items=options.items, columns=options.columns, limit=options.limit)
    with _read(source, wanted, options) as (material, place):
        return pairwise_set(material, options, place)


@contextmanager
def _read(source: Source, wanted: Wanted, options: BuildOptions) -> Iterator[tuple[Material, Claim]]:
    """The material of `source`, and the place for the data set, which is claimed before the first file is read."""
    assert source.read is not None
    if wanted.items is not None and len(source.files) < 2:
        raise BadInput(f"{wanted.items}: data of the source {source.name} has no file of texts beside it; leave --items out")
    faults = Faults(options.on_error)
    given = (wanted.file, *([] if wanted.items is None else [wanted.items]))
    with claimed(options.out, DATA_SET, overwrite=options.overwrite, inputs=given) as place:
        with unchanged_while_read(*given):
            records: Sequence[Any] = source.read(wanted, faults)
            sources = {role: name_and_digest(path) for role, path in zip(source.files, given, strict=False)}
        yield Material(records=numbered(records), sources=sources, faults=faults), place


def pointwise_set(material: Material, options: PointwiseOptions, place: Claim) -> Summary:
    """Filters, splits, draws, checks and writes a data set of the reviews in `material` to `place`. Raises as `build_pointwise`."""
    reviews: Sequence[Any] = material.records
    if options.hidden_by is not None:
        reviews = hidden(reviews, salt=options.hidden_by)
    dropped: Dropped = {"rows": material.faults.counts, **material.dropped}
    dropped |= {unit: dropped.get(unit, Counter()) for unit in ("reviews", "reviewers", "examples")}
    long = [review for review in reviews if len(review.review) >= options.min_review_chars]
    dropped["reviews"][f"shorter than {options.min_review_chars} characters"] = len(reviews) - len(long)
    by_reviewer = _enough(_by_reviewer(long), options, dropped, unit="reviews")
    about = works(long)
    chosen = selection(options.select, embedding_model=options.embedding_model)

    def draw_rows(pools: Mapping[str, Sequence[Review]]) -> list[ExampleRow]:
        return pointwise_rows(pools, about, options.drawing, prepare=chosen.prepare)

    pools: Mapping[str, Sequence[Review]] = by_reviewer
    if options.folds is not None:
        rows = _folded(draw_rows(by_reviewer), by_reviewer, options)
    else:
        valid = valid_share(by_reviewer, share=options.valid, seed=options.seed, what="reviewers")
        if options.split == "reviewer_item":
            known = {about[review.review_id] for theirs in by_reviewer.values() for review in theirs}
            valid_works = valid_share(known, share=options.valid_items, seed=options.seed, what="items")
            pools = review_pools(by_reviewer, about, valid=valid, valid_works=valid_works)
        rows = _on_sides(draw_rows(pools), valid)
        if pools is not by_reviewer:
            dropped["examples"]["crossing the split"] = len(draw_rows(by_reviewer)) - len(rows)
    dropped["reviews"]["of items of the other side"] = _count(by_reviewer) - _count(pools)
    said = {reviewer: repeats(theirs) for reviewer, theirs in pools.items()}
    notes = (
        *material.notes,
        *_scale_notes(long, options.scale),
        *_time_notes(_asked(pools, rows), options.k),
        *_repeat_notes(said, rows, options),
    )
    made = _made(material, chosen) | {"repeated_reviews": _repeated(said)}
    told = replace(material, dropped=dropped, notes=notes, made=made)
    return _finish(pools, rows, options, told, place)


def pairwise_set(material: Material, options: PairwiseOptions, place: Claim) -> Summary:
    """Filters, splits, draws, checks and writes a data set of the comparisons in `material` to `place`. Raises as `build_pointwise`."""
    comparisons: Sequence[Any] = material.records
    if options.hidden_by is not None:
        comparisons = hidden(comparisons, salt=options.hidden_by)
    dropped: Dropped = {"rows": material.faults.counts, "answers": material.faults.answers, **material.dropped}
    dropped |= {unit: dropped.get(unit, Counter()) for unit in ("comparisons", "reviewers", "examples")}
    by_reviewer = _enough(_by_reviewer(comparisons), options, dropped, unit="comparisons")
    by_id = {one.comparison_id: one for one in comparisons}
    chosen = selection(options.select, embedding_model=options.embedding_model)

    def draw_rows(pools: Mapping[str, Sequence[Comparison]]) -> list[ExampleRow]:
        return pairwise_rows(pools, options.drawing, prepare=chosen.prepare)

    rows = draw_rows(by_reviewer)
    pools: Mapping[str, Sequence[Comparison]] = by_reviewer
    if options.folds is not None:
        rows = _folded(rows, by_reviewer, options)
    else:
        valid = valid_share(by_reviewer, share=options.valid, seed=options.seed, what="reviewers")
        if options.split == "reviewer_item":
            for_valid = [row for row in rows if row.reviewer_id in valid]
            theirs = touched(for_valid, by_id)
            for_training = {
                reviewer: [one for one in own if one.pair_id not in theirs]
                for reviewer, own in by_reviewer.items()
                if reviewer not in valid
            }
            apart = for_valid + draw_rows(for_training)
            dropped["examples"]["crossing the split"] = len(rows) - len(apart)
            rows = sorted(apart, key=lambda row: row.reviewer_id)  # stable: a reviewer's examples keep their order
            pools = {reviewer: for_training.get(reviewer, own) for reviewer, own in by_reviewer.items()}
        rows = _on_sides(rows, valid)
    dropped["comparisons"]["of pairs of the other side"] = _count(by_reviewer) - _count(pools)
    notes = (*material.notes, *_time_notes(_asked(pools, rows), options.k))
    told = replace(material, dropped=dropped, notes=notes, made=_made(material, chosen))
    return _finish(pools, rows, options, told, place)


def _repeated(said: Mapping[str, Mapping[str, str]]) -> int:
    """How many reviews say the same as another one by the same reviewer."""
    return sum(count for keys in said.values() for count in Counter(keys.values()).values() if count > 1)


def _repeat_notes(
    said: Mapping[str, Mapping[str, str]], rows: Sequence[ExampleRow], options: PointwiseOptions
) -> tuple[str, ...]:
    """Says how many reviews are repeated, and what was done about it; nothing where none is."""
    if not (repeated := _repeated(said)):
        return ()
    what = f"{repeated:,} of {sum(map(len, said.values())):,} reviews say the same, or nearly, as another by the same reviewer"
    if not options.keep_repeats:
        return (f"{what}: such two are never profile and query of one example (--keep-repeats lets them)",)
    shown = sum(
        any(said[row.reviewer_id][one] == said[row.reviewer_id][row.query_id] for one in row.profile_ids[: options.k])
        for row in rows
    )
    return (
        f"{what}, and were kept: in {shown:,} of {len(rows):,} examples the answer stands in the profile (of k = {options.k})",
    )


def _made(material: Material, chosen: Selection) -> dict[str, Any]:
    return {**material.made, **({"selection": dict(chosen.identity)} if chosen.identity else {})}


def _by_reviewer(records: Sequence[Record]) -> dict[str, list[Record]]:
    grouped: dict[str, list[Record]] = {}
    for record in records:
        grouped.setdefault(record.reviewer_id, []).append(record)
    return grouped


def _count(pools: Mapping[str, Sequence[object]]) -> int:
    return sum(len(theirs) for theirs in pools.values())


def _asked(pools: Mapping[str, Sequence[Record]], rows: Sequence[ExampleRow]) -> list[Record]:
    """The records that queries and profiles may be drawn from, of the reviewers with an example."""
    asked = {row.reviewer_id for row in rows}
    return [record for reviewer, theirs in pools.items() if reviewer in asked for record in theirs]


def _enough(grouped: dict[str, list[Record]], options: BuildOptions, dropped: Dropped, *, unit: str) -> dict[str, list[Record]]:
    """The reviewers with enough records, at most `max_reviewers` of them, drawn by the seed."""
    name, least = options.least
    kept = [reviewer for reviewer, theirs in grouped.items() if len(theirs) >= least]
    if not kept:
        most = max((len(theirs) for theirs in grouped.values()), default=0)
        holders = sum(len(theirs) == most for theirs in grouped.values())
        filters = " or --min-review-chars" if dropped.get("reviews", Counter()).total() else ""
        if lost := dropped.get("plots", Counter()):
            what = ", ".join(f"{count} {why}" for why, count in lost.most_common())
            raise BadInput(
                f"no reviewer has {least} {unit} of plots that could be rewritten: {what}; try another --writer or more --tries, which asks "
                f"only for these again, or lower --{name.replace('_', '-')}"
            )
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
    pools: Mapping[str, Sequence[Review] | Sequence[Comparison]],
    rows: list[ExampleRow],
    options: PointwiseOptions | PairwiseOptions,
    material: Material,
    place: Claim,
) -> Summary:
    """Writes the folder and says what it holds."""
    kind: Kind = "pointwise" if isinstance(options, PointwiseOptions) else "pairwise"
    asked = {row.reviewer_id for row in rows}
    dropped = dict(material.dropped)
    dropped["reviewers"]["without enough left for a query and its profile"] = len(pools) - len(asked)
    records: Sequence[Any] = _asked(pools, rows)
    reviews = {one.review_id: one for one in records if isinstance(one, Review)}
    comparisons = {one.comparison_id: one for one in records if isinstance(one, Comparison)}
    parts = parts_of(rows, reviews, comparisons, options.for_manifest())
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
        "sources": material.sources,
        "counts": counts,
        "dropped": left_out,
        **material.made,
    }
    files = dict(material.files)
    if material.faults.rows:
        files["skipped.jsonl"] = skipped_lines(material.faults.rows)
    write_folder(place, records, kind=kind, rows=rows, manifest=manifest, files=files)
    return Summary(
        out=options.out,
        kind=kind,
        k=options.k,
        digest=folder_digest(options.out, kind=kind),
        reviewers=len(asked),
        records=len(records),
        parts=parts,
        dropped=left_out,
        notes=parts_notes(counts["parts"], split=options.split) + material.notes,
    )


def _time_notes(records: Sequence[Review] | Sequence[Comparison], k: int) -> tuple[str, ...]:
    """Warns that profiles cannot be shown oldest first, if some records have no date or one in a format that does not sort."""
    times = [record.time for record in records if record.time is not None]
    undated = len(records) - sum(sortable(time) is not None for time in times)
    if not times or not undated or k < 2:
        return ()
    odd = next((f", such as '{time[:30]}'" for time in times if sortable(time) is None), "")
    return (
        f"profiles are not oldest first where a date is missing or not as 2018-11-10 or November 10, 2018: {undated:,} of {len(records):,} are so{odd}; "
        "those profiles keep the order drawn",
    )


def _scale_notes(reviews: Sequence[Review], scale: tuple[float, float]) -> tuple[str, ...]:
    """Warns that the scale may be wrong, if its upper quarter is unused."""
    most = max(review.original_score for review in reviews)
    low, high = scale
    if most > low + 0.75 * (high - low):
        return ()
    return (f"no score is above {most:g} on the scale {low:g}-{high:g}; if it ends there, give --scale {low:g}-{most:g}",)
