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

from perse.data.load import LoadedExamples, load_examples
from perse.errors import BadInput
from perse.judge import Judge, JudgeSettings
from perse.judgement import Judgement, judgement_line, parse_judgement
from perse.questions import Question
from perse.records import Example, example_lines, read_examples
from perse.runlog import RunLog, read_lines, read_manifest, write_whole

JUDGEMENTS = "judgements.jsonl"
EXAMPLES = "examples.jsonl"


@dataclass(frozen=True)
class Progress:
    """Where a scoring run stands: judgements there were at the start, there are now, and will be."""

    begun: int
    done: int
    total: int


def score(
    judge: Judge,
    question: Question,
    loaded: LoadedExamples,
    out: Path,
    *,
    settings: JudgeSettings,
    tick: Callable[[Progress], None] = lambda _: None,
) -> Path:
    """Judge every example that `out` has no judgement of yet.

    Raises:
        RunMismatch: `out` holds judgements of other examples, of another judge or with other settings.
    """
    lines = list(example_lines(loaded.examples))
    digest = hashlib.sha256("".join(lines).encode()).hexdigest()
    identity: dict[str, Any] = {
        "kind": "score",
        "question": question.name,
        "examples": {"count": len(lines), "sha256": digest, "source_sha256": loaded.digest},
        "data_folder": str(loaded.folder) if loaded.folder else None,
        "fold": loaded.fold,
        "judge": {"name": judge.name, "sha256": judge.digest, **judge.engine.settings, "context": judge.renderer.context},
        "settings": asdict(settings),
    }
    with RunLog(out, identity, lines=JUDGEMENTS) as runlog:
        if not (out / EXAMPLES).exists():
            write_whole(out / EXAMPLES, "".join(lines))
        done = {str(row.get("id")) for row in runlog.read()}
        begun = len(done)
        tick(Progress(begun, begun, len(lines)))
        for judgements in judge.stream(question, [e for e in loaded.examples if e.id not in done], settings):
            runlog.append(map(judgement_line, judgements))
            done.update(judgement.id for judgement in judgements)
            tick(Progress(begun, len(done), len(lines)))
    return out


def sample(loaded: LoadedExamples, limit: int | None, *, seed: int) -> LoadedExamples:
    """At most `limit` of the examples, drawn by seed, in their order."""
    if limit is None or limit >= len(loaded.examples):
        return loaded
    kept = sorted(random.Random(seed).sample(range(len(loaded.examples)), limit))
    return LoadedExamples([loaded.examples[i] for i in kept], loaded.digest, loaded.folder, loaded.fold)


@dataclass(frozen=True)
class ScoredRun:
    """A scoring run read back: what was asked, what was answered, and where the training side of the data is."""

    examples: list[Example]
    judgements: list[Judgement]
    data_folder: Path | None
    fold: int | None

    def training_examples(self) -> Sequence[Example] | None:
        """The training side of the data set that the examples came from; None where it is not at hand."""
        if self.data_folder is None or not self.data_folder.is_dir():
            return None
        return load_examples(self.data_folder, split="train", fold=self.fold).examples


def read_run(folder: Path) -> ScoredRun:
    """A scoring run's examples and judgements.

    Raises:
        BadInput: no such run, or a file of it that is damaged.
    """
    run = read_manifest(folder).get("run", {})
    if run.get("kind") != "score":
        raise BadInput(
            f"{folder} is a run of `perse {run.get('kind', '?')}`, not of `perse score`; give a folder that `perse score` wrote"
        )
    path = folder / JUDGEMENTS
    judgements = [parse_judgement(row, f"{path}, line {n}") for n, row in enumerate(read_lines(path), start=1)]
    data_folder = run.get("data_folder")
    return ScoredRun(read_examples(folder / EXAMPLES), judgements, Path(data_folder) if data_folder else None, run.get("fold"))
