"""The whole of KGDS as a user types it, with the embedded model; and with a real vLLM, which must say what the embedded engine says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from builders import tiny_llama
from kgds_builders import benchmark, write_benchmark_file

from perse.judge import Judge, JudgeSettings
from perse.kgds.benchmark import Benchmark
from perse.kgds.folder import Summary, read_outcomes, read_summaries
from perse.kgds.results import METRICS, Results
from perse.kgds.verify import questions
from perse.questions.claims import VERIFY_FACT, VERIFY_FACTS

pytestmark = pytest.mark.integration

GREEDY = JudgeSettings(temperature=0)


def perse(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "perse.cli", "kgds", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, check=False, timeout=600,
        env={**os.environ, "COLUMNS": "200", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


def test_from_a_benchmark_to_a_report_with_the_embedded_model(tmp_path: Path, embedded: Path) -> None:
    write_benchmark_file(tmp_path)
    perse(tmp_path, "generate", "KGDS.json", "--writer", embedded, "--max-new-tokens", 128, "--out", "run")
    perse(tmp_path, "verify", "KGDS.json", "run", "--judge", embedded)
    perse(tmp_path, "errors", "KGDS.json", "run", "--judge", embedded)
    found = Results.model_validate_json(perse(tmp_path, "metrics", "KGDS.json", "run", "--json").stdout)
    assert found.samples == (1, 2) and len(found.scores) == 4 and len(found.deltas) == 2 and len(found.across) == 2
    for scores in found.scores:
        assert set(METRICS) <= set(scores.values), scores
        assert scores.errors is None or scores.errors.shares is None or sum(scores.errors.shares.values()) == pytest.approx(100)
    assert all(one.status == "ok" for summaries in read_summaries(tmp_path / "run").values() for one in summaries.values())
    page = Path(perse(tmp_path, "report", "KGDS.json", "run", "--out", "report").stdout.strip())
    assert (tmp_path / page).stat().st_size > 50_000 and json.loads((tmp_path / "report" / "manifest.json").read_text())[
        "runs"
    ] == ["run"]
    before = (tmp_path / "run" / "verified" / "judgements.jsonl").read_bytes()
    perse(tmp_path, "verify", "KGDS.json", "run", "--judge", embedded)
    assert (tmp_path / "run" / "verified" / "judgements.jsonl").read_bytes() == before


def stand_in(of: Benchmark) -> list[Summary]:
    """Summaries in the experts' own words."""
    return [
        Summary(
            sample=number,
            pattern="abs-aos",
            paradigm="structured",
            model="experts",
            background="\n".join(paragraph.text for paragraph in sample.supporting),
            opinions="\n".join(sample.opinions),
        )
        for number, sample in of.samples.items()
    ]


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; `make vllm` installs it")
def test_vllm_verifies_as_the_embedded_engine_and_writes_json(tmp_path: Path, tokenizers: dict[str, Any]) -> None:
    model = tmp_path / "model"
    tiny_llama(tokenizers["chatml"], width=128).save_pretrained(model)
    tokenizers["chatml"].save_pretrained(model)
    asked = [questions(benchmark().samples, stand_in(benchmark()), mode) for mode in ("single", "paragraph")]  # type: ignore[arg-type]
    embedded = Judge.load(model, dtype="float32")
    served = Judge.load(f"vllm:{model}", dtype="float32", context=2048)
    for one, other in zip(
        embedded.ask(VERIFY_FACT, asked[0].facts, GREEDY), served.ask(VERIFY_FACT, asked[0].facts, GREEDY), strict=True
    ):
        assert one.distribution is not None and other.distribution is not None
        assert one.distribution["yes"] == pytest.approx(other.distribution["yes"], abs=2e-3), one.id
    ours, theirs = (judge.ask_listed(VERIFY_FACTS, asked[1].lists, GREEDY) for judge in (embedded, served))
    for of_ours, of_theirs in zip(ours, theirs, strict=True):
        for one, other in zip(of_ours, of_theirs, strict=True):
            assert one.distribution is not None and other.distribution is not None
            assert one.distribution["yes"] == pytest.approx(other.distribution["yes"], abs=2e-3), one.id
            if abs(one.distribution["yes"] - 0.5) < 5e-3:  # a label that may fall either way changes the lines behind it
                break
    from perse.kgds.generate import generate
    from perse.writing.writer import Writer

    generate(Writer(served), benchmark(), tmp_path / "run", max_new_tokens=256, tries=1)
    statuses = [one.status for summaries in read_summaries(tmp_path / "run").values() for one in summaries.values()]
    assert len(statuses) == 8 and statuses.count("ok") >= 6, statuses  # of a random model: only the schema makes it JSON
    assert read_outcomes(tmp_path / "run", benchmark())
