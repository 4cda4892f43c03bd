"""How studies tell a difference: as evaluate and compare do, with ties looked at again."""

from __future__ import annotations

import numpy as np

from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.evaluation.stats.significance import paired_permutation
from perse.evaluation.stats.unseen import of_correlations
from perse.studies.frame.measuring import Measured, paired
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
    assert " (p by Holm 0.010), not shown, since it is " in study.told("kendall", change, holm=0.01)


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


def coin(seed: int) -> tuple[Measured, list[tuple[str, str]]]:
    """A judge that reads a text and no profile, asked under four profiles, each time with a noise of its own."""
    generator = np.random.default_rng((seed, 3))
    reader = np.repeat(np.arange(40), 6)
    gold = np.clip(np.round(6 + generator.normal(0, 0.8, 40)[reader] + generator.normal(0, 1.5, 240)), 1, 10)
    text = 6 + 0.4 * (gold - 6) + generator.normal(0, 1, 240)
    places = [("judge", profile) for profile in ("own", "empty", "another", "shuffled")]
    values = {place: (text + generator.normal(0, 0.7, 240),) for place in places}
    shared = SharedResamples(gold, reader, Bootstrap.over(reader, resamples=300, seed=0))
    return Measured(shared, ("kendall",), "kendall", values, (), (), ()), places


def test_one_gain_of_three_that_chance_makes_is_not_shown() -> None:
    found, (own, *others) = coin(147)
    each = [found.told(own, other) for other in others]
    together = found.told_together(own, others, seed=0)
    assert ["not shown" in said for said in each] == [True, False, True], each
    assert all(said.endswith(", not shown") and "(p by Holm 0." in said for said in together), together


def test_a_gain_that_is_there_is_shown_among_three_with_its_p() -> None:
    found, (own, *others) = coin(1)
    known = found.values[own][0] + found.shared.gold
    better = Measured(found.shared, ("kendall",), "kendall", {**found.values, own: (known,)}, (), (), ())
    together = better.told_together(own, others, seed=0)
    assert all("not shown" not in said and said.endswith("(p by Holm 0.001)") for said in together), together


def test_a_gain_over_what_was_not_answered_has_no_p() -> None:
    found, (own, empty, *_) = coin(1)
    silent = Measured(found.shared, ("kendall",), "kendall", {**found.values, empty: ()}, (), (), ())
    assert silent.told_together(own, [empty], seed=0) == ["undefined (no value of judge at empty: nothing was answered)"]


def test_p_is_of_answers_exchanged_reader_by_reader_and_of_correlations_at_one_scale() -> None:
    found, (own, empty, *_) = coin(1)
    one, other = found.values[own][0], found.values[empty][0]
    p = found.shared.exchanged("kendall", one, other, seed=0)
    assert p == found.shared.exchanged("kendall", 3 * one + 1, other, seed=0), "correlations know no scale"
    right = (np.abs(one - found.shared.gold) < 1).astype(float), (np.abs(other - found.shared.gold) < 1).astype(float)
    of_pairs = found.shared.exchanged("accuracy", *right, seed=0)
    exact = paired_permutation(
        lambda exchanges, gold, given: {"mean": exchanges.resampled_mean(given, np.ones(len(given), dtype=bool))},
        np.zeros(240), one=right[0], other=right[1], reviewer=found.shared.reviewer, permutations=2000, seed=0,
    )  # fmt: skip
    assert of_pairs == exact["mean"].p


def test_below_a_table_of_pairs_nothing_is_said_of_errors_and_ties_that_it_does_not_have() -> None:
    scores, pairs = paired(("kendall", "mae")), paired(("accuracy",))
    assert (
        "a lower MAE is better" in scores
        and "those that the answer tells are looked at again where ties count for neither" in scores
    )
    assert pairs.startswith("paired: the same pairs on both sides") and not any(
        word in pairs for word in ("MAE", "Kendall", "resamples")
    )
