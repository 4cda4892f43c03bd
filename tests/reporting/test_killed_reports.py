"""A report that was killed at any moment is made by the same command, which knows its folder again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kills import killed_at
from page_builders import score_answers, score_examples

from perse.drawing.figure import Figure
from perse.errors import BadInput
from perse.judgement import judgement_line
from perse.records import example_lines
from perse.reporting.report import write_report
from perse.reporting.written import refuse_other, write_files
from perse.results.result import Result

FIGURES = [Figure(name, "t", "a", "<svg/>", b"png", ("x",), ((1,),)) for name in ("one", "two")]
MADE = {"run": {"kind": "report"}}


def of_runs(out: Path) -> None:
    """With two pictures, which take no time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("perse.reporting.report.run_figures", lambda *_: FIGURES)
        write_report([out.parent / "run"], out=out, resamples=100)


def of_a_result(out: Path) -> None:
    refuse_other(out, result="mine", what="report of mine")
    result = Result(name="mine", asks="?", answer=".", tables=())
    write_files(out, result, html="page", tables="", figures=FIGURES, manifest=MADE)


def scored_run(folder: Path) -> None:
    """As `perse score` leaves one."""
    examples = score_examples(12)
    folder.mkdir()
    (folder / "examples.jsonl").write_text("".join(example_lines(examples)), "utf-8")
    (folder / "judgements.jsonl").write_text("".join(map(judgement_line, score_answers(examples, seed=1).values())), "utf-8")
    run = {"kind": "score", "fold": None, "judge": {"model": "made", "adapter": None, "digest": "0" * 64}, "settings": {}}
    (folder / "manifest.json").write_text(json.dumps({"run": run, "context": {}, "environment": {}}), "utf-8")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("make", [of_runs, of_a_result])
def test_a_killed_report_is_made_by_the_same_command(make: Callable[[Path], None], tmp_path: Path) -> None:
    scored_run(tmp_path / "run")
    make(tmp_path / "out")
    whole, event = files(tmp_path / "out"), 0
    shutil.rmtree(tmp_path / "out")
    while killed_at(event, lambda: make(tmp_path / "out"), tmp_path / "out"):
        make(tmp_path / "out")
        assert files(tmp_path / "out") == whole
        shutil.rmtree(tmp_path / "out")
        event += 1
    assert event > 10


@pytest.mark.parametrize("make", [of_runs, of_a_result])
def test_a_folder_of_somebodys_files_is_no_killed_report(make: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="is not empty and holds no report"):
        make(tmp_path / "out")
    assert files(tmp_path / "out") == {"thesis.txt": b"mine"}
