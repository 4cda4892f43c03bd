"""Profiles and queries re-drawn for an epoch of training: `per_reviewer_epoch` (DESIGN.md, section 5).

The folder holds epoch 0. A later epoch is a function of the folder, its seed and the epoch's number: the reviewers of the side
stay, what each is shown and asked changes. Only what the folder holds is drawn from, so nothing crosses the split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from perse.data.profiles.profiles import Drawing, ExampleRow, pairwise_rows, pointwise_rows
from perse.data.profiles.selection import selection
from perse.data.works import works
from perse.errors import BadInput
from perse.records import Comparison, Review


def redrawn(
    rows: Sequence[ExampleRow],
    reviews: Mapping[str, Review],
    comparisons: Mapping[str, Comparison],
    options: Mapping[str, Any],
    epoch: int,
) -> list[ExampleRow]:
    """The rows of another epoch for the reviewers of `rows`, their ids ending in `-e` and its number.

    Args:
        rows: one side, as the folder has it.
        options: the manifest's.
    Raises:
        BadInput: the data set is not drawn by epoch.
    """
    if options["profiles"] != "per_reviewer_epoch":
        raise BadInput(f"profiles are drawn {options['profiles']}, not again in every epoch; build with per_reviewer_epoch")
    # A folder that says nothing of repeats is of an older perse, which kept them.
    keep = bool(options.get("keep_repeats", True))
    drawing = Drawing(options["max_k"], "per_reviewer_epoch", options["max_queries"], options["seed"], epoch, keep)
    prepare = selection(options["select"]).prepare
    first = {row.reviewer_id: row for row in rows}
    if reviews:
        mine = [one for one in reviews.values() if one.reviewer_id in first]
        made = pointwise_rows(_grouped(mine), works(mine), drawing, prepare=prepare)
    else:
        made = pairwise_rows(
            _grouped([one for one in comparisons.values() if one.reviewer_id in first]), drawing, prepare=prepare
        )
    return [
        replace(
            row,
            example_id=f"{row.example_id}-e{epoch}",
            split=first[row.reviewer_id].split,
            fold=first[row.reviewer_id].fold,
        )
        for row in made
    ]


def _grouped(records: Sequence[Any]) -> dict[str, list[Any]]:
    grouped: dict[str, list[Any]] = {}
    for record in records:
        grouped.setdefault(record.reviewer_id, []).append(record)
    return grouped
