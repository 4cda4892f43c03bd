"""Stackings fitted on some readers, and what they say of others: cross-fitting, and one model for every set of sources that is there.

A row is told by the model of the sources that it has, and which was fitted on every row that has these, whatever else it has.

Of the order of rows, models of different parts are brought to one level first. A model that left out lenient readers expects less of everybody, so
of them too, and that alone puts lenient readers below strict ones: pooled as they are, predictions of a source that knows nothing correlate
negatively with the scores (Parker, Guenter and Bedo, 2007, of pooled cross-validated AUC).

Notation: n rows, p features, L labels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from perse.data.evidence.content import parts
from perse.evaluation.stacking.ordinal import Ordinal, fit_ordinal
from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.scale import SCORES
from perse.stacking.sources import SOURCES, Features

NAMES = tuple(chain.from_iterable(SOURCES.values()))
"""Of the features, in the order of columns."""
PARTS = 10
"""Of the readers: each is told by models that were fitted on the other nine."""
_FEWEST_ROWS, _FEWEST_READERS = 20, 5
"""That a set of sources must have for a model of its own."""


@dataclass(frozen=True)
class Rows:
    """Judged examples: features (n, p), NaN where a source is absent; true scores (n,); and whose they are, (n,), 0 to C - 1."""

    features: FloatArray
    gold: FloatArray
    reader: IntArray

    @classmethod
    def of(cls, features: Sequence[Features], gold: FloatArray, reader: IntArray) -> Rows:
        table = np.array([[one.get(name, np.nan) for name in NAMES] for one in features], dtype=np.float64)
        return cls(table.reshape(len(features), len(NAMES)), gold, reader)

    def only(self, chosen: BoolArray) -> Rows:
        return Rows(self.features[chosen], self.gold[chosen], self.reader[chosen])

    def have(self, sources: Iterable[str]) -> BoolArray:
        """(n,): which rows have all of these."""
        return np.asarray(~np.isnan(self.features[:, columns(sources)]).any(axis=1))

    @property
    def sources(self) -> tuple[str, ...]:
        """Those that some row has."""
        return tuple(source for source in SOURCES if self.have([source]).any())


def columns(sources: Iterable[str]) -> list[int]:
    """Of the features of these sources, in the order of `SOURCES`."""
    wanted = set(sources)
    return [NAMES.index(name) for source, names in SOURCES.items() if source in wanted for name in names]


def subsets(sources: Collection[str]) -> list[tuple[str, ...]]:
    """All of them, those with most sources first, in the order of `SOURCES`."""
    known = [source for source in SOURCES if source in sources]
    return [some for size in range(len(known), -1, -1) for some in combinations(known, size)]


class Models:
    """The models of some rows, each fitted when it is first asked for."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._fitted: dict[tuple[str, ...], Ordinal | None] = {}

    def of(self, sources: tuple[str, ...]) -> Ordinal | None:
        """The model of these sources; None where too few rows have them all. None at all is the frequency of each label."""
        if sources not in self._fitted:
            self._fitted[sources] = self._fit(sources)
        return self._fitted[sources]

    def _fit(self, sources: tuple[str, ...]) -> Ordinal | None:
        rows = self._rows.only(self._rows.have(sources))
        if sources and (len(rows.gold) < _FEWEST_ROWS or len(np.unique(rows.reader)) < _FEWEST_READERS):
            return None
        return fit_ordinal(rows.features[:, columns(sources)], rows.gold, labels=_LABELS)

    def tell(self, rows: Rows, sources: Collection[str]) -> FloatArray:
        """The distributions of rows, (n, L), of at most these sources."""
        found = np.full((len(rows.gold), len(_LABELS)), np.nan)
        left = np.ones(len(rows.gold), dtype=bool)
        for some in subsets(sources):
            mine = left & rows.have(some)
            if mine.any() and (model := self.of(some)) is not None:
                found[mine] = model.distributions(rows.features[mine][:, columns(some)])
                left &= ~mine
        return found


_LABELS = np.array(SCORES.values or ())


@dataclass(frozen=True)
class CrossFitted:
    """What models say of each part of the readers that were fitted on all other parts."""

    rows: Rows
    part: IntArray
    """(n,) of each row."""
    models: tuple[Models, ...]
    """Of each part: those that left it out."""

    @classmethod
    def of(cls, rows: Rows, *, seed: int) -> CrossFitted:
        count = int(rows.reader.max()) + 1
        number = min(PARTS, count)
        part = parts(count, number, np.random.default_rng([seed, 4]))[rows.reader]
        return cls(rows, part, tuple(Models(rows.only(part != nth)) for nth in range(number)))

    def tell(self, sources: Collection[str]) -> FloatArray:
        """The distribution of every row, (n, L), of at most these sources."""
        found = np.full((len(self.rows.gold), len(_LABELS)), np.nan)
        for nth, models in enumerate(self.models):
            mine = self.part == nth
            found[mine] = models.tell(self.rows.only(mine), sources)
        return found

    def levels(self, sources: Collection[str]) -> FloatArray:
        """What the models that tell a row expect of all rows on average, (n,): the same throughout a part. It knows the rows' features and no score of
        the part, so taking it off shows nobody their own score."""
        means = [(models.tell(self.rows, sources) @ _LABELS).mean() for models in self.models]
        return np.array(means)[self.part]
