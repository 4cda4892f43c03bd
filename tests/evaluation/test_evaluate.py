"""A table of scores: every column on the same items, what failed beside it, and everything again by the same seed."""

from typing import Any

import numpy as np
import pytest
from evaluation_builders import (
    EXAMPLES,
    JUDGEMENTS,
    TRAIN,
    answered,
    failed,
    graded,
    no_constants,
    noisy_judge,
    pair,
    row,
    scored,
    value,
    world,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from perse.errors import BadInput
from perse.evaluation.baselines.bias import fit_bias_model
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.evaluate import Evaluation, Fold, evaluate, evaluate_many
from perse.evaluation.metrics import metrics_of
from perse.evaluation.shared_texts import OF_THESE_TEXTS


def test_correlations_are_of_the_ok_items_for_judges_and_baselines_alike() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN)
    assert [row.name for row in found.rows] == [
        "judge (expected)",
        "judge (label)",
        "profile average",
        "user+item bias",
        "matrix factorization",
        "plain matrix factorization",
        "unpersonalized",
        "text ridge",
        "text ridge + reader",
        "profile kNN",
        "training mean",
        "training median",
        "majority",
        "random",
    ]
    assert (found.items, found.ok_items, found.reviewers) == (4, 3, 2)
    assert value(found, "judge (expected)", "pearson") == pytest.approx(stats.pearsonr([2, 4, 6], [2, 5, 8]).statistic)
    assert value(found, "judge (label)", "pearson") == pytest.approx(stats.pearsonr([2, 4, 6], [3, 4, 8]).statistic)
    assert value(found, "judge (expected)", "mae") == pytest.approx((0 + 1 + 2) / 3)
    known = [row for row in found.rows if not row.unavailable]
    # Training knows none of these texts, and no embedding model was given.
    missing = ["unpersonalized", "text ridge", "text ridge + reader", "profile kNN"]
    assert [row.name for row in found.rows if row.unavailable] == missing
    assert all(row.columns["mae"].items == 3 for row in known)
    assert all(set(row.columns) == {metric.name for metric in metrics_of("scores")} for row in known)


def test_failures_are_imputed_by_the_training_mean_beside_the_ok_items() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN)
    assert found.training_means == (7,)
    imputed = row(found, "judge (expected)").imputed
    assert imputed is not None
    # Predictions 2, 5, 8 and the mean 7 for the failed item, whose gold is 10.
    assert imputed["mae"].value == pytest.approx((0 + 1 + 2 + 3) / 4)
    # Gold 2 4 6 10, mean 5.5: -3.5 -1.5 .5 4.5; predictions mean 5.5: -3.5 -.5 2.5 1.5.
    # Products 12.25 + .75 + 1.25 + 6.75 = 21; squares 12.25 + 2.25 + .25 + 20.25 = 35 and 12.25 + .25 + 6.25 + 2.25 = 21.
    assert imputed["pearson"].value == pytest.approx(21 / (35 * 21) ** 0.5)
    # Ranks 1 2 3 4 and 1 2 4 3: one of six pairs is discordant.
    assert imputed["kendall"].value == pytest.approx(4 / 6)
    # A baseline answers everything: over all items it is its own prediction, 5.
    average = row(found, "profile average").imputed
    assert average is not None and average["mae"].value == pytest.approx((3 + 1 + 1 + 5) / 4)


def test_nothing_is_imputed_when_nothing_failed() -> None:
    found = evaluate(EXAMPLES[:3], JUDGEMENTS[:3], train=TRAIN)
    assert all(row.imputed is None for row in found.rows)


def test_without_training_data_failures_are_not_imputed_and_baselines_say_why() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=None)
    assert all(row.imputed is None for row in found.rows)
    assert "failures are not imputed: no training data at hand" in found.notes
    assert row(found, "user+item bias").unavailable == "no training data at hand"
    assert value(found, "profile average", "mae") == pytest.approx((3 + 1 + 1) / 3)


def test_a_constant_prediction_has_no_correlation_and_is_none_in_json() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN)
    assert value(found, "profile average", "pearson") is None
    assert value(found, "profile average", "within_pearson") is None
    assert row(found, "profile average").columns["within_pearson"].skipped_reviewers == 2


def test_the_label_stands_in_where_there_is_no_distribution_and_a_note_says_so() -> None:
    judgements = [JUDGEMENTS[0], answered("1", "6"), *JUDGEMENTS[2:]]
    found = evaluate(EXAMPLES, judgements, train=TRAIN)
    # Expected 2, label 6 in place of the absent expectation, expected 8.
    assert value(found, "judge (expected)", "mae") == pytest.approx((0 + 2 + 2) / 3)
    assert "judge (expected): 1 of 3 answers have no distribution, their label stands for it" in found.notes


def test_examples_without_reference_are_counted_and_left_out() -> None:
    found = evaluate([*EXAMPLES, scored("x", "u", None)], [*JUDGEMENTS, answered("x", "1")], train=TRAIN)
    assert (found.examples, found.without_reference, found.items) == (5, 1, 4)
    with pytest.raises(BadInput, match="none of the 1 examples has a reference"):
        evaluate([scored("x", "u", None)], [answered("x", "1")], train=None)


def test_an_unfinished_run_is_an_error_that_says_how_to_go_on() -> None:
    with pytest.raises(BadInput, match="not finished: 3 of 4 examples judged; run `perse score` again with the same command"):
        evaluate(EXAMPLES, JUDGEMENTS[:3], train=TRAIN)


@pytest.mark.parametrize(
    ("examples", "judgements", "message"),
    [
        (
            EXAMPLES,
            [*JUDGEMENTS, failed("stranger")],
            "1 judgements of judge answer none of the 4 examples, the first 'stranger'",
        ),
        (EXAMPLES, [*JUDGEMENTS, failed("3")], "id '3' appears twice among the judgements of judge"),
        ([*EXAMPLES, EXAMPLES[0]], JUDGEMENTS, "id '0' appears twice among the examples"),
        ([*EXAMPLES, pair("p", "u", "A")], JUDGEMENTS, "pointwise and pairwise examples together; evaluate them apart"),
        ([], [], "0 examples and 1 judges"),
        (EXAMPLES, [answered("0", "A"), *JUDGEMENTS[1:]], "ok with label 'A', expected one of 1, 2"),
        ([pair("p", "u", "A")], [answered("p", "7")], "ok with label '7', expected one of A, B"),
        ([pair("p", "u", "A")], [answered("p", "A", distribution={"neither": 1.0})], "label 'neither', expected one of A, B"),
    ],
)
def test_inputs_that_do_not_belong_together_are_refused(examples: list, judgements: list, message: str) -> None:
    with pytest.raises(BadInput) as error:
        evaluate(examples, judgements, train=None)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("question", "examples", "label", "message"),
    [
        ("coverage", EXAMPLES, "5", "'coverage' answers with 1 to 5; the examples' true scores are 1 to 10: there is no truth"),
        ("coverage_100", EXAMPLES, "20", "answers with 0, 20, 40, 60, 80, 100; the examples' true scores are 1 to 10"),
        ("verify_fact", EXAMPLES, "yes", "answers with yes, no; the examples' true scores are 1 to 10"),
        ("coverage", [pair("p", "r", "A")], "3", "answers with 1 to 5; the examples' true choices are A, B"),
        ("verify_fact", [graded("s", "p", 2)], "yes", "answers with yes, no; the examples' true scores are numbers"),
    ],
)
def test_answers_on_another_scale_than_the_true_ones_are_refused(
    question: str, examples: list[Any], label: str, message: str
) -> None:
    judgements = [answered(example.id, label, question=question) for example in examples]
    with pytest.raises(BadInput, match=message):
        evaluate(examples, judgements, train=None)
    with pytest.raises(BadInput, match=message):
        compare({"one": judgements, "two": judgements}, [Fold(examples, None)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "question", ["pointwise", "pointwise_score", "pointwise_stated", "pointwise_score_stated", "recognition"]
)
def test_every_question_on_the_scale_of_the_true_scores_is_evaluated(question: str) -> None:
    asked = [one.model_copy(update={"question": question}) for one in JUDGEMENTS]
    assert evaluate(EXAMPLES, asked, train=TRAIN).rows == evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN).rows


def test_training_data_of_the_other_kind_is_refused() -> None:
    with pytest.raises(BadInput, match="differ in kind"):
        evaluate(EXAMPLES, JUDGEMENTS, train=[pair("p", "t", "A")])


def test_readers_seen_in_training_are_named_in_a_note() -> None:
    found = evaluate(EXAMPLES, JUDGEMENTS, train=[*TRAIN, scored("t2", "u0", 5, item="elsewhere")])
    assert "1 of 2 reviewers are also in the training data; this is no test on unseen readers" in found.notes


@pytest.mark.slow
def test_the_same_seed_gives_the_same_evaluation_and_others_differ() -> None:
    examples = world(12)
    judgements = noisy_judge(examples, noise=2, seed=0)
    runs = [evaluate(examples, judgements, train=None, seed=seed, resamples=1000) for seed in (0, 0, 1, 2)]
    assert runs[0] == runs[1]
    intervals = [row(run, "judge (expected)").columns["kendall"].interval for run in runs[1:]]
    assert len({(interval.low, interval.high) for interval in intervals}) == 3


@pytest.mark.slow
def test_the_order_of_examples_and_judgements_does_not_matter() -> None:
    examples = world(12)
    judgements = noisy_judge(examples, noise=2, seed=0, failures=0.1)
    plain, shuffled = (
        evaluate(examples, judgements, train=TRAIN, resamples=1000),
        evaluate(examples[::-1], sorted(judgements, key=lambda judgement: judgement.id), train=TRAIN, resamples=1000),
    )
    for one, other in zip(plain.rows, shuffled.rows, strict=True):
        for column, estimate in one.columns.items():
            twin = other.columns[column]
            assert estimate.value == pytest.approx(twin.value)
            assert estimate.interval.low == pytest.approx(twin.interval.low)


@pytest.mark.slow
def test_intervals_hold_their_value_from_ten_reviewers_on_and_are_undefined_below() -> None:
    train = world(20, seed=5)
    for reviewers, defined in ((9, False), (10, True)):
        examples = world(reviewers)
        found = evaluate(examples, noisy_judge(examples, noise=2, seed=0, failures=0.05), train=train)
        for column, estimate in row(found, "judge (expected)").columns.items():
            interval = estimate.interval
            assert (interval.low is not None) == defined, column
            assert interval.reason == (None if defined else "undefined (few reviewers)")
            if defined:
                assert interval.low < estimate.value < interval.high


def test_within_reviewer_stands_in_both_conventions() -> None:
    columns = evaluate(EXAMPLES, JUDGEMENTS, train=None).rows[0].columns
    # Reader u0 is ordered perfectly (1); reader u1 has one ok item left.
    assert columns["within_pearson"].value == pytest.approx(1)
    assert columns["within_zero_pearson"].value == pytest.approx(1 / 2)
    assert [columns[f"within_{zero}pearson"].skipped_reviewers for zero in ("", "zero_")] == [1, 1]


def test_kappa_is_of_rounded_predictions_and_the_probability_score_of_distributions() -> None:
    found = evaluate(EXAMPLES[:3], JUDGEMENTS[:3], train=TRAIN)
    # Expected 2, 5, 8 against gold 2, 4, 6: squared distances 0 + 1 + 4 = 5. Were the two independent: every gold with every
    # prediction, (0 9 36) + (4 1 16) + (16 1 4) = 87, over 3 items 29.
    assert value(found, "judge (expected)", "qwk") == pytest.approx(1 - 5 / 29)
    # Gold 2, half on 1 and half on 3: misses 1/2 at 1 and at 2, (1/4 + 1/4) / 9. Gold 4, half on 4 and half on 6: 1/2 at 4 and
    # at 5. Gold 6, sure of 8: 1 at 6 and at 7.
    assert value(found, "judge (expected)", "rps") == pytest.approx((0.5 + 0.5 + 2) / 9 / 3)
    # The label alone is sure: 3 for 2, 4 for 4, 8 for 6.
    assert value(found, "judge (label)", "rps") == pytest.approx((1 + 0 + 2) / 9 / 3)


def test_the_probability_score_of_a_baseline_is_of_its_distribution_and_not_of_one_score() -> None:
    """A baseline that was scored as if it were sure would be beaten by every judge that is not."""
    found, gold = evaluate(EXAMPLES[:3], JUDGEMENTS[:3], train=TRAIN), [2, 4, 6]
    known = [one.reference.score for one in TRAIN if one.reference]
    below = np.array([np.mean([score <= k for score in known]) for k in range(1, 10)])

    def sure_of(score: float) -> float:
        return float(np.mean([abs(score - one) / 9 for one in gold]))

    by_hand = np.mean([((below - (np.arange(1, 10) >= one)) ** 2).sum() / 9 for one in gold])
    assert value(found, "training mean", "rps") == pytest.approx(by_hand)
    assert value(found, "training median", "rps") == pytest.approx(sure_of(sorted(known)[(len(known) - 1) // 2]))
    model = fit_bias_model(TRAIN)
    spread = model.distributions(model.predict(EXAMPLES[:3])).cumsum(axis=1)[:, :9]
    by_hand = np.mean([((row - (np.arange(1, 10) >= one)) ** 2).sum() / 9 for row, one in zip(spread, gold, strict=True)])
    assert value(found, "user+item bias", "rps") == pytest.approx(by_hand)


def test_answers_that_stand_in_profiles_of_other_examples_are_noted_since_their_mean_is_no_leniency() -> None:
    """Of readers who are all alike, a judge that repeats the mean of all other scores has a Kendall between readers near 1."""
    drawn, examples = np.random.default_rng(0), []
    for reader in range(30):
        scores = drawn.integers(1, 11, 6).tolist()
        for at in range(6):
            past = tuple((f"{reader}-{n}", scores[n]) for n in range(6) if n != at)
            examples.append(scored(f"{reader}-{at}", f"u{reader}", scores[at], item=f"{reader}-{at}", profile=past))
    examples = [one.model_copy(update={"query": f"text {one.id}"}) for one in examples]
    named = [
        one.model_copy(
            update={"profile": tuple(past.model_copy(update={"text": f"text {past.item_id}"}) for past in one.profile)}
        )
        for one in examples
    ]
    means = {one.id: sum(past.score for past in one.profile) / 5 for one in examples}
    judge = [
        answered(
            name, str(round(mean)), distribution={str(int(mean)): int(mean) + 1 - mean, str(int(mean) + 1): mean - int(mean)}
        )
        for name, mean in means.items()
    ]
    found = evaluate(named, judge, train=None, resamples=100)
    told = "the answer asked for stands in the profile of another example of its reader in 180 of 180 examples: a judge that repeats"
    assert any(note.startswith(told) for note in found.notes), found.notes
    assert value(found, "judge (expected)", "between_kendall") > 0.9
    few = [*named[:1], *examples[1:]]
    few[1] = few[1].model_copy(update={"query": few[0].profile[0].text})
    assert not any(note.startswith(told[:40]) for note in evaluate(few, judge, train=None, resamples=100).notes), (
        "of one answer"
    )
    for metrics, noted in ((["between_kendall"], True), (["kendall"], False)):
        notes = compare(
            {"judge": judge, "again": judge}, [Fold(named, None)], metrics=metrics, permutations=200, resamples=200
        ).notes
        assert any(note.startswith(told) for note in notes) is noted
    assert not any(note.startswith(told[:40]) for note in evaluate(examples, judge, train=None, resamples=100).notes)


def test_texts_of_several_readers_are_noted_and_two_way_resamples_are_wider() -> None:
    examples = world(30)  # 40 texts, 10 each
    judgements = {"judge": noisy_judge(examples, noise=2, seed=0)}
    plain, both = (
        evaluate_many(judgements, [Fold(examples, None)], resamples=300, resample=resample)
        for resample in ("reviewers", "two-way")
    )
    assert any("texts were judged by several readers" in note and "--resample two-way" in note for note in plain.notes)
    assert any(note.startswith("two-way: reviewers and 40 texts are both resampled") for note in both.notes)
    intervals = [row(found, "judge (expected)").columns["kendall"].interval for found in (plain, both)]
    assert intervals[0].high - intervals[0].low < intervals[1].high - intervals[1].low
    values = [row(found, "judge (expected)").columns["within_kendall"] for found in (plain, both)]
    assert values[0].value == values[1].value and values[0].interval != values[1].interval


def shared(readers: int, texts: int, *, each: int) -> list[Any]:
    """Reader r reads the `each` texts from number r on, round and round."""
    return [
        scored(f"{r}-{n}", f"u{r}", 1 + (3 * r + 5 * n) % 10, item=f"i{(r + n) % texts}", profile=(("p", 5),))
        for r in range(readers)
        for n in range(each)
    ]


@pytest.mark.parametrize(
    ("examples", "drawn", "note"),
    [
        (
            shared(12, 12, each=3),
            "two-way",
            "two-way: reviewers and 12 texts are both resampled, since 12 of 12 texts were judged",
        ),
        (shared(12, 9, each=3), "reviewers", f"{OF_THESE_TEXTS}: 9 of 9 texts were judged by several readers"),
        ([*shared(40, 1000, each=1), scored("x", "v", 3, item="i0", profile=(("p", 5),))], "reviewers", "1 of 40 texts"),
    ],
    ids=["shared", "too few texts", "hardly shared"],
)
def test_texts_are_resampled_by_themselves_where_readers_share_them(examples: list[Any], drawn: str, note: str) -> None:
    judgements = {"judge": noisy_judge(examples, noise=2, seed=0)}
    found = evaluate_many(judgements, [Fold(examples, None)], resamples=100)
    assert found.resample == drawn
    assert [said for said in found.notes if said.startswith(note)]
    by_reviewers = evaluate_many(judgements, [Fold(examples, None)], resamples=100, resample="reviewers")
    assert by_reviewers.resample == "reviewers"
    assert any(said.startswith(OF_THESE_TEXTS) for said in by_reviewers.notes) == (not note.startswith("1 of"))


def test_one_reviewer_and_equal_scores_leave_values_or_reasons() -> None:
    examples = [scored(str(n), "u", 5, profile=(("i1", 5),)) for n in range(6)]
    found = evaluate(examples, [answered(str(n), "5") for n in range(6)], train=TRAIN)
    no_constants(found.model_dump_json())
    for one in found.rows:
        assert all(cell.value is not None or cell.interval.reason for cell in one.columns.values()), one.name
    mae = row(found, "judge (label)").columns["mae"]
    assert (mae.value, mae.interval.reason) == (0, "undefined (one reviewer)")


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(BadInput, match="99 resamples are too few for a 95% interval; give at least 100"):
        evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN, resamples=99)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 10), st.integers(0, 10)), min_size=1, max_size=30), st.booleans())
def test_json_is_plain_and_round_trips_whatever_fails(rows: list[tuple[int, int, int]], trained: bool) -> None:
    examples = [scored(str(n), f"u{reader}", gold) for n, (reader, gold, _) in enumerate(rows)]
    judgements = [answered(str(n), str(label)) if label else failed(str(n)) for n, (_, _, label) in enumerate(rows)]
    found = evaluate(examples, judgements, train=TRAIN if trained else None, resamples=100)
    line = found.model_dump_json()
    no_constants(line)
    assert Evaluation.model_validate_json(line) == found


def test_no_interval_leaves_what_a_value_can_be() -> None:
    """Resamples of readers and of texts that they share are drawn apart to the spread that both should have: of a share near 0, as of pairs
    that are in order where all predictions tie, the interval began below 0."""
    drawn = np.random.default_rng(0)
    examples = [
        scored(f"{u}-{t}", f"u{u}", (3 * t + u + 5 * (drawn.random() < 0.05)) % 10 + 1, item=f"t{t}")
        for u in range(10)
        for t in range(10, 16)
    ]
    found = row(evaluate(examples, [answered(one.id, "5") for one in examples], train=None), "judge (label)")
    ends = {one.name: one.range for one in metrics_of("scores")}
    for name, estimate in found.columns.items():
        low, high = estimate.interval.low, estimate.interval.high
        assert low is None or high is None or ends[name][0] <= low <= high <= ends[name][1], name
    assert found.columns["pair_accuracy"].interval.low == 0
