"""What docs/results.md shows runs: each benchmark and each command, at its smallest size, on a random model and a few examples.

The commands are taken from the page and called in its order, so that a later one finds what an earlier one wrote. Sizes, and the
model, are exchanged for small ones by option; what can't be called here is named below with the reason, and its options are checked
by test_documented_commands.py all the same.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from documented import ROOT, Command, commands
from typer.testing import CliRunner

from perse.cli import app

pytestmark = pytest.mark.integration

SAMPLES = ROOT / "perse" / "samples"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "120", "PYTHONPATH": str(ROOT)}

NOT_HERE = {
    "make demo": "8 minutes; every command of it is called here",
    "make integration": "holds this test",
    "make mutants": "an hour, and it installs Cosmic Ray",
    "python benchmarks/": "called by the test below",
    "perse data release": "the released files are not part of the project; tests/data/test_release.py builds from its own",
    "perse score --examples work/released-mpst": "as above",
    "perse data persum": "Amazon's reviews are not part of the project; tests/data/test_persum.py selects from its own",
    "perse agreement": "SummEval's annotations are not part of the project; tests/evaluation/test_annotators.py reads its own",
}
SMALLER = {"--limit": "4", "--max-new-tokens": "4", "--orders": "2", "--ks": "0,1", "--samples": "1"}
TRAINING = ("train.steps=1", "train.row_tokens=16384", "train.report_to=[]", "train.precision=fp32", "watch=null", "data.max_examples=4", "model.context=8192")  # fmt: skip


def spelled_out(command: Command, earlier: list[list[str]]) -> list[str]:
    """What `...` stands for: the last command of that name, of which the words after it change something."""
    words = list(command.words)
    if words[0] == "accelerate":
        words = ["perse", "train", *words[words.index("train.py") + 1 :]]
    if "..." in words:
        name = 3 if words[1] in ("data", "study", "kgds") else 2
        before = next(one for one in reversed(earlier) if one[:name] == words[:name])
        words = [*before, *(word for word in words[name:] if word != "...")]
    return words


def smallest(words: list[str], model: Path) -> list[str]:
    """The same command on as little as it takes."""
    words = [str(model) if word == "smollm2-135m" else word for word in words]
    words = [SMALLER.get(words[at - 1], word) if at else word for at, word in enumerate(words)]
    if words[1] == "train":
        words += [f"model.path={model}", *TRAINING]
    return words


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the page's commands read, of the sample corpus where there are such."""
    monkeypatch.chdir(tmp_path)
    for name in ("perse/samples", "configs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("reviews", "items"):
        with gzip.open(f"{name}.jsonl.gz", "wb") as file:
            file.write((SAMPLES / f"{name}.jsonl").read_bytes())
    texts = {item["item_id"]: item["text"] for item in map(json.loads, (SAMPLES / "items.jsonl").read_text().splitlines())}
    with Path("pairs.jsonl").open("w") as pairs:
        for one in map(json.loads, (SAMPLES / "pairs.jsonl").read_text().splitlines()):
            sides = {f"{part}_{side}": texts[one[f"item_{side}"]][cut] for side in "ab" for part, cut in CUTS.items()}
            pairs.write(json.dumps({**{k: one[k] for k in ("reviewer_id", "aspect", "preference")}, **sides}) + "\n")
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parent / "kgds"))
    importlib.import_module("kgds_builders").write_benchmark_file(tmp_path)
    return tmp_path


CUTS = {"story": slice(0, -40), "ending": slice(-40, None)}


def test_every_command_of_the_results_runs_in_its_order(place: Path, answering_model: Path) -> None:
    earlier: list[list[str]] = []
    for command in commands("docs/results.md"):
        if not command.whole or any(" ".join(command.words).startswith(begin) for begin in NOT_HERE):
            continue
        earlier.append(spelled_out(command, earlier))
        words = smallest(earlier[-1], answering_model)
        done = CliRunner().invoke(app, words[1:])
        told = "".join(traceback.format_exception(done.exception)) if done.exception else ""
        assert done.exit_code == 0, f"{command}\ncalled as {' '.join(words)}\n{done.output[-1500:]}\n{told[-3000:]}"
    assert len(earlier) > 20


def test_a_reason_is_given_for_no_command_that_is_gone() -> None:
    shown = [" ".join(command.words) for command in commands("docs/results.md")]
    assert [begin for begin in NOT_HERE if not any(text.startswith(begin) for text in shown)] == []


# Benchmarks

SIZES: dict[str, tuple[str, ...]] = {
    "busy_server": ("--model", "MODEL"),
    "data_prep": (),
    "engines": ("--model", "MODEL", "--ways", "original", "embedded"),
    "evaluation": ("--json",),
    "interval_coverage": (),
    "kgds_verify": ("KGDS.json", "--judge", "MODEL"),
    "learning": ("before=runs/scored", "after=runs/scored,runs/again"),
    "long_profiles": ("--model", "MODEL"),
    "recipes": ("--data", "examples.jsonl"),
    "rounding": ("--model", "MODEL", "--examples", "examples.jsonl"),
    "soft_labels": ("examples.jsonl", "soft.jsonl"),
    "train_speed": (
        "--model",
        "MODEL",
        "--dtype",
        "bfloat16",
        "--scenarios",
        "4-branches",
        "--arms",
        "trl-padded+head",
        "ours",
    ),
}
"""What each is given beside --small; soft_labels is as small as its file."""
ELSEWHERE = {
    "train_arms": "what train_speed runs, no program of its own",
    "mutants": "installs Cosmic Ray and takes an hour: `make mutants`",
}


@pytest.mark.parametrize("name", sorted(SIZES))
def test_a_benchmark_runs_at_its_smallest_size(name: str, place: Path, answering_model: Path) -> None:
    if name in ("recipes", "rounding", "soft_labels", "learning"):
        called("data", "pointwise", "--reviews", "reviews.jsonl.gz", "--items", "items.jsonl.gz", "--k", "1", "--out", "data")
        called("data", "export", "data", "--split", "valid", "--out", "examples.jsonl")
    if name == "learning":
        for out in ("runs/scored", "runs/again"):
            called("score", "--examples", "data", "--judge", str(answering_model), "--question", "pointwise_score", "--limit", "8", "--out", out)  # fmt: skip
    words = [str(answering_model) if word == "MODEL" else word for word in SIZES[name]]
    small = [] if name == "soft_labels" else ["--small"]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / f"{name}.py", *words, *small],
        cwd=place, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-1500:]}\n{done.stderr[-3000:]}"


def called(*words: str) -> None:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output


def test_every_benchmark_is_run_or_named_with_a_reason() -> None:
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} == SIZES.keys() | ELSEWHERE.keys()
