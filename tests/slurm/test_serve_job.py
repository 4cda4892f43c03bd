"""slurm/serve.sbatch under a stand-in for the server: passed signals, restarts, and what no start mends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from places import ROOT

SERVER = """
import os, pathlib, signal, sys, time
note = pathlib.Path("notes"); note.open("a").write("started " + " ".join(sys.argv[1:]) + "\\n")
ends = os.environ.get("ENDS", "")
starts = note.read_text().count("started")
if ends and starts <= int(os.environ.get("TIMES", "99")):
    sys.exit(int(ends))
def term(*_):
    note.open("a").write("emptied\\n"); sys.exit(0)
signal.signal(signal.SIGTERM, term)
note.open("a").write("serving\\n")
while True: time.sleep(0.05)
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "serve.py").write_text(SERVER)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "scontrol").write_text('#!/bin/sh\necho "$@" >> notes\n')
    (tools / "sleep").write_text("#!/bin/sh\nexec /bin/sleep 0.05\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (tmp_path / "notes").touch()
    return tmp_path


def begun(repository: Path, **environment: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PERSE", "VENV"))}
    return subprocess.Popen(
        ["bash", ROOT / "slurm" / "serve.sbatch", "--config", "embedded", "port=8000"], cwd=repository, text=True,
        env={**kept, "SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(repository), **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def until(repository: Path, word: str) -> None:
    end = time.monotonic() + 900
    while word not in (repository / "notes").read_text():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_told_to_give_way_the_server_is_emptied_and_the_job_is_queued_again(repository: Path) -> None:
    job = begun(repository)
    until(repository, "serving")
    job.send_signal(signal.SIGTERM)  # to the batch script alone, as --signal=B: does
    out, _ = job.communicate(timeout=900)
    assert job.returncode == 0 and "queued again" in out
    assert (repository / "notes").read_text().splitlines() == [
        "started --config embedded port=8000",
        "serving",
        "emptied",
        "requeue 7",
    ]
    assert (repository / "perse-serve-7.host").read_text().strip()


def test_a_server_that_is_lost_is_started_again(repository: Path) -> None:
    job = begun(repository, ENDS="1", TIMES="2")
    until(repository, "serving")
    job.send_signal(signal.SIGTERM)
    out, _ = job.communicate(timeout=900)
    assert (repository / "notes").read_text().count("started") == 3 and out.count("ended with code 1; it is started again") == 2


@pytest.mark.parametrize(("ends", "starts", "says"), [("1", 6, "and so did 5 starts before"), ("2", 1, ""), ("0", 1, "")])
def test_what_no_start_mends_is_not_started_for_ever(repository: Path, ends: str, starts: int, says: str) -> None:
    job = begun(repository, ENDS=ends)
    _, err = job.communicate(timeout=900)
    assert job.returncode == (0 if ends == "0" else 2) and says in err
    assert (repository / "notes").read_text().count("started") == starts and "requeue" not in (repository / "notes").read_text()
