"""A difference that would be shown stands only where ten readers, and ten texts where these are drawn, make it."""

from __future__ import annotations

import numpy as np
import pytest
from evaluation_builders import answered, scored

from perse.evaluation.alignment import Fold
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.stacking.adding import Told, gains
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.results.result import Interval
from perse.studies.frame.summarizing import SharedResamples, minus

READERS, TEXTS = 30, 4
READER = np.repeat(np.arange(READERS), TEXTS)
GOLD = np.tile([1.0, 2.0, 3.0, 4.0], READERS)
WRONG = np.tile([1.0, 2.0, 4.0, 3.0], READERS)
"""The last two texts of each reader the wrong way round."""
BY_READERS = Bootstrap.over(READER, resamples=200, seed=0)
SHOWN, UNCLEAR = Interval(low=0.01, high=0.2), Interval(low=-0.1, high=0.3)


def right_for(readers: int) -> FloatArray:
    return np.where(readers > READER, GOLD, WRONG)


@pytest.mark.parametrize("name", ["kendall", "within_kendall", "within_zero_pearson", "between_spearman", "mae"])
@pytest.mark.parametrize(("differ", "reason"), [(9, "undefined (rests on few reviewers)"), (10, None)])
def test_a_difference_that_nine_readers_make_is_not_shown_and_one_of_ten_is(name: str, differ: int, reason: str | None) -> None:
    sides = ((1.0, right_for(differ)), (-1.0, WRONG))
    assert BY_READERS.unless_few_differ(SHOWN, name, GOLD, sides=sides).reason == reason
    assert BY_READERS.unless_few_differ(UNCLEAR, name, GOLD, sides=sides) == UNCLEAR


@pytest.mark.parametrize("name", ["kendall", "mae"])
def test_a_reader_whose_answers_are_hardly_apart_makes_no_difference(name: str) -> None:
    """Distributions of two decimals put expected scores some hundredths apart."""
    jitter = np.random.default_rng(0).uniform(-0.02, 0.02, len(GOLD))
    sides = ((1.0, right_for(9) + jitter), (-1.0, WRONG))
    assert BY_READERS.unless_few_differ(SHOWN, name, GOLD, sides=sides).reason == "undefined (rests on few reviewers)"
    flipped = np.where(GOLD == 2, 1.02, GOLD), np.where(GOLD == 2, 0.98, GOLD)  # of near ties the order turns, to everybody
    sides = ((1.0, np.where(READER < 9, GOLD, flipped[0])), (-1.0, np.where(READER < 9, WRONG, flipped[1])))
    assert (
        BY_READERS.unless_few_differ(SHOWN, "within_kendall", GOLD, sides=sides).reason == "undefined (rests on few reviewers)"
    )
    alone = ((1.0, WRONG + jitter), (-1.0, WRONG))
    assert BY_READERS.unless_few_differ(SHOWN, name, GOLD, sides=alone) == SHOWN, (
        "of many that are all hardly apart it is theirs"
    )


@pytest.mark.parametrize("name", ["kendall", "within_kendall", "mae"])
def test_one_sample_beside_the_mean_of_several_is_made_by_all_whose_samples_vary_and_passes_in_another_order_by_nobody(
    name: str,
) -> None:
    samples = np.random.default_rng(0).integers(1, 5, (3, len(GOLD))).astype(np.float64)
    one = [(1 / 3, each) for each in samples]
    assert BY_READERS.unless_few_differ(SHOWN, name, GOLD, sides=(*one, (-1.0, samples.mean(axis=0)))) == SHOWN
    others = [(-1 / 3, np.where(READER < 9, WRONG, each)) for each in samples[::-1]]
    assert BY_READERS.unless_few_differ(SHOWN, name, GOLD, sides=(*one, *others)).reason == "undefined (rests on few reviewers)"


def test_within_readers_it_is_made_by_those_whose_texts_are_ordered_otherwise() -> None:
    """Another number for all of a reader's texts orders none of them otherwise."""
    moved = right_for(9) + READER
    sides = ((1.0, moved), (-1.0, WRONG))
    assert (
        BY_READERS.unless_few_differ(SHOWN, "within_kendall", GOLD, sides=sides).reason == "undefined (rests on few reviewers)"
    )
    assert BY_READERS.unless_few_differ(SHOWN, "kendall", GOLD, sides=sides) == SHOWN


@pytest.mark.parametrize(("differ", "reason"), [(9, "undefined (rests on few texts)"), (10, None)])
def test_where_texts_are_drawn_ten_of_them_make_it_but_between_readers(differ: int, reason: str | None) -> None:
    reader, item = np.repeat(np.arange(20), 20), np.tile(np.arange(20), 20)
    bootstrap = Bootstrap.over(reader, resamples=200, seed=0, item=item)
    gold = np.tile(np.linspace(1, 5, 20), 20)
    sides = ((1.0, gold + (item < differ)), (-1.0, gold))
    assert bootstrap.unless_few_differ(SHOWN, "kendall", gold, sides=sides).reason == reason
    assert bootstrap.unless_few_differ(SHOWN, "between_kendall", gold, sides=sides) == SHOWN


def test_every_way_of_telling_a_difference_knows_the_rule() -> None:
    """Of two judges that answer nine of 200 readers differently, always better: a bootstrap by readers leaves out 0."""
    reader: IntArray = np.repeat(np.arange(200), TEXTS)
    gold, wrong = np.tile(GOLD[:TEXTS], 200), np.tile(WRONG[:TEXTS], 200)
    bootstrap = Bootstrap.over(reader, resamples=400, seed=0)
    study = SharedResamples(gold, reader, bootstrap)
    for differ, shown in ((9, False), (30, True)):
        one = np.where(reader < differ, gold, wrong)
        for name in ("kendall", "within_kendall"):
            told = (bootstrap.difference(name, gold, one, wrong), study.value(name, minus([(1.0, one)], [(1.0, wrong)])))
            assert [found.above_zero for found in told] == [shown, shown]
        [error] = [study.value("mae", minus([(1.0, one)], [(1.0, wrong)]))]
        assert error.below_zero == shown
        row = {name: found.above_zero for name, found in gains(gold, _row(one), _row(wrong), bootstrap).items()}
        assert row == dict.fromkeys(("kendall", "within_kendall", "mae", "rps"), shown)


def _row(values: FloatArray) -> Told:
    return Told("row", values, np.eye(10)[values.astype(int) - 1])


@pytest.mark.parametrize(("differ", "shown"), [(9, False), (14, True)])
def test_compare_concludes_nothing_of_two_judges_that_answer_nine_readers_differently(differ: int, shown: bool) -> None:
    examples = [scored(f"{who}-{nth}", f"r{who}", int(GOLD[nth])) for who in range(READERS) for nth in range(TEXTS)]
    wrong, right = (
        [answered(example.id, str(int(label))) for example, label in zip(examples, labels, strict=True)]
        for labels in (WRONG, right_for(differ))
    )
    found = compare(
        {"wrong": wrong, "right": right}, [Fold(examples, None)], resamples=200, permutations=200, metrics=["within_kendall"]
    )
    [contrast] = next(pairing for pairing in found.pairings if not pairing.baseline).contrasts
    assert contrast.difference is not None and contrast.difference > 0 and contrast.p is not None and contrast.p < 0.05
    assert contrast.interval.reason == (None if shown else "undefined (rests on few reviewers)")
    verdict = found.pairings[0].verdict
    assert ("right is better than wrong" in verdict) == shown and ("not shown to differ" in verdict) != shown
