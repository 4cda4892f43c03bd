"""Baselines that know the two texts of a pair: what they find, what they say of texts nobody knows, and that the place counts for nothing."""

from collections.abc import Sequence

import numpy as np
import pytest
from evaluation_builders import answered, pair
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from perse.errors import BadInput
from perse.evaluation.baselines.ratings import Baseline
from perse.evaluation.baselines.strengths import Choices, choose, fit_strengths, strength_baselines
from perse.evaluation.evaluate import Fold, evaluate_many
from perse.records import Choice, Pair, PairwiseExample, ProfileComparison

TEXTS = 40
_OF_TEXTS = np.random.default_rng(7).normal(size=(TEXTS, 5))
_OF_TEXTS /= np.linalg.norm(_OF_TEXTS, axis=1, keepdims=True)
PLEASES = _OF_TEXTS @ np.array([4.0, -4.0, 2.0, 0.0, 1.0])


def vectors(texts: Sequence[str]) -> NDArray[np.float64]:
    """Each text is the number of its vector."""
    return np.stack([_OF_TEXTS[int(text)] for text in texts])


def readers(
    number: int, *, seed: int, texts: Sequence[int] = range(TEXTS), pleases: NDArray[np.float64] = PLEASES
) -> list[PairwiseExample]:
    """Each compares eight pairs, and chooses the more often what pleases more."""
    generator = np.random.default_rng(seed)
    found = []
    for reader in range(number):
        for nth in range(8):
            a, b = generator.choice(np.array(texts), 2, replace=False).tolist()
            choice: Choice = "A" if generator.random() < expit(pleases[a] - pleases[b]) else "B"
            one = pair(f"s{seed}-{reader}-{nth}", f"s{seed}-{reader}", choice)
            found.append(one.model_copy(update={"query": Pair(text_a=str(a), text_b=str(b)), "profile": ()}))
    return found


def swapped(example: PairwiseExample) -> PairwiseExample:
    """The same question with the texts the other way round, and the same answer to it."""
    query = Pair(text_a=example.query.text_b, text_b=example.query.text_a)
    reference = example.reference and example.reference.model_copy(
        update={"preference": "B" if example.reference.preference == "A" else "A"}
    )
    return example.model_copy(update={"query": query, "reference": reference})


def right(baseline: Baseline[Choice], examples: Sequence[PairwiseExample]) -> float:
    assert baseline.predictions
    return float(np.mean([one == example.truth for one, example in zip(baseline.predictions, examples, strict=True)]))


@pytest.mark.slow
def test_texts_that_win_are_preferred_and_words_tell_of_texts_that_nobody_compared() -> None:
    train, known = readers(60, seed=1), readers(30, seed=2)
    strength, ridge = strength_baselines(known, train, vectors)
    best = np.mean([(PLEASES[int(one.query.text_a)] > PLEASES[int(one.query.text_b)]) == (one.truth == "A") for one in known])
    assert best - 0.05 < right(strength, known) and best - 0.05 < right(ridge, known)
    train, new = readers(60, seed=1, texts=range(25)), readers(30, seed=2, texts=range(25, TEXTS))
    strength, ridge = strength_baselines(new, train, vectors)
    assert strength.unavailable == "none of these texts is in the training data"
    assert right(ridge, new) > 0.7
    assert ridge.note and ridge.note.startswith("text ridge (penalty ")


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=5, deadline=None)
def test_a_pair_shown_the_other_way_round_gets_the_other_answer_however_it_was_shown_in_training(seed: int) -> None:
    generator = np.random.default_rng(seed)
    train, asked = readers(20, seed=1), readers(4, seed=2)
    assert {text for one in train for text in (one.query.text_a, one.query.text_b)} == set(map(str, range(TEXTS)))
    turned = [swapped(one) if generator.random() < 0.5 else one for one in train]
    for one, other, around in zip(
        strength_baselines(asked, train, vectors),
        strength_baselines(asked, turned, vectors),
        strength_baselines([*map(swapped, asked)], train, vectors),
        strict=True,
    ):
        assert one.predictions == other.predictions
        assert all(a != b for a, b in zip(one.predictions or (), around.predictions or (), strict=True))


def test_strengths_are_those_of_the_penalised_likelihood() -> None:
    """The slow twin: the log likelihood of choices less the penalty, written out and maximised by scipy."""
    generator = np.random.default_rng(3)
    first, second = generator.integers(0, 6, (2, 50))
    second = np.where(first == second, (first + 1) % 6, second)
    drawn = generator.random(50) < 0.6
    choices = Choices(first, second, drawn, np.zeros(50, dtype=np.int64), np.ones(50, dtype=np.int64))
    features, penalty = generator.normal(size=(6, 3)), 0.7
    apart = features[first] - features[second]

    def loss(weights: NDArray[np.float64]) -> float:
        reach = np.where(drawn, apart @ weights, -apart @ weights)
        return float(np.logaddexp(0, -reach).sum() + penalty / 2 * weights @ weights)

    found = fit_strengths(features, choices, penalty)
    assert found.shape == (2, 6) and not found[0].any()  # nobody was asked about the first aspect
    assert found[1] == pytest.approx(features @ minimize(loss, np.zeros(3), tol=1e-10).x, abs=1e-4)


def test_the_penalty_is_heavy_where_nothing_is_to_be_known() -> None:
    nothing, told = (choose_of(readers(40, seed=5, pleases=pleases)) for pleases in (np.zeros(TEXTS), 2 * PLEASES))
    assert nothing > told


def choose_of(train: Sequence[PairwiseExample]) -> float:
    rows = np.array(
        [(int(one.query.text_a), int(one.query.text_b), one.truth == "A", int(one.reviewer_id[3:])) for one in train]
    )
    first, second, chosen, reader = rows.T
    choices = Choices(first, second, chosen == 1, reader, np.zeros(len(rows), dtype=np.int64))
    return choose(_OF_TEXTS, choices, of_text=None, seed=0)


@pytest.mark.slow
def test_texts_and_aspects_that_nobody_was_asked_about_get_the_majority_answer() -> None:
    train = readers(40, seed=1, texts=range(20))
    usual = "A" if sum(one.truth == "A" for one in train) * 2 >= len(train) else "B"
    unknown = pair("x", "u", "A").model_copy(update={"query": Pair(text_a="30", text_b="31")})
    known = unknown.model_copy(update={"id": "y", "query": Pair(text_a="1", text_b="2")})
    other = known.model_copy(update={"id": "z", "aspect": "Surprise"})
    strength, ridge = strength_baselines([unknown, known, other], train, vectors)
    assert strength.predictions and ridge.predictions
    assert (strength.predictions[0], strength.predictions[2], ridge.predictions[2]) == (usual, usual, usual)


@pytest.mark.slow
def test_a_choice_that_many_examples_show_counts_once() -> None:
    train = readers(10, seed=1)
    shown = tuple(
        ProfileComparison(text_a=one.query.text_a, text_b=one.query.text_b, preference={one.aspect: one.truth})
        for one in train[:8]
        if one.truth
    )
    repeated = [one.model_copy(update={"profile": shown}) if n < 8 else one for n, one in enumerate(train)]
    asked = readers(5, seed=2)
    assert strength_baselines(asked, repeated, vectors) == strength_baselines(asked, train, vectors)


@pytest.mark.slow
def test_predictions_depend_on_no_order_of_examples() -> None:
    train, asked = readers(12, seed=1), readers(5, seed=2)
    there, back = strength_baselines(asked, train, vectors), strength_baselines(asked[::-1], train, vectors)
    for one, other in zip(there, back, strict=True):
        assert one.predictions == (other.predictions or ())[::-1]


def test_why_there_are_none_is_said_in_their_rows_and_one_reader_is_enough() -> None:
    train, asked = readers(3, seed=1), readers(2, seed=2)

    def absent(texts: Sequence[str]) -> NDArray[np.float64]:
        raise BadInput("sentence embeddings need sentence_transformers, which is not installed")

    for given_vectors, side, reason in (
        (None, train, "no embedding model was given"),
        (absent, train, "sentence embeddings need sentence_transformers, which is not installed"),
        (vectors, None, "no training data at hand"),
        (vectors, [], "no training data at hand"),
    ):
        assert strength_baselines(asked, side, given_vectors)[1].unavailable == reason
    assert all(one.predictions for one in strength_baselines(asked, train[:8], vectors))
    always = [one if one.truth == "A" else swapped(one) for one in train]
    assert all(one.predictions for one in strength_baselines(asked, always, vectors))  # nobody ever chose B


@pytest.mark.slow
def test_a_table_of_pairs_has_their_rows_and_names_the_one_that_knows_more_than_the_judge() -> None:
    train, asked = readers(60, seed=1), readers(30, seed=2)
    coin = [answered(one.id, "AB"[n % 2]) for n, one in enumerate(asked)]
    table = evaluate_many({"judge": coin}, [Fold(asked, train)], resamples=100, vectors=vectors)
    names = [row.name for row in table.rows]
    assert names[names.index("unpersonalized") :] == ["unpersonalized", "Bradley-Terry", "text ridge", "majority", "random"]
    assert ", which needs no judge, has accuracy 0." in table.conclusions[0].words
    assert sum(note.startswith(("Bradley-Terry (penalty", "text ridge (penalty")) for note in table.notes) == 2


@pytest.mark.slow
def test_where_texts_do_not_please_nothing_is_found() -> None:
    """Of 60 worlds where everybody chooses by chance, the rows are right in half of their answers, by what four standard errors allow."""
    found = []
    for seed in range(0, 120, 2):
        train, asked = (readers(12, seed=at, pleases=np.zeros(TEXTS)) for at in (seed, seed + 1))
        found.append([right(one, asked) for one in strength_baselines(asked, train, vectors)])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / len(found) ** 0.5
    assert (abs(mean - 0.5) < 4 * error).all()
