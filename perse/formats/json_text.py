"""JSON that others wrote, parsed in one place: what is wrong with it is one sentence that names the file, or the line.

Python's parser goes as deep as its stack, and whatever walks through the value afterwards (redacting, writing it again) may need
more. So values that are nested deeper than any file of ours are refused here; no caller meets a RecursionError.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.formats.plain_files import refuse_endless, refuse_larger

LARGEST = 1 << 29
"""Bytes of a file that is parsed whole; those of ours have some MB, and Python's values take ten times as much memory."""
DEEPEST = 100
"""Lists and objects within each other; the deepest files of ours have about 10."""


def parsed(text: str | bytes, *, distinct: bool = False) -> Any:
    """The JSON value in `text`.

    Args:
        distinct: refuse a name that is given twice in one object; Python's parser takes the last.
    Raises:
        ValueError: it is no JSON, or is nested deeper than `DEEPEST`; the message is short.
    """
    deep = f"lists or objects are nested more than {DEEPEST} deep"
    try:
        value = json.loads(text, object_pairs_hook=distinct_names if distinct else None)
    except RecursionError:
        raise ValueError(deep) from None
    except UnicodeDecodeError:
        raise ValueError("these bytes are no text in UTF-8") from None
    except ValueError as error:
        raise ValueError(in_our_words(error)) from None
    if too_deep(value):
        raise ValueError(deep)
    return value


def distinct_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object hook of `json` that refuses a name given twice, which would lose a value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"{shortened(twice)} is given twice in one object")
    return found


def in_our_words(error: Exception) -> str:
    """What Python's JSON parser says; of a long number it says how programmers allow it."""
    long = re.search(r"limit \((\d+) digits\) for integer string conversion: value has (\d+) digits", str(error))
    return f"a number has {long[2]} digits, expected at most {long[1]}" if long else str(error)


def too_deep(value: object) -> bool:
    """Whether a value is nested deeper than `DEEPEST`."""
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        inner = (one for each in level for one in (each.values() if isinstance(each, dict) else each))
        level = [one for one in inner if isinstance(one, list | dict)]
    return bool(level)


def read_json(path: Path, *, remedy: str) -> Any:
    """What a JSON file holds.

    Raises:
        BadInput: no such file, not JSON, or nested too deeply.
    """
    return json_value(file_bytes(path, remedy=remedy), where=f"{path} is", remedy=remedy)


GET_RIGHTS = "have its owner let you read it, or read it as who wrote it"
"""What helps where a file's rights keep somebody out: to make the file again would not, and may cost what cannot be made again."""


def read_object(path: Path, *, remedy: str) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        BadInput: as `read_json`, or it holds something else.
    """
    value = read_json(path, remedy=remedy)
    if not isinstance(value, dict):
        raise BadInput(f"{path} holds no JSON object but {json_kind(value)}; {remedy}")
    return value


def file_bytes(path: Path, *, remedy: str) -> bytes:
    """The bytes of a file.

    Raises:
        BadInput: there is no such file that can be read, or it has more than `LARGEST` bytes.
    """
    try:
        refuse_endless(path)
        refuse_larger(path, path.stat().st_size, most=LARGEST, remedy=remedy)
        return path.read_bytes()
    except PermissionError as error:  # nothing is wrong with what it holds, which `remedy` is about
        raise BadInput(f"cannot read {path}: {error.strerror}; {GET_RIGHTS}") from None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}; {remedy}") from None


def json_value(text: str | bytes, *, where: str, remedy: str, distinct: bool = False) -> Any:
    """The JSON value in `text`.

    Args:
        where: begins the message, as in "FILE is" or "FILE, line 3:".
        distinct: as `parsed`.
    Raises:
        BadInput: it is not JSON, or is nested too deeply.
    """
    try:
        return parsed(text, distinct=distinct)
    except ValueError as error:
        raise BadInput(f"{where} not JSON ({error}); {remedy}") from None


def is_amount(value: object) -> bool:
    """Whether a JSON value is an amount that can be reckoned with, as of seconds or tokens: not negative, no NaN, and not beyond what a
    float tells apart."""
    return type(value) in (int, float) and 0 <= value < 2**53  # type: ignore[operator]


def json_kind(value: object) -> str:
    """What a JSON value is, in words for a person: "a list", "null"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    kinds = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), type(value).__name__)


def shortened(value: object) -> str:
    """A value as a message shows it: as JSON on one line, cut after 40 characters; of a Python program's that JSON has no place for, what it is."""
    try:
        text = "too much" if too_deep(value) else json.dumps(value, ensure_ascii=False, default=str)
    except (
        TypeError,
        ValueError,
        RecursionError,
    ):  # keys that are tuples, numbers of 10,000 digits, tuples within tuples without end
        text = json_kind(value)
    return text if len(text) <= 40 else text[:37] + "..."
