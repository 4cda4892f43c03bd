from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from kgds_builders import put, write_benchmark_file, write_released
from typer.testing import CliRunner
from typer.testing import Result as Ran

from perse.commands.kgds.numbers import metrics, stats
from perse.commands.kgds.report import report
from perse.errors import BadInput
from perse.judgement import Judgement, Status, Tokens
from perse.kgds.folder import SUMMARIES, Summary, opinion_id
from perse.kgds.scoring.results import Results
from perse.kgds.stats import Stats
from perse.results.result import Estimate, Result

app = typer.Typer()
app.command("stats")(stats)
app.command("metrics")(metrics)
app.command("report")(report)


def call(*arguments: object) -> Ran:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def details(printed: Ran) -> dict[str, Any]:
    return Result.model_validate_json(printed.stdout).details


def values(*arguments: object) -> dict[str, list[list[object]]]:
    """The rows of each table, of estimates their values."""
    found = Result.model_validate_json(call("metrics", *arguments, "--json", "--resamples", 100).stdout)
    return {
        table.title: [[cell.value if isinstance(cell, Estimate) else cell for cell in row] for row in table.rows]
        for table in found.tables
    }


def lines(result: Ran) -> list[list[str]]:
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
    found = Stats.model_validate(details(call("stats", path, "--json")))
    assert (found.samples, found.opinions) == (2, 5)


def test_the_released_folder_gives_the_papers_tables(tmp_path: Path) -> None:
    path, outputs = write_benchmark_file(tmp_path), write_released(tmp_path)
    shown = call("metrics", path, outputs)
    rows = values(path, outputs)
    assert ["alpha", "structured", 100.0, 75.0, 83.33, 58.33, 69.69, 75.0] in rows["EBS-AOS with intervals"]
    assert ["alpha", "EBS-AOS", -75.0, -50.0, -58.33, -8.33, -34.33, -50.0] in rows["Reflection minus structured"]
    errors = rows["EBS-AOS: why opinions are not covered, in percent of those classified"]
    assert ["beta", "structured", 0.0, 0.0, 66.67, 33.33, 0.0, "3 of 3"] in errors
    assert ["beta", "reflection minus structured", 0.0, 0.0, 33.33, -33.33, 0.0, None] in errors
    assert ["alpha", "structured", -2.13, 70.76] in rows["Both patterns"]
    # Summaries, failed, the same in percent, unanswered, citations of no paragraph, tags of no number, opinions not covered, of these classified.
    assert ["beta", "EBS-AOS", "structured", "2", "0", 0.0, "0", "0", "0", "3", "3"] in rows["What was counted"]
    assert ["alpha", "EBS-AOS", "reflection", "2", "0", 0.0, "0", "1", "0", "2", "2"] in rows["What was counted"]
    assert "some intervals are undefined (few samples)" in shown.stdout
    assert ["alpha", "structured", "100.00", "75.00", "83.33", "58.33"] in lines(shown), "intervals stand below the values"
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_json_is_the_results_alone_and_the_same_again(tmp_path: Path) -> None:
    path, outputs = write_benchmark_file(tmp_path), write_released(tmp_path)
    once = call("metrics", path, outputs, "--json", "--resamples", 100)
    assert len(Results.model_validate(details(once)).scores) == 8
    assert call("metrics", path, outputs, "--json", "--resamples", 100).stdout == once.stdout


def test_a_run_that_is_not_verified_says_what_makes_it(tmp_path: Path) -> None:
    path, run = write_benchmark_file(tmp_path), write_run(tmp_path / "run", failed=True)
    shown = call("metrics", path, run)
    assert f"{run} has no verification 'verified'; to make it: perse kgds verify {path} {run} --judge JUDGE" in shown.stderr
    # Sample 1 extracts what it should, sample 2 failed; opinions are not known, which is not 0.
    assert ["ours", "structured", 50.0, 50.0, 50.0, None, None] in [
        row[:7] for row in values(path, run)["EBS-AOS with intervals"]
    ]
    assert "ours, ebs-aos, structured: opinions of sample 1 are not known" in shown.stdout
    assert "--name strict" in call("metrics", path, run, "--name", "strict").stderr


def test_our_runs_and_released_models_stand_side_by_side(tmp_path: Path) -> None:
    path, outputs, run = write_benchmark_file(tmp_path), write_released(tmp_path), write_run(tmp_path / "run")
    found = details(call("metrics", path, run, outputs, "--json", "--resamples", 100))
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


def test_one_model_of_a_release_is_scored_alone(tmp_path: Path) -> None:
    path, outputs, run = write_benchmark_file(tmp_path), write_released(tmp_path), write_run(tmp_path / "run")
    shutil.rmtree(outputs / "paradigms/ebs-aos/structured-prompt/beta")
    found = details(call("metrics", path, run, outputs, "--model", "alpha", "--json", "--resamples", 100))
    assert {scores["model"] for scores in found["scores"]} == {"alpha"} and len(found["scores"]) == 4
    both = details(call("metrics", path, run, outputs, "--model", "alpha", "--model", "ours", "--json", "--resamples", 100))
    assert {scores["model"] for scores in both["scores"]} == {"alpha", "ours"}
    with pytest.raises(BadInput, match="there is no model 'gamma' in .*; there is ours, alpha, beta"):
        call("metrics", path, run, outputs, "--model", "gamma")


def without_second_sample(outputs: Path, below: str) -> None:
    for file in [
        *outputs.glob(f"paradigms/{below}/2.*"),
        *outputs.glob(f"*/*/{below}/*aos-2_*"),
        *outputs.glob(f"*/*/{below}/*abs-2_*"),
    ]:
        file.unlink()


def test_each_models_own_samples_are_shown_below_those_that_all_have(tmp_path: Path) -> None:
    path, outputs = write_benchmark_file(tmp_path), write_released(tmp_path)
    alone = values(path, outputs, "--model", "alpha")
    without_second_sample(outputs, "ebs-aos/structured-prompt/beta")
    both = values(path, outputs)
    for pattern in ("EBS-AOS", "ABS-AOS"):
        own = both[f"{pattern}, each model on all samples of its own"]
        of_alpha = [[model, paradigm, "2", *rest] for model, paradigm, *rest in alone[f"{pattern} with intervals"]]
        assert [row for row in own if row[0] == "alpha"] == of_alpha and len(of_alpha) == 2
        assert both[f"{pattern} with intervals"][0] != alone[f"{pattern} with intervals"][0], "of the first sample alone"
    assert "each model on all samples of its own" in call("metrics", path, outputs, "--resamples", 100).stdout


def test_differences_between_models_are_shown_with_their_intervals(tmp_path: Path) -> None:
    path, outputs = write_benchmark_file(tmp_path), write_released(tmp_path)
    rows = values(path, outputs)
    for pattern in ("EBS-AOS", "ABS-AOS"):
        for at, paradigm in enumerate(("structured", "reflection")):
            [[model, minus, *apart]] = rows[f"{pattern}, {paradigm}: one model minus another"]
            alpha, beta = (row[2:] for row in rows[f"{pattern} with intervals"][2 * at : 2 * at + 2])
            assert (model, minus) == ("alpha", "beta")
            assert apart == pytest.approx([one - other for one, other in zip(alpha, beta, strict=True)], abs=0.005)  # type: ignore[operator]
    assert "one model minus another" in call("metrics", path, outputs, "--resamples", 100).stdout


def test_as_published_a_paragraph_that_does_not_exist_is_a_wrong_one(tmp_path: Path) -> None:
    path, run = write_benchmark_file(tmp_path), write_run(tmp_path / "run")
    # Sample 1 is right; sample 2 extracts paragraphs 2, which is right, and 7, which does not exist.
    assert values(path, run)["EBS-AOS with intervals"][0][2:5] == [100.0, 100.0, 100.0]
    assert values(path, run, "--as-published")["EBS-AOS with intervals"][0][2:5] == [100.0, 75.0, 83.33]


def test_a_row_that_is_refused_is_shown_with_its_reason(tmp_path: Path) -> None:
    path, outputs = write_benchmark_file(tmp_path), write_released(tmp_path)
    (outputs / "verification/opinion/ebs-aos/structured-prompt/beta/8.ebs-aos-1_1.result.json").unlink()
    assert "no verification" not in call("metrics", path, outputs).stderr
    left = values(path, outputs)["Left out"]
    assert [row[:3] for row in left] == [["beta", "EBS-AOS", "structured"]] and "2 files for 3 opinions" in str(left[0][3])


def test_what_verification_took_stands_beside_the_metrics_with_its_price(tmp_path: Path) -> None:
    path, run = write_benchmark_file(tmp_path), write_run(tmp_path / "run")
    assert "What it took" not in values(path, run), "nothing was asked yet"
    verified_by(run, "gpt")
    spent = values(path, run)["What it took"]
    assert spent == [["ours", "opinions", "gpt", "5", "5,000", "3,000", "50", None]]
    # 3,000 at 2 a million, 2,000 cached at 1, 50 written at 10.
    priced = values(path, run, "--prices", "gpt=2,10,1")["What it took"]
    assert priced[0][-1] == "0.0085"
    with pytest.raises(BadInput, match="--prices names 'other', but the judges are gpt"):
        call("metrics", path, run, "--prices", "other=1,1")


@pytest.mark.slow
def test_a_report_has_the_numbers_of_the_command_with_the_same_options(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need the extra 'report'")
    path, outputs, run = write_benchmark_file(tmp_path), write_released(tmp_path), write_run(tmp_path / "run")
    verified_by(run, "gpt")
    without_second_sample(outputs, "abs-aos/structured-prompt/alpha")
    odd = outputs / "verification/opinion/ebs-aos/structured-prompt/alpha/8.ebs-aos-1_1.result.json"
    put(odd, {"Inference_Conclusion": "partly"})  # which is refused but as published
    given = [path, run, outputs, "--resamples", 100]
    options = ["--model", "ours", "--model", "alpha", "--as-published", "--prices", "gpt=2,10,1"]
    assert call("report", *given, *options, "--out", tmp_path / "report").exit_code == 0
    written = Result.model_validate_json((tmp_path / "report" / "results.json").read_bytes())
    told = Result.model_validate_json(call("metrics", *given, *options, "--json").stdout)
    assert written.details == told.details and written.tables == told.tables
    assert {scores["model"] for scores in written.details["scores"]} == {"ours", "alpha"} and not written.details["refused"]
    assert [cost["cost"] for cost in written.details["costs"]] == [0.0085] and written.details["as_published"]
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "one model minus another" in page and "each model on all samples of its own" in page


@pytest.mark.slow
def test_a_report_of_several_runs_has_what_each_of_them_took_and_all_of_them_at_its_price(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need the extra 'report'")
    path, runs = write_benchmark_file(tmp_path), [write_run(tmp_path / name, model=name) for name in ("first", "second")]
    for run, judge in zip(runs, ("gpt", "mini"), strict=True):
        verified_by(run, judge)
    out = tmp_path / "report"
    prices = ("--prices", "gpt=2,10,1", "--prices", "mini=1,5,0.5")
    assert call("report", path, *runs, *prices, "--out", out, "--resamples", 100).exit_code == 0
    found = Result.model_validate_json((out / "results.json").read_text())
    (took,) = (table for table in found.tables if table.title == "What it took")
    # As above, and half of it by a judge at half the price.
    assert [(*row[:4], row[-1]) for row in took.rows] == [
        ("first", "opinions", "gpt", "5", "0.0085"),
        ("second", "opinions", "mini", "5", "0.0043"),
        ("all", "", "", "10", "0.0128"),
    ]
    assert "0.0128" in (out / "report.html").read_text()


def verified_by(run: Path, judge: str) -> None:
    """Keep in RUN what a judge answered about the five opinions, for 1,000 tokens read, 400 of them cached, and 10 written each."""
    folder = run / "verified"
    put(folder / "manifest.json", {"run": {"kind": "kgds-verify", "judge": {"model": judge}}})
    tokens = {"prompt": 1000, "cached": 400, "generated": 10}
    opinions = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    (folder / "judgements.jsonl").write_text("".join(judgement(sample, at, tokens) for sample, at in opinions))


def judgement(sample: int, at: int, tokens: dict[str, int]) -> str:
    one = Judgement(
        id=opinion_id(f"ebs-aos/structured/{sample:03d}", at), question="verify_opinion", status=Status.OK, label="yes",
        k_effective=0, tokens=Tokens(**tokens), model="gpt",
    )  # fmt: skip
    return one.model_dump_json() + "\n"
