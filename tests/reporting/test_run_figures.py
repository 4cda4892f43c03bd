"""Figures of runs: what they say of judges and baselines, and that nothing to draw is said in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from figure_builders import GOLD, NEAR, SCORES, by_name, choices, column, estimate, evaluation, scores

from perse.drawing.figure import Figure
from perse.evaluation.shared_texts import SHOWN_ELSEWHERE
from perse.evaluation.stats.results import Difference, Spent
from perse.evaluation.verdict import EVENED, ROUNDED, in_words
from perse.results.result import Estimate, Interval

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.reporting.choice_figures import order_gaps
from perse.reporting.reviewer_figures import reviewers, within
from perse.reporting.run_figures import failures, metric, run_figures, tokens
from perse.reporting.score_figures import calibration, confusions, distributions, numbered
from perse.reporting.trust_figures import reliability, risk_coverage


def test_a_run_of_scores_has_its_pictures_in_reading_order(pointwise: dict[str, Figure]) -> None:
    assert list(pointwise) == [
        *("metric-kendall", "metric-within-kendall", "metric-mae", "scores", "confusion", "calibration", "reliability"),
        *("risk-coverage", "reviewers", "within-reviewers", "failures", "tokens"),
    ]


def test_a_run_of_pairs_has_its_pictures_in_reading_order(pairwise: dict[str, Figure]) -> None:
    assert list(pairwise) == [
        *("metric-accuracy", "aspects", "confusion", "reliability", "order-gap", "risk-coverage", "failures", "tokens")
    ]


def test_judge_and_best_baseline_are_named_with_their_values(pointwise: dict[str, Figure]) -> None:
    alt = pointwise["metric-kendall"].alt
    assert "ours (expected) 0.25 [0.12, 0.38]" in alt
    assert "best baseline: profile average 0.50 [0.38, 0.62]" in alt
    assert "not ahead" in alt


def test_of_errors_the_lower_one_is_better_and_no_caption_claims_that_it_is_more_than_chance(
    pointwise: dict[str, Figure],
) -> None:
    said = "The value of ours (expected) is better than that of profile average; whether by more than chance was not computed."
    assert said in pointwise["metric-mae"].alt


@pytest.mark.slow
@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-0.9, -0.1, "is better than that of profile average: the difference is -0.50 [-0.90, -0.10]"),
        (-0.9, 0.1, "is better than that of profile average, which may be chance: the difference is -0.50 [-0.90, 0.10]"),
    ],
)
def test_where_the_difference_has_an_interval_the_caption_says_it_as_the_verdict_does(
    low: float, high: float, said: str
) -> None:
    run = scores("ours", GOLD, NEAR)
    own, best = "ours (expected)", "profile average"
    estimate = Estimate(value=-0.5, interval=Interval(low=low, high=high, resamples=100), items=40, difference=True)
    apart = Difference(judge="ours", row=own, baseline=best, column="mae", estimate=estimate)
    found = evaluation(run).model_copy(update={"differences": (apart,)})
    assert f"The value of {own} {said}" in by_name(run_figures({"ours": run}, found))["metric-mae"].alt


@pytest.mark.slow
@pytest.mark.parametrize(("again", "plain"), [(ROUNDED, True), (EVENED, False)])
def test_a_caption_claims_no_lead_that_the_verdict_takes_back_for_ties(again: str, plain: bool) -> None:
    run = scores("ours", GOLD, NEAR)
    own, best = "ours (expected)", "profile average"

    def apart(baseline: str, low: float) -> Difference:
        estimate = Estimate(value=-0.5, interval=Interval(low=low, high=-0.1, resamples=100), items=40, difference=True)
        return Difference(judge="ours", row=own, baseline=baseline, column="mae", estimate=estimate)

    given = (*([apart(best, -0.9)] if plain else []), apart(again, -0.8))
    found = evaluation(run).model_copy(update={"differences": given})
    said = by_name(run_figures({"ours": run}, found))["metric-mae"].alt
    first = "the difference is -0.50 [-0.90, -0.10], and " if plain else ""
    assert (
        f"is better than that of profile average, which ties may make: {first}-0.50 [-0.80, -0.10] from {in_words(again, own_scores=True)}."
        in said
    )


@pytest.mark.slow
def test_a_caption_names_every_row_that_is_as_good_as_the_best() -> None:
    one, other = scores("one", GOLD, NEAR), scores("other", GOLD, NEAR)
    said = by_name(run_figures({"one": one, "other": other}, evaluation(one, other)))["metric-mae"].alt
    assert (
        "The value of one (expected) is better" in said
        and " Of the same value as one (expected): one (label); other (expected); other (label)." in said
    )


@pytest.mark.parametrize(("value", "said"), [(0.25, "comes closest and is not ahead of it."), (0.75, "was not computed.")])
def test_the_best_judge_and_the_best_baseline_are_named_with_those_of_the_same_value(value: float, said: str) -> None:
    one, other = scores("one", GOLD, NEAR), scores("other", GOLD, NEAR)
    found = evaluation(one, other, value=value)
    rows = (*found.rows, found.rows[-2].model_copy(update={"name": "random"}))
    alt = metric(found.model_copy(update={"rows": rows}), "kendall").alt
    assert "best baseline: profile average 0.50 [0.38, 0.62]. Of the same value as profile average: random." in alt
    assert f"{said} Of the same value as one (expected): one (label); other (expected); other (label)." in alt


def within_readers(ours: int, theirs: int, *, apart: float | None, of_all: bool) -> str:
    """The caption of a judge of 0.75 and the unpersonalized row of 0.5, without so many readers each."""
    run = scores("ours", GOLD, NEAR)
    found, column = evaluation(run, value=0.75), "within_kendall"
    rows = []
    for row in found.rows:
        told = {
            name: one.model_copy(update={"skipped_reviewers": ours if row.judge else theirs})
            for name, one in row.columns.items()
        }
        name = "unpersonalized" if row.name == "profile average" else row.name
        rows.append(row.model_copy(update={"columns": told, "name": name}))
    values = {} if apart is None else {column: apart} | ({"within_zero_kendall": 0.0} if of_all else {})
    differences = tuple(
        Difference(judge="ours", row="ours (expected)", baseline="unpersonalized", column=one, estimate=estimate(value))
        for one, value in values.items()
    )
    return metric(found.model_copy(update={"rows": tuple(rows), "differences": differences}), column).alt


@pytest.mark.parametrize(
    ("ours", "theirs", "apart", "said"),
    [
        (
            0,
            0,
            0.25,
            "The value of ours (expected) is better than that of unpersonalized: the difference is 0.25 [0.12, 0.38].",
        ),
        (
            2,
            2,
            0.25,
            "The value of ours (expected) is better than that of unpersonalized: the difference is 0.25 [0.12, 0.38].",
        ),
        (
            *(0, 12, 0.5),
            "The values of ours (expected) and unpersonalized are of other readers, and neither is called better: on those whose texts both "
            "order the difference is 0.50 [0.38, 0.62].",
        ),
        (0, 12, None, "The values of ours (expected) and unpersonalized are of other readers, and neither is called better."),
        (2, 2, None, "The values of ours (expected) and unpersonalized may be of other readers, and neither is called better."),
    ],
)
def test_values_of_other_readers_are_not_called_better(ours: int, theirs: int, apart: float | None, said: str) -> None:
    assert said in within_readers(ours, theirs, apart=apart, of_all=False)


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (
            2,
            "is better than that of unpersonalized, which readers whose texts are not ordered may make: the difference is 0.25 [0.12, 0.38]",
        ),
        (0, "neither is called better: on those whose texts both order the difference is 0.50 [0.38, 0.62]"),
    ],
)
def test_a_caption_claims_no_lead_that_the_verdict_takes_back_for_readers_of_whom_nothing_is_said(ours: int, said: str) -> None:
    left = ", and 0.00 [-0.12, 0.12] where readers whose texts are not ordered count 0."
    assert said + left in within_readers(ours, 2, apart=0.25 if ours else 0.5, of_all=True)


def test_no_caption_claims_a_lead_of_a_row_of_labels_whose_ties_are_others() -> None:
    run = scores("ours", GOLD, NEAR)
    found = evaluation(run)
    high = Estimate(value=0.99, interval=Interval(low=0.9, high=1.0, resamples=100), items=40)
    rows = tuple(
        one.model_copy(update={"columns": {**one.columns, "kendall": high}}) if one.name == "ours (label)" else one
        for one in found.rows
    )
    said = by_name(run_figures({"ours": run}, found.model_copy(update={"rows": rows})))["metric-kendall"].alt
    assert "Of these ours (expected) comes closest and is not ahead of it." in said and "(label) is better" not in said


def test_a_fall_of_the_error_among_the_surest_is_not_shown_without_a_word_of_chance(pairwise: dict[str, Figure]) -> None:
    assert "over the surest half" in (said := pairwise["risk-coverage"].alt)
    assert "chance may make a difference: perse study risk-coverage says whether it is shown" in said


def test_a_judge_that_is_equally_sure_of_all_its_answers_has_no_surest_half(pointwise: dict[str, Figure]) -> None:
    # It gives its label 80% each time; the entropies differ by the order of their sums alone.
    run = scores("ours", GOLD, NEAR)
    assert 0 < np.ptp(run.entropy) < 1e-12
    said = pointwise["risk-coverage"].alt
    assert "over all 40 answers that have probabilities and is equally sure of all (" in said and "surest half" not in said


@pytest.mark.slow
def test_a_caption_says_why_a_difference_has_no_interval() -> None:
    run = scores("ours", GOLD, NEAR)
    own, best = "ours (expected)", "profile average"
    none = Estimate(value=-0.5, interval=Interval(reason="undefined (few reviewers)"), items=40, difference=True)
    apart = Difference(judge="ours", row=own, baseline=best, column="mae", estimate=none)
    found = evaluation(run).model_copy(update={"differences": (apart,)})
    said = "is better than that of profile average, which may be chance: the interval of the difference is undefined (few reviewers)."
    assert said in by_name(run_figures({"ours": run}, found))["metric-mae"].alt


def test_a_baseline_without_value_stands_in_the_numbers_with_its_reason(pointwise: dict[str, Figure]) -> None:
    assert ("user+item bias", None, None, None, None, None, "no training data at hand") in pointwise["metric-mae"].rows
    assert ">no training data at hand<" in pointwise["metric-mae"].svg


def test_a_judge_that_always_says_seven_is_called_out_in_title_and_words() -> None:
    run = scores("stuck", GOLD, [7.0] * 40)
    figure = distributions({"stuck": run})
    assert figure.title.endswith("stuck gives 7 in 100%, readers in 10%")
    assert "Nearly one score for everything: stuck gives 7 in 100%, readers in 10%" in figure.alt


def test_a_judge_that_uses_the_scale_is_not_called_out(pointwise: dict[str, Figure]) -> None:
    assert pointwise["scores"].title == "True and predicted scores"


def test_shares_of_true_and_given_scores_are_those_of_the_items(pointwise: dict[str, Figure]) -> None:
    assert column(pointwise["scores"], "true share") == [0.1] * 10
    for name in ("share given", "share likeliest", "mean probability"):
        assert sum(float(str(cell)) for cell in column(pointwise["scores"], name)) == pytest.approx(1)


def test_the_confusion_counts_every_item_and_failures_apart() -> None:
    run = scores("ours", [3.0, 3.0, 8.0], [3.0, 4.0, np.nan], readers=1)
    figure = confusions({"ours": run})[0]
    assert figure.header == ("true score", *SCORES, "N/A")
    assert figure.rows[2] == ("3", 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0)
    assert figure.rows[7][-1] == 1
    # of 3 items, the failed one among them, 1 is exact and 2 are within one step; the one error is too high
    assert (
        "exactly the true score in 33% of 3 items, 1 of which it did not answer, and is within one step in 67%; of its errors, 100% are too high"
        in figure.alt
    )


def test_a_judge_that_errs_once_is_not_said_to_be_right_of_everything() -> None:
    gold = (GOLD * 8)[:300]
    run = scores("ours", gold, [9.0, *gold[1:]])
    assert (
        "exactly the true score in 99.7% of 300 items and is within one step in 99.7%; of its errors, 100% are too high"
        in confusions({"ours": run})[0].alt
    )


def test_what_is_said_with_80_percent_and_never_true_is_far_off() -> None:
    run = scores("wrong", [1.0] * 20, [9.0] * 20)
    alt = reliability({"wrong": run}, evaluation(run)).alt
    # P(9) is 0.8, the nine others have 0.2/9 each, and 1 is true. At most k is k 0.2/9 for k to 8, and always so: off by 0.9 on
    # average; at most 9 is 1 - 0.2/9, off by 0.0222. (8 * 0.9 + 0.0222) / 9 = 0.802.
    assert "wrong is off by 0.802 on average" in alt


def test_errors_of_the_surest_half_are_those_of_the_answers_with_least_entropy() -> None:
    run = scores("ours", [5.0, 5.0], [5.0, 9.0], readers=2)
    run.distributions[0] = np.eye(10)[4]  # sure, and right
    figure = risk_coverage({"ours": run})
    kept = dict(zip(column(figure, "share kept"), column(figure, "mean absolute error"), strict=True))
    far = abs(5 - float(run.expected[1]))
    near = abs(5 - float(run.expected[0]))
    assert kept[1.0] == pytest.approx((near + far) / 2) and kept[0.5] == pytest.approx(near)


def test_answers_of_equal_doubt_come_together() -> None:
    run = scores("ours", [5.0, 6.0, 7.0, 8.0], [5.0, 9.0, 7.0, 2.0], readers=2)
    figure = risk_coverage({"ours": run})
    risks = [float(str(cell)) for cell in column(figure, "mean absolute error")]
    assert risks == pytest.approx([risks[0]] * len(risks))  # all 80% sure: no order of the file decides


def test_within_reviewers_counts_those_without_a_value() -> None:
    gold, given = [1.0, 2.0, 5.0, 5.0], [1.0, 3.0, 4.0, 6.0]  # the first reader in order, the second constant
    run = scores("ours", gold, given, readers=1)
    run = replace(run, reviewers=("a", "a", "b", "b"))
    figure = within({"ours": run}, evaluation(run))
    assert figure.rows == (("ours", "a", 1.0), ("ours", "b", None))
    assert (
        "ours has a tau-b above 0 for 100% of 1 reviewers (a coin has it for half of them, of few texts each for less, since tau is then often 0; "
        "and knowing what most like is enough for more), mean 1.00"
    ) in figure.alt
    assert "better than chance" not in figure.alt and "know" not in figure.title


def test_failures_are_shares_of_everything_asked() -> None:
    run = scores("ours", GOLD, [np.nan, *NEAR[1:]])
    figure = failures({"ours": run})
    assert "ours answered 39 of 40 (1 unparsed)" in figure.alt
    assert figure.rows == (("ours", 39, 1, 0, 0, 0, 40),)


def test_tokens_tell_the_cached_share_and_the_speed_where_it_is_known() -> None:
    run, spent = scores("ours", GOLD, NEAR), Spent(judgements=40, prompt=4000, cached=1000, generated=800, seconds=2.0)
    figure = tokens({"ours": run}, evaluation(run, spent=spent))
    assert "ours read 100 (25% of them cached) and wrote 20, 2,400 a second" in figure.alt
    assert figure.rows == (("ours", 75.0, 25.0, 20.0, 2400.0),)


def test_tokens_that_a_server_did_not_tell_are_not_said_to_be_none() -> None:
    run, silent = scores("ours", GOLD, NEAR), replace(scores("other", GOLD, NEAR), tokens=np.zeros((40, 3), dtype=np.int64))
    figure = tokens({"ours": run, "other": silent}, evaluation(run, silent))
    assert figure.alt == "Tokens per judgement: ours read 100 (25% of them cached) and wrote 20; of other unknown."
    assert figure.rows[1] == ("other", None, None, None, None) and ">unknown<" in figure.svg


def test_pairs_tell_aspects_positions_and_gaps(pairwise: dict[str, Figure]) -> None:
    assert "ours (likeliest) is right in 25%" in pairwise["aspects"].alt
    assert (
        "ours chose A in 10 and B in 10 of 22 pairs (where neither is likelier, by rule or by lot) and did not answer 2; A is truly preferred in 10"
        in pairwise["confusion"].alt
    )
    assert "P(A) of ours moves by 0.25 on average, over 48 pairs" in pairwise["order-gap"].alt


def test_of_a_judge_of_pairs_that_gives_labels_alone_no_probability_is_said_to_move() -> None:
    run = choices("ours")
    alone = replace(run, distributions=np.full_like(run.distributions, np.nan), order_gap=(np.arange(48) % 2).astype(float))
    alt = order_gaps({"ours": alone}, evaluation(alone)).alt
    assert "of 48 pairs it chooses another in 50% when the two are swapped, what a temperature above 0 samples included" in alt
    assert "P(A)" not in alt


@pytest.mark.parametrize("told", [True, False])
def test_nothing_answered_is_said_in_words(told: bool) -> None:
    run = scores("broken", GOLD, [np.nan] * 40, told=told)
    figures = by_name(run_figures({"broken": run}, evaluation(run, value=None)))
    for name in ("scores", "confusion", "calibration", "reliability", "risk-coverage", "reviewers", "within-reviewers"):
        assert figures[name].alt.startswith("Nothing to draw: ") and not figures[name].rows, name
    assert "undefined (constant)" in figures["metric-kendall"].alt
    assert figures["failures"].rows == (("broken", 0, 40, 0, 0, 0, 40),)


def test_a_single_item_of_a_single_reader_is_drawn() -> None:
    run = scores("ours", [4.0], [6.0], readers=1)
    alt = calibration({"ours": run}, evaluation(run, value=None)).alt
    assert "where it expects" in alt and "No interval: undefined" in alt


@pytest.mark.slow
def test_twelve_judges_fit_and_have_files_of_their_own() -> None:
    runs = {name: scores(name, GOLD[:10], NEAR[:10], readers=5) for name in (f"judge/{n}" for n in range(12))}
    assert numbered("confusion", list(runs))["judge/11"] == "confusion-12-judge-11"
    assert "and 8 more" in distributions(runs).alt


def test_true_scores_between_labels_are_said_to_be_taken_to_the_nearest_and_have_no_right_probabilities() -> None:
    run = scores("ours", [one + 0.3 if one < 10 else one for one in GOLD], NEAR)
    drawn = by_name(run_figures({"ours": run}, evaluation(run)))
    assert "ours gives the label nearest to the true score in " in drawn["confusion"].alt
    assert "The commonest true score (to the nearest label) is " in drawn["scores"].alt
    assert "true scores lie between labels" in drawn["reliability"].alt


def test_a_caption_says_of_how_many_answers_a_profile_holds_and_not_that_it_holds_all() -> None:
    run = scores("ours", GOLD, NEAR)
    note = f"{SHOWN_ELSEWHERE} in 14 of 84 examples: a judge that repeats them comes near"
    said = reviewers({"ours": run}, evaluation(run).model_copy(update={"notes": (note,)})).alt
    assert (
        " The answer asked for stands in the profile of another example of its reader in 14 of 84 examples: the more of them, "
        in said
    )
    assert "stands in the profile" not in reviewers({"ours": run}, evaluation(run)).alt
