"""One shard judged: what a run in shards does again and again, on whatever machine.

    RUN/shards/ab/ab12....parquet     its answers, once they are whole
    RUN/pieces/ab12.../0-128.parquet  answers to a part of it, where it is judged in parts
    RUN/attempts/ab12...              a line for every begin and end

A begin without an end is a worker that died over these rows. After `CRASHES` of them in one session the rows are halved, and the halves judged
one after the other, until what kills workers stands alone: then it is a row with status `engine_error`, and all others have their answers.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perse.answering.base import failed
from perse.batch.sharded.shard import read_answers, rows_of, write_answers
from perse.batch.sharded.shards import Plan, Shard
from perse.engines.kind import Identity
from perse.errors import BadInput, EngineLost
from perse.files.disk import GrowingFile, sweep_temporaries
from perse.files.runlog import read_lines
from perse.judgement import Judgement, Status
from perse.questions import Question
from perse.records import Example

CRASHES = 2
"""Workers that may die over the same rows before these are halved."""


@dataclass(frozen=True)
class Asker:
    """Who is asked, and what.

    `ask` gives a judgement for each example, in their order; what it raises ends the worker.
    """

    question: Question
    identity: Identity
    ask: Callable[[Sequence[Example]], list[Judgement]]
    adapted: Callable[[str], Asker] | None = None
    """The same with the adapter of this name, where examples name some; with an empty name without one."""


@dataclass(frozen=True)
class Places:
    """Where the parts of a run in shards are."""

    run: Path

    def answers(self, shard: Shard) -> Path:
        """The shard's finished answers; 256 folders hold them, since one with a million files is slow to look into."""
        return self.run / "shards" / shard.id[:2] / f"{shard.id}.parquet"

    def piece(self, shard: Shard, first: int, end: int) -> Path:
        """Answers to rows `first` to `end` of the shard."""
        return self.run / "pieces" / shard.id / f"{first}-{end}.parquet"

    def attempts(self, shard: Shard) -> Path:
        """What was begun of the shard, and ended."""
        return self.run / "attempts" / shard.id

    def done(self, shard: Shard) -> bool:
        """Whether all its answers are there, as far as the file's footer says."""
        return rows_of(self.answers(shard)) == shard.rows

    def finished(self) -> set[str]:
        """The ids of all shards whose answers are there."""
        return {path.stem for path in (self.run / "shards").glob("??/*.parquet")}

    def sweep(self, shard: Shard) -> None:
        """Remove what was kept of a shard's parts, once it is whole, and nothing that a person put there."""
        kept = self.run / "pieces" / shard.id
        for path in kept.glob("*.parquet"):
            if re.fullmatch(r"\d+-\d+", path.stem):
                path.unlink(missing_ok=True)
        sweep_temporaries(kept)
        with suppress(OSError):  # not there, or somebody's files are in it
            kept.rmdir()
        self.attempts(shard).unlink(missing_ok=True)


def run_shard(places: Places, plan: Plan, shard: Shard, asker: Asker, *, session: str) -> list[Judgement]:
    """Judge a shard, and keep its answers.

    Args:
        session: a name for all workers that were started together: those that died in an earlier one do not count.
    Raises:
        EngineLost, BadInput, SaveFailed: as `Asker.ask`; the same call goes on from there.
    """
    examples = plan.examples(shard)
    asker = asker.adapted(shard.adapter) if asker.adapted else asker
    judgements = _Run(places, shard, examples, asker, session).rows(0, len(examples))
    write_answers(places.answers(shard), judgements)
    places.sweep(shard)
    return judgements


@dataclass(frozen=True)
class _Run:
    places: Places
    shard: Shard
    examples: Sequence[Example]
    asker: Asker
    session: str

    def rows(self, first: int, end: int) -> list[Judgement]:
        """The judgements of some of the shard's rows."""
        piece = self.places.piece(self.shard, first, end)
        if rows_of(piece) == end - first:
            with suppress(BadInput):  # damaged: asked again
                return read_answers(piece)
        if self._died(first, end) >= CRASHES:
            middle = (first + end) // 2
            judgements = self.rows(first, middle) + self.rows(middle, end) if end - first > 1 else [self._deadly(first)]
        else:
            judgements = self._asked(first, end)
        if (first, end) != (0, len(self.examples)):
            write_answers(piece, judgements)
        return judgements

    def _asked(self, first: int, end: int) -> list[Judgement]:
        with GrowingFile(self._log()) as log:
            log.cut_torn_line()
            log.append([self._line("begun", first, end)])
            try:
                judgements = self.asker.ask(self.examples[first:end])
            except EngineLost:
                raise  # what it died of may be one of these rows
            except BaseException:
                log.append([self._line("left", first, end)])
                raise
            log.append([self._line("done", first, end)], sync=False)
            return judgements

    def _died(self, first: int, end: int) -> int:
        told: Counter[str] = Counter()
        for line in read_lines(self.places.attempts(self.shard), remedy="remove the file"):
            if (line.get("session"), line.get("first"), line.get("end")) == (self.session, first, end):
                told[str(line.get("what"))] += 1
        return told["begun"] - told["left"] - told["done"]

    def _log(self) -> Path:
        path = self.places.attempts(self.shard)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _line(self, what: str, first: int, end: int) -> str:
        return json.dumps({"what": what, "first": first, "end": end, "session": self.session}) + "\n"

    def _deadly(self, row: int) -> Judgement:
        reason = f"{CRASHES} workers died while they were asked about this example alone"
        return failed(self.asker.identity, self.asker.question, self.examples[row], Status.ENGINE_ERROR, reason)
