"""A stacking as a Result: what every source adds, in words and in tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from perse.evaluation.stacking.adding import ALL, MEASURES, WITHOUT_JUDGE, Calibrated, Kind
from perse.evaluation.stacking.making import Fitted
from perse.evaluation.verdict import ON_THESE_TEXTS
from perse.results.result import Cell, Estimate, Interval, Result, Table
from perse.results.words import shown, telling_apart
from perse.stacking.sources import BIAS, IN_WORDS, JUDGE

_HEADER = ("Kendall tau-b", "within readers", "MAE", "RPS")
_LED_BY, _WITHIN = "kendall", "within_kendall"
_DIGITS = 3
_NONE = Estimate(value=None, interval=Interval(reason="undefined (a number here, no distribution)"), items=0)


def fit_result(fitted: Fitted, *, judged: bool, written: str | None, notes: Sequence[str] = ()) -> Result:
    """What was found.

    Args:
        judged: whether a judge was asked.
        written: where the stacking lies; None: none was written.
        notes: what is known of the runs and must stand beside the numbers.
    """
    measured, number = fitted.measured, len(fitted.rows.gold)
    levels = [(name, *_cells(columns)) for name, columns in measured.levels.items()]
    added = [(IN_WORDS[source], *_cells(columns)) for source, columns in measured.added.items()]
    over = [(f"{one} - {other}", *_cells(columns)) for (one, other), columns in measured.over.items()]
    tables = (
        Table(
            title="Expected scores of readers that were not fitted on",
            header=("row", *_HEADER),
            rows=tuple(levels),
            digits=_DIGITS,
        ),
        Table(
            title="Gained by each source over all others (the stacking without it; above 0 is better)",
            header=("source", *_HEADER),
            rows=tuple(added),
            digits=4,
        ),
        Table(title="Gained over simpler rules (above 0 is better)", header=("rows", *_HEADER), rows=tuple(over), digits=4),
        *(table for kind, part in measured.apart.items() for table in _of_kind(kind, part)),
        _calibration(measured.calibrated),
    )
    return Result(
        name="fit",
        asks="What does each source add to the score that a reader is expected to give?",
        answer=_answer(fitted, judged=judged),
        tables=tables,
        notes=(
            *notes,
            *fitted.notes,
            f"{number:,} examples of {len(fitted.readers):,} readers, each told by models that were fitted on others; [ ]: 95% intervals, "
            f"{fitted.resamples} resamples, seed {fitted.seed}; gains of MAE and RPS are what they fall by",
            *([f"written: {written}"] if written else []),
        ),
        details={
            "levels": {name: _plain(columns) for name, columns in measured.levels.items()},
            "added": {source: _plain(columns) for source, columns in measured.added.items()},
            "apart": {
                kind: {name: _plain(columns) for name, columns in part.levels.items()} for kind, part in measured.apart.items()
            },
            "calibration": {name: asdict(one) for name, one in measured.calibrated.items()},
            "examples": number,
            "readers": len(fitted.readers),
        },
    )


def _of_kind(kind: str, part: Kind) -> tuple[Table, Table]:
    """What the rows reach on one kind of texts, and what the stacking gains there."""
    rows = tuple((name, *_cells(columns)) for name, columns in part.levels.items())
    over = tuple((f"{one} - {other}", *_cells(columns)) for (one, other), columns in part.over.items())
    return (
        Table(title=f"Of {kind}", header=("row", *_HEADER), rows=rows, digits=_DIGITS),
        Table(title=f"Gained on {kind} (above 0 is better)", header=("rows", *_HEADER), rows=over, digits=4),
    )


def _calibration(rows: Mapping[str, Calibrated]) -> Table:
    return Table(
        title="Expected calibration error of P(at most k), of probabilities told by models of other readers",
        header=("row", "ECE", "right ones: 95 of 100 are below", "so they are"),
        notes=(
            "fitting alone brings the error near 0, even of frequencies that know no reader and no text; so of rows that are fitted here it is counted in what models learned from each reader",
        ),
        rows=tuple(
            (
                name,
                *(f"{number:.{telling_apart(one.error, one.usual, digits=4)}f}" for number in (one.error, one.usual)),
                "not shown to be wrong" if one.right else "not right",
            )
            for name, one in rows.items()
        ),
    )


def _answer(fitted: Fitted, *, judged: bool) -> str:
    levels, measured = fitted.measured.levels, fitted.measured
    together, best = levels[ALL][_LED_BY], WITHOUT_JUDGE if judged else ALL
    if levels[best][_LED_BY].value is None:
        return _no_order(levels[best][_LED_BY], together, judged=judged)
    where = ON_THESE_TEXTS if fitted.of_these_texts else ""
    first = ""
    if judged:
        within = levels[WITHOUT_JUDGE].get(_WITHIN, _NONE), levels[ALL].get(_WITHIN, _NONE)
        first = _adds(IN_WORDS[JUDGE], measured.added[JUDGE], together, levels[IN_WORDS[JUDGE]], within, where)
        number = len(fitted.rows.gold)
        few = f" (it answered {number} of {number + fitted.unanswered})" if fitted.unanswered else ""
        first = f"{first.removesuffix('.')}{few}. "
    gain = measured.over.get((best, IN_WORDS[BIAS]))
    than = f", {_than(IN_WORDS[BIAS], gain[_LED_BY], levels[best][_LED_BY], where)}" if gain else ""
    numbers = "The numbers alone reach" if judged else "The numbers that need no judge reach"
    both = f"; with it {shown(together, digits=_DIGITS)}" if judged else ""
    return f"{first}{numbers} a tau-b of {shown(levels[best][_LED_BY], digits=_DIGITS)}{than}{both}."


def _no_order(numbers: Estimate, together: Estimate, *, judged: bool) -> str:
    """Of numbers that say the same of all texts, as of new ones for readers of whom nothing is shown: what a judge orders is then all that there is,
    and no difference says so."""
    none = "The numbers that need no judge put no text before another here"
    if judged and together.value is not None:
        return f"{none}; with the language model they have a tau-b of {shown(together, digits=_DIGITS)}."
    return f"{none}{', and neither does the language model' if judged else ''}: tau-b is {shown(numbers)}."


def _adds(
    what: str,
    gains: Mapping[str, Estimate],
    together: Estimate,
    own: Mapping[str, Estimate],
    reached: tuple[Estimate, Estimate],
    where: str,
) -> str:
    """Better is said only where the whole interval is above 0, and the stacking better than chance; else no more than that of the order of texts,
    for errors may fall where the order stays. Whoever knows which readers are lenient adds to it, too, so what is added within readers stands beside;
    and they add within readers, too, where profiles hold a reader's other texts: the mean of these is low where the score left out is high, and a judge
    of leniency takes weight from it. So with a gain there goes what the judge has within readers by itself.

    Args:
        own: what the judge reaches as it stands.
        reached: tau-b within readers without it and with it.
        where: of which texts alone something is shown.
    """
    gain = gains[_LED_BY]
    capital, value = what[0].upper() + what[1:], shown(gain, digits=_DIGITS)
    if gain.above_zero and together.above_zero:
        within = gains[_WITHIN]
        inside = f"{shown(within, digits=_DIGITS)}{_ends(within, *reached)}"
        if not within.above_zero:
            inside = f"not shown ({_within(within, *reached)})"
        if within.above_zero and not own[_WITHIN].above_zero:
            inside += f", though by itself it {_alone(own[_WITHIN])}"
        return (
            f"{capital} adds {value} of Kendall's tau-b to the numbers that need no judge{where}; within each reader {inside}."
        )
    if gain.below_zero:
        return f"{capital} adds nothing to the order of texts by the numbers that need no judge{where}: with it Kendall's tau-b changes by {value}."
    though = f", but with it their order is not shown to be better than chance ({shown(together, digits=_DIGITS)})"
    return (
        f"{capital} is not shown to add anything to the order of texts by the numbers that need no judge: {value} of Kendall's tau-b"
        f"{though if gain.above_zero else ''}."
    )


def _ends(gain: Estimate, without: Estimate, whole: Estimate) -> str:
    """What a gain within readers lies between, where all three are of the same readers; else of whom it is."""
    if without.value is None or whole.value is None:
        return ""
    if gain.skipped_reviewers == without.skipped_reviewers == whole.skipped_reviewers:
        return f" (from {without.value:.{_DIGITS}f} to {whole.value:.{_DIGITS}f})"
    return f" (of the readers whose texts both order, without {gain.skipped_reviewers} others)"


def _within(gain: Estimate, without: Estimate, whole: Estimate) -> str:
    """A gain within readers that is not shown: it has no value where the numbers order no reader's texts, whatever the judge does."""
    if gain.value is None and without.value is None and whole.value is not None:
        return f"without it no reader's texts are ordered, with it tau-b is {shown(whole, digits=_DIGITS)}"
    return shown(gain, digits=_DIGITS)


def _alone(own: Estimate) -> str:
    """What a judge does within readers that by itself does not order their texts, and how it adds to that of the numbers all the same."""
    value = shown(own, digits=_DIGITS)
    if own.below_zero:
        return f"orders a reader's texts the wrong way round ({value}): what is fitted may turn that, or only mend what the numbers do there"
    return f"is not shown to order a reader's texts ({value}): it may only mend what the numbers do there"


def _than(other: str, gain: Estimate, reached: Estimate, where: str) -> str:
    """As `_adds`; but less is said of nothing, since models of other readers lean away from one's own scores where nothing is known: of noise 10 to 35
    of 100 differences are wholly below 0."""
    value = shown(gain, digits=_DIGITS)
    if gain.above_zero and reached.above_zero:
        return f"{value} more than {other}{where}"
    if gain.below_zero:
        return f"which is not more than {other} reaches{where} (difference {value}; fitting alone may make it negative where little is known)"
    return f"which is not shown to be more than {other} reaches (difference {value})"


def _cells(columns: Mapping[str, Estimate]) -> tuple[Cell, ...]:
    return tuple(columns.get(name, _NONE) for name in MEASURES)


def _plain(columns: Mapping[str, Estimate]) -> dict[str, object]:
    return {name: one.model_dump(mode="json") for name, one in columns.items()}
