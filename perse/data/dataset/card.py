"""The data card: the README.md of a data set folder, for a person who finds it and for the hub.

Its YAML header lets the folder be pushed to the Hugging Face hub as it is, and `datasets.load_dataset(FOLDER, "examples")` read
it. Train and validation stand in one file, told apart by its column, so the header's only split is called `rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from perse.data.dataset.table1 import table1_markdown

_KINDS = {
    "pointwise": (
        "reviews",
        "Would this reader like this text, and what would they say? From k reviews of theirs, the next one.",
    ),
    "pairwise": ("comparisons", "Which of two texts would this reader prefer, aspect by aspect? From k of theirs."),
}


def data_card(manifest: Mapping[str, Any]) -> str:
    """What the data set is, counts, how it was built, licence and privacy, as Markdown under a YAML header."""
    records, question = _KINDS[manifest["kind"]]
    options = manifest["options"]
    counts = manifest["counts"]
    if options["keep_names"]:
        names = "Reviewers stand under their own names (`keep_names`): do not pass this folder on without their consent."
    else:
        salt = "was derived from the seed above" if options["salt"] == "from seed" else "is not in this folder"
        names = (
            "Reviewers stand under pseudonyms, keyed hashes of their names. Whoever knows the salt can compute a person's\n"
            f"pseudonym from the name; the salt {salt}. Texts are unchanged and may still tell who wrote them."
        )
    sides = [
        f"| {part['name']} | {part['reviewers']} | {part['examples']} | {part['texts']} | {part['words']:.0f} |"
        for part in counts["parts"]
    ]
    dropped = [
        f"- {count} {unit}: {reason}"
        for unit, reasons in manifest["dropped"].items()
        for reason, count in sorted(reasons.items())
    ]
    rewriting = manifest.get("rewriting")
    lines = [
        *hub_header({"examples": "examples.parquet", records: f"{records}.parquet"}, rows=counts["records"]),
        f"# A perse data set: {records}",
        "",
        question,
        "",
        "| part | reviewers | examples | distinct texts | words of a prompt |",
        "|---|---|---|---|---|",
        *sides,
        "",
        *[
            line
            for note in shared_texts_notes(counts["parts"], split=options["split"])
            for line in (f"{note[0].upper()}{note[1:]}.", "")
        ],
        "Of PerSE's table 1:",
        "",
        *table1_markdown(counts["parts"]),
        "",
        f"`{records}.parquet` holds {counts['records']} {records} of {counts['reviewers']} reviewers, `examples.parquet` the",
        "queries and profiles by id, `manifest.json` every option. `perse data export` writes self-contained JSON lines.",
        "",
        "## How it was built",
        "",
        f"By perse {manifest['perse']} from:",
        "",
        *[f"- {role}: `{source['name']}`, sha256 {source['sha256']}" for role, source in manifest["sources"].items()],
        "",
        "With:",
        "",
        *[f"- {name}: {_shown(value)}" for name, value in sorted(options.items())],
        "",
        "Left out:",
        "",
        *(dropped or ["- nothing"]),
        "",
        *(_rewriting(rewriting) if rewriting else []),
        "## Licence",
        "",
        "That of the source files: perse adds none. Fill it in before you pass the folder on.",
        "",
        "## People",
        "",
        names,
        "",
    ]
    return "\n".join(lines)


def hub_header(files: Mapping[str, str], *, rows: int) -> list[str]:
    """The YAML header of a card, as the hub reads it: a configuration for each file, the first being the default."""
    configs = [
        {"config_name": name, "data_files": [{"split": "rows", "path": path}], **({} if place else {"default": True})}
        for place, (name, path) in enumerate(files.items())
    ]
    said = {
        "pretty_name": "perse data set",
        "tags": ["personalization", "llm-as-a-judge", "perse"],
        "size_categories": [_size(rows)],
        "configs": configs,
    }
    return ["---", *yaml.safe_dump(said, sort_keys=False).splitlines(), "---", ""]


def _size(rows: int) -> str:
    """The hub's name for a number of rows."""
    bounds = [(1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")]
    return next((name for bound, name in bounds if rows < bound), "1M<n<10M")


def _rewriting(made: Mapping[str, Any]) -> list[str]:
    """How the texts were anonymized and summarized, and what is left to watch."""
    writer = made["writer"]
    tries = [
        f"- {step}: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}"
        for step, kinds in made["tries"].items()
        if kinds
    ]
    return [
        "## How the texts were rewritten",
        "",
        f"{made['rewritten']} of {made['texts']} texts came through; names found by {made['recognizer']['name']}, replaced by code.",
        f"Written by {writer['name']} ({', '.join(f'{name} {value}' for name, value in writer.items() if name != 'name' and value)}).",
        "",
        "What each try came to:",
        "",
        *tries,
        "",
        f"In {made['with_survivors']} texts the recognizer found names that were not replaced; `rewriting.jsonl` counts them.",
        "",
    ]


def shared_texts_notes(parts: Sequence[Mapping[str, Any]], *, split: str) -> tuple[str, ...]:
    """How many validation texts also stand in training, from the manifest's `parts`; nothing for reviews.

    `reviewer_item` keeps pairs apart, not the single texts in them (PerSE, section 4.1), so whoever reads an accuracy must
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
        return ", ".join(f"{name}={one}" for name, one in sorted(value.items())) or "none"
    return "none" if value is None else str(value)
