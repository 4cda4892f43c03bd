"""What a table comes to in words."""

import pytest
from evaluation_builders import answered, failed, noisy_judge, pair, scored, world
from scipy import stats

from perse.evaluation.evaluate import Evaluation, Fold, evaluate, evaluate_many
from perse.evaluation.telling import evaluation_result
from perse.evaluation.verdict import shown
from perse.judgement import Judgement


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


def test_each_judge_has_a_sentence_with_both_values_and_their_difference(found: Evaluation) -> None:
    good, blind, so_so = found.verdict
    assert good.startswith("good: Kendall tau-b 0.") and "; the reader's own average 0." in good and "; difference 0." in good
    assert good.endswith(": better than the reader's own average")
    assert ": worse than the reader's own average; " in blind and " reaches 0.6" in blind  # what knows the texts
    assert ": not shown to be better than the reader's own average; " in so_so
    assert evaluation_result(found).answer.splitlines() == [*found.verdict]


def test_the_difference_is_of_the_two_values_with_an_interval_of_its_own(found: Evaluation) -> None:
    rows = {row.name: row for row in found.rows}
    difference = found.differences[0]
    assert (difference.judge, difference.row, difference.baseline) == ("good", "good (expected)", "profile average")
    mine, theirs = (rows[name].columns["kendall"] for name in ("good (expected)", "profile average"))
    assert difference.estimate.value == pytest.approx(mine.value - theirs.value)
    # Resampled together: narrower than if the two were independent.
    width = difference.estimate.interval.high - difference.estimate.interval.low
    apart = ((mine.interval.high - mine.interval.low) ** 2 + (theirs.interval.high - theirs.interval.low) ** 2) ** 0.5
    assert 0 < width < 1.2 * apart


def test_within_readers_stands_behind_the_pooled_value(found: Evaluation) -> None:
    rows = {row.name: row for row in found.rows}
    within = shown(rows["good (expected)"].columns["within_kendall"])
    assert f", within each reader {within}; the reader's own average 0." in found.verdict[0]
    assert "no evidence" not in found.verdict[0]


def test_who_knows_only_who_is_lenient_is_not_said_to_know_what_readers_like() -> None:
    # Reader n scores n % 10 or the next; the judge says n % 10, and once in two the wrong way round. The profile says nothing.
    scores = [(n, at, 1 + n % 9 + at) for n in range(60) for at in (0, 1)]
    examples = [scored(f"{n}-{at}", f"u{n}", gold, profile=(("i1", 1 + (7 * n) % 10),)) for n, at, gold in scores]
    judgements = [answered(f"{n}-{at}", str(1 + n % 9 + (at if n % 2 else 1 - at))) for n, at, _ in scores]
    [sentence] = evaluate(examples, judgements, train=None).verdict
    assert ", within each reader 0.00 [" in sentence
    assert ": better than the reader's own average; no evidence that it knows which texts a reader likes" in sentence


def test_few_reviewers_are_too_little_to_say() -> None:
    examples = world(5)
    [sentence] = evaluate(examples, noisy_judge(examples, noise=0.5, seed=1), train=None).verdict
    assert sentence.endswith("too little to say whether it is better than the reader's own average")


def test_a_judge_that_left_much_unanswered_is_told_of() -> None:
    examples = world(20)
    judgements = noisy_judge(examples, noise=0.5, seed=1, failures=0.3)
    ok = sum(judgement.status == "ok" for judgement in judgements)
    assert f"(answered {ok} of 200)" in evaluate(examples, judgements, train=None).verdict[0]


def test_without_profiles_the_judge_is_compared_with_chance() -> None:
    examples = [example.model_copy(update={"profile": ()}) for example in world(20)]
    [sentence] = evaluate(examples, noisy_judge(examples, noise=0.5, seed=1), train=world(5, seed=3)).verdict
    assert ": better than chance" in sentence


def test_pairs_are_compared_with_copying_the_shown_answer() -> None:
    examples = [pair(f"{r}-{n}", f"u{r}", "A" if n else "B", profile=({"Ending": "B"},)) for r in range(12) for n in range(4)]
    [sentence] = evaluate(examples, [answered(e.id, "A") for e in examples], train=None).verdict
    assert sentence == (
        "judge: accuracy 0.75 [0.75, 0.75]; copying the shown answer 0.25 [0.25, 0.25]; difference 0.50 [0.50, 0.50]: "
        "better than copying the shown answer"
    )


def test_a_judge_that_answers_as_its_baseline_does_is_not_said_to_be_better() -> None:
    pairs = [pair(f"{r}-{n}", f"u{r}", "A" if n else "B", profile=({"Ending": "B"},)) for r in range(12) for n in range(2)]
    [sentence] = evaluate(pairs, [answered(e.id, "B") for e in pairs], train=None).verdict
    assert sentence.endswith("difference 0.00 [0.00, 0.00]: not shown to be better than copying the shown answer")
    texts = [example.model_copy(update={"profile": example.profile[:1]}) for example in world(12)]
    [sentence] = evaluate(texts, [answered(e.id, str(e.profile[0].score)) for e in texts], train=None).verdict
    assert "difference 0.00 [0.00, 0.00]: not shown to be better than the reader's own average" in sentence


def test_a_constant_judge_has_no_verdict_and_one_that_failed_is_said_to() -> None:
    examples = [scored(str(n), f"u{n}", 1 + n % 10, profile=(("i1", 1 + n % 7),)) for n in range(12)]
    assert stats.kendalltau([1 + n % 10 for n in range(12)], [1 + n % 7 for n in range(12)]).statistic is not None
    [constant] = evaluate(examples, [answered(str(n), "5") for n in range(12)], train=None).verdict
    assert constant == "judge: Kendall tau-b undefined (constant or too few items); no verdict"
    [nothing] = evaluate(examples, [failed(str(n)) for n in range(12)], train=None).verdict
    assert nothing == "judge: answered none of 12; nothing can be said of it"
