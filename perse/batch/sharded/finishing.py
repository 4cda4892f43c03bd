"""What became of a run in shards: an audit at its end, and all answers as one file.

The order of a merged file is the plan's: by adapter and reader, of a reader those with one profile together, among these by id; however many
workers there were and however often they were interrupted, it is the same file.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import parquet

from perse.batch.sharded.running import Places
from perse.batch.sharded.shard import ANSWERS, answers_table, read_answers
from perse.batch.sharded.shards import Plan, Shard
from perse.errors import BadInput
from perse.files.disk import writing
from perse.files.exports import Fields
from perse.judgement import Judgement, judgement_line
from perse.progress import OnProgress, unseen

MERGED = Fields(needed=("id", "question", "status"), known=[*Judgement.model_fields])
"""What the rows of `merge` have."""

DAMAGED = ".damaged"


@dataclass(frozen=True)
class Audit:
    """What an audit found. A run is whole when nothing is missing, damaged or said twice."""

    rows: int
    shards: int
    statuses: Counter[str]
    missing: tuple[str, ...]
    """Shards without answers."""
    damaged: tuple[str, ...]
    """Files of answers that could not be read, or were of other examples; set aside, so that the same command judges them again."""
    missing_rows: int
    twice: int
    """Answers to an example beyond its first."""

    @property
    def whole(self) -> bool:
        """Whether every example has one answer."""
        return not (self.missing or self.damaged or self.twice)


def audit(places: Places, plan: Plan, *, on_progress: OnProgress = unseen) -> Audit:
    """Read every answer and compare it with the plan. Damaged files get another name.

    Raises:
        BadInput: the plan itself is damaged.
    """
    statuses: Counter[str] = Counter()
    missing, damaged = [], []
    missing_rows = twice = 0
    for number, shard in enumerate(plan.shards):
        on_progress(number, len(plan.shards))
        path = places.answers(shard)
        if not path.exists():
            missing.append(shard.id)
            missing_rows += shard.rows
            continue
        try:
            found = read_answers(path)
        except BadInput:
            found = []
        ids = [one.id for one in found]
        twice += len(ids) - len(set(ids))
        if ids != plan.ids(shard) or len(ids) != shard.rows:
            damaged.append(shard.id)
            missing_rows += shard.rows
            _aside(path)
            continue
        statuses.update(str(one.status) for one in found)
    on_progress(len(plan.shards), len(plan.shards))
    return Audit(plan.rows, len(plan.shards), statuses, tuple(missing), tuple(damaged), missing_rows, twice)


def set_aside(places: Places, plan: Plan) -> int:
    """Give files of answers that are no whole ones, by their last bytes, another name, so that they are judged again; how many there were."""
    there = places.finished()
    bad = [shard for shard in plan.shards if shard.id in there and not places.done(shard)]
    for shard in bad:
        _aside(places.answers(shard))
    return len(bad)


def _aside(path: Path) -> None:
    """Give a damaged file a name that is free; what was set aside before, or is a person's, keeps its own."""
    free, number = path.with_name(path.name + DAMAGED), 0
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}{DAMAGED}-{number}")
    path.rename(free)


def answers(places: Places, plan: Plan) -> Iterator[list[Judgement]]:
    """The judgements of each shard, in the plan's order.

    Raises:
        BadInput: one is missing, or damaged.
    """
    for shard in plan.shards:
        found = _answers(places, shard)
        if [one.id for one in found] != plan.ids(shard):
            raise BadInput(f"{places.answers(shard)} has the answers of other examples; `perse score audit` sets it aside")
        yield found


def merge(places: Places, plan: Plan, out: Path, *, on_progress: OnProgress = unseen) -> int:
    """Write all judgements to `out`, JSON lines or, where its name ends so, Parquet; how many there are.

    Raises:
        BadInput: an answer is missing, or damaged.
    """
    written = 0
    with staged_file(out) as stage:
        if out.suffix == ".parquet":
            with parquet.ParquetWriter(stage, ANSWERS, compression="zstd") as writer:
                for number, judgements in enumerate(answers(places, plan)):
                    on_progress(number, len(plan.shards))
                    writer.write_table(answers_table(judgements))
                    written += len(judgements)
        else:
            with stage.open("w", encoding="utf-8") as lines:
                for number, judgements in enumerate(answers(places, plan)):
                    on_progress(number, len(plan.shards))
                    lines.writelines(map(judgement_line, judgements))
                    written += len(judgements)
    on_progress(len(plan.shards), len(plan.shards))
    return written


@contextmanager
def staged_file(out: Path) -> Iterator[Path]:
    """A file that becomes `out` at the end of the block, and nothing where it fails.

    Raises:
        SaveFailed: it could not be written.
    """
    stage = out.with_name(f".{out.name}.{secrets.token_hex(6)}.perse-tmp")
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        stage.touch(exist_ok=False)  # our own: no link, and of no other merge
    try:
        with writing(out):
            yield stage
            stage.replace(out)
    finally:
        stage.unlink(missing_ok=True)


def _answers(places: Places, shard: Shard) -> list[Judgement]:
    path = places.answers(shard)
    if not path.exists():
        raise BadInput(f"{places.run} lacks the answers of shard {shard.id}; the command that judged the others judges it, too")
    return read_answers(path)
