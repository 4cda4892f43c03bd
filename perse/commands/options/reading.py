"""How the values of options with a form of their own are read: FIELD=COLUMN, NAME=PATH, LOW-HIGH, numbers with commas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from perse.commands.options import NAMED
from perse.errors import BadInput
from perse.scale import OwnScale, check_own


def read_columns(options: Sequence[str] | None) -> dict[str, str]:
    """`--map FIELD=COLUMN` options as a mapping.

    Raises:
        BadInput: one has another form, or a field is mapped twice.
    """
    columns: dict[str, str] = {}
    for name, column in read_pairs(options, option="--map", example="text=plot", shape="FIELD=COLUMN"):
        if name in columns:
            raise BadInput(
                f"--map {name}={column}: field '{name}' is mapped twice, to '{columns[name]}' before; join columns with +"
            )
        columns[name] = column
    return columns


def read_named(options: Sequence[str] | None, option: str) -> dict[str, Path]:
    """NAME=PATH options as a mapping.

    Raises:
        BadInput: one has another form, or a name is given twice.
    """
    found: dict[str, Path] = {}
    for name, path in read_pairs(options, option=option, example="raw=plots.csv", shape=NAMED):
        if name in found:
            raise BadInput(f"{option} {name}={path}: '{name}' is given twice; give each a name of its own")
        found[name] = Path(path)
    return found


def read_pairs(options: Sequence[str] | None, *, option: str, example: str, shape: str = "NAME=VALUE") -> list[tuple[str, str]]:
    """`NAME=VALUE` options, taken apart.

    Raises:
        BadInput: one has another form.
    """
    pairs = []
    for given in options or ():
        name, equals, value = (part.strip() for part in given.partition("="))
        if not (name and equals and value):
            raise BadInput(f"{option} {given}: expected {shape}, such as {option} {example}")
        pairs.append((name, value))
    return pairs


def read_scale(text: str) -> tuple[float, float]:
    """The bounds of `--scale LOW-HIGH`.

    Raises:
        BadInput: it has another form.
    """
    number = r"([+-]?\d+(?:\.\d+)?)"
    found = re.fullmatch(rf"\s*{number}\s*-\s*{number}\s*", text)
    if found is None:
        raise BadInput(f"--scale {text}: expected LOW-HIGH, such as --scale 1-5")
    return float(found.group(1)), float(found.group(2))


def own_scale(given: str) -> OwnScale | None:
    """The scale of `--scale`; None for 1 to 10.

    Raises:
        BadInput: it is none.
    """
    try:
        scale = check_own(read_scale(given))
    except ValueError as error:
        raise BadInput(f"--scale {given}: {error}") from None
    return None if scale == (1, 10) else scale


def read_numbers(text: str | None, option: str) -> list[int] | None:
    """From "0,1,3".

    Raises:
        BadInput: a part of it is no whole number.
    """
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise BadInput(f"{option} is '{text}'; write numbers with commas, as in 0,1,3") from None
