"""Agreement among annotators: by hand, as the packages compute it, on real ratings, and as the command prints it."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from places import SHARED
from scipy import stats
from typer.testing import CliRunner

from perse.commands.measuring.agreement import agreement
from perse.errors import BadInput
from perse.evaluation.annotators.file import read_ratings
from perse.evaluation.annotators.measuring import Dimension, Ratings, alpha_of, annotator_agreement, coincidences
from perse.evaluation.annotators.telling import agreement_result
from perse.evaluation.stats.unseen import none_of
from perse.results.markdown import markdown

REAL = SHARED / "summeval_op" / "summeval-op-detailed.jsonl"
COEFFICIENTS: dict[str, Callable[..., float]] = {
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "kendall": lambda x, y: stats.kendalltau(x, y).statistic,
}

app = typer.Typer()
app.command()(agreement)

# Two annotators, four items; the third item was rated by one of them only.
LONG = """item,annotator,score
a,ann,1
a,bob,2
b,ann,2
b,bob,2
c,ann,3
c,bob,
d,ann,4
d,bob,5
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def only(ratings: list[Ratings], **options: int) -> Dimension:
    (dimension,) = annotator_agreement(ratings, **options).dimensions
    return dimension


def test_two_annotators_by_hand(tmp_path: Path) -> None:
    found = only(read_ratings(write(tmp_path / "long.csv", LONG), {}))
    assert (found.name, found.items, found.groups, found.rest) == ("score", 3, 3, ())
    (pair,) = found.pairs
    assert (pair.annotator, pair.other) == ("ann", "bob")
    # ann 1 2 4 and bob 2 2 5: deviations -4/3 -1/3 5/3 and -1 -1 2: products 4/3 + 1/3 + 10/3 = 5; squares 14/3 and 6.
    assert pair.columns["pearson"].value == pytest.approx(5 / np.sqrt(28))
    # Pairs of items: (a, b) tied for bob, two in the same order: 2 / sqrt(3 * 2).
    assert pair.columns["kendall"].value == pytest.approx(2 / np.sqrt(6))
    # Alpha: scores 1 2 4 5, their frequencies 1 3 1 1 of 6; ranks in the middle 0.5 2.5 4.5 5.5. Observed: 1 with 2 and 4 with
    # 5, squared distances 4 and 1. Expected, over pairs of scores: 3 * 4 (1, 2), 16 (1, 4), 25 (1, 5), 3 * 4 (2, 4), 3 * 9 (2, 5),
    # 1 (4, 5): 93. Alpha = 1 - (6 - 1) * 5 / 93.
    assert found.alpha.value == pytest.approx(1 - 25 / 93)


@given(
    st.lists(st.lists(st.one_of(st.none(), st.integers(1, 5)), min_size=3, max_size=3), min_size=2, max_size=8).filter(
        lambda rows: any(sum(score is not None for score in row) >= 2 for row in rows)
    )
)
def test_alpha_is_that_of_the_krippendorff_package(rows: list[list[int | None]]) -> None:
    krippendorff = pytest.importorskip("krippendorff")
    scores = np.array([[np.nan if score is None else score for score in row] for row in rows], dtype=np.float64)
    ours = alpha_of(coincidences(scores).sum(axis=0)[None])[0]
    paired = scores[(~np.isnan(scores)).sum(axis=1) >= 2]
    if len(np.unique(paired[~np.isnan(paired)])) < 2:
        assert np.isnan(ours)  # the package refuses, or says 1 for no variation
    else:
        slow = krippendorff.alpha(reliability_data=scores.T, level_of_measurement="ordinal")
        assert ours == pytest.approx(slow, abs=1e-9)


def test_resampled_alpha_is_that_of_the_rows_drawn() -> None:
    krippendorff = pytest.importorskip("krippendorff")
    generator = np.random.default_rng(0)
    scores = generator.integers(1, 6, (12, 3)).astype(float)
    drawn = generator.integers(0, 12, (5, 12))
    table = coincidences(scores)
    fast = alpha_of(np.stack([table[rows].sum(axis=0) for rows in drawn]))
    slow = [krippendorff.alpha(reliability_data=scores[rows].T, level_of_measurement="ordinal") for rows in drawn]
    assert fast == pytest.approx(slow, abs=1e-9)


def test_a_constant_annotator_is_undefined_and_so_is_the_mean_with_them(tmp_path: Path) -> None:
    rows = [{"ac": [[item, 5, item + 1] for item in range(1, 5)]} for _ in range(12)]
    path = write(tmp_path / "wide.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    found = only(read_ratings(path, {}), resamples=100)
    values = {(pair.annotator, pair.other): pair.columns["spearman"].value for pair in found.pairs}
    assert values == {("1", "2"): None, ("1", "3"): pytest.approx(1), ("2", "3"): None}
    assert found.mean["spearman"].value is None
    assert "undefined" in markdown(agreement_result(annotator_agreement(read_ratings(path, {}), resamples=100)))


def test_each_annotator_is_compared_with_the_mean_of_those_who_rated_the_item() -> None:
    scores = np.array([[1, 2, 4], [3, 3, np.nan], [5, np.nan, 4], [2, np.nan, np.nan], [4, 5, 5]], dtype=np.float64)
    found = only([Ratings("x", ("a", "b", "c"), scores, np.arange(5))], resamples=100)
    first = found.rest[0].columns
    # Item 4 was rated by the first alone and is left out.
    for name, coefficient in COEFFICIENTS.items():
        assert first[name].value == pytest.approx(coefficient([1, 3, 5, 4], [3, 3, 4, 5]))
    assert first["pearson"].items == 4


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("item,annotator,score\na,ann,good\n", {}, 'line 2.*score.*found "good", expected a number'),
        ("item,annotator,score\na,ann,1e308\na,bob,-1e308\n", {}, 'line 2.*score.*found "1e308", expected a number'),
        ("item,annotator,score\na,ann,1\na,ann,2\n", {}, "line 3: 'ann' already rated item 'a' on 'score' on line 2"),
        ("item,annotator,score\na,ann,1\nb,bob,2\n", {}, "no item was rated by two annotators"),
        ("item,who,score\na,ann,1\n", {}, "annotator"),
        ("item,annotator,score\na,ann,1\n", {"rater": "annotator"}, "--map rater: no such field; expected one of item"),
    ],
    ids=["no number", "overflow", "rated twice", "one rating an item", "no column", "unknown field"],
)
def test_a_file_that_cannot_be_used_is_one_clear_sentence(
    tmp_path: Path, text: str, columns: dict[str, str], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        read_ratings(write(tmp_path / "bad.csv", text), columns)


def test_a_bad_score_in_lists_of_lists_is_named_by_line_item_and_annotator(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.jsonl", '{"fl": [[1, 2]]}\n{"fl": [[1, 2], [3, "x"]]}\n')
    with pytest.raises(BadInput, match="line 2, field 'fl', item 2, annotator 2: found \"x\", expected a number"):
        read_ratings(path, {})


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ['{"fl": [[1, 2], [3, 4]], "text": "t"}', '{"fl": "x", "text": "t"}'],
            "line 2, field 'fl': found \"x\", expected a list with a list",
        ),
        (
            ['{"fl": [1, 2], "co": [[1, 2]]}', '{"fl": [[1, 2]]}'],
            "line 1, field 'fl': found .*, expected a list with a list of ratings for each item",
        ),
        (['{"fl": [[1, 2]], "co": [[1, 2], 3]}'], "line 1, field 'co': found .*, expected a list with a list"),
        (
            ['{"fl": [[1, 2]]}', '{"fl": [[1, 2], [1, 2, 3]]}'],
            "line 2, field 'fl', item 2: found 3 ratings, expected 2, .*line 1.; give null",
        ),
    ],
)
def test_ratings_of_another_shape_are_named_and_not_left_out(tmp_path: Path, lines: list[str], told: str) -> None:
    (tmp_path / "r.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(BadInput, match=told):
        read_ratings(tmp_path / "r.jsonl", {})


def test_both_layouts_and_mapped_columns_say_the_same(tmp_path: Path) -> None:
    wide = write(tmp_path / "wide.jsonl", '{"fl": [[1, 2], [2, 2]]}\n{"fl": [[3, null], [4, 5]]}\n')
    lines = [
        {"piece": f"{product}.{item}", "who": str(who), "criterion": "fl", "marks": score, "product": str(product)}
        for product, items in ((1, [[1, 2], [2, 2]]), (2, [[3, None], [4, 5]]))
        for item, given_ in enumerate(items, start=1)
        for who, score in enumerate(given_, start=1)
    ]
    long = write(tmp_path / "long.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    columns = {"item": "piece", "annotator": "who", "dimension": "criterion", "score": "marks", "group": "product"}
    one, other = read_ratings(wide, {}), read_ratings(long, columns)
    assert only(one) == only(other)
    assert only(one).groups == 2


def test_the_command_prints_json_and_markdown_the_same_each_time(tmp_path: Path) -> None:
    path = write(tmp_path / "long.csv", LONG.replace(",ann,", ",a|n,"))
    runs = [CliRunner().invoke(app, [str(path), "--json", "--resamples", "100"]) for _ in range(2)]
    assert runs[0].exit_code == 0
    assert runs[0].stdout == runs[1].stdout
    assert json.loads(runs[0].stdout)["details"]["annotators"] == ["a|n", "bob"]
    shown = CliRunner().invoke(app, [str(path), "--markdown", "--resamples", "100"]).stdout
    assert "| score | 3 | 0.73 [undefined (few groups)] |" in shown
    assert "a\\|n \\~ bob" in shown
    assert CliRunner().invoke(app, [str(path), "--resamples", "100"]).exit_code == 0


def annotated(twice: int, items: int, *, seed: int) -> Ratings:
    """Two annotators of `items`, of which both rated the first `twice`."""
    generator = np.random.default_rng(seed)
    scores = np.round(2 * (generator.normal(size=(items, 1)) + generator.normal(size=(items, 2))))
    for item in range(twice, items):
        scores[item, generator.integers(2)] = np.nan
    return Ratings("score", ("ann", "bob"), scores, np.arange(items))


def test_a_mean_of_pairs_rests_on_the_groups_that_both_rated() -> None:
    few, enough = (only([annotated(twice, 60, seed=1)], resamples=200) for twice in (9, 12))
    assert few.mean["spearman"].value is not None
    assert (
        few.mean["spearman"].interval.reason == few.pairs[0].columns["spearman"].interval.reason == "undefined (few reviewers)"
    )
    assert enough.mean["spearman"].interval == enough.pairs[0].columns["spearman"].interval
    assert enough.mean["spearman"].interval.low is not None


def test_a_mean_within_groups_rests_on_those_that_vary_and_says_how_many() -> None:
    group = np.repeat(np.arange(40), 4)
    generator = np.random.default_rng(0)
    scores = np.repeat(generator.integers(1, 6, 40)[group][:, None], 2, axis=1).astype(float)
    scores[group < 5] += generator.integers(0, 3, (20, 2))
    found = annotator_agreement([Ratings("score", ("ann", "bob"), scores, group)], resamples=200)
    within = found.dimensions[0].mean["within_pearson"]
    assert within.value is not None and within.skipped_reviewers == 35
    shown = markdown(agreement_result(found))
    assert f"| score | 5 of 40 | {within.value:.2f} [undefined (rests on few groups)] |" in shown


def test_of_an_annotator_who_rated_half_of_the_groups_no_more_are_counted() -> None:
    group = np.repeat(np.arange(15), 6)
    scores = np.random.default_rng(1).integers(1, 6, (90, 3)).astype(float)
    scores[group >= 8, 2] = np.nan
    found = annotator_agreement([Ratings("score", ("a0", "a1", "a2"), scores, group)], resamples=100)
    told = agreement_result(found)
    assert "| score | 8 of 15 |" in markdown(told)
    assert told.answer.endswith("on 90 items (48 of them at least were rated by both).")


@pytest.mark.slow
@pytest.mark.parametrize("twice", [10, 12, 20])
def test_the_mean_of_two_annotators_covers_the_truth(twice: int) -> None:
    # 300 worlds, own error 2.5 points; 0.479 is Spearman's of a million such items.
    hits = []
    for seed in range(300):
        interval = only([annotated(twice, 60, seed=seed)], resamples=300, seed=seed).mean["spearman"].interval
        if interval.low is not None and interval.high is not None:
            hits.append(interval.low <= 0.479 <= interval.high)
    assert len(hits) > 290 and 0.925 <= np.mean(hits) <= 1


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason="SummEval-OP is not at ../shared/data")
def test_real_annotators_agree_as_the_packages_say() -> None:
    krippendorff = pytest.importorskip("krippendorff")
    rows = [json.loads(line) for line in REAL.read_text(encoding="utf-8").splitlines()]
    found = annotator_agreement(read_ratings(REAL, {}), resamples=200)
    assert [one.name for one in found.dimensions] == ["fl", "co", "re", "fa", "ac", "sc", "sp"]
    for one in found.dimensions:
        scores = np.array([item for row in rows for item in row[one.name]], dtype=np.float64)
        assert (one.items, one.groups, scores.shape) == (260, 20, (260, 3))
        assert one.alpha.value == pytest.approx(
            krippendorff.alpha(reliability_data=scores.T, level_of_measurement="ordinal"), abs=1e-9
        )
        for name, coefficient in COEFFICIENTS.items():
            of_pairs = [coefficient(scores[:, a], scores[:, b]) for a, b in ((0, 1), (0, 2), (1, 2))]
            assert [pair.columns[name].value for pair in one.pairs] == pytest.approx(of_pairs)
            assert one.mean[name].value == pytest.approx(np.mean(of_pairs))
            rest = [coefficient(scores[:, a], np.delete(scores, a, axis=1).mean(axis=1)) for a in range(3)]
            assert [pair.columns[name].value for pair in one.rest] == pytest.approx(rest)
            interval = one.mean[name].interval
            assert interval.low is not None and interval.high is not None
            assert interval.low < np.mean(of_pairs) < interval.high
    alphas = {one.name: round(one.alpha.value or 0, 2) for one in found.dimensions}
    assert alphas == {"fl": 0.47, "co": 0.39, "re": 0.51, "fa": 0.62, "ac": 0.70, "sc": 0.46, "sp": 0.43}


def test_a_dimension_that_one_person_rated_stands_in_the_table_as_undefined(tmp_path: Path) -> None:
    text = "item,annotator,dimension,score\na,ann,x,1\nb,ann,x,2\na,ann,y,1\na,bob,y,2\nb,ann,y,3\nb,bob,y,3\n"
    found = annotator_agreement(read_ratings(write(tmp_path / "long.csv", text), {}), resamples=100)
    alone, both = found.dimensions
    assert (alone.items, alone.alpha.value, alone.mean["kendall"].value, alone.pairs) == (0, None, None, ())
    assert both.mean["kendall"].value == pytest.approx(1)
    assert any(line.startswith("| x | 0 | undefined ") for line in markdown(agreement_result(found)).splitlines())


def test_every_pair_of_annotators_is_told_of_because_they_are_many() -> None:
    scores = np.random.default_rng(0).integers(1, 6, (8, 4)).astype(float)
    told: list[tuple[str, int, int]] = []
    ratings = Ratings("fluency", ("a", "b", "c", "d"), scores, np.arange(8))
    annotator_agreement([ratings], resamples=100, on_progress=lambda *step: told.append(step))
    assert told == [("fluency", done, 6) for done in range(7)]


def test_annotators_who_agreed_throughout_may_differ_on_others() -> None:
    scores = np.random.default_rng(0).integers(1, 6, 160).astype(float)
    same = Ratings(
        dimension="d", annotators=("a", "b", "c"), group=np.repeat(np.arange(40), 4), scores=np.stack([scores] * 3, axis=1)
    )
    [found] = annotator_agreement([same], resamples=100).dimensions
    assert found.alpha.value == pytest.approx(1) and found.alpha.interval.low == pytest.approx(1 - 2 * none_of(160))
