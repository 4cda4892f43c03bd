"""Slower checks that .ci/run makes: the embedded model itself, `accelerate launch`, and a wheel in an empty environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from builders import pairwise_examples, pointwise_examples
from places import ROOT, SAMPLES
from tolerances import EMBEDDED_LOGITS, probability

from perse import Judge
from perse.engines.transformers import TransformersEngine
from perse.judgement import Status
from perse.judging.judge import JudgeSettings
from perse.questions import QUESTIONS

pytestmark = pytest.mark.integration


def run(*command: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "120", **environment},
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done


@pytest.mark.parametrize("name", ["pointwise_score", "pairwise"])
@pytest.mark.numeric
def test_prefix_reuse_changes_no_distribution_of_the_embedded_model(embedded: Path, name: str) -> None:
    judge = Judge.load(embedded, dtype="float32")
    question = QUESTIONS[name]
    examples = pairwise_examples() if name == "pairwise" else pointwise_examples(3, 3)
    prompts = [rendered.ids for example in examples for rendered in judge.renderer.render(question, example)]
    support = judge.renderer.label_tokens(question)
    fast = judge.engine.label_distributions(prompts, support)
    slow = TransformersEngine(judge.engine.model, cache_bytes=0).label_distributions(prompts, support)  # type: ignore[attr-defined]
    for one, two in zip(fast, slow, strict=True):
        assert one.probabilities == pytest.approx(
            two.probabilities, rel=2 * probability(judge.engine.model, 1000, logits=EMBEDDED_LOGITS)
        )
    assert sum(read.cached for read in fast) > 0.4 * sum(map(len, prompts))


def test_the_embedded_model_answers_in_the_form_asked_for(embedded: Path) -> None:
    judge = Judge.load(embedded, dtype="float32")
    judgements = judge.ask(QUESTIONS["pointwise"], pointwise_examples(2, 2), JudgeSettings(max_new_tokens=40))
    assert [judgement.status for judgement in judgements] == [Status.OK] * 4
    assert all(judgement.mass is not None and judgement.mass > 0.9 for judgement in judgements)


def test_accelerate_launch_trains_what_perse_train_trains(tiny_model_folder: Path, tmp_path: Path) -> None:
    reviews, items = SAMPLES / "reviews.jsonl", SAMPLES / "items.jsonl"
    data = tmp_path / "data"
    run(
        sys.executable,
        "-m",
        "perse",
        "data",
        "pointwise",
        "--reviews",
        reviews,
        "--items",
        items,
        "--out",
        data,
        cwd=tmp_path,
    )
    given = [
        "--config", ROOT / "configs/train/embedded_lora.yaml", f"model.path={tiny_model_folder}", "model.dtype=float32",
        f"data.path={data}", "data.max_examples=8",
    ]  # fmt: skip
    launch = [Path(sys.executable).parent / "accelerate", "launch", "--cpu", "--num_processes", "1", ROOT / "train.py"]
    run(*launch, *given, f"output={tmp_path / 'launched'}", cwd=ROOT)
    run(sys.executable, "-m", "perse", "train", *given, f"output={tmp_path / 'plain'}", cwd=tmp_path)
    merged = [(tmp_path / name / "merged" / "model.safetensors").read_bytes() for name in ("launched", "plain")]
    assert merged[0] == merged[1]


def test_a_wheel_works_in_an_empty_environment_outside_the_repository(tiny_model_folder: Path, tmp_path: Path) -> None:
    """Built, installed with its train extra, and run through data, train, score, evaluate and ask with packaged files."""
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", ROOT, cwd=tmp_path)
    [wheel] = (tmp_path / "dist").glob("perse_judge-*.whl")
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment, cwd=tmp_path)
    python, perse = environment / "bin" / "python", environment / "bin" / "perse"
    # Of all that is installed little is imported, and is compiled then.
    install = (python, "-m", "pip", "install", "--quiet", "--no-compile", "-c", ROOT / "constraints.txt")
    run(*install, wheel, cwd=tmp_path)
    assert "0" in run(perse, "--version", cwd=tmp_path).stdout
    samples = Path(run(perse, "data", "samples", cwd=tmp_path).stdout.strip())
    assert samples.is_relative_to(environment)
    run(
        perse, "data", "pointwise", "--reviews", samples / "reviews.jsonl", "--items", samples / "items.jsonl", "--valid", "0.34",
        "--out", "data", cwd=tmp_path,
    )  # fmt: skip
    needs = subprocess.run(
        [perse, "score", "--examples", "data", "--judge", tiny_model_folder, "--out", "x"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert needs.returncode == 2 and f"pip install '{wheel}[serve]'" in needs.stderr, "the core says what it lacks"

    run(*install, f"{wheel}[train]", cwd=tmp_path)
    run(
        perse, "train", "--config", "embedded_lora", f"model.path={tiny_model_folder}", "model.dtype=float32", "data.path=data",
        "data.max_examples=4", "output=judge", cwd=tmp_path,
    )  # fmt: skip
    run(
        perse,
        "score",
        "--examples",
        "data",
        "--judge",
        "judge",
        "--out",
        "run",
        "--question",
        "pointwise_score",
        "--limit",
        "24",
        cwd=tmp_path,
    )
    assert json.loads(run(perse, "evaluate", "run", "--json", cwd=tmp_path).stdout)["details"]["items"] == 24
    asked = run(
        perse, "ask", "--judge", "judge", "--reviews", samples / "ask" / "reviews.jsonl", "--text", "a plot", "--max-new-tokens", "8", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert json.loads(asked.stdout)["k_effective"] == 3
