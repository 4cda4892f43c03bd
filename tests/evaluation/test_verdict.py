"""What a table comes to in words."""

import re

import numpy as np
import pytest
from evaluation_builders import answered, between, failed, noisy_judge, pair, scored, world
from scipy import stats

from perse.evaluation.alignment import align
from perse.evaluation.evaluate import Evaluation, Fold, evaluate, evaluate_many
from perse.evaluation.predictions import Prediction, baseline_predictions
from perse.evaluation.stats.results import Difference, Row
from perse.evaluation.telling import evaluation_result
from perse.evaluation.verdict import _surpassed, _taste, shown
from perse.judgement import Judgement
from perse.records import PointwiseExample
from perse.results.result import Estimate, Interval
from perse.scale import SCORES


@pytest.fixture(scope="module")
def found() -> Evaluation:
    examples = world(40)
    judges = {
        "good": noisy_judge(examples, noise=0.5, seed=1),
        "blind": [answered(example.id, str(1 + n % 10)) for n, example in enumerate(examples)],
        "so-so": [_average(example, n) for n, example in enumerate(examples)],
    }
    return evaluate_many(judges, [Fold(examples, world(30, seed=7))])


def _average(example: object, n: int) -> Judgement:
    """The profile average with a little noise: neither better nor worse than it."""
    profile = example.profile  # type: ignore[attr-defined]
    return answered(example.id, str(min(10, max(1, round(sum(p.score for p in profile) / 3) + n % 3 - 1))))  # type: ignore[attr-defined]


@pytest.mark.slow
def test_each_judge_has_a_sentence_with_both_values_and_their_difference(found: Evaluation) -> None:
    good, blind, so_so = found.verdict
    assert good.startswith("good: better than the reader's own average and than chance: Kendall tau-b 0.")
    assert "] against 0." in good and "], difference +0." in good
    assert blind.startswith("blind: worse than the reader's own average: ")
    assert "which needs no judge, has Kendall tau-b 0.63 [0.5" in blind, "what knows the texts, with its interval"
    assert so_so.startswith("so-so: not shown to be better than the reader's own average: ")
    assert evaluation_result(found).answer.splitlines() == [*found.verdict]
    assert [one.standing for one in found.conclusions] == ["better", "worse", "unclear"]


def test_the_difference_is_of_the_two_values_with_an_interval_of_its_own(found: Evaluation) -> None:
    rows = {row.name: row for row in found.rows}
    chance, difference, off, taste = found.differences[:4]
    assert (off.baseline, off.column) == ("profile average", "mae") and off.estimate.below_zero
    assert not any(one.farther_off for one in found.conclusions)
    assert (chance.baseline, chance.estimate) == ("chance", rows["good (expected)"].columns["kendall"])
    assert (difference.judge, difference.row, difference.baseline) == ("good", "good (expected)", "profile average")
    mine, theirs = (rows[name].columns["kendall"] for name in ("good (expected)", "profile average"))
    assert difference.estimate.value == pytest.approx(mine.value - theirs.value)
    # Resampled together: narrower than if the two were independent.
    width = difference.estimate.interval.high - difference.estimate.interval.low
    apart = ((mine.interval.high - mine.interval.low) ** 2 + (theirs.interval.high - theirs.interval.low) ** 2) ** 0.5
    assert 0 < width < 1.2 * apart
    assert (taste.baseline, taste.column) == ("unpersonalized", "within_kendall")


def test_a_verdict_is_two_sentences_at_most_whatever_there_is_to_say() -> None:
    examples, generator = world(40), np.random.default_rng(1)
    low, unsure = [], []
    for one in examples:
        share = float(np.clip((one.reference.score if one.reference else 5) + generator.normal(0, 2), 1, 10)) / 11
        low.append(answered(one.id, "1", distribution={"1": 1 - share, "2": share}))
        unsure.append(answered(one.id, str(1 + round(share * 9))) if generator.random() < 0.6 else failed(one.id))
    said = evaluate_many({"low": low, "unsure": unsure}, [Fold(examples, world(30, seed=7))], resamples=100).verdict
    assert all(
        words in said[0]
        for words in ("Its scores are farther off here", "; within each reader", "; matrix factorization, which")
    )
    assert [len(re.findall(r"[a-z\])]\. [A-Z]", words)) for words in said] == [1, 1]
    right = [answered(one.id, one.reference.preference) for one in PAIRS if one.reference]
    [of_pairs] = evaluate(PAIRS, right, train=None).verdict
    assert len(re.findall(r"[a-z\])]\. [A-Z]", of_pairs)) <= 1


PAIRS = [pair(f"{r}-{n}", f"u{r}", "A" if n % 5 else "B", profile=({"Ending": "B"},)) for r in range(40) for n in range(10)]
"""Copying the shown answer is right in 20 of 100."""


@pytest.mark.parametrize("seed", range(3))
def test_a_coin_on_pairs_is_not_better_than_copying_that_is_worse_than_chance(seed: int) -> None:
    heads = np.random.default_rng(seed).random(len(PAIRS)) < 0.5
    found = evaluate(
        PAIRS, [answered(one.id, "A" if head else "B") for one, head in zip(PAIRS, heads, strict=True)], train=None
    )
    [above] = [one.estimate for one in found.differences if one.baseline == "copy the example"]
    assert above.above_zero, "by itself this would be called better"
    assert found.conclusions[0].standing in ("unclear", "worse") and ": better than" not in found.verdict[0]


def test_the_average_of_another_readers_profiles_is_not_called_the_readers_own() -> None:
    examples = world(40)
    judges = {"good": noisy_judge(examples, noise=0.5, seed=1)}
    found = evaluate_many(judges, [Fold(examples, None, own_scores=False)], resamples=100)
    assert not found.own_scores
    assert found.verdict[0].startswith(
        "good: better than the average of profiles that are not the reader's own and than chance: "
    )


def test_of_a_judge_of_the_right_order_whose_scores_are_far_off_both_are_said() -> None:
    examples = world(40)
    shares = {one.id: one.reference.score / 11 for one in examples if one.reference}
    low = [answered(name, "1", distribution={"1": 1 - share, "2": share}) for name, share in shares.items()]
    result = evaluate_many({"low": low}, [Fold(examples, None)], resamples=100)
    [one] = result.conclusions
    mine, theirs = (row.columns["mae"] for row in result.rows if row.name in ("low (expected)", "profile average"))
    assert one.standing == "better" and one.farther_off
    assert (
        f". Its scores are farther off here than those of the reader's own average: MAE {shown(mine)} against {shown(theirs)}, difference +"
        in one.words
    )


@pytest.mark.slow
def test_taste_is_claimed_only_of_who_orders_a_readers_texts_better_than_what_knows_no_reader(found: Evaluation) -> None:
    [mine] = [row.columns["within_kendall"] for row in found.rows if row.name == "good (expected)"]
    [ahead] = [one.estimate for one in found.differences if (one.judge, one.column) == ("good", "within_kendall")]
    # The unpersonalized row's own value is not in the sentence: it is of other readers, and would not give this difference.
    assert (
        f". Within each reader {shown(mine)}; minus the unpersonalized row, on the readers whose texts both order, {shown(ahead)}: "
        in found.verdict[0]
    )
    assert found.verdict[0].endswith(": it orders a reader's texts better than that row does, which knows no reader")
    examples, train = world(40), world(30, seed=7)
    [usual] = [row for row in score_predictions_of(examples, train) if row.name == "unpersonalized"]
    copied = [answered(e.id, "5", distribution=between(value)) for e, value in zip(examples, usual.values, strict=True)]
    result = evaluate(examples, copied, train=train)
    assert result.conclusions[0].taste is False
    assert ": not shown to order a reader's texts better than that row does, which knows no reader" in result.verdict[0]
    alone = evaluate(examples, copied, train=None)
    assert alone.conclusions[0].taste is None
    assert (
        "whether that is a reader's taste or what most like is not known, for want of other readers' reviews"
        in alone.verdict[0]
    )


def test_readers_whom_a_judge_tells_all_the_same_are_counted_where_their_order_is_spoken_of() -> None:
    def within(skipped: int) -> Estimate:
        return Estimate(value=0.8, interval=Interval(low=0.6, high=0.9), items=90, skipped_reviewers=skipped)

    def said(skipped: int) -> str:
        row = Row(name="j (expected)", judge="j", asked=90, ok=90, columns={"within_kendall": within(skipped)})
        apart = Difference(
            judge="j", row="j (expected)", baseline="unpersonalized", column="within_kendall", estimate=within(skipped)
        )
        return _taste(row, apart, None, "", None, 0)[1]

    assert said(0).startswith("within each reader 0.80 [0.60, 0.90]; minus") and "it orders a reader's texts better" in said(0)
    left = "within each reader 0.80 [0.60, 0.90] (without 10 readers of one answered text or whose texts it, or they, score all alike); minus"
    assert said(10).startswith(left) and "it orders these readers' texts better" in said(10)


def test_who_is_ahead_on_the_readers_that_are_left_and_not_over_all_is_told_both() -> None:
    def apart(column: str, value: float) -> Difference:
        estimate = Estimate(value=value, interval=Interval(low=value - 0.1, high=value + 0.1), items=90, difference=True)
        return Difference(judge="j", row="j (expected)", baseline="unpersonalized", column=column, estimate=estimate)

    within = Estimate(value=0.8, interval=Interval(low=0.6, high=0.9), items=90, skipped_reviewers=10)
    row = Row(name="j (expected)", judge="j", asked=90, ok=90, columns={"within_kendall": within})
    taste, said = _taste(row, apart("within_kendall", 0.3), apart("within_zero_kendall", 0.05), "", None, 0)
    assert taste is False
    assert said.endswith(
        "on the readers whose texts both order, +0.30 [0.20, 0.40], and +0.05 [-0.05, 0.15] where readers whose texts are not "
        "ordered count 0: not shown to order a reader's texts better than that row does, which knows no reader"
    )


@pytest.mark.slow
def test_a_judge_that_knows_texts_and_no_reader_is_not_said_to_know_taste() -> None:
    # Scores are the text's quality and noise; the judge knows the quality, other readers' reviews only a noisy mean of it.
    generator = np.random.default_rng(5)
    quality = generator.integers(2, 10, 30)

    def reviews(readers: range) -> list[PointwiseExample]:
        return [
            scored(
                f"{n}-{at}",
                f"u{n}",
                int(np.clip(quality[at] + generator.normal(0, 2), 1, 10)),
                item=f"i{at}",
                profile=(("x", 5),),
            )
            for n in readers
            for at in generator.choice(30, 6, replace=False)
        ]

    examples, train = reviews(range(60)), reviews(range(100, 110))
    blind = [answered(one.id, str(quality[int(one.item_id[1:])])) for one in examples]
    result = evaluate(examples, blind, train=train)
    assert result.conclusions[0].taste is True, "ahead of the unpersonalized row, which is what it says"
    assert "taste" not in result.verdict[0] and result.verdict[0].endswith("better than that row does, which knows no reader")
    both = {"one": blind, "other": blind}
    here = evaluate_many(both, [Fold(examples, train)], resample="reviewers", resamples=200)
    assert all(said.endswith("which knows no reader, on these texts alone") for said in here.verdict)
    assert "gives each text one answer at random, whoever asks, is better or worse on them far more often" in here.notes[-1]
    assert "at random" not in evaluate_many(both, [Fold(examples, train)], resamples=200).notes[-1]


def score_predictions_of(examples: list[PointwiseExample], train: list[PointwiseExample]) -> list[Prediction]:
    items = align([Fold(examples, train)], {"any": [answered(example.id, "5") for example in examples]})
    return baseline_predictions(items, scale=SCORES, seed=0)


def test_who_repeats_what_profiles_say_is_told_that_their_average_orders_texts_the_wrong_way_round_too() -> None:
    """A profile of a reader's other scores has a low mean where the one that is asked for is high."""
    generator, examples, judgements = np.random.default_rng(4), [], []
    for reader in range(60):
        scores = np.clip(np.round(generator.normal(6, 2, 6)), 1, 10).astype(int)
        for at in range(6):
            past = tuple((f"p{n}", int(scores[n])) for n in range(6) if n != at)
            examples.append(scored(f"{reader}-{at}", f"u{reader}", int(scores[at]), item=f"i{reader}-{at}", profile=past))
            mean = sum(score for _, score in past) / 5
            judgements.append(answered(f"{reader}-{at}", str(round(mean)), distribution=between(min(mean, 9.99))))
    [told] = evaluate(examples, judgements, train=None, resamples=200).verdict
    assert told.endswith("it orders one reader's texts the wrong way round, and so does the average of the profile's scores")


def test_who_knows_only_who_is_lenient_is_not_said_to_know_what_readers_like() -> None:
    # Reader n scores n % 10 or the next; the judge says n % 10, and once in two the wrong way round. The profile says nothing.
    scores = [(n, at, 1 + n % 9 + at) for n in range(60) for at in (0, 1)]
    examples = [scored(f"{n}-{at}", f"u{n}", gold, profile=(("i1", 1 + (7 * n) % 10),)) for n, at, gold in scores]
    judgements = [answered(f"{n}-{at}", str(1 + n % 9 + (at if n % 2 else 1 - at))) for n, at, _ in scores]
    [sentence] = evaluate(examples, judgements, train=None).verdict
    assert sentence.startswith("judge: better than the reader's own average and than chance, on these texts alone: ")
    assert ". Within each reader 0.00 [" in sentence
    assert sentence.endswith(": not shown to know which texts a reader likes")


@pytest.mark.parametrize("seed", range(3))
def test_a_judge_at_chance_is_not_better_than_a_baseline_below_it(seed: int) -> None:
    # The profile says the opposite of the score, so that any judge is far above the reader's own average.
    generator = np.random.default_rng(seed)
    golds = generator.integers(1, 11, (40, 5))
    examples = [
        scored(f"{n}-{at}", f"u{n}", int(gold), profile=(("other", 11 - int(gold)),))
        for n, row in enumerate(golds)
        for at, gold in enumerate(row)
    ]
    coin = [answered(example.id, str(generator.integers(1, 11))) for example in examples]
    result = evaluate(examples, coin, train=None)
    average = next(one for one in result.differences if one.baseline == "profile average")
    assert average.estimate.above_zero  # what was once called "better"
    assert result.conclusions[0].standing in ("unclear", "worse") and result.conclusions[0].against == "chance"
    assert result.verdict[0].startswith(("judge: not shown to be better than chance: ", "judge: worse than chance: "))


@pytest.mark.slow
def test_the_readers_own_average_as_a_label_is_not_better_than_itself() -> None:
    # Scores around a reader's own level; the judge says the mean of the shown ones as a label, which knows less than that mean.
    generator = np.random.default_rng(2)
    called = 0
    for _ in range(6):
        examples = []
        for reader in range(60):
            level = generator.normal(6, 1.2)
            scores = np.clip(np.round(level + generator.normal(0, 1.5, 8)), 1, 10).astype(int)
            for at in range(4):
                past = tuple(
                    (f"p{n}", int(scores[n])) for n in generator.choice([n for n in range(8) if n != at], 3, replace=False)
                )
                examples.append(scored(f"{reader}-{at}", f"u{reader}", int(scores[at]), item=f"i{reader}-{at}", profile=past))
        means = [sum(one.score for one in example.profile) / 3 for example in examples]
        said = [answered(example.id, str(int(np.floor(mean + 0.5)))) for example, mean in zip(examples, means, strict=True)]
        result = evaluate(examples, said, train=None, resamples=300)
        called += result.conclusions[0].standing == "better"
        if result.conclusions[0].against == "rounded average":
            assert re.search(r", difference \+?0\.00 \[-(\d\.\d+), \1\]", result.verdict[0])
    assert called == 0


def test_rounding_does_not_contradict_the_word() -> None:
    def estimate(low: float, high: float) -> Estimate:
        return Estimate(value=0.06, interval=Interval(low=low, high=high), items=9, difference=True)

    assert estimate(0.0004, 0.12).above_zero and shown(estimate(0.0004, 0.12)) == "+0.0600 [0.0004, 0.1200]"
    assert estimate(-0.2, -0.003).below_zero and shown(estimate(-0.2, -0.003)).endswith("[-0.200, -0.003]")
    assert not estimate(1e-9, 0.12).above_zero and shown(estimate(1e-9, 0.12)) == "+0.06 [0.00, 0.12]"


def test_few_reviewers_are_too_little_to_say() -> None:
    examples = world(5)
    [sentence] = evaluate(examples, noisy_judge(examples, noise=0.5, seed=1), train=None).verdict
    assert sentence == (
        "judge: too little to say whether it is better than chance: Kendall tau-b 0.85 [undefined (few reviewers)]"
    )


def test_a_judge_that_left_much_unanswered_is_told_of() -> None:
    examples = world(20)
    judgements = noisy_judge(examples, noise=0.5, seed=1, failures=0.3)
    ok = sum(judgement.status == "ok" for judgement in judgements)
    assert f"(answered {ok} of 200)" in evaluate(examples, judgements, train=None).verdict[0]


def test_a_number_shrunk_by_another_judges_failures_says_so() -> None:
    examples = world(40)
    judges = {
        "good": noisy_judge(examples, noise=0.5, seed=1),
        "gaps": noisy_judge(examples, noise=0.5, seed=2, failures=0.4),
    }
    result = evaluate_many(judges, [Fold(examples, None)])
    assert result.judges["good"].ok == 400 and result.ok_items < 280
    assert f"] (of the {result.ok_items} of 400 items that every judge answered) against 0." in result.verdict[0]
    assert f"(answered {result.ok_items} of 400)" in result.verdict[1]


def test_without_profiles_the_judge_is_compared_with_chance() -> None:
    examples = [example.model_copy(update={"profile": ()}) for example in world(20)]
    [sentence] = evaluate(examples, noisy_judge(examples, noise=0.5, seed=1), train=world(5, seed=3)).verdict
    assert sentence.startswith("judge: better than chance: ")


def test_pairs_are_compared_with_copying_the_shown_answer_with_a_coin_and_with_the_best_constant() -> None:
    examples = [pair(f"{r}-{n}", f"u{r}", "A" if n else "B", profile=({"Ending": "B"},)) for r in range(12) for n in range(4)]
    right = [answered(e.id, e.reference.preference) for e in examples]
    [sentence] = evaluate(examples, right, train=None).verdict
    assert sentence == (
        "judge: better than copying the shown answer and than the best constant answer and than chance, on these texts alone: "
        "accuracy 1.00 [0.86, 1.00] against 0.25 [0.14, 0.40], difference +0.75 [0.35, 0.86]"
    )
    [constant] = evaluate(examples, [answered(e.id, "A") for e in examples], train=None).verdict
    assert constant == (
        "judge: not shown to be better than the best constant answer: accuracy 0.75 [0.60, 0.86], difference +0.00 [-0.14, 0.14]"
    )
    shy = [failed(one.id) if n < 20 else one for n, one in enumerate(right)]
    [refused] = evaluate(examples, shy, train=None).verdict
    assert "(answered 28 of 48; what it did not answer counts as wrong)" in refused
    known = evaluate(examples, right, train=[e.model_copy(update={"reviewer_id": "v"}) for e in examples])
    assert [one.baseline for one in known.differences] == ["chance", "majority", "copy the example"]


def test_of_pairs_the_better_constant_is_held_against_a_judge_whatever_the_training_side_said_most() -> None:
    # Three of four readers' answers are A, as every answer of the judge is; the training side's majority is B.
    pairs = [pair(f"{r}-{n}", f"u{r}", "A" if n else "B", profile=({"Ending": "B"},)) for r in range(30) for n in range(4)]
    other = [pair(f"t{n}", f"t{n}", "B") for n in range(6)]
    found = evaluate(pairs, [answered(one.id, "A") for one in pairs], train=other)
    assert [one.baseline for one in found.differences] == ["chance", "constant", "copy the example"]
    assert found.verdict[0].startswith("judge: not shown to be better than the best constant answer: accuracy 0.75 ")
    right = evaluate(pairs, [answered(one.id, one.reference.preference) for one in pairs], train=other)
    assert right.verdict[0].startswith(
        "judge: better than copying the shown answer and than the best constant answer and than chance"
    )


def test_a_judge_that_answers_as_its_baseline_does_is_not_said_to_be_better() -> None:
    pairs = [pair(f"{r}-{n}", f"u{r}", "B" if n else "A", profile=({"Ending": "B"},)) for r in range(12) for n in range(4)]
    [sentence] = evaluate(pairs, [answered(e.id, "B") for e in pairs], train=None).verdict
    assert sentence.startswith("judge: not shown to be better than the best constant answer: ")
    texts = [example.model_copy(update={"profile": example.profile[:1]}) for example in world(40)]
    [sentence] = evaluate(texts, [answered(e.id, str(e.profile[0].score)) for e in texts], train=None).verdict
    assert sentence.startswith("judge: not shown to be better than the reader's own average: ")
    assert re.search(r", difference \+?0\.0+ \[-(\d\.\d+), \1\]", sentence)  # of answers so rare that there is none among these


def test_a_constant_judge_has_no_verdict_and_one_that_failed_is_said_to() -> None:
    examples = [scored(str(n), f"u{n}", 1 + n % 10, profile=(("i1", 1 + n % 7),)) for n in range(12)]
    assert stats.kendalltau([1 + n % 10 for n in range(12)], [1 + n % 7 for n in range(12)]).statistic is not None
    [constant] = evaluate(examples, [answered(str(n), "5") for n in range(12)], train=None).verdict
    assert constant == "judge: no verdict, since its Kendall tau-b is undefined (constant or too few items)"
    [nothing] = evaluate(examples, [failed(str(n)) for n in range(12)], train=None).verdict
    assert nothing == "judge: answered none of 12; nothing can be said of it"


def test_a_baseline_that_is_ahead_by_less_than_is_printed_is_not_said_to_have_more() -> None:
    def value(number: float) -> Estimate:
        return Estimate(value=number, interval=Interval(low=number - 0.1, high=number + 0.1), items=9)

    rule = Difference(judge="j", row="j (expected)", baseline="chance", column="kendall", estimate=value(0.5))

    def said(ahead: float) -> list[str]:
        row = Row(name="matrix factorization", judge=None, asked=9, ok=9, columns={"kendall": value(ahead)})
        return _surpassed(0.5141, [rule], {row.name: row})

    assert said(0.5142) == said(0.5149) == []
    assert said(0.5151) == ["matrix factorization, which needs no judge, has Kendall tau-b 0.52 [0.42, 0.62] over all readers"]
