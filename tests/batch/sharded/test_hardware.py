"""What the judges of a run in shards take of their machines, and when shards are read."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from builders import pointwise_examples
from scripted_package import install

from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.drivers import _crews, cards
from perse.batch.sharded.inputs import Row
from perse.batch.sharded.plan import make_plan
from perse.batch.sharded.running import Asker, Places
from perse.batch.sharded.working import work
from perse.engines.kind import Hardware, Identity, JudgeName, LoadOptions
from perse.errors import BadInput
from perse.judgement import Judgement, Status, Tokens
from perse.judging.loading import load_local
from perse.questions import QUESTIONS
from perse.records import Example

QUESTION = QUESTIONS["pointwise"]


@pytest.mark.parametrize(
    ("seen", "each", "crews"),
    [
        (["0", "1", "2", "3"], 1, [["0"], ["1"], ["2"], ["3"]]),
        (["4", "5", "6", "7"], 2, [["4", "5"], ["6", "7"]]),
        (["0", "1", "2"], 2, [["0", "1"]]),
        ([], 1, [()]),
        ([], 4, [()]),
    ],
)
def test_each_worker_has_gpus_of_its_own(seen: list[str], each: int, crews: list[Sequence[str]]) -> None:
    assert _crews(seen, each) == crews


def test_a_worker_that_needs_more_gpus_than_there_are_is_refused_with_both_numbers() -> None:
    with pytest.raises(BadInput, match="a worker needs 4 GPUs .--tensor-parallel., and 2 are to be used here"):
        _crews(["0", "1"], 4)


@pytest.mark.parametrize(("given", "found"), [("2, 3", ["2", "3"]), ("", []), ("-1", [])])
def test_workers_are_for_the_gpus_that_may_be_used(given: str, found: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert cards() == found


@pytest.mark.slow
def test_the_embedded_engine_keeps_as_much_as_it_is_told_and_is_not_split(embedded: Path) -> None:
    name = JudgeName("transformers", str(embedded), local=True)
    loaded = load_local(name, embedded, None, LoadOptions("float32", 512, hardware=Hardware(memory_gb=0.25)))
    assert loaded.engine._prefixes.budget == 2**28  # type: ignore[union-attr]
    with pytest.raises(BadInput, match="the embedded engine is on one GPU; to split a model over 2, name it vllm:"):
        load_local(name, embedded, None, LoadOptions(hardware=Hardware(tensor_parallel=2)))


@pytest.mark.slow
def test_hardware_is_no_part_of_what_a_run_is(tmp_path: Path) -> None:
    env = install(tmp_path / "package")
    (tmp_path / "in.jsonl").write_text("".join(one.model_dump_json() + "\n" for one in pointwise_examples(2, 2)))
    asked = ["--examples", "in.jsonl", "--judge", "scripted:a", "--out", "run", "--driver", "local", "--workers", "1"]
    for more in ([], ["--memory-gb", "2", "--tensor-parallel", "2"]):
        words = [sys.executable, "-m", "perse", "score", *asked, *more]
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "run" / "manifest.json").read_text())["run"]["judge"]
    assert sorted(kept) == ["context", "dtype", "name", "tokenizer", "trust_remote_code", "weights"]


def test_the_next_shard_is_read_and_asked_about_while_one_is_judged(tmp_path: Path) -> None:
    some = [Row(one, "in", n) for n, one in enumerate(pointwise_examples(2, 2))]
    plan = make_plan(tmp_path, some, identity="x", size=2)
    both = threading.Barrier(2, timeout=900)

    def ask(examples: Sequence[Example]) -> list[Judgement]:
        both.wait()  # until the other shard is here, too
        return [
            Judgement(
                id=one.id, question=QUESTION.name, status=Status.OK, label="7", k_effective=1,
                tokens=Tokens(prompt=1, cached=0, generated=1), model="m",
            )
            for one in examples
        ]  # fmt: skip

    claims = Claims(tmp_path / "claims", Holder.me("w"))
    assert work(Places(tmp_path), plan, Asker(QUESTION, Identity("m"), ask), claims, session="s", at_once=2) == 2
