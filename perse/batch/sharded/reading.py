"""The examples and answers of a run in shards, for what reads any scoring run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perse.batch.sharded.finishing import answers
from perse.batch.sharded.pieces import Pieces
from perse.batch.sharded.plan import read_plan
from perse.batch.sharded.running import Places
from perse.batch.sharded.starting import LAYOUT
from perse.errors import BadInput
from perse.judgement import Judgement
from perse.records import Example


def is_sharded(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest is that of a run in shards."""
    return bool(manifest.get("run", {}).get("layout") == LAYOUT)


def read_sharded(folder: Path) -> tuple[list[Example], list[Judgement]]:
    """All examples and all judgements of a run in shards, in the order of its plan.

    Raises:
        BadInput: an answer is missing, or a file is damaged; or these are pairs of a catalogue, which are not read as a whole.
    """
    plan = read_plan(folder)
    if isinstance(plan.shards, Pieces):  # and may be more than memory holds
        raise BadInput(
            f"{folder} has all pairs of readers and texts, which are not read as a whole, and which have no true answers to compare with; `perse "
            "score merge` writes the judgements, with --top 10 the best ten texts of each reader"
        )
    examples = [one for shard in plan.shards for one in plan.examples(shard)]
    judgements = [one for some in answers(Places(folder), plan) for one in some]
    return examples, judgements
