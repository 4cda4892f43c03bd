"""PerSE's tables 1 to 5 with ours beside the published: from data sets, scoring runs and a finished study, nothing is asked.

A value of ours that is not at hand is "-", with the command that would fill it. Tables 2 to 4 take theirs from what `perse
evaluate` finds of the same runs, with its baselines: runs of scores are of one data set, and so are those of pairs. What the
paper's judges wrote was drawn at temperature 0.8, so of a run the row (label) is the paper's way; the row (expected) reads the
exact distribution. Published figures have no intervals, and are of the paper's data: ours are comparable where the data sets
are Per-MPST and Per-DOC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perse.batch.comparing import Gathered, gather
from perse.batch.scored import read_run
from perse.data.profiles.lengths import Cell
from perse.errors import BadInput
from perse.evaluation.evaluate import evaluate_many
from perse.evaluation.metrics import METRICS
from perse.evaluation.stats.results import Evaluation, Row
from perse.evaluation.stats.shares import share_note
from perse.files.runlog import MANIFEST, read_manifest, run_of
from perse.models.vectors import KeptVectors
from perse.records import PairwiseExample, PointwiseExample
from perse.results.result import Estimate, Result, Table
from perse.studies.frame.measuring import SHOWN
from perse.studies.frame.running import read_study
from perse.studies.frame.summarizing import reaching, words
from perse.studies.paper.published import ASPECT_COLUMNS, TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5, Published

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
) -> Result:
    """All five tables.

    Args:
        mpst, doc: data set folders of scores and of pairs, for table 1.
        runs: name -> folder that `perse score` wrote, of scores (tables 2 and 3) or of pairs (table 4).
        studies: folders of `perse study review-text`, for table 5; other studies are refused.
    Raises:
        BadInput: a folder of another kind, or runs that `perse evaluate` refuses.
    """
    of_scores, of_pairs = _by_kind(runs or {})
    scores, notes_on_scores = _evaluated(of_scores, seed=seed, resamples=resamples)
    pairs, notes_on_pairs = _evaluated(of_pairs, seed=seed, resamples=resamples)
    tables = (
        _table_1(mpst, doc),
        _table_2(scores, notes_on_scores),
        _table_3(scores),
        _table_4(pairs, notes_on_pairs),
        _table_5(studies),
    )
    filled = [n for n, table in enumerate(tables, start=1) if any(str(row[0]).startswith(f"{OURS}: ") for row in table.rows)]
    return Result(
        name="paper",
        asks="What do the paper's tables say, and what do ours?",
        answer=reaching(_answer(filled, _rows(scores)), scores.notes if scores else ()),
        plot="bars",
        x_label="",
        points=(),
        tables=tables,
        notes=(
            "published figures have no intervals; ours are 95%, of correlations resampled over the readers, and over the texts where these are drawn, too",
            *([share_note()] if pairs else []),
            *(["the highest of several is chosen after looking, so its value is a little too high"] if scores else []),
            *(
                [
                    "whether a judge is better than a baseline, or has fewer ties alone, is not said by these values: perse evaluate says it"
                ]
                if scores
                else []
            ),
        ),
    )


def _answer(filled: Sequence[int], rows: Sequence[Row]) -> str:
    if not filled:
        return "No value of ours is at hand yet: the published figures stand alone, with the commands that fill the tables."
    said = (
        f"Table {filled[0]} of 1 to 5 has values of ours."
        if len(filled) == 1
        else f"Tables {', '.join(map(str, filled))} of 1 to 5 have values of ours."
    )
    for what in ("judge", "baseline"):
        ours = [(row.columns["kendall"], row.name) for row in rows if (row.judge is None) == (what == "baseline")]
        known = [value for value, _ in ours if value.value is not None]
        if known:
            best = max(known, key=lambda one: one.value or 0.0)
            who = " and ".join(name for value, name in ours if value.value == best.value)
            said += f" The highest Kendall of a {what} of ours in table 2 is {words(best)}: {who}."
    return f"{said} In table 2 PerSE-13b has a Kendall of {_kendall('PerSE-13b'):.3f}, on the paper's data." if rows else said


def _kendall(name: str) -> float:
    value = dict(TABLE_2.rows)[name][-1]
    assert value is not None
    return value


def _shown(published: Published, ours: Sequence[Cells], *, fill: str, notes: Sequence[str] = ()) -> Table:
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
    return Table(
        title=f"Table {published.number}: {published.title}",
        header=("", *published.columns),
        rows=(*rows, *(ours or [(f"{OURS} (none yet)", *(None for _ in published.columns))])),
        notes=tuple(footnotes),
    )


def _table_1(mpst: Path | None, doc: Path | None) -> Table:
    cells: dict[tuple[str, str], Cell] = {}
    for folder, kind in ((mpst, "pointwise"), (doc, "pairwise")):
        if folder is None:
            continue
        manifest = read_manifest(folder)
        if manifest.get("kind") != kind or "counts" not in manifest:
            option, needed = ("--mpst", "scores") if kind == "pointwise" else ("--doc", "pairs")
            raise BadInput(f"{option} {folder}: is no data set of {needed}; give a folder that perse data {kind} wrote")
        try:
            for part in manifest["counts"]["parts"]:
                cells |= {(str(part["name"]), cell.name): cell for cell in map(Cell.model_validate, part["cells"])}
        except (KeyError, TypeError, ValueError):
            raise BadInput(f"{folder / MANIFEST}: 'counts' is not as perse data writes it; build the data set again") from None
    rows: list[Cells] = []
    for side in dict.fromkeys(part for part, _ in cells):
        for what, key, form in (
            ("# reviewers", "reviewers", "{:g}"),
            ("# examples", "examples", "{:g}"),
            ("avg. length", "words", "{:.1f}"),
        ):
            own = [form.format(getattr(cells[side, name], key)) if (side, name) in cells else None for name in TABLE_1.columns]
            rows.append((f"{OURS}: {side}, {what}", *own))
    fill = "`perse data per-mpst` and `perse data per-doc`, then `perse study paper --mpst DATASET --doc DATASET`"
    missing = [f"ours without columns of {what}: give {option}" for what, option, given in (
        ("k", "--mpst DATASET", mpst), ("aspects", "--doc DATASET", doc)) if rows and given is None]  # fmt: skip
    return _shown(TABLE_1, rows, fill=fill, notes=missing)


def _by_kind(runs: Mapping[str, Path]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Those of scores, and those of pairs; prompts as they were released are of what their answers are."""
    found: dict[str, dict[str, Path]] = {"pointwise": {}, "pairwise": {}}
    for name, folder in runs.items():
        kinds = {example.in_one_file.split()[-1] for example in read_run(folder).examples}
        if len(kinds) != 1 or not kinds <= set(found):
            raise BadInput(
                f"{folder} is a run of summaries, or of prompts without true answers; the paper's tables need single texts or pairs"
            )
        found[kinds.pop()][name] = folder
    return found["pointwise"], found["pairwise"]


def _evaluated(runs: Mapping[str, Path], *, seed: int, resamples: int) -> tuple[Evaluation | None, list[str]]:
    """Runs of one kind as `perse evaluate` has them, by the names that they were given; and what must be said of them."""
    if not runs:
        return None, []
    gathered = gather(list(runs.values()))
    by_fold: dict[int | None, list[str]] = {}
    for name, folder in runs.items():
        by_fold.setdefault(run_of(folder).get("fold"), []).append(name)
    titles = [", ".join(names) for names in zip(*by_fold.values(), strict=True)]  # the folds of one judge
    judges = dict(zip(titles, gathered.judges.values(), strict=True))
    missing = [
        f"baselines that need training data are unavailable: {reason}, which `perse evaluate` has"
        for reason in dict.fromkeys(gathered.missing)
    ]
    notes = [*gathered.notes, *missing]
    found = evaluate_many(judges, gathered.folds, seed=seed, resamples=resamples, notes=notes, vectors=KeptVectors())
    return found, [_entries(gathered), *(f"ours, `perse evaluate` says: {note}" for note in found.notes)]


def _entries(gathered: Gathered) -> str:
    """Tables 2 and 4 are of k = 3 and k = 1: of what k ours are."""
    asked = [example for runs in gathered.runs.values() for run in runs for example in run.examples]
    lengths = sorted({len(one.profile) for one in asked if isinstance(one, PointwiseExample | PairwiseExample)})
    if not lengths:
        return "ours: of prompts as they were released, whose profiles are not counted"
    many = (
        f"{lengths[0]} to {lengths[-1]} entries"
        if len(lengths) > 1
        else f"{lengths[0]} {'entry' if lengths == [1] else 'entries'}"
    )
    return f"ours: profiles of {many}"


def _rows(found: Evaluation | None) -> list[Row]:
    """What has a value; a baseline that is unavailable has a note."""
    return [row for row in found.rows if row.columns] if found else []


def _table_2(found: Evaluation | None, notes: Sequence[str]) -> Table:
    rows: list[Cells] = [
        (f"{OURS}: {row.name}", *(row.columns[name] for name in ("pearson", "spearman", "kendall"))) for row in _rows(found)
    ]
    of = (
        [f"ours: of the {found.ok_items} of {found.items} items: those answered by every judge of ours that answered any"]
        if found
        else []
    )
    return _shown(TABLE_2, rows, fill=SCORED.format("DATASET"), notes=[*of, *notes])


def _table_3(found: Evaluation | None) -> Table:
    rows: list[Cells] = [
        (f"{OURS}: {row.judge or row.name}", *(row.text.get(name) for name in ("bleu", "rouge1", "bertscore", "bartscore")))
        for row in (found.rows if found else ())
        if row.text
    ]
    notes = []
    if found and rows:
        notes.append("ours: of all items whose reader wrote a review; one that was not answered is an empty text")
        notes += [f"ours: no {METRICS[name].title}: {reason}" for name, reason in found.text_skipped.items() if name == "bleu"]
        notes.append("ours: for BERTScore and BARTScore, `perse evaluate RUN --bertscore-model PATH --bartscore-model PATH`")
    fill = SCORED.format("DATASET") + " (with the question pointwise, which writes reviews)"
    return _shown(TABLE_3, rows, fill=fill, notes=notes)


def _table_4(found: Evaluation | None, notes: Sequence[str]) -> Table:
    ours = _rows(found)
    asked = list(dict.fromkeys(aspect for row in ours for aspect in row.aspects))
    spelled = {aspect: next((one for one in asked if one.casefold() == aspect.casefold()), "") for aspect in ASPECT_COLUMNS}
    rows: list[Cells] = [
        (
            f"{OURS}: {row.name}",
            *(row.aspects.get(spelled[one]) for one in ASPECT_COLUMNS),
            row.columns.get("macro_accuracy", row.columns["accuracy"]),
        )
        for row in ours
    ]
    said = (
        ["ours: the average is the mean of the aspects, as the paper's; a pair that was not answered is wrong"] if rows else []
    )
    if others := sorted(set(asked) - set(spelled.values())):
        said.append(f"ours: aspects that the paper does not have are in the average only: {', '.join(others)}")
    return _shown(TABLE_4, rows, fill=SCORED.format("PAIRS"), notes=[*said, *notes])


def _table_5(studies: Sequence[Path]) -> Table:
    rows: list[Cells] = []
    notes: list[str] = []
    for folder in studies:
        result = read_study(folder)
        if result.name != "review-text":
            raise BadInput(f"{folder} is a study of {result.name}; table 5 is filled from a folder of perse study review-text")
        values = {(one.series, one.x, one.metric): one.estimate for one in result.points}
        for series, x in dict.fromkeys((series, x) for series, x, _ in values):
            own = [values.get((series, x, metric)) for metric in ("pearson", "spearman", "kendall")]
            rows.append((f"{OURS}: {series}, {x}", *own))
        notes += [f"ours: {table.title}" for table in result.tables[:1]]
        shown = {str(row[2]) for table in result.tables for row in table.rows if table.header[2:3] == (SHOWN,) and row[2]}
        notes += [f"ours: {SHOWN}, on average: {', '.join(sorted(shown))}"] if shown else []
    fill = "`perse study review-text --examples DATASET --retrain RECIPE --out DIR`, then `perse study paper --study DIR`"
    return _shown(TABLE_5, rows, fill=fill, notes=notes)
