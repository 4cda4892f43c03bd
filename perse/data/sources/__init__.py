"""The raw formats that perse reads: a file and a line here for each (`Source`), all giving `perse.records`.

They stand on `lines` (files as records with line numbers), `perse.records.columns` (which column holds what), `rows` (values as texts, scores,
answers), `faults` (bad rows) and `facts` (what a description counts). `perse data describe`, `--source` of the building commands
and the list in docs/data.md are this registry; other packages add to it under the entry-point group `perse.sources`.
"""

from __future__ import annotations

from pathlib import Path

from perse.data.sources.amazon import AMAZON, AMAZON_RATINGS, PRODUCTS
from perse.data.sources.doc import DOC
from perse.data.sources.examples import FOLDER, PAIRWISE, POINTWISE, SUMMARIES, UNKNOWN, VERBATIM
from perse.data.sources.mpst import ITEM_TEXTS, MPST
from perse.data.sources.release import RELEASED_DOC, RELEASED_MPST
from perse.data.sources.source import Head, Source
from perse.data.sources.table import NO_ASPECT, PAIR_TABLE, RATINGS, REVIEW_TABLE
from perse.errors import BadInput
from perse.records import Kind
from perse.registry import Registry

SOURCES: Registry[Source] = Registry(
    "perse.sources",
    (
        FOLDER,
        AMAZON_RATINGS,
        AMAZON,
        PRODUCTS,
        RELEASED_MPST,
        RELEASED_DOC,
        PAIRWISE,
        POINTWISE,
        SUMMARIES,
        VERBATIM,
        MPST,
        PAIR_TABLE,
        DOC,
        NO_ASPECT,
        REVIEW_TABLE,
        RATINGS,
        ITEM_TEXTS,
        UNKNOWN,
    ),
    needs=("title", "recognise", "columns", "read", "facts_of", "next_command"),
)
"""In the order of detection: sources with columns of their own come before the tables."""


def recognised(path: Path) -> Source:
    """The source of the file or folder `path`; `UNKNOWN` if its columns fit none. Those of other packages are tried first.

    A guess for people, which `perse data describe` shows. Builds do not ask it: they read as they are told, and refuse what
    cannot be read so.

    Raises:
        BadInput: it cannot be read at all: absent, empty, damaged, or without a known suffix.
    """
    head = Head(path)
    added = [source for name, source in SOURCES.items() if name not in SOURCES.own]
    return next(source for source in (*added, *SOURCES.own.values()) if source.recognise(head))


def source_named(name: str, kind: Kind) -> Source:
    """The source called `name`, of which data sets of `kind` are built. Raises `BadInput` where there is none."""
    known = {source.name: source for source in SOURCES.values() if source.kind == kind}
    if name not in known:
        raise BadInput(f"--source {name}: no source of {kind} data; expected one of {', '.join(known)}")
    return known[name]
