"""The closed form of ridge regression with reader offsets, held against the same regression with a column for each reader."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.data.evidence.content import (
    Asked,
    FloatArray,
    IntArray,
    Ratings,
    choose,
    cross_fitted,
    fit_content,
    parts,
    with_offset,
)


def drawn(seed: int, *, readers: int = 9, texts: int = 14, dimensions: int = 4, scores: int = 60) -> tuple[FloatArray, Ratings]:
    """Unit vectors (T, d), and scores of them that depend on text and reader."""
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(texts, dimensions))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    reader, text = generator.integers(readers, size=scores), generator.integers(texts, size=scores)
    pleasing, lenient = vectors @ generator.normal(size=dimensions), generator.normal(size=readers)
    score = 5.5 + 1.5 * pleasing[text] + lenient[reader] + generator.normal(0, 0.5, scores)
    return vectors, Ratings(reader, text, np.clip(score, 1, 10))


def slowly(vectors: FloatArray, ratings: Ratings, penalty: float, reader_penalty: float) -> tuple[FloatArray, FloatArray]:
    """Weights (d,) and offsets (U,) of the explicit regression: embeddings and a column of 0 and 1 for each reader."""
    centred = vectors[ratings.text] - vectors[ratings.text].mean(axis=0)
    dummies = np.eye(int(ratings.reader.max()) + 1)[ratings.reader]
    columns = np.hstack([centred, dummies])
    penalties = np.diag([penalty] * vectors.shape[1] + [reader_penalty] * dummies.shape[1])
    found = np.linalg.solve(columns.T @ columns + penalties, columns.T @ (ratings.score - ratings.score.mean()))
    return found[: vectors.shape[1]], found[vectors.shape[1] :]


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6), penalty=st.sampled_from([0.01, 1.0, 50.0]), reader_penalty=st.sampled_from([0.5, 5.0, 100.0])
)
def test_the_closed_form_equals_ridge_regression_with_a_column_for_each_reader(
    seed: int, penalty: float, reader_penalty: float
) -> None:
    vectors, ratings = drawn(seed)
    model = fit_content(vectors, ratings, (penalty, reader_penalty))
    weights, _ = slowly(vectors, ratings, penalty, reader_penalty)
    assert model.weights == pytest.approx(weights, rel=1e-8, abs=1e-10)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_the_offset_from_shown_scores_is_that_of_the_regression(seed: int) -> None:
    """A reader of training whose profile is all that they scored gets the offset that the explicit regression gives them."""
    vectors, ratings = drawn(seed)
    pair = (1.0, 5.0)
    model = fit_content(vectors, ratings, pair)
    _, offsets = slowly(vectors, ratings, *pair)
    values = model.of_texts(vectors)
    mine = np.flatnonzero(ratings.reader == ratings.reader[0])
    shown = ratings.only(ratings.reader == ratings.reader[0])
    asked = Asked(np.array([0]), np.zeros(len(mine), dtype=np.int64), shown.text, shown.score)
    given = with_offset(values[shown.text], np.array([5.5]), asked, pair[1])
    assert given == pytest.approx(np.clip([5.5 + offsets[ratings.reader[0]]], 1, 10))


def test_without_readers_it_is_plain_ridge_regression() -> None:
    vectors, ratings = drawn(3)
    centred = vectors[ratings.text] - vectors[ratings.text].mean(axis=0)
    plain = np.linalg.solve(centred.T @ centred + np.eye(4), centred.T @ (ratings.score - ratings.score.mean()))
    assert fit_content(vectors, ratings, (1.0, inf)).weights == pytest.approx(plain)
    assert fit_content(vectors, ratings, (1.0, 1e12)).weights == pytest.approx(plain, rel=1e-6)


def test_an_infinite_penalty_leaves_a_reader_without_an_offset() -> None:
    asked = Asked(np.array([0]), np.array([0, 0]), np.array([1, 2]), np.array([10.0, 10.0]))
    assert with_offset(np.array([5.0, 5.0]), np.array([4.0]), asked, inf) == pytest.approx([4.0])
    assert with_offset(np.array([5.0, 5.0]), np.array([4.0]), asked, 8.0) == pytest.approx([5.0])  # (5 + 5) / (8 + 2) = 1
    assert with_offset(np.array([5.0, 5.0]), np.array([9.5]), asked, 8.0) == pytest.approx([10.0])  # kept on the scale


@pytest.mark.parametrize("new_texts", [False, True])
def test_an_estimate_knows_no_score_of_the_part_that_it_left_out(new_texts: bool) -> None:
    vectors, ratings = drawn(5)
    of_reader: IntArray = parts(9, 3, np.random.default_rng(0))
    of_text = parts(14, 2, np.random.default_rng(1)) if new_texts else None
    before = cross_fitted(vectors, ratings, [(1.0, 5.0)], of_reader=of_reader, of_text=of_text)[0]
    changed = of_reader[ratings.reader] == 1
    if of_text is not None:
        changed |= of_text[ratings.text] == 1
    other = Ratings(ratings.reader, ratings.text, np.where(changed, 11 - ratings.score, ratings.score))
    after = cross_fitted(vectors, other, [(1.0, 5.0)], of_reader=of_reader, of_text=of_text)[0]
    same = np.isclose(before, after)
    asked = np.ones(14, dtype=bool) if of_text is None else of_text == 1
    assert same[1, asked].all() and not same[0].all()


def test_penalties_are_chosen_that_predict_readers_who_were_left_out() -> None:
    """Where the vectors say all, a small penalty is best; where they say nothing, the largest."""
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(200, 4))
    reader, text = generator.integers(40, size=800), generator.integers(200, size=800)
    for telling in (True, False):
        pleasing = vectors @ np.array([1.0, -1.0, 0.5, 0.2]) if telling else generator.normal(size=200)
        ratings = Ratings(reader, text, 5.5 + pleasing[text] * 0.8)
        nothing = np.empty(0, dtype=np.int64)
        asked = Asked(text, nothing, nothing, np.empty(0))
        of_text = parts(200, 5, generator)  # the texts asked about are new, so that none is learned by heart
        chosen = choose(vectors, ratings, asked, ratings.score, reader, of_text=of_text)
        assert (chosen.pair[0] <= 1.0) is telling
        assert chosen.error is not None and (chosen.error < 0.1) is telling
    alone = Ratings(np.zeros(3, dtype=np.int64), np.array([0, 1, 2]), np.array([4.0, 5.0, 6.0]))
    assert choose(vectors, alone, asked, alone.score, alone.reader).error is None, "one reader cannot be left out"
