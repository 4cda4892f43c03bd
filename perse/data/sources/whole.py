"""Files of records that are read whole: one JSON array, and Parquet."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from perse.data.sources.faults import BadRow, Faults
from perse.errors import BadInput
from perse.formats.json_text import DEEPEST, distinct_names, in_our_words, too_deep
from perse.formats.plain_files import refuse_endless, unchanged_while_read


def array_records(path: Path, text: str, faults: Faults) -> Iterator[tuple[int, dict[str, object]]]:
    """(line number of its start, column -> value) of each object of the JSON array `text`.

    Args:
        faults: takes what is no object.
    Raises:
        BadInput: the array is damaged, or empty.
    """
    decoder = json.JSONDecoder(object_pairs_hook=distinct_names, parse_constant=_constant)
    at, line, counted = text.index("[") + 1, 1, 0
    found = False
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        line += text.count("\n", counted, at)
        counted = at
        if text[at : at + 1] == "]":
            if text[at + 1 :].strip():
                raise BadInput(
                    f"{path}, line {line}: the JSON array ends here, and more stands behind it; keep one array in the file, as `jq -s add` "
                    "makes of several"
                )
            break
        try:
            value, at = decoder.raw_decode(text, at)
            if too_deep(value):
                raise RecursionError
            json.dumps(value, ensure_ascii=False).encode()
        except json.JSONDecodeError as error:
            raise BadInput(
                f"{path}, line {line}: the JSON array that the file is breaks off or is damaged ({error.msg})"
            ) from None
        except RecursionError:
            raise BadInput(f"{path}, line {line}: lists or objects are nested more than {DEEPEST} deep") from None
        except ValueError as error:
            raise BadInput(f"{path}, line {line}: not JSON, {in_our_words(error)}") from None
        found = True
        if isinstance(value, dict):
            yield line, value
        else:
            faults.add(BadRow(path, line, f"found {json.dumps(value)[:40]}, expected a JSON object", reason="no JSON object"))
    if not found:
        raise BadInput(f"{path}: the file is empty; expected a JSON array of objects, or one object a line")


def parquet_records(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """(number of the row from 1, column -> value) of each row; dates are ISO dates, and NaN is a missing value.

    Raises:
        BadInput: the file is absent, damaged or empty, or is written to meanwhile.
    """
    import pyarrow
    from pyarrow import parquet

    if not path.exists():
        raise BadInput(f"{path}: no such file")
    refuse_endless(path)
    number = 0
    try:
        with unchanged_while_read(path), parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                for row in batch.to_pylist():
                    number += 1
                    yield number, {name: _plain(value) for name, value in row.items()}
    except (pyarrow.ArrowException, OSError) as error:
        raise BadInput(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]})") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: cannot be read as Parquet (a text of row {number + 1} or later is not UTF-8)") from None
    except (OverflowError, ValueError) as error:  # Python's dates end at year 9999, Parquet's and 'infinity' do not
        raise BadInput(f"{path}: row {number + 1} or a later one holds a date or time that cannot be read ({error})") from None
    if not number:
        raise BadInput(f"{path}: the file is empty; expected at least one row")


def without_nulls(value: object) -> object:
    """A value of Parquet as JSON has it: nested ones have every field of their type, null where there is none. A NaN among them is no null, and
    whoever reads the field refuses it by its name."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [without_nulls(one) for one in value]
    return value if isinstance(value, float) else _plain(value)


def _plain(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _constant(name: str) -> None:
    if name != "NaN":
        raise ValueError(f"{name} is no JSON number")
