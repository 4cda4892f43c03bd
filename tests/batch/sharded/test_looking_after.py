"""What a person is told of a run in shards: how far and how fast it is, what it will take, which command goes on, and what is refused."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from builders import pointwise_examples
from command_line import perse
from places import ROOT, SAMPLES

from perse.answering.base import JudgeSettings
from perse.batch.scored import read_run
from perse.batch.sharded.catalogue_inputs import read_readers, read_texts
from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.inputs import Row
from perse.batch.sharded.running import Places
from perse.batch.sharded.shard import write_answers
from perse.batch.sharded.starting import SERVED, Request, Run, read, start
from perse.batch.sharded.underway import status
from perse.batch.sharded.working import Telemetry
from perse.engines.kind import LoadOptions
from perse.judgement import Judgement, Status, Tokens
from perse.records import example_lines

JUDGE = "openai:http://127.0.0.1:1/v1#m"
SERVER = ("--driver", "http", "--servers", "http://127.0.0.1:9")


def begun(folder: Path, *, judge: str = JUDGE) -> Run:
    rows = [Row(one, "in", n) for n, one in enumerate(pointwise_examples(4, 4))]
    return start(folder, Request(judge, LoadOptions(), JudgeSettings(temperature=0), {"sha256": "x"}, shard_rows=4), iter(rows))


def judged(run: Run, shards: int, worker: Holder) -> None:
    """The first shards of the run, as a worker leaves them that does four judgements in two seconds."""
    with Telemetry(run.folder, worker) as telemetry:
        for shard in run.plan.shards[:shards]:
            found = [answer(id, run) for id in run.plan.ids(shard)]
            write_answers(Places(run.folder).answers(shard), found)
            telemetry.judged(shard, found, 2.0)


def answer(id: str, run: Run) -> Judgement:
    return Judgement(
        id=id, question=run.question.name, status=Status.OK, label="7", text="fine", k_effective=1,
        tokens=Tokens(prompt=4, cached=1, generated=2), model="m", distribution=None,
    )  # fmt: skip


def said(*words: object) -> str:
    done = perse(*words)
    return " ".join(done.stderr.split())


def dead() -> Holder:
    """A worker of this machine whose process has ended."""
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    return Holder("w", socket.gethostname(), int(ended.stdout), "1")


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(4, 4))))
    return path


def test_a_worker_that_was_killed_on_this_machine_is_not_counted_however_lately_it_judged(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    worker = dead()
    judged(run, 2, worker)
    Claims(run.folder / "claims", worker).take(run.plan.shards[2].id)
    now = status(Places(run.folder), run.plan)
    assert (now.workers, now.claimed, now.a_second, now.seconds_left) == (0, 0, None, None)
    told = said("score", "status", run.folder)
    assert (
        "0 being judged no shard is being judged; unless a worker is still loading its judge, go on with: perse score work"
        in told
    )
    assert "each worker did" in told
    alive = Holder.me("other")
    Claims(run.folder / "claims", alive).take(run.plan.shards[3].id)
    now = status(Places(run.folder), run.plan)
    assert (now.workers, now.claimed) == (1, 1) and now.a_second == now.each


def test_a_worker_of_another_machine_is_counted_until_its_last_sign_of_life_is_old(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    judged(run, 2, Holder("w", "elsewhere", 1, "1"))
    assert status(Places(run.folder), run.plan).workers == 1
    assert status(Places(run.folder), run.plan, now=time.time() + 100).workers == 0


def test_a_run_that_has_ended_still_tells_how_fast_a_worker_was(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    judged(run, 4, Holder("w", "elsewhere", 1, "1"))
    told = said("score", "status", run.folder)
    assert told.startswith("16 of 16 examples judged, 4 of 4 shards; 0 being judged each worker did")
    assert "25% of the prompt tokens shared" in told and "go on with" not in told and "left" not in told
    assert json.loads(perse("score", "status", run.folder, "--json").stdout)["each"] > 0


@pytest.mark.slow
def test_of_a_run_on_servers_the_command_that_goes_on_is_that_of_servers(tmp_path: Path) -> None:
    run = begun(tmp_path / "run", judge=f"{SERVED}first")
    for command in ("status", "audit"):
        told = said("score", command, run.folder)
        assert "perse score --driver http --servers URL,URL --out" in told and "score work" not in told, command
    here = begun(tmp_path / "here")
    assert f"4 of 4 shards are missing; go on with: perse score work {here.folder}" in said("score", "audit", here.folder)


def planned(lines: Path, out: Path, *words: object, judge: str = JUDGE) -> dict[str, Any]:
    done = perse("score", "plan", "--examples", lines, "--judge", judge, "--out", out, "--shard-rows", 4, *words, "--json")
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_the_time_of_a_plan_is_that_of_the_workers_that_have_a_shard(lines: Path, tmp_path: Path) -> None:
    rate = ("--rate", 0.002, "--price", 10)  # a shard of 4 takes 2,000 s
    shard = 4 / 0.002 / 3600
    for workers, shards_each, paid in ((1, 4, 1), (2, 2, 2), (3, 2, 3), (4, 1, 4), (100, 1, 4)):
        told = planned(lines, tmp_path / "run", "--workers", workers, *rate)
        assert told["hours"] == pytest.approx(shards_each * shard), workers
        assert told["cost"] == pytest.approx(10 * paid * shards_each * shard), workers
    many = said(
        "score", "plan", "--examples", lines, "--judge", JUDGE, "--out", tmp_path / "run", "--shard-rows", 4, "--workers", 9
    )
    assert "4 of 9 workers have a shard; the others have nothing to do" in many


def test_a_run_on_servers_is_planned_without_its_judge_at_hand_and_goes_on_there(lines: Path, tmp_path: Path) -> None:
    words = ("--driver", "http", "--rate", 0.002, "--price", 10)
    told = planned(lines, tmp_path / "run", *words, judge="first")
    assert told["hours"] == pytest.approx(16 / 0.002 / 3600) and told["cost"] == pytest.approx(10 * told["hours"])
    asked = ("--examples", lines, "--judge", "first", "--out", tmp_path / "run", "--shard-rows", 4)
    assert "next: perse score --driver http --servers URL,URL" in said("score", "plan", *asked, *words)
    done = perse("score", *asked, *SERVER)
    assert done.returncode == 2 and "no answer from http://127.0.0.1:9" in " ".join(done.stderr.split()), "the same run"


@pytest.mark.parametrize(
    "words", [("--dtype", "float32"), ("--context", 512), ("--tokenizer", "x"), ("--workers", 2), ("--trust-remote-code",)]
)
def test_an_option_of_judges_that_are_loaded_here_is_refused_beside_servers(
    lines: Path, tmp_path: Path, words: tuple[object, ...]
) -> None:
    asked = ("--examples", lines, "--judge", "first", "--out", tmp_path / "run")
    for command in (("score", *asked, *SERVER), ("score", "plan", *asked, "--driver", "http")):
        done = perse(*command, *words)
        assert done.returncode == 2 and f"{words[0]}: of judges that are loaded here" in " ".join(done.stderr.split())
    assert not (tmp_path / "run").exists()


def test_a_data_set_scored_in_shards_has_its_baselines_and_a_file_has_not(tmp_path: Path) -> None:
    data = tmp_path / "data"
    built = perse(
        "data", "pointwise", "--reviews", SAMPLES / "reviews.jsonl", "--items", SAMPLES / "items.jsonl", "--valid", "0.34", "--out", data
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    run = tmp_path / "run"
    done = perse("score", "plan", "--examples", data, "--judge", JUDGE, "--question", "pointwise_score", "--out", run)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["context"]["data_folder"] == str(data.resolve())
    whole = read(run)
    judged(whole, len(whole.plan.shards), Holder.me("w"))
    told, why = read_run(run).training_side()
    assert (
        why is None and told and {one.reviewer_id for one in told}.isdisjoint(one.reviewer_id for one in read_run(run).examples)
    )


def test_options_of_data_sets_are_refused_beside_files_in_shards_and_not_passed_over(lines: Path, tmp_path: Path) -> None:
    for words in (("--k", 1), ("--fold", 0), ("--no-review-text",)):
        done = perse("score", "plan", "--examples", lines, "--judge", JUDGE, "--out", tmp_path / "run", *words)
        assert done.returncode == 2 and "show profiles as they stand there, and have no folds" in " ".join(done.stderr.split())


def test_a_plan_that_is_refused_leaves_no_folder_behind(lines: Path, tmp_path: Path) -> None:
    lines.write_text(lines.read_text() + "{}\n")
    out = tmp_path / "deep" / "run"
    done = perse("score", "plan", "--examples", lines, "--judge", JUDGE, "--out", out)
    assert done.returncode == 2 and "line 17" in done.stderr
    assert not out.parent.exists()
    (tmp_path / "own").mkdir()
    perse("score", "plan", "--examples", lines, "--judge", JUDGE, "--out", tmp_path / "own")
    assert [*(tmp_path / "own").iterdir()] == [], "a folder of the user's stays"


@pytest.mark.parametrize("place", ["examples/*.jsonl", "examples", "x.csv", "x.parquet", "s3://bucket/x.jsonl"])
def test_several_files_without_a_driver_are_refused_with_the_option_that_reads_them(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "a.jsonl").write_text("{}\n")
    done = perse("score", "--examples", place, "--judge", JUDGE, "--out", tmp_path / "run")
    assert done.returncode == 2 and "are read in shards: add --driver local" in " ".join(done.stderr.split())
    assert not os.path.lexists(tmp_path / "run")


@pytest.mark.slow
def test_the_readers_that_the_page_makes_of_raw_reviews_are_those_of_a_catalogue(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "batch.md").read_text()
    begin = page.index('python -c "import duckdb')
    (tmp_path / "reviews.csv").write_text(
        "reviewer,item,score,review,time\n" + "".join(f"ann,t{n},{n},Fine {n}.,2024-01-0{n}\n" for n in (4, 1, 3, 2))
    )
    (tmp_path / "texts.csv").write_text("item,text\n" + "".join(f"t{n},A story of {n}.\n" for n in range(1, 7)))
    with_ours = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # as in an activated environment
    command = ["bash", "-c", page[begin : page.index("\n```", begin)]]
    subprocess.run(command, cwd=tmp_path, env=with_ours, check=True, capture_output=True)
    [ann] = read_readers(str(tmp_path / "readers.parquet"))
    assert ann.reader == "ann" and [(one.item_id, one.score) for one in ann.profile] == [("t2", 2), ("t3", 3), ("t4", 4)]
    assert len([*read_texts(str(tmp_path / "texts.csv"))]) == 6


@pytest.mark.parametrize("known", [True, False])
def test_what_comes_after_a_run_in_shards_is_a_command_that_takes_it(tmp_path: Path, known: bool) -> None:
    some = [one if known else one.model_copy(update={"reference": None}) for one in pointwise_examples(1, 2)]
    request = Request(JUDGE, LoadOptions(), JudgeSettings(temperature=0), {"sha256": "x"})
    run = start(tmp_path / "run", request, (Row(one, "in", n) for n, one in enumerate(some)))
    judged(run, 1, Holder.me("w"))
    then = f"next: perse score export {run.folder} --out answers.csv"
    told = said("score", "audit", run.folder)
    assert (f"next: perse evaluate {run.folder}" in told, then in told) == (known, not known)
    assert "CSV of a run of --examples: perse score export" in said("score", "merge", run.folder, "--out", tmp_path / "a.csv")
    assert perse("score", "export", run.folder, "--out", tmp_path / "a.csv").returncode == 0
