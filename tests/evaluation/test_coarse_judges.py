"""Answers that are rounded more than the unpersonalized row have more ties, and ties are no disorder to tau-b."""

from __future__ import annotations

import numpy as np

from perse.evaluation.baselines.ratings import UNPERSONALIZED
from perse.evaluation.differences import score_differences
from perse.evaluation.pointwise_rows import Scores
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.results import Difference
from perse.evaluation.verdict import ROUNDED_MEAN, WITHIN, WITHIN_OF_ALL
from perse.scale import SCORES

READERS, TEXTS = 20, 12
ITEMS = READERS * TEXTS


def said_of(judged: FloatArray, row: FloatArray, gold: FloatArray) -> tuple[Difference, bool]:
    """What is said of taste, and whether tau-b alone is above the row's."""
    reader = np.repeat(np.arange(READERS), TEXTS)
    bootstrap = Bootstrap.over(reader, resamples=200, seed=0)
    scores = Scores(gold, reader, np.zeros(READERS, dtype=np.int64), bootstrap, SCORES)
    [*_, found] = score_differences("judge", {"judge (expected)": judged, UNPERSONALIZED: row}, scores, profiles=False)
    return found, bootstrap.difference(WITHIN, gold, judged, row).above_zero


def world(seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The readers' scores, what the row says, and what each reader likes beside a text's quality."""
    generator = np.random.default_rng(seed)
    quality, taste = generator.normal(0, 1, ITEMS), generator.normal(0, 1.3, ITEMS)
    gold = np.clip(np.round(6 + quality + taste), 1, 10)
    return gold, 6 + 0.6 * quality + generator.normal(0, 0.4, ITEMS), taste


def in_halves(values: FloatArray) -> FloatArray:
    halves: FloatArray = np.floor(2 * values + 0.5) / 2
    return halves


def test_the_row_itself_in_halves_does_not_order_a_readers_texts_better_than_it() -> None:
    gold, row, _ = world(13)
    found, alone = said_of(in_halves(row), row, gold)
    assert alone, "by its ties it is ahead of itself"
    assert found.baseline == ROUNDED_MEAN and found.estimate.value == 0 and not found.estimate.above_zero


def test_a_judge_of_halves_that_knows_a_readers_taste_orders_texts_better() -> None:
    gold, row, taste = world(13)
    found, _ = said_of(in_halves(row + taste / 2), row, gold)
    assert found.baseline == UNPERSONALIZED and found.estimate.above_zero


def silent_of(share: float, judged: FloatArray) -> FloatArray:
    """A judge that tells the first readers one thing of all texts."""
    told: FloatArray = np.where(np.arange(ITEMS) < share * READERS * TEXTS, 5.0, judged)
    return told


def test_a_judge_does_not_gain_by_telling_readers_one_thing() -> None:
    gold, row, taste = world(13)
    found, alone = said_of(silent_of(0.5, row + taste / 2), row, gold)
    assert alone, "it is ahead on the readers that are left"
    assert (found.baseline, found.column) == (UNPERSONALIZED, WITHIN_OF_ALL) and not found.estimate.above_zero


def test_of_few_readers_who_are_told_one_thing_the_others_still_speak() -> None:
    gold, row, taste = world(13)
    found, _ = said_of(silent_of(0.1, row + taste / 2), row, gold)
    assert found.column == WITHIN and found.estimate.above_zero


def test_readers_who_score_all_texts_alike_are_not_held_against_a_judge() -> None:
    gold, row, taste = world(13)
    alike = silent_of(0.5, gold)
    found, _ = said_of(silent_of(0.5, row + taste / 2), row, alike)
    assert found.column == WITHIN and found.estimate.above_zero


def test_the_row_cut_in_two_does_not_order_a_readers_texts_better_than_it() -> None:
    # Good texts and bad ones: whole numbers hold more of the row than two words do.
    generator = np.random.default_rng(2)
    good = generator.random(ITEMS) < 0.5
    gold = np.clip(np.round(np.where(good, 8, 5) + generator.normal(0, 1, ITEMS)), 1, 10)
    row = np.where(good, 8.0, 5.0) + generator.normal(0, 1, ITEMS)
    found, alone = said_of(np.where(row > 6.5, 8.0, 7.0), row, gold)
    assert alone and not found.estimate.above_zero
    assert found.baseline == ROUNDED_MEAN


def test_a_row_that_orders_nothing_once_it_is_rounded_is_no_rule() -> None:
    """What other readers said is shrunk so far that it rounds to one label for nearly every reader."""
    generator = np.random.default_rng(6)
    quality = generator.normal(0, 1, ITEMS)
    gold = np.clip(np.round(6 + 1.5 * quality + generator.normal(0, 1, ITEMS)), 1, 10)
    row = 6 + 0.1 * quality + generator.normal(0, 0.1, ITEMS)
    found, _ = said_of(np.clip(np.round(gold + generator.normal(0, 0.7, ITEMS)), 1, 10), row, gold)
    assert found.baseline == UNPERSONALIZED and found.estimate.above_zero
