"""Near-duplicate texts, which differ by a few words: an exact test of two texts, and a fast search among a million.

Two texts are near-duplicates if the Jaccard similarity of their sets of 5-word shingles, once `normalised`, is 0.8 or more: one
word changed in the middle of 60 is near (51 of 61 shingles shared), in the middle of 30 is not. Texts of fewer than 8 words
are compared exactly, as they have too few shingles for a meaningful share.

`near_groups` compares only pairs that MinHash puts into one bucket. The comparison is exact, so nothing is grouped that is not
near; the trade-off is that a near pair can be missed. With 32 bands of 4 hashes, a pair of similarity j is missed with
probability (1 - j^4)^32: 5e-8 at j = 0.8, 1e-15 at 0.9. `near_across`, for the leak check, misses none.

rensa makes the MinHashes, 10 times faster than datasketch, from 64-bit shingle hashes that are computed here: the same in every
process, and another version of rensa could at most miss other pairs. A million texts of 100 words take a minute on one core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perse.errors import BadInput
from perse.identity import normalised
from perse.installing import install

SHINGLE = 5
"""Words in a shingle."""

FEWEST_WORDS = 8
"""Texts with fewer words are compared exactly."""

BANDS, ROWS = 32, 4

_BATCH = 2_000_000  # characters; some 50 bytes of working memory each
_SEED = 1
_PRINT_BITS = 512
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]


def near_duplicate(a: str, b: str) -> bool:
    """Whether two texts are the same when normalised, or share at least 4 of 5 of all their shingles. Exact."""
    one, two = normalised(a), normalised(b)
    return one == two or _similar(shingles(one), shingles(two))


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """The distinct runs of 5 words of a normalised `text`; none if it has fewer than 8 words."""
    words = text.split(" ")
    if len(words) < FEWEST_WORDS:
        return frozenset()
    return frozenset(zip(*(words[place:] for place in range(SHINGLE)), strict=False))


def _similar(one: frozenset[tuple[str, ...]], two: frozenset[tuple[str, ...]]) -> bool:
    # shared / (all - shared) >= 4 / 5 without a fraction, so that exactly 0.8 counts.
    return bool(one and two) and 9 * len(one & two) >= 4 * (len(one) + len(two))


def near_groups(texts: Sequence[str]) -> list[int]:
    """The group of each text, numbered from 0 in order of first appearance.

    Near-duplicates share a group, directly or through others, so two texts of a group need not be near each other. The groups
    do not depend on the order of `texts`. Memory: about 500 bytes for each text and a normalised copy.

    Raises:
        BadInput: rensa is not installed.
    """
    first: dict[str, int] = {}
    places = [first.setdefault(normalised(text), len(first)) for text in texts]
    distinct = list(first)
    parent = list(range(len(distinct)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def same(one: int, two: int) -> bool:
        """Whether they are in one group, putting them there if they are near."""
        if root(one) != root(two) and _similar(shingles(distinct[one]), shingles(distinct[two])):
            parent[root(one)] = root(two)
        return root(one) == root(two)

    bands, pictures = _signatures(distinct)
    for bucket in _buckets(bands, np.flatnonzero(pictures.counts)):
        # One text after the other takes those near to it out of the bucket: a bucket of n copies costs n comparisons.
        left = bucket if len({root(one) for one in bucket.tolist()}) > 1 else bucket[:0]
        while len(left) > 1:
            front, left = [int(left[0])], left[1:]
            while front and len(left):
                one = front.pop()
                near = [place for place in np.flatnonzero(pictures.may_be_near(one, left)) if same(one, int(left[place]))]
                front += left[near].tolist()
                left = np.delete(left, near)
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(place), len(numbers)) for place in places]


def near_across(known: Iterable[str], asked: Iterable[str]) -> dict[str, str]:
    """The texts of `asked` that are near-duplicates of one of `known`, or equal to it, each with the first such one; an equal text is
    named before a near one. Exact (see `NearIndex`)."""
    first: dict[str, str] = {}
    for text in known:
        first.setdefault(normalised(text), text)
    index = NearIndex(first)
    near = ((text, next(places, None)) for text, places in index.near(asked))
    return {text: first[index.texts[place]] for text, place in near if place is not None}


class NearIndex:
    """Texts among which near-duplicates of other texts are found: exact, and without MinHash, so that it finds what `near_groups` may miss.

    Of two sets with 4 of 5 elements in common, both listed in one order, the first fifth of one and of the other share an element. The order is
    rarest shingle first, so a sentence that thousands of texts have in common makes no candidates. Memory: about 1 kB for each text of
    100 words, and a normalised copy.
    """

    def __init__(self, known: Iterable[str]) -> None:
        self.texts: Sequence[str] = [*dict.fromkeys(map(normalised, known))]
        """Distinct and normalised; `near` gives places in it."""
        self._places = {text: place for place, text in enumerate(self.texts)}
        # How often a shingle occurs, as near as a table of 2^20 counters can say; any order is right, a rare-first one fast.
        self._often = np.zeros(2**20, np.int64)
        for _, hashes, _ in hashed(self.texts):
            self._often += np.bincount((hashes >> np.uint64(44)).astype(np.int64), minlength=len(self._often))
        heads, owners = _heads(self.texts, self._often)
        order = np.argsort(heads, kind="stable")
        self._heads, self._owners = heads[order], owners[order]

    def place(self, text: str) -> int:
        """Of one of the texts, in `texts`."""
        return self._places[normalised(text)]

    def near(self, asked: Iterable[str]) -> Iterator[tuple[str, Iterator[int]]]:
        """Each distinct text of `asked` with the places of the texts that it is equal or near to: the equal one first, then in their order."""
        plain = {text: normalised(text) for text in asked}
        mine, whose = _heads(plain.values(), self._often)
        starts, ends = np.searchsorted(self._heads, mine, "left"), np.searchsorted(self._heads, mine, "right")
        candidates: dict[int, set[int]] = {}
        for place in np.flatnonzero(ends > starts):
            candidates.setdefault(int(whose[place]), set()).update(self._owners[starts[place] : ends[place]].tolist())
        for number, (text, words) in enumerate(plain.items()):
            yield text, self._near(words, candidates.get(number, set()))

    def _near(self, words: str, candidates: set[int]) -> Iterator[int]:
        equal = self._places.get(words)
        if equal is not None:
            yield equal
        own = shingles(words) if candidates else frozenset()
        yield from (one for one in sorted(candidates - {equal}) if _similar(own, shingles(self.texts[one])))


def _heads(texts: Iterable[str], often: Places) -> tuple[Hashes, Places]:
    """The rarest fifth of each text's distinct shingles, and one more: (hashes, the text of each by its place in `texts`)."""
    parts: list[tuple[Hashes, Places]] = []
    start = 0
    for count, hashes, owners in hashed(texts):
        order = np.lexsort((hashes, often[hashes >> np.uint64(44)], owners))
        hashes, owners = hashes[order], owners[order]
        fresh = np.append(True, (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1]))[: len(hashes)]
        hashes, owners = hashes[fresh], owners[fresh]
        sizes = np.bincount(owners, minlength=count)
        ranks = np.arange(len(owners)) - (np.cumsum(sizes) - sizes)[owners]
        head = ranks <= sizes[owners] - (4 * sizes[owners] + 4) // 5
        parts.append((hashes[head], owners[head] + start))
        start += count
    parts.append((np.zeros(0, np.uint64), np.zeros(0, np.int64)))
    return np.concatenate([hashes for hashes, _ in parts]), np.concatenate([owners for _, owners in parts])


@dataclass(frozen=True)
class Prints:
    """A small sketch of each text that can rule out near-duplicates, but never prove them."""

    bits: Hashes  # (texts, 8): which of 512 places the shingles' hashes fall on
    counts: Places  # (texts,): shingles, repeated ones included; 0 for texts of fewer than 8 words

    def may_be_near(self, one: int | Sequence[int] | Places, two: Sequence[int] | Places) -> npt.NDArray[np.bool_]:
        """For each pair of places in `one` and `two`, False where the texts' shingles are less similar than 0.8.

        At 0.8 two sets of a and b shingles differ in at most (a + b) / 9 of them, and each of those changes at most one bit.
        """
        apart = np.bitwise_count(self.bits[one] ^ self.bits[two]).sum(axis=-1, dtype=np.int64)
        a, b = self.counts[one], self.counts[two]
        near: npt.NDArray[np.bool_] = (a > 0) & (b > 0) & (9 * apart <= a + b)
        return near


def prints(texts: Iterable[str]) -> Prints:
    """The `Prints` of normalised texts: 72 bytes each."""
    return _joined([_prints(hashes, owners, count) for count, hashes, owners in hashed(texts)])


def hashed(texts: Iterable[str]) -> Iterator[tuple[int, Hashes, Places]]:
    """Batches of normalised texts as (how many texts, the hash of every shingle, the text of each by its place in the batch).

    Equal shingles have equal hashes. A shingle's bytes are the digits of a number, and the hash is its remainder modulo 2^64,
    mixed: with running sums over the batch's bytes, that is a subtraction for each shingle, whatever its length.
    """
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size > _BATCH:
            yield _hashed(batch)
            batch, size = [], 0
    if batch:
        yield _hashed(batch)


def _hashed(texts: Sequence[str]) -> tuple[int, Hashes, Places]:
    encoded = np.frombuffer("\n".join([*texts, ""]).encode("utf-8", "surrogatepass"), np.uint8)
    ends = np.flatnonzero((encoded == ord(" ")) | (encoded == ord("\n")))  # (words,)
    words = np.diff(np.flatnonzero(encoded[ends] == ord("\n")), prepend=-1)  # (texts,)
    counts = np.where(words < FEWEST_WORDS, 0, words - SHINGLE + 1)  # (texts,)
    owners = np.repeat(np.arange(len(texts)), counts)  # (shingles,)
    before = np.cumsum(counts) - counts
    firsts = (np.cumsum(words) - words - before)[owners] + np.arange(len(owners))  # (shingles,): its first word
    # One byte is worth base^place; the wrap-around of unsigned arithmetic is the modulus.
    worth = _powers(_BASE, len(encoded))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum((encoded + np.uint64(1)) * worth, dtype=np.uint64)])
    starts = np.where(firsts > 0, ends[firsts - 1] + 1, 0)
    hashes = (sums[ends[firsts + SHINGLE - 1]] - sums[starts]) * _powers(pow(_BASE, -1, 2**64), len(encoded))[starts]
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):  # the finisher of MurmurHash3: every bit depends on every bit
        hashes = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(factor)
    return len(texts), hashes ^ (hashes >> np.uint64(33)), owners


def _powers(base: int, count: int) -> Hashes:
    powers = np.full(count, base, np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)


def _prints(hashes: Hashes, owners: Places, count: int) -> Prints:
    on = np.zeros((count, _PRINT_BITS), bool)
    on[owners, (hashes >> np.uint64(48)) % np.uint64(_PRINT_BITS)] = True
    return Prints(np.packbits(on, axis=1).view(np.uint64), np.bincount(owners, minlength=count))


def _signatures(texts: Sequence[str]) -> tuple[Hashes, Prints]:
    """For each normalised text a hash for each band, (texts, bands), and its print."""
    try:
        from rensa import RMinHash
    except ImportError:
        raise BadInput(f"near-duplicate texts are found with rensa, which is not installed: {install()}") from None
    bands = np.zeros((len(texts), BANDS), np.uint64)
    made: list[Prints] = []
    start = 0
    for count, hashes, owners in hashed(texts):
        one = _prints(hashes, owners, count)
        has = np.flatnonzero(one.counts)
        if len(has):
            offsets = np.concatenate([np.zeros(1, np.uint64), np.cumsum(one.counts[has], dtype=np.uint64)])
            matrix = RMinHash.digest_matrix_from_flat_token_hashes(hashes, offsets, BANDS * ROWS, _SEED)
            rows = np.array(matrix.to_rows(), np.uint64).reshape(len(has), BANDS, ROWS)
            bands[start + has] = (rows * _powers(_BASE, ROWS)).sum(axis=2, dtype=np.uint64)
        made.append(one)
        start += count
    return bands, _joined(made)


def _joined(made: Sequence[Prints]) -> Prints:
    none = Prints(np.zeros((0, _PRINT_BITS // 64), np.uint64), np.zeros(0, np.int64))
    parts = [none, *made]
    return Prints(np.concatenate([one.bits for one in parts]), np.concatenate([one.counts for one in parts]))


def _buckets(bands: Hashes, which: Places) -> Iterator[Places]:
    """The texts among `which`, in ascending order, that share a band's hash: an array for each hash that two or more share."""
    for band in bands.T:
        order = which[np.argsort(band[which], kind="stable")]
        starts = np.flatnonzero(np.diff(band[order], prepend=~band[order[:1]]))
        ends = np.append(starts[1:], len(order))
        for place in np.flatnonzero(ends - starts > 1):
            yield order[starts[place] : ends[place]]
