"""Keys and values of prompts already computed, found again by their longest common beginning.

One reader's questions begin with the same instruction and profile, and a score is read after the review that was just
written: in both cases only the tokens beyond the common beginning are computed. Least recently used entries leave when the
budget of bytes is full.
"""

from __future__ import annotations

from collections import OrderedDict

from torch import Tensor
from transformers import DynamicCache

from perse.errors import BadInput
from perse.rendering.prompt import Ids

BUDGET = 2 * 1024**3
"""Bytes of keys and values kept: about 100 prompts of 900 tokens for the embedded model."""


class PrefixCache:
    """Computed prompts by their token ids. `budget` 0 keeps nothing: the slow twin of the tests."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self._entries: OrderedDict[Ids, DynamicCache] = OrderedDict()
        self._bytes = 0

    def longest(self, ids: Ids) -> tuple[DynamicCache, int]:
        """A cache of its own that holds the longest known beginning of `ids`, and that beginning's length.

        At least one token is left to compute, because a forward pass needs something to predict from.
        """
        best: Ids = ()
        length = 0
        for known in self._entries:
            shared = common(known, ids)
            if shared > length:
                best, length = known, shared
        length = min(length, len(ids) - 1)
        if length == 0:
            return DynamicCache(), 0
        self._entries.move_to_end(best)
        return beginning(self._entries[best], length), length

    def keep(self, ids: Ids, cache: DynamicCache) -> None:
        """Remember `cache` as the keys and values of `ids`; the caller must not extend it."""
        if ids in self._entries:
            self._entries.move_to_end(ids)
            return
        size = _bytes(cache)
        if size > self.budget:
            return
        self._entries[ids] = cache
        self._bytes += size
        while self._bytes > self.budget:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= _bytes(oldest)

    def clear(self) -> None:
        """Forget every prompt."""
        self._entries.clear()
        self._bytes = 0


def common(a: Ids, b: Ids) -> int:
    """Number of leading tokens that `a` and `b` share."""
    for at, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return at
    return min(len(a), len(b))


def beginning(cache: DynamicCache, length: int) -> DynamicCache:
    """A copy of the first `length` positions of `cache`."""
    copy = DynamicCache()
    for at, (keys, values) in enumerate(parts(cache)):
        copy.update(keys[:, :, :length], values[:, :, :length], at)
    return copy


def parts(cache: DynamicCache) -> list[tuple[Tensor, Tensor]]:
    """Keys and values (1, heads, T, width) of every layer.

    Raises:
        BadInput: a layer without them (linear attention, state space): its beginnings cannot be cut out.
    """
    found = []
    for layer in cache.layers:
        keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
        if keys is None or values is None:
            raise BadInput(
                f"the embedded engine judges with models that attend in every layer; this one has a {type(layer).__name__}; "
                "serve it with vLLM instead"
            )
        found.append((keys, values))
    return found


def _bytes(cache: DynamicCache) -> int:
    return sum(part.numel() * part.element_size() for layer in parts(cache) for part in layer)
