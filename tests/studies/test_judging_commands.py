"""The commands of judging studies: their help, one sentence for a mistake, and numbers that do not wait for pictures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from judging_builders import average, scripted
from typer.testing import CliRunner

from perse.commands.studies.app import app
from perse.errors import BadInput
from perse.installing import install
from perse.judging.judge import Judge

COMMANDS = ("k-curve", "order", "aspects", "review-text", "counterfactual", "decoding")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_and_the_shared_options(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0
    for word in ("Example:", f"perse study {command}", "--examples", "--out", "--resamples", "The same command continues"):
        assert word in shown.output, word


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["k-curve", "--judge", "x", "--ks", "one"], "--ks is 'one'; write numbers with commas, as in 0,1,3"),
        (
            ["k-curve", "--judge", "x", "train.steps=3"],
            "'train.steps=3' is a setting of a training recipe; name one with --retrain",
        ),
        (["k-curve"], "the study has no judge; name one with --judge"),
        (["counterfactual", "--judge", "x", "--k", "9"], "keeps profiles of 4, found k = 9"),
        (["aspects", "--retrain", "nowhere"], "holds single texts, which have no aspects"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing_behind(
    given: list[str], message: str, readers: Path, tmp_path: Path
) -> None:
    done = CliRunner().invoke(app, [*given, "--examples", str(readers), "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, BadInput) and message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_without_matplotlib_the_numbers_are_written_and_one_line_says_what_to_install(
    readers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Judge, "load", lambda name, **_: scripted(average)(name))
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    options = ["--examples", str(readers), "--judge", "script", "--limit", "6", "--out", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(app, ["counterfactual", *options])
    assert done.exit_code == 0, done.output
    assert "not drawn: " in done.stderr and install("report") in done.stderr
    assert json.loads(done.stdout) == json.loads((tmp_path / "out" / "study.json").read_text())
    assert not (tmp_path / "out" / "figures").exists() and "(study.json, table.md)" in done.stderr
