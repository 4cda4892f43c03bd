"""Examples from a table of reviews and a table of texts: every reader is asked about every text that they have not reviewed.

Files are read as `perse data` reads them; what is asked is decided where `Judge.score` decides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perse.batch.sharded.catalogue_inputs import read_candidates
from perse.batch.sharded.inputs import digests_of, together
from perse.data.load import LoadedExamples
from perse.data.sources.faults import Faults
from perse.data.sources.source import Head
from perse.data.sources.table import read_items, read_reviews
from perse.judging.everyone import everyone
from perse.records.columns import REVIEWS, Header, check_fields
from perse.scale import OwnScale


def load_tables(
    reviews: Path,
    texts: Path,
    candidates: str | None,
    *,
    columns: Mapping[str, str],
    scale: OwnScale | None,
    k: int | None,
    faults: Faults | None = None,
) -> tuple[LoadedExamples, int]:
    """The examples, and how many more are not asked about, since the reader's own reviews have the text.

    Args:
        candidates: a file with the pairs to judge; None: all.
        columns: our field -> column (`--map`); of the candidates, where they have such a column.
        scale: of the reviews, where it is another than 1 to 10.
        k: latest reviews of a reader to show; None: as many as fit.
        faults: takes the rows of both tables that cannot be used; without it, and where it stops at them, the first is an error.
    Raises:
        BadInput: a file that cannot be used; the first row that cannot, with file, line and field; nothing to ask.
    """
    check_fields(columns, REVIEWS, with_items=True)
    faults = faults or Faults()
    by_id = read_items(texts, columns, faults, by_words=True)
    names, elsewhere = Head(reviews).names, Head(texts).names  # a field may be mapped to a column of the texts alone
    mine = {
        field: column
        for field, column in columns.items()
        if not field.startswith("items.") and (column in names or column not in elsewhere)
    }
    header = Header(names, mine)
    text, review = header.columns_for("text"), header.columns_for("review")
    if review is None and text is not None and "text" not in mine and "review" not in mine:
        mine, text = mine | {"review": "+".join(text)}, None  # beside a file of texts, it is what the reader wrote
    past = read_reviews(reviews, by_id if text is None else None, faults, columns=mine, scale=scale or (1, 10))
    hints = {field: column for field, column in columns.items() if field in ("reviewer_id", "item_id")}
    only = None
    if candidates is not None:  # ids as those of the other tables are read
        only = [(one.reader.strip(), one.text.strip()) for one in read_candidates(candidates, hints)]
    asked = everyone(past, by_id, only=only, k=k, scale=scale)
    digests = [one for file in (str(reviews), str(texts), candidates) if file for one in digests_of(file)]
    return LoadedExamples([*asked.examples], together(digests), None, None), asked.left_out
