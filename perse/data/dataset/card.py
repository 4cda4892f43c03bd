"""The data card: the README.md of a data set folder, for a person who finds it and for the hub.

Its YAML header lets the folder be pushed to the Hugging Face hub as it is, and `datasets.load_dataset(FOLDER, "examples")` read
it. Train and validation stand in one file, told apart by its column, so the header's only split is called `rows`.

It is written anew when a person leaves the folder, whose manifest may be damaged by then: sources and rewriting, which nothing else needs, are left out if they are of
another shape, since a person's leaving must not wait for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from perse.data.dataset.table1 import table1_cells
from perse.formats.templates import templates

_RECORDS = {"pointwise": "reviews", "pairwise": "comparisons"}


class _Named(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    name: str


class _Source(_Named):
    sha256: str


class _Rewriting(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    rewritten: int
    texts: int
    with_survivors: int
    tries: dict[str, dict[str, int]]
    writer: _Named
    recognizer: _Named


def data_card(manifest: Mapping[str, Any]) -> str:
    """What the data set is, counts, how it was built, licence and privacy, as Markdown under a YAML header."""
    records = _RECORDS[manifest["kind"]]
    counts = manifest["counts"]
    dropped = manifest["dropped"].items()
    values = {
        **manifest,
        "rewriting": _in_shape(manifest.get("rewriting"), _Rewriting),
        "sources": _in_shape(manifest.get("sources"), dict[str, _Source]) or {},
        "records": records,
        "header": hub_header({"examples": "examples.parquet", records: f"{records}.parquet"}, rows=counts["records"]),
        "notes": parts_notes(counts["parts"], split=manifest["options"]["split"]),
        "table1": table1_cells(counts["parts"]),
        "left_out": [(count, unit, reason) for unit, reasons in dropped for reason, count in sorted(reasons.items())],
    }
    environment = templates("perse.data.dataset", shown=_shown, settings=_settings, counts=_counts)
    return environment.get_template("card.md.jinja").render(values)


def _in_shape(found: Any, shape: Any) -> Any:
    """As it is, or None if it has another shape."""
    try:
        TypeAdapter(shape).validate_python(found)
    except ValidationError:
        return None
    return found


def hub_header(files: Mapping[str, str], *, rows: int) -> str:
    """The YAML header of a card, as the hub reads it: a configuration for each file, the first being the default."""
    configs = [
        {"config_name": name, "data_files": [{"split": "rows", "path": path}], **({} if place else {"default": True})}
        for place, (name, path) in enumerate(files.items())
    ]
    fields = {
        "pretty_name": "perse data set",
        "tags": ["personalization", "llm-as-a-judge", "perse"],
        "size_categories": [_size(rows)],
        "configs": configs,
    }
    return f"---\n{yaml.safe_dump(fields, sort_keys=False)}---\n"


def _size(rows: int) -> str:
    """The hub's name for a number of rows."""
    bounds = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")]
    return next((name for bound, name in bounds if rows < bound), "1M<n<10M")


def parts_notes(parts: Sequence[Mapping[str, Any]], *, split: str) -> tuple[str, ...]:
    """What readers of a result must know of the examples, from the manifest's `parts`."""
    return (*_shared_texts_notes(parts, split=split), *_shared_profiles_notes(parts))


def _shared_profiles_notes(parts: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """How often one example shows what another asks; nothing where none does, or an older perse did not count it."""
    show, shown, examples = (
        sum(part.get(name) or 0 for part in parts) for name in ("show_queries", "queries_shown", "examples")
    )
    if not show:
        return ()
    return (
        f"of {examples:,} examples {show:,} ({show / examples:.0%}) show a query of another example of the same reader, and {shown:,} "
        f"({shown / examples:.0%}) ask what stands answered in another's profile; PerSE holds them apart: --profiles per_example_apart",
    )


def _shared_texts_notes(parts: Sequence[Mapping[str, Any]], *, split: str) -> tuple[str, ...]:
    """How many validation texts are also in training, from the manifest's `parts`; nothing for reviews.

    `reviewer_item` keeps pairs apart, not the single texts in them (PerSE, section 4.1), so readers of an accuracy must
    know how many texts were not new.
    """
    counted = [part for part in parts if part.get("texts_in_training") is not None]
    if not counted:
        return ()
    shares = [f"{part['texts_in_training']} of {part['texts']}" for part in counted]
    other = ", in other pairs" if split == "reviewer_item" and any(part["texts_in_training"] for part in counted) else ""
    if len(counted) == 1:
        return (f"{shares[0]} validation texts also stand in training{other}",)
    by_fold = "; ".join(f"{part['name']}: {share}" for part, share in zip(counted, shares, strict=True))
    return (f"validation texts that also stand in training{other}: {by_fold}",)


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={part}" for name, part in sorted(value.items())) or "none"
    return "none" if value is None else str(value)


def _settings(writer: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in writer.items() if name != "name" and value)


def _counts(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())
