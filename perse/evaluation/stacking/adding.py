"""What each source adds to all others, on readers whom the models were not fitted on.

The stacking without a source is fitted anew and told of the same rows; the difference has an interval from resampled readers (and texts, where
readers share them). A source that says nothing makes the others a little worse, as whatever is fitted to noise does: its difference then lies
around 0 or just below. It lies above where many readers share few texts, for models leave out readers and no texts: what noise says of these
texts is learned from some readers and comes true for others. Then only an interval of resampled texts holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from perse.evaluation.calibration.reliability import Promised, calibration_error, chance_errors, nearest_label, off_by_chance
from perse.evaluation.stacking.chance import fitted_errors
from perse.evaluation.stacking.crossing import CrossFitted, Rows
from perse.evaluation.stats.correlation import BoolArray, FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import LEVEL
from perse.evaluation.stats.ordinal import rps_values
from perse.progress import OnProgress, counted, unseen
from perse.results.result import Estimate, Interval
from perse.scale import SCORES
from perse.stacking.sources import BIAS, CONTENT, IN_WORDS, JUDGE, OTHERS

ORDERS = ("kendall", "within_kendall")
MEASURES = (*ORDERS, "mae", "rps")
ALL, WITHOUT_JUDGE = "stacked", "stacked, without the language model"
PROFILE_AVERAGE = "profile average"
FREQUENCIES = "how often each score is given"
_ALONE = " alone, fitted"
SEEN, NEW = "texts that training readers scored", "other texts"
NOT_SCORED = "training readers scored none of these texts"
"""Why other readers' scores have no value of new texts: what stands there for them knows nothing but how often each score is given."""
_SIMPLER = (WITHOUT_JUDGE, IN_WORDS[BIAS], PROFILE_AVERAGE, f"{IN_WORDS[CONTENT]}{_ALONE}")
"""Rows over which a stacking's gain is told of each kind of texts."""
_DIGITS = 9
"""Decimals of expected scores: those that differ by floating-point error only are ties."""


@dataclass(frozen=True)
class Told:
    """One row: expected scores (n,) and, where they are known, distributions (n, L)."""

    name: str
    values: FloatArray
    distributions: FloatArray | None = None
    levels: FloatArray | None = None
    """What the model of each value expects on average, (n,), where several models tell them; None: one does."""

    @classmethod
    def of(cls, name: str, distributions: FloatArray) -> Told:
        return cls(name, np.round(distributions @ np.array(SCORES.values or ()), _DIGITS), distributions)

    @classmethod
    def by(cls, cross: CrossFitted, sources: Collection[str], name: str = "") -> Told:
        """What is cross-fitted by these sources."""
        return replace(cls.of(name, cross.tell(sources)), levels=cross.levels(sources))

    def only(self, chosen: BoolArray) -> Told:
        """The same of the `chosen` rows."""
        distributions = None if self.distributions is None else self.distributions[chosen]
        return replace(
            self,
            values=self.values[chosen],
            distributions=distributions,
            levels=None if self.levels is None else self.levels[chosen],
        )

    @property
    def order(self) -> FloatArray:
        """The values at one level, (n,), of which correlations are (`crossing`); errors are of the values as they are."""
        return self.values if self.levels is None else np.round(self.values - self.levels, _DIGITS)


Estimates = Mapping[str, Estimate]
"""By measure."""


@dataclass(frozen=True)
class Kind:
    """Levels by row, and what the stacking gains over simpler rows, of one kind of texts."""

    levels: Mapping[str, Estimates]
    over: Mapping[tuple[str, str], Estimates]


@dataclass(frozen=True)
class Calibrated:
    """How far the probabilities of one row are off, and how far right ones would be in 95 of 100 draws of chance: of a judge as it stands as
    `calibration.reliability` draws them, of what is fitted here as `fitted_errors` does."""

    error: float
    """The class-wise expected calibration error (`perse.evaluation.calibration.reliability`)."""
    usual: float
    right: bool
    """That nothing shows them to be wrong."""

    @classmethod
    def of(
        cls, gold: FloatArray, told: FloatArray, bootstrap: Bootstrap, chance: Callable[[Promised], FloatArray]
    ) -> Calibrated:
        """Of the distributions (n, L) of true scores (n,), with the errors that right ones may have."""
        place = nearest_label(gold, np.array(SCORES.values or ()))
        given = Promised(SCORES.labels, told, place, bootstrap.reviewer, bootstrap.resamples.item)
        errors = chance(given)
        return cls(calibration_error(given), float(np.quantile(errors, LEVEL)), off_by_chance(given, errors))


@dataclass(frozen=True)
class Measured:
    """Levels by row, and what is gained by each source and over each simpler rule; both by measure, gains above 0 being better."""

    levels: Mapping[str, Estimates]
    added: Mapping[str, Estimates]
    """By source."""
    over: Mapping[tuple[str, str], Estimates]
    """Of one row over another."""
    apart: Mapping[str, Kind]
    """Of the texts that training readers scored (`SEEN`) and of others (`NEW`); empty where all are of one kind."""
    calibrated: Mapping[str, Calibrated]
    """By row, of those that have distributions of all examples and are no single source, fitted."""


def measure(
    cross: CrossFitted, raw: Sequence[Told], bootstrap: Bootstrap, *, seed: int = 0, on_progress: OnProgress = unseen
) -> Measured:
    """Measure a stacking.

    Args:
        raw: what single sources say as they stand.
        bootstrap: of the rows.
        seed: of what chance makes of calibration.
        on_progress: told how many sources are left out.
    """
    gold, sources = cross.rows.gold, cross.rows.sources
    whole = Told.by(cross, sources, ALL)
    rows, added = [whole], {}
    for source in counted(sources, on_progress):
        without = Told.by(cross, [one for one in sources if one != source], f"without {source}")
        added[source] = gains(gold, whole, without, bootstrap)
        if source == JUDGE:
            rows.append(replace(without, name=WITHOUT_JUDGE))
    rows += [Told.by(cross, [source], alone(source)) for source in sources]
    rows += raw
    best = rows[1] if JUDGE in sources else whole
    simpler = [one for one in rows if one.name in (alone(BIAS), IN_WORDS[BIAS])]
    over = {(best.name, one.name): gains(gold, best, one, bootstrap) for one in simpler}
    fitted = {ALL: sources, FREQUENCIES: ()}
    if JUDGE in sources:
        fitted[WITHOUT_JUDGE] = tuple(one for one in sources if one != JUDGE)
    calibrated = {
        name: Calibrated.of(gold, cross.tell(some), bootstrap, partial(fitted_errors, cross, some, seed=seed))
        for name, some in fitted.items()
    }
    calibrated |= {
        one.name: Calibrated.of(gold, one.distributions, bootstrap, partial(chance_errors, seed=seed))
        for one in raw
        if one.distributions is not None and np.isfinite(one.distributions).all()
    }
    return Measured(
        levels={one.name: levels(gold, one, bootstrap) for one in rows},
        added=added,
        over=over,
        apart=by_kind(cross.rows, rows, bootstrap),
        calibrated=calibrated,
    )


def by_kind(rows: Rows, told: Sequence[Told], bootstrap: Bootstrap) -> dict[str, Kind]:
    """Of the examples whose text training readers scored, and of the others; nothing where one kind has none.

    Args:
        told: all rows, the stacking first.
    """
    seen = rows.have([OTHERS])
    if seen.all() or not seen.any():
        return {}
    return {kind: _kind(kind, rows.gold, told, bootstrap, chosen) for kind, chosen in ((SEEN, seen), (NEW, ~seen))}


def _kind(kind: str, gold: FloatArray, told: Sequence[Told], bootstrap: Bootstrap, chosen: BoolArray) -> Kind:
    part, scores = bootstrap.only(chosen), gold[chosen]
    whole, *others = (one.only(chosen) for one in told)
    found = {one.name: levels(scores, one, part) for one in (whole, *others)}
    if kind == NEW and alone(OTHERS) in found:
        none = Estimate(value=None, interval=Interval(reason=f"undefined ({NOT_SCORED})"), items=int(chosen.sum()))
        found[alone(OTHERS)] = dict.fromkeys(MEASURES, none)
    simpler = [one for one in others if one.name in _SIMPLER]
    return Kind(found, {(whole.name, one.name): gains(scores, whole, one, part) for one in simpler})


def alone(source: str) -> str:
    """The name of the row of one source, fitted."""
    return f"{IN_WORDS[source]}{_ALONE}"


def levels(gold: FloatArray, told: Told, bootstrap: Bootstrap) -> dict[str, Estimate]:
    """`MEASURES` of a row; no RPS where it has no distributions."""
    found = {name: bootstrap.one(name, gold, told.order) for name in ORDERS}
    found["mae"] = bootstrap.one("mae", gold, told.values)
    if told.distributions is not None:
        known = ~np.isnan(told.values)
        found["rps"] = bootstrap.mean(np.where(known, rps_values(gold, told.distributions), 0.0), known)
    return found


def gains(gold: FloatArray, one: Told, other: Told, bootstrap: Bootstrap) -> dict[str, Estimate]:
    """By how much `one` is better than `other`, on the rows that both tell, in each of `MEASURES`; errors that fall are gains."""
    found = {name: bootstrap.difference(name, gold, one.order, other.order) for name in ORDERS}
    found["mae"] = bootstrap.difference("mae", gold, other.values, one.values)
    if one.distributions is not None and other.distributions is not None:
        known = ~np.isnan(one.values) & ~np.isnan(other.values)
        apart = rps_values(gold, other.distributions) - rps_values(gold, one.distributions)
        mean = bootstrap.mean(np.where(known, apart, 0.0), known)
        sides = ((1.0, other.values[known]), (-1.0, one.values[known]))
        interval = bootstrap.only(known).unless_few_differ(mean.interval, "rps", gold[known], sides=sides)
        found["rps"] = mean.model_copy(update={"difference": True, "interval": interval})
    return found
