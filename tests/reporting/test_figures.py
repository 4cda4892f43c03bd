"""Figures of runs and studies: what they say, that they follow the page, and that nothing to draw is said in words."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perse.evaluation.intervals import Interval
from perse.evaluation.results import Estimate, Evaluation, JudgeSummary, Row, Spent
from perse.judgement import Status
from perse.reporting.figure import Figure, save_figure
from perse.reporting.report_data import RunData
from perse.studies.results import Point, StudyResult

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.reporting.drawing import HATCHES, MARKERS, SERIES, draw, empty, file_name, plain, style
from perse.reporting.reviewer_figures import within
from perse.reporting.run_figures import failures, metric, run_figures, tokens
from perse.reporting.score_figures import calibration, confusions, distributions, numbered
from perse.reporting.study_figures import study_figures, training_figure
from perse.reporting.trust_figures import reliability, risk_coverage

SCORES = tuple(map(str, range(1, 11)))


def estimate(value: float | None, *, reason: str | None = None) -> Estimate:
    if value is None or reason:
        return Estimate(value=value, interval=Interval(reason=reason or "undefined (constant)"), items=0)
    return Estimate(value=value, interval=Interval(low=value - 0.125, high=value + 0.125, resamples=50), items=40)


def scores(name: str, gold: Sequence[float], label: Sequence[float], *, readers: int = 12, told: bool = True) -> RunData:
    """A judge that gives its label 80% and spreads the rest; NaN is a failure."""
    size, given = len(gold), np.array(label, dtype=np.float64)
    distributions = np.full((size, 10), np.nan)
    for row, one in zip(distributions, given, strict=True):
        if told and not np.isnan(one):
            row[:] = 0.2 / 9
            row[int(one) - 1] = 0.8
    return RunData(
        name=name,
        kind="pointwise",
        labels=SCORES,
        ids=tuple(f"e{n}" for n in range(size)),
        reviewers=tuple(f"r{n % readers}" for n in range(size)),
        aspects=("",) * size,
        gold=np.array(gold, dtype=np.float64),
        label=given,
        expected=distributions @ np.arange(1, 11) if told else given,
        distributions=distributions,
        order_gap=np.full(size, np.nan),
        statuses=tuple(Status.UNPARSED if np.isnan(one) else Status.OK for one in given),
        tokens=np.tile(np.array([100, 25, 20], dtype=np.int64), (size, 1)),
    )


def evaluation(*runs: RunData, value: float | None = 0.25, spent: Spent | None = None) -> Evaluation:
    """Every column of every judge's row has this value; the profile average 0.5, user+item bias none."""
    pairs = runs[0].kind == "pairwise"
    columns = (
        ("accuracy", "order_gap", "order_consistency") if pairs else ("kendall", "within_kendall", "mae", "between_kendall")
    )
    counts = {"A": {"A": 3, "B": 1, "N/A": 1}, "B": {"A": 2, "B": 4, "N/A": 0}}
    rows = []
    for run in runs:
        for reading in ("likeliest" if pairs else "expected", "label"):
            rows.append(
                Row(
                    name=f"{run.name} ({reading})",
                    judge=run.name,
                    asked=40,
                    ok=40,
                    columns={column: estimate(value) for column in columns},
                    aspects={aspect: estimate(value) for aspect in ("Ending", "Surprise")} if pairs else {},
                    counts=dict.fromkeys(("Ending", "Surprise"), counts) if pairs else {},
                )
            )
    best = {column: estimate(None if value is None else 0.5) for column in columns}
    aspects = dict.fromkeys(("Ending", "Surprise"), best["accuracy"]) if pairs else {}
    rows.append(Row(name="profile average", judge=None, asked=40, ok=40, columns=best, aspects=aspects))
    rows.append(Row(name="user+item bias", judge=None, unavailable="no training data at hand", asked=40, ok=0))
    summary = JudgeSummary(models=("m",), adapters=(), statuses=dict.fromkeys(Status, 0), spent=spent)
    return Evaluation(
        kind="pairwise" if pairs else "pointwise",
        examples=40,
        without_reference=0,
        items=40,
        ok_items=40,
        reviewers=12,
        judges={run.name: summary for run in runs},
        rows=tuple(rows),
        resamples=50,
        seed=0,
    )


def choices(name: str, *, size: int = 48) -> RunData:
    chance = np.linspace(0.05, 0.95, size)  # of B
    gold = np.array([float(n % 3 == 0 or n > size / 2) for n in range(size)])
    base = scores(name, [1.0] * size, [1.0] * size)
    return RunData(
        name=name,
        kind="pairwise",
        labels=("A", "B"),
        ids=base.ids,
        reviewers=base.reviewers,
        aspects=("Ending", "Surprise") * (size // 2),
        gold=gold,
        label=(chance > 0.5).astype(np.float64),
        expected=chance,
        distributions=np.stack([1 - chance, chance], axis=1),
        order_gap=np.full(size, 0.25),
        statuses=base.statuses,
        tokens=base.tokens,
    )


GOLD = [float(1 + n % 10) for n in range(40)]
NEAR = [float(min(10, max(1, 1 + n % 10 + (-1) ** n))) for n in range(40)]


@pytest.fixture(scope="module")
def pointwise() -> dict[str, Figure]:
    run = scores("ours", GOLD, NEAR)
    return by_name(run_figures({"ours": run}, evaluation(run)))


@pytest.fixture(scope="module")
def pairwise() -> dict[str, Figure]:
    run = choices("ours")
    return by_name(run_figures({"ours": run}, evaluation(run)))


def by_name(figures: list[Figure]) -> dict[str, Figure]:
    assert len({figure.name for figure in figures}) == len(figures)
    return {figure.name: figure for figure in figures}


def column(figure: Figure, name: str) -> list[object]:
    return [row[figure.header.index(name)] for row in figure.rows]


def test_a_run_of_scores_has_its_pictures_in_reading_order(pointwise: dict[str, Figure]) -> None:
    assert list(pointwise) == [
        *("metric-kendall", "metric-within-kendall", "metric-mae", "scores", "confusion", "calibration", "reliability"),
        *("risk-coverage", "reviewers", "within-reviewers", "failures", "tokens"),
    ]


def test_a_run_of_pairs_has_its_pictures_in_reading_order(pairwise: dict[str, Figure]) -> None:
    assert list(pairwise) == [
        *("metric-accuracy", "aspects", "confusion", "reliability", "order-gap", "risk-coverage", "failures", "tokens")
    ]


def test_every_picture_has_words_numbers_and_an_image(pointwise: dict[str, Figure], pairwise: dict[str, Figure]) -> None:
    for figure in (*pointwise.values(), *pairwise.values()):
        assert re.search(r"\d", figure.alt), figure.name
        assert figure.rows and all(len(row) == len(figure.header) for row in figure.rows), figure.name
        assert "nan" not in figure.csv.lower().replace("surprise", ""), figure.name
        assert figure.png.startswith(b"\x89PNG")
        ElementTree.fromstring(figure.svg)


def test_the_same_data_is_drawn_in_the_same_bytes(pointwise: dict[str, Figure]) -> None:
    run = scores("ours", GOLD, NEAR)
    again = [distributions({"ours": run}), *confusions({"ours": run}), calibration({"ours": run}, evaluation(run))]
    assert again == [pointwise[figure.name] for figure in again]


def test_colours_are_variables_of_the_page_with_the_colour_as_fallback(pointwise: dict[str, Figure]) -> None:
    svg = pointwise["scores"].svg
    assert "var(--ink, #1a1a1a)" in svg and "var(--series-1, #0072b2)" in svg
    bare = re.sub(r"var\(--[a-z0-9-]+, #[0-9a-f]{6}\)", "", svg)
    assert not re.findall(r"#[0-9a-f]{6}(?=[;\"])", bare)
    assert "#000000" not in svg and "<style" not in svg


def test_text_stays_text(pointwise: dict[str, Figure]) -> None:
    assert ">mean expected score (dashed: exactly right)<" in pointwise["calibration"].svg


def test_no_two_pictures_share_an_id(pointwise: dict[str, Figure], pairwise: dict[str, Figure]) -> None:
    ids = [one for figure in pointwise.values() for one in re.findall(r' id="([^"]+)"', figure.svg)]
    assert ids and len(set(ids)) == len(ids)
    for figure in pointwise.values():
        used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', figure.svg))
        assert used <= set(re.findall(r' id="([^"]+)"', figure.svg)), figure.name
        assert all(one.startswith(f"{figure.name}-") for one in used)


def test_judge_and_best_baseline_are_named_with_their_values(pointwise: dict[str, Figure]) -> None:
    alt = pointwise["metric-kendall"].alt
    assert "ours (expected) 0.25 [0.12, 0.38]" in alt
    assert "best baseline: profile average 0.50 [0.38, 0.62]" in alt
    assert "not ahead" in alt


def test_of_errors_the_lower_one_is_ahead(pointwise: dict[str, Figure]) -> None:
    assert "ours (expected) is ahead of it" in pointwise["metric-mae"].alt


def test_a_baseline_without_value_stands_in_the_numbers_with_its_reason(pointwise: dict[str, Figure]) -> None:
    assert ("user+item bias", None, None, None, None, None, "no training data at hand") in pointwise["metric-mae"].rows
    assert ">no training data at hand<" in pointwise["metric-mae"].svg


def test_a_judge_that_always_says_seven_is_called_out_in_title_and_words() -> None:
    run = scores("stuck", GOLD, [7.0] * 40)
    figure = distributions({"stuck": run})
    assert figure.title.endswith("stuck gives 7 in 100%")
    assert "Nearly one score for everything: stuck gives 7 in 100%" in figure.alt


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
        "exactly the true score in 33% of 3 items and is within one step in 67%; of its errors, 100% are too high" in figure.alt
    )


def test_what_is_said_with_80_percent_and_never_true_is_far_off() -> None:
    run = scores("wrong", [1.0] * 20, [9.0] * 20)
    alt = reliability({"wrong": run}, evaluation(run)).alt
    # of ten labels one has P = 0.8 and is never true, one P = 0.2/9 and always, eight P = 0.2/9 and never. The nine small ones
    # fall into one bin: mean P 0.0222, true in 1/9; |0.0222 - 0.1111| * 0.9 + 0.8 * 0.1 = 0.08 + 0.08 = 0.16
    assert "wrong is off by 0.160 on average" in alt


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
    assert "100% of 1 reviewers' items better than chance, mean 1.00 (1 reviewers without a value)" in figure.alt


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


def test_pairs_tell_aspects_positions_and_gaps(pairwise: dict[str, Figure]) -> None:
    assert "ours (likeliest) is right in 25%" in pairwise["aspects"].alt
    assert (
        "ours chose A in 10 and B in 10 of 22 pairs and did not answer 2; A is truly preferred in 10"
        in pairwise["confusion"].alt
    )
    assert "P(A) of ours moves by 0.25 on average, over 48 pairs" in pairwise["order-gap"].alt


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


def test_names_from_files_are_shown_as_they_are_and_change_nothing() -> None:
    name = 'a "judge" <script>alert(1)</script> $x$ & id="x" \x07 ' + "very " * 30 + "long"
    run = scores(name, GOLD, NEAR)
    runs = {name: run}
    for figure in (metric(evaluation(run), "mae"), distributions(runs), confusions(runs)[0], failures(runs)):
        root = ElementTree.fromstring(figure.svg)
        assert not list(root.iter("{http://www.w3.org/2000/svg}script")), figure.name
        assert figure.name == file_name(figure.name)


def test_twelve_judges_fit_and_have_files_of_their_own() -> None:
    runs = {name: scores(name, GOLD[:10], NEAR[:10], readers=5) for name in (f"judge/{n}" for n in range(12))}
    assert numbered("confusion", list(runs))["judge/11"] == "confusion-12-judge-11"
    assert "and 8 more" in distributions(runs).alt


def test_judges_of_one_colour_differ_in_marker_and_hatch() -> None:
    looks = [style(n) for n in range(len(SERIES) * 2)]
    assert len({(look.colour, look.marker) for look in looks}) == len(looks)
    assert len({(look.colour, look.hatch) for look in looks}) == len(looks)
    assert len(MARKERS) == len(HATCHES) == 8


def test_a_long_name_is_cut_in_the_middle_and_loses_its_control_characters() -> None:
    assert plain("a\x00b\u202ec") == "a b c"
    assert plain("runs/critics-trained-on-everything", 15) == "runs/cr…rything"


def test_a_png_is_white_and_carries_its_title_above_the_picture() -> None:
    from PIL import Image

    figure = empty("none", title="A title", reason="nothing there", header=("x",))
    picture = Image.open(io.BytesIO(figure.png))
    assert picture.mode == "RGB" and picture.width == 720 and picture.getpixel((0, 0)) == (255, 255, 255)
    assert "A title" not in figure.svg and ">nothing there<" in figure.svg
    assert figure.alt == "Nothing to draw: nothing there."


def test_drawing_leaves_matplotlibs_settings_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw("x", lambda sheet: None, height=1.0, title="t", alt="a", header=("h",), rows=())
    assert dict(matplotlib.rcParams) == before


def test_a_figure_is_saved_with_its_numbers(tmp_path: Path, pointwise: dict[str, Figure]) -> None:
    save_figure(pointwise["failures"], tmp_path / "figures")
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["failures.csv", "failures.png", "failures.svg"]


def study(points: Sequence[Point], *, plot: str = "lines", name: str = "k-curve") -> StudyResult:
    return StudyResult.model_validate(
        {
            "study": name,
            "asks": "Do more reviews help?",
            "answer": "a",
            "plot": plot,
            "x_label": "k",
            "points": points,
            "tables": (),
        }
    )


def point(
    series: str, x: str, value: float | None, *, spread: float | None = None, metric: str = "kendall", baseline: bool = False
) -> Point:
    return Point(series=series, x=x, metric=metric, estimate=estimate(value), spread=spread, baseline=baseline)


def test_a_study_has_a_figure_for_each_metric() -> None:
    points = [point("j", k, v, metric=m) for m in ("kendall", "mae") for k, v in (("1", 0.25), ("3", 0.5))]
    figures = study_figures(study(points))
    assert [figure.name for figure in figures] == ["k-curve-kendall", "k-curve-mae"]
    assert "j 0.25 [0.12, 0.38] at 1 to 0.50 [0.38, 0.62] at 3" in figures[0].alt
    assert figures[0].rows[0] == ("j", "false", "1", 0.25, 0.125, 0.375, 40, None, None)


def test_repeated_passes_have_their_spread_in_words_and_numbers() -> None:
    (figure,) = study_figures(study([point("j", k, 0.25, spread=0.0625) for k in ("1", "3")]))
    assert "0.25 (sd 0.06)" in figure.alt and "standard deviations" in figure.alt
    assert column(figure, "standard deviation") == [0.0625, 0.0625]


@pytest.mark.parametrize("plot", ["lines", "bars"])
def test_undefined_points_are_gaps_and_never_a_crash(plot: str) -> None:
    points = [point("j", "own", None), point("j", "empty", 0.25), point("base", "own", None, baseline=True)]
    (figure,) = study_figures(study(points, plot=plot, name="counterfactual"))
    assert "j 0.25 [0.12, 0.38] at empty" in figure.alt and "base undefined" in figure.alt
    assert column(figure, "reason") == ["undefined (constant)", None, "undefined (constant)"]
    (nothing,) = study_figures(study([point("j", "own", None)], plot=plot))
    assert nothing.alt == "Nothing to draw: Kendall tau-b: undefined (constant)."


def test_a_study_without_points_says_so() -> None:
    (figure,) = study_figures(study([]))
    assert "the study has no points" in figure.alt


def test_the_training_curve_reads_losses_and_skips_the_rest(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"step": 1, "loss": 3.5}\n{"step": 5, "loss": 2.25}\n{"step": 5, "eval_loss": 2.5}\n{"step": 5, "train_loss": 3}\n'
    )
    figure = training_figure(log)
    assert figure.rows == ((1, 3.5, None), (5, 2.25, 2.5))
    assert figure.alt == "The training loss went from 3.50 at step 1 to 2.25 at step 5; the validation loss was 2.50 at step 5."


def test_a_log_without_losses_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": NaN}\n')
    assert "the log holds no losses" in training_figure(log).alt
    assert "the log holds no losses" in training_figure(tmp_path / "none.jsonl").alt
