"""`perse kgds stats` and `perse kgds metrics`: what a benchmark holds, and what summaries of it are worth. Thin."""

from __future__ import annotations

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.kgds import AsPublished, BenchmarkFile, Models, Name, Prices, Runs
from perse.commands.options.medium import Medium
from perse.commands.showing import show_result
from perse.commands.terminal import say


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
    model: Models = None,
    as_published: AsPublished = False,
    prices: Prices = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    medium: Medium,
    everything: options.Everything = False,
) -> None:
    """What summaries are worth: recall, precision and F1 of the background, recall of opinions, overall performance, errors.

    Models are compared on the samples that all of them have; one that has more is shown on all of its own, too.

    Example:  perse kgds metrics KGDS.json runs/ours

    Several:  perse kgds metrics KGDS.json runs/small runs/large --json

    Paper:    perse kgds metrics KGDS.json outputs    (what the authors released)
    """
    from perse.kgds.benchmark import read_benchmark
    from perse.kgds.folder import VERIFIED
    from perse.kgds.loading import load_feedback, load_outcomes, prices_of, unverified
    from perse.kgds.reporting.telling import kgds_result
    from perse.kgds.scoring.metrics import results

    read = read_benchmark(benchmark)
    outcomes = load_outcomes(read, runs, name=name, models=model, as_published=as_published)
    found = results(
        read,
        outcomes,
        feedback=load_feedback(read, runs, models=model),
        prices=prices_of(prices or (), outcomes),
        as_published=as_published,
        resamples=resamples,
        seed=seed,
    )
    for run in unverified(runs, outcomes):
        again = f"perse kgds verify {benchmark} {run} --judge JUDGE" + ("" if name == VERIFIED else f" --name {name}")
        say(f"{run} has no verification '{name}'; to make it: {again}")
    show_result(kgds_result(found), medium, everything=everything)
