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
from places import importing
from tolerances import WIDE_LOGITS, share

from perse import Judge
from perse.kgds.asking.verify import verify
from perse.kgds.benchmark import FactMode, read_benchmark
from perse.kgds.folder import JUDGEMENTS, Summary, read_judgements, read_summaries
from perse.kgds.scoring.results import METRICS, Results

pytestmark = pytest.mark.integration


ENVIRONMENT = {**os.environ, "COLUMNS": "200", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def perse(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "perse", "kgds", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, check=False, timeout=900, env=ENVIRONMENT,
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


ON_VLLM = """
import sys
from pathlib import Path
from perse import Judge
from perse.kgds.asking.generate import generate
from perse.kgds.asking.verify import verify
from perse.kgds.benchmark import read_benchmark
from perse.writing.writer import Writer

if __name__ == "__main__":
    model, run, made = map(Path, sys.argv[1:])
    samples = read_benchmark(Path("KGDS.json"))
    judge = Judge.load(f"vllm:{model}", dtype="float32", context=2048)
    for facts in ("single", "paragraph"):
        verify(judge, samples, run, name=f"vllm-{facts}", facts=facts)
    generate(Writer(judge), samples, made, max_new_tokens=256, tries=1)
"""


@pytest.mark.long
@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; `make vllm` installs it")
def test_vllm_verifies_as_the_embedded_engine_and_writes_json(tmp_path: Path, tokenizers: dict[str, Any]) -> None:
    """In one process of its own, as vLLM takes long to start: in this one it would change the rounding of what is trained later."""
    model, run, script = tmp_path / "model", tmp_path / "run", tmp_path / "on_vllm.py"
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
    script.write_text(ON_VLLM)
    done = subprocess.run(
        [sys.executable, script, model, run, tmp_path / "made"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900, env={**ENVIRONMENT, "PYTHONPATH": importing()},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    judge = Judge.load(model, dtype="float32", context=2048)
    modes: tuple[FactMode, ...] = ("single", "paragraph")
    for mode in modes:
        here = verify(judge, read_benchmark(tmp_path / "KGDS.json"), run, name=f"embedded-{mode}", facts=mode)
        ours, theirs = read_judgements(here / JUDGEMENTS), read_judgements(run / f"vllm-{mode}" / JUDGEMENTS)
        assert ours.keys() == theirs.keys() and len(ours) == 18
        for key, one in ours.items():
            first = mode == "single" or "/fact/" not in key or key.endswith("/1")  # behind it a label may fall either way
            assert one.distribution is not None and (other := theirs[key].distribution) is not None
            assert not first or one.distribution["yes"] == pytest.approx(
                other["yes"], abs=share(model, 1000, logits=WIDE_LOGITS), rel=0
            ), key
    statuses = [one.status for summaries in read_summaries(tmp_path / "made").values() for one in summaries.values()]
    assert len(statuses) == 8 and statuses.count("ok") >= 6, statuses  # of a random model: only the schema makes it JSON
