"""`perse fit`, and what it wrote applied: by score, ask and the server, all of them alike."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import numpy as np
import pytest
from builders import save_answering_llama
from command_line import perse
from fastapi import FastAPI
from fastapi.testclient import TestClient
from served import serving

from perse.answering.base import JudgeSettings
from perse.batch.scored import read_run
from perse.judgement import Judgement
from perse.results.result import Result
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.front.guard import Guard
from perse.serving.plugin import JudgePlugin, Serving
from perse.stacking.applying import stacked
from perse.stacking.file import read_stacking

ASKED = ("--question", "pointwise_score", "--dtype", "float32", "--temperature", 0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty readers of thirty short texts, half of them for validation."""
    folder = tmp_path_factory.mktemp("reviews")
    generator = np.random.default_rng(5)
    quality, rows = generator.normal(size=30), []
    for reader in range(40):
        lenient = generator.normal()
        for text in generator.choice(30, 10, replace=False).tolist():
            score = int(np.clip(np.round(5.5 + lenient + 1.5 * quality[text] + generator.normal(0, 0.7)), 1, 10))
            words = f"In story number {text} somebody goes to the sea, meets {text} strangers and comes home as another"
            rows.append({"reviewer_id": f"reader {reader}", "item_id": f"t{text}", "text": words, "score": score})
            rows[-1]["review"] = f"reader {reader} says of it what must be said of story {text} at some length"
    file = folder / "reviews.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    done = perse("data", "pointwise", "--reviews", file, "--k", 2, "--valid", 0.5, "--out", folder / "data")
    assert done.returncode == 0, done.stderr
    return folder / "data"


@pytest.fixture(scope="module")
def judge(tokenizers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge of its own, beside which a stacking may lie, and which vLLM computes, too."""
    return save_answering_llama(tokenizers["whole_numbers"], tmp_path_factory.mktemp("judge") / "tiny", width=128)


@pytest.fixture(scope="module")
def run(data: Path, judge: Path) -> Path:
    out = data.parent / "run"
    done = perse("score", "--examples", data, "--judge", judge, "--out", out, *ASKED, "--no-stacking")
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def fitted(run: Path, judge: Path) -> Path:
    done = perse("fit", run, "--resamples", 100)
    assert done.returncode == 0, done.stderr
    assert "written:" in done.stdout and "The language model" in done.stdout
    return judge / "stacking.json"


@pytest.fixture(scope="module")
def stacked_run(fitted: Path, data: Path, judge: Path) -> Path:
    out = data.parent / "stacked"
    done = perse("score", "--examples", data, "--judge", judge, "--out", out, *ASKED)
    assert done.returncode == 0, done.stderr
    assert "examples are of readers on whom the stacking was fitted" in " ".join(done.stderr.split())
    return out


def items(run: Path) -> list[tuple[Any, Judgement]]:
    read = read_run(run)
    by_id = {one.id: one for one in read.judgements}
    return [(example, by_id[example.id]) for example in read.examples]


@pytest.mark.slow
def test_the_file_says_what_it_is_of(fitted: Path, run: Path) -> None:
    told = read_stacking(fitted)
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    assert told.judge.sha256 == manifest["run"]["judge"]["digest"]
    assert told.data.sha256 == manifest["context"]["data_digest"]
    assert told.question == "pointwise_score" and told.sources == ("judge", "reader", "others", "bias")
    assert "reader 1" not in fitted.read_text("utf-8") and len(told.readers) == 20


@pytest.mark.slow
def test_score_ask_and_server_apply_it_alike(fitted: Path, stacked_run: Path, judge: Path, tmp_path: Path) -> None:
    told = read_stacking(fitted)
    settings = JudgeSettings(temperature=0)
    app = embedded_app(embedded_models("tiny", judge, {}, dtype="float32", context=2048), settings)
    some = items(stacked_run)[:4]
    with TestClient(app, base_url="http://127.0.0.1") as client:
        asked = {"input": [one.model_dump(mode="json", exclude_none=True) for one, _ in some], "question": "pointwise_score"}
        served = [Judgement.model_validate(one) for one in client.post("/v1/judge/pointwise", json=asked).json()["results"]]
    for (example, scored), answer in zip(some, served, strict=True):
        reviews = tmp_path / "mine.jsonl"
        rows = [past.model_dump(include={"text", "review", "score"}) for past in example.profile]
        reviews.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        done = perse("ask", "--judge", judge, "--reviews", reviews, "--text", example.query, *ASKED, "--json")
        by_hand = Judgement.model_validate_json(done.stdout)
        for one in (scored, answer, by_hand):  # each of its own distribution, whose last digits hang on the batch
            assert one.stacked == stacked(told, example, one)
            assert one.stacked.distribution == pytest.approx(scored.stacked.distribution, abs=1e-3)  # type: ignore[union-attr]


@pytest.mark.slow
def test_the_run_is_evaluated_with_a_row_of_its_own(stacked_run: Path) -> None:
    done = perse("evaluate", stacked_run, "--no-text", "--resamples", 100, "--json")
    assert done.returncode == 0, done.stderr
    names = [row[0] for table in Result.model_validate_json(done.stdout).tables for row in table.rows]
    assert "stacked (stacked)" in names
    assert "on whom the stacking was fitted" in done.stdout


@pytest.mark.slow
def test_a_stacked_run_is_fitted_on_as_it_was_before(stacked_run: Path, run: Path, tmp_path: Path) -> None:
    for number, one in enumerate((run, stacked_run)):
        done = perse("fit", one, "--resamples", 100, "--out", tmp_path / f"{number}.json")
        assert done.returncode == 0, done.stderr
    assert read_stacking(tmp_path / "0.json") == read_stacking(tmp_path / "1.json")


def test_ask_says_what_is_lacking(fitted: Path, judge: Path) -> None:
    done = perse("ask", "--judge", judge, "--reviews", _mine(judge), "--text", "A text that nobody knows", *ASKED)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "with the numbers that need no judge: expected" in said
    assert "(without other readers' scores of the text)" in said


def _mine(judge: Path) -> Path:
    path = judge.parent / "mine.jsonl"
    path.write_text('{"text": "A story", "review": "Nice", "score": 8}\n', "utf-8")
    return path


def test_no_stacking_leaves_it_out(fitted: Path, judge: Path, tmp_path: Path) -> None:
    asked = ("ask", "--judge", judge, "--reviews", _mine(judge), "--text", "A text", *ASKED, "--json")
    assert json.loads(perse(*asked).stdout)["stacked"]
    assert json.loads(perse(*asked, "--no-stacking").stdout)["stacked"] is None
    (tmp_path / "s.json").write_bytes(fitted.read_bytes())
    assert json.loads(perse(*asked, "--stacking", tmp_path / "s.json").stdout)["stacked"]
    both = perse(*asked, "--no-stacking", "--stacking", tmp_path / "s.json")
    assert both.returncode == 2 and "cannot be given together" in both.stderr


def test_a_stacking_of_another_judge_is_refused_where_it_was_named_and_left_out_where_it_was_found(
    fitted: Path, judge: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = json.loads(fitted.read_text("utf-8"))
    told["judge"]["sha256"] = "0" * 64
    (tmp_path / "s.json").write_text(json.dumps(told), "utf-8")
    done = perse("ask", "--judge", judge, "--reviews", _mine(judge), "--text", "A", *ASKED, "--stacking", tmp_path / "s.json")
    assert done.returncode == 2 and "was fitted on the answers of another judge" in done.stderr
    other = tmp_path / "judge"
    other.mkdir()
    for part in judge.iterdir():
        (other / part.name).write_bytes(part.read_bytes())
    (other / "stacking.json").write_text(json.dumps(told), "utf-8")
    done = perse("ask", "--judge", other, "--reviews", _mine(judge), "--text", "A", *ASKED, "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["stacked"] is None, done.stderr
    assert any("stacking.json is left out: it was fitted on the answers of another judge" in one for one in caplog.messages)


def test_a_reader_of_the_training_side_has_nothing_stacked(fitted: Path, data: Path, judge: Path, tmp_path: Path) -> None:
    asked = ("score", "--examples", data, "--judge", judge, "--split", "train", "--limit", 3, *ASKED, "--out", tmp_path / "run")
    done = perse(*asked)
    assert done.returncode == 0 and "3 of 3 examples have nothing stacked" in " ".join(done.stderr.split()), done.stderr
    answers = read_run(tmp_path / "run").judgements
    assert [(one.stacked, "training side" in (one.not_stacked or "")) for one in answers] == [(None, True)] * 3


def test_what_stacks_at_servers_is_theirs_to_say(judge: Path, data: Path, tmp_path: Path) -> None:
    asked = (
        "score",
        "--examples",
        data,
        "--judge",
        "first",
        "--out",
        tmp_path / "run",
        "--driver",
        "http",
        "--servers",
        "http://x:1",
    )
    for given in (("--no-stacking",), ("--stacking", "s.json")):
        done = perse(*asked, *given)
        assert done.returncode == 2 and "no_stacking=true" in done.stderr and given[0] in done.stderr


@pytest.mark.slow
def test_another_data_set_is_not_stacked_by_these_numbers(fitted: Path, data: Path, judge: Path, tmp_path: Path) -> None:
    file = data.parent / "reviews.jsonl"
    made = perse("data", "pointwise", "--reviews", file, "--k", 1, "--valid", 0.4, "--out", tmp_path / "other")
    assert made.returncode == 0, made.stderr
    asked = ("score", "--examples", tmp_path / "other", "--judge", judge, "--limit", 2, *ASKED)
    done = perse(*asked, "--out", tmp_path / "run")
    assert done.returncode == 2 and "of another data set" in done.stderr and "--no-stacking" in done.stderr
    assert perse(*asked, "--out", tmp_path / "run", "--no-stacking").returncode == 0


@pytest.mark.slow
def test_numbers_alone_are_measured_and_nothing_is_written(data: Path, tmp_path: Path) -> None:
    before = {path.name for path in data.iterdir()}
    done = perse("fit", "--data", data, "--resamples", 100, "--json")
    assert done.returncode == 0, done.stderr
    assert "The numbers that need no judge reach" in json.loads(done.stdout)["answer"]
    assert {path.name for path in data.iterdir()} == before


@pytest.mark.parametrize(
    "given, said",
    [
        ((), "one of them"),
        (("RUN", "--data", "DATA"), "one of them"),
        (("--data", "DATA", "--out", "s.json"), "leave --out"),
        (("--data", "RUN"), "is no data set folder"),
        (("RUN", "RUN"), "is given twice"),
        (("RUN",), "already holds a stacking"),
    ],
)
def test_what_cannot_be_fitted_is_said(fitted: Path, run: Path, data: Path, given: tuple[str, ...], said: str) -> None:
    known = {"RUN": run, "DATA": data}
    done = perse("fit", *(known.get(one, one) for one in given))
    assert done.returncode == 2 and said in " ".join(done.stderr.split()), done.stderr


@pytest.mark.slow
def test_a_judge_that_is_no_folder_here_needs_a_place(run: Path, tmp_path: Path) -> None:
    moved = tmp_path / "run"
    moved.mkdir()
    for part in run.iterdir():
        (moved / part.name).write_bytes(part.read_bytes())
    manifest = json.loads((moved / "manifest.json").read_text("utf-8"))
    manifest["context"]["judge"] = {"model": None, "adapter": None}
    (moved / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    done = perse("fit", moved, "--resamples", 100)
    assert done.returncode == 2 and "--out stacking.json" in done.stderr
    assert perse("fit", moved, "--resamples", 100, "--out", tmp_path / "stacking.json").returncode == 0
    assert read_stacking(tmp_path / "stacking.json").judge.model


def test_a_run_that_was_killed_is_not_fitted_on_as_if_it_were_whole(run: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"
    shutil.copytree(run, killed)
    lines = (killed / "judgements.jsonl").read_bytes().splitlines(keepends=True)
    (killed / "judgements.jsonl").write_bytes(b"".join(lines[:-20]))
    done = perse("fit", killed, "--out", tmp_path / "s.json", "--resamples", 100)
    said = f"killed is not finished: {len(lines) - 20} of {len(lines)} examples judged; run `perse score` again with the same command"
    assert done.returncode == 2 and said in done.stderr and not (tmp_path / "s.json").exists()


def test_runs_of_two_judges_are_refused(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for part in run.iterdir():
        (other / part.name).write_bytes(part.read_bytes())
    manifest = json.loads((other / "manifest.json").read_text("utf-8"))
    manifest["run"]["judge"]["digest"] = "0" * 64
    (other / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    done = perse("fit", run, other)
    assert done.returncode == 2 and "is of another judge" in done.stderr


@pytest.mark.slow
def test_the_server_in_vllm_applies_it_as_the_embedded_one_does(
    fitted: Path, stacked_run: Path, judge: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin as vLLM makes it, on the embedded engine in the place of vLLM's."""
    load = embedded_models("tiny", judge, {}, dtype="float32", context=2048)["tiny"]

    class Served:
        room = 4

        def __init__(self, *_: Any) -> None: ...
        def engine(self, _: Any, calls: Any) -> Any:
            return load.engine(calls)

        def forget(self) -> None: ...
        async def alive(self) -> None: ...

    monkeypatch.setitem(
        sys.modules,
        "perse.engines.vllm",
        SimpleNamespace(VERSION="0", Served=Served, served_lora=None),  # type: ignore[arg-type]
    )
    monkeypatch.setattr("perse.serving.plugin.vllm_registry", lambda: None)

    async def tasks() -> list[str]:
        return ["generate"]

    config = SimpleNamespace(model_config=SimpleNamespace(max_model_len=2048))
    client = SimpleNamespace(get_supported_tasks=tasks, vllm_config=config)
    app = FastAPI()
    app.state.openai_serving_models = SimpleNamespace(lora_requests={})
    plugin, args = JudgePlugin(), Namespace(perse=Serving("tiny", judge, {}, JudgeSettings(temperature=0)))
    plugin.attach_router(app)
    app.add_middleware(Guard)
    asyncio.run(plugin.init_state(client, app.state, args))
    told = read_stacking(fitted)
    for example, scored in items(stacked_run)[:2]:
        item = example.model_dump(mode="json", exclude_none=True)
        with TestClient(app, base_url="http://127.0.0.1") as http:
            answer = http.post("/v1/judge/pointwise", json={"input": item, "question": "pointwise_score"})
        assert answer.status_code == 200, answer.text
        one = Judgement.model_validate(answer.json())
        assert one.stacked == stacked(told, example, one) and scored.stacked is not None and one.stacked is not None
        assert one.stacked.expected == pytest.approx(scored.stacked.expected, abs=0.01)


@pytest.mark.integration
@pytest.mark.parametrize("engine", ["transformers", pytest.param("vllm", marks=pytest.mark.long)])
def test_a_server_that_a_person_starts_applies_what_lies_beside_its_model(
    engine: str, fitted: Path, stacked_run: Path, judge: Path, tmp_path: Path
) -> None:
    """Of its own distribution, as `perse score` does, to the last digit."""
    if engine == "vllm":
        pytest.importorskip("vllm")
    told, some = read_stacking(fitted), items(stacked_run)[:6]
    with serving(tmp_path / "log", f"model={judge}", "dtype=float32", "temperature=0", engine=engine) as running:
        asked = {"input": [one.model_dump(mode="json", exclude_none=True) for one, _ in some], "question": "pointwise_score"}
        answered = httpx2.post(f"{running.url}/v1/judge/pointwise", json=asked, timeout=300)
    assert answered.status_code == 200, answered.text
    for (example, scored), answer in zip(some, map(Judgement.model_validate, answered.json()["results"]), strict=True):
        assert answer.stacked is not None and scored.stacked is not None
        assert answer.stacked == stacked(told, example, answer)
        assert answer.stacked.distribution == pytest.approx(scored.stacked.distribution, abs=1e-3)


@pytest.mark.integration
def test_runs_in_shards_keep_what_is_stacked(stacked_run: Path, data: Path, judge: Path, tmp_path: Path) -> None:
    asked = (
        "score",
        "--examples",
        data,
        "--judge",
        judge,
        "--limit",
        3,
        *ASKED,
        "--out",
        tmp_path / "run",
        "--driver",
        "local",
    )
    refused = perse(*asked, "--stacking", judge / "stacking.json")
    assert refused.returncode == 2 and "is for runs in this process" in refused.stderr
    bare = perse(*asked, "--no-stacking", "--out", tmp_path / "bare")
    assert bare.returncode == 0, bare.stderr
    unstacked = read_run(tmp_path / "bare")
    assert unstacked.stacked_on == 0 and not any(one.stacked for one in unstacked.judgements)
    done = perse(*asked)
    assert done.returncode == 0, done.stderr
    read = read_run(tmp_path / "run")
    whole = {one.id: one for _, one in items(stacked_run)}
    assert read.stacked_on == 3 and len(read.judgements) == 3
    for one in read.judgements:
        other = whole[one.id].stacked
        assert one.stacked is not None and other is not None
        assert one.stacked.distribution == pytest.approx(other.distribution, abs=1e-3) and one.stacked.without == other.without
    assert perse("fit", tmp_path / "run").returncode == 2  # three examples are too few, and the run is read


@pytest.mark.slow
def test_runs_of_several_folds_are_measured_together_and_nothing_is_written(
    data: Path, answering_model: Path, tmp_path: Path
) -> None:
    file = data.parent / "reviews.jsonl"
    folds = tmp_path / "folds"
    made = perse("data", "pointwise", "--reviews", file, "--k", 1, "--folds", 2, "--max-queries", 3, "--out", folds)
    assert made.returncode == 0, made.stderr
    runs = [tmp_path / f"f{fold}" for fold in (0, 1)]
    for fold, run in enumerate(runs):
        done = perse("score", "--examples", folds, "--fold", fold, "--judge", answering_model, "--out", run, *ASKED)
        assert done.returncode == 0, done.stderr
    done = perse("fit", *runs, "--resamples", 100, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["details"]["readers"] == 40 and not any(note.startswith("written") for note in told["notes"])
    assert not (answering_model / "stacking.json").exists()
    refused = perse("fit", *runs, "--out", tmp_path / "s.json")
    assert refused.returncode == 2 and "a stacking belongs to one" in refused.stderr
    one = perse("fit", runs[1], "--resamples", 100, "--out", tmp_path / "s.json")
    assert one.returncode == 0 and read_stacking(tmp_path / "s.json").data.fold == 1, one.stderr


def test_a_run_of_a_stranger_chooses_no_folder_of_notes_for_the_stacking(run: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    shutil.copytree(run, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    manifest["context"]["judge"] = str(notes)
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    done = perse("fit", tmp_path / "run", "--resamples", 100)
    assert done.returncode == 2 and "say where the stacking goes" in done.stderr, done.stderr
    assert list(notes.iterdir()) == []
