"""What a judge's probabilities were worth, in points, tables and a sentence; the formulas are `perse.evaluation.calibration.reliability`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perse.evaluation.calibration.reliability import (
    BINS,
    Bin,
    Promised,
    calibration_error,
    chance_errors,
    off_by_chance,
    reliability_bins,
    reliability_by_label,
)
from perse.evaluation.stats.intervals import FEWEST_REVIEWERS, LEVEL
from perse.evaluation.stats.shares import share_note
from perse.evaluation.verdict import ON_THESE_TEXTS
from perse.results.result import Estimate, Point, Table
from perse.results.words import telling_apart

Cells = tuple[Estimate | str | None, ...]


@dataclass(frozen=True)
class Reliability:
    """What one judge's probabilities were worth: points of the plot, the tables, and a sentence."""

    points: tuple[Point, ...]
    tables: tuple[Table, ...]
    sentence: str


def reliability(
    name: str, given: Promised, *, of_these_texts: bool = False, seed: int = 0, resamples: int = 1000
) -> Reliability:
    """The reliability of P(at most k), and the calibration error beside that of chance.

    Args:
        of_these_texts: whether readers share texts that are too few to be drawn, so that of other texts nothing is known.
    """
    two = len(given.labels) == 2
    what = f"P({given.labels[0]})" if two else "P(at most k)"
    bins = {one.place: one for one in reliability_bins(given, resamples=resamples, seed=seed)}
    ticks = [f"{place / BINS:.1f}-{(place + 1) / BINS:.1f}" for place in range(BINS)]
    points: list[Point] = []
    for place, one in bins.items():
        points.append(Point(series=f"{name}: how often it was so", x=ticks[place], metric="reliability", estimate=one.true))
        points.append(Point(series=f"mean {what}", x=ticks[place], metric="reliability", estimate=one.predicted, baseline=True))
    steps = reliability_by_label(given, resamples=resamples, seed=seed)
    tables = [_by_bin(name, given, what, [(tick, bins.get(place)) for place, tick in enumerate(ticks)])]
    if not two:
        tables.append(_by_label([(given.labels[one.place], one) for one in steps]))
    error, chance = calibration_error(given), chance_errors(given, seed=seed)
    readers = int(given.reviewer.max()) + 1
    usual = float(np.quantile(chance, LEVEL))
    over = "" if two else f", the mean over {len(given.labels) - 1} values of k"
    digits = telling_apart(error, usual)
    off = f"{what} is off by {error:.{digits}f} on average (ECE{over})"
    if readers < FEWEST_REVIEWERS:
        sentence = f"{off} for {name}; {readers} readers are too few to say whether its probabilities are right."
    else:
        right = (
            "not shown to be wrong" if off_by_chance(given, chance) else f"not right{ON_THESE_TEXTS if of_these_texts else ''}"
        )
        whose = "readers" if given.text is None else "readers and texts"
        sentence = (
            f"The probabilities of {name} are {right}: {off}, where chance makes {chance.mean():.{digits}f} of right ones with these "
            f"{whose}, and in 95 of 100 cases at most {usual:.{digits}f}."
        )
    errors = Table(
        title=f"Expected calibration error of {what}",
        header=("judge", "ECE", "if its probabilities were right: mean", "95 of 100 are below"),
        rows=((name, *(f"{number:.{digits}f}" for number in (error, chance.mean(), usual))),),
        notes=(
            "if right: what was promised minus what came true changes its sign for a random half of the readers, all items of a "
            f"reader together{'' if given.text is None else ', and of the texts, all items about one together'}; or truths are drawn from the "
            "probabilities, item by item, where that makes more of chance",
            "no interval: resampled items make the error larger than it is; what chance makes of it stands beside it",
            "right on average is not informative: who gives everybody the shares of the data is right, too",
        ),
    )
    return Reliability(tuple(points), (errors, *tables), sentence)


def _by_bin(name: str, given: Promised, what: str, bins: list[tuple[str, Bin | None]]) -> Table:
    n, size = given.probability.shape
    of_each = "" if size == 2 else f", {size - 1} values of k each"
    rows: list[Cells] = [
        (tick, str(one.true.items), one.predicted, one.true) if one else (tick, "0", None, None) for tick, one in bins
    ]
    return Table(
        title=f"Reliability of {name}: {n} items{of_each}",
        header=(what, "how many", f"mean {what}", "how often it was so"),
        rows=tuple(rows),
        notes=(share_note(),),
    )


def _by_label(steps: list[tuple[str, Bin]]) -> Table:
    rows: list[Cells] = [(label, one.predicted, one.true) for label, one in steps]
    return Table(
        title="By k, over all items",
        header=("k", "mean P(at most k)", "how often it was at most k"),
        rows=tuple(rows),
        notes=(share_note(),),
    )
