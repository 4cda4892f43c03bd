"""Correction by a reader's past reviews alone, and whether P(label) is right: by hand, with planted leaks, as whole studies."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import inf
from pathlib import Path

import numpy as np
import pytest
from reading_builders import answered, pair, scored, scripted

from perse.batch.local import score
from perse.data.load import LoadedExamples
from perse.errors import BadInput, RunMismatch
from perse.evaluation.calibration.reliability import promised
from perse.judging.judge import Judge, JudgeSettings
from perse.questions import QUESTIONS
from perse.records import Example, PointwiseExample, ProfileReview, ReviewReference
from perse.results.result import Estimate, Interval
from perse.scale import CHOICES, SCORES
from perse.studies.calibration.correction import (
    NO_CORRECTION,
    Correction,
    PastScore,
    correct,
    fit,
    past_examples,
    past_scores,
)
from perse.studies.calibration.reliability import reliability
from perse.studies.calibration.study import AFTER, AVERAGE, BEFORE, OTHERS, Judging, _elsewhere, calibration
from perse.studies.frame.reading_runs import read_runs
from perse.studies.frame.summarizing import POINTWISE


def past(true: float, predicted: float, reviewer: str = "r") -> PastScore:
    return PastScore(reviewer, true, predicted)


def shown(*scores: int, reader: str = "r") -> tuple[ProfileReview, ...]:
    return tuple(
        ProfileReview(text=f"past text {n} of {reader}", review=f"past words {n} of {reader}", score=one)
        for n, one in enumerate(scores)
    )


def test_a_correction_is_the_common_offset_and_the_readers_own_shrunken_one() -> None:
    # Common: 5 + 1 = 6. Own: the past review is 8 where 5 + 1 was expected, 2 more, shrunken by 1 / (1 + 1).
    one = Correction(offset=1.0, slope=0.0, centre=0.0, penalty=1.0)
    assert one.apply(5.0, [past(8, 5)]) == pytest.approx(7.0)
    # Two reviews, off by +2 and 0: 2 / (2 + 1).
    assert one.apply(5.0, [past(8, 5), past(6, 5)]) == pytest.approx(6 + 2 / 3)
    assert one.apply(5.0, []) == pytest.approx(6.0)
    assert Correction(1.0, 0.0, 0.0, inf).apply(5.0, [past(10, 5)]) == pytest.approx(6.0)


def test_a_slope_draws_predictions_together_around_their_mean() -> None:
    # 8 is 3 above the mean 5; a slope of -1/2 takes half of that away: 6.5.
    assert Correction(0.0, -0.5, 5.0, inf).apply(8.0, []) == pytest.approx(6.5)


def test_corrected_scores_stay_on_the_scale() -> None:
    assert Correction(9.0, 0.0, 0.0, inf).apply(8.0, []) == 10.0
    assert Correction(-9.0, 0.0, 0.0, inf).apply(8.0, []) == 1.0


def test_the_penalty_is_small_where_readers_differ_and_infinite_where_they_do_not() -> None:
    lenient = [[past(5 + leniency, 5)] * 3 for leniency in (-3, -1, 1, 3)]
    assert fit(lenient).penalty == 0.0
    # Every reader is +1 and -1 off in turn: the others of a profile say the opposite of the one that is left out.
    moody = [[past(6, 5), past(4, 5)], [past(4, 5), past(6, 5)]]
    assert fit(moody).penalty == inf


def test_offset_and_slope_are_least_squares_on_past_reviews() -> None:
    # True scores 4, 5, 6 where 3, 5, 7 were predicted: off by +1, 0, -1; slope -1/2 around the mean prediction 5, offset 0.
    found = fit([[past(4, 3)], [past(5, 5)], [past(6, 7)]], slope=True)
    assert (found.offset, found.slope, found.centre) == pytest.approx((0.0, -0.5, 5.0))
    assert fit([[past(4, 3)], [past(5, 5)], [past(6, 7)]]).slope == 0.0


def test_one_past_review_each_allows_the_common_offset_only() -> None:
    assert fit([[past(7, 5)], [past(8, 5)]]) == Correction(2.5, 0.0, 5.0, inf)


def test_no_past_means_no_correction() -> None:
    assert fit([]) == NO_CORRECTION
    assert fit([[], []]) == NO_CORRECTION


def test_each_past_review_is_asked_with_the_others_as_its_profile_and_a_shared_profile_once() -> None:
    profile = shown(3, 9)
    found = past_examples([scored("a", "r", 5, profile=profile), scored("b", "r", 6, profile=profile)])
    assert len(found.examples) == 2 and found.of_example["a"] == found.of_example["b"]
    first = found.examples[0]
    assert (first.query, first.profile) == (profile[0].text, (profile[1],))
    assert first.reference is not None and first.reference.score == 3


def test_a_past_review_whose_text_stands_in_the_rest_is_not_asked() -> None:
    twice = (*shown(3, 9), shown(4)[0])
    found = past_examples([scored("a", "r", 5, profile=twice)])
    assert [one.query for one in found.examples] == ["past text 1 of r"] and found.left_out == 2
    assert len(found.of_example["a"]) == 1


def _world(readers: int = 24, each: int = 4) -> list[PointwiseExample]:
    """Readers who give 3 or 8, whatever they read; a profile of 3."""
    examples = []
    for reader in range(readers):
        likes = 8 if reader % 2 else 3
        for n in range(each):
            profile = shown(likes, likes + n % 2, likes, reader=f"{reader}-{n}")
            examples.append(scored(f"{reader}-{n}", f"r{reader}", likes + (n + 1) % 2, profile=profile))
    return examples


def test_a_planted_answer_has_no_effect() -> None:
    """Whatever the query's true answer, or anybody's: questions about the past and corrected scores are the same."""
    examples = _world()
    planted = [one.model_copy(update={"reference": ReviewReference(review="SCORE 10", score=10)}) for one in examples]
    found = []
    for version in (examples, planted):
        asked = past_examples(version)
        answers = {one.id: answered(one.id, "5") for one in asked.examples}
        predictions = {one.id: 5.0 for one in version}
        reviewer = {one.id: one.reviewer_id for one in version}
        found.append((asked, correct(predictions, past_scores(asked, answers), reviewer=reviewer)))
    assert found[0] == found[1]


def test_what_corrects_all_readers_alike_is_not_said_of_a_readers_own_past(tmp_path: Path) -> None:
    drawn = np.random.default_rng(5)
    low = [
        one.model_copy(
            update={
                "profile": tuple(past.model_copy(update={"score": int(drawn.integers(1, 4))}) for past in one.profile),
                "reference": ReviewReference(review="r", score=int(drawn.integers(1, 4))),
            }
        )
        for one in _world()
    ]
    judge = scripted(lambda message: "[Score] 8")
    run = _run(low, judge, tmp_path / "run")
    result = calibration(run, tmp_path / "out", judging=Judging(name="scripted"), resamples=200, load=lambda _: judge)
    whole, _, own = result.answer.partition(". Kendall")[0].partition("; ")
    assert "a change of -5." in whole and "(not shown to change)" not in whole
    assert (
        own
        == "the correction is by other readers' past reviews alone, since past reviews were told no better by one of each reader's own"
    )


def _telling_queries_alone(message: str) -> str:
    """A judge that answers nothing but a query, by what it is shown."""
    return f"[Score] {4 + len(message) % 3}" if "query" in message else "no score"


@pytest.mark.parametrize(
    ("readers", "reviews", "reply", "said"),
    [
        (12, 1, lambda message: f"[Score] {4 + len(message) % 3}", "since no profile has two reviews that were scored"),
        (1, 3, lambda message: "[Score] 5", "Nothing is corrected, since no past review of other readers was scored"),
        (4, 3, _telling_queries_alone, "Nothing is corrected, since no past review of other readers was scored"),
    ],
    ids=["profiles of one review", "one reader", "past not answered"],
)
def test_where_there_is_nothing_to_fit_a_correction_on_none_is_said_to_be_made(
    tmp_path: Path, readers: int, reviews: int, reply: Callable[[str], str], said: str
) -> None:
    judge = scripted(reply)
    world = [one.model_copy(update={"profile": one.profile[:reviews]}) for one in _world(readers)]
    run = _run(world, judge, tmp_path / "run")
    result = calibration(run, tmp_path / "out", judging=Judging(name="scripted"), resamples=50, load=lambda _: judge)
    assert said in result.answer and "told no better" not in result.answer
    made = result.answer.startswith("Corrected")
    assert made or "breaks their ties" not in result.answer
    assert made == any(note.startswith("fitted on the profiles shown") for note in result.notes)


def test_a_judge_in_words_whose_readers_share_few_texts_is_put_right_on_these_texts_alone(tmp_path: Path) -> None:
    judge = scripted(lambda message: "[Score] 5")
    shared = [one.model_copy(update={"query": f"query {n % 2}", "item_id": f"i{n % 2}"}) for n, one in enumerate(_world(10, 2))]
    run = _run(shared, judge, tmp_path / "run")
    result = calibration(run, tmp_path / "out", judging=Judging(name="scripted"), resamples=50, load=lambda _: judge)
    assert result.answer.endswith("Intervals are of these texts alone.")


def test_no_judge_is_put_right_by_the_past_of_others_and_a_run_says_whose_weights_its_readers_chose(tmp_path: Path) -> None:
    judge = scripted(lambda message: "[Score] 5")
    run = _run(_world(2, 2), judge, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    manifest["context"] |= {"profile": "another", "chosen_by": 4}
    (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(BadInput, match="was not shown the readers' own profiles \\('another'\\).* leave --judge out"):
        calibration(run, tmp_path / "study", judging=Judging(name="scripted"), load=lambda _: judge)
    whose, chosen = read_runs([run]).notes
    assert whose == "run showed 3, not the readers' own", "nothing here reads them as baselines do"
    assert chosen.startswith("run: 4 of 4 examples are of readers on whom the judge's weights were chosen")
    manifest["context"]["profile"] = "own"
    (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    told = calibration(run, tmp_path / "study", judging=Judging(name="scripted"), resamples=50, load=lambda _: judge)
    assert chosen in told.notes


def test_beside_what_a_correction_mends_stands_what_it_spoils_within_readers_and_what_needs_no_judge() -> None:
    def of(value: float, reach: float) -> Estimate:
        return Estimate(value=value, interval=Interval(low=value - reach, high=value + reach), items=90)

    columns = [of(0.2, 0.1)] * (len(POINTWISE) - 1)
    values = {name: [*columns, of(mae, 0.1)] for name, mae in ((BEFORE, 2.5), (AFTER, 2.0), (AVERAGE, 1.5))}
    assert _elsewhere(of(-0.12, 0.06), values) == (
        "; within each reader it changes by -0.120 [-0.180, -0.060]; the profile average, which needs no judge, is off by 1.500 [1.400, 1.600]"
    )
    ahead = values | {AVERAGE: [*columns, of(2.1, 0.1)]}
    assert (
        _elsewhere(of(-0.02, 0.06), ahead) == _elsewhere(of(-0.02, 0.06), {BEFORE: values[BEFORE], AFTER: values[AFTER]}) == ""
    )


def test_what_is_common_is_fitted_on_other_readers() -> None:
    examples = _world()
    asked = past_examples(examples)
    scores = past_scores(asked, {one.id: answered(one.id, "5") for one in asked.examples})
    reviewer = {one.id: one.reviewer_id for one in examples}
    predictions = {one.id: 5.0 for one in examples}
    before = correct(predictions, scores, reviewer=reviewer)
    # The first reader's past turns round. Their own fold was fitted without it: as many corrections as folds, one the same.
    turned = {
        one: tuple(past(11 - p.true, p.predicted) for p in own) if reviewer[one] == "r0" else own for one, own in scores.items()
    }
    after = correct(predictions, turned, reviewer=reviewer)
    assert sum(a == b for a, b in zip(before.corrections, after.corrections, strict=True)) == 1


def _run(examples: list[PointwiseExample] | list[Example], judge: Judge, out: Path, question: str = "pointwise_score") -> Path:
    loaded = LoadedExamples(list(examples), "digest", None, None)
    return score(judge, QUESTIONS[question], loaded, out, settings=JudgeSettings(temperature=0))


def test_a_judge_that_says_five_is_put_right_by_the_past(tmp_path: Path) -> None:
    asked: list[str] = []

    def five(message: str) -> str:
        asked.append(message)
        return "[Score] 5"

    judge = scripted(five)
    run, out = _run(_world(), judge, tmp_path / "run"), tmp_path / "study"
    result = calibration(run, out, judging=Judging(name="scripted"), resamples=200, load=lambda _: judge)
    mae = {point.series: point.estimate.value for point in result.points if point.metric == "mae"}
    assert mae[AFTER] is not None and mae[BEFORE] is not None and mae[AFTER] < 0.8 < 2 < mae[BEFORE]
    assert (
        "Kendall changes by undefined" in result.answer
        and "(not shown to change)" not in result.answer.partition(". Kendall")[0]
    )
    assert mae[OTHERS] is not None and mae[OTHERS] > 2
    beyond = "what a reader's own past reviews change beyond a correction by other readers' is -"
    assert (
        beyond in result.answer and "(not shown to change)" not in result.answer.partition(beyond)[2].partition(". Kendall")[0]
    )
    assert "reliability: undefined (no answer with a label distribution and a true label)" in result.notes
    known = (out / "study.json").read_bytes()
    count = len(asked)
    calibration(run, out, judging=Judging(name="scripted"), resamples=200, load=lambda _: judge)
    assert len(asked) == count and (out / "study.json").read_bytes() == known
    with pytest.raises(RunMismatch, match="other settings"):
        calibration(run, out, judging=Judging(name="scripted"), slope=True, resamples=200, load=lambda _: judge)


def test_another_judge_is_refused_before_the_folder_is_begun(tmp_path: Path) -> None:
    judge = scripted(lambda message: "[Score] 5")
    run = _run(_world(2, 2), judge, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    manifest["run"]["judge"]["digest"] = "one"
    (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    other = Judge(judge.engine, judge.renderer, name="other", digest="two")
    with pytest.raises(BadInput, match="other is not the judge that answered .* give the run's judge"):
        calibration(run, tmp_path / "study", judging=Judging(name="other"), load=lambda _: other)
    assert not (tmp_path / "study").exists(), "the folder is free for the right judge"


def test_a_run_that_was_shown_evidence_is_refused_before_a_judge_is_loaded_since_none_is_known_of_past_texts(
    tmp_path: Path,
) -> None:
    judge = scripted(lambda message: "[Score] 5")
    run = _run(_world(2, 2), judge, tmp_path / "run")
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    manifest["run"]["question"] = "pointwise_score_evidence"
    (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")

    def load(name: str) -> Judge:
        raise AssertionError("a judge was loaded")

    with pytest.raises(BadInput, match="was asked 'pointwise_score_evidence', which shows evidence.* leave --judge out"):
        calibration(run, tmp_path / "study", judging=Judging(name="scripted"), load=load)
    assert not (tmp_path / "study").exists()


def test_profiles_without_reviews_are_refused(tmp_path: Path) -> None:
    judge = scripted(lambda message: "[Score] 5")
    run = _run([scored("a", "r", 5), scored("b", "s", 6)], judge, tmp_path / "run")
    with pytest.raises(BadInput, match="there is no past to correct by"):
        calibration(run, tmp_path / "study", judging=Judging(name="scripted"), load=lambda _: judge)
    with pytest.raises(BadInput, match="nothing to calibrate"):
        calibration(run, tmp_path / "reliability")
    assert [folder.name for folder in tmp_path.iterdir()] == ["run"]


def test_probabilities_that_are_wrong_are_told_from_right_ones() -> None:
    examples = [pair(f"p{n}", f"r{n // 10}", "A" if n % 10 < 7 else "B") for n in range(300)]
    for p, word in ((0.7, "are not shown to be wrong"), (0.95, "are not right")):
        given = promised(
            examples, [answered(one.id, "A", distribution={"A": p, "B": 1 - p}) for one in examples], scale=CHOICES
        )
        assert given is not None
        found = reliability("judge", given, resamples=200)
        assert word in found.sentence
        assert len(found.tables[1].rows) == 10 and len(found.points) == 2


def test_items_without_distribution_or_reference_promise_nothing() -> None:
    assert promised([scored("a", "r", 5)], [answered("a", "5")], scale=SCORES) is None
    assert promised([scored("a", "r", None)], [answered("a", "5", distribution={"5": 1.0})], scale=SCORES) is None


def test_a_label_that_a_distribution_does_not_name_has_the_probability_0() -> None:
    judgements = [answered("a", "5", distribution={"5": 1.0}), answered("b", "6", distribution={"6": 0.75, "7": 0.25})]
    found = promised([scored("a", "r", 4), scored("b", "s", 7)], judgements, scale=SCORES)
    assert found is not None and found.labels == SCORES.labels and found.probability.sum(axis=1).tolist() == [1.0, 1.0]
    assert found.truth.tolist() == [3, 6] and found.probability[[0, 1], found.truth].tolist() == [0.0, 0.25]


def test_the_note_says_which_reviews_were_used_and_not_that_they_are_earlier(tmp_path: Path) -> None:
    judge = scripted(lambda message: "[Score] 5")
    run = _run(_world(4, 1), judge, tmp_path / "run")
    result = calibration(run, tmp_path / "study", judging=Judging(name="scripted"), resamples=100, load=lambda _: judge)
    [note] = [note for note in result.notes if note.startswith("fitted on the profiles shown")]
    assert "never on the answer to the query that is corrected" in note and "drawn at random some may be later" in note


def test_a_tenth_for_every_score_is_told_to_be_not_right_and_nine_readers_are_too_few_to_say() -> None:
    examples = [scored(f"e{n}", f"r{n // 5}", 5 + n % 3) for n in range(100)]
    flat = {str(score): 0.1 for score in range(1, 11)}
    for size, word in ((100, "The probabilities of judge are not right"), (45, "9 readers are too few to say")):
        given = promised(examples[:size], [answered(one.id, "5", distribution=flat) for one in examples[:size]], scale=SCORES)
        assert given is not None
        found = reliability("judge", given, resamples=200)
        assert word in found.sentence
        assert [row[0] for row in found.tables[2].rows] == [str(score) for score in range(1, 10)]
        here = reliability("judge", given, resamples=200, of_these_texts=True)
        assert "are not right, on these texts alone: " in here.sentence or size == 45
