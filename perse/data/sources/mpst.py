"""Texts by item: any table of them, and the Movie Plot Synopses with Tags corpus (MPST), whose plots Per-MPST's reviews are about
(PerSE, section 4.1).

They hold no reviews: `table.read_reviews` joins a table of reviews, by item id, with what is read here. Only ids, titles and texts
are kept; MPST's tags, split and source are not used. The titles are for anonymizing: a judge is not shown them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perse.data.sources.facts import Facts, item_facts
from perse.data.sources.faults import Faults
from perse.data.sources.rows import Row, read_rows, usable
from perse.data.sources.source import Source, table_columns
from perse.identity import item_of
from perse.records.columns import ITEMS, mapping_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One film's plot."""

    item_id: str
    """The IMDb id, such as tt0113862."""
    title: str | None
    text: str


def read_mpst(
    path: Path,
    faults: Faults,
    *,
    columns: Mapping[str, str] | None = None,
    hints: Mapping[str, str] | None = None,
    by_words: bool = False,
) -> dict[str, Plot]:
    """item_id -> plot, in the order of the file (mpst_full_data.csv: imdb_id, title, plot_synopsis; or any table of texts).

    A row without id or plot, or with a repeated id, is a bad row.

    Args:
        columns: the user's mapping, of which `items.item_id`, `items.text` and `text` are about this file.
        hints: as in `rows.read_rows`.
        by_words: a table without a column of ids has each text known by its words (`identity.item_of`).
    Raises:
        BadInput: the file cannot be used, or no row is left; the first bad row, if those are to stop the reading.
    """
    plots: dict[str, Plot] = {}
    lines: dict[str, int] = {}

    def read(row: Row) -> None:
        named = row.header.columns_for("item_id") is not None or row.header.is_mapped("item_id") or not by_words
        given = row.text("item_id", reason="item without id") if named else None
        text = row.text("text", reason="item without text")
        plot = Plot(item_id=given or item_of(text), title=row.optional_text("title"), text=text)
        if (first := lines.setdefault(plot.item_id, row.line)) != row.line:
            row.bad("item_id", f"'{plot.item_id}' already stands on line {first}; keep one", reason="item listed twice")
        plots[plot.item_id] = plot

    usable(read_rows(path, mapping_for(ITEMS, columns or {}, with_items=True), faults, role=ITEMS, hints=hints), read, faults)
    return plots


def plot_texts(plots: dict[str, Plot]) -> dict[str, str]:
    """item_id -> the plot's text: what `table.read_reviews` takes as its items."""
    return {item_id: plot.text for item_id, plot in plots.items()}


def _facts(path: Path, faults: Faults) -> Iterator[Facts]:
    for row in read_rows(path, {}, faults, role=ITEMS):
        yield item_facts(row, faults, text=lambda row: row.text("text", reason="item without text"))


ITEM_TEXTS = Source(
    name="items",
    title="table of texts by item",
    recognise=lambda head: head.has(ITEMS, "item_id", "text"),
    columns=lambda path: table_columns(read_rows(path, {}, Faults("skip", keep=1), role=ITEMS), ITEMS),
    facts=_facts,
    once="item",
    next=lambda seen: f"perse data pointwise --reviews {seen.reviews} --items {seen.file} --out {seen.out}",
)

MPST = replace(
    ITEM_TEXTS,
    name="mpst",
    title="MPST plots",
    recognise=lambda head: {"imdbid", "plotsynopsis"} <= head.plain_names,
    next=lambda seen: f"perse data per-mpst --plots {seen.file} --reviews {seen.reviews} --out {seen.out}",
)
