"""What a judge's probabilities were worth, in points, tables and a sentence; the formulas are `perse.evaluation.calibration.reliability`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perse.evaluation.calibration.reliability import BINS, Promised, calibration_error, chance_errors, reliability_bins
from perse.results.result import Estimate, Point, Table


@dataclass(frozen=True)
class Reliability:
    """What one judge's probabilities were worth: points of the plot, the table, and a sentence."""

    points: tuple[Point, ...]
    tables: tuple[Table, ...]
    sentence: str


def reliability(name: str, given: Promised, *, seed: int = 0, resamples: int = 1000) -> Reliability:
    """The reliability of all labels, and the calibration error beside that of chance."""
    n, size = given.probability.shape
    filled = {one.place: one for one in reliability_bins(given, resamples=resamples, seed=seed)}
    points: list[Point] = []
    rows: list[tuple[Estimate | str | None, ...]] = []
    for place in range(BINS):
        tick = f"{place / BINS:.1f}-{(place + 1) / BINS:.1f}"
        one = filled.get(place)
        if one is None:
            rows.append((tick, "0", None, None))
            continue
        points.append(Point(series=f"{name}: share that is true", x=tick, metric="reliability", estimate=one.true))
        points.append(Point(series="mean P(label)", x=tick, metric="reliability", estimate=one.predicted, baseline=True))
        rows.append((tick, str(one.true.items), one.predicted, one.true))
    error = calibration_error(given.probability, given.truth)
    chance = chance_errors(given.probability, seed=seed)
    usual = float(np.quantile(chance, 0.95))
    right = "not shown to be wrong" if error <= usual else "not right"
    sentence = (
        f"The probabilities of {name} are {right}: over all labels they are off by {error:.3f} on average (ECE), where a judge "
        f"whose probabilities are right would be off by {chance.mean():.3f}, and in 95 of 100 cases by at most {usual:.3f}."
    )
    bins = Table(
        title=f"Reliability of {name}: {n} items, {size} labels each",
        header=("P(label)", "labels", "mean P(label)", "share that is true"),
        rows=tuple(rows),
    )
    errors = Table(
        title="Expected calibration error, all labels",
        header=("judge", "ECE", "if its probabilities were right: mean", "95 of 100 are below"),
        rows=((name, f"{error:.3f}", f"{chance.mean():.3f}", f"{usual:.3f}"),),
        notes=(
            "if right: true labels drawn from the judge's own distributions, item by item, as if items were independent",
            "no interval: resampled items make the error larger than it is; what chance makes of it stands beside it",
        ),
    )
    return Reliability(tuple(points), (errors, bins), sentence)
