"""Per-MPST: a corpus of plots and a table of reviews -> a data set of readers and plots that no judge can know by heart.

The plots are anonymized and summarized first (PerSE, appendix A.2), but only those that a reader with enough reviews
has reviewed: rewriting is what costs. Everything else is `perse data pointwise` with the paper's numbers (section 4.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from perse.data.build import Material, Summary, pointwise_set
from perse.data.dataset.folder import DATA_SET
from perse.data.leaks import check_names
from perse.data.options import PointwiseOptions
from perse.data.rewriting.plots import NONE, RULES, RewriteOptions, Rewritten, json_lines, rewrite
from perse.data.rewriting.tables import check_work, work_folder
from perse.data.sources.faults import Faults
from perse.data.sources.mpst import plot_texts, read_mpst
from perse.data.sources.table import read_reviews
from perse.errors import BadInput
from perse.files.belongings import LIST, manifest_of
from perse.files.own_files import write_own
from perse.files.replacing import Claim, claimed
from perse.files.runlog import name_and_digest
from perse.formats.plain_files import unchanged_while_read
from perse.progress import OnPart, unseen_part
from perse.records import Review
from perse.secrets import without_keys

KEPT = "names.jsonl"
NAMES = "names_sha256"
"""The manifest's key that links names in the work folder to its texts."""


@dataclass(frozen=True, kw_only=True)
class PerMpstOptions:
    """Settings of `build_per_mpst`."""

    plots: Path
    """MPST's mpst_full_data.csv, or any table of items: an id, a text and perhaps a title."""
    build: PointwiseOptions
    """Of the data set; `items` is not used, since the plots are the items."""
    rewriting: RewriteOptions

    @property
    def work(self) -> Path:
        """The folder next to the data set for answers and original names, which must not be in it."""
        return work_folder(self.build.out)


def build_per_mpst(options: PerMpstOptions, *, on_progress: OnPart = unseen_part) -> Summary:
    """Reads, rewrites, and builds the data set; original names go to `names.jsonl` in the work folder.

    Args:
        on_progress: called with the step, and how many of how many texts are done.
    Raises:
        BadInput: as `build_pointwise`; also a writer that cannot be asked, or no plot that could be rewritten.
        EngineLost: the writer failed at everything; the same command continues.
    """
    build = options.build
    inputs = (options.plots, build.reviews, options.rewriting.cache)  # the answers are kept when the data set is built again
    with claimed(build.out, DATA_SET, overwrite=build.overwrite, inputs=inputs) as place:
        return _build(options, place, on_progress)


def _build(options: PerMpstOptions, place: Claim, on_progress: OnPart) -> Summary:
    build = options.build
    if options.rewriting.writer != NONE:
        check_work(build.out, (KEPT, LIST), inputs=(options.plots, build.reviews))
    faults = Faults(build.on_error)
    with unchanged_while_read(options.plots, build.reviews):
        plots = read_mpst(options.plots, faults, columns=build.columns)
        texts = plot_texts(plots)
        read = read_reviews(build.reviews, texts, faults, columns=build.columns, scale=build.scale, limit=build.limit)
        sources = {"reviews": name_and_digest(build.reviews), "plots": name_and_digest(options.plots)}
    if options.rewriting.writer == NONE:
        note = "the plots are as they were: a judge may know them (PerSE, appendix A.1); give --writer to rewrite them"
        return pointwise_set(Material(records=read, sources=sources, faults=faults, notes=(note,)), build, place)
    titles = {item: plot.title for item, plot in plots.items() if plot.title}
    wanted = {review.item_id: plots[review.item_id].text for review in _of_frequent(read, build)}
    if not wanted:  # no reviewer has enough reviews, which is refused there
        return pointwise_set(Material(records=read, sources=sources, faults=faults), build, place)
    rewritten = rewrite(wanted, options.rewriting, titles=titles, seed=build.seed, on_progress=on_progress)
    if not rewritten.texts:
        raise BadInput(f"none of {len(wanted)} plots could be rewritten: {_reasons(rewritten)}; try another --writer")
    check_names(rewritten.texts, {item: tuple(rewritten.mappings[item]) for item in rewritten.texts}, titles, warn=False)
    names: list[Mapping[str, Any]] = [
        {
            "item_id": item,
            "names": mapping,
            "survivors": rewritten.survivors[item],
            "title": titles.get(item),
            "faults": rewritten.reasons[item],
        }
        for item, mapping in rewritten.mappings.items()
    ]
    options.work.mkdir(parents=True, exist_ok=True)
    kept = without_keys(json_lines(names))
    there = (manifest_of(place.target) or {}).get("rewriting")
    ours = there.get(NAMES) if isinstance(there, dict) else None  # whose manifest is damaged
    write_own(options.work / KEPT, kept, ours=ours)  # not those of a set that was moved away
    material = Material(
        records=[replace(review, text=rewritten.texts[review.item_id]) for review in read if review.item_id in rewritten.texts],
        sources=sources,
        faults=faults,
        dropped=_left_out(read, wanted, rewritten),
        made={"rewriting": {**rewritten.manifest, NAMES: sha256(kept.encode()).hexdigest()}},
        files={"rewriting.jsonl": json_lines(list(rewritten.lines))},
        notes=_notes(options, rewritten),
    )
    return pointwise_set(material, build, place)


def _of_frequent(reviews: list[Review], build: PointwiseOptions) -> list[Review]:
    """The reviews by those who have enough of them to be kept."""
    long = [review for review in reviews if len(review.review) >= build.min_review_chars]
    counts = Counter(review.reviewer_id for review in long)
    return [review for review in long if counts[review.reviewer_id] >= build.min_reviews]


def _left_out(reviews: list[Review], wanted: Mapping[str, str], rewritten: Rewritten) -> dict[str, Counter[str]]:
    lost = Counter(f"of a plot {why}" for review in reviews if (why := rewritten.failed.get(review.item_id)))
    lost["of a plot that nobody with enough reviews reviewed"] = sum(review.item_id not in wanted for review in reviews)
    return {"plots": Counter(rewritten.failed.values()), "reviews": lost}


def _reasons(rewritten: Rewritten) -> str:
    ranked = Counter(rewritten.failed.values()).most_common()
    return ", ".join(f"{count} {reason}" for reason, count in ranked)


def _notes(options: PerMpstOptions, rewritten: Rewritten) -> tuple[str, ...]:
    notes = [f"{len(rewritten.texts):,} plots rewritten; original names are in {options.work}/names.jsonl: keep it apart"]
    left = rewritten.manifest["with_survivors"]
    if left:
        notes.append(f"in {left:,} plots the recognizer found names that were not replaced; names.jsonl lists them, too")
    if whole := rewritten.manifest["left_whole"]:
        notes.append(f"{whole:,} plots were short enough to stay as they are; give --words for shorter summaries")
    if options.rewriting.writer == RULES:
        notes.append("plots were rewritten by rules, not by a model (PerSE used one): give --writer JUDGE for the paper's way")
    return tuple(notes)
