"""How studies tell a difference: as evaluate and compare do, with ties looked at again."""

from __future__ import annotations

import numpy as np

from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.evaluation.stats.unseen import of_correlations
from perse.studies.frame.summarizing import SharedResamples, minus, shown_apart, verdict

READERS, TEXTS = 120, 4


def averages(noise: float) -> tuple[SharedResamples, np.ndarray, np.ndarray]:
    """A reader's own average of three whole scores, and the same with a noise that breaks its ties."""
    generator = np.random.default_rng(1)
    gold, average = [], []
    for _ in range(READERS):
        scores = np.clip(np.round(generator.normal(6, 1.2) + generator.normal(0, 1.5, 8)), 1, 10)
        for at in range(TEXTS):
            gold.append(scores[at])
            average.append(scores[generator.choice([n for n in range(8) if n != at], 3, replace=False)].mean())
    reader = np.repeat(np.arange(READERS), TEXTS)
    study = SharedResamples(np.array(gold), reader, Bootstrap.over(reader, resamples=200, seed=0))
    broken = np.array(average) + generator.normal(0, noise, len(gold))
    return study, np.array(average), broken


def test_a_study_does_not_tell_a_change_that_ties_alone_make() -> None:
    study, average, broken = averages(0.02)
    change = minus([(1.0, broken)], [(1.0, average)])
    difference = study.value("kendall", change)
    assert difference.below_zero and "not shown" not in verdict(difference)
    told = study.told("kendall", change)
    assert (
        told.startswith("-0.0")
        and ", not shown, since it is " in told
        and told.endswith("of all pairs where ties count for neither")
    )


def test_a_study_tells_a_change_that_is_there_without_ties_too() -> None:
    study, average, broken = averages(3.0)
    change = minus([(1.0, average)], [(1.0, broken)])
    difference = study.value("kendall", change)
    assert difference.above_zero and study.told("kendall", change) == verdict(difference)
    better = minus([(1.0, -np.abs(average - study.gold))], [(1.0, np.zeros(len(average)))])
    assert study.told("mae", better) == verdict(study.value("mae", better))


def test_the_difference_without_ties_is_of_all_pairs_on_the_same_resamples() -> None:
    study, average, broken = averages(0.02)
    found = study.value("kendall_a", minus([(1.0, broken)], [(1.0, average)]))
    resampled = [study.bootstrap.resampled("kendall_a", study.gold, side) for side in (broken, average)]
    alone = bootstrap_interval(resampled[0] - resampled[1], reviewers=READERS)
    values = [study.value("kendall_a", [(1.0, side)]).value for side in (broken, average)]
    told = of_correlations(found.value, alone, [(values[0], len(study.gold)), (-values[1], len(study.gold))])
    assert (found.interval.low, found.interval.high) == (told.low, told.high) and not shown_apart(found)
