"""The best texts of each reader, of a run in shards: read shard by shard, so that no more than one reader's best are in memory."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import groupby, islice
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from perse.batch.sharded.finishing import answers, staged_file
from perse.batch.sharded.running import Places
from perse.batch.sharded.shards import Plan
from perse.errors import BadInput
from perse.files.exports import Fields
from perse.judgement import Judgement, Status
from perse.progress import OnProgress, unseen

_RANKED = pa.schema(
    [
        pa.field("reader", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
        pa.field("rank", pa.int64(), nullable=False),
        pa.field("tied", pa.int64(), nullable=False),
        pa.field("expected", pa.float64()),
        pa.field("label", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
    ]
)
RANKED = Fields(needed=_RANKED.names, known=_RANKED.names)
"""What the rows of `write_best` have."""
_ROWS = 10_000


@dataclass(frozen=True)
class Ranked:
    """A text among a reader's best."""

    reader: str
    text: str
    rank: int
    tied: int
    """Texts of the reader that have this score, itself included: which of them comes first is of their ids."""
    expected: float | None
    label: str | None
    status: str
    id: str


def best(places: Places, plan: Plan, number: int, *, on_progress: OnProgress = unseen) -> Iterator[Ranked]:
    """The `number` texts of each reader with the highest expected scores, or labels where the judge gave no distribution; best first, ties
    by the id of the text. What has no answer stands behind all that have one, so that it is seen where fewer than `number` have.

    Raises:
        BadInput: an answer is missing, or is no score of a single text; or a reader's texts were judged with several adapters.
    """
    several = len({shard.adapter for shard in plan.shards}) > 1
    known: set[str] = set()
    for reader, given in groupby(_answered(places, plan, on_progress), key=lambda one: one[0]):
        if several:  # shards are sorted by adapter, so that such a reader comes again
            if reader in known:
                raise BadInput(
                    f"the texts of reader '{reader}' were judged with several adapters, which are several judges; merge without --top, or judge "
                    "those of each adapter into a folder of their own"
                )
            known.add(reader)
        equal: Counter[tuple[bool, float]] = Counter()

        def order(answered: tuple[str, str, Judgement], equal: Counter[tuple[bool, float]] = equal) -> tuple[bool, float, str]:
            place = _place(answered[2])
            equal[place] += 1
            return *place, answered[1]

        for rank, (_, text, one) in enumerate(heapq.nsmallest(number, given, key=order), start=1):
            yield Ranked(reader, text, rank, equal[_place(one)], one.expected, one.label, str(one.status), one.id)


def write_best(places: Places, plan: Plan, number: int, out: Path, *, on_progress: OnProgress = unseen) -> tuple[int, int]:
    """Write `best` to `out`, JSON lines or, where its name ends so, Parquet; how many rows there are, and of how many readers a text that is left
    out has the score of the last that is in.

    Raises:
        BadInput: as `best`.
    """
    cut: set[str] = set()
    rows, written = _noting_cuts(best(places, plan, number, on_progress=on_progress), cut), 0
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
    return written, len(cut)


def _noting_cuts(rows: Iterable[Ranked], cut: set[str]) -> Iterator[Ranked]:
    """The rows; `cut` gets the readers of whom more texts have the last one's score than are in."""
    for reader, some in groupby(rows, key=lambda one: one.reader):
        listed = [*some]
        yield from listed
        last = listed[-1]
        if last.status == Status.OK and last.tied > sum(_same(one, last) for one in listed):
            cut.add(reader)


def _same(one: Ranked, other: Ranked) -> bool:
    return (one.status, one.expected, one.label if one.expected is None else None) == (
        other.status, other.expected, other.label if other.expected is None else None,
    )  # fmt: skip


def _answered(places: Places, plan: Plan, on_progress: OnProgress) -> Iterator[tuple[str, str, Judgement]]:
    """Reader, text and judgement of each example, in the plan's order."""
    for number, (shard, judgements) in enumerate(zip(plan.shards, answers(places, plan), strict=True)):
        on_progress(number, len(plan.shards))
        for (reader, text), one in zip(plan.source.pairs(shard), judgements, strict=True):
            yield reader, text, one
    on_progress(len(plan.shards), len(plan.shards))


def _place(one: Judgement) -> tuple[bool, float]:
    """Comes first, the better it is."""
    known = one.status is Status.OK
    return not known, -_score(one) if known else 0.0


def _score(judgement: Judgement) -> float:
    if judgement.expected is not None:
        return judgement.expected
    try:
        return float(judgement.label or "")
    except ValueError:
        raise BadInput(
            f"'{judgement.id}' has the answer {judgement.label!r}, which is no score; the best texts are those of scores"
        ) from None
