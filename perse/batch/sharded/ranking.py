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
        pa.field("text", pa.string(), nullable=False),
        pa.field("rank", pa.int64(), nullable=False),
        pa.field("expected", pa.float64()),
        pa.field("label", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
    ]
)
_ROWS = 10_000


@dataclass(frozen=True)
class Ranked:
    """A text among a reader's best."""

    reader: str
    text: str
    rank: int
    expected: float | None
    label: str | None
    status: str
    id: str


def best(places: Places, plan: Plan, number: int, *, on_progress: OnProgress = unseen) -> Iterator[Ranked]:
    """The `number` texts of each reader with the highest expected scores, or labels where the judge gave no distribution; best first, ties
    by the id of the text. What has no answer stands behind all that have one, so that it is seen where fewer than `number` have.

    Raises:
        BadInput: an answer is missing, or is no score of a single text.
    """
    for reader, given in groupby(_answered(places, plan, on_progress), key=lambda one: one[0]):
        for rank, (_, text, one) in enumerate(heapq.nsmallest(number, given, key=_order), start=1):
            yield Ranked(reader, text, rank, one.expected, one.label, str(one.status), one.id)


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


def _answered(places: Places, plan: Plan, on_progress: OnProgress) -> Iterator[tuple[str, str, Judgement]]:
    """Reader, text and judgement of each example, in the plan's order."""
    for number, (shard, judgements) in enumerate(zip(plan.shards, answers(places, plan), strict=True)):
        on_progress(number, len(plan.shards))
        for (reader, text), one in zip(plan.source.pairs(shard), judgements, strict=True):
            yield reader, text, one
    on_progress(len(plan.shards), len(plan.shards))


def _order(answered: tuple[str, str, Judgement]) -> tuple[bool, float, str]:
    """Comes first, the better it is."""
    _, text, one = answered
    known = one.status is Status.OK
    return not known, -_score(one) if known else 0.0, text


def _score(judgement: Judgement) -> float:
    if judgement.expected is not None:
        return judgement.expected
    try:
        return float(judgement.label or "")
    except ValueError:
        raise BadInput(
            f"'{judgement.id}' has the answer {judgement.label!r}, which is no score; the best texts are those of scores"
        ) from None
