"""What a comparison says: "better" where p and the interval carry it, and neither ties, rounding, chance nor these texts alone made it."""

from __future__ import annotations

import numpy as np
import pytest
from comparing_worlds import compared, contrast, judges, labelled
from evaluation_builders import answered, graded, pair, scored

from perse.evaluation.alignment import Fold
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.comparing.results import Pairing
from perse.evaluation.comparing.telling import comparison_result
from perse.evaluation.comparing.words import p_shown, sentence, too_many
from perse.evaluation.evaluate import evaluate
from perse.records import Choice
from perse.results.result import Interval
from perse.results.words import footnotes


@pytest.mark.parametrize("by, scope", [(1, " for these 40 readers"), (4, "")])
def test_a_smaller_error_that_readers_unlike_all_of_these_could_undo_is_told_of_these_readers_alone(
    by: int, scope: str
) -> None:
    # One judge is right of all 40 readers, the other off by one point (or four) in a quarter of the texts. Of other readers a twentieth, of whom the first is
    # five points off, would make up for one point.
    off = np.random.default_rng(0).random(320) < 0.25
    examples = [scored(f"{n}", f"u{n // 8}", 5 + n % 2, item=f"{n}") for n in range(320)]
    given = {
        name: [answered(one.id, str(5 + n % 2 + (by if off[n] and name == "off" else 0))) for n, one in enumerate(examples)]
        for name in ("off", "right")
    }
    pairing = compare(given, [Fold(examples, None)], resamples=200, permutations=999, metrics=["mae"]).pairings[0]
    assert pairing.contrasts[0].better is True and pairing.contrasts[0].of_these_readers is bool(scope)
    assert pairing.verdict.startswith(f"right is better than off{scope}: MAE -")
    assert ("up to 9% of them may be unlike all of these" in pairing.verdict) is bool(scope)


def test_that_something_is_shown_on_these_texts_alone_stands_where_it_is_shown_and_not_behind_what_is_not() -> None:
    closer = contrast("mae", -0.3, p_holm=0.001).model_copy(update={"unlike": Interval(low=-0.4, high=0.1)})
    assert sentence("after", "before", [closer], items=9, answered=9, of_these_texts=True).startswith(
        f"after is better than before for these {closer.reviewers} readers, on these texts alone: MAE -0.300"
    )
    better = contrast("kendall", 0.1, p_holm=0.001)
    further = contrast("mae", 0.3, p_holm=0.001).model_copy(update={"unlike": Interval(low=-0.1, high=0.6)})
    told = sentence("after", "before", [better, further], items=9, answered=9)
    assert told.startswith("after is better than before: Kendall tau-b +0.100") and "; but for these " in told
    assert "readers worse in MAE +0.300" in told, "what is shown of these readers alone, and the other way round"
    assert sentence("after", "before", [better], items=12, answered=9, of_these_texts=True).endswith(
        ", on these texts alone (of the 9 of 12 items that both answered)"
    )


@pytest.mark.parametrize(
    ("trained", "rule"),
    [([], "the best constant answer"), (["B"] * 6, "the best constant answer"), (["A"] * 6, "the majority answer")],
)
def test_of_pairs_a_judge_that_says_the_same_of_everything_is_above_a_baseline_and_not_better_than_it(
    trained: list[Choice], rule: str
) -> None:
    # Whatever the majority of a training side is: there it may be the other answer, and so the worse constant here.
    # Two of three answers are A, and so is what the judge always says; every other example that is shown has the other answer.
    examples = [
        pair(f"p{n}", f"r{n // 6}", "B" if n % 3 == 0 else "A", profile=({"Ending": "A" if n % 2 else "B"},))
        for n in range(240)
    ]
    always = [answered(one.id, "A", distribution={"A": 0.9, "B": 0.1}) for one in examples]
    right = [
        answered(one.id, str(one.reference.preference), distribution={"A": 0.9, "B": 0.1} if n % 3 else {"A": 0.1, "B": 0.9})
        for n, one in enumerate(examples)
        if one.reference
    ]
    side = [pair(f"t{n}", f"t{n}", said) for n, said in enumerate(trained)]
    folds = [Fold(examples, side or None)]
    told = compare({"always": always, "right": right}, folds, resamples=100, permutations=999).pairings
    by_name = {each.one: each.verdict for each in told if each.other == "copy the example"}
    assert by_name["always"].startswith(
        f"always is above copy the example, but not shown to be better than {rule}: accuracy +0.1"
    )
    assert by_name["right"].startswith("right is better than copy the example: accuracy +0.")


def test_words() -> None:
    better, worse = contrast("kendall", 0.08, p_holm=0.02), contrast("mae", 0.3, p_holm=0.04)
    unclear, undefined = contrast("pearson", -0.02, p_holm=0.8), contrast("kendall", None, p_holm=None)
    assert sentence("after", "before", [better, unclear], items=9, answered=9) == (
        "after is better than before: Kendall tau-b +0.080 [0.030, 0.130], p = 0.010 (Holm 0.020)"
    )
    assert sentence("after", "before", [unclear, worse], items=9, answered=9).startswith(
        "after is worse than before: MAE +0.300"
    )
    assert sentence("after", "before", [better, worse], items=9, answered=9) == (
        "after is better than before in Kendall tau-b +0.080 [0.030, 0.130], p = 0.010 (Holm 0.020), "
        "but worse in MAE +0.300 [0.250, 0.350], p = 0.020 (Holm 0.040)"
    )
    assert sentence("after", "before", [unclear], items=9, answered=9) == (
        "after and before are not shown to differ: Pearson -0.020 [-0.070, 0.030], p = 0.400 (Holm 0.800)"
    )
    assert (
        sentence("after", "before", [undefined], items=9, answered=9)
        == "after and before cannot be compared by Kendall tau-b: undefined (x)"
    )
    assert sentence("after", "before", [undefined, unclear], items=9, answered=9).startswith(
        "after and before are not shown to differ: Pearson -0.020"
    ), "what can be compared is told"
    assert "p < 0.001 (Holm <0.001)" in sentence(
        "after", "before", [contrast("kendall", 0.1, p_holm=0.0002)], items=9, answered=9
    )
    assert sentence("after", "before", [unclear], items=12, answered=9).endswith(" (of the 9 of 12 items that both answered)")
    at_chance = better.model_copy(update={"against_chance": Interval(low=-0.1, high=0.2)})
    assert sentence("after", "the average", [at_chance], items=9, answered=9).startswith(
        "after is above the average, but not shown to be better than chance: Kendall tau-b +0.080"
    )
    closer = contrast("mae", -0.3, p_holm=0.001)
    farther = contrast("mae", 0.3, p_holm=0.001)
    mixed = sentence("after", "the average", [at_chance, farther], items=9, answered=9)
    assert (
        mixed.startswith("after is above the average, but not shown to be better than chance: ")
        and ", and below it in MAE" in mixed
    )
    unclear_at_chance = unclear.model_copy(update={"against_chance": Interval(low=-0.1, high=0.2)})
    assert sentence("after", "the average", [unclear_at_chance, closer], items=9, answered=9).startswith(
        "after is above the average, but not shown to be better than chance in Pearson: MAE"
    )
    above = better.model_copy(update={"against_chance": Interval(low=0.1, high=0.2)})
    assert sentence("after", "the average", [above, unclear_at_chance], items=9, answered=9).startswith(
        "after is above the average, but not shown to be better than chance in Pearson: Kendall tau-b +0.080"
    ), "the order in which it is at chance is named where it is not the one that is told"
    turned = unclear.model_copy(update={"against_chance": Interval(low=-0.6, high=-0.5)})
    assert sentence("after", "the average", [above, turned], items=9, answered=9).startswith(
        "after is above the average, but worse than chance in Pearson: Kendall tau-b +0.080"
    )
    reaching_zero = better.model_copy(update={"interval": Interval(low=-0.01, high=0.17)})
    assert "not shown to differ" in sentence("after", "before", [reaching_zero], items=9, answered=9), (
        "the word follows the interval, too"
    )


def test_a_p_near_the_level_has_the_digits_that_the_word_needs() -> None:
    assert [p_shown(p) for p in (0.0496, 100 / 2001, 0.05, 101 / 2001, 0.0504, 0.06, 0.0002)] == [
        "0.0496",
        "0.04998",
        "0.050",
        "0.0505",
        "0.0504",
        "0.060",
        "<0.001",
    ]
    shown, not_shown = contrast("kendall", 0.08, p_holm=100 / 2001), contrast("kendall", 0.08, p_holm=101 / 2001)
    assert "after is better than before" in (said := sentence("after", "before", [shown], items=9, answered=9))
    assert "(Holm 0.04998)" in said
    assert "(Holm 0.0505)" in sentence("after", "before", [not_shown], items=9, answered=9)


def test_the_note_says_that_a_difference_needs_the_interval_too() -> None:
    found = compared(judges(one=2, two=2), metrics=["kendall"])
    notes = " ".join(comparison_result(found).tables[0].notes)
    assert "at most 0.05 and the interval leaves out 0, for Kendall tau-b also where ties count for neither" in notes


def test_above_a_baseline_that_is_below_chance_is_not_called_better() -> None:
    generator = np.random.default_rng(0)
    golds = generator.integers(1, 11, (40, 5))
    examples = [
        scored(f"{n}-{at}", f"u{n}", int(gold), profile=(("other", 11 - int(gold)),))
        for n, row in enumerate(golds)
        for at, gold in enumerate(row)
    ]
    coins = {name: labelled(generator.integers(1, 11, len(examples)).tolist(), examples) for name in ("one", "two")}
    verdicts = [
        pairing.verdict
        for pairing in compared(coins, examples, permutations=2000, metrics=["kendall"]).pairings
        if pairing.baseline
    ]
    assert len(verdicts) == 2
    assert all(" is above profile average, but not shown to be better than chance: " in verdict for verdict in verdicts)


@pytest.mark.slow
def test_a_judge_is_not_better_whose_lead_other_texts_could_turn() -> None:
    # Everybody reads the same 12 texts, and both judges err by text: by exchange of reviewers alone one leads surely, since what is
    # random, the texts, is the same on both sides of every exchange.
    worlds = []
    for seed in range(12):
        generator = np.random.default_rng((3, seed))
        quality, wrong = generator.normal(0, 1.5, 12), generator.normal(0, 1.5, (2, 12))
        examples = [
            scored(f"{r}-{t}", f"u{r}", int(np.clip(round(5.5 + quality[t] + generator.normal(0, 1.3)), 1, 10)), item=f"i{t}")
            for r in range(30)
            for t in range(12)
        ]
        both = {
            name: labelled(
                [int(np.clip(round(5.5 + quality[t] + errors[t]), 1, 10)) for _ in range(30) for t in range(12)], examples
            )
            for name, errors in zip(("one", "two"), wrong, strict=True)
        }
        by = [
            compare(both, [Fold(examples, None)], metrics=["within_kendall"], resamples=300, permutations=300, resample=how)
            for how in ("reviewers", "auto")
        ]
        worlds.append([found.pairings[0].contrasts[0].better is not None for found in by])
    shown = np.mean(worlds, axis=0)
    assert shown[0] > 0.5  # by reviewers: nearly always something is found
    assert shown[1] <= 0.1


def test_what_ties_alone_may_do_is_no_difference() -> None:
    worse = contrast("kendall", -0.08, p_holm=0.02)
    by_ties = worse.model_copy(update={"ties_apart": Interval(low=-0.01, high=0.02)})
    assert by_ties.better is None and sentence("one", "other", [by_ties], items=9, answered=9) == (
        "one and other are not shown to differ: Kendall tau-b -0.080 [-0.130, -0.030], p = 0.010 (Holm 0.020), "
        "but not where ties count for neither, [-0.010, 0.020] of all pairs"
    )
    really = worse.model_copy(update={"ties_apart": Interval(low=-0.05, high=-0.02)})
    assert really.better is False and really.better == worse.better


def test_the_readers_own_average_with_its_ties_broken_is_not_worse_than_itself() -> None:
    generator = np.random.default_rng(1)
    examples, said = [], []
    for reader in range(120):
        scores = np.clip(np.round(generator.normal(6, 1.2) + generator.normal(0, 1.5, 8)), 1, 10).astype(int)
        for at in range(4):
            past = [(f"p{n}", int(scores[n])) for n in generator.choice([n for n in range(8) if n != at], 3, replace=False)]
            examples.append(
                scored(f"{reader}-{at}", f"u{reader}", int(scores[at]), item=f"i{reader}-{at}", profile=tuple(past))
            )
            value = float(np.clip(sum(score for _, score in past) / 3 + generator.normal(0, 0.02), 1, 9.99))
            expected = {str(int(value)): 1 - value % 1, str(int(value) + 1): value % 1}
            said.append(answered(f"{reader}-{at}", str(round(value)), distribution=expected))
    found = compared(
        {"jitter": said, "five": labelled([5] * len(said), examples)}, examples, against="five", metrics=["kendall"]
    )
    [pairing] = [one for one in found.pairings if one.baseline and one.one == "jitter"]
    [kendall] = pairing.contrasts
    assert kendall.estimate.below_zero and kendall.by_ties and kendall.better is None
    assert "not shown to differ" in pairing.verdict and "but not where ties count for neither" in pairing.verdict


def test_a_judge_of_labels_is_not_better_than_the_average_that_it_rounds() -> None:
    better = contrast("kendall", 0.08, p_holm=0.02)
    rounded = better.model_copy(update={"against_rounded": Interval(low=-0.01, high=0.01)})
    closer = contrast("mae", -0.3, p_holm=0.001).model_copy(update={"against_rounded": Interval(low=-0.5, high=-0.1)})
    assert sentence("after", "profile average", [rounded], items=9, answered=9).startswith(
        "after is above profile average, but not shown to be better than that average, rounded as its answers are: Kendall tau-b +0.080"
    )
    assert sentence("after", "profile average", [rounded, closer], items=9, answered=9).startswith(
        "after is better than profile average: MAE -0.300"
    )
    # The mean of the shown scores as a label, and another judge.
    examples = [
        scored(f"{reader}-{at}", f"u{reader}", 1 + (reader + at) % 10, item=f"i{reader}-{at}", profile=(("a", 1 + reader % 8), ("b", 2 + reader % 8)))
        for reader in range(20)
        for at in range(3)
    ]  # fmt: skip
    means = [np.mean([past.score for past in example.profile]) for example in examples]
    said = {"rounded": labelled([int(np.floor(mean + 0.5)) for mean in means], examples), "five": labelled([5] * 60, examples)}
    found = compared(said, examples)
    [against] = [one for one in found.pairings if one.baseline and one.one == "rounded"]
    ends = [(one.against_rounded.low, one.against_rounded.high) for one in against.contrasts if one.against_rounded]
    assert all(low < 0 and high == pytest.approx(-low) for low, high in ends if low is not None)
    assert any(one.against_rounded for one in against.contrasts)


def test_a_judge_is_held_against_chance_also_where_the_baseline_says_one_thing_of_all() -> None:
    generator = np.random.default_rng(0)
    truth = generator.uniform(1, 5, 400)
    examples = [graded(f"{n}", f"p{n // 4}", float(score)) for n, score in enumerate(truth)]
    train = [graded("t", "t", 3.0)]
    near, far = (
        [
            answered(one.id, str(label), question="coverage")
            for one, label in zip(examples, np.clip(np.round(truth + off), 1, 5).astype(int), strict=True)
        ]
        for off in (generator.normal(0, 0.3, 400), generator.normal(0, 2, 400))
    )
    found = compare(
        {"far": far, "near": near}, [Fold(examples, train)], resamples=200, permutations=200, metrics=["mae", "kendall"]
    )
    [against] = [one for one in found.pairings if one.one == "near" and one.baseline]
    assert against.verdict.startswith("near is better than training mean") and "chance" not in against.verdict
    [kendall] = [one for one in against.contrasts if one.metric == "kendall"]
    assert kendall.other is None and kendall.against_chance is not None and (kendall.against_chance.low or 0) > 0


def test_within_readers_a_judge_is_held_against_chance_beside_a_constant_baseline_too() -> None:
    """It knows what each product's summaries are worth on average, and none from another of the same."""
    generator = np.random.default_rng(0)
    worth = np.repeat(generator.uniform(1.5, 4.5, 60), 6)
    examples = [graded(f"{n}", f"p{n // 6}", float(score)) for n, score in enumerate(worth + generator.normal(0, 0.4, 360))]
    said = np.clip(np.round(worth + generator.normal(0, 0.4, 360)), 1, 5).astype(int)
    judge = [answered(one.id, str(label), question="coverage") for one, label in zip(examples, said, strict=True)]
    found = compare({"again": judge, "prod": judge}, [Fold(examples, [graded("t", "t", 3.0)])], resamples=200, permutations=200)
    [against] = [one for one in found.pairings if one.one == "prod" and one.baseline]
    assert "but not shown to be better than chance in Kendall tau-b within reviewer: MAE" in against.verdict


def test_a_judge_does_not_gain_within_readers_by_telling_some_one_thing() -> None:
    """One is nearly right of 11 readers of 20 and says 5 of every text to the others; the other tells all of them a little less surely."""
    generator = np.random.default_rng(4)
    examples = [scored(f"{n}", f"u{n // 6}", int(one), item=f"{n}") for n, one in enumerate(generator.integers(2, 10, 120))]
    truth = np.array([one.reference.score for one in examples if one.reference])
    short, mid = (np.clip(np.round(truth + generator.normal(0, noise, 120)), 1, 10).astype(int) for noise in (0.3, 1.6))
    given = {
        "short": labelled(np.where(np.arange(120) < 66, short, 5).tolist(), examples),
        "mid": labelled(mid.tolist(), examples),
    }
    found = compared(given, examples, metrics=["within_kendall"], permutations=999)
    [within] = found.pairings[0].contrasts
    assert within.estimate.below_zero and (within.p_holm or 1) < 0.05 and within.constant_on_one == 9
    assert within.by_silence and within.better is None
    assert found.pairings[0].verdict.startswith(
        "mid and short are not shown to differ: Kendall tau-b within reviewer (of 11 of 20 readers) -0."
    )
    assert ", but not where those to whom one says the same of everything count 0, [" in found.pairings[0].verdict
    few = compared({**given, "short": labelled(np.where(np.arange(120) < 114, short, 5).tolist(), examples)}, examples, metrics=["within_kendall"], permutations=999)  # fmt: skip
    assert "mid is worse than short: Kendall tau-b within reviewer (of 19 of 20 readers) -0." in few.pairings[0].verdict
    assert "within readers also where those to whom one side says the same of everything count 0" in " ".join(
        footnotes(comparison_result(few).tables[0])
    )


def test_what_is_the_other_way_round_without_ties_is_said_to_be() -> None:
    turned = contrast("kendall", -0.08, p_holm=0.02).model_copy(update={"ties_apart": Interval(low=0.02, high=0.12)})
    assert turned.better is None
    assert sentence("one", "other", [turned], items=9, answered=9).endswith(
        ", but the other way round where ties count for neither, [0.020, 0.120] of all pairs"
    )


def test_what_is_not_better_than_chance_is_named_where_another_metric_is_told() -> None:
    above, none = Interval(low=0.3, high=0.8), Interval(low=-0.1, high=0.2)
    closer = contrast("mae", -0.24, p_holm=0.001).model_copy(update={"against_chance": above})
    within = contrast("within_kendall", 0.0, p_holm=1.0).model_copy(update={"against_chance": none})
    said = sentence("after", "profile average", [closer, within], items=9, answered=9)
    assert said.startswith(
        "after is above profile average, but not shown to be better than chance in Kendall tau-b within reviewer: MAE"
    )


def test_a_share_of_readers_below_one_in_a_hundred_is_not_said_to_be_none() -> None:
    closer = contrast("mae", -0.3, p_holm=0.001).model_copy(update={"unlike": Interval(low=-0.5, high=0.1), "reviewers": 900})
    assert "up to 0.4% of them may be unlike all of these" in sentence("after", "before", [closer], items=9, answered=9)


@pytest.mark.parametrize("readers, said", [(10, "10 readers are too few to show any of 133 differences: their answers can be exchanged in 1024 ways alone"), (40, "2000 permutations are too few to show any of 133 differences; give 2660 or more")])  # fmt: skip
def test_that_nothing_can_be_shown_is_said_with_what_would_help(readers: int, said: str) -> None:
    one = contrast("kendall", 0.1, p_holm=0.9)
    pairing = Pairing(
        one="a", other="b", baseline=False, reading="label", items=9, answered=9, contrasts=(one,) * 133, verdict=""
    )
    assert too_many([pairing], 2000, 5000) != [], "of thousands of readers, too"
    [few] = too_many([pairing], 2000, 6)
    assert few.endswith("in 64 ways alone; compare more readers"), "fewer metrics would have no interval either"
    [told] = too_many([pairing], 2000, readers)
    assert told.startswith(said)
    assert too_many([pairing], 2660, 40) == [] and len(too_many([pairing], 2660, readers)) == (readers == 10)


def test_how_a_judge_of_labels_is_looked_at_beside_the_average_stands_below_the_table() -> None:
    found = compared(judges(a=1.0) | {"five": labelled([5, 6] * 60)}, metrics=["kendall"])
    [note] = [one for one in footnotes(comparison_result(found).tables[0]) if one.startswith("p (Holm)")]
    assert (
        "where five, whose answers are labels, is above profile average, in place of that where this is rounded as they are"
        in note
    )


def test_a_judge_of_labels_is_not_worse_than_the_average_by_ties_alone() -> None:
    """One score is shown of each; the judge says it, or the one beside it that is nearer: ahead where ties count for neither."""
    generator = np.random.default_rng(0)
    stars, examples, said = (1, 3, 6, 8, 10), [], []
    for reader in range(100):
        level = generator.normal(3.7, 1.0)
        given = np.clip(np.round(level + generator.normal(0, 0.8, 9)), 1, 5).astype(int)
        for at in range(1, 9):
            examples.append(scored(f"{reader}-{at}", f"u{reader}", stars[given[at] - 1], item=f"{reader}-{at}", profile=((f"p{reader}", stars[given[0] - 1]),)))  # fmt: skip
            nearer = np.sign(given[at] - given[0]) if generator.random() < 0.25 else generator.choice([-1, 0, 0, 0, 0, 1])
            said.append(int(np.clip(stars[given[0] - 1] + nearer, 1, 10)))
    given = {"labels": labelled(said, examples), "five": labelled([5] * len(said), examples)}
    found = compared(given, examples, metrics=["kendall"])
    [pairing] = [one for one in found.pairings if one.baseline and one.one == "labels"]
    [kendall] = pairing.contrasts
    assert not kendall.estimate.below_zero or (kendall.ties_apart is not None and kendall.better is None)
    assert evaluate(examples, given["labels"], train=None, resamples=100).conclusions[0].standing != "worse"
