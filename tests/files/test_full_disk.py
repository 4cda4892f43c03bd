"""A full disk is one sentence, nothing half-written is taken for whole, and with room again the same command goes on."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pytest
import torch
from builders import pointwise_examples
from full_disks import failing_sync, files_of_at_most, hit_every_write, syncs
from kills import killed_at
from safetensors.torch import save_file

from perse.batch.local import score
from perse.batch.scored import read_run
from perse.data.load import LoadedExamples
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput, SaveFailed
from perse.files.disk import GrowingFile, save_failed, sweep_temporaries, write_failed, write_whole
from perse.files.own_files import write_together
from perse.files.runlog import RunLog
from perse.judging.judge import Judge, JudgeSettings
from perse.questions import QUESTIONS
from perse.records import example_lines
from perse.rendering.prompt import TextRenderer
from perse.settings.training import load_config
from perse.training.trainer import train
from perse.writing.cache import AnswerCache
from perse.writing.writer import Written


def reply(message: str, seed: int) -> str:
    return f"[Review] fine\n[Score] {1 + len(message) % 10}"


def scored(folder: Path, say: Callable[[str, int], str] = reply) -> Path:
    judge = Judge(ScriptedEngine(say, batch=4), TextRenderer(), name="j")
    loaded = LoadedExamples(pointwise_examples(3, 4), digest="d" * 64, folder=None, fold=None)
    return score(judge, QUESTIONS["pointwise"], loaded, folder / "run", settings=JudgeSettings())


@pytest.mark.slow
def test_a_scoring_that_meets_a_full_disk_anywhere_goes_on_to_the_same_answers(tmp_path: Path) -> None:
    assert hit_every_write(scored, tmp_path) > 10
    assert len(read_run(tmp_path / "sync-0" / "run").judgements) == 12


def test_a_line_that_did_not_fit_is_taken_away_before_the_same_process_adds_another(tmp_path: Path) -> None:
    with GrowingFile(tmp_path / "lines") as lines:
        lines.append(['{"id": 1}\n'])
        with pytest.raises(SaveFailed, match=r"lines could not be written \(File too large\)"), files_of_at_most(15):
            lines.append(['{"id": 2}\n'])
        assert (tmp_path / "lines").read_text() == '{"id": 1}\n'
        lines.append(['{"id": 3}\n'])
    assert (tmp_path / "lines").read_text() == '{"id": 1}\n{"id": 3}\n'


def test_of_lines_that_were_not_synced_none_is_left_where_the_disk_fails_at_the_sync(tmp_path: Path) -> None:
    with GrowingFile(tmp_path / "lines") as lines:
        lines.append(["1\n"])
        lines.append(["2\n"], sync=False)
        with pytest.raises(SaveFailed, match=r"lines could not be written \(Input/output error\)"), failing_sync(0, errno.EIO):
            lines.append(["3\n"])
        assert (tmp_path / "lines").read_text() == "1\n"
        lines.append(["4\n"], sync=False)
        assert (tmp_path / "lines").read_text() == "1\n4\n", "written at once, also where it is not synced"
        lines.sync()
        lines.cut(2)
        lines.append(["5\n"], sync=False)
        with pytest.raises(SaveFailed), failing_sync(0, errno.EIO):
            lines.sync()
        assert (tmp_path / "lines").read_text() == "1\n"


def test_answers_that_come_fast_wait_for_the_disk_together_and_slow_ones_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("perse.judging.loop.time", SimpleNamespace(monotonic=lambda: now))
    few = syncs(lambda: scored(tmp_path / "fast"))

    def later(message: str, seed: int) -> str:
        nonlocal now
        now += 1.0
        return reply(message, seed)

    assert syncs(lambda: scored(tmp_path / "slow", later)) == few + 12


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_a_file_that_cannot_be_written_whole_is_the_old_one(tmp_path: Path, number: int) -> None:
    write_whole(tmp_path / "file", "old")
    with (
        pytest.raises(SaveFailed, match=f"file could not be written .{os.strerror(number)}.*kept whole"),
        failing_sync(0, number),
    ):
        write_whole(tmp_path / "file", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "old"}


def test_what_a_killed_writer_left_is_removed_by_the_next_and_nothing_else_is(tmp_path: Path) -> None:
    place = tmp_path / "reviews.jsonl"
    for event in (1, 1):
        assert killed_at(event, lambda: write_whole(place, "of people"), tmp_path)
        assert len(list(tmp_path.iterdir())) == 1, "the last kill's alone"
    mine = {".reviews.jsonl.999999999.tmp", ".reviews.jsonl.tmp", ".x.0123abcd.perse-tmp.md"}
    for name in mine:
        (tmp_path / name).write_text("mine")
    (tmp_path / ".folder.0123abcd.perse-tmp").mkdir()
    (tmp_path / ".link.0123abcd.perse-tmp").symlink_to(place)
    write_whole(tmp_path / "other", "")
    write_whole(place, "new")
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {*mine, ".folder.0123abcd.perse-tmp", ".link.0123abcd.perse-tmp", "other", "reviews.jsonl"}


def test_what_another_process_is_writing_is_not_taken_for_a_killed_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    within = []

    def in_the_middle(descriptor: int) -> None:
        monkeypatch.undo()
        within.extend([path.name for path in tmp_path.iterdir()])
        sweep_temporaries(tmp_path)

    monkeypatch.setattr(os, "fsync", in_the_middle)
    write_whole(tmp_path / "file", "whole")
    assert len(within) == 1 and {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "whole"}


def test_a_first_start_on_a_full_disk_does_not_block_the_folder(tmp_path: Path) -> None:
    with pytest.raises(SaveFailed, match="manifest.json could not be written"), files_of_at_most(10):
        RunLog(tmp_path / "run", {"seed": 0}, lines="x.jsonl")
    with RunLog(tmp_path / "run", {"seed": 0}, lines="x.jsonl") as log:
        assert log.read() == []


def test_answers_that_were_kept_before_the_disk_was_full_are_kept_and_more_can_be_added_later(tmp_path: Path) -> None:
    place = tmp_path / "answers.sqlite"
    with AnswerCache(place) as cache:
        cache.keep({"first": Written("text", "stop")})
        size = place.stat().st_size
        more = {f"{n}": Written("long " * 2000, "stop") for n in range(4)}
        for limit in range(0, size + 40_000, 4096):
            with pytest.raises(SaveFailed, match="answers.sqlite could not be written"), files_of_at_most(limit):
                cache.keep(more)
            assert set(cache.known(["first", *more])) == {"first"}
        cache.keep(more)
    with AnswerCache(place) as cache:
        assert set(cache.known(["first", *more])) == {"first", *more}


def test_libraries_that_say_it_without_a_number_are_understood() -> None:
    assert write_failed(OSError("4096 requested and 512 written"))
    assert write_failed(
        RuntimeError(
            "[enforce fail at inline_container.cc:672] . PytorchStreamWriter failed writing file data/0: file write failed"
        )
    )
    assert write_failed(Exception("No space left on device (os error 28)"))
    assert not write_failed(OSError(errno.ENOENT, "No such file or directory")) and not write_failed(
        RuntimeError("out of memory")
    )
    assert "choose another place" in str(save_failed("x", OSError(errno.EACCES, "Permission denied")))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_output_to_a_full_disk_is_one_sentence_too() -> None:
    """Through the interpreter's end, which would otherwise tell of it in its own way."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "perse", "train", "--settings"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert " ".join(done.stderr.split()) == (
        "perse: the output could not be written (No space left on device); what was finished before is kept whole: make room (or raise "
        "the quota or `ulimit -f`), and the same command resumes from there"
    )


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_where_messages_go_to_a_full_disk_too_the_exit_code_says_it() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "perse", "score", "--judge", "x"], stdout=full, stderr=full, check=False)
    assert done.returncode == 2


@pytest.mark.integration
def test_a_server_whose_log_meets_a_full_disk_goes_on_answering(tiny_model_folder: Path, tmp_path: Path) -> None:
    """The log has room for the first line, with the address, and a little more."""
    line = [
        sys.executable,
        "-m",
        "perse",
        "serve",
        f"model={tiny_model_folder}",
        "engine=transformers",
        "port=0",
        "context=2048",
    ]
    log = tmp_path / "log"
    with log.open("wb") as file:
        server = subprocess.Popen(
            line,
            stdout=file,
            stderr=file,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200)),
        )
    try:
        end = time.monotonic() + 900
        while not (found := re.search(r"at (http://\S+)", log.read_text())) or not _ready(found[1]):
            assert server.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        asked = {"input": {"query": "x", "profile": []}, "question": "pointwise_score"}
        for _ in range(3):
            answer = httpx2.post(f"{found[1]}/v1/judge/pointwise", json=asked, timeout=900)
            assert answer.status_code == 200 and answer.json()["expected"]
        assert log.stat().st_size == 200
    finally:
        server.terminate()
        server.wait(900)


def _ready(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/ready").status_code == 200
    except httpx2.TransportError:
        return False


def test_files_that_belong_together_are_all_old_where_the_disk_was_full_meanwhile(tmp_path: Path) -> None:
    def contents(of: str) -> dict[str, bytes]:
        sizes = {"manifest.json": 300, "results.json": 900, "figures/a.svg": 2000, "figures/b.png": 100, "report.html": 5000}
        return {name: of.encode() * size for name, size in sizes.items()}

    write_together(tmp_path, {**contents("1"), "figures/stale.csv": b"1"})
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for failure in [
        *(files_of_at_most(size) for size in (0, 99, 250, 899, 1500, 4999)),
        *(failing_sync(n, 28) for n in range(6)),
    ]:
        with pytest.raises(SaveFailed, match="could not be written"), failure:
            write_together(tmp_path, contents("2"))
        assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before
        assert all((tmp_path / name).read_bytes() == content for name, content in contents("1").items())
    write_together(tmp_path, contents("2"))
    assert all((tmp_path / name).read_bytes() == content for name, content in contents("2").items())
    assert not list(tmp_path.rglob("*kept*")) and not (tmp_path / "figures" / "stale.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("save", [torch.save, save_file], ids=["torch", "safetensors"])
def test_a_full_disk_is_told_from_a_bug_wherever_tensors_stop_being_written(save: Callable[..., None], tmp_path: Path) -> None:
    tensors = {"weight": torch.arange(900.0), "bias": torch.arange(5.0)}
    save(tensors, str(tmp_path / "whole"))
    for limit in range(0, (tmp_path / "whole").stat().st_size, 3):
        with pytest.raises(Exception) as said, files_of_at_most(limit):  # each library has errors of its own
            save(tensors, str(tmp_path / "other"))
        assert write_failed(said.value), (limit, said.value)


@pytest.mark.integration
def test_a_training_that_meets_a_full_disk_goes_on_to_the_same_weights(tiny_model_folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "train.jsonl"
    data.write_text("".join(example_lines(pointwise_examples(2, 4))), encoding="utf-8")
    given = [
        f"model.path={tiny_model_folder}",
        f"data.path={data}",
        "model.dtype=float32",
        "model.context=2048",
        "train.steps=2",
    ]
    given += ["train.save_every=1", "train.log_every=1", "train.report_to=[]", "watch=null", "lora.rank=4"]

    def run(name: str) -> Path:
        return train(load_config("embedded_lora", [*given, f"output={tmp_path / name}"]))

    weights = (run("whole") / "merged" / "model.safetensors").read_bytes()
    sizes = sorted({path.stat().st_size for path in (tmp_path / "whole").rglob("*") if path.is_file()})
    for limit in sizes[:: max(1, len(sizes) // 6)]:  # each goes on from where the one before stopped
        with pytest.raises(SaveFailed, match="could not be written|no room for") as said, files_of_at_most(limit - 1):
            run("full")
        assert "the same command" in str(said.value) and "\n" not in str(said.value)
    assert (run("full") / "merged" / "model.safetensors").read_bytes() == weights
    lines = [json.loads(line) for line in (tmp_path / "full" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "loss" in line] == [1, 2]


def test_what_perse_did_not_write_at_the_end_of_a_file_of_lines_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    path.write_text('{"id": 1}\nbus leaves 9:15')
    with GrowingFile(path) as file, pytest.raises(BadInput, match="ends in something that perse did not write"):
        file.cut_torn_line()
    assert path.read_text() == '{"id": 1}\nbus leaves 9:15'


def test_a_last_line_that_is_whole_but_for_its_end_is_kept_and_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    path.write_text('{"id": 1}\n{"my": "notes"}')
    with GrowingFile(path) as file:
        file.cut_torn_line()
        file.append(['{"id": 2}\n'])
    assert path.read_text() == '{"id": 1}\n{"my": "notes"}\n{"id": 2}\n'


def test_a_file_that_has_another_name_elsewhere_is_not_written_to(tmp_path: Path) -> None:
    note, path = tmp_path / "note.txt", tmp_path / "judgements.jsonl"
    note.write_text('{"torn')
    path.hardlink_to(note)
    with GrowingFile(path) as file, pytest.raises(BadInput, match="is a hard link"):
        file.cut_torn_line()
    assert note.read_text() == '{"torn'


def test_a_library_that_has_words_of_its_own_for_a_full_disk_is_not_quoted() -> None:
    said = str(save_failed("out", OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28]")))
    assert "out could not be written (No space left on device)" in said and "bytes to file" not in said
