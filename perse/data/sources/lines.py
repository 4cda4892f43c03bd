"""Raw files as lines, JSON values and records, with the physical line number of each: what every reader stands on.

Files are read as bytes and decoded line by line, so that a byte that is not UTF-8 is reported with its line. JSON lines end
at "\\n" alone (U+2028 and its like may stand inside a string); the csv module finds the ends of CSV records itself.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from perse.errors import BadInput


def read_json_lines(path: Path) -> Iterator[tuple[int, object]]:
    """(line number from 1, value) of each line of JSON; blank lines are skipped, `.gz` is unpacked on the way.

    Raises:
        BadInput: the file is absent, empty or cannot be unpacked; a line is not UTF-8 or not JSON. Infinity and halves of
            surrogate pairs are not JSON here: they could not be written again. NaN is no JSON either, but pandas writes it
            for a missing value, so it is read as null.
    """
    found = False
    for line, text in _lines(path):
        if not text.strip():
            continue
        found = True
        try:
            value = json.loads(text, parse_constant=_constant)
            if "\\ud" in text or "\\uD" in text:
                json.dumps(value, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            hint = "; the file seems to be one JSON array: give one object a line" if text.lstrip().startswith("[") else ""
            raise BadInput(f"{path}, line {line}: not JSON, {error.msg} at column {error.colno}{hint}") from None
        except UnicodeEncodeError:
            what = "half of a surrogate pair (\\ud...); write the character whole"
            raise BadInput(f"{path}, line {line}: not JSON, {what}") from None
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{path}, line {line}: not JSON, {error}") from None
        yield line, value
    if not found:
        raise BadInput(f"{path}: the file is empty; expected one JSON object a line")


def read_records(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """(line number of its start, column -> value) of each record; the name of the file says which format it has.

    Raises:
        BadInput: as `read_json_lines`; a name that says no format; a JSON value that is no object; a CSV file without header
            or with a column named twice, or a CSV record that does not fit the header.
    """
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind in (".csv", ".tsv"):
        yield from _csv_records(path, delimiter="\t" if kind == ".tsv" else ",")
    elif kind in (".jsonl", ".json"):
        for line, value in read_json_lines(path):
            if not isinstance(value, dict):
                hint = "; the file seems to be one JSON array: give one object a line" if isinstance(value, list) else ""
                raise BadInput(f"{path}, line {line}: found {shown(value)}, expected a JSON object{hint}")
            yield line, value
    else:
        raise BadInput(f"{path}: cannot tell the format from '{kind}'; expected .jsonl, .json, .csv or .tsv, each also as .gz")


def shown(value: object) -> str:
    """A value of the user's as a message shows it: as JSON, cut after 40 characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, text with its line end) of each line that ends at "\\n", without a byte order mark."""
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    what = f"byte 0x{line[error.start]:02x} at position {error.start + 1} is not UTF-8; save the file as UTF-8"
                    raise BadInput(f"{path}, line {number}: {what}") from None
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"{path}: cannot be unpacked as gzip ({error}); the file is damaged or not a .gz file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error})") from None


def _csv_records(path: Path, *, delimiter: str) -> Iterator[tuple[int, dict[str, object]]]:
    # `line_num` counts what the csv module was given, so the line that each piece came from is kept beside it.
    seen: list[int] = [0]

    def pieces() -> Iterator[str]:
        for number, text in _lines(path):
            # A bare "\r" ends a line for the csv module, so it must be given one such line at a time.
            for piece in io.StringIO(text, newline="") if "\r" in text[:-2] else (text,):
                seen[0] = number
                yield piece

    # Strict: a quote out of place is an error with its line, rather than a record that swallows those after it.
    reader = csv.reader(pieces(), delimiter=delimiter, strict=True)
    header: list[str] = []
    found = False
    while True:
        before = seen[0]
        try:
            record = next(reader, None)
        except csv.Error as error:
            raise BadInput(f"{path}, line {before + 1}: not CSV, {error}") from None
        if record is None:
            break
        # A record without fields is a blank line.
        if not record:
            continue
        start = before + 1
        if not header:
            header = [name.strip() for name in record]
            if twice := [name for name, times in Counter(header).items() if times > 1]:
                raise BadInput(f"{path}, line {start}: the header names column '{twice[0]}' twice; rename one")
            continue
        found = True
        if len(record) != len(header):
            what = f"found {len(record)} fields, expected {len(header)} as in the header; quote fields that hold the delimiter"
            raise BadInput(f"{path}, line {start}: {what}")
        yield start, dict(zip(header, record, strict=True))
    if not found:
        raise BadInput(f"{path}: the file is empty; expected a header and at least one row")


def _constant(name: str) -> None:
    """What `json` is to make of NaN, Infinity and -Infinity."""
    if name != "NaN":
        raise ValueError(f"{name} is no JSON number")
