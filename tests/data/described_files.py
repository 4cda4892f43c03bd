"""Files that descriptions are tested with."""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
from rich.console import Console

from perse.data.describing.facts import Description
from perse.data.describing.table import description_table

REVIEW = {"reviewer_id": "ann", "item_id": "i1", "score": 7, "review": "quite fine", "text": "a plot", "date": "2018-11-10"}
PAIR = {"reviewer_id": "ann", "aspect": "Ending", "text_a": "one", "text_b": "two words", "preference": "A"}


def lines(path: Path, rows: Sequence[Any]) -> Path:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content, 1, mtime=0) if path.suffix == ".gz" else content)
    return path


def printed(description: Description) -> str:
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(description_table(description), crop=False)
    return console.export_text()


def table_of(count: int, reviewers: int = 4, **more: Any) -> list[dict[str, Any]]:
    """So many reviews by each reviewer, all of other items."""
    return [
        {
            "reviewer_id": f"r{who}",
            "item_id": f"i{n}",
            "score": 1 + (who + n) % 5,
            "review": f"I say {who} of {n}",
            "text": f"plot {n}",
        }
        | more
        for who in range(reviewers)
        for n in range(count)
    ]


def kept_as(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows in the format that the name says; `;.csv` is a spreadsheet's with semicolons."""
    if path.name.startswith("array"):
        path.write_text(json.dumps(rows, indent=1), "utf-8")
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        lines(path, rows)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]), delimiter=";")
            table.writeheader()
            table.writerows(rows)
    return path
