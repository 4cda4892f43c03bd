"""Whether a file could be one that an export wrote, by the fields of its first record: only such a one is replaced on request.

An export stands alone, in a folder of the user's, so no manifest knows it. What it looks like must do: a file of keys, weights or raw
reviews has other fields. The records after the first are not read, since an export may have gigabytes.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from perse.errors import BadInput
from perse.formats.json_text import parsed
from perse.formats.plain_files import open_own

_PACKED = b"\x1f\x8b"
_LONGEST = 1 << 26
"""Bytes of a first line that are looked at; an example shows dozens of reviews."""


@dataclass(frozen=True, kw_only=True)
class Fields:
    """What the records of an export have."""

    needed: Collection[str]
    known: Collection[str]
    """Patterns of all that there may be, the needed among them."""

    def fit(self, found: Collection[str]) -> bool:
        """Whether a record of these fields could be one."""
        return set(self.needed) <= set(found) and all(any(fnmatchcase(name, one) for one in self.known) for name in found)


def check_replaceable(path: Path, alike: Iterable[Fields]) -> None:
    """That the file which is there is empty or could be an export with such records.

    Raises:
        BadInput: it is something else, or cannot be looked into.
    """
    try:
        with open_own(path) as file:
            if not file.peek(1):
                return
        found = _first_fields(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be looked into ({error.strerror or error}); give another --out") from None
    if not found or not any(one.fit(found) for one in alike):
        raise BadInput(
            f"{path}: is no file that this command writes, so --overwrite does not replace it; remove it yourself, or choose another --out"
        )


def _first_fields(path: Path) -> list[str] | None:
    """The columns of a table, or the fields of the first line of JSON; None where there are none.

    Raises:
        OSError: it cannot be read.
    """
    if path.suffix.lower() == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        try:
            return list(parquet.read_schema(path).names)
        except pa.ArrowException:
            return None
    try:
        with open_own(path) as file:
            packed = file.peek(2)[:2] == _PACKED
            line = (gzip.GzipFile(fileobj=file) if packed else file).readline(_LONGEST)
        text = line.decode("utf-8-sig")
        if path.suffix.lower() == ".csv":
            return next(csv.reader([text]), None)
        record = parsed(text)
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile, csv.Error):
        return None
    return list(record) if isinstance(record, dict) else None
