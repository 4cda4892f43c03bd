"""A Comparison as a Result: one sentence per pair, then the numbers."""

from __future__ import annotations

from perse.evaluation.comparing.results import LEVEL, Comparison, Pairing
from perse.evaluation.comparing.words import MAE, beyond, p_shown, too_many
from perse.evaluation.metrics import lower_is_better, title_of
from perse.evaluation.stats.shares import share_note
from perse.evaluation.verdict import PROFILE_AVERAGE
from perse.results.result import Cell, Result, Table
from perse.results.words import ABSENT, UNDEFINED, alike

_READINGS = {"expected": "expected scores", "likeliest": "likeliest choices", "label": "labels"}


def comparison_result(comparison: Comparison) -> Result:
    """Everything that a comparison tells."""
    chosen = comparison.kind == "pairwise"
    return Result(
        name="compare",
        asks="Is one judge better than another, and than the baselines?",
        answer="\n".join(
            f"{said}."
            for said in (
                *too_many(comparison.pairings, comparison.permutations, comparison.reviewers),
                *(pairing.verdict for pairing in comparison.pairings),
            )
        ),
        tables=(
            _runs(comparison),
            _baselines(comparison),
            *(_pairing(pairing, chosen=chosen) for pairing in comparison.pairings),
        ),
        details=comparison.model_dump(mode="json"),
    )


def _runs(comparison: Comparison) -> Table:
    lines = []
    for name, asked in comparison.judges.items():
        more = ", ..." if asked.dropped > len(asked.dropped_ids) else ""
        dropped = f"{asked.dropped}" + (f" ({', '.join(asked.dropped_ids)}{more})" if asked.dropped else "")
        lines.append((name, str(asked.judged), str(asked.common), str(asked.ok), dropped))
    drawn_from = "reviewers and the texts" if comparison.resample == "two-way" else "reviewers"
    drawn = f"{comparison.permutations} exchanges drawn"
    if any(contrast.p_exact for pairing in comparison.pairings for contrast in pairing.contrasts):
        drawn = f"of all exchanges where there are at most {comparison.permutations}, else {drawn}"
    notes = [
        f"intervals: 95%, bootstrap over the {drawn_from}, {comparison.resamples} resamples, seed {comparison.seed}",
        *([share_note()] if comparison.kind == "pairwise" else []),
        f"p: two-sided, answers exchanged reviewer by reviewer, {drawn}",
        f"p (Holm): adjusted over all {comparison.family} p values here; called a difference where it is at most {LEVEL} and the interval leaves out 0"
        + _also(comparison)
        + (
            ", for MAE of other readers only where some unlike all of these could not undo it"
            if MAE in comparison.metrics
            else ""
        ),
        *comparison.notes,
    ]
    if "pearson" in comparison.metrics:
        notes.append("p (Williams): for comparability with papers only; it takes the items of a reviewer for independent")
    title = f"Compared on {comparison.items} items of {comparison.reviewers} reviewers"
    header = ("judge", "judged", "common", "answered", "dropped")
    return Table(title=title, header=header, rows=tuple(lines), notes=tuple(notes))


def _also(comparison: Comparison) -> str:
    """What else a difference has to be, as far as it is asked of one here."""
    contrasts = [(pairing, contrast) for pairing in comparison.pairings for contrast in pairing.contrasts]
    said = ", for Kendall tau-b also where ties count for neither" if "kendall" in comparison.metrics else ""
    coarse = ", ".join(dict.fromkeys(pairing.one for pairing, contrast in contrasts if contrast.against_rounded is not None))
    if coarse:
        said += f"; where {coarse}, whose answers are labels, is above {PROFILE_AVERAGE}, in place of that where this is rounded as they are"
    if any(contrast.of_all is not None for _, contrast in contrasts):
        said += "; within readers also where those to whom one side says the same of everything count 0"
    return said


def _baselines(comparison: Comparison) -> Table:
    """The baselines, whether or not they are compared with."""
    lines: list[tuple[Cell, ...]] = []
    missing = []
    for baseline in comparison.baselines:
        lines.append((baseline.name, *map(baseline.values.get, comparison.metrics)))
        if baseline.unavailable is not None:
            missing.append((baseline.name, baseline.unavailable))
    title = f"Without a judge, all {comparison.items} items"
    return Table(title=title, header=("", *map(title_of, comparison.metrics)), rows=tuple(lines), notes=alike(missing))


def _pairing(pairing: Pairing, *, chosen: bool) -> Table:
    williams = any(contrast.williams_p is not None for contrast in pairing.contrasts)
    header = ("", pairing.one, pairing.other, "difference", "p", "p (Holm)", *(["p (Williams)"] if williams else []))
    where = f"{_READINGS[pairing.reading]}, {pairing.answered} of {pairing.items} items answered by both"
    if chosen:
        where += ", not answered = wrong"
    lines: list[tuple[Cell, ...]] = []
    for contrast in pairing.contrasts:
        last = [ABSENT if contrast.williams_p is None else p_shown(contrast.williams_p)] if williams else []
        lower = " (less is better)" if lower_is_better(contrast.metric) else ""
        p = (p_shown(contrast.p), p_shown(contrast.p_holm))
        values = (_value(contrast.one), _value(contrast.other), contrast.estimate)
        lines.append((title_of(contrast.metric) + lower, *values, *p, *last))
    notes = [f"p: {contrast.p_reason}" for contrast in pairing.contrasts if contrast.p is None and contrast.p_reason]
    notes += [
        f"{title_of(contrast.metric)}: of the {contrast.reviewers} reviewers who vary on both sides; {contrast.constant_on_one} to whom "
        "only one side says the same of everything are left out on both"
        for contrast in pairing.contrasts
        if contrast.constant_on_one
    ]
    notes += [
        f"{title_of(contrast.metric)}: shown of these {contrast.reviewers} readers, not of others; {beyond(contrast)}"
        for contrast in pairing.contrasts
        if contrast.of_these_readers and contrast.better is not None
    ]
    title = f"{pairing.one} minus {pairing.other}: {where}"
    return Table(title=title, header=header, rows=tuple(lines), notes=tuple(dict.fromkeys(notes)))


def _value(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:z.3f}"
