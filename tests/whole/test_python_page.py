"""docs/python.md and docs/python.ipynb run as they stand, on a tiny judge: every block of code, every command, every cell."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import perse
from documented import BLOCK, commands
from places import ROOT

from perse import Judgement, Judgements

PAGE, NOTEBOOK = ROOT / "docs" / "python.md", ROOT / "docs" / "python.ipynb"


@pytest.fixture
def work(answering_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's two tables and a judge at `runs/first`."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "first").symlink_to(answering_model)
    for name, (kind, content) in zip(("reviews.csv", "texts.csv"), blocks("csv"), strict=True):
        assert kind == "csv"
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def blocks(*kinds: str) -> list[tuple[str, str]]:
    return [(found[1], found[2]) for found in BLOCK.finditer(PAGE.read_text(encoding="utf-8")) if found[1] in kinds]


@pytest.mark.slow
def test_every_block_of_python_on_the_page_runs_in_its_order(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pandas")
    known: dict[str, Any] = {}
    for _, code in blocks("python"):
        exec(compile(code, str(PAGE), "exec"), known)
    said, page = capsys.readouterr().out, PAGE.read_text(encoding="utf-8")
    shown = ["reviewer_id", "item_id", "status", "expected", "likeliest", "own_expected"]
    assert said.split()[: len(shown)] == shown and len(known["scores"]) == 4 and len(known["found"]) == 2
    assert said.strip().splitlines()[-1] in page, "the message that the page shows is the one that is said"
    told = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `")))
    assert {*told} <= {*known["scores"].columns} and len(told) > 15


@pytest.mark.slow
def test_every_command_of_the_page_runs_and_says_what_python_says(work: Path) -> None:
    pandas = pytest.importorskip("pandas")
    calls = [command.words for command in commands("docs/python.md") if command.whole]
    assert [call[:2] for call in calls] == [("perse", "score")] * 2
    for call in calls:
        done = perse(*call[1:])
        assert done.returncode == 0, done.stderr
    answers = pandas.read_csv(work / "answers.csv")
    assert answers["id"].tolist() == ["ann/house", "ann/lamp", "bob/house", "bob/lamp"]


@pytest.mark.slow
def test_every_cell_of_the_notebook_runs_and_shows_a_table(work: Path) -> None:
    pytest.importorskip("pandas")
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert book["nbformat"] == 4 and all(cell["cell_type"] in ("code", "markdown") for cell in book["cells"])
    assert not any(cell.get("outputs") for cell in book["cells"]), "kept without what it printed somewhere"
    known: dict[str, Any] = {}
    shown = [run("".join(cell["source"]), known) for cell in book["cells"] if cell["cell_type"] == "code"]
    tables = [value for value in shown if value is not None]
    assert all("<table" in value._repr_html_() for value in tables) and len(tables) == 5
    assert [type(value) for value in tables[-2:]] == [Judgement, Judgements]
    assert len(known["told"]) == len(known["held_out"]) == 6 and (known["told"]["status"] == "ok").all()


def run(code: str, known: dict[str, Any]) -> Any:
    """As a notebook does: the value of an expression at the end is what is shown."""
    module = ast.parse(code.replace('"smollm2-135m"', '"runs/first"'))
    last = module.body.pop() if isinstance(module.body[-1], ast.Expr) else None
    exec(compile(module, str(NOTEBOOK), "exec"), known)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), known) if isinstance(last, ast.Expr) else None
