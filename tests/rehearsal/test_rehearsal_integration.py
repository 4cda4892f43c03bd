"""The whole of Rehearsal as a user types it: with the embedded model in every role, and with a real vLLM that plays them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from builders import tiny_llama
from rehearsal_builders import persum_folder, sample

from perse.rehearsal.folder import read_traces

pytestmark = pytest.mark.integration

SMALL = (
    "--practice-rounds",
    "1",
    "--max-iterations",
    "2",
    "--rewrites",
    "2",
    "--max-new-tokens",
    "48",
    "--tries",
    "1",
    "--product-characters",
    "40",
)
"""Few and short answers; product reviews of 40 characters and more are filtered."""


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "perse", "rehearsal", *map(str, arguments)]


def environment(threads: int = 1) -> dict[str, str]:
    return {**os.environ, "COLUMNS": "200", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(threads)}


def perse(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(*arguments), cwd=folder, capture_output=True, text=True, check=False, timeout=900, env=environment()
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


def test_methods_run_with_the_embedded_model_killed_once_and_it_is_said_to_give_no_scores(
    tmp_path: Path, embedded: Path
) -> None:
    persum_folder(tmp_path / "persum", [sample(1)])
    methods = ("onlysum", "sum-perchan", "rehearsal")
    run = (
        "run", "persum", "--writer", embedded, "--dtype", "float32", *SMALL, *(f"--method={name}" for name in methods), "--out", "run",
    )  # fmt: skip
    begun = subprocess.Popen(command(*run), cwd=tmp_path, stderr=subprocess.PIPE, env=environment())
    until = time.monotonic() + 600
    while begun.poll() is None and not (tmp_path / "run" / "versions" / "judgements.jsonl").exists():
        assert time.monotonic() < until
        time.sleep(0.1)
    begun.send_signal(signal.SIGKILL)
    begun.communicate()
    kept = (tmp_path / "run" / "traces.jsonl").read_bytes()
    perse(tmp_path, *run)
    assert (tmp_path / "run" / "traces.jsonl").read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    traces = read_traces(tmp_path / "run")
    assert tuple(traces) == methods
    assert all(trace.summary is not None or trace.failed for of_one in traces.values() for trace in of_one.values())
    assert traces["onlysum"]["s1"].summary is not None
    of_one = traces["rehearsal"]["s1"]
    assert of_one.suggestions is not None and (of_one.filtered is None or len(of_one.filtered.removed) >= 1)
    scored = subprocess.run(
        command("score", "persum", "run", "--judge", embedded, "--dtype", "float32"), cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=900, env=environment(),
    )  # fmt: skip
    answers = (tmp_path / "run" / "scores" / "scored" / "judgements.jsonl").read_text().splitlines()
    assert len(answers) >= 12 and {json.loads(line)["status"] for line in answers} <= {"ok", "unparsed"}
    assert scored.returncode == 2 and "no sample has scores under every method" in scored.stderr, scored.stderr[-2000:]


@pytest.mark.long
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; `make vllm` installs it")
def test_vllm_plays_every_role_of_one_sample(tmp_path: Path, tokenizers: dict[str, Any]) -> None:
    """A tiny random model: held to JSON it writes summaries and numbers, and its supervisor says nothing that can be read."""
    tiny_llama(tokenizers["chatml"], width=128, context=4096).save_pretrained(tmp_path / "tiny")
    tokenizers["chatml"].save_pretrained(tmp_path / "tiny")
    persum_folder(tmp_path / "persum", [sample(1)])
    model = "vllm:" + str(tmp_path / "tiny")
    perse(
        tmp_path, "run", "persum", "--writer", model, "--dtype", "float32", *SMALL, "--method", "role-retriever",
        "--method", "rehearsal", "--out", "run",
    )  # fmt: skip
    one = read_traces(tmp_path / "run")["role-retriever"]["s1"]
    assert one.general and one.suggestions is not None
