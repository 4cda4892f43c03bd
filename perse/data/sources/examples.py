"""Perse's own files: whole examples, which every judging command reads, and data set folders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perse.data.sources.facts import Facts, example_facts, record_facts
from perse.data.sources.faults import Faults
from perse.data.sources.lines import read_records
from perse.data.sources.source import Columns, Head, Source


def _facts(path: Path, faults: Faults) -> Iterator[Facts]:
    return (example_facts(values) for _, values in read_records(path, faults))


def _is_example(head: Head) -> bool:
    return {"id", "profile", "query"} <= set(head.names)


POINTWISE = Source(
    name="pointwise",
    title="pointwise examples",
    recognise=_is_example,
    facts=_facts,
    next=lambda seen: f"perse score --examples {seen.file} --judge {seen.judge} --out {seen.out}",
)

PAIRWISE = replace(
    POINTWISE,
    name="pairwise",
    title="pairwise examples",
    recognise=lambda head: _is_example(head) and any(isinstance(values.get("query"), dict) for values in head.records),
)

SUMMARIES = replace(
    POINTWISE,
    name="summaries",
    title="summaries of reviews",
    recognise=lambda head: {"id", "reviews", "summary"} <= set(head.names),
    next=lambda seen: f"perse score --examples {seen.file} --question coverage --judge {seen.judge} --out {seen.out}",
)

VERBATIM = replace(
    POINTWISE, name="verbatim", title="verbatim examples", recognise=lambda head: {"id", "prompt"} <= set(head.names)
)

UNKNOWN = Source(
    name="unknown",
    title="unknown",
    recognise=lambda head: True,
    facts=_facts,
    next=lambda seen: (
        f"perse data pointwise --reviews {seen.file} --map reviewer_id=COLUMN --map score=COLUMN --map review=COLUMN --out {seen.out}"
    ),
    note=lambda seen: (
        f"the command below is for a table of reviews; if these are the texts that are reviewed: perse quickstart {seen.reviews} {seen.file}, which finds columns by their values; of one that "
        f"compares two texts: perse data pairwise --pairs {seen.file} --map FIELD=COLUMN for reviewer_id, aspect, preference, text_a and text_b"
    ),
)
"""Files whose columns fit nothing."""


def _is_folder(head: Head) -> bool:
    if not head.path.is_dir():
        return False
    # Imported here, since reading a data set needs pyarrow and most files are not data sets.
    from perse.data.dataset.folder import is_data_folder

    return is_data_folder(head.path)


def _folder_facts(path: Path, faults: Faults) -> Iterator[Facts]:
    from perse.data.dataset.parquet import read_parquet

    reviews = path / "reviews.parquet"
    return map(record_facts, read_parquet(reviews if reviews.exists() else path / "comparisons.parquet"))


FOLDER = Source(
    name="folder",
    title="perse data set",
    recognise=_is_folder,
    columns=lambda path: Columns(),
    facts=_folder_facts,
    next=lambda seen: f"perse data export {seen.file} --split valid --out valid.jsonl",
)
