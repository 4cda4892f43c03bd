"""Correlations with people as a `Result`: who agrees most, whether that is shown, and the published numbers beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from perse.drpe.correlation import published
from perse.drpe.correlation.baselines import Baselines
from perse.drpe.correlation.correlating import COMPARED, LEVELS, Correlations, Level
from perse.drpe.correlation.said import notes
from perse.drpe.correlation.wordings import OverWordings, wordings_table
from perse.evaluation.comparing.paired import PairedDifference
from perse.evaluation.comparing.words import p_shown
from perse.evaluation.stats.correlation import COEFFICIENTS
from perse.results.result import Cell, Result, Table
from perse.results.words import shown as in_words

DRPE_CORRELATE = "drpe-correlate"
ASKS = "Which scores of a summary agree with what people give it?"
TITLES: Mapping[Level, str] = {"pooled": "Pooled", "within": "Within documents", "systems": "By system"}
_SHOWN_PAIRS = 15
_ALIKE = 1e-9
"""Correlations that are no further apart are one: sums in another order."""


def correlate_result(
    found: Correlations,
    baselines: Baselines | None,
    wordings: Mapping[str, OverWordings] | None = None,
    *,
    of_whom: str = "",
) -> Result:
    """Everything that `found` says.

    Args:
        baselines: if they were computed.
        wordings: of runs that were asked in several.
        of_whom: which candidates the runs voted on, if not on all that were selected (`of_extremes`).
    """
    return Result(
        name=DRPE_CORRELATE,
        asks=ASKS,
        answer="\n".join(filter(None, (answer(found), of_whom))),
        tables=(
            _pooled(found, baselines),
            _level(found, "within", baselines),
            _level(found, "systems", baselines),
            *([wordings_table(wordings)] if wordings else []),
            _dimensions(found, baselines),
            *(_by_dimension(found, level) for level in LEVELS),
            _best_beside(found),
            _differences(found),
            _coverage(found, baselines),
            *_published(),
        ),
        notes=notes(found, baselines),
        details={
            "candidates": found.selected.which,
            "compared": found.compared,
            "documents": found.documents,
            "systems": found.systems,
            "dimensions": list(found.selected.dimensions),
            "references": baselines.references if baselines else None,
            "tied": found.selected.tied,
            "equal": baselines.equal if baselines else None,
        },
    )


def best_of(found: Correlations) -> str | None:
    """The method of the highest pooled Pearson correlation, with its sign; None if none is defined."""
    values = {name: row.mean["pooled"]["pearson"].value for name, row in found.rows.items()}
    known = {name: value for name, value in values.items() if value is not None}
    return max(known, key=lambda name: known[name]) if known else None


def answer(found: Correlations) -> str:
    """Two sentences."""
    best = best_of(found)
    over = f"over {found.compared} candidates of {found.documents} documents"
    if best is None:
        return f"No method's scores vary together with people's {over}: they are constant, or people's are."
    of = found.rows[best].mean["pooled"]["pearson"]
    others = [name for name in found.rows if name != best]
    if not found.agrees(best):
        if not others:
            return f"{best} is not shown to agree with people {over}: its pooled Pearson correlation is {in_words(of)}{_as_highest(found, best)}."
        highest = f"the highest pooled Pearson correlation, that of {best}, is {in_words(of)}{_as_highest(found, best)}"
        if agree := [name for name in others if found.agrees(name)]:
            return f"Of {over.removeprefix('over ')} {highest} and not shown to be above 0; that of {_listed(agree)} is."
        return f"Pooled, no method is shown to agree with people {over}: {highest}.{_elsewhere(found)}"
    value = of.value or 0.0
    there = {name: row.mean["pooled"]["pearson"].value for name, row in found.rows.items()}
    alike = [name for name, own in there.items() if own is not None and math.isclose(own, value, rel_tol=0, abs_tol=_ALIKE)]
    first, word = (best, "agrees") if len(alike) == 1 else (f"{_listed(alike)}, alike,", "agree")
    said = f"{first} {word} most with people {over}, with a pooled Pearson correlation of {in_words(of)}"
    others = [name for name in others if name not in alike]
    if not others:
        return f"{said}; there is no other method beside {'it' if len(alike) == 1 else 'them'}.{_not_within(found, alike)}"
    shown = {one.minus if one.method == best else one.method for one in _of(found, best) if one.shown}
    constant = [name for name in others if there[name] is None]
    none = (
        f"; {_listed(constant)}, whose scores do not vary, {'has' if len(constant) == 1 else 'have'} none" if constant else ""
    )
    parts = [
        (word, names)
        for word, names in (
            ("higher than that of", [name for name in others if name in shown]),
            ("not shown to differ from that of", [name for name in others if name not in shown and name not in constant]),
        )
        if names
    ]
    told = "; ".join(f"{word} {_listed(names)}" for word, names in parts)
    whole = f"{said}{none}. This is {told}." if told else f"{said}{none}."
    return f"{whole}{_not_within(found, alike)}"


def _as_highest(found: Correlations, best: str) -> str:
    """That the highest of so many, or the only one, is above 0 by its own interval alone; or nothing."""
    p = found.of_many.get((best, "pooled"))
    if p is None or not found.rows[best].mean["pooled"]["pearson"].above_zero:
        return ""
    if len(found.rows) == 1:
        return f" (p of so many = {p_shown(p)}: one that has nothing to do with people may come to as much)"
    return f" (as the highest of {len(found.rows)} p = {p_shown(p)}: so many that have nothing to do with people may come to as much)"


def _not_within(found: Correlations, best: Sequence[str]) -> str:
    """That what agrees most, pooled, is not shown to know one candidate of a document from another; a sentence, or nothing."""
    silent = [name for name in best if "within" in found.rows[name].mean and not found.agrees(name, "within")]
    if not silent:
        return ""
    values = _listed([in_words(found.rows[name].mean["within"]["pearson"]) for name in silent])
    return (
        f" Within documents {_listed(silent)} {'is' if len(silent) == 1 else 'are'} not shown to agree with people: {values}."
    )


def _elsewhere(found: Correlations) -> str:
    """What is above 0 within documents, where nothing is that is pooled; a sentence, or nothing."""
    agree = [name for name in found.rows if found.agrees(name, "within")]
    return f" But within documents that of {_listed(agree)} is above 0 (below)." if agree else ""


def _of(found: Correlations, method: str) -> list[PairedDifference]:
    """The pooled differences that a method has a side of."""
    return [one for one in found.differences if one.of == COMPARED[0] and method in (one.method, one.minus)]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _breaks(found: Correlations, baselines: Baselines | None) -> tuple[int, ...]:
    """Baselines stand below the runs."""
    runs = sum(baselines is None or name not in baselines.scores for name in found.rows)
    return (runs,) if 0 < runs < len(found.rows) else ()


def _pooled(found: Correlations, baselines: Baselines | None) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, row in found.rows.items():
        theirs = published.of_summeval(name)
        beside = "-" if theirs is None else f"{theirs:.3f}"
        p = found.of_many.get((name, "pooled"))
        shown = "-" if p is None else p_shown(p).replace("<", "< ")
        rows.append((name, beside, row.absolute, *(row.mean["pooled"][one] for one in COEFFICIENTS), shown))
    return Table(
        title=TITLES["pooled"],
        header=("method", "SummEval, published", "|Pearson|", *map(str.capitalize, COEFFICIENTS), "p of so many"),
        rows=tuple(rows),
        breaks=_breaks(found, baselines),
        notes=(
            f"p of so many: of a Pearson above 0, doubled as for two sides (of one below 0 it is 1), adjusted for looking at {len(found.rows)} methods, pooled and within documents",
            f"published: |Pearson| over 400 candidates of {published.DOCUMENTS} documents of SummEval, by the metrics' own models; not of these candidates. "
            f"DRPE has {published.of_summeval('DRPE')} there, a plain comparison by the same model (GPT-D3) {published.of_summeval('GPT-D3')}",
            "Kendall is tau-b",
        ),
    )


def _level(found: Correlations, level: Level, baselines: Baselines | None) -> Table:
    rows: list[tuple[Cell, ...]] = [(name, *(row.mean[level][one] for one in COEFFICIENTS)) for name, row in found.rows.items()]
    told = {
        "within": "each document's own correlation over its candidates, and the mean over documents; those in which a side is constant are left out",
        "systems": "over systems' means; documents are drawn anew, systems are not",
    }
    return Table(
        title=TITLES[level],
        header=("method", *map(str.capitalize, COEFFICIENTS)),
        rows=tuple(rows),
        breaks=_breaks(found, baselines),
        notes=(told[level], *(_left_out(found) if level == "within" else ())),
    )


def _left_out(found: Correlations) -> list[str]:
    """In how many documents each method is constant."""
    skipped = [(name, row.mean["within"]["pearson"].skipped_reviewers) for name, row in found.rows.items()]
    told = [f"{name} {count}" for name, count in skipped if count]
    return (
        [
            f"documents left out, of {found.documents}: {', '.join(told)}; a difference is over those in which neither side is constant"
        ]
        if told
        else []
    )


def _dimensions(found: Correlations, baselines: Baselines | None) -> Table:
    names = found.selected.dimensions
    rows: list[tuple[Cell, ...]] = [
        (method, *(row.dimensions[name]["pooled"]["pearson"] for name in names)) for method, row in found.rows.items()
    ]
    return Table(
        title="Pooled Pearson by dimension", header=("method", *names), rows=tuple(rows), breaks=_breaks(found, baselines)
    )


def _by_dimension(found: Correlations, level: Level) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, method, *(row.dimensions[name][level][one] for one in COEFFICIENTS))
        for name in found.selected.dimensions
        for method, row in found.rows.items()
    ]
    return Table(
        title=f"{TITLES[level]}, by dimension",
        header=("dimension", "method", *map(str.capitalize, COEFFICIENTS)),
        rows=tuple(rows),
        detail=True,
    )


def _best_beside(found: Correlations) -> Table:
    """The method that agrees most minus each other one."""
    best = best_of(found)
    pairs = _pairs(found)
    mine = [row for row in pairs if best in (row[0].method, row[0].minus)]
    return _of_pairs("The highest beside the others", [tuple(one.from_side(best or "") for one in row) for row in mine])


def _differences(found: Correlations) -> Table:
    table = _of_pairs("All differences on the same candidates", _pairs(found))
    return table.model_copy(update={"detail": len(table.rows) > _SHOWN_PAIRS})


def _pairs(found: Correlations) -> list[tuple[PairedDifference, ...]]:
    return list(zip(*([one for one in found.differences if one.of == of] for of in COMPARED), strict=True))


def _of_pairs(title: str, pairs: Sequence[tuple[PairedDifference, ...]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for pooled, within in pairs:
        rows.append((pooled.method, pooled.minus, pooled.estimate, pooled.p_in_words, within.estimate, within.p_in_words))
    return Table(
        title=title,
        header=("method", "minus", "pooled Pearson", "p", "within documents", "p"),
        rows=tuple(rows),
        notes=("p: exchanging the two document by document; adjusted (Holm) over all differences of both columns",),
    )


def _coverage(found: Correlations, baselines: Baselines | None) -> Table:
    every = len(found.selected.items)
    rows: list[tuple[Cell, ...]] = [
        (name, f"{row.scored} of {every}", (baselines.settings.get(name) or "-") if baselines else "-", row.own)
        for name, row in found.rows.items()
    ]
    return Table(
        title="What each method scored",
        header=("method", "candidates", "by", "Pearson over these"),
        rows=tuple(rows),
        breaks=_breaks(found, baselines),
    )


def _published() -> tuple[Table, ...]:
    other = "on other documents, and of LLM rows by text-davinci-003: not comparable with the rows above"
    given = (
        ("Table 1 as published", (*published.DATASETS, "AVG"), published.TABLE_1),
        ("Table 2 as published", (*published.DATASETS, "AVG"), published.TABLE_2),
        ("Table 1 of the first version as published", published.FIRST_DATASETS, published.FIRST),
    )
    return tuple(
        Table(
            title=title,
            header=("method", *columns),
            rows=tuple((name, *(f"{value:.{3 if len(columns) > 2 else 2}f}" for value in row)) for name, row in rows.items()),
            notes=(f"|Pearson|, {other}",),
            detail=True,
        )
        for title, columns, rows in given
    )
