"""`perse study risk-coverage | calibration | contamination | paper`: what runs tell, and what a judge remembers.

Only `contamination`, and `calibration` with a judge, ask anything; these can be stopped and go on by the same command.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from perse.commands.showing import show_result
from perse.commands.studies.judging import (
    GOES_ON,
    AsJson,
    AsMarkdown,
    Context,
    Dtype,
    JudgeName,
    Out,
    Resamples,
    Tokenizer,
    show,
)
from perse.commands.studies.judging import watched as watched

if TYPE_CHECKING:
    from perse.results.result import Result

Runs = Annotated[list[Path], typer.Argument(help="Folders that `perse score` wrote, of the same examples.", show_default=False)]
OptionalOut = Annotated[
    Path | None, typer.Option("--out", help="A folder for study.json, table.md and figures.", show_default=False)
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of what is drawn: items, pairs, folds, resamples.")]
SeedOfResamples = Annotated[int, typer.Option(min=0, help="Seed of the resamples, and of baselines that draw.")]
Named = "NAME=PATH"


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    app.command("risk-coverage")(_risk_coverage)
    app.command("calibration", epilog=GOES_ON)(_calibration)
    app.command("contamination", epilog=GOES_ON)(_contamination)
    app.command("paper")(_paper)


def _risk_coverage(
    runs: Runs,
    out: OptionalOut = None,
    seed: SeedOfResamples = 0,
    resamples: Resamples = 1000,
    as_json: AsJson = False,
    markdown: AsMarkdown = False,
) -> None:
    """Does the judge know when it does not know? Error among the answers that it is surest of. Nothing is judged.

    Example:  perse study risk-coverage runs/before runs/after

    Kept:     perse study risk-coverage runs/after --out studies/risk
    """
    from perse.judging.loop import JUDGEMENTS
    from perse.studies.calibration.risk_coverage import answers_of, risk_coverage
    from perse.studies.frame.reading_runs import read_runs

    items = read_runs(runs).items
    judges = {name: answers_of(items.examples, judgements) for name, judgements in items.judgements.items()}
    result = risk_coverage(judges, seed=seed, resamples=resamples, notes=items.notes)
    sources = {name: folder / JUDGEMENTS for name, folder in _by_name(runs).items()}
    _show(result, out, sources=sources, options={"seed": seed, "resamples": resamples}, as_json=as_json, markdown=markdown)


def _calibration(
    run: Annotated[Path, typer.Argument(help="A folder that `perse score` wrote.", show_default=False)],
    out: Out,
    judge: Annotated[
        str | None,
        typer.Option(help="The run's judge, to be asked of the readers' past reviews; without it only P(label) is looked at."),
    ] = None,
    slope: Annotated[bool, typer.Option("--slope", help="Also correct how far scores are spread.")] = False,
    dtype: Dtype = "bfloat16",
    context: Context = None,
    tokenizer: Tokenizer = None,
    seed: Seed = 0,
    resamples: Resamples = 1000,
    as_json: AsJson = False,
    markdown: AsMarkdown = False,
) -> None:
    """Is P(label) right, and can scores be put right by how the judge misjudges a reader's past reviews?

    Example:  perse study calibration runs/after --judge runs/first --out studies/calibration

    P(label): perse study calibration runs/after --out studies/reliability
    """
    from perse.studies.calibration.study import Judging, calibration

    asked = None if judge is None else Judging(name=judge, dtype=_dtype(dtype), context=context, tokenizer=tokenizer)
    with watched() as watch:
        result = calibration(run, out, judging=asked, slope=slope, seed=seed, resamples=resamples, watch=watch)
    show(result, out, as_json=as_json, markdown=markdown)


def _contamination(
    plots: Annotated[
        list[str],
        typer.Option(
            metavar=Named,
            help="A version of the plots: raw=FILE, anonymized=FILE, ... (item_id, text; a title in one of them). Repeat it.",
            show_default=False,
        ),
    ],
    reviews: Annotated[Path, typer.Option(help="Table of reviews: item_id, score.", show_default=False)],
    judge: JudgeName,
    out: Out,
    personalized: Annotated[
        list[str] | None,
        typer.Option(metavar=Named, help="A version as a data set folder, for scores at k = 1. Repeat it.", show_default=False),
    ] = None,
    question: Annotated[
        str, typer.Option(help="Of --personalized: pointwise (a review, then a score) or pointwise_score; either with _stated.")
    ] = "pointwise",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map", metavar="FIELD=COLUMN", help="Which column holds item_id, title, text or score.", show_default=False
        ),
    ] = None,
    scale: Annotated[str, typer.Option(help="Of the reviews' scores: LOW-HIGH.")] = "1-10",
    min_reviews: Annotated[int, typer.Option(min=1, help="Reviews that an item's mean score stands on, at least.")] = 5,
    items: Annotated[int, typer.Option(min=2, help="At most so many items, drawn by the seed.")] = 200,
    pairs: Annotated[int, typer.Option(min=0, help="So many pairs, each asked in both orders; 0 for none.")] = 200,
    gap: Annotated[float, typer.Option(min=0.0, help="Least difference of a pair's mean scores, on 1-10.")] = 1.0,
    readers: Annotated[int, typer.Option(min=1, help="Of --personalized: at most so many readers, one query each.")] = 400,
    temperature: Annotated[float, typer.Option(min=0.0, max=2.0, help="0: the title that the judge finds likeliest.")] = 0.0,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Of --personalized: longest review, in tokens.")] = 600,
    dtype: Dtype = "bfloat16",
    context: Context = None,
    tokenizer: Tokenizer = None,
    seed: Seed = 0,
    resamples: Resamples = 1000,
    as_json: AsJson = False,
    markdown: AsMarkdown = False,
) -> None:
    """Does the judge judge the plot, or remember the work? Raw, anonymized and summarized plots (PerSE, appendix A.1).

    Example:  perse study contamination --plots raw=plots.csv --plots anonymized=anonymous.jsonl --plots summarized=items.jsonl
    --reviews reviews.csv --judge runs/first --out studies/contamination

    The rewritten files are what perse data anonymize and perse data summarize write.
    """
    from perse.commands.data.options import read_columns, read_scale
    from perse.judging.judge import JudgeSettings
    from perse.studies.contamination.study import Contamination, contamination
    from perse.studies.frame.running import Asking

    versions = _named(plots, "--plots")
    what = Contamination(
        plots=versions,
        reviews=reviews,
        columns=read_columns(columns),
        scale=read_scale(scale),
        min_reviews=min_reviews,
        items=items,
        pairs=pairs,
        gap=gap,
        personalized=_named(personalized or [], "--personalized"),
        personalized_question=question,
        readers=readers,
    )
    asking = Asking(
        examples=next(iter(versions.values())),
        judge=judge,
        settings=JudgeSettings(temperature=temperature, max_new_tokens=max_new_tokens, seed=seed),
        dtype=_dtype(dtype),
        context=context,
        tokenizer=tokenizer,
        resamples=resamples,
    )
    with watched() as watch:
        result = contamination(what, asking, out, watch=watch)
    show(result, out, as_json=as_json, markdown=markdown)


def _paper(
    mpst: Annotated[Path | None, typer.Option(help="Data set folder of scores, for table 1.", show_default=False)] = None,
    doc: Annotated[Path | None, typer.Option(help="Data set folder of pairs, for table 1.", show_default=False)] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(metavar=Named, help="A scoring run, for tables 2 and 3, or 4. Repeat it.", show_default=False),
    ] = None,
    study: Annotated[
        list[Path] | None, typer.Option(help="A folder of perse study review-text, for table 5.", show_default=False)
    ] = None,
    out: OptionalOut = None,
    seed: SeedOfResamples = 0,
    resamples: Resamples = 1000,
    as_json: AsJson = False,
    markdown: AsMarkdown = False,
) -> None:
    """PerSE's tables 1 to 5, ours beside the published. Nothing is judged; what is missing says which command fills it.

    Example:  perse study paper --run before=runs/before --run after=runs/after --markdown

    All five: perse study paper --mpst work/mpst --doc work/doc --run a=runs/mpst --run b=runs/doc --study studies/table5
    """
    from perse.files.runlog import MANIFEST
    from perse.judging.loop import JUDGEMENTS
    from perse.studies.frame.running import RESULT
    from perse.studies.paper.study import paper

    runs = _named(run or [], "--run")
    result = paper(mpst=mpst, doc=doc, runs=runs, studies=study or [], seed=seed, resamples=resamples)
    sources = {f"run {name}": folder / JUDGEMENTS for name, folder in runs.items()}
    sources |= {f"study {folder}": folder / RESULT for folder in study or []}
    sources |= {name: folder / MANIFEST for name, folder in (("mpst", mpst), ("doc", doc)) if folder}
    _show(result, out, sources=sources, options={"seed": seed, "resamples": resamples}, as_json=as_json, markdown=markdown)


def _show(
    result: Result,
    out: Path | None,
    *,
    sources: Mapping[str, Path],
    options: Mapping[str, int],
    as_json: bool,
    markdown: bool,
) -> None:
    """Print a result of what was there already, and keep it where a folder is given."""
    if out is not None:
        _keep(result, out, sources=sources, options=options)
        show(result, out, as_json=as_json, markdown=markdown)
        return

    show_result(result, as_json=as_json, markdown=markdown)


def _keep(result: Result, out: Path, *, sources: Mapping[str, Path], options: Mapping[str, int]) -> None:
    """A study's folder with a manifest of what it was read from; one of something else is not written over."""
    from perse.files.runlog import RunLog, file_digest
    from perse.studies.frame.arms import unwatched
    from perse.studies.frame.running import FINISHED, StudyFolder

    digests = {name: file_digest(path) for name, path in sources.items()}
    identity = {"kind": "study", "study": result.name, "options": dict(options), "sources": digests}
    places = {name: str(path.resolve()) for name, path in sources.items()}
    with RunLog(out, identity, lines=FINISHED, context={"sources": places}) as log:
        StudyFolder(out, log, _asks_nobody, unwatched).finish(result)


def _asks_nobody(judge: str) -> NoReturn:
    raise AssertionError(f"a study of runs asked {judge}")


def _named(given: list[str], option: str) -> dict[str, Path]:
    from perse.commands.data.options import read_pairs
    from perse.errors import BadInput

    found: dict[str, Path] = {}
    for name, path in read_pairs(given, option=option, example="raw=plots.csv", shape=Named):
        if name in found:
            raise BadInput(f"{option} {name}={path}: '{name}' is given twice; give each a name of its own")
        found[name] = Path(path)
    return found


def _by_name(runs: list[Path]) -> dict[str, Path]:
    """Runs by folder name; by path where two have one name."""
    names = [folder.name for folder in runs]
    return {str(folder) if names.count(folder.name) > 1 else folder.name: folder for folder in runs}


def _dtype(name: str) -> str:
    from perse.errors import BadInput

    if name not in ("bfloat16", "float16", "float32"):
        raise BadInput(f"--dtype is '{name}'; choose bfloat16, float16 or float32")
    return name
