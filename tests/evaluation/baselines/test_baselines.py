from collections import Counter

import numpy as np
import pytest
from evaluation_builders import graded, pair, scored, world

from perse.errors import BadInput
from perse.evaluation.baselines.bias import fit_bias_model, training_reviews
from perse.evaluation.baselines.ratings import (
    NO_TRAINING_DATA,
    Baseline,
    _draw,
    joined,
    pairwise_baselines,
    past_review,
    pointwise_baselines,
    score_baselines,
    training_mean,
)
from perse.evaluation.baselines.strengths import strength_baselines
from perse.records import Pair, PairwiseExample, PointwiseExample
from perse.scale import HUNDREDS

# Training reviews: t0 gave i1 8 and i2 4, t1 gave i1 6. Mean 6.
TRAIN = [scored("a", "t0", 8, item="i1", profile=(("i2", 4),)), scored("b", "t1", 6, item="i1")]


def of(examples: list[PointwiseExample], name: str, train: list[PointwiseExample] | None = TRAIN, seed: int = 0):
    return {baseline.name: baseline for baseline in pointwise_baselines(examples, train, seed=seed)}[name]


def of_pairs(examples: list, name: str, train: list | None = None, seed: int = 0):
    return {baseline.name: baseline for baseline in pairwise_baselines(examples, train, seed=seed)}[name]


def test_each_training_review_counts_once_however_many_examples_show_it() -> None:
    twice = [*TRAIN, scored("c", "t0", 4, item="i2", profile=(("i1", 8),))]
    assert len(training_reviews(twice)) == 3
    assert training_mean(twice) == training_mean(TRAIN) == 6


def test_profile_average_is_the_mean_of_the_profiles_scores_and_the_training_mean_without_one() -> None:
    examples = [scored("x", "u", 1, profile=(("i1", 3), ("i2", 8))), scored("y", "u", 1)]
    assert of(examples, "profile average").predictions == (5.5, 6.0)


def test_profile_average_needs_training_data_only_for_empty_profiles() -> None:
    with_profile, without = scored("x", "u", 1, profile=(("i1", 3),)), scored("y", "u", 1)
    assert of([with_profile], "profile average", None).predictions == (3.0,)
    average = of([with_profile, without], "profile average", None)
    assert average.predictions is None
    assert average.unavailable == f"{NO_TRAINING_DATA} for the 1 examples with an empty profile"


def test_bias_model_equals_hand_derived_values() -> None:
    model = fit_bias_model(TRAIN, penalties=(1, 1))
    # b_i1 = (2 + 0) / (1 + 2), b_i2 = -2 / (1 + 1), of an unknown item 0; reader u gave i2 a 7: b_u = (7 - 6 - (-1)) / (1 + 1) = 1.
    reader = (("i2", 7),)
    asked = [
        scored("x", "u", None, item="i1", profile=reader),
        scored("y", "u", None, item="unknown", profile=reader),
        scored("z", "u", None, item="i1"),
    ]
    assert model.predict(asked) == pytest.approx([6 + 1 + 2 / 3, 7, 6 + 2 / 3])


def test_bias_model_predicts_training_readers_as_if_unseen_when_it_chooses_penalties() -> None:
    # Without t0's own reviews: b_i1 = (6 - 6) / (1 + 1) = 0, b_i2 = 0; b_u = (4 - 6 - 0) / (1 + 1) = -1.
    assert fit_bias_model(TRAIN, penalties=(1, 1)).predict(TRAIN[:1], unseen=True) == pytest.approx([5])


def test_bias_predictions_stay_on_the_scale() -> None:
    train = [scored(f"t{n}", f"t{n}", 10, item="good") for n in range(20)] + [scored("l", "l", 4, item="bad")]
    model = fit_bias_model(train, penalties=(0.1, 0.1))
    assert model.predict([scored("x", "u", None, item="good", profile=(("bad", 10),))]) == [10]


def test_chosen_penalties_predict_unseen_readers_better_than_the_profile_average() -> None:
    train, unseen = world(60, seed=1), world(30, seed=2)
    gold = [example.reference.score for example in unseen if example.reference]
    errors = {
        baseline.name: sum((p - g) ** 2 for p, g in zip(baseline.predictions, gold, strict=True))
        for baseline in pointwise_baselines(unseen, train)
        if baseline.predictions
    }
    assert errors["user+item bias"] < errors["profile average"] < errors["random"]


def slow_bias(train: list[PointwiseExample], asked: PointwiseExample, *, item: float, reader: float, unseen: bool) -> float:
    """The formula of the module, review by review."""
    given = {(one.reviewer_id, one.item_id): one.score for one in training_reviews(train)}
    mean = sum(given.values()) / len(given)

    def bias(item_id: str | None) -> float:
        scores = [s for (who, what), s in given.items() if what == item_id and not (unseen and who == asked.reviewer_id)]
        return sum(score - mean for score in scores) / (item + len(scores))

    rest = [past.score - mean - bias(past.item_id) for past in asked.profile]
    return min(max(mean + sum(rest) / (reader + len(rest)) + bias(asked.item_id), 1), 10)


@pytest.mark.parametrize("unseen", [False, True])
def test_all_examples_at_once_are_predicted_as_one_by_one(unseen: bool) -> None:
    train = world(12, seed=1)
    asked = train[:20] + world(3, seed=2)
    model = fit_bias_model(train, penalties=(5, 2))
    slow = [slow_bias(train, example, item=5, reader=2, unseen=unseen) for example in asked]
    assert model.predict(asked, unseen=unseen) == pytest.approx(slow)


def test_a_bias_model_of_nothing_is_refused() -> None:
    with pytest.raises(BadInput, match="hold no score"):
        fit_bias_model([scored("a", "t", None)])


def test_random_is_uniform_seeded_and_a_function_of_the_id_alone() -> None:
    examples = [scored(str(n), "u", 1, profile=(("i1", 3),)) for n in range(2000)]
    drawn = of(examples, "random").predictions
    assert drawn == of(examples, "random").predictions != of(examples, "random", seed=1).predictions
    assert drawn[::-1] == of(examples[::-1], "random").predictions
    counts = Counter(drawn)
    assert set(counts) == set(range(1, 11)) and min(counts.values()) > 150  # 200 expected, standard deviation 13


def test_majority_is_the_commonest_training_score_and_of_several_the_least() -> None:
    assert of([scored("x", "u", 1)], "majority").predictions == (4.0,)  # 8, 4 and 6 once each
    assert of([scored("x", "u", 1)], "majority", [*TRAIN, scored("c", "t2", 8)]).predictions == (8.0,)


def test_summaries_are_compared_with_the_training_mean_and_a_random_label() -> None:
    examples = [graded(str(n), "p", 3.0) for n in range(400)]
    found = score_baselines(examples, [graded("t", "t", 2.5), graded("s", "t", 4.0)], scale=HUNDREDS)
    mean, median, majority, chance = found
    assert (mean.name, set(mean.predictions), mean.distributions) == ("training mean", {3.25}, None)  # 2.5 is no label
    assert (median.name, set(median.predictions)) == ("training median", {2.5})
    assert (majority.name, set(majority.predictions)) == ("majority", {2.5})
    assert (chance.name, set(chance.predictions)) == ("random", {0, 20, 40, 60, 80, 100})
    assert score_baselines(examples, None, scale=HUNDREDS)[0].unavailable == NO_TRAINING_DATA


def test_a_past_review_is_one_of_those_shown_by_seed_and_empty_without_any() -> None:
    some = scored("x", "u", 1, profile=(("i1", 3), ("i2", 4)))
    texts = some.model_copy(update={"profile": tuple(p.model_copy(update={"review": f"r{p.score}"}) for p in some.profile)})
    drawn = {past_review(texts.model_copy(update={"id": str(n)})) for n in range(20)}
    assert drawn == {"r3", "r4"}
    assert past_review(texts) == past_review(texts)
    assert past_review(scored("y", "u", 1)) == ""


def test_copy_takes_the_profiles_answer_on_the_same_aspect_else_the_majority_of_its_answers() -> None:
    same = pair("1", "u", "A", aspect="Ending", profile=({"Ending": "B", "Surprise": "A", "Adaptability": "A"},))
    other = pair("2", "u", "A", aspect="Ending", profile=({"Surprise": "A", "Adaptability": "A", "Interestingness": "B"},))
    assert of_pairs([same, other], "copy the example").predictions == ("B", "A")


def test_copy_tosses_a_seeded_coin_where_the_profile_ties_or_is_empty() -> None:
    some = pair("x", "u", "A", profile=({"Surprise": "A"},))
    ties = [pair(str(n), "u", "A", profile=({"Surprise": "A", "Adaptability": "B"},)) for n in range(200)]
    empty = [pair(str(n), "u", "A") for n in range(200)]
    copied = of_pairs([some, *ties], "copy the example").predictions
    assert copied == of_pairs([some, *empty], "copy the example").predictions
    assert 60 < copied.count("A") < 140


def test_there_is_nothing_to_copy_where_no_example_has_a_profile() -> None:
    baseline = of_pairs([pair("1", "u", "A")], "copy the example")
    assert baseline.predictions is None and baseline.unavailable == "no example has a profile to copy from"


def test_majority_is_per_aspect_from_training_references() -> None:
    train = [
        pair("1", "t", "B", aspect="Ending"),
        pair("2", "t", "B", aspect="Ending"),
        pair("3", "t", "A", aspect="Surprise"),
        pair("4", "t", None, aspect="Surprise"),
    ]
    asked = [pair("x", "u", "A", aspect=aspect) for aspect in ("Ending", "Surprise", "Adaptability")]
    # Adaptability was never answered in training: the majority of all answers is B.
    assert of_pairs(asked, "majority", train).predictions == ("B", "A", "B")


@pytest.mark.parametrize("train", [None, []])
def test_a_baseline_that_cannot_be_fitted_is_listed_with_its_reason(train: list | None) -> None:
    for name in ("user+item bias", "matrix factorization", "majority"):
        baseline = of([scored("x", "u", 1)], name, train)
        assert (baseline.predictions, baseline.unavailable) == (None, NO_TRAINING_DATA)
    majority = of_pairs([pair("x", "u", "A")], "majority", train)
    assert (majority.predictions, majority.unavailable) == (None, NO_TRAINING_DATA)


def test_baselines_of_several_parts_stand_one_behind_the_other() -> None:
    parts = [[Baseline("x", (1.0, 2.0)), Baseline("y", (5.0, 6.0))], [Baseline("x", (3.0,)), Baseline("y", (7.0,))]]
    assert joined(parts) == [Baseline("x", (1.0, 2.0, 3.0)), Baseline("y", (5.0, 6.0, 7.0))]
    assert joined(parts[:1]) == parts[0]


def test_a_baseline_unavailable_in_one_part_is_unavailable_and_says_in_how_many() -> None:
    missing = Baseline("x", unavailable="no data")
    assert joined([[Baseline("x", (1.0,))], [missing], [missing]]) == [Baseline("x", unavailable="in 2 of 3 folds: no data")]
    assert joined([[missing]]) == [missing]


def test_what_knows_no_reader_says_of_a_text_what_its_training_readers_said() -> None:
    train = [scored(f"{n}{i}", f"t{n}", score, item=i) for n in range(30) for i, score in (("good", 9), ("bad", 2))]
    asked = [
        scored("x", "u", 1, item="good", profile=(("bad", 10),)),
        scored("y", "v", 1, item="bad"),
        scored("z", "v", 1, item="new"),
    ]
    good, bad, new = of(asked, "unpersonalized", train).predictions
    assert 8 < good <= 9 and 2 <= bad < 3 and new == 5.5
    assert of(asked[2:], "unpersonalized", train).unavailable == "none of these texts is in the training data"


def test_distributions_of_baselines_are_of_training_and_no_point_masses() -> None:
    train = [scored(f"{n}", f"t{n}", 1 + n % 4, item=f"i{n % 3}") for n in range(40)]
    asked = [scored("x", "u", 1, item="i1", profile=(("i2", 4),)), scored("y", "v", 1)]
    histogram = of(asked, "training mean", train)
    assert histogram.predictions == (2.5, 2.5)
    assert histogram.distributions == ((0.25, 0.25, 0.25, 0.25, 0, 0, 0, 0, 0, 0),) * 2
    bias = of(asked, "user+item bias", train)
    for value, spread in zip(bias.predictions, bias.distributions, strict=True):
        assert sum(spread) == pytest.approx(1) and min(spread) >= 0
        assert abs(sum(label * p for label, p in enumerate(spread, start=1)) - value) < 0.25  # cut at the ends of the scale
    assert of(asked, "training median", train).predictions == (2, 2)
    median = of(asked, "training median", train)
    assert median.distributions is None, "one score, and no spread"


@pytest.mark.parametrize("noise", [0.8, 1.6])
def test_the_spread_around_user_and_item_is_how_far_training_scores_lie_from_it(noise: float) -> None:
    generator = np.random.default_rng(2)
    scores = np.clip(np.round(5.5 + generator.normal(0, noise, 400)), 1, 10).astype(int)
    train = [scored(f"{n}", f"t{n}", int(score), item=f"i{n % 20}") for n, score in enumerate(scores)]
    model = fit_bias_model(train)
    off = model.predict(train, unseen=True) - scores
    assert model.spread == pytest.approx(float(np.sqrt((off**2).mean())))
    told = of([scored("x", "u", 1, item="i1")], "user+item bias", train)
    [value], [distribution] = told.predictions, told.distributions
    labels = np.arange(1, 11)
    deviation = float(np.sqrt(distribution @ (labels - distribution @ labels) ** 2))
    # A normal one cut into labels: of a variance larger by a twelfth.
    assert deviation == pytest.approx(float(np.sqrt(model.spread**2 + 1 / 12)), rel=0.05)
    assert deviation == pytest.approx(noise, rel=0.2) and value == pytest.approx(5.5, abs=0.5)


def test_of_pairs_what_knows_no_reader_is_what_most_other_readers_preferred_in_whichever_order() -> None:
    train = [pair(f"{n}", f"t{n}", "A" if n < 7 else "B") for n in range(10)]
    asked = pair("x", "u", "A")
    swapped = asked.model_copy(update={"query": Pair(text_a=asked.query.text_b, text_b=asked.query.text_a)})
    other = asked.model_copy(update={"query": Pair(text_a="1", text_b="2")})
    [found] = [one for one in pairwise_baselines([asked, swapped, other], train) if one.name == "unpersonalized"]
    assert found.predictions == ("A", "B", "A")  # the last by majority
    own = pairwise_baselines([asked.model_copy(update={"reviewer_id": "t0"})], train[:1])
    assert [one.unavailable for one in own if one.name == "unpersonalized"] == [
        "no other training reader was asked about any of these pairs, or they are even"
    ]


def test_chance_answers_the_same_on_every_machine_and_in_every_version() -> None:
    """Recorded: reports of long ago are made again with the same random baseline."""
    assert [_draw(f"example {n}", 7, sides=10) for n in range(12)] == DRAWN


DRAWN = [1, 5, 9, 6, 5, 0, 3, 0, 9, 9, 9, 5]


def test_notes_say_in_how_many_examples_a_row_knows_what_it_is_named_for() -> None:
    train = [scored(f"{n}{i}", f"t{n}", score, item=i) for n in range(30) for i, score in (("good", 9), ("bad", 2))]
    asked = [
        scored("x", "u", 1, item="good", profile=(("bad", 10),)),
        scored("y", "v", 1, item="new"),
        scored("z", "w", 1, item="new"),
    ]
    assert of(asked, "profile average", train).note == (
        "profile average: the training mean in 2 of 3 examples, whose profile is empty"
    )
    assert of(asked[:1], "profile average", train).note is None
    factors = of(asked, "matrix factorization", train).note
    assert factors and factors.endswith("gave each text on average, as user+item bias does, in 1 of 3 examples")


def test_of_pairs_bradley_terry_says_of_how_many_it_knows_both_texts() -> None:
    def asked(number: int, one: str, other: str) -> PairwiseExample:
        example = pair(f"{number}", f"u{number}", "A" if number % 3 else "B")
        return example.model_copy(update={"query": Pair(text_a=one, text_b=other)})

    train = [asked(n, f"{n % 5}", f"{(n + 1) % 5}") for n in range(40)]
    few = strength_baselines([asked(50, "1", "2"), asked(51, "1", "new"), asked(52, "other", "new")], train, None)
    assert few[0].note and few[0].note.endswith("knows both texts of 1 of 3 pairs, one or none of the others, and no reader")
    every = strength_baselines([asked(50, "1", "2")], train, None)
    assert every[0].note and every[0].note.endswith("knows the two texts, and no reader")
