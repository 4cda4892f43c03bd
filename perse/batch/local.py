"""Score examples with one judge on this machine, resumable: examples + judge -> run folder of judgements.

A run folder holds manifest.json, examples.jsonl (what was asked, so that the run can be evaluated by itself) and
judgements.jsonl, which grows a chunk at a time. The same command after a kill asks only what has no judgement yet.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perse.data.folder import is_data_folder
from perse.data.load import LoadedExamples, load_examples
from perse.errors import BadInput
from perse.judge import Judge, JudgeSettings
from perse.judgement import Judgement, Status, judgement_line, parse_judgement
from perse.loading import parse_judge
from perse.questions import Question
from perse.records import Example, example_lines, read_examples
from perse.runlog import MANIFEST, RunLog, read_lines, read_manifest, write_whole

JUDGEMENTS = "judgements.jsonl"
EXAMPLES = "examples.jsonl"


def score(
    judge: Judge,
    question: Question,
    loaded: LoadedExamples,
    out: Path,
    *,
    settings: JudgeSettings,
    tick: Callable[[int], None] = lambda _: None,
) -> Path:
    """Judge every example that `out` has no judgement of yet; `tick` is told how many have one.

    Raises:
        RunMismatch: `out` holds judgements of other examples, of another judge or with other settings.
    """
    lines = list(example_lines(loaded.examples))
    identity: dict[str, Any] = {
        "kind": "score",
        "question": question.name,
        "examples": {"count": len(lines), "sha256": hashlib.sha256("".join(lines).encode()).hexdigest()},
        "prompts_sha256": judge.prompt_digest(question, loaded.examples[:32], settings),
        "fold": loaded.fold,
        "judge": {**asdict(judge.identity), **judge.engine.settings, "context": judge.renderer.context},
        "settings": asdict(settings),
    }
    data_folder = str(loaded.folder.resolve()) if loaded.folder else None
    with RunLog(out, identity, lines=JUDGEMENTS, context={"data_folder": data_folder, "data_digest": loaded.digest}) as runlog:
        if not (out / EXAMPLES).exists():
            write_whole(out / EXAMPLES, "".join(lines))
        # What the engine failed at is asked again; the later judgement counts.
        done = {str(row["id"]) for row in runlog.read() if row["status"] != Status.ENGINE_ERROR}
        tick(len(done))
        for judgements in judge.stream(question, [e for e in loaded.examples if e.id not in done], settings):
            runlog.append(map(judgement_line, judgements))
            done.update(judgement.id for judgement in judgements)
            tick(len(done))
    return out


def check_unseen(judge: str, loaded: LoadedExamples) -> None:
    """Refuse a judge that was trained on another fold of the very data set it is to be scored on.

    Raises:
        BadInput: every reader of this fold was in its training data.
    """
    for folder in parse_judge(judge).folders:
        if loaded.fold is None or not (folder / MANIFEST).exists():
            continue
        run = read_manifest(folder).get("run", {})
        if run.get("kind") != "train" or run.get("data_digest") != loaded.digest:
            continue
        fold = run["config"]["data"]["fold"]
        if fold != loaded.fold:
            raise BadInput(
                f"{folder} was trained for fold {fold} of this data set and has seen the readers of fold {loaded.fold}; score --fold {fold}"
            )


def sample(loaded: LoadedExamples, limit: int | None, *, seed: int) -> LoadedExamples:
    """At most `limit` of the examples, drawn by seed, in their order."""
    if limit is None or limit >= len(loaded.examples):
        return loaded
    kept = sorted(random.Random(seed).sample(range(len(loaded.examples)), limit))
    return LoadedExamples([loaded.examples[i] for i in kept], loaded.digest, loaded.folder, loaded.fold)


@dataclass(frozen=True)
class ScoredRun:
    """A scoring run read back: what was asked, what was answered, and where the data it came from lay."""

    examples: list[Example]
    judgements: list[Judgement]
    data_folder: Path | None
    data_digest: str
    fold: int | None

    def training_side(self) -> tuple[Sequence[Example] | None, str | None]:
        """The training examples of the scored data set, or None and why they cannot be had."""
        if self.data_folder is None:
            return None, "the scored examples came from a file; name their data set with --train-data"
        if not is_data_folder(self.data_folder):
            return None, f"{self.data_folder} is no longer there; name the data set with --train-data"
        loaded = load_examples(self.data_folder, split="train", fold=self.fold)
        if loaded.digest != self.data_digest:
            return (
                None,
                f"{self.data_folder} was rebuilt since it was scored; score again, or name the data set with --train-data",
            )
        return loaded.examples, None


def read_run(folder: Path) -> ScoredRun:
    """A scoring run's examples and judgements.

    Raises:
        BadInput: no such run, or a file of it that is damaged.
    """
    manifest = read_manifest(folder)
    run, context = manifest.get("run", {}), manifest.get("context", {})
    if run.get("kind") != "score":
        raise BadInput(
            f"{folder} is a run of `perse {run.get('kind', '?')}`, not of `perse score`; give a folder that `perse score` wrote"
        )
    path = folder / JUDGEMENTS
    judgements = [parse_judgement(row, f"{path}, line {n}") for n, row in enumerate(read_lines(path), start=1)]
    latest = {judgement.id: judgement for judgement in judgements}
    place = context.get("data_folder")
    return ScoredRun(
        examples=read_examples(folder / EXAMPLES),
        judgements=list(latest.values()),
        data_folder=Path(place) if place else None,
        data_digest=str(context.get("data_digest")),
        fold=run.get("fold"),
    )
