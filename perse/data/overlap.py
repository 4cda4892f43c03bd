"""How many words two texts share: ROUGE-1, -2 and -L, for PerSum's filters and for written reviews; and whether one is a copy.

The tokens are the rouge-score library's, stemmed (PerSum) or not, and so are the numbers, to the last bit, which the tests check.
The library itself is too slow for PerSum, which compares a review with every other of its reader and product: on reviews of a
hundred words a pair takes it 9 ms with stems and 5 ms without, and 0.1 and 0.3 ms here. The longest common subsequence is found with
the bits of one integer instead of a table, and a review that cannot beat the best so far is not compared further. A text without
Latin letters or digits has no tokens, and overlaps with nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

from perse.errors import BadInput
from perse.identity import normalised
from perse.installing import install

COPIED = 0.8
"""A text is copied if the longer one has this share of its word pairs."""

LEAST_PAIRS = 10
"""With fewer word pairs than these, only equal texts are copies: short reviews resemble each other by chance."""

_SLACK = 1e-9
"""Bounds and scores are rounded differently; candidates this close to the best are compared."""

_WORD = re.compile(r"[a-z0-9]+")
_REMEMBERED = 30_000
"""Texts; some 15 kB each for a review of a hundred words."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text prepared for comparing: its words, and how often each word and each pair of neighbours occurs."""

    text: str
    words: tuple[str, ...]
    singles: Counter[str] = field(repr=False)
    pairs: Counter[tuple[str, str]] = field(repr=False)


class Tokenizer:
    """Texts -> `Tokens` of stems; each distinct word is stemmed once, and the texts met last are remembered.

    Raises:
        BadInput: rouge-score is not installed.
    """

    def __init__(self) -> None:
        try:
            from rouge_score.tokenize import tokenize
            from rouge_score.tokenizers import porter  # the very stemmer that the library uses
        except ModuleNotFoundError:
            raise BadInput(f"rouge-score is not installed; it compares reviews: {install('data')}") from None
        self._tokenize = tokenize
        self._stemmer = _Stems(porter.PorterStemmer())
        self._known = lru_cache(maxsize=_REMEMBERED)(self._split)

    def __call__(self, text: str) -> Tokens:
        return self._known(text)

    def _split(self, text: str) -> Tokens:
        return _tokens(text, tuple(self._tokenize(text, self._stemmer)))


def unstemmed(text: str) -> Tokens:
    """`Tokens` of the words as they are, as rouge-score has them without its stemmer; the library is not needed."""
    return _tokens(text, tuple(_WORD.findall(text.lower())))


def rouge(a: Tokens, b: Tokens) -> tuple[float, float, float]:
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L: each 0 to 1, whichever of the two is the reference."""
    if not (shared := _shared(a.singles, b.singles)):
        return 0.0, 0.0, 0.0
    return (
        _f1(shared, len(a.words), len(b.words)),
        _f1(_shared(a.pairs, b.pairs), len(a.words) - 1, len(b.words) - 1),
        _f1(common_subsequence(a.words, b.words), len(a.words), len(b.words)),
    )


def overlap(a: Tokens, b: Tokens) -> float:
    """ROUGE-1 + ROUGE-2 + ROUGE-L: from 0 (no common word) to 3 (the same words in the same order)."""
    singles, pairs, longest = rouge(a, b)
    return singles + pairs + longest


def best_overlap(one: Tokens, others: Iterable[Tokens]) -> float:
    """The largest `overlap` of `one` with any of `others`; 0.0 without any.

    This is how a review is compared with a set (the paper does not say how): as ROUGE compares with several references. Against
    the whole set as one text, a review would score low for being shorter.
    """
    bounded = sorted(((_bound(one, other), at, other) for at, other in enumerate(others)), key=lambda b: (-b[0], b[1]))
    best = 0.0
    for bound, _, other in bounded:
        if bound < best - _SLACK:
            break
        best = max(best, overlap(one, other))
    return best


def mean_overlap(one: Tokens, others: Sequence[Tokens]) -> float:
    """The mean `overlap` of `one` with `others`; 0.0 without any."""
    return sum(overlap(one, other) for other in others) / len(others) if others else 0.0


def together(texts: Sequence[Tokens]) -> Tokens:
    """Several texts as one, in their order."""
    return _tokens("\n".join(one.text for one in texts), tuple(word for one in texts for word in one.words))


def is_copy(a: Tokens, b: Tokens) -> bool:
    """Whether one text is the other, or nearly, or contains it: `COPIED` of the shorter one's word pairs."""
    if normalised(a.text) == normalised(b.text) or (a.words and a.words == b.words):
        return True
    shorter = min(len(a.words), len(b.words)) - 1
    if shorter < LEAST_PAIRS or _shared(a.singles, b.singles) < COPIED * shorter:
        return False
    return _shared(a.pairs, b.pairs) >= COPIED * shorter


def common_subsequence(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence of `a` and `b`.

    Bit i of `open_` is 0 where the best so far grows at `a[i]`; one addition moves all of them (Crochemore et al., 2001).
    """
    places: dict[str, int] = {}
    for at, word in enumerate(a):
        places[word] = places.get(word, 0) | 1 << at
    whole = (1 << len(a)) - 1
    open_ = whole
    for word in b:
        if matches := open_ & places.get(word, 0):
            open_ = (open_ + matches | open_ - matches) & whole
    return len(a) - open_.bit_count()


def _tokens(text: str, words: tuple[str, ...]) -> Tokens:
    return Tokens(text, words, Counter(words), Counter(pairwise(words)))


def _bound(a: Tokens, b: Tokens) -> float:
    """No less than `overlap(a, b)`: neither pairs nor a common subsequence can be more than the words in common."""
    shared = _shared(a.singles, b.singles)
    pairs = min(shared, len(a.words) - 1, len(b.words) - 1)
    return 2 * _f1(shared, len(a.words), len(b.words)) + _f1(pairs, len(a.words) - 1, len(b.words) - 1)


def _shared(a: Counter[Any], b: Counter[Any]) -> int:
    if len(a) > len(b):
        a, b = b, a
    count = b.get
    return sum(min(times, count(one, 0)) for one, times in a.items())


def _f1(shared: int, a: int, b: int) -> float:
    """Written as rouge-score writes it, so that the last bits agree."""
    if shared <= 0:
        return 0.0
    precision, recall = shared / a, shared / b
    return 2 * precision * recall / (precision + recall)


class _Stems:
    """A stemmer that remembers; the library asks it word by word."""

    def __init__(self, stemmer: Any) -> None:
        self._stemmer = stemmer
        self._known: dict[str, str] = {}

    def stem(self, word: str) -> str:
        if word not in self._known:
            self._known[word] = self._stemmer.stem(word)
        return self._known[word]
