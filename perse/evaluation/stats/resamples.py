"""Bootstrap resamples as weights: how often each row counts in each resample, and weighted sums of rows for all at once.

A resample draws as many reviewers as there are, with replacement, and all their items go along: one reader's items are not
independent of each other. So a row weighs as often as its reviewer was drawn. In the two-way resamples (the pigeonhole
bootstrap of Owen, 2007, "The pigeonhole bootstrap") items are drawn in the same way and the weight is the product. No resample
is ever built row by row; the tests do that, and find the same values.

Where reviewer and item explain little, two-way resamples spread up to sqrt(3) too far. By how much is told by resamples of the
reviewers alone, of the items alone and of the rows alone, which stand behind the two-way ones (`intervals.two_way_interval`).

Sums go through sparse matrices of scipy rather than BLAS, whose order of additions changes with the number of threads.

Notation: R resamples, C reviewers, I items, n rows, k sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray

SingleArray = npt.NDArray[np.float32]
_EXACT = 2**24
"""Whole numbers below this are exact in float32."""
_DRAWS = 2**18  # held at a time
_OWN_DRAWS = 4096  # so many rows are drawn by themselves; of more, those of different reviewers share draws by chance
_ROWS = 256  # rows whose weights are multiplied out at a time: with 2,000 resamples 2 MB, about what a core's cache holds


def times_drawn(size: int, *, resamples: int, seed: int | tuple[int, ...]) -> SingleArray:
    """How often each of `size` was drawn: (size, R); every resample draws `size` of them, uniformly with replacement."""
    generator = np.random.default_rng(seed)
    times = np.empty((size, resamples), dtype=np.float32)
    step = max(1, _DRAWS // size)
    for start in range(0, resamples, step):
        number = min(step, resamples - start)
        drawn = generator.integers(0, size, (number, size)) + size * np.arange(number)[:, None]
        times[:, start : start + number] = np.bincount(drawn.ravel(), minlength=number * size).reshape(number, size).T
    return times


@dataclass(frozen=True)
class Resamples:
    """Weights of n rows in R resamples; see the module."""

    reviewer: IntArray
    """(n,) the reviewer of each row, 0 to C - 1."""
    drawn: SingleArray
    """(C, R) how often each reviewer was drawn."""
    item: IntArray | None = None
    """(n,) the item of each row, 0 to I - 1; None: only reviewers are resampled."""
    items_drawn: SingleArray | None = None
    """(I, R) how often each item was drawn."""
    row: IntArray | None = None
    """(n,) the draw of each row by itself, 0 to K - 1; a reviewer's rows have different ones."""
    rows_drawn: SingleArray | None = None
    """(K, R)"""
    both: int = 0
    """So many resamples, the first, draw reviewers and items both; of the rest a third each draws reviewers, items and rows. 0: all
    draw reviewers."""

    @classmethod
    def two_way(cls, reviewer: IntArray, item: IntArray, *, resamples: int, seed: int) -> Resamples:
        """`resamples` of both, and half as many each of reviewers, items and rows alone.

        Args:
            reviewer, item: (n,), 0 to C - 1 and 0 to I - 1.
        """
        alone = resamples // 2
        sizes, own = (int(reviewer.max()) + 1, int(item.max()) + 1), _own_draws(reviewer, item, seed=seed)
        reviewers, items = (times_drawn(size, resamples=resamples + alone, seed=(seed, n)) for n, size in enumerate(sizes))
        rows = times_drawn(int(own.max()) + 1, resamples=alone, seed=(seed, 2))

        def once(size: int, number: int) -> SingleArray:
            return np.ones((size, number), dtype=np.float32)

        return cls(
            reviewer,
            np.hstack([reviewers, once(sizes[0], 2 * alone)]),
            item,
            np.hstack([items[:, :resamples], once(sizes[1], alone), items[:, resamples:], once(sizes[1], alone)]),
            own,
            np.hstack([once(len(rows), resamples + 2 * alone), rows]),
            both=resamples,
        )

    @property
    def number(self) -> int:
        """R."""
        return int(self.drawn.shape[1])

    def only(self, chosen: BoolArray) -> Resamples:
        """The same resamples of the `chosen` rows, (n,)."""
        item, row = (None if own is None else own[chosen] for own in (self.item, self.row))
        return replace(self, reviewer=self.reviewer[chosen], item=item, row=row)

    def of_reviewers(self, reviewers: IntArray) -> Resamples:
        """The same draws of one row for each of `reviewers`."""
        return Resamples(reviewers, self.drawn)

    def split(self, size: int) -> Iterator[Resamples]:
        """The resamples in runs of `size`."""
        if size >= self.number:
            yield self
            return
        for start in range(0, self.number, size):
            part = slice(start, start + size)
            drawn, items, rows = (
                None if times is None else np.ascontiguousarray(times[:, part])
                for times in (self.drawn, self.items_drawn, self.rows_drawn)
            )
            assert drawn is not None
            yield replace(self, drawn=drawn, items_drawn=items, rows_drawn=rows)

    def weights(self, rows: IntArray) -> SingleArray:
        """(len(rows), R) weights of `rows`."""
        return self.weights_within(rows, weight=self.drawn[self.reviewer[rows]])

    def weights_within(self, rows: IntArray, *, weight: SingleArray | None = None) -> SingleArray:
        """The same without the draws of reviewers, for `rows` of any shape; times `weight`, if given, which is overwritten."""
        if weight is None:
            weight = np.ones((*rows.shape, self.number), dtype=np.float32)
        for own, times in ((self.item, self.items_drawn), (self.row, self.rows_drawn)):
            if own is not None and times is not None:
                weight *= times[own[rows]]
        return weight

    def present(self, resample: int) -> BoolArray:
        """(n,): whether a row is in the resample at all."""
        here: BoolArray = self.drawn[self.reviewer, resample] > 0
        for own, times in ((self.item, self.items_drawn), (self.row, self.rows_drawn)):
            if own is not None and times is not None:
                here &= times[own, resample] > 0
        return here

    def sums(self, values: FloatArray) -> FloatArray:
        """Weighted sums over the rows: (k, n) values -> (k, R)."""
        if self.item is None:
            size = len(self.drawn)
            of_reviewers = [np.bincount(self.reviewer, weights=row, minlength=size) for row in values]
            return _sums(np.stack(of_reviewers).astype(np.float64), lambda part: self.drawn[part], number=self.number)
        return _sums(values, lambda part: self.weights(np.arange(part.start, part.stop)), number=self.number)

    def totals(self) -> FloatArray:
        """Weight of all rows: (R,)."""
        total: FloatArray = self.sums(np.ones((1, len(self.reviewer))))[0]
        return total

    def tables(self, of_row: IntArray, cells: int) -> FloatArray:
        """Weighted contingency tables: `of_row` (n,) names each row's cell -> (R, cells)."""
        groups = Groups.of(of_row, cells)
        return np.ascontiguousarray(self.groups(groups, dtype=np.float64).T)

    def groups(self, groups: Groups, *, dtype: type[np.floating]) -> FloatArray:
        """Weight of each of k groups of rows: (k, R). float32 is exact while the weights add up to less than 2**24."""
        rows = groups.rows
        if len(rows) == groups.number and (groups.starts[1:] > groups.starts[:-1]).all():
            return self.weights(rows).astype(dtype, copy=False)
        if self.item is None:
            of_reviewers: FloatArray = groups.members(self.reviewer[rows], len(self.drawn), dtype=dtype) @ self.drawn
            return of_reviewers
        total = np.zeros((groups.number, self.number), dtype=dtype)
        for start in range(0, len(rows), _ROWS):
            part = slice(start, min(start + _ROWS, len(rows)))
            here = Groups(rows[part], np.clip(groups.starts, part.start, part.stop) - part.start)
            size = len(here.rows)
            total += here.members(np.arange(size), size, dtype=dtype) @ self.weights(here.rows)
        return total


@dataclass(frozen=True)
class Groups:
    """Rows group by group: those of group g are `rows[starts[g]:starts[g + 1]]`."""

    rows: IntArray
    starts: IntArray

    @classmethod
    def of(cls, of_row: IntArray, number: int) -> Groups:
        """`of_row` (n,) names each row's group, 0 to `number` - 1."""
        rows = np.argsort(of_row, kind="stable")
        return cls(rows, np.searchsorted(of_row[rows], np.arange(number + 1)))

    @property
    def number(self) -> int:
        """k."""
        return len(self.starts) - 1

    def part(self, groups: slice) -> Groups:
        """Some of the groups, concatenated."""
        starts = self.starts[groups.start : groups.stop + 1]
        return Groups(self.rows[starts[0] : starts[-1]], starts - starts[0])

    def members(self, places: IntArray, width: int, *, dtype: type[np.floating]) -> sparse.csr_matrix:
        """(k, width): 1 where one of the group's rows has its place; `places` belong to `rows`. Times values, their sums."""
        return sparse.csr_matrix((np.ones(len(places), dtype=dtype), places, self.starts), shape=(self.number, width))


def _own_draws(reviewer: IntArray, item: IntArray, *, seed: int) -> IntArray:
    """(n,) a draw for each row, 0 to K - 1: another for each row of a reviewer, and by chance else, however rows are ordered."""
    generator = np.random.default_rng((seed, 3))
    place = generator.random(int(item.max()) + 1)[item] + generator.random(int(reviewer.max()) + 1)[reviewer]
    order = np.lexsort((place % 1, reviewer))
    size = min(len(reviewer), max(_OWN_DRAWS, int(np.bincount(reviewer).max())))
    own = np.empty(len(reviewer), dtype=np.int64)
    own[order] = np.arange(len(reviewer)) % size
    return own


def exact_type(totals: FloatArray) -> type[np.floating]:
    """The quickest precision in which sums of whole numbers up to `totals` are exact."""
    return np.float32 if totals.max(initial=0) < _EXACT else np.float64


def _sums(values: FloatArray, weights: Callable[[slice], SingleArray], *, number: int) -> FloatArray:
    """(k, m) values times (m, R) weights, a cache full of these at a time."""
    total = np.zeros((len(values), number))
    for start in range(0, values.shape[1], _ROWS):
        part = slice(start, min(start + _ROWS, values.shape[1]))
        total += sparse.csr_matrix(values[:, part]) @ weights(part).astype(np.float64)
    return total
