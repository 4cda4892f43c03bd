from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from kgds_builders import put, write_benchmark_file, write_released
from typer.testing import CliRunner, Result

from perse.commands.kgds.numbers import metrics, stats
from perse.errors import BadInput
from perse.kgds.folder import SUMMARIES, Summary
from perse.kgds.scoring.results import Results
from perse.kgds.stats import Stats

app = typer.Typer()
app.command("stats")(stats)
app.command("metrics")(metrics)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def lines(result: Result) -> list[list[str]]:
    assert result.exit_code == 0
    return [line.split() for line in result.stdout.splitlines()]


def write_run(folder: Path, *, model: str = "ours", failed: bool = False) -> Path:
    """A RUN folder of both samples' summaries under ebs-aos, not verified."""
    folder.mkdir()
    first = Summary(
        sample=1, pattern="ebs-aos", paradigm="structured", model=model, paragraphs=(1, 3), opinions="It was overdue."
    )
    second = first.model_copy(update={"sample": 2, "paragraphs": (2, 7)})
    if failed:
        second = second.model_copy(update={"status": "unparsed", "paragraphs": None, "opinions": None, "error": "not JSON"})
    (folder / SUMMARIES).write_text("".join(one.model_dump_json() + "\n" for one in (first, second)))
    return folder


def test_stats_are_tables_for_people_and_json_for_programs(tmp_path: Path) -> None:
    path = write_benchmark_file(tmp_path)
    assert "clarified references" in call("stats", path).stdout
    found = Stats.model_validate_json(call("stats", path, "--json").stdout)
    assert (found.samples, found.opinions) == (2, 5)


def test_the_released_folder_gives_the_papers_tables(tmp_path: Path) -> None:
    path, outputs = write_benchmark_file(tmp_path), write_released(tmp_path)
    shown = call("metrics", path, outputs)
    rows = lines(shown)
    assert ["alpha", "100.00", "75.00", "83.33", "58.33", "69.69"] in rows
    assert ["with", "reflection", "↓75.00", "↓50.00", "↓58.33", "↓8.33", "↓34.33"] in rows
    assert ["beta", "0.00", "0.00", "66.67", "33.33", "0.00", "3", "of", "3"] in rows
    assert ["alpha,", "structured", "-2.13", "70.76"] in rows
    # Summaries, failed, unanswered, extracted, citations of no paragraph.
    assert ["beta,", "ebs-aos,", "structured", "2", "1", "0", "25.00", "0"] in rows
    assert ["alpha,", "ebs-aos,", "reflection", "2", "0", "0", "25.00", "1"] in rows
    assert "some intervals are undefined (few samples)" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 100


def test_json_is_the_results_alone_and_the_same_again(tmp_path: Path) -> None:
    path, outputs = write_benchmark_file(tmp_path), write_released(tmp_path)
    once = call("metrics", path, outputs, "--json", "--resamples", 100)
    assert len(Results.model_validate_json(once.stdout).scores) == 8
    assert call("metrics", path, outputs, "--json", "--resamples", 100).stdout == once.stdout


def test_a_run_that_is_not_verified_says_what_makes_it(tmp_path: Path) -> None:
    path, run = write_benchmark_file(tmp_path), write_run(tmp_path / "run", failed=True)
    shown = call("metrics", path, run)
    assert f"{run} has no verification 'verified'; to make it: perse kgds verify {path} {run} --judge JUDGE" in shown.stderr
    # Sample 1 extracts what it should, sample 2 failed; opinions are not known, which is not 0.
    assert ["ours", "50.00", "50.00", "50.00", "-", "-"] in lines(shown)
    assert "ours, ebs-aos, structured: opinions of sample 1 are not known" in shown.stdout
    assert "--name strict" in call("metrics", path, run, "--name", "strict").stderr


def test_our_runs_and_released_models_stand_side_by_side(tmp_path: Path) -> None:
    path, outputs, run = write_benchmark_file(tmp_path), write_released(tmp_path), write_run(tmp_path / "run")
    found = json.loads(call("metrics", path, run, outputs, "--json", "--resamples", 100).stdout)
    assert {scores["model"] for scores in found["scores"]} == {"ours", "alpha", "beta"}
    assert next(scores for scores in found["scores"] if scores["model"] == "ours")["strange"] == 1


def test_names_of_models_are_shown_as_they_are(tmp_path: Path) -> None:
    path = write_benchmark_file(tmp_path)
    run = write_run(tmp_path / "run", model="[bold]a[/bold] [link=x]")
    assert "[bold]a[/bold]" in call("metrics", path, run).stdout


def test_folders_that_are_not_there_or_hold_nothing_are_refused(tmp_path: Path) -> None:
    path = write_benchmark_file(tmp_path)
    with pytest.raises(BadInput, match="there is no folder .*nowhere; give a RUN folder"):
        call("metrics", path, tmp_path / "nowhere")
    put(tmp_path / "empty" / "notes.json", {})
    with pytest.raises(BadInput, match="empty has no summaries.jsonl; give a folder that"):
        call("metrics", path, tmp_path / "empty")
