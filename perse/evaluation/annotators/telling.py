"""Agreement among annotators as a Result."""

from __future__ import annotations

from perse.evaluation.annotators.measuring import AnnotatorAgreement, Dimension
from perse.evaluation.metrics import METRICS
from perse.results.result import Cell, Estimate, Result, Table
from perse.results.words import shown

_POOLED = ("pearson", "spearman", "kendall")
_NAMES = tuple(METRICS[name].title for name in _POOLED)
_DIGITS = 2


def agreement_result(found: AnnotatorAgreement) -> Result:
    """Everything that is known of the annotators of a file."""
    return Result(
        name="agreement",
        asks="How far do annotators agree?",
        answer="\n".join(map(_sentence, found.dimensions)),
        tables=tuple(_tables(found)),
        notes=(_note(found),),
        details=found.model_dump(mode="json"),
    )


def _sentence(one: Dimension) -> str:
    alpha, spearman = (shown(_of_groups(value), digits=_DIGITS) for value in (one.alpha, one.mean["spearman"]))
    fewest = min((pair.columns["spearman"].items for pair in one.pairs), default=one.items)
    shared = f" ({fewest} of them at least were rated by both)" if fewest < one.items else ""
    return f"{one.name}: Krippendorff's alpha {alpha}, Spearman of two annotators {spearman}, on {one.items} items{shared}."


def _tables(found: AnnotatorAgreement) -> list[Table]:
    title = "Agreement: Krippendorff's alpha (ordinal), mean correlation of two annotators"
    lines = [(one.name, str(one.items), *map(_of_groups, (one.alpha, *map(one.mean.get, _POOLED)))) for one in found.dimensions]
    tables = [_table(title, ("dimension", "items", "alpha", *_NAMES), lines)]
    if any(one.groups < one.items for one in found.dimensions):
        within = tuple(f"within_{name}" for name in _POOLED)
        lines = [(one.name, _groups(one), *map(_of_groups, map(one.mean.get, within))) for one in found.dimensions]
        title = "Within groups: mean over groups of a group's own correlation (constant groups skipped)"
        tables.append(_table(title, ("dimension", "groups", *_NAMES), lines))
    columns = _who(found.dimensions[0])
    if columns and all(_who(one) == columns for one in found.dimensions):
        lines = [
            (one.name, *(_of_groups(pair.columns["spearman"]) for pair in (*one.pairs, *one.rest))) for one in found.dimensions
        ]
        title = "Spearman of each two annotators, and of each with the mean of the others"
        tables.append(_table(title, ("dimension", *columns), lines))
    return tables


def _groups(one: Dimension) -> str:
    """The groups that the mean rests on, of the pair that has fewest."""
    return f"{one.groups_within} of {one.groups}" if one.groups_within < one.groups else str(one.groups)


def _table(title: str, header: tuple[str, ...], lines: list[tuple[Cell, ...]]) -> Table:
    return Table(title=title, header=header, rows=tuple(lines), digits=_DIGITS)


def _who(dimension: Dimension) -> tuple[str, ...]:
    return tuple(f"{pair.annotator} ~ {pair.other or 'others'}" for pair in (*dimension.pairs, *dimension.rest))


def _note(found: AnnotatorAgreement) -> str:
    groups = sorted({one.groups for one in found.dimensions})
    how_many = str(groups[0]) if len(groups) == 1 else f"{groups[0]} to {groups[-1]}"
    return (
        f"{len(found.annotators)} annotators; [ ]: 95% intervals, bootstrap over {how_many} groups of items, "
        f"{found.resamples} resamples, seed {found.seed}; undefined: a constant annotator, or fewer than 2 items"
    )


def _of_groups(estimate: Estimate | None) -> Estimate | None:
    """What is resampled here is groups of items, not reviewers."""
    if estimate is None or not estimate.interval.reason:
        return estimate
    reason = estimate.interval.reason.replace("reviewer", "group")
    return estimate.model_copy(update={"interval": estimate.interval.model_copy(update={"reason": reason})})
