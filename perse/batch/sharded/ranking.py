"""The best texts of each reader, of a run in shards: read shard by shard, so that no more than one reader's best are in memory."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from perse.batch.sharded.finishing import answers, staged_file
from perse.batch.sharded.running import Places
from perse.batch.sharded.shards import Plan
from perse.errors import BadInput
from perse.judgement import Judgement, Status
from perse.progress import OnProgress, unseen

_RANKED = pa.schema(
    [
        pa.field("reader", pa.string(), nullable=False),
        pa.field("rank", pa.int64(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("score", pa.float64(), nullable=False),
        pa.field("label", pa.string()),
        pa.field("id", pa.string(), nullable=False),
    ]
)
_ROWS = 10_000


@dataclass(frozen=True)
class Ranked:
    """A text among a reader's best. `score` is the expected one, or the label where the judge gave no distribution."""

    reader: str
    rank: int
    text: str
    score: float
    label: str | None
    id: str


def best(places: Places, plan: Plan, number: int, *, on_progress: OnProgress = unseen) -> Iterator[Ranked]:
    """The `number` texts of each reader with the highest scores, best first, ties by the id of the text. What was not answered has none.

    Raises:
        BadInput: an answer is missing, or is no score of a single text.
    """
    for _, given in groupby(_scored(places, plan, on_progress), key=lambda one: one.reader):
        for rank, one in enumerate(heapq.nsmallest(number, given, key=lambda one: (-one.score, one.text)), start=1):
            yield Ranked(one.reader, rank, one.text, one.score, one.label, one.id)


def write_best(places: Places, plan: Plan, number: int, out: Path, *, on_progress: OnProgress = unseen) -> int:
    """Write `best` to `out`, JSON lines or, where its name ends so, Parquet; how many rows there are.

    Raises:
        BadInput: as `best`.
    """
    rows, written = best(places, plan, number, on_progress=on_progress), 0
    with staged_file(out) as stage:
        if out.suffix == ".parquet":
            with parquet.ParquetWriter(stage, _RANKED, compression="zstd") as writer:
                while some := [asdict(one) for one in islice(rows, _ROWS)]:
                    writer.write_table(pa.Table.from_pylist(some, _RANKED))
                    written += len(some)
        else:
            with stage.open("w", encoding="utf-8") as lines:
                for one in rows:
                    lines.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
                    written += 1
    return written


def _scored(places: Places, plan: Plan, on_progress: OnProgress) -> Iterator[Ranked]:
    """All that were answered, in the plan's order, without a rank."""
    for number, (shard, judgements) in enumerate(zip(plan.shards, answers(places, plan), strict=True)):
        on_progress(number, len(plan.shards))
        for (reader, text), one in zip(plan.source.pairs(shard), judgements, strict=True):
            if one.status is Status.OK:
                yield Ranked(reader, 0, text, _score(one), one.label, one.id)
    on_progress(len(plan.shards), len(plan.shards))


def _score(judgement: Judgement) -> float:
    if judgement.expected is not None:
        return judgement.expected
    try:
        return float(judgement.label or "")
    except ValueError:
        raise BadInput(
            f"'{judgement.id}' has the answer {judgement.label!r}, which is no score; the best texts are those of scores"
        ) from None
