"""`perse kgds stats` and `perse kgds metrics`: what a benchmark holds, and what summaries of it are worth. Thin."""

from __future__ import annotations

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.kgds import BenchmarkFile, Name, Runs
from perse.commands.options.medium import Medium
from perse.commands.showing import show_result


@grouped
def stats(*, benchmark: BenchmarkFile, medium: Medium) -> None:
    """What a benchmark holds: paragraphs, facts by type, opinions, averages per sample.

    Example:  perse kgds stats KGDS.json
    """
    from perse.kgds.benchmark import read_benchmark
    from perse.kgds.stats import stats as counted
    from perse.kgds.stats import stats_result

    found = counted(read_benchmark(benchmark))
    show_result(stats_result(found), medium)


@grouped
def metrics(
    *,
    benchmark: BenchmarkFile,
    runs: Runs,
    name: Name = "verified",
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    medium: Medium,
) -> None:
    """What summaries are worth: recall, precision and F1 of the background, recall of opinions, overall performance, errors.

    Models are compared on the samples that all of them have.

    Example:  perse kgds metrics KGDS.json runs/ours

    Several:  perse kgds metrics KGDS.json runs/small runs/large --json

    Paper:    perse kgds metrics KGDS.json outputs    (what the authors released)
    """
    from rich.console import Console

    from perse.kgds.benchmark import read_benchmark
    from perse.kgds.folder import VERIFIED
    from perse.kgds.loading import load_outcomes
    from perse.kgds.reporting.telling import kgds_result
    from perse.kgds.scoring.metrics import results

    read = read_benchmark(benchmark)
    outcomes = load_outcomes(read, runs, name=name)
    found = results(read, outcomes, resamples=resamples, seed=seed)
    err = Console(stderr=True)
    for run in runs:
        here = [one for one in outcomes if one.source == str(run)]  # none of these are released ones, which lie deeper
        if here and all(outcome.opinions is None or outcome.failed for one in here for outcome in one.samples.values()):
            again = f"perse kgds verify {benchmark} {run} --judge JUDGE" + ("" if name == VERIFIED else f" --name {name}")
            err.print(f"{run} has no verification '{name}'; to make it: {again}", markup=False, highlight=False, soft_wrap=True)
    show_result(kgds_result(found), medium)
