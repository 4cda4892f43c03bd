"""A report: scoring runs and studies -> one HTML page, its plots and numbers as files, and how to make them again.

OUT/report.html       everything, in one file that needs no network
OUT/figures/NAME.*    each plot as SVG and PNG, its numbers as CSV
OUT/evaluation.json   the numbers of the tables
OUT/manifest.json     what it was made of, and the command that makes it again

The same inputs give the same bytes: dates are those of the runs, not of the report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from perse.batch.comparing import Gathered, gather, run_costs
from perse.batch.judged_by import digests, judge_places, judged_by, weights_of
from perse.drawing.figure import Figure
from perse.errors import BadInput
from perse.evaluation.alignment import align
from perse.evaluation.evaluate import Texts, evaluate_many
from perse.evaluation.stacking.knowing import what_knows_what
from perse.evaluation.stats.results import Evaluation, Resample
from perse.evaluation.telling import evaluation_result
from perse.files.own_files import refuse_inputs, write_together
from perse.files.path_names import run_around
from perse.files.replacing import settle
from perse.files.runlog import MANIFEST, environment, file_digest, read_manifest, what_it_is
from perse.models.vectors import KeptVectors
from perse.progress import OnPart, OnProgress, unseen_part
from perse.records import PointwiseExample, SummaryExample
from perse.reporting.knowledge_figures import knowledge_figures
from perse.reporting.page import PageData, StudySection, render_page
from perse.reporting.report_data import report_data
from perse.reporting.run_figures import run_figures
from perse.reporting.samples import pack_samples
from perse.reporting.study_figures import study_figures
from perse.reporting.summary import cautions, sections, verdicts
from perse.secrets import redact, redact_command, redact_tree, without_keys
from perse.studies.frame.running import RESULT, read_study
from perse.training.curves import training_figure

PAGE = "report.html"
NUMBERS = "evaluation.json"
FIGURES = "figures"
MOST_SAMPLES = 10_000


def write_report(
    runs: Sequence[Path],
    *,
    studies: Sequence[Path] = (),
    out: Path,
    title: str | None = None,
    train_data: Path | None = None,
    seed: int = 0,
    resamples: int = 1000,
    resample: Resample = "auto",
    texts: Texts = Texts(),  # noqa: B008 (frozen)
    max_samples: int = MOST_SAMPLES,
    vectors: KeptVectors | None = None,
    on_part: OnPart = unseen_part,
) -> Path:
    """Write the report into `out` and say where its page is.

    Args:
        runs: folders that `perse score` wrote; judges of the same items, or folds.
        studies: folders that `perse study` finished.
        title: of the page; by default after the judges.
        train_data: data set folder for the baselines; by default the one that was scored.
        seed: of resamples, random baselines, and of which samples are shown.
        resamples: bootstrap resamples, 100 or more.
        resample, texts: as in `evaluate_many`.
        max_samples: samples in the page; failures come before others.
        vectors: embeddings of texts, for the baselines that read them.
        on_part: told how far each part is.
    Raises:
        BadInput: see `gather` and `evaluate_many`; a folder without a finished study; or an `out` that holds something else.
    """
    _refuse_strangers(out)
    refuse_inputs(out, [*runs, *studies, train_data])
    if max_samples < 0:
        raise BadInput(f"{max_samples} samples cannot be shown; give 0 or more")
    results = [read_study(folder) for folder in studies]
    gathered = gather(runs, train_data)
    prices, seconds = run_costs(gathered.runs)
    missing = [f"baselines that need training data are unavailable: {reason}" for reason in gathered.missing]
    evaluation = evaluate_many(
        gathered.judges,
        gathered.folds,
        seed=seed,
        resamples=resamples,
        resample=resample,
        texts=texts,
        prices=prices,
        seconds=seconds,
        notes=[*gathered.notes, *missing],
        vectors=vectors,
        on_progress=partial(on_part, "evaluating"),
        on_fit=partial(on_part, "fitting baselines"),
    )
    shown = evaluation.model_copy(update={"notes": tuple(_without_paths(note, gathered) for note in evaluation.notes)})
    of_judges = report_data(align(gathered.folds, gathered.judges), resample=evaluation.resample)
    manifests = {str(folder): read_manifest(folder) for folder in runs}
    known, notes = _known(gathered, evaluation, partial(on_part, "what knows what"))
    on_part("drawing", 0, 1)
    of_runs = [*known, *run_figures(of_judges, evaluation), *_trainings(runs)]
    drawn = _own_names([of_runs, *map(study_figures, results)])
    options: dict[str, Any] = {
        "title": title,
        "train_data": _shown(train_data),
        "seed": seed,
        "resamples": resamples,
        "resample": resample,
    }
    options |= {"bertscore_model": _shown(texts.bertscore_model), "bartscore_model": _shown(texts.bartscore_model)}
    options |= {"embedding_model": None if vectors is None else _shown(vectors.model)}
    own = _manifest(runs, studies, out, {**options, "max_samples": max_samples})
    page = PageData(
        title=redact(title) if title else f"{', '.join(gathered.judges)}: a report",
        facts=_facts(evaluation, gathered, manifests),
        verdicts=verdicts(shown, of_judges),
        cautions=cautions(shown, contamination=any(result.name == "contamination" for result in results)),
        sections=sections(shown, drawn[0], known=notes),
        samples=pack_samples(
            [example for part in gathered.folds for example in part.examples],
            {name: {judgement.id: judgement for judgement in given} for name, given in gathered.judges.items()},
            asked={name: {e.id: e for run in runs for e in run.examples} for name, runs in gathered.runs.items()},
            labels=evaluation.labels,
            most=max_samples,
            seed=seed,
        ),
        studies=tuple(StudySection(result, tuple(figures)) for result, figures in zip(results, drawn[1:], strict=True)),
        manifests=tuple((name, _pretty(manifest)) for name, manifest in {"this report": own, **manifests}.items()),
        pairs=evaluation.kind == "pairwise",
        summaries=_of_summaries(gathered),
    )
    written = _write(out, page, [figure for figures in drawn for figure in figures], evaluation, own)
    on_part("drawing", 1, 1)
    return written


def _write(out: Path, page: PageData, figures: Sequence[Figure], evaluation: Evaluation, manifest: dict[str, Any]) -> Path:
    contents = {MANIFEST: _pretty(manifest)}  # first, so that a killed report is recognized as one
    contents |= {NUMBERS: evaluation_result(evaluation).model_dump_json(indent=2) + "\n", PAGE: render_page(page)}
    drawn = {f"{FIGURES}/{name}": content for figure in figures for name, content in figure.files.items()}
    write_together(out, {**{name: without_keys(text).encode() for name, text in contents.items()}, **drawn})
    return out / PAGE


def _refuse_strangers(out: Path) -> None:
    """Refuse to replace anything but a report."""
    if out.is_file():
        raise BadInput(f"{out} is a file; give a folder for the report")
    settle(out)  # what a kill left half in its place, by which it is not known
    if not out.exists():
        return
    if (out / MANIFEST).exists():
        manifest = read_manifest(out)
        if manifest.get("run", {}).get("kind") != "report":
            raise BadInput(
                f"{out} holds {what_it_is(manifest)}, which a report would overwrite; choose another folder with --out"
            )
    elif any(not entry.name.startswith(".") for entry in out.iterdir()):
        raise BadInput(f"{out} is not empty and holds no report; choose another folder with --out")


def _known(gathered: Gathered, evaluation: Evaluation, on_progress: OnProgress) -> tuple[list[Figure], tuple[str, ...]]:
    """What each source knows, and notes of it; of scores of single texts alone, which can be combined with numbers."""
    if not all(isinstance(example, PointwiseExample) for fold in gathered.folds for example in fold.examples):
        return [], ()
    try:
        known = what_knows_what(
            gathered.folds,
            gathered.judges,
            seed=evaluation.seed,
            resamples=evaluation.resamples,
            resample=evaluation.resample,
            on_progress=on_progress,
        )
    except BadInput as error:
        return knowledge_figures(str(error), list(gathered.judges)), ()
    return knowledge_figures(known, list(gathered.judges)), known[0].notes


def _trainings(runs: Iterable[Path]) -> list[Figure]:
    """The training of judges whose training run is on this machine."""
    places = [place for run in runs for place in judge_places(run)]
    # A judge's path is the run, its merged model or its adapter.
    trained = dict.fromkeys(run_around(place) or place for place in places)
    logs = [run / "log.jsonl" for run in trained if (run / "log.jsonl").is_file()]
    return [
        replace(figure, title=f"{figure.title}: {log.parent.name}")
        for log, figure in zip(logs, map(training_figure, logs), strict=True)
    ]


def _without_paths(note: str, gathered: Gathered) -> str:
    """The name of a data set's folder, without its path, since pages are passed on."""
    folders = {run.data_folder for runs in gathered.runs.values() for run in runs if run.data_folder}
    for folder in sorted(folders, key=lambda folder: -len(str(folder))):
        note = note.replace(str(folder), folder.name)
    return note


def _own_names(drawn: Sequence[Sequence[Figure]]) -> list[list[Figure]]:
    """Makes the names of figures unique, so that studies of one kind do not overwrite each other's files."""
    taken: set[str] = set()
    renamed: list[list[Figure]] = []
    for figures in drawn:
        renamed.append([])
        for figure in figures:
            name, number = figure.name, 1
            while name in taken:
                number += 1
                name = f"{figure.name}-{number}"
            taken.add(name)
            svg = re.sub(rf'( id="|href="#|url\(#){re.escape(figure.name)}-', rf"\g<1>{name}-", figure.svg)
            renamed[-1].append(figure if name == figure.name else replace(figure, name=name, svg=svg))
    return renamed


def _of_summaries(gathered: Gathered) -> bool:
    return any(isinstance(example, SummaryExample) for part in gathered.folds for example in part.examples)


def _facts(evaluation: Evaluation, gathered: Gathered, manifests: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    begun = sorted(str(one.get("environment", {}).get("started", ""))[:10] for one in manifests.values())
    days = [day for day in dict.fromkeys(begun) if day]
    folders = {run.data_folder.name if run.data_folder else "a file" for runs in gathered.runs.values() for run in runs}
    digests = {run.data_digest[:12] for runs in gathered.runs.values() for run in runs}
    what = "pair" if evaluation.kind == "pairwise" else "text"
    judged = f"{evaluation.items:,} times a {what} for one reader, of {evaluation.reviewers:,} readers"
    if _of_summaries(gathered):
        judged = f"{evaluation.items:,} summaries, of the reviews of {evaluation.reviewers:,} products or people"
    facts = [
        ("Judged", judged),
        ("Question", ", ".join(dict.fromkeys(q for judge in evaluation.judges.values() for q in judge.questions))),
        ("Answers", f"{evaluation.labels[0]} to {evaluation.labels[-1]}" if len(evaluation.labels) > 2 else "A or B"),
        ("Data set", f"{', '.join(sorted(folders))} (digest {', '.join(sorted(digests))})"),
        ("When", " to ".join([days[0], days[-1]] if len(days) > 1 else days)),
    ]
    for place, manifest in manifests.items():
        run = manifest.get("run", {})
        judge, settings = judged_by(Path(place)), run.get("settings", {})
        parts = [
            " + ".join(str(judge[part]) for part in ("model", "adapter") if judge.get(part)) or "?",
            f"digest {(weights_of(judge) or 'unknown')[:12]}",
            str(judge.get("engine", "")),
        ]
        if isinstance(settings.get("temperature"), int | float):
            parts.append(f"temperature {settings['temperature']:g}")
        facts.append((f"Judge of {Path(place).name}", ", ".join(filter(None, parts))))
    return tuple((name, value) for name, value in facts if value)


def _manifest(runs: Sequence[Path], studies: Sequence[Path], out: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of the report, without the time, so that it can be reproduced."""
    command = ["perse", "report", *map(str, runs)]
    for study in studies:
        command += ["--study", str(study)]
    for name, value in options.items():
        if value is not None:
            command += [f"--{name.replace('_', '-')}", str(value)]
    around = environment()
    manifest = {
        "run": {
            "kind": "report",
            "runs": {str(run): digests(run) for run in runs},
            "studies": {str(study): file_digest(study / RESULT) for study in studies},
            **options,
        },
        "command": redact_command([*command, "--out", str(out)]),
        "environment": {name: around[name] for name in ("python", "packages", "git_commit")},
    }
    return redact_tree(manifest)


def _shown(path: Path | str | None) -> str | None:
    return None if path is None else str(path)


def _pretty(manifest: Mapping[str, Any]) -> str:
    return json.dumps(manifest, indent=2) + "\n"
