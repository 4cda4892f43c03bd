"""The plots of a KGDS report: everybody in them, in order, with the numbers they were drawn from, whatever the names and gaps."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest
from results_builders import delta, estimate, many, results, scores, shares

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.drawing.figure import Figure
from perse.kgds.reporting.figures import _least_squares, kgds_figures
from perse.kgds.scoring.results import Across, Correlation, Errors, Results

pytestmark = pytest.mark.slow

NAMES = (
    "figure-2-retrieval",
    "figure-3-experts-preferred",
    "figure-4-background-and-opinions",
    "figure-5-background-and-opinions",
    "figure-6-overall-ebs-aos",
    "figure-7-gap",
    "figure-8-overall-abs-aos",
    "figure-9-mean",
    "errors-ebs-aos",
    "errors-abs-aos",
)


@pytest.fixture(scope="module")
def twelve() -> dict[str, Figure]:
    return kgds_figures(many([f"model {letter}" for letter in "abcdefghijkl"]))


@pytest.fixture(scope="module")
def three() -> dict[str, Figure]:
    return kgds_figures(many(["a", "b", "c"]))


def texts(figure: Figure) -> list[str]:
    """What is written in a plot."""
    return [re.sub(r"\s+", " ", "".join(one.itertext())).strip() for one in _elements(figure, "text")]


def _elements(figure: Figure, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(figure.svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def test_all_figures_are_there_with_words_numbers_and_an_image(twelve: dict[str, Figure]) -> None:
    assert tuple(twelve) == NAMES
    for name, figure in twelve.items():
        assert figure.name == name and figure.png.startswith(b"\x89PNG")
        assert figure.alt.startswith(f"{figure.title}: ") and re.search(r"\d", figure.alt)
        rows = 12 if name == "figure-3-experts-preferred" else 24  # feedback is about structured prompts alone
        assert len(figure.rows) == rows and all(len(row) == len(figure.header) for row in figure.rows)
        assert sum(text.startswith("model ") for text in texts(figure)) >= 12
        assert not re.search(r"\bnan\b", figure.csv.lower())


def test_no_two_figures_share_an_id(twelve: dict[str, Figure]) -> None:
    ids = [one for figure in twelve.values() for one in re.findall(r' id="([^"]+)"', figure.svg)]
    assert len(ids) == len(set(ids))


@pytest.mark.slow
def test_the_same_results_are_drawn_in_the_same_bytes(three: dict[str, Figure]) -> None:
    assert kgds_figures(many(["a", "b", "c"])) == three


@pytest.mark.slow
def test_models_are_sorted_by_their_structured_prompt_and_keep_both_values() -> None:
    found = kgds_figures(
        results(
            scores("low", start=50),
            scores("low", paradigm="reflection", start=90),
            scores("high", start=70),
            scores("high", paradigm="reflection", start=40),
            scores("only reflection", paradigm="reflection", start=60),
            scores("not verified", values={}),
        )
    )["figure-6-overall-ebs-aos"]
    said = [text for text in texts(found) if not text[0].isdigit()]
    # The last model's name stands above the reason for which it has no mark.
    assert said == ["percent", "high", "only reflection", "low", "not verified", "not known", "structured", "reflection"]
    assert {"66.00, then 36.00", "46.00, then 86.00", "56.00 [53.50, 58.50]"} <= set(texts(found))
    assert found.rows[0] == ("high", "structured", 66.0, 63.5, 68.5, 60, None)
    assert found.alt.startswith(
        "Overall performance under EBS-AOS: highest first, high 66.00 [63.50, 68.50], 36.00 [33.50, 38.50]"
    )


@pytest.mark.slow
def test_the_experts_share_is_a_line_with_its_value() -> None:
    figure = kgds_figures(many(["one"], paradigms=["structured"]))["figure-2-retrieval"]
    assert "the experts' choice, 32.50 on average" in texts(figure)
    assert figure.alt.endswith("Dashed: the experts' choice, 32.50 on average.")


@pytest.mark.slow
def test_with_few_models_the_points_stand_without_a_line_and_the_reason_is_said() -> None:
    for names in (["one"], ["one", "two"]):
        figure = kgds_figures(many(names, paradigms=["structured"]))["figure-4-background-and-opinions"]
        assert "no correlation (fewer than 3 models)" in texts(figure)
        assert len(figure.rows) == len(names)
        assert figure.alt.endswith("No correlation (fewer than 3 models).")


def test_coefficients_stand_over_the_points_with_their_intervals(three: dict[str, Figure]) -> None:
    figure = three["figure-5-background-and-opinions"]
    assert "structured: Pearson 0.75 [0.55, 0.95], Spearman 0.75 [0.55, 0.95]" in texts(figure)
    assert "reflection: Pearson 0.75 [0.55, 0.95], Spearman 0.75 [0.55, 0.95]" in texts(figure)
    # F1 and CAO R of table 1: 64 - 2 and 64 - 3.
    assert figure.rows[0] == ("a", "structured", 62.0, 59.5, 64.5, 61.0, 58.5, 63.5)


def test_the_line_is_that_of_least_squares() -> None:
    # Means 2 and 3; (x - 2)(y - 3) sums to 1 + 0 + 2 = 3, (x - 2)^2 to 2: slope 1.5.
    assert _least_squares([(1, 2), (2, 2), (3, 5)]) == [(1, 1.5), (3, 4.5)]
    assert _least_squares([(1, 2), (3, 5)]) == []
    assert _least_squares([(2, 1), (2, 2), (2, 5)]) == []


@pytest.mark.slow
def test_what_nothing_is_known_of_says_why() -> None:
    figures = kgds_figures(results(scores("only ebs", errors=None)))
    assert texts(figures["figure-8-overall-abs-aos"]) == ["no summaries under ABS-AOS"]
    assert texts(figures["figure-7-gap"]) == ["not known under both patterns"]
    assert texts(figures["figure-5-background-and-opinions"]) == ["no model has both values"]
    assert texts(figures["errors-ebs-aos"]) == ["no errors were asked about"]
    assert texts(figures["errors-abs-aos"]) == ["no summaries"]
    assert all(figure.png for figure in kgds_figures(results()).values())


def test_an_undefined_value_says_why_and_a_value_without_interval_too() -> None:
    undefined = scores("undefined", values={"op": estimate(None, reason="undefined (no samples)")})
    bare = scores("bare", values={"op": estimate(50.0, wide=None)})
    figure = kgds_figures(results(undefined, bare))["figure-6-overall-ebs-aos"]
    assert "undefined (no samples)" in texts(figure) and "50.00" in texts(figure)
    assert figure.rows[0] == ("bare", "structured", 50.0, None, None, 60, "undefined (few samples)")
    assert figure.alt.endswith("No interval: undefined (few samples).")


@pytest.mark.slow
def test_an_undefined_gap_is_not_drawn_as_none() -> None:
    gap = Across(model="a", paradigm="structured", gap=estimate(None, reason="undefined (no OP)"), mean=estimate(None))
    figures = kgds_figures(results(scores("a"), across=(gap,)))
    assert texts(figures["figure-7-gap"]) == ["undefined (no OP)"]


def test_errors_are_bars_in_the_order_of_table_2_with_what_they_stand_on() -> None:
    all_covered = Errors(classified=0, uncovered=0, shares=None)
    silent = Errors(classified=0, uncovered=4, shares=None)
    figure = kgds_figures(
        results(
            scores("a"),
            scores("a", paradigm="reflection", errors=all_covered),
            scores("b", errors=silent),
            scores("c", errors=None),
        )
    )["errors-ebs-aos"]
    assert figure.rows[0] == ("a", "structured", 8.57, 6.19, 26.67, 55.71, 2.86, 210, 211)
    for words in (
        "a, reflection",
        "every opinion is covered",
        "none of 4 opinions was classified",
        "no errors were asked about",
        "IRU, unclear or left out",
    ):
        assert words in texts(figure)
    assert "210 of 211 classified" in texts(figure)


@pytest.mark.parametrize("share", [100.0, 0.0])
def test_shares_of_nothing_take_no_room(share: float) -> None:
    errors = Errors(classified=1, uncovered=1, shares=shares(share, 100 - share, 0, 0, 0))
    assert kgds_figures(results(scores("a", errors=errors)))["errors-ebs-aos"].rows[0][2:4] == (share, 100 - share)


@pytest.mark.slow
def test_long_and_strange_names_stay_names() -> None:
    name = 'a <script>alert(1)</script> $x$ & "q" \x07 ' + "very " * 30 + "long"
    for figure in kgds_figures(many([name, "b", "c"])).values():
        assert not _elements(figure, "script")
        assert name in figure.csv.replace('""', '"')
        assert max(map(len, texts(figure))) < 70


def test_reflection_alone_has_a_legend_and_no_structured_value() -> None:
    made: Results = results(scores("a", paradigm="reflection"), deltas=(delta("b", "ebs-aos", 1.0),))
    figure = kgds_figures(made)["figure-6-overall-ebs-aos"]
    assert "reflection" in texts(figure) and "structured" not in texts(figure)
    assert "76.00 [73.50, 78.50] after reflection" in figure.alt


def test_a_correlation_without_points_draws_nothing() -> None:
    none = Correlation(pattern="ebs-aos", paradigm="structured", models=0, pearson=estimate(None), spearman=estimate(None))
    figure = kgds_figures(results(scores("a", values={}), correlations=(none,)))["figure-4-background-and-opinions"]
    assert texts(figure) == ["no model has both values"]
