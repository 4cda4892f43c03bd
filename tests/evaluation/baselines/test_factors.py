import numpy as np
import pytest
from evaluation_builders import scored, world

from perse.errors import BadInput
from perse.evaluation.baselines.bias import fit_bias_model, training_reviews
from perse.evaluation.baselines.factors import FACTOR_PENALTIES, FACTORS, Factorization, FactorModel, fit_factor_model
from perse.evaluation.baselines.ratings import Baseline, pointwise_baselines
from perse.evaluation.stats.correlation import FloatArray
from perse.records import PointwiseExample


def tastes(readers: int, *, seed: int, per_reader: int = 12, shown: int = 6) -> list[PointwiseExample]:
    """Readers of two tastes: what one half loves, the other hates. Biases cannot tell; one factor can."""
    generator = np.random.default_rng(seed)
    loved = np.arange(20) % 2 * 2 - 1
    examples = []
    for r in range(readers):
        taste = 1 if generator.random() < 0.5 else -1
        items = generator.choice(20, per_reader, replace=False)
        scores = np.clip(np.round(5.5 + 3 * taste * loved[items] + generator.normal(0, 0.7, len(items))), 1, 10)
        profile = tuple((f"i{i}", int(s)) for i, s in zip(items[:shown], scores[:shown], strict=True))
        for i, s in zip(items[shown:], scores[shown:], strict=True):
            examples.append(scored(f"s{seed}-{r}-{i}", f"s{seed}-{r}", int(s), item=f"i{i}", profile=profile))
    return examples


def error(predicted: FloatArray, examples: list[PointwiseExample]) -> float:
    gold = np.array([example.reference.score for example in examples if example.reference])
    return float(((predicted - gold) ** 2).mean())


@pytest.mark.slow
def test_readers_never_seen_are_folded_in_where_taste_decides() -> None:
    train, unseen = tastes(80, seed=1), tastes(30, seed=2)
    model, biases = fit_factor_model(train), fit_bias_model(train)
    bias = error(biases.predict(unseen), unseen)
    assert error(model.predict(unseen), unseen) < 0.25 * bias


def test_where_there_is_no_taste_the_chosen_penalty_leaves_the_biases() -> None:
    train, unseen = world(60, seed=1), world(30, seed=2)
    biases = fit_bias_model(train)
    bias = error(biases.predict(unseen), unseen)
    assert error(fit_factor_model(train).predict(unseen), unseen) == pytest.approx(bias, rel=0.1)


def test_a_reader_is_folded_in_by_ridge_regression_on_the_profile() -> None:
    # Two items with bias and one factor each; mean 5. The profile: i1 scored 8, an item unknown to training scored 4.
    items = np.array([[1.0, 2.0], [-1.0, 1.0]])
    model = FactorModel(5.0, {"i1": 0, "i2": 1}, items, reader_penalty=1.0, factor_penalty=4.0)
    example = scored("x", "u", None, item="i2", profile=(("i1", 8), ("new", 4)))
    # Rest: 8 - 5 - 1 = 2 at [1, 2], and 4 - 5 = -1 at [1, 0]. Gram [[2 + 1, 2], [2, 4 + 4]], moments [1, 4]:
    # det 24 - 4 = 20, bias (8 - 8) / 20 = 0, factor (12 - 2) / 20 = 1/2. Prediction 5 - 1 + 0 + 1/2.
    assert model.predict([example]) == pytest.approx([4.5])


def test_an_item_or_a_reader_that_nobody_knows_falls_back_to_what_is_known() -> None:
    model = FactorModel(5.0, {"i1": 0}, np.array([[1.0, 2.0]]), reader_penalty=1.0, factor_penalty=4.0)
    unknown = scored("x", "u", None, item="new", profile=(("other", 7), (None, 7)))
    # Both shown items are unknown: the bias is (2 + 2) / (1 + 2), the factor 0.
    assert model.predict([unknown]) == pytest.approx([5 + 4 / 3])
    assert model.predict([scored("y", "u", None, item="i1")]) == pytest.approx([6])
    assert len(model.predict([])) == 0


def test_no_other_weights_of_a_reader_or_item_fit_better() -> None:
    """After enough sweeps neither side can be improved: the sum that alternating least squares lessens is at a minimum."""
    train = tastes(40, seed=3)
    model = fit_factor_model(train, settings=Factorization((2,), (5.0,)))
    reviews = training_reviews(train)
    column = {"bias": fit_bias_model(train).item_penalty, "factor": 5.0}
    readers = sorted({review.reviewer_id for review in reviews})
    penalties = np.array([column["factor"]] * 2)

    def weights_of(reader: str) -> FloatArray:
        rows = [review for review in reviews if review.reviewer_id == reader]
        theirs = np.array([model.items[model.row_of[review.item_id or ""]] for review in rows])
        rest = np.array([review.score for review in rows]) - model.mean - theirs[:, 0]
        shared = np.hstack([np.ones((len(rows), 1)), theirs[:, 1:]])
        penalty = np.diag([model.reader_penalty, *penalties])
        solved: FloatArray = np.linalg.solve(shared.T @ shared + penalty, shared.T @ rest)
        return solved

    found = {reader: weights_of(reader) for reader in readers}
    for item in ("i0", "i7"):
        rows = [review for review in reviews if review.item_id == item]
        theirs = np.array([found[review.reviewer_id] for review in rows])
        rest = np.array([review.score for review in rows]) - model.mean - theirs[:, 0]
        shared = np.hstack([np.ones((len(rows), 1)), theirs[:, 1:]])
        penalty = np.diag([column["bias"], *penalties])
        best = np.linalg.solve(shared.T @ shared + penalty, shared.T @ rest)
        assert model.items[model.row_of[item]] == pytest.approx(best, abs=0.05)


def test_predictions_stay_on_the_scale() -> None:
    model = FactorModel(9.0, {"i1": 0}, np.array([[4.0, 0.0]]), reader_penalty=1.0, factor_penalty=1.0)
    assert model.predict([scored("x", "u", None, item="i1")]) == pytest.approx([10])


def test_the_same_data_in_any_order_gives_the_same_model() -> None:
    train, unseen = tastes(20, seed=1), tastes(5, seed=2)
    one, other = fit_factor_model(train), fit_factor_model(train[::-1])
    assert one.predict(unseen).tolist() == other.predict(unseen).tolist()
    assert one.factors in FACTORS and one.factor_penalty in FACTOR_PENALTIES


def test_few_training_readers_are_not_held_out_and_none_is_refused() -> None:
    model = fit_factor_model(tastes(4, seed=1))
    assert (model.factors, model.factor_penalty) == (FACTORS[0], FACTOR_PENALTIES[-1])
    with pytest.raises(BadInput, match="hold no score"):
        fit_factor_model([scored("a", "t", None)])


def test_profiles_that_name_no_item_still_give_a_reader_their_bias() -> None:
    train = [scored(f"t{n}", f"t{n}", 5, profile=((None, 5),)) for n in range(3)]
    nameless = [example.model_copy(update={"reference": None}) for example in train]
    model = fit_factor_model(nameless)
    assert model.row_of == {}
    assert model.predict([scored("x", "u", None, profile=((None, 9),))])[0] > 5


def test_the_plain_one_knows_no_means_and_does_worse_where_texts_differ_for_all() -> None:
    """With biases a factorization is that of what is left of them: a text that training knows to be liked is liked by a new reader."""
    train = [scored(f"e{u}-{i}", f"u{u}", 2 + 6 * (i % 2), item=f"i{i}") for u in range(30) for i in range(6)]
    new = [scored(f"x{i}", "x", None, item=f"i{i}") for i in range(2)]
    settings = Factorization((2,), (20.0,))
    biased, plain = fit_factor_model(train, settings=settings), fit_factor_model(train, settings=settings, plain=True)
    assert np.abs(plain.items[:, 0]).max() < 1e-9 < np.abs(biased.items[:, 0]).max()
    low, high = biased.predict(new)
    assert low < 3.5 and high > 6.5
    assert plain.predict(new) == pytest.approx([5, 5], abs=1e-6), "of a reader without a profile it knows the mean alone"


def test_settings_that_are_given_are_taken_and_of_several_held_out_readers_choose() -> None:
    train = tastes(20, seed=1)
    given = fit_factor_model(train, settings=Factorization((5,), (7.0,)))
    assert (given.factors, given.factor_penalty) == (5, 7.0)
    assert fit_factor_model(train, settings=Factorization((3,), FACTOR_PENALTIES)).factors == 3


def test_rows_of_factorization_say_what_they_know_of_the_texts_and_by_which_settings() -> None:
    train, new = tastes(20, seed=1), tastes(5, seed=2)

    def rows(examples: list[PointwiseExample], settings: Factorization) -> list[Baseline[float]]:
        return [one for one in pointwise_baselines(examples, train, factorization=settings) if "factorization" in one.name]

    given = Factorization((3,), (7.5,))
    assert [one.note for one in rows(new, given)] == [
        "matrix factorization (factors: 3, penalty 7.5): knows what training readers gave each text on average, as user+item bias does",
        "plain matrix factorization (factors: 3, penalty 7.5): without such means",
    ]
    unknown = [one.model_copy(update={"item_id": f"new {one.item_id}"}) for one in new]
    nothing = "of readers what their profiles show, and of these texts nothing, for none is in the training data"
    assert [(one.note or "").partition(": knows ")[2] for one in rows(unknown, given)] == [nothing] * 2
    for one, plain in zip(rows(new, Factorization()), (False, True), strict=True):
        chosen = fit_factor_model(train, plain=plain)
        assert one.note and f"(factors: {chosen.factors}, penalty {chosen.factor_penalty:g})" in one.note
        assert one.predictions == pytest.approx(chosen.predict(new))
