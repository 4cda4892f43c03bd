"""Means, intervals and differences of a run's scores, against values derived by hand and a simple world."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rehearsal_builders import Cast, Said, sample, step_of, usual

from perse.data.persum.folder import Sample
from perse.errors import BadInput, RunMismatch
from perse.judgement import Judgement
from perse.rehearsal.folder import Trace
from perse.rehearsal.judging import MEASURES, SIDES, Wanted, mean_of, value_of
from perse.rehearsal.methods import METHODS
from perse.rehearsal.scoring.asking import Scored, check_samples_of, read_scores, score
from perse.rehearsal.scoring.published import TABLE_1, TABLE_2
from perse.rehearsal.scoring.results import AVERAGE, USER, Results, results
from perse.rehearsal.scoring.telling import rehearsal_result
from perse.results.markdown import markdown

SAMPLES = [sample(n, group="Low" if n % 3 == 0 else "High") for n in range(12)]


def scored(values: Mapping[str, Sequence[Sequence[float | None]]], samples: Sequence[Sample] = SAMPLES) -> Scored:
    """method -> for each sample its six scores."""
    traces = {
        method: {one.id: Trace(sample=one.id, method=method, summary="A summary.") for one in samples} for method in values
    }
    scores = {
        method: {one.id: dict(zip(MEASURES, six, strict=True)) for one, six in zip(samples, rows, strict=True)}
        for method, rows in values.items()
    }
    return Scored(traces, scores, "judge")


def found(values: Mapping[str, Sequence[Sequence[float | None]]], samples: Sequence[Sample] = SAMPLES) -> Results:
    return results(samples, scored(values, samples), resamples=200, seed=0)


def test_a_row_has_the_means_of_the_six_scores_their_average_and_that_of_the_users_two() -> None:
    row = found({"onlysum": [[0, 20, 40, 60, 80, 100]] * 6 + [[20, 40, 60, 80, 100, 100]] * 6}).rows["onlysum"]
    assert [row[measure].value for measure in MEASURES] == [10, 30, 50, 70, 90, 100]
    assert row[AVERAGE].value == pytest.approx(350 / 6) and row[USER].value == 95


def test_the_columns_are_in_the_papers_order() -> None:
    assert tuple((side, name) for side in ("product", "history", "user") for name in ("coverage", "sentiment")) == MEASURES


def test_a_sample_that_the_judge_could_not_score_is_left_out_of_all_methods() -> None:
    whole = [[60.0] * 6] * 12
    holes: list[list[float | None]] = [[100.0] * 6 for _ in range(12)]
    holes[0] = [100.0, 100.0, None, 100.0, 100.0, 100.0]
    made = found({"onlysum": whole, "rehearsal": holes})
    assert (made.samples, made.compared, made.scored) == (12, 11, {"onlysum": 12, "rehearsal": 11})
    assert made.rows["onlysum"][AVERAGE].items == 11
    assert "1 of 12 samples are not compared" in " ".join(rehearsal_result(made).notes)


def test_a_method_that_fails_at_what_is_hard_does_not_look_better() -> None:
    """The hard half is worth 40 to who answers: a method that answers the easy half alone has an average of 90 there, and of 45 of all."""
    easy = [[90.0] * 6 if n < 6 else [40.0 + n] * 6 for n in range(12)]
    of_all = scored({"onlysum": easy, "rehearsal": easy})
    half = {name: values for name, values in of_all.scores["rehearsal"].items() if name in {f"s{n}" for n in range(6)}}
    made = results(SAMPLES, replace(of_all, scores={**of_all.scores, "rehearsal": half}), resamples=200, seed=0)
    assert made.rows["rehearsal"][AVERAGE].value == 45 and made.there["rehearsal"] == 90 and made.compared == 12
    told = rehearsal_result(made)
    assert "(no summary of 6 samples, which count 0)" in told.answer and "higher" not in told.answer
    assert "scores 0 under it" in " ".join(told.notes)
    assert "Differences on the same samples" in [table.title for table in told.tables]


def test_a_method_that_is_lower_since_it_wrote_less_is_said_to_have() -> None:
    """Three methods of one quality; OnlySum lacks the summaries of 8 of 40 samples, PerSum that of one."""
    samples = [sample(n) for n in range(40)]
    same = [[60.0 + n % 7] * 6 for n in range(40)]
    whole = scored({"onlysum": same, "sum-perchan": same, "rehearsal": same}, samples)
    lacks = {"onlysum": {f"s{n}" for n in range(8)}, "sum-perchan": {"s9"}, "rehearsal": set[str]()}
    scores = {
        method: {name: values for name, values in of_one.items() if name not in lacks[method]}
        for method, of_one in whole.scores.items()
    }
    made = results(samples, replace(whole, scores=scores), resamples=200, seed=0)
    answer = rehearsal_result(made).answer
    assert (
        f"It is higher than OnlySum (no summary of 8 samples, which count 0); not shown to differ from {METHODS['sum-perchan'].published} "
        "(no summary of 1 sample, which counts 0)."
    ) in answer
    assert "40 readers. It is" in answer, "Rehearsal has all"


@pytest.mark.parametrize(
    ("unread", "told", "of_compared"),
    [
        (set[str](), "over 12 samples of 12 readers (no summary of 3 samples, which count 0)", 3),
        ({"s0", "s1"}, "over 10 samples of 10 readers (no summary of 1 sample, which counts 0)", 1),
        ({"s0", "s1", "s2"}, "over 9 samples of 9 readers", 0),
    ],
)
def test_summaries_that_are_not_there_are_counted_over_the_samples_that_are_compared(
    unread: set[str], told: str, of_compared: int
) -> None:
    """Rehearsal lacks those of s0 to s2; of a sample that the judge could not score under OnlySum it counts nothing."""
    whole = scored({"onlysum": [[60.0] * 6] * 12, "rehearsal": [[80.0] * 6] * 12})
    scores = {
        "onlysum": {name: dict.fromkeys(MEASURES, None if name in unread else 60.0) for name in whole.scores["onlysum"]},
        "rehearsal": {name: values for name, values in whole.scores["rehearsal"].items() if name not in {"s0", "s1", "s2"}},
    }
    made = results(SAMPLES, replace(whole, scores=scores), resamples=200, seed=0)
    result = rehearsal_result(made)
    assert made.lacking == {"onlysum": 0, "rehearsal": of_compared}
    assert f"{told}. It is" in result.answer and ("scores 0 under it" in " ".join(result.notes)) is bool(of_compared)
    alone = results(SAMPLES, replace(whole, scores={"rehearsal": scores["rehearsal"]}), resamples=200, seed=0)
    assert "(no summary of 3 samples, which count 0); no method that it is held against" in rehearsal_result(alone).answer


def test_nothing_is_compared_where_a_judge_gives_no_scores() -> None:
    with pytest.raises(BadInput, match="judge gave some of 12 of 12 summaries of rehearsal none"):
        found({"onlysum": [[60.0] * 6] * 12, "rehearsal": [[None] * 6] * 12})


def test_a_judge_is_not_blamed_where_no_method_wrote_anything() -> None:
    whole = scored({"onlysum": [[60.0] * 6] * 12, "rehearsal": [[60.0] * 6] * 12}, SAMPLES)
    with pytest.raises(BadInput, match="no method has a summary of any of 12 samples, .* at which step they failed"):
        results(SAMPLES, replace(whole, scores={"onlysum": {}, "rehearsal": {}}), resamples=200, seed=0)


@pytest.mark.slow
def test_a_summary_that_suits_one_product_is_no_evidence_of_many() -> None:
    """150 readers, 10 products: what a method is worth is drawn once for each product. Readers alone would be sure of nearly any difference."""
    samples = [sample(n) for n in range(150)]
    samples = [
        one.model_copy(update={"own": one.own.model_copy(update={"item_id": f"p{n % 10}"})}) for n, one in enumerate(samples)
    ]
    wrong = 0
    for world in range(20):
        generator = np.random.default_rng(world)
        values = {
            method: [[60.0 + effects[n % 10] + float(generator.normal(0, 2))] * 6 for n in range(150)]
            for method in ("onlysum", "rehearsal")
            for effects in [generator.normal(0, 6, 10)]
        }
        made = results(samples, scored(values, samples), resamples=200, seed=0)
        assert made.two_way
        wrong += any(one.higher or one.lower for one in made.differences)
    assert wrong <= 4  # 20 worlds at 5%: 5 or more in 1 of 400


def test_a_difference_is_paired_and_has_an_exact_p_value() -> None:
    """All 12 readers differ by 30 or 40 the same way: of the 2^12 exchanges only none and all are as large, so p is 2 / 4,096."""
    one = [[10.0 + 4 * n] * 6 for n in range(12)]
    other = [[40.0 + 4 * n + 10 * (n % 2)] * 6 for n in range(12)]
    made = found({"onlysum": one, "rehearsal": other})
    average, user = made.differences
    assert (average.method, average.minus, average.of, user.of) == ("rehearsal", "onlysum", AVERAGE, USER)
    assert average.estimate.value == pytest.approx(35) and average.estimate.above_zero
    assert average.p.p == pytest.approx(2 / 4096) and average.adjusted == pytest.approx(4 / 4096) and average.higher
    assert "It is higher than OnlySum." in rehearsal_result(made).answer


def test_rehearsal_and_the_personal_judge_are_both_told_of_and_are_one_family() -> None:
    """One p-value of 2 / 4,096 among the six of both methods' differences is multiplied by 6; nothing is left for the other family."""
    flat = [[10.0 + 4 * n] * 6 for n in range(12)]
    better = [[40.0 + 4 * n + 10 * (n % 2)] * 6 for n in range(12)]
    made = found({"onlysum": flat, "rehearsal": better, "personal": flat})
    told = rehearsal_result(made).answer
    assert "differ in more than who supervises" in " ".join(rehearsal_result(made).notes)
    assert "Rehearsal scores 67.0 of 100" in told and "It is higher than OnlySum." in told
    assert (
        "Personal judge (ours) scores 32.0 of 100" in told
        and "It is lower than Rehearsal; not shown to differ from OnlySum." in told
    )
    assert [one.adjusted for one in made.differences if one.of == AVERAGE] == [
        pytest.approx(6 * 2 / 4096), 1.0, pytest.approx(6 * 2 / 4096),
    ]  # fmt: skip


def test_a_method_is_not_higher_by_less_than_failures_that_no_sample_shows_may_take() -> None:
    """Two that are 3 points apart in each of 60 samples: of others up to 6% may have no summary of one of them, which is 4 points of 65."""
    samples = [sample(n) for n in range(60)]
    lower = [[60.0 + n % 9] * 6 for n in range(60)]
    near, far = ([[row[0] + by + n % 3] * 6 for n, row in enumerate(lower)] for by in (2, 9))
    for values, told in ((near, "not shown to differ from OnlySum"), (far, "It is higher than OnlySum.")):
        made = results(samples, scored({"onlysum": lower, "rehearsal": values}, samples), resamples=200, seed=0)
        assert told in rehearsal_result(made).answer


def test_no_difference_is_told_as_one_and_a_negative_one_as_lower() -> None:
    generator = np.random.default_rng(1)
    noise = [[float(value)] * 6 for value in generator.normal(50, 10, 12)]
    mixed = [[row[0] + (5 if n % 2 else -5)] * 6 for n, row in enumerate(noise)]
    worse = [[row[0] - 20 - n % 3] * 6 for n, row in enumerate(noise)]
    told = rehearsal_result(found({"onlysum": noise, "sum-perchan": mixed})).answer
    assert "not shown to differ from OnlySum" in told
    assert "lower than OnlySum" in rehearsal_result(found({"onlysum": noise, "sum-perchan": worse})).answer


@pytest.mark.slow
def test_chance_is_rarely_called_a_difference() -> None:
    """Three methods that differ by noise alone, 15 readers: with Holm's adjustment one of six differences is told in at most some 5% of worlds."""
    samples = [sample(n) for n in range(15)]
    generator = np.random.default_rng(0)
    wrong = 0
    for world in range(60):
        values = {
            method: [[float(value)] * 6 for value in generator.normal(60, 15, 15)]
            for method in ("onlysum", "role", "rehearsal")
        }
        made = results(samples, scored(values, samples), resamples=200, seed=world)
        wrong += any(one.higher or one.lower for one in made.differences)
    assert wrong <= 7  # 60 worlds at 5%: 8 or more in 1 of 70


def test_few_readers_have_no_interval_and_this_is_said() -> None:
    few = SAMPLES[:4]
    made = found({"onlysum": [[60.0] * 6] * 4, "rehearsal": [[80.0] * 6] * 4}, few)
    assert made.rows["rehearsal"][AVERAGE].interval.low is None and not made.differences[0].higher
    assert "few reviewers" in markdown(rehearsal_result(made))


def test_classes_have_rows_of_their_own() -> None:
    values = [[100.0 if one.group == "High" else 20.0] * 6 for one in SAMPLES]
    made = found({"onlysum": values})
    assert {name: part["onlysum"][AVERAGE].value for name, part in made.parts.items()} == {"High": 100.0, "Low": 20.0}


def test_published_rows_stand_beside_ours_and_say_that_they_are_the_papers() -> None:
    told = markdown(rehearsal_result(found({"onlysum": [[60.0] * 6] * 12})))
    assert "Table 1 as published" in told and "not comparable" in told and "91.87" in told
    assert len(TABLE_1) == 25 and len(TABLE_2) == 12


def judging(message: str) -> Said:
    step = step_of(message)
    if step.startswith("scores"):
        against = "user" if "Quiet enough" in message else "history" if "I like quiet" in message else "product"
        return f"[Score] {20 * (1 + SIDES.index(against)) + (20 if step == 'scores sentiment' else 0)}"
    return usual(message)


def test_a_judge_is_asked_six_times_of_each_summary_and_never_twice(tmp_path: Path) -> None:
    writing, scoring = Cast(), Cast(judging, name="another")
    run = writing.rehearse(tmp_path / "run", SAMPLES[:2], ["onlysum", "sum-perchan"])
    for _ in range(2):
        score(scoring.judge, SAMPLES[:2], run, digest="of these", name="scored")
    assert len(scoring.asked) == 2 * 2 * 6
    made = read_scores(SAMPLES[:2], run, digest="of these", name="scored")
    assert list(made.scores["onlysum"]["s0"].values()) == [20, 40, 40, 60, 60, 80] and made.judge == "another"


def test_scores_of_another_judge_go_under_another_name(tmp_path: Path) -> None:
    run = Cast().rehearse(tmp_path / "run", SAMPLES[:2], ["onlysum"])
    score(Cast(judging).judge, SAMPLES[:2], run, digest="of these", name="scored")
    with pytest.raises(RunMismatch, match="judge.model was"):
        score(Cast(judging, name="another").judge, SAMPLES[:2], run, digest="of these", name="scored")
    score(Cast(judging, name="another").judge, SAMPLES[:2], run, digest="of these", name="again")
    assert sorted(path.name for path in (run / "scores").iterdir()) == ["again", "scored"]


@pytest.mark.parametrize(
    ("name", "best", "rewrites", "chose"),
    [
        ("scripted", "visible", 5, True),
        ("another", "visible", 5, False),
        ("scripted", "last", 5, False),
        ("scripted", "all", 1, False),
    ],
)
def test_a_judge_that_chose_the_versions_is_said_to_have(
    tmp_path: Path, name: str, best: str, rewrites: int, *, chose: bool
) -> None:
    """Of five versions the best by this judge is scored by it again, where a baseline has one version; of one it chose nothing."""
    samples = [sample(1)]
    run = Cast().rehearse(tmp_path / "run", samples, ["onlysum", "role"], best=best, rewrites=rewrites)
    score(Cast(judging, name=name).judge, samples, run, digest="of these", name="scored")
    made = read_scores(samples, run, digest="of these", name="scored")
    assert (made.chose, made.wrote) == (chose, name == "scripted")
    told = rehearsal_result(results(samples, made, resamples=200, seed=0))
    assert ("flattered" in " ".join(told.notes)) is chose and ("by the judge that chose its versions" in told.answer) is chose
    assert ("also wrote the summaries" in " ".join(told.notes)) is made.wrote


@pytest.mark.parametrize("roles", [None, [], "x"])
def test_a_run_whose_roles_are_of_another_shape_is_one_sentence(tmp_path: Path, roles: object) -> None:
    run = Cast().rehearse(tmp_path / "run", SAMPLES[:1], ["onlysum"])
    score(Cast(judging).judge, SAMPLES[:1], run, digest="of these", name="scored")
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["run"]["roles"] = roles
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="'run.roles' is .*, expected a JSON object"):
        read_scores(SAMPLES[:1], run, digest="of these", name="scored")


def test_a_judge_of_scores_whose_name_is_no_text_has_none(tmp_path: Path) -> None:
    run = Cast().rehearse(tmp_path / "run", SAMPLES[:1], ["onlysum"])
    score(Cast(judging).judge, SAMPLES[:1], run, digest="of these", name="scored")
    path = run / "scores" / "scored" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["run"]["judge"]["model"] = 3
    path.write_text(json.dumps(manifest))
    assert read_scores(SAMPLES[:1], run, digest="of these", name="scored").judge == "?"


def test_a_run_of_other_samples_is_refused(tmp_path: Path) -> None:
    run = Cast().rehearse(tmp_path / "run", SAMPLES[:2], ["onlysum"])
    with pytest.raises(BadInput, match=r"made of other samples \(it has 2\)"):
        check_samples_of(run, "another")
    with pytest.raises(BadInput, match="no scores 'scored'; make them with `perse rehearsal score`"):
        read_scores(SAMPLES[:2], run, digest="of these", name="scored")
    with pytest.raises(BadInput, match="no path"):
        score(Cast().judge, SAMPLES[:2], run, digest="of these", name="../scored")


def judgement(**fields: object) -> Judgement:
    whole = {"id": "s1/user/0", "question": "coverage_100", "status": "ok", "model": "judge", "k_effective": 1}
    return Judgement.model_validate({**whole, "tokens": {"prompt": 0, "cached": 0, "generated": 0}, **fields})


def test_a_score_is_the_expected_one_or_the_label_and_nothing_where_there_is_none() -> None:
    assert value_of(judgement(label="0", expected=0.0)) == 0.0
    assert value_of(judgement(label="80", expected=71.5)) == 71.5
    assert value_of(judgement(label="80")) == 80.0
    assert value_of(judgement(status="unparsed")) is None and value_of(None) is None


@pytest.mark.parametrize(("given", "points"), [("1", 0.0), ("3", 50.0), ("5", 100.0)])
def test_a_score_of_1_to_5_is_brought_to_0_to_100(given: str, points: float) -> None:
    assert value_of(judgement(question="coverage", label=given)) == points
    assert value_of(judgement(question="sentiment", label=given, expected=3.5)) == 62.5
    with pytest.raises(BadInput, match="expected one of 1, 2, 3, 4, 5"):
        value_of(judgement(question="coverage", label="60"))


def test_summaries_may_be_scored_on_the_narrower_scale_under_another_name(tmp_path: Path) -> None:
    def grading(message: str) -> Said:
        return "[Score] 4" if step_of(message).startswith("scores") else usual(message)

    run = Cast(judging).rehearse(tmp_path / "run", SAMPLES[:2], ["onlysum"])
    score(Cast(judging).judge, SAMPLES[:2], run, digest="of these", name="wide")
    score(Cast(grading).judge, SAMPLES[:2], run, digest="of these", name="narrow", labels="1-5")
    with pytest.raises(RunMismatch, match="scale was"):
        score(Cast(grading).judge, SAMPLES[:2], run, digest="of these", name="wide", labels="1-5")
    made = read_scores(SAMPLES[:2], run, digest="of these", name="narrow")
    assert set(made.scores["onlysum"]["s0"].values()) == {75.0} and made.labels == "1-5"
    told = rehearsal_result(results(SAMPLES[:2], made, resamples=10, seed=0))
    assert "which was asked for 1 to 5" in " ".join(told.notes)
    wide = read_scores(SAMPLES[:2], run, digest="of these", name="wide")
    assert "0 to 100; a judge" in " ".join(rehearsal_result(results(SAMPLES[:2], wide, resamples=10, seed=0)).notes)


@pytest.mark.parametrize("other", [{"label": "7"}, {"label": "4", "expected": 3.5}, {"label": "80", "expected": 480.0}])
def test_scores_of_another_scale_are_refused(other: dict[str, object]) -> None:
    with pytest.raises(BadInput, match="expected one of 0, 20, 40, 60, 80, 100"):
        value_of(judgement(**other))


def test_a_mean_needs_every_score() -> None:
    assert mean_of({("product", "coverage"): 20.0, ("product", "sentiment"): 40.0}) == 30.0
    assert mean_of({("product", "coverage"): 20.0, ("product", "sentiment"): None}) is None
    assert mean_of({}) is None


def test_the_same_summary_is_the_same_example_whoever_wrote_it() -> None:
    one, other = Wanted(SAMPLES[0], "Loud."), Wanted(SAMPLES[0], "Loud.")
    assert one.example("product") == other.example("product")
    assert one.example("product").id != Wanted(SAMPLES[0], "Quiet.").example("product").id
