"""What a text's words make of it: ridge regression on sentence embeddings, with an offset for each reader.

    score(u, t) = mu + b_u + w . (x_t - centre)       least squares, penalties `penalty` |w|^2 and `reader_penalty` b_u^2

The offsets are eliminated, so that the system has one row for each dimension of an embedding and none for a reader:

    (X'X - sum_u s_u s_u' / (reader_penalty + n_u) + penalty I) w = X'r - sum_u s_u (sum r_u) / (reader_penalty + n_u)

with X the centred embeddings, r the scores less mu, s_u the sum of the n_u embeddings of reader u. A reader that training does not
know is folded in by the scores shown of them: b_u = sum of residuals / (reader_penalty + their number), which is the same formula.
An infinite `reader_penalty` is plain ridge regression, which knows no readers.

Both penalties are chosen by cross-fitting: every example is predicted by a model that saw no score of its reader and, where the texts
that will be asked about are new, no score of its text either.

Notation: n scores, U readers, T texts, d dimensions, P parts of the readers, m profile entries of all examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perse.progress import OnProgress, unseen
from perse.scale import SCORES

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
READER_PENALTIES = (2.0, 5.0, 10.0, 20.0, 50.0)
READER_PARTS, TEXT_PARTS = 10, 5
_READERS = 20_000
"""Readers whose sums are in memory at once."""


@dataclass(frozen=True)
class Ratings:
    """Scores as arrays, (n,) each: whose, of which text (a row of the vectors), and what they gave."""

    reader: IntArray
    text: IntArray
    score: FloatArray

    def only(self, chosen: NDArray[np.bool_]) -> Ratings:
        """Those that are chosen, (n,)."""
        return Ratings(self.reader[chosen], self.text[chosen], self.score[chosen])


@dataclass(frozen=True)
class Asked:
    """Examples as arrays: `query` (n,) the text of each; of each profile entry, (m,), whose example it is, its text, and its score."""

    query: IntArray
    example: IntArray
    shown: IntArray
    score: FloatArray


@dataclass(frozen=True)
class ContentModel:
    """A fitted regression; `centre` and `weights` are (d,)."""

    mean: float
    centre: FloatArray
    weights: FloatArray
    reader_penalty: float

    def of_texts(self, vectors: FloatArray) -> FloatArray:
        """What a usual reader is expected to give each text, (T,) of (T, d); not kept on the scale."""
        found: FloatArray = self.mean + (vectors - self.centre) @ self.weights
        return found


Pair = tuple[float, float]
"""`penalty` and `reader_penalty`."""


def fit_content(vectors: FloatArray, ratings: Ratings, pair: Pair) -> ContentModel:
    """The regression of `ratings`, one or more, on `vectors` (T, d)."""
    return next(_fits(vectors, ratings, [pair]))


def _fits(vectors: FloatArray, ratings: Ratings, pairs: Sequence[Pair]) -> Iterator[ContentModel]:
    """A model for each pair; what is equal for several is computed once."""
    mean = float(ratings.score.mean())
    number = np.bincount(ratings.text, minlength=len(vectors)).astype(np.float64)
    centre = number @ vectors / len(ratings.score)
    rest = ratings.score - mean
    whole = (vectors * number[:, None]).T @ vectors - len(rest) * np.outer(centre, centre)
    moment = np.bincount(ratings.text, weights=rest, minlength=len(vectors)) @ vectors  # the rest sums to 0: no centre
    less: dict[float, tuple[Any, Any]] = {}
    for penalty, reader_penalty in pairs:
        if reader_penalty not in less:
            less[reader_penalty] = _of_readers(vectors - centre, ratings, rest, reader_penalty)
        gram, of_readers = less[reader_penalty]
        weights = np.linalg.solve(whole - gram + penalty * np.eye(len(centre)), moment - of_readers)
        yield ContentModel(mean, centre, weights, reader_penalty)


def _of_readers(centred: FloatArray, ratings: Ratings, rest: FloatArray, reader_penalty: float) -> tuple[Any, Any]:
    """What the offsets take from both sides of the system: (d, d) and (d,)."""
    gram, moment = np.zeros((centred.shape[1],) * 2), np.zeros(centred.shape[1])
    if reader_penalty == inf:
        return gram, moment
    from scipy.sparse import csr_array

    names, reader = np.unique(ratings.reader, return_inverse=True)
    order = np.argsort(reader, kind="stable")
    for start in range(0, len(names), _READERS):
        low, high = np.searchsorted(reader[order], [start, start + _READERS])
        chosen = order[low:high]
        mine = reader[chosen] - start
        size = min(_READERS, len(names) - start)
        belongs = csr_array((np.ones(len(chosen)), (mine, ratings.text[chosen])), shape=(size, len(centred)))
        sums = belongs @ centred  # (U, d)
        weight = 1 / (reader_penalty + np.bincount(mine, minlength=size))
        gram += (sums * weight[:, None]).T @ sums
        moment += sums.T @ (weight * np.bincount(mine, weights=rest[chosen], minlength=size))
    return gram, moment


def parts(count: int, number: int, generator: np.random.Generator) -> IntArray:
    """Each of `count` things in one of `number` parts, of nearly equal sizes, (count,)."""
    return generator.permutation(np.arange(count, dtype=np.int64) % max(1, number))


def cross_fitted(
    vectors: FloatArray,
    ratings: Ratings,
    pairs: Sequence[Pair],
    *,
    of_reader: IntArray,
    of_text: IntArray | None = None,
    on_progress: OnProgress = unseen,
) -> FloatArray:
    """What models that left out each part of the readers expect of each text, (pairs, P, T).

    Args:
        of_reader: the part of each reader, (U,).
        of_text: the part of each text, (T,): a text's estimate then comes from models that left out its part, too. None: only
            readers are left out.
    """
    number = int(of_reader.max()) + 1
    whose = of_reader[ratings.reader]
    texts = np.zeros(len(vectors), dtype=np.int64) if of_text is None else of_text
    found = np.full((len(pairs), number, len(vectors)), float(ratings.score.mean()))
    rounds = [*product(range(number), range(int(texts.max()) + 1))]
    for done, (left_out, new) in enumerate(rounds):
        on_progress(done, len(rounds))
        kept = whose != left_out
        if of_text is not None:
            kept &= texts[ratings.text] != new
        if not kept.any():
            continue
        asked = texts == new
        for nth, model in enumerate(_fits(vectors, ratings.only(kept), pairs)):
            found[nth, left_out, asked] = model.of_texts(vectors[asked])
    on_progress(len(rounds), len(rounds))
    return found


def with_offset(values: FloatArray, query: FloatArray, asked: Asked, reader_penalty: float) -> FloatArray:
    """The estimate for each example's reader, (n,), on the scale.

    Args:
        values: what a usual reader is expected to give each profile entry's text, (m,).
        query: and each query's, (n,).
        reader_penalty: infinite: nothing is known of readers.
    """
    size = len(query)
    summed = np.bincount(asked.example, weights=asked.score - values, minlength=size)
    offsets = summed / (reader_penalty + np.bincount(asked.example, minlength=size))
    return on_scale(query + offsets)


def on_scale(scores: FloatArray) -> FloatArray:
    """Scores clipped to the scale."""
    lowest, *_, highest = SCORES.values or ()
    return np.asarray(np.clip(scores, lowest, highest), dtype=np.float64)


@dataclass(frozen=True)
class Chosen:
    """A pair of penalties, and the root mean squared error of the examples that chose it."""

    pair: Pair
    error: float | None


def choose(
    vectors: FloatArray,
    ratings: Ratings,
    asked: Asked,
    gold: FloatArray,
    reader: IntArray,
    *,
    readers: bool = True,
    of_text: IntArray | None = None,
    seed: int = 0,
    on_progress: OnProgress = unseen,
) -> Chosen:
    """The penalties with the least squared error on examples of training readers, each cross-fitted.

    Args:
        asked: training examples; `gold` (n,) their true scores and `reader` (n,) whose they are.
        readers: whether readers have offsets.
        of_text: as in `cross_fitted`.
    """
    penalties = READER_PENALTIES if readers else (inf,)
    pairs = [*product(PENALTIES, penalties)]
    count = int(ratings.reader.max()) + 1
    if count < 2 or not len(gold):
        return Chosen((max(PENALTIES), max(penalties)), None)
    of_reader = parts(count, min(READER_PARTS, count), np.random.default_rng(seed))
    found = cross_fitted(vectors, ratings, pairs, of_reader=of_reader, of_text=of_text, on_progress=on_progress)
    mine = of_reader[reader]

    def error(nth: int) -> float:
        values, reader_penalty = found[nth], pairs[nth][1]
        given = with_offset(values[mine[asked.example], asked.shown], values[mine, asked.query], asked, reader_penalty)
        return float(((given - gold) ** 2).mean() ** 0.5)

    errors = [error(nth) for nth in range(len(pairs))]
    best = int(np.argmin(errors))
    return Chosen(pairs[best], errors[best])
