"""What stands in the way of a build, in one sentence: then no command is shown, since none could work."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from perse.data.sources.faults import Faults
from perse.data.sources.lines import json_suffix, whole_json
from perse.errors import BadInput

NO_FILE = "put right what is above: as it is, the file cannot be read and nothing be built from it"

CROSSED = (
    "readers compare the same pairs, so that training is left with next to nothing where it may share none with validation; with --split reviewer "
    "the two sides share pairs, and no readers"
)


def repeated(without: int, readers: int) -> str:
    """That so many of the readers whom a build keeps say so much twice that none of their reviews has a whole profile of other words."""
    return (
        f"readers say the same of several texts: without --keep-repeats there is no whole profile for {without:,} of the {readers:,} who have "
        "enough reviews, and with it a profile may show the very review that is asked for"
    )


def no_rows(rows: int, reasons: Mapping[str, int]) -> str:
    """That no row can be used, and the commonest reason."""
    reason = max(reasons, key=lambda one: (reasons[one], one), default="")
    what = "the row cannot be used" if rows == 1 else f"none of the {rows:,} rows can be used"
    return f"{what}{f' ({reason})' if reason else ''}: put right what is above"


def too_few(usable: Mapping[str, int], unit: str) -> str | None:
    """That a data set needs two readers, one for each side, who each have an entry for the profile and one to be asked about.

    Args:
        usable: reader -> how many rows can be used.
    """
    enough = sum(count > 1 for count in usable.values())
    if enough > 1:
        return None
    found = "no reader has" if not enough else "only one reader has"
    return f"a data set needs two readers with two {unit} each, and here {found} so many: give a file with more"


def wrapped(path: Path) -> str | None:
    """That a file of JSON is one object around its rows, and how to make lines of it; None where it is not."""
    if not json_suffix(path):
        return None
    try:
        found = whole_json(path, Faults("skip", keep=1))
    except BadInput:
        return None
    if not isinstance(found, dict):
        return None
    inside, take = _around(found)
    if inside is None:
        return None
    name = re.sub(r"\.(jsonl?)(\.gz)?$", "", path.name)
    lines = path.with_name(f"{name}.jsonl" if path.name != f"{name}.jsonl" else f"{name}-lines.jsonl")
    file = shlex.quote(str(path))
    make = f"jq -c {shlex.quote(take)}"
    command = f"gunzip -c {file} | {make}" if path.suffix == ".gz" else f"{make} {file}"
    return f"the file is one object that holds {inside}; make a line of each: {command} > {shlex.quote(str(lines))}"


def _around(found: Mapping[str, object]) -> tuple[str | None, str]:
    """What the object holds, in words, and the expression of jq that takes it out."""
    lists = [name for name, value in found.items() if _is_rows(value)]
    if len(found) > 1 and len(lists) == len(found):
        return "a list of rows under each key", "to_entries[] | {key} + .value[]"
    if lists:
        name = max(lists, key=lambda one: len(found[one]))  # type: ignore[arg-type]
        key = f".{name}" if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else f".[{json.dumps(name)}]"
        return f"the rows under '{name}'", f"{key}[]"
    if len(found) > 1 and all(isinstance(value, dict) for value in found.values()):
        return "one row under each key", "to_entries[] | {key} + .value"
    return None, ""


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)
