"""A report that was killed at any moment is made by the same command, which knows its folder again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kills import killed_at

from perse.drawing.figure import Figure
from perse.errors import BadInput
from perse.files.own_files import write_together
from perse.reporting import report
from perse.reporting.written import refuse_other, write_files
from perse.results.result import Result

FIGURES = [Figure(name, "t", "a", "<svg/>", b"png", ("x",), ((1,),)) for name in ("one", "two")]
MADE = {"run": {"kind": "report"}}


def of_runs(out: Path) -> None:
    report._refuse_strangers(out)
    drawn = {f"figures/{name}": content for figure in FIGURES for name, content in figure.files.items()}
    write_together(out, {"manifest.json": json.dumps(MADE).encode(), "evaluation.json": b"{}", "report.html": b"page", **drawn})


def of_a_result(out: Path) -> None:
    refuse_other(out, result="mine", what="report of mine")
    result = Result(name="mine", asks="?", answer=".", tables=())
    write_files(out, result, html="page", tables="", figures=FIGURES, manifest=MADE)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("make", [of_runs, of_a_result])
def test_a_killed_report_is_made_by_the_same_command(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "whole")
    event = 0
    while killed_at(event, lambda: make(tmp_path / "out"), tmp_path):
        make(tmp_path / "out")
        assert files(tmp_path / "out") == files(tmp_path / "whole")
        shutil.rmtree(tmp_path / "out")
        event += 1
    assert event > 10


@pytest.mark.parametrize("make", [of_runs, of_a_result])
def test_a_folder_of_somebodys_files_is_no_killed_report(make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="is not empty and holds no report"):
        make(tmp_path)
    assert files(tmp_path) == {"thesis.txt": b"mine"}
