"""The reader's own average, told in other words, is not better than itself: with its ties broken, as labels, in two words, or in stars."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from evaluation_builders import answered, between, scored

from perse.evaluation.differences import as_coarse, as_labels
from perse.evaluation.evaluate import Evaluation, evaluate
from perse.evaluation.verdict import EVENED


def around_their_average(seed: int, said: Callable[[float, np.random.Generator], float]) -> Evaluation:
    """Readers around a level of their own, whose shown scores have this mean; the judge says something of it."""
    generator = np.random.default_rng(seed)
    examples, judgements = [], []
    for reader in range(60):
        scores = np.clip(np.round(generator.normal(6, 1.2) + generator.normal(0, 1.5, 8)), 1, 10).astype(int)
        for at in range(4):
            past = tuple(
                (f"p{n}", int(scores[n])) for n in generator.choice([n for n in range(8) if n != at], 3, replace=False)
            )
            examples.append(scored(f"{reader}-{at}", f"u{reader}", int(scores[at]), item=f"i{reader}-{at}", profile=past))
            value = said(sum(score for _, score in past) / 3, generator)
            judgements.append(answered(f"{reader}-{at}", str(round(value)), distribution=between(value)))
    return evaluate(examples, judgements, train=None, resamples=300)


@pytest.mark.slow
def test_the_readers_own_average_with_its_ties_broken_is_not_worse_than_itself() -> None:
    # Tau-b leaves the ties of the average out; noise of 0.02 orders them by nothing. Once "worse" in most of such worlds.
    found = [
        around_their_average(seed, lambda mean, noise: float(np.clip(mean + noise.normal(0, 0.02), 1, 9.99)))
        for seed in range(8)
    ]
    assert [one.conclusions[0].standing for one in found].count("worse") <= 1
    told = [one.verdict[0] for one in found if one.conclusions[0].against == EVENED]
    assert told and all("not shown to be better than the reader's own average: Kendall tau-b" in one for one in told)
    assert all(re.search(r"\] against 0\.\d\d \[.*\], where ties count for neither apart by [+-]", one) for one in told)
    assert not any("profile average, which needs no judge" in one for one in told), "it is the rule"


@pytest.mark.slow
def test_one_answer_that_is_no_label_does_not_make_the_rounded_average_better_than_itself() -> None:
    def rounded(mean: float, noise: np.random.Generator) -> float:
        return float(np.floor(mean + 0.5)) + (0.4 if noise.random() < 0.01 else 0.0)

    assert all(around_their_average(seed, rounded).conclusions[0].standing != "better" for seed in range(8))


@pytest.mark.slow
def test_a_judge_that_knows_less_than_the_average_is_still_worse() -> None:
    def noisy(mean: float, noise: np.random.Generator) -> float:
        return float(np.clip(mean + noise.normal(0, 4), 1, 9.99))

    assert all(around_their_average(seed, noisy).conclusions[0].standing == "worse" for seed in range(3))


@pytest.mark.slow
def test_who_is_below_the_average_by_ties_and_above_it_without_them_is_not_better() -> None:
    # Readers give nearly one score, and one of theirs is shown: much is tied, and what breaks ties a little is above only where these do not count.
    generator = np.random.default_rng(1)
    standing, apart = [], []
    for _ in range(4):
        examples, judgements = [], []
        for reader in range(150):
            level = generator.normal(4.2, 0.9)
            stars = np.clip(np.round(level + generator.normal(0, 0.7, 7)), 1, 5).astype(int)
            scores = (1, 3, 6, 8, 10)
            for at in range(1, 7):
                one = scored(
                    f"{reader}-{at}",
                    f"u{reader}",
                    scores[stars[at] - 1],
                    item=f"{reader}-{at}",
                    profile=((f"p{reader}", scores[stars[0] - 1]),),
                )
                examples.append(one)
                value = scores[stars[0] - 1] + generator.normal(0, 0.3) + 0.03 * (scores[stars[at] - 1] - scores[stars[0] - 1])
                judgements.append(answered(one.id, "5", distribution=between(float(np.clip(value, 1, 9.99)))))
        found = evaluate(examples, judgements, train=None, resamples=100)
        standing.append(found.conclusions[0].standing)
        apart += [one.estimate.above_zero for one in found.differences if one.baseline == EVENED]
    assert any(apart), "above where ties count for neither"
    assert standing.count("better") == standing.count("worse") == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [(7, 8), (3, 5, 8)])
def test_the_average_told_in_few_words_is_not_better_than_itself(words: tuple[int, ...]) -> None:
    def told(mean: float, noise: np.random.Generator) -> float:
        return float(min(words, key=lambda one: abs(one - mean - 1.5)))

    assert all(around_their_average(seed, told).conclusions[0].standing != "better" for seed in range(6))


def test_what_is_told_as_coarsely_as_labels_is_rounded_and_has_as_many_of_each() -> None:
    theirs = np.array([1.2, 2.7, 4.4, np.nan, 8.9, 3.0])
    mine = np.array([1.0, 8.0, 1.0, 8.0, np.nan, 8.0])
    in_its_values, rounded = as_coarse(theirs, mine)
    np.testing.assert_array_equal(in_its_values, [1, 1, 8, np.nan, np.nan, 8])
    np.testing.assert_array_equal(rounded, [1, 3, 4, np.nan, np.nan, 3])
    np.testing.assert_array_equal(as_coarse(theirs, as_labels(theirs))[0], as_labels(theirs)), "rounding is told as it is"
    assert len(as_coarse(theirs, mine + 0.25)) == 1
