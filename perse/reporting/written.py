"""The files of a consumer's report, and the refusal to replace anything else.

OUT/report.html    everything, in one file that needs no network
OUT/tables.md      the paper's tables
OUT/figures/NAME.* each plot as SVG and PNG, its numbers as CSV
OUT/results.json   the Result that all of it is made of
OUT/manifest.json  what it was made of
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from perse.drawing.figure import Figure
from perse.errors import BadInput
from perse.files.own_files import write_together
from perse.files.replacing import settle
from perse.files.runlog import MANIFEST
from perse.formats.plain_files import own_bytes
from perse.results.result import Result
from perse.secrets import redact_tree, without_keys

PAGE = "report.html"
NUMBERS = "results.json"
TABLES = "tables.md"
FIGURES = "figures"


def write_files(
    out: Path, result: Result, *, html: str, tables: str, figures: Iterable[Figure], manifest: Mapping[str, object] | None
) -> Path:
    """Write a report, without the keys that this process knows; where its page is.

    Args:
        tables: as Markdown.
        manifest: what it was made of; None for no such file.
    Raises:
        BadInput: `out` cannot be made.
    """
    contents = {NUMBERS: result.model_dump_json(indent=2) + "\n"}  # first, so that a killed report is recognized as one
    contents |= {TABLES: tables, PAGE: html}
    contents |= {MANIFEST: json.dumps(redact_tree(dict(manifest)), indent=2) + "\n"} if manifest is not None else {}
    drawn = {f"{FIGURES}/{name}": content for figure in figures for name, content in figure.files.items()}
    write_together(out, {**{name: without_keys(text).encode() for name, text in contents.items()}, **drawn})
    return out / PAGE


def refuse_other(out: Path, *, result: str, what: str) -> None:
    """Refuse to replace anything but a report of this kind.

    Args:
        result: the name of its Result.
        what: such a report in words, "KGDS report".
    Raises:
        BadInput: `out` is a file, or a folder that holds something else.
    """
    if out.is_file():
        raise BadInput(f"{out} is a file; give a folder for the report")
    settle(out)  # what a kill left half in its place, by which it is not known
    if not out.exists() or all(entry.name.startswith(".") for entry in out.iterdir()):
        return
    try:
        ours = Result.model_validate_json(own_bytes(out / NUMBERS)).name == result
    except (FileNotFoundError, IsADirectoryError, ValidationError):
        ours = False
    if not ours:
        raise BadInput(f"{out} is not empty and holds no {what}; choose another folder with --out")
