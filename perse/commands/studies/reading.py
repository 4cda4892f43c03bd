"""`perse study risk-coverage | calibration | contamination | paper`: what runs tell, and what a judge remembers.

Only `contamination`, and `calibration` with a judge, ask anything; these can be stopped and go on by the same command.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.medium import Medium
from perse.commands.options.reading import read_columns, read_named, read_scale
from perse.commands.showing import show_result
from perse.commands.studies.judging import show
from perse.commands.terminal import err
from perse.progress import shown_on

if TYPE_CHECKING:
    from perse.results.result import Result


@grouped
def risk_coverage(
    *,
    runs: options.ScoredRuns,
    out: options.MaybeOut = None,
    seed: options.Seed = 0,
    resamples: options.Resamples = 1000,
    medium: Medium,
) -> None:
    """Does the judge know when it does not know? Error among the answers that it is surest of. Nothing is judged.

    Example:  perse study risk-coverage runs/before runs/after

    Kept:     perse study risk-coverage runs/after --out studies/risk
    """
    from perse.studies.calibration.risk_coverage import answers_of
    from perse.studies.calibration.risk_coverage import risk_coverage as study
    from perse.studies.frame.reading_runs import read_runs

    read = read_runs(runs)
    judges = {name: answers_of(read.items.examples, given) for name, given in read.items.judgements.items()}
    result = study(judges, seed=seed, resamples=resamples, notes=read.notes)
    _show(result, out, medium, sources=_by_name(runs), options={"seed": seed, "resamples": resamples})


@grouped
def calibration(
    *,
    run: Annotated[Path, typer.Argument(help="A folder that `perse score` wrote.", show_default=False)],
    out: options.Out,
    judge: Annotated[
        str | None,
        typer.Option(help="The run's judge, to be asked of the readers' past reviews; without it only P(label) is looked at."),
    ] = None,
    slope: Annotated[bool, typer.Option("--slope", help="Also correct how far scores are spread.")] = False,
    loading: Loading,
    seed: options.Seed = 0,
    resamples: options.Resamples = 1000,
    medium: Medium,
) -> None:
    """Is P(label) right, and can scores be put right by how the judge misjudges a reader's past reviews?

    Example:  perse study calibration runs/after --judge runs/first --out studies/calibration

    P(label): perse study calibration runs/after --out studies/reliability
    """
    from perse.studies.calibration.study import Judging
    from perse.studies.calibration.study import calibration as study

    asked = None if judge is None else Judging(name=judge, **vars(loading))
    with shown_on(err) as on_part:
        result = study(run, out, judging=asked, slope=slope, seed=seed, resamples=resamples, on_progress=on_part)
    show(result, out, medium)


@grouped
def contamination(
    *,
    plots: Annotated[
        list[str],
        typer.Option(
            metavar=options.NAMED,
            help="A version of the plots: raw=FILE, anonymized=FILE, ... (item_id, text; a title in one of them). Repeat it.",
            show_default=False,
        ),
    ],
    reviews: Annotated[Path, typer.Option(help="Table of reviews: item_id, score.", show_default=False)],
    judge: options.JudgeName,
    out: options.Out,
    personalized: Annotated[
        list[str] | None,
        typer.Option(
            metavar=options.NAMED, help="A version as a data set folder, for scores at k = 1. Repeat it.", show_default=False
        ),
    ] = None,
    question: options.MaybePointwise = None,
    columns: options.Map = None,
    scale: options.ScoreRange = "1-10",
    min_reviews: Annotated[int, typer.Option(min=1, help="Reviews that an item's mean score stands on, at least.")] = 5,
    items: Annotated[int, typer.Option(min=2, help="At most so many items, drawn by the seed.")] = 200,
    pairs: Annotated[int, typer.Option(min=0, help="So many pairs, each asked in both orders; 0 for none.")] = 200,
    gap: Annotated[float, typer.Option(min=0.0, help="Least difference of a pair's mean scores, on 1-10.")] = 1.0,
    readers: Annotated[int, typer.Option(min=1, help="Of --personalized: at most so many readers, one query each.")] = 400,
    temperature: options.Temperature = 0.0,
    max_new_tokens: options.MaxNewTokens = 600,
    loading: Loading,
    seed: options.Seed = 0,
    resamples: options.Resamples = 1000,
    medium: Medium,
) -> None:
    """Does the judge judge the plot, or remember the work? Raw, anonymized and summarized plots (PerSE, appendix A.1).

    Example:  perse study contamination --plots raw=plots.csv --plots anonymized=anonymous.jsonl --plots summarized=items.jsonl
    --reviews reviews.csv --judge runs/first --out studies/contamination

    The rewritten files are what perse data anonymize and perse data summarize write.
    """
    from perse.judging.judge import JudgeSettings
    from perse.judging.trained import own_question
    from perse.studies.contamination.study import PERSONALIZED, Contamination
    from perse.studies.contamination.study import contamination as study
    from perse.studies.frame.running import Asking

    versions = read_named(plots, "--plots")
    if question is None and personalized:
        question = own_question(judge)
        question = question if question in PERSONALIZED else None
    what = Contamination(
        plots=versions,
        reviews=reviews,
        columns=read_columns(columns),
        scale=read_scale(scale),
        min_reviews=min_reviews,
        items=items,
        pairs=pairs,
        gap=gap,
        personalized=read_named(personalized, "--personalized"),
        personalized_question=question or "pointwise",
        readers=readers,
    )
    asking = Asking(
        examples=next(iter(versions.values())),
        judge=judge,
        settings=JudgeSettings(temperature=temperature, max_new_tokens=max_new_tokens, seed=seed),
        resamples=resamples,
        **vars(loading),
    )
    with shown_on(err) as on_part:
        result = study(what, asking, out, on_progress=on_part)
    show(result, out, medium)


@grouped
def paper(
    *,
    mpst: Annotated[Path | None, typer.Option(help="Data set folder of scores, for table 1.", show_default=False)] = None,
    doc: Annotated[Path | None, typer.Option(help="Data set folder of pairs, for table 1.", show_default=False)] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(metavar=options.NAMED, help="A scoring run, for tables 2 and 3, or 4. Repeat it.", show_default=False),
    ] = None,
    study: Annotated[
        list[Path] | None, typer.Option(help="A folder of perse study review-text, for table 5.", show_default=False)
    ] = None,
    out: options.MaybeOut = None,
    seed: options.Seed = 0,
    resamples: options.Resamples = 1000,
    medium: Medium,
) -> None:
    """PerSE's tables 1 to 5, ours beside the published. Nothing is judged; what is missing says which command fills it.

    Example:  perse study paper --run before=runs/before --run after=runs/after --markdown

    All five: perse study paper --mpst work/mpst --doc work/doc --run a=runs/mpst --run b=runs/doc --study studies/table5
    """
    from perse.files.runlog import MANIFEST
    from perse.studies.frame.running import RESULT
    from perse.studies.paper.study import paper as tables

    runs = read_named(run, "--run")
    result = tables(mpst=mpst, doc=doc, runs=runs, studies=study or [], seed=seed, resamples=resamples)
    sources = {f"run {name}": folder for name, folder in runs.items()}
    sources |= {f"study {folder}": folder / RESULT for folder in study or []}
    sources |= {name: folder / MANIFEST for name, folder in (("mpst", mpst), ("doc", doc)) if folder}
    _show(result, out, medium, sources=sources, options={"seed": seed, "resamples": resamples})


def _show(
    result: Result,
    out: Path | None,
    medium: Medium,
    *,
    sources: Mapping[str, Path],
    options: Mapping[str, int],
) -> None:
    """Print a result of what was there already, and keep it where a folder is given."""
    from perse.studies.frame.running import keep

    if out is None:
        show_result(result, medium)
        return
    keep(result, out, sources=sources, options=options)
    show(result, out, medium)


def _by_name(runs: list[Path]) -> dict[str, Path]:
    """Runs by folder name; by path where two have one name."""
    names = [folder.name for folder in runs]
    return {str(folder) if names.count(folder.name) > 1 else folder.name: folder for folder in runs}
