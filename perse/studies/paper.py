"""PerSE's tables 1 to 5 with ours beside the published: from data sets, scoring runs and a finished study, nothing is asked.

A value of ours that is not at hand is "-", with the command that would fill it. What the paper's judges wrote was drawn at
temperature 0.8, so of a run the row (label) is the paper's way; the row (expected) reads the exact distribution. Published
figures have no intervals, and are of the paper's data: ours are comparable where the data sets are Per-MPST and Per-DOC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from perse.batch.local import ScoredRun, read_run
from perse.errors import BadInput
from perse.evaluation.agreement import correct, likeliest_correct
from perse.evaluation.baselines import pairwise_baselines, pointwise_baselines
from perse.evaluation.correlation import FloatArray
from perse.evaluation.estimates import Bootstrap
from perse.evaluation.intervals import Interval
from perse.evaluation.results import Estimate
from perse.evaluation.text_overlap import bleu_of, bleu_statistics, rouge_values
from perse.judgement import Judgement, Status
from perse.records import PairwiseExample, PointwiseExample
from perse.runlog import read_manifest
from perse.studies.published import ASPECT_COLUMNS, TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, Published
from perse.studies.results import StudyResult, StudyTable
from perse.studies.risk_coverage import predicted
from perse.studies.running import read_study
from perse.studies.summarizing import words

Cells = tuple[Estimate | str | None, ...]
OURS = "ours"
SCORED = "`perse score --examples {} --judge J --out RUN`, then `perse study paper --run NAME=RUN`"


def paper(
    *,
    mpst: Path | None = None,
    doc: Path | None = None,
    runs: Mapping[str, Path] | None = None,
    studies: Sequence[Path] = (),
    seed: int = 0,
    resamples: int = 1000,
) -> StudyResult:
    """All five tables.

    Args:
        mpst, doc: data set folders of scores and of pairs, for table 1.
        runs: name -> folder that `perse score` wrote, of scores (tables 2 and 3) or of pairs (table 4).
        studies: folders of `perse study review-text`, for table 5; other studies are refused.
    Raises:
        BadInput: a folder that is none of these.
    """
    read = {name: read_run(folder) for name, folder in (runs or {}).items()}
    scores = {name: run for name, run in read.items() if isinstance(next(iter(run.examples), None), PointwiseExample)}
    pairs = {name: run for name, run in read.items() if isinstance(next(iter(run.examples), None), PairwiseExample)}
    for name in read:
        if name not in scores and name not in pairs:
            raise BadInput(
                f"{(runs or {})[name]} is a run of prompts or summaries; the paper's tables need single texts or pairs"
            )
    tables = (
        _table_1(mpst, doc),
        _table_2(scores, seed=seed, resamples=resamples),
        _table_3(scores, seed=seed, resamples=resamples),
        _table_4(pairs, seed=seed, resamples=resamples),
        _table_5(studies),
    )
    filled = [n for n, table in enumerate(tables, start=1) if any(str(row[0]).startswith(f"{OURS}: ") for row in table.rows)]
    return StudyResult(
        study="paper",
        asks="What do the paper's tables say, and what do ours?",
        answer=_answer(filled, tables[1]),
        plot="bars",
        x_label="",
        points=(),
        tables=tables,
        notes=("published figures have no intervals; ours are 95%, resampled over the readers",),
    )


def _answer(filled: Sequence[int], second: StudyTable) -> str:
    if not filled:
        return "No value of ours is at hand yet: the published figures stand alone, with the commands that fill the tables."
    said = f"Tables {', '.join(map(str, filled))} of 1 to 5 have values of ours."
    ours = [(row[-1], str(row[0]).removeprefix(f"{OURS}: ")) for row in second.rows if isinstance(row[-1], Estimate)]
    judged = [one for one in ours if "(label, " in one[1] or "(expected, " in one[1]]
    for found, what in ((judged, "judge"), ([one for one in ours if one not in judged], "baseline")):
        best = max(found, key=lambda one: (one[0].value is not None, one[0].value or 0.0), default=None)
        if best is not None and best[0].value is not None:
            said += f" The highest Kendall of a {what} of ours is {words(best[0])}: {best[1]}."
    return f"{said} PerSE-13b has {_kendall('PerSE-13b'):.3f}, on the paper's data." if judged else said


def _kendall(name: str) -> float:
    value = dict(TABLE_2.rows)[name][-1]
    assert value is not None
    return value


def _shown(published: Published, ours: Sequence[Cells], *, fill: str, notes: Sequence[str] = ()) -> StudyTable:
    """The published rows, then ours, or one of "-" with the command that fills it."""
    exact = "{:g}" if published is TABLE_1 else "{:.3f}"
    rows: list[Cells] = [
        (name, *(None if value is None else exact.format(value) for value in values)) for name, values in published.rows
    ]
    footnotes = list(notes)
    if published.lost:
        footnotes.append(f'"-" among the published: {published.lost} figures that our copy of the paper lost')
    if not ours:
        footnotes.append(f"ours: to fill it, {fill}")
    return StudyTable(
        title=f"Table {published.number}: {published.title}",
        header=("", *published.columns),
        rows=(*rows, *(ours or [(f"{OURS} (none yet)", *(None for _ in published.columns))])),
        notes=tuple(footnotes),
    )


def _table_1(mpst: Path | None, doc: Path | None) -> StudyTable:
    cells: dict[tuple[str, str], Mapping[str, float]] = {}
    for folder, kind in ((mpst, "pointwise"), (doc, "pairwise")):
        if folder is None:
            continue
        manifest = read_manifest(folder)
        if manifest.get("kind") != kind or "counts" not in manifest:
            option, needed = ("--mpst", "scores") if kind == "pointwise" else ("--doc", "pairs")
            raise BadInput(f"{option} {folder}: is no data set of {needed}; give a folder that perse data {kind} wrote")
        for part in manifest["counts"]["parts"]:
            cells |= {(part["name"], cell["name"]): cell for cell in part["cells"]}
    rows: list[Cells] = []
    for side in dict.fromkeys(part for part, _ in cells):
        for what, key, form in (
            ("# reviewers", "reviewers", "{:g}"),
            ("# examples", "examples", "{:g}"),
            ("avg. length", "words", "{:.1f}"),
        ):
            own = [form.format(cells[side, name][key]) if (side, name) in cells else None for name in TABLE_1.columns]
            rows.append((f"{OURS}: {side}, {what}", *own))
    fill = "`perse data per-mpst` and `perse data per-doc`, then `perse study paper --mpst DATASET --doc DATASET`"
    missing = [f"ours without columns of {what}: give {option}" for what, option, given in (
        ("k", "--mpst DATASET", mpst), ("aspects", "--doc DATASET", doc)) if rows and given is None]  # fmt: skip
    return _shown(TABLE_1, rows, fill=fill, notes=missing)


def _table_2(runs: Mapping[str, ScoredRun], *, seed: int, resamples: int) -> StudyTable:
    rows: list[Cells] = []
    for name, run in runs.items():
        items = _answered(run)
        if not items:
            rows.append((f"{OURS}: {name}", *(_nothing(),) * 3))
            continue
        gold, bootstrap = _gold(items), _bootstrap(items, seed=seed, resamples=resamples)
        readings = {"label": np.array([float(given.label or "nan") for _, given in items])}
        if all(given.distribution for _, given in items):
            readings["expected"] = np.array([predicted(given) for _, given in items])
        train, _ = run.training_side()
        known = [one for one in train or () if isinstance(one, PointwiseExample)]
        for baseline in pointwise_baselines([example for example, _ in items], known or None, seed=seed):
            if baseline.name in ("profile average", "matrix factorization") and baseline.predictions is not None:
                readings[baseline.name] = np.array(baseline.predictions)
        count = f"{len(items)}/{len(run.examples)} answered"
        rows += [
            (f"{OURS}: {name} ({reading}, {count})", *_correlations(bootstrap, gold, given))
            for reading, given in readings.items()
        ]
    return _shown(TABLE_2, rows, fill=SCORED.format("DATASET"))


def _table_3(runs: Mapping[str, ScoredRun], *, seed: int, resamples: int) -> StudyTable:
    rows: list[Cells] = []
    for name, run in runs.items():
        items = _answered(run)
        if not any(given.text for _, given in items):
            continue  # a score alone was asked for
        written = [given.text for _, given in items]
        real = [example.reference.review for example, _ in items if example.reference]
        bootstrap = _bootstrap(items, seed=seed, resamples=resamples)
        sums = bleu_statistics(written, real).astype(np.float64)
        value = float(bleu_of(sums.sum(axis=0)[None])[0])
        resampled = bleu_of(bootstrap.resamples.sums(sums.T.copy()).T)
        bleu = Estimate(
            value=value, interval=bootstrap.interval(value, resampled, reviewers=bootstrap.reviewers), items=len(items)
        )
        rouge = bootstrap.mean(rouge_values(written, real)["rouge1"], np.ones(len(items), dtype=bool))
        rows.append((f"{OURS}: {name} ({len(items)} answered)", bleu, rouge, None, None))
    notes = ["ours: of the answered items; for BERTScore and BARTScore, `perse evaluate RUN --bertscore-model PATH "
             "--bartscore-model PATH`"] if rows else []  # fmt: skip
    fill = SCORED.format("DATASET") + " (with the question pointwise, which writes reviews)"
    return _shown(TABLE_3, rows, fill=fill, notes=notes)


def _table_4(runs: Mapping[str, ScoredRun], *, seed: int, resamples: int) -> StudyTable:
    rows: list[Cells] = []
    others: set[str] = set()
    ours_of = {aspect.casefold(): aspect for aspect in ASPECT_COLUMNS}
    for name, run in runs.items():
        given = {judgement.id: judgement for judgement in run.judgements}
        pairs = [one for one in run.examples if isinstance(one, PairwiseExample) and one.reference and one.id in given]
        if not pairs:
            rows.append((f"{OURS}: {name}", *(_nothing(),) * len(TABLE_4.columns)))
            continue
        gold = [one.reference.preference for one in pairs if one.reference]
        judged = [given[one.id] for one in pairs]
        readings = {"label": correct(gold, [one.label for one in judged]), "likeliest": likeliest_correct(gold, judged)}
        for baseline in pairwise_baselines(pairs, None, seed=seed):
            if baseline.name == "copy the example" and baseline.predictions is not None:
                readings[baseline.name] = correct(gold, baseline.predictions)
        _, who = np.unique(np.array([one.reviewer_id for one in pairs], dtype=object), return_inverse=True)
        bootstrap = Bootstrap.over(who.astype(np.int64), resamples=resamples, seed=seed)
        aspects = np.array([ours_of.get(one.aspect.casefold(), one.aspect) for one in pairs], dtype=object)
        others |= set(aspects) - set(ASPECT_COLUMNS)
        for reading, right in readings.items():
            own = [bootstrap.mean(right, aspects == aspect) if (aspects == aspect).any() else None for aspect in ASPECT_COLUMNS]
            rows.append((f"{OURS}: {name} ({reading})", *own, bootstrap.mean(right, np.ones(len(pairs), dtype=bool))))
    notes = ["ours: the average is over all pairs, a pair that was not answered is wrong"] if rows else []
    if others:
        notes.append(f"ours: aspects that the paper does not have are in the average only: {', '.join(sorted(others))}")
    return _shown(TABLE_4, rows, fill=SCORED.format("PAIRS"), notes=notes)


def _table_5(studies: Sequence[Path]) -> StudyTable:
    rows: list[Cells] = []
    notes: list[str] = []
    for folder in studies:
        result = read_study(folder)
        if result.study != "review-text":
            raise BadInput(f"{folder} is a study of {result.study}; table 5 is filled from a folder of perse study review-text")
        values = {(one.series, one.x, one.metric): one.estimate for one in result.points if not one.baseline}
        for series, x in dict.fromkeys((series, x) for series, x, _ in values):
            own = [values.get((series, x, metric)) for metric in ("pearson", "spearman", "kendall")]
            rows.append((f"{OURS}: {series}, {x}", *own))
        notes += [f"ours: {table.title}" for table in result.tables[:1]]
    fill = "`perse study review-text --examples DATASET --retrain RECIPE --out DIR`, then `perse study paper --study DIR`"
    return _shown(TABLE_5, rows, fill=fill, notes=notes)


def _answered(run: ScoredRun) -> list[tuple[PointwiseExample, Judgement]]:
    """The answered items that have a reference."""
    given = {judgement.id: judgement for judgement in run.judgements if judgement.status is Status.OK}
    return [
        (one, given[one.id])
        for one in run.examples
        if isinstance(one, PointwiseExample) and one.reference is not None and one.id in given
    ]


def _gold(items: Sequence[tuple[PointwiseExample, Judgement]]) -> FloatArray:
    return np.array([float(one.reference.score) for one, _ in items if one.reference])


def _bootstrap(items: Sequence[tuple[PointwiseExample, Judgement]], *, seed: int, resamples: int) -> Bootstrap:
    _, who = np.unique(np.array([one.reviewer_id for one, _ in items], dtype=object), return_inverse=True)
    return Bootstrap.over(who.astype(np.int64), resamples=resamples, seed=seed)


def _correlations(bootstrap: Bootstrap, gold: FloatArray, given: FloatArray) -> list[Estimate]:
    scores = bootstrap.scores(gold, given)
    return [scores[name] for name in ("pearson", "spearman", "kendall")]


def _nothing() -> Estimate:
    return Estimate(value=None, interval=Interval(reason="undefined (nothing answered)"), items=0)
