"""slurm/score.sbatch under a stand-in for `perse score work`: passed signals, requeueing, and its own exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from places import ROOT

PERSE = """#!/usr/bin/env python3
import os, pathlib, signal, sys, time
note = pathlib.Path("notes")
note.open("a").write("asked " + " ".join(sys.argv[1:]) + "\\n")
if os.environ.get("ENDS"):
    sys.exit(int(os.environ["ENDS"]))
def term(*_):
    note.open("a").write("told\\n"); sys.exit(1)
signal.signal(signal.SIGTERM, term)
note.open("a").write("working\\n")
while True: time.sleep(0.05)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "serve.py").touch()
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "perse").write_text(PERSE)
    (tools / "scontrol").write_text('#!/bin/sh\necho "$@" >> notes\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (tmp_path / "notes").touch()
    return tmp_path


def begun(repository: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PERSE", "VENV"))}
    return subprocess.Popen(
        ["bash", ROOT / "slurm" / "score.sbatch", *words], cwd=repository, text=True,
        env={**kept, "SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(repository), **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_the_run_and_what_follows_are_given_to_the_workers_of_the_machine(repository: Path) -> None:
    job = begun(repository, "runs/all", "--workers", "8", ENDS="0")
    out, _ = job.communicate(timeout=900)
    assert job.returncode == 0 and "working on" in out
    assert (repository / "notes").read_text().splitlines() == ["asked score work runs/all --workers 8"]


@pytest.mark.parametrize("code", [1, 2, 3])
def test_what_ends_the_work_ends_the_job_with_its_code(repository: Path, code: int) -> None:
    job = begun(repository, "runs/all", ENDS=str(code))
    job.communicate(timeout=900)
    assert job.returncode == code and "requeue" not in (repository / "notes").read_text()


def test_told_to_give_way_the_work_is_ended_and_the_job_is_queued_again(repository: Path) -> None:
    job = begun(repository, "runs/all")
    end = time.monotonic() + 900
    while "working" not in (repository / "notes").read_text():
        assert time.monotonic() < end
        time.sleep(0.02)
    job.send_signal(signal.SIGTERM)
    out, _ = job.communicate(timeout=900)
    assert job.returncode == 0 and "told to give way; queued again" in out
    assert (repository / "notes").read_text().splitlines()[-2:] == ["told", "requeue 7"]


def test_without_a_run_or_a_repository_nothing_is_begun(repository: Path, tmp_path: Path) -> None:
    job = begun(repository)
    _, said = job.communicate(timeout=900)
    assert job.returncode == 2 and "no run is named; type: sbatch slurm/score.sbatch RUN" in said
    job = begun(repository, "runs/all", SLURM_SUBMIT_DIR="/")
    _, said = job.communicate(timeout=900)
    assert job.returncode == 2 and "found no perse in '/'" in said
    assert not (repository / "notes").read_text()
