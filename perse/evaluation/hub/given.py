"""What a metric of `evaluate` is given, as arrays, or refused: a NaN would leave its reader out, and whoever fails would look better.

`evaluate` makes NaN of None, so what was not answered comes as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import fsum, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perse.errors import BadInput
from perse.scale import Scale

_OFF_ONE = 1e-3
"""By how much the probabilities of all labels may miss 1: they were rounded, or of another precision."""


def finite(given: Sequence[float], name: str) -> NDArray[np.float64]:
    """The numbers given as `name`, (n,).

    Raises:
        BadInput: one is NaN, infinite, or none.
    """
    numbers = np.array(given, dtype=np.float64)
    if (odd := np.flatnonzero(~np.isfinite(numbers))).size:
        raise BadInput(
            f"{name} has {numbers[odd[0]]} at place {odd[0] + 1}, expected finite numbers; leave out what was not answered, and say how "
            "much that was"
        )
    return numbers


def scale_of(labels: Sequence[Any]) -> Scale:
    """Numbers as the labels of a scale.

    Raises:
        BadInput: they are fewer than two, no finite numbers, or not in ascending order.
    """
    numbers = [one for one in labels if isinstance(one, int | float | np.number) and isfinite(one)]
    ascending = all(low < high for low, high in pairwise(numbers))
    if not ascending or len(numbers) != len(labels) or len(labels) < 2:
        raise BadInput(f"labels are {list(labels)!r:.100}, expected two finite numbers or more in ascending order")
    return Scale("labels", tuple(f"{value:g}" for value in numbers), tuple(map(float, numbers)))


def distributions(given: Sequence[Sequence[float]], scale: Scale, name: str) -> NDArray[np.float64]:
    """Probabilities of all labels of `scale`, (n, L).

    Raises:
        BadInput: one has another number of labels, or is no distribution.
    """
    for place, one in enumerate(given, start=1):
        size = len(one) if one is not None else 0
        if size != len(scale.labels):
            raise BadInput(
                f"{name} has {size} probabilities at place {place}, expected one for each of {len(scale.labels)} labels"
            )
    found = np.array(given, dtype=np.float64)
    fits = np.array([_sums_to_one(one.tolist()) for one in found], dtype=bool)
    if (odd := np.flatnonzero(~fits)).size:
        raise BadInput(
            f"{name} has {found[odd[0]].tolist()!r:.100} at place {odd[0] + 1}, expected probabilities of 0 and more that sum to 1; leave out "
            "what was not answered, and say how much that was"
        )
    return found


def _sums_to_one(one: Sequence[float]) -> bool:
    return all(0 <= each <= 1 + _OFF_ONE for each in one) and abs(fsum(one) - 1) <= _OFF_ONE
