"""`--json`, `--markdown`, `--csv`: every command that prints a Result takes them, and one at a time."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from command_line import perse

from perse.formats.csv_cells import plain
from perse.results.result import Result
from perse.results.spreadsheet import HEADER

LISTED = json.loads((Path(__file__).parent.parent / "surface.json").read_text(encoding="utf-8"))["commands"]
MEDIA = ("--json", "--markdown", "--csv")


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """Ratings with a dimension that a spreadsheet would compute."""
    file = tmp_path / "ratings.jsonl"
    rows = [
        {"item": f"i{n}", "annotator": who, "dimension": "=1+1", "score": (n + at) % 5 + 1}
        for n in range(6)
        for at, who in enumerate(("ann", "ben"))
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def test_csv_holds_every_cell_that_json_holds_and_nothing_is_computed(ratings: Path) -> None:
    ran = perse("agreement", ratings, "--resamples", 100, "--csv")
    assert ran.returncode == 0, ran.stderr
    header, *lines = csv.reader(io.StringIO(ran.stdout))
    result = Result.model_validate_json(perse("agreement", ratings, "--resamples", 100, "--json").stdout)
    assert tuple(header) == HEADER
    values = [repr(one.value) for table in result.tables for one in table.estimates() if one.value is not None]
    assert [repr(float(line[4])) for line in lines if line[4]] == values
    assert {line[0] for line in lines} == {table.title for table in result.tables}
    assert not [cell for line in lines for cell in line if cell.startswith("=")]
    assert any(plain(line[1]).startswith("=1+1") for line in lines)


@pytest.mark.parametrize("given", [("--json", "--markdown"), ("--markdown", "--csv"), ("--csv", "--json"), MEDIA])
def test_two_forms_are_refused_before_anything_is_read(given: tuple[str, ...]) -> None:
    ran = perse("evaluate", "no-such-run", *given)
    assert ran.returncode == 2 and not ran.stdout
    assert " and ".join(one for one in MEDIA if one in given) + " cannot be given together" in ran.stderr
    assert "no-such-run" not in ran.stderr


def test_whatever_takes_one_form_of_a_result_takes_all() -> None:
    several = {path for path, names in LISTED.items() if "--markdown" in names or "--csv" in names}
    assert all(set(MEDIA) <= set(LISTED[path]) for path in several)
    studies = {path for path in LISTED if path.startswith("perse study ")}
    others = {"perse evaluate", "perse compare", "perse agreement", "perse plan", "perse fit"}
    kgds = {f"perse kgds {name}" for name in ("stats", "metrics", "agreement")}
    consumers = {f"perse rehearsal {name}" for name in ("plan", "score", "leniency")}
    consumers |= {f"perse drpe {name}" for name in ("roles", "plan", "vote", "correlate", "ablate")}
    assert several == studies | others | kgds | consumers
