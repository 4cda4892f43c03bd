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
from tolerances import WIDE_LOGITS, share

from perse.kgds.folder import Summary, read_judgements, read_summaries
from perse.kgds.scoring.results import METRICS, Results

pytestmark = pytest.mark.integration


def perse(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "perse", "kgds", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, check=False, timeout=900,
        env={**os.environ, "COLUMNS": "200", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


EXACT = ("--dtype", "float32")
"""Faster on some CPUs, too."""


def test_from_a_benchmark_to_a_report_with_the_embedded_model(tmp_path: Path, embedded: Path) -> None:
    write_benchmark_file(tmp_path)
    perse(tmp_path, "generate", "KGDS.json", "--writer", embedded, *EXACT, "--max-new-tokens", 128, "--out", "run")
    perse(tmp_path, "verify", "KGDS.json", "run", "--judge", embedded, *EXACT)
    perse(tmp_path, "errors", "KGDS.json", "run", "--judge", embedded, *EXACT)
    found = Results.model_validate(json.loads(perse(tmp_path, "metrics", "KGDS.json", "run", "--json").stdout)["details"])
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
    perse(tmp_path, "verify", "KGDS.json", "run", "--judge", embedded, *EXACT)
    assert (tmp_path / "run" / "verified" / "judgements.jsonl").read_bytes() == before


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; `make vllm` installs it")
def test_vllm_verifies_as_the_embedded_engine_and_writes_json(tmp_path: Path, tokenizers: dict[str, Any]) -> None:
    """In processes of their own: vLLM in this one would change the rounding of whatever is trained in it later."""
    model, run = tmp_path / "model", tmp_path / "run"
    tiny_llama(tokenizers["chatml"], width=128).save_pretrained(model)
    tokenizers["chatml"].save_pretrained(model)
    write_benchmark_file(tmp_path)
    run.mkdir()
    experts = [
        Summary(
            sample=number,
            pattern="abs-aos",
            paradigm="structured",
            model="experts",
            background="\n".join(paragraph.text for paragraph in sample.supporting),
            opinions="\n".join(sample.opinions),
        )
        for number, sample in benchmark().samples.items()
    ]
    (run / "summaries.jsonl").write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in experts))
    options = ("--dtype", "float32", "--context", 2048)
    for mode in ("single", "paragraph"):
        found = []
        for judge in (str(model), f"vllm:{model}"):
            name = f"{mode}-{judge.partition(':')[0] == 'vllm'}"
            perse(tmp_path, "verify", "KGDS.json", "run", "--judge", judge, "--facts", mode, "--name", name, *options)
            found.append(read_judgements(run / name / "judgements.jsonl"))
        ours, theirs = found
        assert ours.keys() == theirs.keys() and len(ours) == 18
        for key, one in ours.items():
            first = mode == "single" or "/fact/" not in key or key.endswith("/1")  # behind it a label may fall either way
            assert one.distribution is not None and (other := theirs[key].distribution) is not None
            assert not first or one.distribution["yes"] == pytest.approx(
                other["yes"], abs=share(model, 1000, logits=WIDE_LOGITS), rel=0
            ), key
    perse(
        tmp_path,
        "generate",
        "KGDS.json",
        "--writer",
        f"vllm:{model}",
        "--max-new-tokens",
        256,
        "--tries",
        1,
        "--out",
        "made",
        *options,
    )
    statuses = [one.status for summaries in read_summaries(tmp_path / "made").values() for one in summaries.values()]
    assert len(statuses) == 8 and statuses.count("ok") >= 6, statuses  # of a random model: only the schema makes it JSON
