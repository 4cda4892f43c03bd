"""Ratings of a file, for `perse agreement`.

Two layouts, told apart by the first row: one rating per row, or one group per row with lists of lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from perse.data.sources.lines import read_records
from perse.data.sources.rows import Row, read_rows
from perse.errors import BadInput
from perse.evaluation.annotators.measuring import Ratings
from perse.formats.json_text import shortened
from perse.records.scores import number_in

FIELDS = ("item", "annotator", "score", "dimension", "group")
HINTS = {"item": "item_id", "annotator": "annotator_id", "score": "rating", "dimension": "aspect", "group": "group_id"}
ALL = "score"
"""The dimension's name if the file has no column for it."""

_Rating = tuple[int, str, str, str, str, float]
"""Line, item, group, annotator, dimension, score."""


def read_ratings(path: Path, columns: Mapping[str, str]) -> list[Ratings]:
    """The ratings of a file by dimension, in the order in which dimensions, items and annotators first appear.

    Raises:
        BadInput: a file that cannot be used, a field that is not known, a score that is no number, an item rated twice by an
            annotator on a dimension, or no item that two annotators rated.
    """
    if strangers := [field for field in columns if field not in FIELDS]:
        raise BadInput(f"--map {strangers[0]}: no such field; expected one of {', '.join(FIELDS)}")
    first = next((values for _, values in read_records(path)), {})
    wide = not columns and any(_is_meant_wide(value) for value in first.values())
    ratings = list(_wide(path) if wide else _long(path, columns))
    known: dict[tuple[str, str, str], int] = {}
    for line, item, _, annotator, dimension, _ in ratings:
        if (before := known.setdefault((dimension, item, annotator), line)) != line:
            where = f"{path}, line {line}: '{annotator}' already rated item '{item}' on '{dimension}' on line {before}"
            raise BadInput(f"{where}; keep one rating")
    found = [_of_dimension(name, ratings) for name in dict.fromkeys(rating[4] for rating in ratings)]
    if not any(((~np.isnan(one.scores)).sum(axis=1) >= 2).any() for one in found):
        raise BadInput(f"{path}: no item was rated by two annotators on one dimension; agreement needs two ratings of an item")
    return found


def _is_wide(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, list) and one for one in value)


def _is_meant_wide(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(one, list) for one in value)


def _wide(path: Path) -> Iterable[_Rating]:
    lines = list(read_records(path))
    raters = {
        name: (len(items[0]), line)
        for line, values in reversed(lines)
        for name, items in values.items()
        if isinstance(items, list) and _is_wide(items)
    }  # of the first item of each dimension, and where it stands
    for line, values in lines:
        for dimension, items in values.items():
            if (dimension not in raters and not _is_meant_wide(items)) or items is None or items == []:
                continue  # a text, or whatever else goes with the ratings
            if not _is_wide(items):
                raise BadInput(
                    f"{path}, line {line}, field '{dimension}': found {shortened(items)}, expected a list with a list of ratings for each item"
                )
            assert isinstance(items, list)
            for position, given in enumerate(items, start=1):
                many, first = raters[dimension]
                if len(given) != many:
                    raise BadInput(
                        f"{path}, line {line}, field '{dimension}', item {position}: found {len(given)} ratings, expected {many}, one of each "
                        f"annotator, as of the first item (line {first}); give null where there is no rating"
                    )
                for annotator, value in enumerate(given, start=1):
                    if value is None:
                        continue
                    if (score := number_in(value)) is None:
                        where = f"{path}, line {line}, field '{dimension}', item {position}, annotator {annotator}"
                        raise BadInput(
                            f"{where}: found {shortened(value)}, expected a number, or null where there is no rating"
                        )
                    yield line, f"{line}.{position}", str(line), str(annotator), dimension, score


def _long(path: Path, columns: Mapping[str, str]) -> Iterable[_Rating]:
    for row in read_rows(path, columns, hints=HINTS):
        item, annotator = row.text("item", reason="no item"), row.text("annotator", reason="no annotator")
        dimension = row.optional_text("dimension") or ALL
        score = _score(row)
        if score is not None:
            yield row.line, item, row.optional_text("group") or item, annotator, dimension, score


def _score(row: Row) -> float | None:
    """The score of a row; None if it is empty (not rated)."""
    value = row.need("score")
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    score = number_in(value)
    if score is None:
        row.bad(
            "score", f"found {shortened(value)}, expected a number, or nothing where there is no rating", reason="no number"
        )
    return score


def _of_dimension(name: str, ratings: Iterable[_Rating]) -> Ratings:
    of_this = [rating for rating in ratings if rating[4] == name]
    items = {item: at for at, item in enumerate(dict.fromkeys(rating[1] for rating in of_this))}
    annotators = {one: at for at, one in enumerate(dict.fromkeys(rating[3] for rating in of_this))}
    group_of = {rating[1]: rating[2] for rating in of_this}
    groups = {group: at for at, group in enumerate(dict.fromkeys(group_of.values()))}
    scores = np.full((len(items), len(annotators)), np.nan)
    for _, item, _, annotator, _, score in of_this:
        scores[items[item], annotators[annotator]] = score
    group = np.array([groups[group_of[item]] for item in items], dtype=np.int64)
    return Ratings(name, tuple(annotators), scores, group)
