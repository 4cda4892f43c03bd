"""What is the same run, everywhere alike: a path may be written otherwise, and a folder with a run of another kind is named as that."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from builders import pointwise_examples
from judging_builders import asking
from kgds_builders import benchmark

from perse.batch.local import score
from perse.batch.scored import read_run
from perse.data.load import LoadedExamples
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput, RunMismatch
from perse.files.runlog import RunLog, read_manifest, write_whole
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.loading import portable_name
from perse.kgds.asking.verify import verify
from perse.questions import QUESTIONS
from perse.rendering.prompt import TextRenderer
from perse.studies.frame.arms import Source
from perse.studies.frame.running import opened

SPELLINGS = ("runs/first", "./runs/first", "runs/../runs/first", "linked", "{here}/runs/first")

KINDS = {
    "perse score": {"kind": "score"},
    "perse train": {"kind": "train"},
    "perse study order": {"kind": "study", "study": "order"},
    "perse study k-curve": {"kind": "study", "study": "k-curve"},
    "perse kgds agreement": {"kind": "study", "study": "kgds-agreement"},
    "perse kgds generate": {"kind": "kgds-generate"},
    "perse kgds verify": {"kind": "kgds-verify"},
    "perse kgds errors": {"kind": "kgds-errors"},
    "perse kgds feedback": {"kind": "kgds-feedback"},
    "perse kgds build": {"kind": "kgds-masking"},
    "perse data persum": {"kind": "persum"},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a judge's folder in it that has a second name."""
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / "runs" / "first")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=SPELLINGS)
def spelled(request: pytest.FixtureRequest, here: Path) -> str:
    return str(request.param).format(here=here)


def judge(name: str) -> Judge:
    return Judge(ScriptedEngine(lambda message, seed: "[Answer] yes\n[Review] fine\n[Score] 5"), TextRenderer(), name=name)


def scored(name: str, out: Path) -> Path:
    loaded = LoadedExamples(pointwise_examples(2, 2), "digest", None, None)
    return score(judge(name), QUESTIONS["pointwise_score"], loaded, out, settings=JudgeSettings(temperature=0))


def summarized(run: Path) -> Path:
    row: dict[str, Any] = {
        "sample": 1, "pattern": "abs-aos", "paradigm": "structured", "status": "ok", "model": "m", "background": "It opens.",
        "opinions": "Person1 is glad.",
    }  # fmt: skip
    run.mkdir()
    write_whole(run / "summaries.jsonl", json.dumps(row) + "\n")
    return run


def test_a_scoring_run_goes_on_whatever_the_judges_path_looks_like(spelled: str, here: Path) -> None:
    scored("runs/first", here / "out")
    scored(spelled, here / "out")
    assert {one.model for one in read_run(here / "out").judgements} == {"first"}
    assert read_manifest(here / "out")["context"]["judge"] == {"model": str(here / "runs" / "first"), "adapter": None}


def test_a_run_goes_on_from_another_working_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scored("runs/first", here / "out")
    monkeypatch.chdir(here / "runs")
    scored("first", here / "out")


def test_a_study_goes_on_whatever_the_judges_path_looks_like(spelled: str, here: Path) -> None:
    source = Source(here, "valid", None, None, 0, None, "digest")
    for name in ("runs/first", spelled, f"vllm:{spelled}"):
        out = here / ("study-of-vllm" if ":" in name else "study")
        with opened(out, "order", asking(here, judge=name, tokenizer=spelled), source=source, options={}):
            pass
    with opened(
        here / "study-of-vllm", "order", asking(here, judge="vllm:linked", tokenizer="linked"), source=source, options={}
    ):
        pass


def test_a_verification_goes_on_whatever_the_judges_path_looks_like(spelled: str, here: Path) -> None:
    run = summarized(here / "summaries")
    verify(judge("runs/first"), benchmark(), run, name="verified")
    verify(judge(spelled), benchmark(), run, name="verified")


def test_persum_knows_its_judge_whatever_the_path_looks_like(spelled: str) -> None:
    assert judge(spelled).for_manifest == judge("runs/first").for_manifest


def test_a_path_that_is_a_setting_may_be_written_otherwise_and_another_place_is_another_setting(
    spelled: str, here: Path
) -> None:
    given = {"kind": "train", "config": {"data": {"path": "runs/first"}}}
    with RunLog(here / "out", given, lines="log.jsonl"):
        pass
    with RunLog(here / "out", {"kind": "train", "config": {"data": {"path": spelled}}}, lines="log.jsonl"):
        pass
    with pytest.raises(RunMismatch, match=r'data\.path was "runs/first", is "runs"'):
        RunLog(here / "out", {"kind": "train", "config": {"data": {"path": "runs"}}}, lines="log.jsonl")


def test_another_judge_of_another_name_is_another_run(here: Path) -> None:
    (here / "runs" / "second").mkdir()
    scored("runs/first", here / "out")
    with pytest.raises(RunMismatch, match=r'judge\.model was "first", is "second"'):
        scored("runs/second", here / "out")


def test_a_name_that_is_no_folder_stays_as_it_is(here: Path) -> None:
    for name in ("smollm2-135m", "org/model", "openai:http://127.0.0.1:8000/v1#runs/first"):
        assert portable_name(name) == name
    assert portable_name("vllm:./runs/first+linked") == "vllm:first+first"


@pytest.mark.parametrize(("theirs", "ours"), [*itertools.permutations(KINDS, 2)])
def test_a_run_of_another_kind_is_named_as_that(theirs: str, ours: str, tmp_path: Path) -> None:
    with RunLog(tmp_path / "run", {**KINDS[theirs], "seed": 0}, lines="x.jsonl"):
        pass
    with pytest.raises(RunMismatch) as refused:
        RunLog(tmp_path / "run", {**KINDS[ours], "temperature": 1}, lines="y.jsonl")
    assert str(refused.value) == f"{tmp_path / 'run'} holds a run of {theirs}, not of {ours}; choose another folder"
    assert sorted(one.name for one in (tmp_path / "run").iterdir()) == ["manifest.json", "x.jsonl"]


def test_scoring_into_a_verification_a_study_or_a_data_set_is_refused_by_its_name(here: Path) -> None:
    run = verify(judge("runs/first"), benchmark(), summarized(here / "summaries"), name="verified")
    with pytest.raises(
        RunMismatch, match="verified holds a run of perse kgds verify, not of perse score; choose another folder"
    ):
        scored("runs/first", run)
    source = Source(here, "valid", None, None, 0, None, "digest")
    with opened(here / "study", "order", asking(here), source=source, options={}):
        pass
    with pytest.raises(RunMismatch, match="study holds a run of perse study order, not of perse score"):
        scored("runs/first", here / "study")
    with pytest.raises(BadInput, match="study holds a run of perse study order, not of perse score; give a folder"):
        read_run(here / "study")
    (here / "data").mkdir()
    write_whole(here / "data" / "manifest.json", '{"schema": 1, "kind": "pairwise"}')
    with pytest.raises(RunMismatch, match=r"data holds a folder of another kind \(pairwise\), not of perse score"):
        scored("runs/first", here / "data")


def test_verifying_or_studying_into_a_scoring_run_is_refused_by_its_name(here: Path) -> None:
    run = summarized(here / "summaries")
    scored("runs/first", run / "scored")
    with pytest.raises(RunMismatch, match="scored holds a run of perse score, not of perse kgds verify"):
        verify(judge("runs/first"), benchmark(), run, name="scored")
    with pytest.raises(BadInput, match="scored holds a run of perse score, and no summaries.jsonl; give a folder that"):
        verify(judge("runs/first"), benchmark(), run / "scored", name="verified")
    source = Source(here, "valid", None, None, 0, None, "digest")
    with (
        pytest.raises(RunMismatch, match="scored holds a run of perse score, not of perse study order"),
        opened(run / "scored", "order", asking(here), source=source, options={}),
    ):
        pass
