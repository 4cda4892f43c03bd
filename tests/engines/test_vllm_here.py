"""vLLM in this process: each answer is kept when it is written, and what is asked reaches vLLM as it was meant."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import pytest
from builders import tiny_llama
from places import ROOT, importing

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; `make vllm` installs it"),
]

ENVIRONMENT = {"OMP_NUM_THREADS": str(os.cpu_count()), **os.environ, "COLUMNS": "200", "HF_HUB_OFFLINE": "1"}


KILLED = """
import multiprocessing, os, signal, sys
from contextlib import suppress
from pathlib import Path
from builders import pointwise_examples
from perse import Judge
from perse.batch.local import score
from perse.data.load import LoadedExamples
from perse.judging.judge import JudgeSettings
from perse.questions import QUESTIONS

def kill(done, total):
    if after and done >= begun + after:
        engine = [child.pid for child in multiprocessing.active_children()]
        (out.parent / "engine").write_text(" ".join(map(str, engine)))
        for one in [os.getpid()] if who == "us" else engine:
            with suppress(ProcessLookupError):  # it may be gone, and answers that it had given are still told of
                os.kill(one, signal.SIGKILL)

if __name__ == "__main__":
    model, out, after, who = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    lines = out / "judgements.jsonl"
    begun = lines.read_bytes().count(b"\\n") if lines.exists() else 0
    examples = LoadedExamples(pointwise_examples(24, 4, k=12), digest="d", folder=None, fold=None)
    judge = Judge.load(f"vllm:{model}", dtype="float32", context=2048)
    score(judge, QUESTIONS["pointwise"], examples, out, settings=JudgeSettings(max_new_tokens=24), on_progress=kill)
"""


def test_vllm_in_this_process_gives_each_answer_when_it_is_written_so_that_a_kill_of_it_or_of_its_engine_loses_those_that_are_not(
    tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    """Of 96 prompts vLLM begins some at a time: a quick machine answered the rest of 24 before its engine could be killed."""
    model, script = tmp_path / "tiny", tmp_path / "run.py"
    tiny_llama(tokenizers["chatml"], width=128).save_pretrained(model)
    tokenizers["chatml"].save_pretrained(model)
    script.write_text(KILLED)

    def scored(after: int, who: str = "us") -> tuple[int, str, dict[str, str]]:
        given = [sys.executable, str(script), str(model), str(tmp_path / "run"), str(after), who]
        environment = {**ENVIRONMENT, "PYTHONPATH": importing()}
        done = subprocess.run(given, env=environment, check=False, timeout=900, capture_output=True, text=True)
        lines = (tmp_path / "run" / "judgements.jsonl").read_text().splitlines()
        by_id = {json.loads(line)["id"]: line for line in lines}
        assert len(by_id) == len(lines), "each once"
        assert {json.loads(line)["status"] for line in lines} <= {"ok", "unparsed"}, "a dead engine is no answer"
        return done.returncode, done.stderr, by_id

    code, _, begun = scored(2)
    assert code == -signal.SIGKILL and 2 <= len(begun) < 96
    [engine] = (tmp_path / "engine").read_text().split()
    wait_until_gone(engine)
    code, said, more = scored(2, "the engine")
    assert code == 1 and "EngineLost: vLLM's engine stopped" in said, said[-2000:]
    assert len(begun) + 2 <= len(more) < 96 and begun.items() <= more.items()
    code, _, ended = scored(0)
    assert code == 0 and len(ended) == 96 and more.items() <= ended.items()


def wait_until_gone(process: str) -> None:
    """Or a zombie that nobody has asked after."""
    end = time.monotonic() + 900
    while (found := Path("/proc", process, "stat")).exists() and found.read_text().rpartition(") ")[2][0] != "Z":
        assert time.monotonic() < end, "vLLM's engine outlives the process that was killed, and keeps its memory"
        time.sleep(0.1)


@pytest.mark.parametrize("when", ["it loads", "it serves"])
@pytest.mark.long
def test_the_engine_of_a_server_that_is_killed_ends_with_it(tokenizers: dict[str, Any], tmp_path: Path, when: str) -> None:
    model = tmp_path / "tiny"
    tiny_llama(tokenizers["chatml"]).save_pretrained(model)
    tokenizers["chatml"].save_pretrained(model)
    start = ["--config", "embedded", f"model={model}", "engine=vllm", "port=0", "dtype=float32", "context=2048", "memory_gb=1"]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen([sys.executable, ROOT / "serve.py", *start], stdout=log, stderr=log, env=ENVIRONMENT)
    try:
        engine = waited_for(lambda: engine_of(server.pid), server)
        if when == "it serves":
            waited_for(lambda: ready(tmp_path / "log"), server)
    finally:
        server.kill()
        server.wait()
    wait_until_gone(engine)


def waited_for(what: Callable[[], Any], server: subprocess.Popen[bytes]) -> Any:
    end = time.monotonic() + 900
    while not (found := what()):
        assert server.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    return found


def engine_of(server: int) -> str:
    """vLLM's engine process, once it is called so, or once it is there."""
    told = subprocess.run(["ps", "--ppid", str(server), "-o", "pid=,args="], capture_output=True, text=True, check=False).stdout
    return next((line.split()[0] for line in told.splitlines() if "spawn_main" in line or "EngineCore" in line), "")


def ready(log: Path) -> bool:
    address = re.search(r"at (http://\S+)", log.read_text())
    try:
        return bool(address) and httpx2.get(f"{address[1]}/ready").status_code == 200
    except httpx2.TransportError:
        return False


SENT = """
import json
from types import SimpleNamespace
from perse.engines.base import Sampling
from perse.engines.vllm import VLLMEngine

asked = []

def run(requests):
    asked.extend(requests)
    return []

model = SimpleNamespace(logprobs_mode="raw_logprobs", dtype="float32", head_dtype="float32")
engine = VLLMEngine(run, SimpleNamespace(model_config=model))
schema = {"type": "object", "properties": {"liked": {"type": "boolean"}}}
for wanted, seeds in ((Sampling(0, 12, frozenset({9, 8}), schema), [0, 5]), (Sampling(0.5, 7, frozenset({8})), [1])):
    engine.generate([(1, 2)] * len(seeds), wanted, seeds=seeds)
for one in asked:
    params = one.params
    held_to = params.structured_outputs and params.structured_outputs.json
    print(json.dumps([params.temperature, params.max_tokens, params.stop_token_ids, params.seed, held_to]))
"""


def test_vllm_in_this_process_is_told_schema_seed_temperature_and_ends() -> None:
    """In a process of its own: importing vLLM changes the rounding of what is computed later in this one."""
    done = subprocess.run(
        [sys.executable, "-c", SENT], capture_output=True, text=True, check=True, env=ENVIRONMENT, timeout=900
    )
    schema = {"type": "object", "properties": {"liked": {"type": "boolean"}}}
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert told == [[0, 12, [8, 9], 0, schema], [0, 12, [8, 9], 5, schema], [0.5, 7, [8], 1, None]]
