"""The judge of a worker: loaded as the run says, and checked to be the one of all other workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from perse.batch.sharded.adapters import Adapted
from perse.batch.sharded.running import Asker
from perse.batch.sharded.starting import SERVED, Run, agree
from perse.engines.kind import USUAL, Hardware, Loaded
from perse.errors import BadInput, PerseError
from perse.judgement import Judgement
from perse.judging.judge import Judge
from perse.judging.loading import ENGINES, parse_judge
from perse.records import Example


def judge_of(run: Run, *, hardware: Hardware = USUAL, trust_remote_code: bool = False) -> tuple[Asker, int]:
    """The judge, and how many shards it is given at once: two where the engine answers calls side by side, so that it never waits for the
    last answers of one shard with nothing else to do.

    Args:
        trust_remote_code: that code which came with the judge may run; that the run's folder says so is not enough, since it may be a stranger's.
    Raises:
        RunMismatch, BadInput, ModelNotFound: it is another, or cannot be loaded.
    """
    if run.loading.trust_remote_code and not trust_remote_code:
        raise BadInput(
            f"{run.folder} was begun with --trust-remote-code, which runs code that came with the judge; give it again to allow that"
        )
    if run.judge.startswith(SERVED):
        raise BadInput(f"{run.folder} is judged by servers; go on with perse score ... --driver http --servers URL,URL")
    folders = [Path(one.folder) for one in run.adapters.values()]
    judge = Judge.load(run.judge, **run.loading.identity, hardware=hardware, adapters=folders, stacking=run.stacking)
    agree(run, judge)
    at_once = 2 if judge.engine.capabilities.at_once else 1
    if not run.adapters:
        return asker_of(judge, run), at_once

    def load(adapter: Path | None) -> Loaded:
        parts = replace(parse_judge(run.judge), adapter=str(adapter) if adapter else None)
        return ENGINES[parts.engine].load(parts, replace(run.loading, hardware=hardware))

    adapted = Adapted(judge, run.adapters, load)
    asker = asker_of(judge, run)
    del judge  # which may make room for one with an adapter
    return replace(asker, ask=_never, adapted=lambda name: asker_of(adapted.judge(name), run)), at_once


def without_distributions(run: Run, *, trust_remote_code: bool = False) -> str:
    """That the workers will ask a judge on a server in words, and why; empty where they will not, or where it cannot be told from here: what is
    wrong with a judge is theirs to say."""
    if parse_judge(run.judge).local or (run.loading.trust_remote_code and not trust_remote_code):
        return ""
    try:
        return Judge.load(run.judge, **run.loading.identity, stacking=False).without_distributions
    except PerseError:
        return ""


def _never(_: Sequence[Example]) -> list[Judgement]:
    raise AssertionError("a shard of a run with adapters is asked about through `adapted`")


def asker_of(judge: Judge, run: Run) -> Asker:
    """A judge that is loaded, asked as the run asks."""

    def ask(examples: Sequence[Example]) -> list[Judgement]:
        told = {one.id: one for some in judge.stream(run.question, examples, run.settings) for one in some}
        return [told[example.id] for example in examples]

    return Asker(run.question, judge.identity.portable, ask)
