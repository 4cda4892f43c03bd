"""What kind of file a file is, told by its columns: the first records are looked at, never the name.

A guess for people: `perse data describe` shows it. Readers do not ask it; each refuses what it cannot read by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum
from itertools import islice
from pathlib import Path

from perse.data.sources.amazon import headerless, is_ratings_row
from perse.data.sources.columns import Header, Role, plain_name
from perse.data.sources.doc import is_long, question_columns
from perse.data.sources.faults import Faults
from perse.data.sources.lines import first_fields, is_csv, read_records
from perse.errors import BadInput

LOOKED_AT = 20
"""So many records say what the file is."""


class Format(StrEnum):
    """The kinds of files that are told apart; the value is what a person is shown."""

    REVIEWS = "table of reviews"
    ITEMS = "table of texts by item"
    PAIRS = "table of comparisons"
    RATINGS = "ratings without review texts"
    MPST = "MPST plots"
    DOC = "plot comparisons, a column for each question"
    AMAZON = "Amazon reviews"
    PRODUCTS = "Amazon products"
    RELEASED_MPST = "released Per-MPST examples"
    RELEASED_DOC = "released Per-DOC examples"
    POINTWISE = "pointwise examples"
    PAIRWISE = "pairwise examples"
    VERBATIM = "verbatim examples"
    FOLDER = "perse data set"
    UNKNOWN = "unknown"


def sniff(path: Path) -> Format:
    """What `path` holds; `UNKNOWN` where its columns fit nothing.

    Raises:
        BadInput: it cannot be read at all: absent, empty, damaged, or of a name that says no format.
    """
    if path.is_dir():
        # Here, since reading a data set needs pyarrow, and most files are none.
        from perse.data.dataset.folder import is_data_folder

        return Format.FOLDER if is_data_folder(path) else Format.UNKNOWN
    if is_csv(path):
        if is_ratings_row(first_fields(path)):
            return Format.RATINGS
        if headerless(path):
            return Format.AMAZON
    records = [values for _, values in islice(read_records(path, Faults("skip", keep=1), literals=True), LOOKED_AT)]
    names = list(dict.fromkeys(name for values in records for name in values))
    return _examples(names, records) or _published(names) or _table(path, names)


def _examples(names: Sequence[str], records: Sequence[dict[str, object]]) -> Format | None:
    """The files made of whole examples, ours and the paper's."""
    if {"idx", "prompt", "completion"} <= set(names):
        return Format.RELEASED_MPST if "examples" in names else Format.RELEASED_DOC
    if {"id", "profile", "query"} <= set(names):
        pairs = any(isinstance(values.get("query"), dict) for values in records)
        return Format.PAIRWISE if pairs else Format.POINTWISE
    return Format.VERBATIM if {"id", "prompt"} <= set(names) else None


def _published(names: Collection[str]) -> Format | None:
    """The corpora with columns of their own."""
    plain = {plain_name(name) for name in names}
    if {"imdbid", "plotsynopsis"} <= plain:
        return Format.MPST
    if not plain & {"asin", "parentasin"}:
        return None
    if not plain & {"reviewerid", "userid"}:
        return Format.PRODUCTS if "title" in plain else None
    if plain & {"reviewtext", "text"}:
        return Format.AMAZON
    return Format.RATINGS if plain & {"overall", "rating"} else None


def _table(path: Path, names: Sequence[str]) -> Format:
    """The tables whose columns are found by field."""
    header = Header(names, {}, hints={"item_id": "id"} if "item_id" not in names else {})

    def has(*fields: str) -> bool:
        return all(header.columns_for(field) is not None for field in fields)

    if has("reviewer_id"):
        if has("aspect", "preference"):
            return Format.PAIRS
        plots = Header(names, {}, hints={}, role=Role.DOC)
        if plots.columns_for("text_a") and plots.columns_for("text_b") and not is_long(names, {}):
            return Format.DOC if _asks(path, names) else Format.UNKNOWN
        if has("score"):
            return Format.REVIEWS if has("review") else Format.RATINGS
        return Format.UNKNOWN
    return Format.ITEMS if has("item_id", "text") else Format.UNKNOWN


def _asks(path: Path, names: Sequence[str]) -> bool:
    try:
        return bool(question_columns(path, names, {}))
    except BadInput:
        return False
