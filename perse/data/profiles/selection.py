"""Selects which of a reviewer's other reviews make the profile of a query, best first.

    random      drawn by the seed: the paper's way (PerSE, section 3)
    recent      the latest ones written before the query; needs ISO dates
    bm25        the texts with the most telling words in common with the query's text
    embedding   the texts nearest to the query's in a sentence embedding (cosine)
    diverse     a random one, then each time the one least like those chosen (fewest words in common)

Each gives an order, and a profile of k is its first k: so the profiles for k = 1, 2, 3, ... are nested, and a curve over k
compares the same queries. Ties are broken by the seed. What is ranked is the text reviewed; a pair counts as its two texts together.
`recent` never shows what was written after the query; the others can, as the paper does.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Literal, TypeVar

import numpy as np

from perse.errors import BadInput
from perse.identity import normalised
from perse.installing import install
from perse.models.embeddings import EMBEDDING_MODEL as EMBEDDING_MODEL
from perse.models.embeddings import Embeddings
from perse.records import Comparison, Review
from perse.records.dates import sortable

Select = Literal["random", "recent", "bm25", "embedding", "diverse"]

Record = TypeVar("Record", Review, Comparison)

Pick = Callable[[Any, Sequence[Any], int, random.Random], list[Any]]
"""(query, others, count, generator) -> at most `count` of the others, most wanted first."""

Prepare = Callable[[Sequence[Any]], Pick]
"""Prepares picking, once for all records of one reviewer."""


@dataclass(frozen=True)
class Selection:
    """A way to pick; `identity` lists for the manifest what it depends on besides records and seed."""

    prepare: Prepare
    identity: Mapping[str, str]


def selection(select: Select, *, embedding_model: str = EMBEDDING_MODEL) -> Selection:
    """The way to pick that `select` names.

    Raises:
        BadInput: a library or the embedding model is absent.
    """
    if select == "embedding":
        _version_of("sentence-transformers")
        embeddings = Embeddings(embedding_model)
        return Selection(
            _by_similarity(lambda texts: _likeness(embeddings, texts)), {"model": embedding_model, "sha256": embeddings.digest}
        )
    if select == "bm25":
        return Selection(_by_similarity(_bm25), {"bm25s": _version_of("bm25s")})
    ways: dict[str, Pick] = {"random": _at_random, "recent": _recent, "diverse": _diverse}
    return Selection(lambda records: ways[select], {})


def shown_text(record: Review | Comparison) -> str:
    """What selection compares: the text reviewed, or the two texts of a pair."""
    return record.text if isinstance(record, Review) else f"{record.text_a}\n{record.text_b}"


def _at_random(query: Record, others: Sequence[Record], count: int, generator: random.Random) -> list[Record]:
    # Shuffled, not sampled: so a longer draw begins with the shorter one, also in another build.
    mixed = list(others)
    generator.shuffle(mixed)
    return mixed[:count]


def _recent(query: Record, others: Sequence[Record], count: int, generator: random.Random) -> list[Record]:
    now = sortable(query.time)
    dated = [(sortable(one.time), one) for one in generator.sample(others, len(others))]
    before = [(time, one) for time, one in dated if time is not None and now is not None and time < now]
    before.sort(key=lambda pair: pair[0], reverse=True)
    return [one for _, one in before[:count]]


def _diverse(query: Record, others: Sequence[Record], count: int, generator: random.Random) -> list[Record]:
    left = generator.sample(others, len(others))
    words = {id(one): frozenset(normalised(shown_text(one)).split()) for one in left}
    chosen = left[:count][:1]
    left = left[1:]
    nearest = {id(one): _jaccard(words[id(one)], words[id(chosen[0])]) for one in left} if chosen else {}
    while left and len(chosen) < count:
        far = min(left, key=lambda one: nearest[id(one)])
        left.remove(far)
        chosen.append(far)
        for one in left:
            nearest[id(one)] = max(nearest[id(one)], _jaccard(words[id(one)], words[id(far)]))
    return chosen


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a or b else 1.0


def _by_similarity(similarities: Callable[[Sequence[str]], Callable[[str], Any]]) -> Prepare:
    """Picks the most similar. `similarities(texts)` is made once per reviewer and gives a number for each text, given a query."""

    def prepare(records: Sequence[Any]) -> Pick:
        place = {id(one): at for at, one in enumerate(records)}
        like = similarities([shown_text(one) for one in records])

        def pick(query: Any, others: Sequence[Any], count: int, generator: random.Random) -> list[Any]:
            # Rounded, so that the last bits of a sum cannot decide on another machine; the shuffle decides ties.
            found = np.round(like(shown_text(query)), 5)
            mixed = generator.sample(others, len(others))
            return sorted(mixed, key=lambda one: -found[place[id(one)]])[:count]

        return pick

    return prepare


def _likeness(embeddings: Embeddings, texts: Sequence[str]) -> Callable[[str], Any]:
    matrix = embeddings(texts)  # (n, d)
    return lambda query: matrix @ embeddings([query])[0]


def _bm25(texts: Sequence[str]) -> Callable[[str], Any]:
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # the library logs at DEBUG, one line per index

    def words(text: str) -> list[str]:
        found: list[list[str]] = bm25s.tokenize([text], stopwords="en", return_ids=False, show_progress=False)
        return found[0]

    corpus = [words(text) for text in texts]
    if not any(corpus):
        return lambda query: np.zeros(len(texts))
    index = bm25s.BM25()
    index.index(corpus, show_progress=False)
    return lambda query: index.get_scores(words(query))


def _version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        raise BadInput(f"this selection needs {library}, which is not installed; run {install('data')}") from None


AT_RANDOM: Prepare = selection("random").prepare
"""The paper's way."""
