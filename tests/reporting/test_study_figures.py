"""Figures of studies and of training: a figure a metric, gaps for what is undefined, and words where there is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from figure_builders import column, estimate

from perse.results.result import Point, Result

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.reporting.study_figures import _band, study_figures
from perse.training.curves import training_figure


def study(points: Sequence[Point], *, plot: str = "lines", name: str = "k-curve") -> Result:
    return Result.model_validate(
        {
            "name": name,
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


def test_the_whiskers_of_a_figure_are_all_of_one_kind_and_it_says_which() -> None:
    """One sample has a standard deviation over passes (0.03) that is a fifth of the intervals beside it: it looked that much surer."""
    mixed = [
        point("j", "greedy", 0.25),
        point("j", "one sample", 0.25, spread=0.03),
        point("average", "greedy", 0.2, baseline=True),
    ]
    (bars,) = study_figures(study(mixed, plot="bars", name="decoding"))
    assert "0.25 [0.12, 0.38] at one sample" in bars.alt and bars.alt.endswith("Whiskers are 95% intervals.")
    (lines,) = study_figures(study([point("j", "1", 0.25), point("j", "3", 0.25, spread=0.03)], name="order"))
    assert lines.alt.endswith("Bands are 95% intervals.") and "sd" not in lines.alt
    repeated = [point("j", way, 0.25, spread=0.03) for way in ("with", "without")]
    (bars,) = study_figures(study([*repeated, point("average", "with", 0.2, baseline=True)], plot="bars", name="review-text"))
    assert bars.alt.endswith("Whiskers are 95% intervals."), "those of the baselines are"
    assert _band(repeated[0], spreads=False) == (0.125, 0.375) and _band(repeated[0], spreads=True) == (0.22, 0.28)


@pytest.mark.parametrize("plot", ["lines", "bars"])
def test_a_figure_without_intervals_says_why_and_names_no_bands(plot: str) -> None:
    few = [
        point("j", k, 0.25).model_copy(update={"estimate": estimate(0.25, reason="undefined (few reviewers)")})
        for k in ("1", "3")
    ]
    (figure,) = study_figures(study(few, plot=plot))
    assert figure.alt.endswith(" at 3. No interval: undefined (few reviewers).") and "95%" not in figure.alt


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


@pytest.mark.slow
def test_judgements_stand_below_the_loss_with_the_kept_step(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        '{"step": 0, "eval_loss": 4, "eval_kendall": -0.25, "eval_parse_rate": 0.5, "eval_seconds": 9}\n'
        '{"step": 5, "loss": 2.25}\n{"step": 5, "eval_loss": 2.5, "eval_kendall": 0.5, "eval_parse_rate": 1.0}\n'
        '{"step": 10, "loss": 2.0}\n{"step": 10, "eval_loss": 2.75, "eval_parse_rate": 1.0}\n'
        '{"step": 5, "best": "kendall", "value": 0.5}\n'
    )
    figure = training_figure(log)
    assert figure.header == ("step", "loss", "validation loss", "Kendall tau-b", "parse rate")
    assert figure.rows == ((0, None, 4, -0.25, 0.5), (5, 2.25, 2.5, 0.5, 1), (10, 2, 2.75, None, 1))
    assert figure.alt == (
        "The training loss went from 2.25 at step 5 to 2.00 at step 10; the validation loss went from 4.00 at step 0 to 2.75 at step 10; "
        "the Kendall tau-b went from -0.25 at step 0 to 0.50 at step 5; the parse rate went from 0.50 at step 0 to 1.00 at step 10. "
        "The weights of step 5 were kept."
    )


def test_a_log_without_losses_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"step": 1, "loss": NaN}\n')
    assert "the log holds no losses" in training_figure(log).alt
    assert "the log holds no losses" in training_figure(tmp_path / "none.jsonl").alt
