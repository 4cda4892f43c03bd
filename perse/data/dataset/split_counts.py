"""The sides of a data set in numbers: printed by a build, and counted again when a person is forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from perse.data.dataset.summary import SplitCounts, describe, shared_texts
from perse.data.profiles.lengths import Lengths, pairwise_cells, pointwise_cells
from perse.data.profiles.profiles import ExampleRow
from perse.data.profiles.splits import sides
from perse.errors import BadInput
from perse.records import Comparison, Review


def parts_of(
    rows: Sequence[ExampleRow],
    reviews: Mapping[str, Review],
    comparisons: Mapping[str, Comparison],
    options: Mapping[str, Any],
    *,
    empty_side: bool = False,
) -> tuple[SplitCounts, ...]:
    """The sides described, each with at least one example unless one may be empty.

    Args:
        reviews, comparisons: the records by id; those of the other kind are empty.
        options: of the manifest.
    Raises:
        BadInput: a side has no example.
    """
    apart = comparisons if options["split"] == "reviewer_item" else None
    k, max_k, folds = options["k"], options["max_k"], options["folds"]
    ks = (k,) if max_k == k else range(max_k + 1)
    lengths = Lengths()
    parts: list[SplitCounts] = []

    def part(name: str, side: Sequence[ExampleRow]) -> SplitCounts:
        cells = pointwise_cells(side, reviews, ks, lengths) if reviews else pairwise_cells(side, comparisons, k, lengths)
        return describe(name, side, reviews=reviews, comparisons=comparisons, cells=cells, k=k)

    for fold in [None] if folds is None else range(folds):
        train, valid = sides(rows, fold, apart=apart)
        for name, side in (("training", train), ("validation", valid)):
            if not side and not empty_side:
                raise BadInput(_none_left(name, fold, options))
        if fold is None:
            parts.append(part("Train", train))
        validation = part("Valid" if fold is None else f"Fold {fold}", valid)
        seen = {
            "train_examples": None if fold is None else len(train),
            "texts_in_training": shared_texts(train, valid, comparisons) if comparisons else None,
        }
        parts.append(validation.model_copy(update=seen))
    return tuple(parts)


def _none_left(name: str, fold: int | None, options: Mapping[str, Any]) -> str:
    where = "" if fold is None else f" of fold {fold}"
    looser = " or give --split reviewer" if options["split"] == "reviewer_item" else ""
    least = "min-reviews" if "min_reviews" in options else "min-comparisons"
    repeats = (
        "; a reader's reviews that are alike are left out (--keep-repeats)" if options.get("keep_repeats") is False else ""
    )
    return f"no example is left for {name}{where}; add reviewers, raise --{least}{looser}{repeats}"
