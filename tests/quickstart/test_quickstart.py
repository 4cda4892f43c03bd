"""`perse quickstart` from a messy pair of files to a report: each command is shown, and a killed one is resumed."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import perse
from test_understanding import reviews, texts

from perse.quickstart import steps
from perse.quickstart.journal import opened
from perse.quickstart.understanding import understand


def typed(out: Path, files: tuple[Path, Path], model: Path) -> list[str]:
    return ["quickstart", *map(str, files), "--minutes", "1", "--model", str(model), "--out", str(out), "--yes"]


@pytest.mark.integration
def test_two_files_become_a_judge_and_a_report_although_killed_on_the_way(tiny_model_folder: Path, tmp_path: Path) -> None:
    files = reviews(tmp_path / "reviews.csv"), texts(tmp_path / "texts.csv", delimiter=";")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "perse", *typed(out, files, tiny_model_folder)]
    log = tmp_path / "first.log"
    for reached in ("$ perse data", "$ perse train"):
        with log.open("wb") as file:
            process = subprocess.Popen(command, stderr=file, stdin=subprocess.DEVNULL, start_new_session=True)
            while reached not in log.read_text() and process.poll() is None:
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    assert "done before: perse data pointwise" in done.stderr and (out / "report" / "report.html").stat().st_size > 10_000
    shown = [shlex.split(line)[1:] for line in done.stderr.splitlines() if line.startswith("  perse ")]
    assert [words[0] for words in shown] == ["data", "train", "score", "evaluate", "report"], (
        "of three readers nothing is fitted"
    )
    assert "it goes on without: why stands above" in done.stderr
    assert " minutes, counted from the last start of each. To go on" in done.stderr
    again = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert again.returncode == 0 and again.stderr.count("done before: ") == 5
    assert shown[3][-2:] == [">", str(out / "evaluation.txt")]
    by_hand = perse(*shown[3][:-2])
    assert by_hand.returncode == 0, "a command that was shown can be typed again"
    first, kept = (text.partition("\n\n")[0].split() for text in (by_hand.stdout, (out / "evaluation.txt").read_text()))
    assert kept == first and " ".join(first) in done.stderr, "and what it prints is in the file"


def test_without_a_terminal_and_without_yes_nothing_is_begun(tmp_path: Path) -> None:
    files = reviews(tmp_path / "reviews.csv"), texts(tmp_path / "texts.csv")
    done = perse("quickstart", *files, "--out", tmp_path / "out", stdin="")
    assert done.returncode == 2 and "give --yes to go on, or --map to put it right" in done.stderr
    assert "book_title = book_title, which finds a text for 96 of the first 96 reviews" in done.stderr
    assert not (tmp_path / "out").exists()


def test_fewer_examples_are_judged_where_the_time_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = reviews(tmp_path / "reviews.csv"), texts(tmp_path / "texts.csv")
    monkeypatch.setattr(steps, "within", lambda seconds, settings, held_out: (7, 12, 100.0))
    out = tmp_path / "out"
    told: list[str] = []
    journal = opened(out, {"reviews": files[0]}, 1, told.append)
    made_by = {"train": [out / "judge" / "merged" / "config.json", out / "judge" / "stacking.json"]}
    made_by |= {"score": [out / "scored" / "judgements.jsonl"], "report": [out / "report" / "report.html"]}

    def run(words: object, answer: object) -> int:
        assert isinstance(words, tuple)
        if words[0] == "data":
            return perse(*words).returncode
        for made in made_by.get(words[0], ()):
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text("made")
        return 0

    journal.run = run
    steps.walk(understand(*files, {}), journal, model="some", dtype="float32", embedding_model="encoder")
    commands = {ran.words[0]: shlex.join(ran.words) for ran in journal.kept.ran}
    assert "train.steps=7" in commands["train"] and "--limit 12" in commands["score"]
    assert "7 steps of training and 12 judged examples take about 2 minutes (--minutes 1)" in told, "whether they fit or not"
    assert "--embedding-model encoder" in commands["evaluate"] and "--embedding-model encoder" in commands["report"]


@pytest.mark.slow
def test_steps_and_judged_examples_follow_from_time_and_speed(tiny_model_folder: Path, tmp_path: Path) -> None:
    files = reviews(tmp_path / "reviews.csv"), texts(tmp_path / "texts.csv")
    data = tmp_path / "set"
    assert perse(*understand(*files, {}).build, "--out", data).returncode == 0
    settings = (f"model.path={tiny_model_folder}", "model.dtype=float32", f"data.path={data}", f"output={tmp_path / 'run'}")
    few, many = steps.within(1e-6, settings, held_out=5000), steps.within(1e6, settings, held_out=5000)
    assert few[:2] == (steps.FEWEST_STEPS, steps.FEWEST_JUDGED) and many[0] > few[0] and many[1] == 5000
    assert few[2] > 1e-6 and many[2] < 1e6, "the fewest take longer than was asked for, and it is said"
    assert steps.within(1e-6, settings, held_out=7)[1] == 7
    passes = 48 / 8  # examples of the training side, and of a step
    assert many[0] <= steps.MOST_PASSES * passes * 2, "no example is learned by heart, however much time there is"
