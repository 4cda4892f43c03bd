"""Raw files as lines, JSON values and records, with the physical line number of each: the base of every reader.

Files are read as bytes and decoded line by line, so that a byte that is not UTF-8 is reported with its line. JSON lines end
at "\\n" alone (U+2028 and its like may stand inside a string); the csv module finds the ends of CSV records itself.

Which lines are bad, and what a bad line costs, is the table "Rows that do not fit" of `table`.
"""

from __future__ import annotations

import ast
import codecs
import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from perse.data.sources.faults import BadRow, Faults
from perse.data.sources.whole import array_records, parquet_records, without_nulls
from perse.errors import BadInput
from perse.formats.json_text import DEEPEST, distinct_names, in_our_words, parsed, shortened, too_deep
from perse.formats.plain_files import refuse_endless, unchanged_while_read

JSON_SUFFIXES = (".jsonl", ".json")
PARQUET = ".parquet"

LONGEST_CELL = 10_000_000
"""Characters of a cell of CSV. Python's own limit, 131,072, is less than a long plot; without one, a quote out of place could take a file
of any size for one cell."""

csv.field_size_limit(LONGEST_CELL)

MAX_LITERAL = 200_000
"""Longest line of Python literals in characters, since building one takes a hundred times its length in memory."""


def read_json_lines(path: Path, faults: Faults | None = None, *, literals: bool = False) -> Iterator[tuple[int, object]]:
    """(line number from 1, value) of each line of JSON; blank lines are skipped, `.gz` is unpacked on the way. Of a Parquet file
    each row is one, without its nulls.

    Infinity and halves of surrogate pairs are not JSON here: they could not be written again. NaN is no JSON either, but
    pandas writes it for a missing value, so it is read as null.

    Args:
        faults: takes the lines that are not UTF-8 or not JSON; without it they are errors.
        literals: a line that is no JSON may be a Python literal, such as {'a': None}; it is built, never run.
    Raises:
        BadInput: the file is absent, empty or cannot be unpacked; a bad line, if those are to stop the reading.
    """
    if suffix(path) == PARQUET:
        yield from ((number, without_nulls(row)) for number, row in parquet_records(path))
        return
    faults = faults or Faults()
    before = faults.met.total()
    decoder = json.JSONDecoder(
        object_pairs_hook=distinct_names, parse_constant=_constant
    )  # `json.loads` would make one for each line
    found = False
    for line, text in _lines(path, faults):
        if not text.strip():
            continue
        found = True
        try:
            value = decoder.decode(text)
            if text.count("[") + text.count("{") > DEEPEST and too_deep(value):
                raise RecursionError
            if "\\ud" in text or "\\uD" in text:
                json.dumps(value, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            if literals and (literal := _literal(text)) is not None:
                yield line, literal
                continue
            hint = "; the file seems to be one JSON array: give one object a line" if text.lstrip().startswith("[") else ""
            what = f"{error.msg} at column {error.colno}{hint}"
        except UnicodeEncodeError:
            what = "half of a surrogate pair (\\ud...); write the character whole"
        except RecursionError:
            what = f"lists or objects are nested more than {DEEPEST} deep"
        except ValueError as error:
            what = in_our_words(error)
        else:
            yield line, value
            continue
        faults.add(BadRow(path, line, f"not JSON, {what}", reason="not JSON"))
    if not found and faults.met.total() == before:
        raise BadInput(f"{path}: the file is empty; expected one JSON object a line")


def read_text_lines(path: Path, faults: Faults | None = None) -> Iterator[tuple[int, str]]:
    """(line number from 1, text without its line end) of each line that is not blank, for formats that are neither JSON nor CSV.

    A line ends at "\\n" or "\\r\\n" alone; `.gz` is unpacked on the way.

    Args:
        faults: takes the lines that are not UTF-8; without it they are errors.
    Raises:
        BadInput: the file is absent, empty or cannot be unpacked; a bad line, if those are to stop the reading.
    """
    faults = faults or Faults()
    before = faults.met.total()
    found = False
    for line, text in _lines(path, faults):
        if text.strip():
            found = True
            yield line, text.removesuffix("\n").removesuffix("\r")
    if not found and faults.met.total() == before:
        raise BadInput(f"{path}: the file is empty; expected at least one line")


def read_records(
    path: Path, faults: Faults | None = None, *, header: Sequence[str] | None = None, literals: bool = False
) -> Iterator[tuple[int, dict[str, object]]]:
    """(line number of its start, column -> value) of each record; the name of the file says which format it has.

    Args:
        faults: takes the records that are not UTF-8, no JSON object, or do not fit the header; without it they are errors.
            A line that repeats a CSV file's header (files put together with `cat`) counts as one of these.
        header: the columns of a CSV file that has no header line.
        literals: as in `read_json_lines`.
    Raises:
        BadInput: as `read_json_lines`; a name that says no format; a CSV file without header or with a column named twice.
    """
    faults = faults or Faults()
    if is_csv(path):
        yield from _csv_records(path, faults, names=header)
    elif (kind := suffix(path)) == PARQUET:
        yield from parquet_records(path)
    elif kind in JSON_SUFFIXES and (text := _array_text(path)) is not None:
        yield from array_records(path, text, faults)
    elif kind in JSON_SUFFIXES:
        for line, value in read_json_lines(path, faults, literals=literals):
            if isinstance(value, dict):
                yield line, value
                continue
            faults.add(BadRow(path, line, f"found {shortened(value)}, expected a JSON object", reason="no JSON object"))
    elif not path.exists():
        raise BadInput(f"{path}: no such file")
    else:
        raise BadInput(
            f"{path}: cannot tell the format from '{kind}'; expected .jsonl, .json, .csv or .tsv, each also as .gz, or .parquet"
        )


def holds_records(path: Path) -> bool:
    """Whether `read_records` knows the format by the name of the file."""
    return is_csv(path) or suffix(path) in (*JSON_SUFFIXES, PARQUET)


def is_csv(path: Path) -> bool:
    """Whether the name of a file says that it is CSV or TSV; `.gz` does not count."""
    return suffix(path) in (".csv", ".tsv")


def json_suffix(path: Path) -> bool:
    """Whether the name of a file says that it is JSON, one value a line or one alone."""
    return suffix(path) in JSON_SUFFIXES


def whole_json(path: Path, faults: Faults) -> object:
    """The value of a file that is one, over however many lines; None where it is not.

    Raises:
        BadInput: the file is absent or cannot be unpacked.
    """
    text = "".join(text for _, text in _lines(path, faults))
    try:
        return None if faults.met else parsed(text)
    except (ValueError, RecursionError):
        return None


def first_fields(path: Path) -> list[str]:
    """The fields of the first record of a CSV or TSV file that can be read; none where no record can be.

    Raises:
        BadInput: the file is absent or cannot be unpacked.
    """
    return next((fields for _, fields in _csv_fields(path, Faults("skip"))), [])


def column_names(path: Path) -> list[str]:
    """The columns of a file: of its header, or of its first JSON object.

    Raises:
        BadInput: the file is absent, empty or cannot be unpacked.
    """
    if is_csv(path):
        return [name.strip() for name in first_fields(path)]
    return next((list(values) for _, values in read_records(path, Faults("skip"))), [])


def _lines(path: Path, faults: Faults) -> Iterator[tuple[int, str]]:
    """(number, text with its line end) of each line that ends at "\\n", without a byte order mark.

    Raises:
        BadInput: the file is absent, cannot be unpacked, is written to meanwhile, or is UTF-16, of which every line would be called damaged.
    """
    refuse_endless(path)
    try:
        with unchanged_while_read(path), gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise BadInput(f"{path}: is UTF-16, as a spreadsheet's 'Unicode text' is; save it as UTF-8 (\"CSV UTF-8\")")
                try:
                    yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    what = f"byte 0x{line[error.start]:02x} at position {error.start + 1} is not UTF-8; save the file as UTF-8"
                    faults.add(BadRow(path, number, what, reason="not UTF-8"))
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"{path}: cannot be unpacked as gzip ({error}); the file is damaged or not a .gz file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error})") from None


def _csv_fields(path: Path, faults: Faults) -> Iterator[tuple[int, list[str]]]:
    """(line number of its start, fields) of each record that is not blank."""
    delimiter = "\t" if suffix(path) == ".tsv" else _delimiter(path)
    # `line_num` counts what the csv module was given, so the line that each piece came from is kept beside it.
    seen: list[int] = [0]

    def pieces() -> Iterator[str]:
        for number, text in _lines(path, faults):
            # A bare "\r" ends a line for the csv module, so it must be given one such line at a time.
            for piece in io.StringIO(text, newline="") if "\r" in text[:-2] else (text,):
                seen[0] = number
                yield piece

    # Strict: a quote out of place is an error with its line, rather than a record that swallows those after it.
    more = pieces()
    reader = csv.reader(more, delimiter=delimiter, strict=True)
    while True:
        before = seen[0]
        try:
            record = next(reader, None)
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                # Rows between the quote and the end of the file cannot be told apart, which is too much to skip as one row.
                raise BadInput(f"{path}, line {before + 1}: a quote that opens here is never closed; close it") from None
            faults.add(_no_csv(path, before + 1, error))
            reader = csv.reader(more, delimiter=delimiter, strict=True)  # drops the record it had begun
            continue
        if record is None:
            return
        if record:
            yield before + 1, record


def _no_csv(path: Path, line: int, error: csv.Error) -> BadRow:
    if "field larger than field limit" in str(error):
        what = f"a cell has more than {LONGEST_CELL:,} characters; shorten it, or close its quote"
        return BadRow(path, line, what, reason="a cell too long")
    return BadRow(path, line, f"not CSV, {error}", reason="not CSV")


def _delimiter(path: Path) -> str:
    """A comma, or the semicolon where the first line of the file has semicolons and no comma outside quotes, as spreadsheets write it
    where the comma is the decimal mark."""
    first = next((text for _, text in _lines(path, Faults("skip", keep=1)) if text.strip()), "")
    bare = re.sub(r'"(?:[^"]|"")*"', "", first)
    return ";" if ";" in bare and "," not in bare else ","


def _array_text(path: Path) -> str | None:
    """The whole of a file that is one JSON array of objects; None for any other, of which only the beginning is read."""
    lines = _lines(path, Faults("skip", keep=1))
    begun = ""
    for _, text in lines:
        begun += text
        plain = begun.replace(" ", "").replace("\t", "").replace("\r", "").replace("\n", "")
        if not plain.startswith("[") and plain:
            return None
        if len(plain) > 1:
            return begun + "".join(more for _, more in lines) if plain[1] in "{]" else None
    return None


def _csv_records(path: Path, faults: Faults, *, names: Sequence[str] | None) -> Iterator[tuple[int, dict[str, object]]]:
    header: list[str] = list(names or ())
    before = faults.met.total()
    found = False
    for start, record in _csv_fields(path, faults):
        if not header:
            header = [name.strip() for name in record]
            if twice := [name for name, times in Counter(header).items() if times > 1]:
                raise BadInput(f"{path}, line {start}: the header names column '{twice[0]}' twice; rename one")
            continue
        found = True
        if len(record) != len(header):
            what = f"found {len(record)} fields, expected {len(header)} as in the header; quote fields that hold the delimiter"
            faults.add(BadRow(path, start, what, reason="fields do not fit the header"))
            continue
        if [name.strip() for name in record] == header:
            what = "the header stands here again; were files put together? remove the line"
            faults.add(BadRow(path, start, what, reason="the header again"))
            continue
        yield start, dict(zip(header, record, strict=True))
    if not found and faults.met.total() == before:
        raise BadInput(f"{path}: the file is empty; expected a header and at least one row")


def suffix(path: Path) -> str:
    """The end of a file's name in lower case, such as ".jsonl"; `.gz` does not count."""
    return Path(path.name.removesuffix(".gz")).suffix.lower()


def _literal(text: str) -> object:
    """A Python literal as JSON values, or None if it is not one or too long."""
    if len(text) > MAX_LITERAL:
        return None
    try:
        value = ast.literal_eval(text.strip())
        # Through JSON, which refuses bytes, sets and half characters and turns tuples into lists.
        return json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _constant(name: str) -> None:
    """Constant hook of `json` for NaN, Infinity and -Infinity."""
    if name != "NaN":
        raise ValueError(f"{name} is no JSON number")
