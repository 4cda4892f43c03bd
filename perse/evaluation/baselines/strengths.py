"""Baselines of pairs that know the two texts, and no reader: which one would most people choose?

    P(A rather than B) = 1 / (1 + exp(s(B) - s(A)))          one model for each aspect

    Bradley-Terry    s(t) is a number for each text that training readers compared: what a text won against others
    text ridge       s(t) = w . x_t, of the sentence embedding of the text

There is no constant, and only a difference counts: a pair that is shown the other way round gets the other answer, so that the place of a
text, which annotators and judges may favour, is left out; of two that are as strong the majority answer is given, which has nothing but the place.
Squares are penalised, by what gives training readers who are left out the least log
loss; where most of the texts asked about are new to the training side, the text ridge leaves out their texts, too.

Notation: n choices, T texts, f features of a text (d of an embedding, or T).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.sparse import eye_array, issparse, vstack

from perse.data.evidence.arrays import TextRows
from perse.data.evidence.content import TEXT_PARTS, FloatArray, IntArray, parts
from perse.errors import BadInput
from perse.evaluation.baselines.ratings import NO_TEXT_KNOWN, NO_TRAINING_DATA, Baseline, fit_majority
from perse.evaluation.stats.correlation import BoolArray
from perse.identity import pair_key
from perse.installing import needing
from perse.models.vectors import Vectors
from perse.progress import OnProgress, unseen
from perse.records import Choice, PairwiseExample

BRADLEY_TERRY, TEXT_RIDGE = "Bradley-Terry", "text ridge"
NO_MODEL = "no embedding model was given"
PENALTIES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
"""The more careful first: of equals it is chosen."""
READER_PARTS = 5
_DIGITS = 9
"""Decimals that differences are rounded to: those that differ by floating-point error only are none."""


@dataclass(frozen=True)
class Choices:
    """What readers chose, as arrays, (n,) each: rows of the two texts, whether it was the first, whose choice, and on which aspect."""

    first: IntArray
    second: IntArray
    chose_first: BoolArray
    reader: IntArray
    aspect: IntArray

    def only(self, chosen: BoolArray) -> Choices:
        """Those that are chosen, (n,)."""
        kept = self.first[chosen], self.second[chosen], self.chose_first[chosen]
        return Choices(*kept, self.reader[chosen], self.aspect[chosen])


def _known(first: IntArray, second: IntArray, trained: int) -> str:
    """What a model of single texts knows of pairs."""
    both = int(np.count_nonzero((first < trained) & (second < trained)))
    return "the two texts" if both == len(first) else f"both texts of {both} of {len(first)} pairs, one or none of the others"


def strength_baselines(
    examples: Sequence[PairwiseExample],
    train: Sequence[PairwiseExample] | None,
    vectors: Vectors | None,
    *,
    seed: int = 0,
    on_progress: OnProgress = unseen,
) -> tuple[Baseline[Choice], Baseline[Choice]]:
    """Bradley-Terry and the text ridge. Of two texts that are as strong, as two that training does not know, the majority answer is given.

    Args:
        train: examples; their references and profiles are the training choices.
        vectors: the embeddings of texts; None, or what it raises, is told as the reason why there are none.
        seed: of the parts that are left out in turn.
        on_progress: told how many of the models that choose the penalty are done.
    """
    place, aspects = TextRows(), TextRows()
    known = _choices(train or (), place, aspects)
    if not len(known.first):
        return Baseline(BRADLEY_TERRY, unavailable=NO_TRAINING_DATA), Baseline(TEXT_RIDGE, unavailable=NO_TRAINING_DATA)
    trained = len(place.row_of)
    first = np.array([place(example.query.text_a) for example in examples], dtype=np.int64)
    second = np.array([place(example.query.text_b) for example in examples], dtype=np.int64)
    new = int(np.count_nonzero(np.concatenate([first, second]) >= trained))
    aspect = np.array([aspects.row_of.get(example.aspect, -1) for example in examples], dtype=np.int64)
    usual = fit_majority([(one.aspect, one.reference.preference) for one in train or () if one.reference])

    def told(name: str, features: Any, of_text: IntArray | None, what: str = "the two texts") -> Baseline[Choice]:
        penalty = choose(features, known, of_text=of_text, seed=seed, on_progress=on_progress)
        strengths = np.vstack(
            [fit_strengths(features, known, penalty), np.zeros(len(place.row_of))]
        )  # the last: an unknown aspect
        ahead = np.round(strengths[aspect, first] - strengths[aspect, second], _DIGITS).tolist()
        given = [_chosen(apart) or usual(example) for apart, example in zip(ahead, examples, strict=True)]
        note = f"{name} (penalty {penalty:g}): knows {what}, and no reader"
        return Baseline(name, tuple(given), note=note)

    bradley_terry = Baseline[Choice](BRADLEY_TERRY, unavailable=NO_TEXT_KNOWN)
    text_ridge = Baseline[Choice](TEXT_RIDGE, unavailable=NO_MODEL)
    try:
        if new < 2 * len(examples):
            bradley_terry = told(
                BRADLEY_TERRY, eye_array(len(place.row_of), format="csr"), None, _known(first, second, trained)
            )
    except BadInput as error:
        bradley_terry = Baseline(BRADLEY_TERRY, unavailable=str(error))
    try:
        if vectors is not None:
            of_text = parts(len(place.row_of), TEXT_PARTS, np.random.default_rng([seed, 1])) if new > len(examples) else None
            text_ridge = told(TEXT_RIDGE, vectors(list(place.row_of)), of_text)
    except BadInput as error:
        text_ridge = Baseline(TEXT_RIDGE, unavailable=str(error))
    return bradley_terry, text_ridge


def _chosen(ahead: float) -> Choice | None:
    """By how far text A is ahead of text B."""
    return None if ahead == 0 else "A" if ahead > 0 else "B"


def _choices(train: Sequence[PairwiseExample], place: TextRows, aspects: TextRows) -> Choices:
    """The answers of references and profiles, each once, however many examples show it and in whichever order."""
    found: dict[tuple[str, str, str], tuple[str, str, Choice]] = {}
    for example in train:
        for past in example.profile:
            for aspect, choice in past.preference.items():
                found[example.reviewer_id, aspect, pair_key(past.text_a, past.text_b)] = past.text_a, past.text_b, choice
        if example.reference:
            asked = example.query
            found[example.reviewer_id, example.aspect, example.work] = asked.text_a, asked.text_b, example.reference.preference
    readers = TextRows()
    rows = [
        (place(a), place(b), choice == "A", readers(who), aspects(aspect)) for (who, aspect, _), (a, b, choice) in found.items()
    ]
    first, second, chose_first, reader, aspect_row = np.array(rows, dtype=np.int64).reshape(-1, 5).T
    return Choices(first, second, chose_first == 1, reader, aspect_row)


def fit_strengths(features: Any, choices: Choices, penalty: float) -> FloatArray:
    """The strength of every text on each aspect, (aspects, T): logistic regression of choices on differences, by scikit-learn.

    Args:
        features: (T, f), dense or sparse.
        penalty: of the square of the weights, halved.
    Raises:
        BadInput: scikit-learn is not installed.
    """
    with needing("data"):
        from sklearn.linear_model import LogisticRegression

    found = np.zeros((int(choices.aspect.max(initial=0)) + 1, features.shape[0]))
    for aspect in np.unique(choices.aspect):
        mine = choices.only(choices.aspect == aspect)
        apart = features[mine.first] - features[mine.second]  # (n, f)
        model = LogisticRegression(C=1 / penalty, fit_intercept=False, max_iter=1000, tol=1e-6)
        # Each choice both ways round, as half a choice each: there are always two classes, and the place says nothing.
        both = vstack([apart, -apart]) if issparse(apart) else np.vstack([apart, -apart])
        answers = np.concatenate([mine.chose_first, ~mine.chose_first])
        model.fit(both, answers, sample_weight=np.full(len(answers), 0.5))
        found[aspect] = features @ model.coef_[0]
    return found


def choose(features: Any, choices: Choices, *, of_text: IntArray | None, seed: int, on_progress: OnProgress = unseen) -> float:
    """The penalty with the least log loss of choices whose reader was left out.

    Args:
        of_text: the part of each text, (T,): a choice is then predicted by models that saw neither of its texts. None: only readers
            are left out.
    """
    count = int(choices.reader.max()) + 1
    if count < 2:
        return PENALTIES[0]
    whose = parts(count, min(READER_PARTS, count), np.random.default_rng(seed))[choices.reader]  # (n,)
    texts = np.zeros(features.shape[0], dtype=np.int64) if of_text is None else of_text
    one, other = texts[choices.first], texts[choices.second]
    rounds = [
        *product(range(int(whose.max()) + 1), sorted(set(zip(np.minimum(one, other), np.maximum(one, other), strict=True))))
    ]
    losses = np.zeros(len(PENALTIES))
    for done, (left_out, (low, high)) in enumerate(rounds):
        on_progress(done, len(rounds))
        asked = choices.only((whose == left_out) & (np.minimum(one, other) == low) & (np.maximum(one, other) == high))
        seen = whose != left_out
        if of_text is not None:
            seen &= ~np.isin(one, (low, high)) & ~np.isin(other, (low, high))
        if not len(asked.first):
            continue
        for nth, penalty in enumerate(PENALTIES):
            losses[nth] += _log_loss(features, choices.only(seen), asked, penalty)
    on_progress(len(rounds), len(rounds))
    return PENALTIES[int(np.argmin(losses))]


def _log_loss(features: Any, seen: Choices, asked: Choices, penalty: float) -> float:
    strengths = np.zeros((int(asked.aspect.max()) + 1, features.shape[0]))
    if len(seen.first):
        fitted = fit_strengths(features, seen, penalty)
        strengths = np.vstack([fitted, strengths])[: max(len(fitted), len(strengths))]
    ahead = strengths[asked.aspect, asked.first] - strengths[asked.aspect, asked.second]
    return float(np.logaddexp(0, np.where(asked.chose_first, -ahead, ahead)).sum())
