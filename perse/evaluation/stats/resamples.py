"""Bootstrap resamples as weights: how often each row counts in each resample, and weighted sums of rows for all at once.

A resample draws as many reviewers as there are, with replacement, and all their items go along: one reader's items are not
independent of each other. So a row weighs as often as its reviewer was drawn. In the two-way resamples (the pigeonhole
bootstrap of Owen, 2007, "The pigeonhole bootstrap") items are drawn in the same way and the weight is the product. No resample
is ever built row by row; the tests do that, and find the same values.

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

    @property
    def number(self) -> int:
        """R."""
        return int(self.drawn.shape[1])

    def only(self, chosen: BoolArray) -> Resamples:
        """The same resamples of the `chosen` rows, (n,)."""
        return replace(self, reviewer=self.reviewer[chosen], item=None if self.item is None else self.item[chosen])

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
            items = None if self.items_drawn is None else np.ascontiguousarray(self.items_drawn[:, part])
            yield replace(self, drawn=np.ascontiguousarray(self.drawn[:, part]), items_drawn=items)

    def weights(self, rows: IntArray) -> SingleArray:
        """(len(rows), R) weights of `rows`."""
        weight = self.drawn[self.reviewer[rows]]
        if self.item is not None and self.items_drawn is not None:
            weight *= self.items_drawn[self.item[rows]]
        return weight

    def present(self, resample: int) -> BoolArray:
        """(n,): whether a row is in the resample at all."""
        here: BoolArray = self.drawn[self.reviewer, resample] > 0
        if self.item is not None and self.items_drawn is not None:
            here &= self.items_drawn[self.item, resample] > 0
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
