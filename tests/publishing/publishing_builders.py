"""A judge trained on four readers, watched on others and scored on fourteen; adapters of every kind on a tiny base."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builders import pointwise_examples

from perse.records import example_lines


@dataclass(frozen=True)
class Published:
    base: Path
    run: Path
    scored: Path
    """What `perse score` of the run wrote."""


def published(base: Path, folder: Path) -> Published:
    from perse.batch.local import score
    from perse.data.load import load_examples
    from perse.judging.judge import Judge, JudgeSettings
    from perse.questions import QUESTIONS
    from perse.settings.training import load_config
    from perse.training.trainer import train

    examples = pointwise_examples(18, 3, k=1)
    train_file, other_file = folder / "train.jsonl", folder / "others.jsonl"
    train_file.write_text("".join(example_lines(examples[:12])), encoding="utf-8")
    other_file.write_text("".join(example_lines(examples[12:])), encoding="utf-8")
    settings = [
        f"model.path={base}",
        "model.dtype=float32",
        f"data.path={train_file}",
        "data.question=pointwise_score",
        "lora.rank=4",
        "train.epochs=2",
        "train.batch_size=3",
        "train.rows_per_step=1",
        "train.learning_rate=0.02",
        "train.log_every=1",
        "train.report_to=[]",
        f"watch.data={other_file}",
        "watch.examples=12",
        "watch.every=4",
        f"output={folder / 'run'}",
    ]
    run = train(load_config("embedded_lora", settings))
    loaded = load_examples(other_file, split="valid")
    judge = Judge.load(run, dtype="float32")
    score(judge, QUESTIONS["pointwise_score"], loaded, folder / "scored", settings=JudgeSettings(temperature=0))
    _all_answered(folder / "scored" / "judgements.jsonl")
    return Published(base, run, folder / "scored")


def _all_answered(judgements: Path) -> None:
    """What so small a model says of scores is too little to count as an answer; take it for one, so that there is something to show."""
    rows = [json.loads(line) for line in judgements.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row |= {"status": "ok", "label": max(row["distribution"], key=row["distribution"].get), "error": None}
    judgements.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def change(run: Path, file: str = "manifest.json", **parts: Any) -> None:
    """Set parts of a run's manifest, or of another file of it, by names joined with two underscores."""
    manifest = json.loads((run / file).read_text())
    for path, value in parts.items():
        *sections, name = path.split("__")
        place = manifest
        for section in sections:
            place = place[section]
        place[name] = value
    (run / file).write_text(json.dumps(manifest))
