"""`perse kgds import`: released summaries as a run that another judge can verify."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from kgds_builders import benchmark, put, write_benchmark_file, write_released
from typer.testing import CliRunner

from perse.commands.kgds.app import app
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput, PerseError, RunMismatch
from perse.judging.judge import Judge
from perse.kgds.asking.verify import verify
from perse.kgds.folder import SUMMARIES, read_summaries
from perse.kgds.released.importing import import_released
from perse.kgds.run_outcomes import read_outcomes
from perse.rendering.prompt import TextRenderer

EBS = "paradigms/ebs-aos/structured-prompt/alpha"


def test_another_judge_verifies_imported_summaries(tmp_path: Path) -> None:
    outputs = write_released(tmp_path)
    [imported] = import_released(outputs, benchmark(), tmp_path / "runs", models=["alpha"])
    assert (imported.run, imported.summaries, imported.failed) == (tmp_path / "runs" / "alpha", 8, 0)
    found = read_summaries(imported.run)
    assert list(found) == [(p, q) for p in ("ebs-aos", "abs-aos") for q in ("structured", "reflection")]
    assert found["ebs-aos", "reflection"][1].paragraphs == (1, 2, 9)
    assert found["abs-aos", "structured"][2].background == "A library opens."
    judge = Judge(ScriptedEngine(lambda message, seed: "[Answer] yes"), TextRenderer(), name="another")
    verify(judge, benchmark(), imported.run, name="verified")
    rows = read_outcomes(imported.run, benchmark())
    assert {row.model for row in rows} == {"alpha"}
    assert all(all(outcome.opinions or ()) for row in rows for outcome in row.samples.values())


def test_an_odd_tag_is_kept_apart_and_what_is_no_summary_is_a_failure_with_its_reason(tmp_path: Path) -> None:
    outputs = write_released(tmp_path)
    text = {"Abstractive_Opinion_Summary": "Person1 is glad."}
    put(outputs / EBS / "1.ebs-aos.result.json", {"Extractive_Background_Summary": ["<Paragraph_1>", "Paragraphs 2-3"], **text})
    (outputs / EBS / "2.ebs-aos.result.json").write_text("Sure!")
    [imported] = import_released(outputs, benchmark(), tmp_path / "runs", models=["alpha"])
    found = read_summaries(imported.run)["ebs-aos", "structured"]
    assert (found[1].paragraphs, found[1].odd, found[1].status) == ((1,), ("Paragraphs 2-3",), "ok")
    assert (found[2].status, found[2].error) == ("bad_json", "the model's answer: is not JSON")
    assert imported.failed == 1


def test_the_same_command_again_adds_nothing_and_another_release_is_refused(tmp_path: Path) -> None:
    outputs = write_released(tmp_path)
    import_released(outputs, benchmark(), tmp_path / "runs")
    path = tmp_path / "runs" / "beta" / SUMMARIES
    before = path.read_bytes()
    path.write_bytes(b"".join(before.splitlines(keepends=True)[:3]))  # as after a kill
    import_released(outputs, benchmark(), tmp_path / "runs")
    assert path.read_bytes() == before
    put(outputs / EBS / "1.ebs-aos.result.json", {})
    with pytest.raises(RunMismatch, match="sources was"):
        import_released(outputs, benchmark(), tmp_path / "runs")


def test_of_several_models_none_is_imported_where_the_place_of_one_is_taken(tmp_path: Path) -> None:
    outputs = write_released(tmp_path)
    mine = tmp_path / "runs" / "beta" / "notes.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(PerseError):
        import_released(outputs, benchmark(), tmp_path / "runs")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["beta"] and [
        path.name for path in mine.parent.iterdir()
    ] == ["notes.txt"]


def test_an_empty_folder_is_left_out_and_said(tmp_path: Path) -> None:
    outputs = write_released(tmp_path)
    for path in (outputs / EBS).iterdir():
        path.unlink()
    [imported] = import_released(outputs, benchmark(), tmp_path / "runs", models=["alpha"])
    assert imported.summaries == 6 and "ebs-aos structured is left out" in imported.notes[0]
    shutil.rmtree(outputs / "paradigms")
    with pytest.raises(BadInput, match="has no summaries of 'alpha'"):
        import_released(outputs, benchmark(), tmp_path / "more", models=["alpha"])


def test_the_command_says_what_to_do_next(tmp_path: Path) -> None:
    path, outputs = write_benchmark_file(tmp_path), write_released(tmp_path)
    given = ["import", str(path), str(outputs), "--model", "beta", "--out", str(tmp_path / "runs"), "--json"]
    ran = CliRunner().invoke(app, given)
    assert ran.exit_code == 0 and [one["model"] for one in json.loads(ran.stdout)] == ["beta"]
    assert "beta: 8 summaries, of which 1 cannot be read" in ran.stderr
    assert f"next: perse kgds verify {path} {tmp_path / 'runs' / 'beta'} --judge JUDGE" in " ".join(ran.stderr.split())


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\x1b[31m", b"n\nl", "a\u202eb".encode()])
def test_a_folder_that_can_name_no_model_is_a_sentence_without_what_a_terminal_obeys(tmp_path: Path, name: bytes) -> None:
    outputs = write_released(tmp_path)
    (outputs / "paradigms" / "ebs-aos" / "structured-prompt" / os.fsdecode(name)).mkdir()
    with pytest.raises(BadInput, match="which cannot name one .*; rename it") as refused:
        import_released(outputs, benchmark(), tmp_path / "runs")
    assert str(refused.value).isprintable() and not (tmp_path / "runs").exists()
