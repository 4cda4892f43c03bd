"""Baselines that read the texts, as far as a sentence embedding does, and need no judge.

    text ridge             ridge regression of the training scores on embeddings of the texts
    text ridge + reader    the same with a shrunk offset for each reader, who is known by their profile (`data.evidence.content`)
    profile kNN            the reader's own scores, weighted by how near each text shown is to the query, shrunk to the training mean:

        (sum_j w_j y_j + shrinkage mu) / (sum_j w_j + shrinkage)         w_j = exp(sharpness cos(x_j, x)), 1 on average in training

Penalties, sharpness and shrinkage are chosen on training examples whose readers are left out; where most of the texts asked about are
new to the training side, their texts are left out, too. No option switches these off: what they need and do not find is said in their row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf

import numpy as np

from perse.data.evidence.arrays import TextRows, asked_of, ratings_of
from perse.data.evidence.content import (
    TEXT_PARTS,
    Asked,
    Chosen,
    FloatArray,
    Ratings,
    choose,
    fit_content,
    on_scale,
    parts,
    with_offset,
)
from perse.errors import BadInput
from perse.evaluation.baselines.bias import normal_distributions
from perse.evaluation.baselines.ratings import NO_TRAINING_DATA, Baseline
from perse.models.vectors import Vectors
from perse.progress import OnProgress, unseen
from perse.records import PointwiseExample

RIDGE, RIDGE_READER, NEAREST = "text ridge", "text ridge + reader", "profile kNN"
NO_MODEL = "no embedding model was given"
SHARPNESS = (0.0, 2.0, 5.0, 10.0)
SHRINKAGE = (0.5, 1.0, 2.0, 5.0, 10.0)
_DIGITS = 9
"""Decimals that predictions are rounded to: those that differ by floating-point error only are ties."""


def content_baselines(
    examples: Sequence[PointwiseExample],
    train: Sequence[PointwiseExample] | None,
    vectors: Vectors | None,
    *,
    seed: int = 0,
    on_progress: OnProgress = unseen,
) -> tuple[Baseline[float], Baseline[float], Baseline[float]]:
    """The three baselines of this module.

    Args:
        train: examples; their references and profiles are the training scores.
        vectors: the embeddings of texts; None, or what it raises, is told as the reason why there are none.
        seed: of the parts that are left out in turn.
        on_progress: told how many of the models that choose the penalties are done.
    """
    if not any(example.reference or example.profile for example in train or ()):
        return _none(NO_TRAINING_DATA)
    if vectors is None:
        return _none(NO_MODEL)
    place = TextRows()
    known = [example for example in train or () if example.reference]
    of_train, of_examples = asked_of(known, place), asked_of(examples, place)
    readers, ratings = ratings_of(train or (), place)
    try:
        embedded = vectors(list(place.row_of))
    except BadInput as error:
        return _none(str(error))
    gold = np.array([example.reference.score for example in known if example.reference], dtype=np.float64)
    rated = np.zeros(len(embedded), dtype=bool)
    rated[ratings.text] = True
    named = int(np.count_nonzero(rated[of_examples.query]))
    new = 2 * named < len(examples)
    whose = np.array([readers[example.reviewer_id] for example in known], dtype=np.int64)
    of_text = parts(len(embedded), TEXT_PARTS, np.random.default_rng([seed, 1])) if new else None
    rows = []
    for name, personal in ((RIDGE, False), (RIDGE_READER, True)):
        chosen = choose(
            *(embedded, ratings, of_train, gold, whose),
            readers=personal,
            of_text=of_text,
            seed=seed,
            on_progress=on_progress,
        )
        rows.append(_ridge(name, chosen, embedded, ratings, of_examples, named))
    return rows[0], rows[1], _nearest(embedded, of_train, gold, of_examples, mean=float(ratings.score.mean()))


def _none(reason: str) -> tuple[Baseline[float], Baseline[float], Baseline[float]]:
    return (
        Baseline(RIDGE, unavailable=reason),
        Baseline(RIDGE_READER, unavailable=reason),
        Baseline(NEAREST, unavailable=reason),
    )


def _ridge(name: str, chosen: Chosen, embedded: FloatArray, ratings: Ratings, asked: Asked, named: int) -> Baseline[float]:
    model = fit_content(embedded, ratings, chosen.pair)
    values = model.of_texts(embedded)
    given = np.round(with_offset(values[asked.shown], values[asked.query], asked, model.reader_penalty), _DIGITS)
    spread = chosen.error or float(ratings.score.std())
    penalty, reader_penalty = chosen.pair
    with_reader = "" if reader_penalty == inf else f", of the reader's offset {reader_penalty:g}"
    return Baseline(
        name,
        tuple(given.tolist()),
        note=f"{name} (penalty {penalty:g}{with_reader}): knows a text by its embedding alone"
        + (
            f", which is as good as a name where training readers scored it: in {named} of {len(given)} examples"
            if named
            else ""
        ),
        distributions=tuple(map(tuple, normal_distributions(given, spread).tolist())),
    )


def _nearest(embedded: FloatArray, train: Asked, gold: FloatArray, asked: Asked, *, mean: float) -> Baseline[float]:
    def likeness(of: Asked) -> FloatArray:
        found: FloatArray = np.einsum("md,md->m", embedded[of.shown], embedded[of.query[of.example]])
        return found

    near, theirs = likeness(train), likeness(asked)

    def given(of: Asked, likeness: FloatArray, sharpness: float, shrinkage: float) -> FloatArray:
        usual = float(np.exp(sharpness * near).mean()) if len(near) else 1.0
        weights = np.exp(sharpness * likeness) / usual
        size = len(of.query)
        summed = np.bincount(of.example, weights=weights * (of.score - mean), minlength=size)
        return on_scale(mean + summed / (shrinkage + np.bincount(of.example, weights=weights, minlength=size)))

    def error(pair: tuple[float, float]) -> float:
        return float(((given(train, near, *pair) - gold) ** 2).sum())

    sharpness, shrinkage = min(product(SHARPNESS, SHRINKAGE), key=error)
    predicted = np.round(given(asked, theirs, sharpness, shrinkage), _DIGITS)
    which = "those of like texts first" if sharpness else "all alike, since like texts told no more"
    note = f"{NEAREST} (sharpness {sharpness:g}, shrinkage {shrinkage:g}): the scores in the profile, {which}"
    spread = (error((sharpness, shrinkage)) / len(gold)) ** 0.5 if len(gold) else 1.0
    return Baseline(
        NEAREST,
        tuple(predicted.tolist()),
        note=note,
        distributions=tuple(map(tuple, normal_distributions(predicted, spread).tolist())),
    )
