"""`perse rehearsal ...` as a person types it: what is refused, and how."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import perse
from rehearsal_builders import Cast, persum_folder, sample

from perse.commands.rehearsal.run import next_command
from perse.errors import BadInput
from perse.rehearsal.folder import read_rates, read_traces
from perse.rehearsal.samples import read_samples
from perse.rehearsal.scoring.asking import wanted_of


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return persum_folder(tmp_path / "persum", [sample(1), sample(2)])


def refused(*arguments: object) -> str:
    done = perse("rehearsal", *arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    return " ".join(done.stderr.split())


def test_a_folder_that_is_no_persum_is_refused_before_a_model_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    told = refused("run", tmp_path / "notes", "--writer", tmp_path / "no-model", "--out", tmp_path / "run")
    assert "found no PerSum folder" in told and "perse data persum" in told


def test_samples_without_history_or_product_reviews_are_refused_with_their_line(tmp_path: Path) -> None:
    for name in ("history", "product_reviews"):
        row = json.loads(sample(1).model_dump_json()) | {name: []}
        folder = persum_folder(tmp_path / name, [])
        (folder / "samples.jsonl").write_text(json.dumps(row) + "\n")
        told = refused("plan", folder)
        assert "samples.jsonl, line 1" in told and name in told


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    assert "the file is empty" in refused("plan", persum_folder(tmp_path / "empty", []))


def test_a_plan_is_printed_and_needs_both_rates_for_hours(data: Path) -> None:
    done = perse("rehearsal", "plan", data, "--method", "onlysum", "--prefill", "1000", "--decode", "100")
    assert done.returncode == 0 and "minutes" in done.stdout and "writer" in done.stdout
    assert "give --prefill and --decode" in refused("plan", data, "--prefill", "1000")
    assert "999999999999999999999" in refused("plan", data, "--answer-tokens", "999999999999999999999"), (
        "and no number that overflows"
    )
    found = json.loads(perse("rehearsal", "plan", data, "--method", "onlysum", "--json").stdout)
    assert found["details"]["loads"]["writer"]["calls"] == 2


def test_an_unknown_method_is_refused_with_those_that_there_are(data: Path, tmp_path: Path) -> None:
    told = refused("run", data, "--writer", "smollm2-135m", "--method", "magic", "--out", tmp_path / "run")
    assert "magic" in told and "sum-perchan" in told


def test_the_command_that_comes_next_names_the_limit_that_the_run_was_made_with() -> None:
    assert next_command(Path("persum"), Path("run"), limit=2) == "perse rehearsal score persum run --limit 2 --judge JUDGE"
    assert next_command(Path("persum"), Path("run"), limit=None) == "perse rehearsal score persum run --judge JUDGE"


def test_scores_are_refused_for_another_limit_another_folder_and_a_path_for_a_name(data: Path, tmp_path: Path) -> None:
    given = read_samples(data)
    run = Cast().rehearse(tmp_path / "run", given.samples, ["onlysum"])
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["run"]["samples"]["sha256"] = given.digest
    (run / "manifest.json").write_text(json.dumps(manifest))
    judge = ("--judge", tmp_path / "no-model")
    assert "made of other samples (it has 2)" in refused("score", data, run, *judge, "--limit", "1")
    assert "is not a run folder" in refused("score", data, data.parent / "nowhere", *judge)
    assert "give a name and no path" in refused("score", data, run, *judge, "--name", "../x")


def test_nobody_is_taken_out_of_a_run_and_the_way_is_said(tmp_path: Path) -> None:
    run = Cast().rehearse(tmp_path / "run", [sample(1)], ["onlysum"])
    done = perse("data", "forget", "u1", run, "--salt", "x")
    assert done.returncode == 2 and "remove the folder, and run again" in " ".join(done.stderr.split())
    assert (run / "traces.jsonl").read_text()


def test_damaged_runs_are_sentences_that_name_the_line(tmp_path: Path) -> None:
    run = Cast().rehearse(tmp_path / "run", [sample(1)], ["role-supervisor"])
    line = (run / "traces.jsonl").read_text()
    for wrong, told in (
        (line + line, "line 2: 's1' has a second trace"),
        ('{"sample": 1}\n', "line 1"),
        ("[]\n", "line 1"),
        (line.replace('"method":"role-supervisor"', '"method":"magic"'), "line 1: there is no method 'magic'"),
        (line.replace('"kept":1', '"kept":99'), "line 1: version 99 is kept of 5"),
        ("", "no summaries yet"),
    ):
        (run / "traces.jsonl").write_text(wrong)
        with pytest.raises(BadInput, match=told):
            read_traces(run)
    for wrong in ("[1]", '{"practice 1": [2]}', '{"practice 1": 1}', "{", '{"practice 1": []}'):
        (run / "rates.json").write_text(wrong)
        with pytest.raises(BadInput, match="rates.json"):
            read_rates(run)


def test_a_sample_whose_name_no_example_could_have_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    row = json.loads(sample(1).model_dump_json()) | {"id": "\x1b[31mred"}
    folder = persum_folder(tmp_path / "odd", [])
    (folder / "samples.jsonl").write_text(json.dumps(row) + "\n")
    assert "U+001B" in refused("plan", folder)


def test_a_trace_of_a_sample_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    run = Cast().rehearse(tmp_path / "run", [sample(1)], ["onlysum"])
    traces = run / "traces.jsonl"
    traces.write_text(traces.read_text().replace('"sample":"s1"', '"sample":"zzz"'))
    with pytest.raises(BadInput, match="has a summary of 'zzz', which is none of its samples"):
        wanted_of([sample(1)], run, digest="of these")


def test_pass_rates_that_were_removed_are_counted_again(tmp_path: Path) -> None:
    cast = Cast()
    run = cast.rehearse(tmp_path / "run", [sample(1)], ["role-supervisor"])
    rates, asked = (run / "rates.json").read_bytes(), len(cast.asked)
    (run / "rates.json").unlink()
    cast.rehearse(run, [sample(1)], ["role-supervisor"])
    assert (run / "rates.json").read_bytes() == rates and len(cast.asked) == asked


def test_a_run_of_another_kind_has_no_stories(tmp_path: Path) -> None:
    run = Cast().rehearse(tmp_path / "run", [sample(1)], ["onlysum"])
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, "run": {**manifest["run"], "kind": "score"}}))
    assert "holds a run of perse score; give a folder that `perse rehearsal run` wrote" in refused("trace", run, "s1")
