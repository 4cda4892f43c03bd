"""Outcomes of any folders: our runs, or the authors' release."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perse.errors import BadInput
from perse.evaluation.costs import parse_prices
from perse.judgement import Prices
from perse.kgds.benchmark import Benchmark
from perse.kgds.folder import VERIFIED
from perse.kgds.outcomes import Outcomes
from perse.kgds.preferences import FeedbackResult, read_feedback
from perse.kgds.released.layout import is_released, models_of, outputs_of
from perse.kgds.released.reader import read_released
from perse.kgds.run_outcomes import read_outcomes


def unverified(runs: Sequence[Path], outcomes: Sequence[Outcomes]) -> list[Path]:
    """The runs of ours of which nothing is verified. Released outcomes lie deeper than the folder that was given."""
    own = {run: [one for one in outcomes if one.source == str(run) and not one.refused] for run in runs}
    return [
        run
        for run, here in own.items()
        if here
        and all(outcome.opinions is None or outcome.failed for one in here for outcome in one.samples.values())
        and not any(asked.what != "summaries" for one in here for asked in one.asked)
    ]


def load_outcomes(
    benchmark: Benchmark,
    runs: Sequence[Path],
    *,
    name: str = VERIFIED,
    models: Sequence[str] | None = None,
    as_published: bool = False,
) -> list[Outcomes]:
    """All outcomes in `runs`, in their order.

    Args:
        benchmark: the one that they were made from.
        runs: RUN folders, or folders in the authors' layout, which may hold many models.
        name: the verification of the RUN folders; folders without it count as not verified.
        models: which models; all by default.
        as_published: as `read_released`.
    Raises:
        BadInput: no such folder or model, or what the readers refuse.
    """
    found: list[Outcomes] = []
    names: dict[str, None] = {}
    for run in runs:
        if not run.is_dir():
            raise BadInput(f"there is no folder {run}; give a RUN folder of `perse kgds generate`, or the authors' `outputs`")
        if is_released(run):
            there = list(models_of(outputs_of(run)))
            wanted = [model for model in there if not models or model in models]
            found += read_released(run, benchmark, models=wanted, as_published=as_published)
        else:
            own = read_outcomes(run, benchmark, name=name)
            there = [one.model for one in own]
            found += [one for one in own if not models or one.model in models]
        names |= dict.fromkeys(there)
    if unknown := next((model for model in models or () if model not in names), None):
        raise BadInput(f"there is no model '{unknown}' in {', '.join(map(str, runs))}; there is {', '.join(names) or 'none'}")
    return found


def load_feedback(benchmark: Benchmark, runs: Sequence[Path], *, models: Sequence[str] | None = None) -> list[FeedbackResult]:
    """What `perse kgds feedback` found of the RUN folders among `runs`.

    Raises:
        BadInput: a damaged file, or one about another benchmark.
    """
    found = [
        feedback
        for second_turn in (True, False)
        for run in runs
        if (feedback := read_feedback(run, benchmark, second_turn=second_turn))
    ]
    return [one for one in found if not models or one.model in models]


def prices_of(given: Sequence[str], outcomes: Sequence[Outcomes]) -> dict[str, Prices]:
    """From "NAME=INPUT,OUTPUT[,CACHED]", of those who were asked.

    Raises:
        BadInput: not so written, or of nobody who was asked.
    """
    return parse_prices(given, dict.fromkeys(asked.model for one in outcomes for asked in one.asked))
