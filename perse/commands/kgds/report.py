"""`perse kgds report`: tables, plots and numbers of summaries as one HTML file."""

from __future__ import annotations

import typer

from perse.commands import options
from perse.commands.options.kgds import AsPublished, BenchmarkFile, Models, Name, Prices, Runs
from perse.commands.terminal import err


def report(
    benchmark: BenchmarkFile,
    runs: Runs,
    out: options.NewFolder,
    name: Name = "verified",
    model: Models = None,
    as_published: AsPublished = False,
    prices: Prices = None,
    title: options.Title = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
) -> None:
    """The paper's tables and figures of the models at hand, with intervals, as one HTML file that needs no network.

    Models are compared on the samples that all of them have. Beside the page: tables.md, results.json, the figures, and
    manifest.json, which says what it was made of.

    Example:  perse kgds report KGDS.json runs/kgds --out reports/kgds

    Several:  perse kgds report KGDS.json runs/base runs/tuned --title "Base and tuned" --out reports/tuned

    Paper:    perse kgds report KGDS.json outputs --out reports/paper    (what the authors released)
    """
    from perse.files.own_files import refuse_inputs
    from perse.files.runlog import environment
    from perse.kgds.benchmark import read_benchmark
    from perse.kgds.loading import load_feedback, load_outcomes, prices_of
    from perse.kgds.reporting.report import refuse_strangers, write_report
    from perse.kgds.scoring.metrics import results

    refuse_strangers(out)
    refuse_inputs(out, [benchmark, *runs])
    read = read_benchmark(benchmark)
    outcomes = load_outcomes(read, runs, name=name, models=model, as_published=as_published)
    feedback = load_feedback(read, runs, models=model)
    costs = prices_of(prices or (), outcomes)
    with err.status("counting and drawing"):
        found = results(
            read, outcomes, feedback=feedback, prices=costs, as_published=as_published, resamples=resamples, seed=seed
        )
        made = {
            "runs": [str(run) for run in runs],
            "name": name,
            "models": model,
            "as_published": as_published,
            "prices": prices,
            "resamples": resamples,
            "seed": seed,
            "title": title,
        }
        source = {"benchmark": str(benchmark), "benchmark_sha256": read.digest}
        page = write_report(found, out, title=title, manifest={**source, **made, "environment": environment()})
    for note in found.notes:
        err.print(note, markup=False, highlight=False, soft_wrap=True)
    err.print("report:", end=" ")
    typer.echo(page)
