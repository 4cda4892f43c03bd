"""Texts that several readers judged: what one of them is worth moves the answers of all its readers, so another draw of texts could say otherwise.

Where texts are shared they are resampled beside the reviewers, if there are enough of them; else a note says that intervals are of these
texts alone. Pairs that have a text in common are one text for this: how good it is moves all of them. Chains of such pairs (A with B, B with C) are drawn
together, which is too wide rather than too short; a table whose pairs all hang together cannot be resampled so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from perse.evaluation.stats.correlation import IntArray
from perse.evaluation.stats.intervals import FEWEST_TEXTS
from perse.evaluation.stats.results import Drawn, Resample
from perse.identity import text_key
from perse.records import Example, PairwiseExample, PointwiseExample, chooses

OF_THESE_TEXTS = "intervals are of these texts alone"
"""Starts the note of a table whose readers share texts that are not resampled: another draw of texts could say otherwise."""
SHOWN_ELSEWHERE = "the answer asked for stands in the profile of another example of its reader"
"""Starts the note of a table in which means of readers' answers may be had by looking at their profiles."""
_HARDLY_SHOWN = 0.1
"""The share of answers of which no note is made: a mean of what is shown then holds hardly any of them."""
_HARDLY_SHARED = 1.1
"""Readers that the text of an item has, on average."""


def works(examples: Sequence[Example]) -> IntArray:
    """(n,) the text that each example asks about, 0 to I - 1: the same for all its readers; pairs that have a text in common have one number."""
    names = np.array([example.work for example in examples], dtype=object)
    own: IntArray = np.unique(names, return_inverse=True)[1].astype(np.int64)
    pairs = [(row, one) for row, one in enumerate(examples) if isinstance(one, PairwiseExample)]
    if not pairs:
        return own
    sides = [(row, text) for row, one in pairs for text in _texts(one)]
    if not sides:
        return own
    rows = np.array([row for row, _ in sides])
    texts = np.unique(np.array([text for _, text in sides]), return_inverse=True)[1] + int(own.max()) + 1
    size = int(texts.max()) + 1
    joined = sparse.coo_matrix((np.ones(len(rows)), (own[rows], texts)), shape=(size, size))
    group = sparse.csgraph.connected_components(joined, directed=False)[1][own]
    found: IntArray = np.unique(group, return_inverse=True)[1].astype(np.int64)
    return found


def _texts(pair: PairwiseExample) -> list[str]:
    """Those of a pair; one that is judged as a whole prompt has an empty one, which is no text that pairs have in common."""
    return [text_key(text) for text in (pair.query.text_a, pair.query.text_b) if text.strip()]


def to_draw(examples: Sequence[Example], resample: Resample) -> Drawn:
    """What is resampled: as asked, or of itself both where texts are shared and there are enough of them.

    A reader's items are shared by m readers, of whom each item's text has that many on average. The variance of a mean that texts
    decide is m times what resampled reviewers find: up to m = 1.1 an interval is at most 5% too short by that, and covers 94%.
    """
    if resample != "auto":
        return resample
    return "two-way" if _shared(examples) and _enough(examples) else "reviewers"


def several_readers(examples: Sequence[Example]) -> str | None:
    """Notes texts, or pairs of texts, that several readers judged: a source of chance that resampling readers does not cover."""
    counts = _readers([example.work for example in examples], examples)
    shared = [count for count in counts if count > 1]
    if not shared:
        return None
    return f"{len(shared)} of {len(counts)} {_pairs_or_texts(examples)} were judged by several readers (at most {max(shared)})"


def texts_in_several_pairs(examples: Sequence[Example]) -> str | None:
    """Notes texts that stand in several different pairs: how good one is moves all of its pairs together."""
    pairs = {one.work: _texts(one) for one in examples if isinstance(one, PairwiseExample)}
    counts = Counter(text for pair in pairs.values() for text in pair)
    shared = [count for count in counts.values() if count > 1]
    if not shared:
        return None
    return f"{len(shared)} of {len(counts)} texts stand in several pairs (at most {max(shared)})"


def crossed(examples: Sequence[Example], *, two_way: bool) -> list[str]:
    """The note about texts with several readers or pairs; it starts with `OF_THESE_TEXTS` where intervals do not speak of other texts."""
    if two_way:
        return [both_drawn(examples) if chooses(examples) else f"{both_drawn(examples)}; between reviewers by reviewers alone"]
    said, what = _said(examples), _what(examples)
    if not said:
        return []
    if not _shared(examples):
        return [f"{said}: too few between readers to matter to an interval; `--resample two-way` also resamples the texts"]
    if not _enough(examples):
        return [
            f"{OF_THESE_TEXTS}: {said}, and the {what} are too few (fewer than {FEWEST_TEXTS} of like size) to be resampled; "
            "of other texts nothing is said"
        ]
    return [f"{OF_THESE_TEXTS}: {said}; `--resample two-way` gives intervals that hold for other texts, too"]


def both_drawn(examples: Sequence[Example]) -> str:
    """What intervals know of texts that are drawn beside the reviewers. Of pairs all are of shares, which are exact."""
    said, what, number = _said(examples), _what(examples), int(works(examples).max()) + 1
    known = (
        f"intervals count how answers of one reviewer, and answers about one of {number} {what}, go together"
        if chooses(examples)
        else f"reviewers and {number} {what} are both resampled"
    )
    few = "" if _enough(examples) else f"; so few {what} give no interval that holds for others"
    return f"two-way: {known}{f', since {said}' if said else ''}{few}"


def _said(examples: Sequence[Example]) -> str:
    return "; ".join(one for one in (several_readers(examples), texts_in_several_pairs(examples)) if one)


def _what(examples: Sequence[Example]) -> str:
    """What `works` counts."""
    if texts_in_several_pairs(examples):
        return "groups of pairs that have texts in common"
    return _pairs_or_texts(examples)


def _pairs_or_texts(examples: Sequence[Example]) -> str:
    return "pairs of texts" if all(isinstance(one, PairwiseExample) for one in examples) else "texts"


def shown_elsewhere(examples: Sequence[Example]) -> list[str]:
    """The note about answers that stand in profiles of other examples of the same reader: whose mean is then a mean of these very answers."""
    shown: dict[str, set[str]] = defaultdict(set)
    scored = [one for one in examples if isinstance(one, PointwiseExample) and one.reference]
    for one in scored:
        shown[one.reviewer_id or one.id] |= {text_key(past.text) for past in one.profile}
    count = sum(text_key(one.query) in shown[one.reviewer_id or one.id] for one in scored)
    if count <= _HARDLY_SHOWN * len(scored):
        return []
    return [
        f"{SHOWN_ELSEWHERE} in {count} of {len(scored)} examples: a judge that repeats the scores that it is shown comes near readers' very means, so between reviewers "
        "nothing tells whether it knows who is lenient (data built with --profiles per_example_apart or per_reviewer_epoch does)"
    ]


def of_these_texts(examples: Sequence[Example], *, two_way: bool) -> bool:
    """Whether intervals say nothing of other texts, since readers share texts and these were not resampled."""
    return any(note.startswith(OF_THESE_TEXTS) for note in crossed(examples, two_way=two_way))


def _readers(works: Sequence[object], examples: Sequence[Example]) -> list[int]:
    """How many readers each text has."""
    readers: dict[object, set[str]] = defaultdict(set)
    for work, example in zip(works, examples, strict=True):
        readers[work].add(example.reviewer_id or example.id)
    return [len(behind) for behind in readers.values()]


def _shared(examples: Sequence[Example]) -> bool:
    """Whether so many texts are shared that intervals by reviewers are too short."""
    counts = np.array(_readers(works(examples).tolist(), examples))
    return float((counts**2).sum()) > _HARDLY_SHARED * float(counts.sum())


def _enough(examples: Sequence[Example]) -> bool:
    """Whether there are texts enough to be resampled, were all as large as those that hold most items (Kish's effective number)."""
    sizes = np.bincount(works(examples)).astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) >= FEWEST_TEXTS - 1e-9
