"""The contamination study's tables: what was never answered is in no group, and random answers stand beside the judge's."""

from __future__ import annotations

import numpy as np
import pytest
from reading_builders import answered, failed, scored

from perse.records import ProfileReview
from perse.results.result import Estimate
from perse.studies.contamination.known_works import random_choices, random_scores
from perse.studies.contamination.plots import Pairs, Plots, better, pair_id
from perse.studies.contamination.tables import of_pairs, of_readers, of_singles


def _plots(count: int) -> Plots:
    items = [f"i{n:02d}" for n in range(count)]
    titles = {item: f"Great {chr(97 + n % 26) * 5} {chr(97 + n // 26) * 5}" for n, item in enumerate(items)}
    return Plots({"raw": dict.fromkeys(items, "text")}, titles, {item: 1 + n / 10 for n, item in enumerate(items)}, {})


def test_pairs_that_were_never_answered_are_in_no_group_and_counted_apart() -> None:
    plots = _plots(40)
    pairs = tuple(zip(plots.items[::2], plots.items[1::2], strict=True))
    given, swapped = {}, {}
    for n, (a, b) in enumerate(pairs):
        name, heard = pair_id(a, b), n >= 10  # the second of each pair is better
        one, other = f"A: {plots.titles[a]}; B: {plots.titles[b]}", f"A: {plots.titles[b]}; B: {plots.titles[a]}"
        given[name] = answered(name, "B", text=one) if heard else failed(name)
        swapped[name] = answered(name, "A", text=other) if heard else failed(name)
    found = of_pairs(plots, Pairs(pairs, 0, False), {"raw": (given, swapped)}, seed=0)
    table = found.tables[0]
    rows = {str(row[0]): row[2:] for row in table.rows}
    assert list(rows) == ["both known", "one known", "neither known", "all", "random"]
    shares = [one for name in ("both known", "one known", "neither known") if isinstance(one := rows[name][3], Estimate)]
    # Ten of twenty were answered, all of them known; not one of them is unknown.
    assert [(one.value, one.items) for one in shares] == [(1.0, 10), (0.0, 10), (0.0, 10)]
    nothing, accuracy = rows["neither known"][0], rows["all"][0]
    assert isinstance(nothing, Estimate) and nothing.value is None and nothing.items == 0
    assert isinstance(accuracy, Estimate) and (accuracy.value, accuracy.items) == (0.5, 20)
    assert 'raw: 10 pairs were answered in neither order; they are in "all" and in no other group' in table.notes
    said = "some items are in several pairs, and intervals count what pairs of one item have in common"
    reused = of_pairs(plots, Pairs(pairs, 0, True), {"raw": (given, swapped)}, seed=0)
    assert not any(said in note for note in table.notes) and any(said in note for note in reused.tables[0].notes)


def test_shares_of_pairs_know_that_pairs_have_items_in_common() -> None:
    plots = _plots(20)
    pairs = tuple((a, b) for a in plots.items[:2] for b in plots.items[2:])  # 36 pairs, of which each has one of two items
    names = [pair_id(*pair) for pair in pairs]
    named = [f"A: {plots.titles[a]}; B: N/A" if a == plots.items[0] else "A: N/A; B: N/A" for a, _ in pairs]
    answers = {name: answered(name, "A", text=text) for name, text in zip(names, named, strict=True)}
    silent = {name: failed(name) for name in names}
    rows = {
        str(row[0]): row[5] for row in of_pairs(plots, Pairs(pairs, 0, True), {"raw": (answers, silent)}, seed=0).tables[0].rows
    }
    for group in ("one known", "neither known"):
        half = rows[group]
        assert isinstance(half, Estimate) and (half.value, half.items) == (0.5, 36)
        # Of 36 independent pairs 0.33 to 0.67; whether one item is known decides of 18.
        assert half.interval.low is not None and half.interval.low < 0.25


@pytest.mark.parametrize(
    ("texts", "said"),
    [(4, "For readers known by one review, on these texts alone, Kendall"), (24, "For readers known by one review, Kendall")],
)
def test_readers_who_share_few_texts_are_told_of_these_texts_alone_and_each_version_by_what_it_answered(
    texts: int, said: str
) -> None:
    profile = (ProfileReview(text="past", review="r", score=5),)
    examples = [
        scored(f"e{n}", f"r{n}", 1 + n % 10, item=f"t{n % texts}", profile=profile).model_copy(
            update={"query": f"text {n % texts}"}
        )
        for n in range(24)
    ]
    given = {one.id: answered(one.id, str(1 + n % 7)) for n, one in enumerate(examples)}
    less = {id: failed(id) if n < 10 else one for n, (id, one) in enumerate(given.items())}
    found = of_readers({"raw": examples, "other": examples}, {"raw": given, "other": less}, resamples=50, seed=0)
    table = found.tables[0]
    assert found.sentence.startswith(said)
    assert [row[1] for row in table.rows[:2]] == ["24/24", "14/24"]
    assert "values are of the same queries in every version, one of each reader: the 14 answered in every one" in table.notes
    assert any(note.startswith("intervals are of these texts alone") for note in table.notes) == (texts == 4)


def test_of_a_version_of_which_nothing_was_answered_no_share_is_told_nor_a_group_named() -> None:
    plots = _plots(8)
    pairs = tuple(zip(plots.items[::2], plots.items[1::2], strict=True))
    names = [pair_id(a, b) for a, b in pairs]
    silent = ({name: failed(name) for name in names}, {name: failed(name) for name in names})
    table = of_pairs(plots, Pairs(pairs, 0, False), {"raw": silent}, seed=0).tables[0]
    assert "raw: no pair was answered in either order, so that there is no share to tell" in table.notes
    assert not any("in no other group" in note for note in table.notes)
    assert all(isinstance(one, Estimate) and one.value is None for row in table.rows[:-1] for one in row[2:5])


def test_random_answers_stand_beside_the_judges_and_differ_by_seed_only() -> None:
    plots = _plots(40)
    one = of_singles(plots, {"raw": {}}, resamples=100, seed=0)
    assert one.tables[0].rows[-1][0] == "random" and one == of_singles(plots, {"raw": {}}, resamples=100, seed=0)
    chance = next(point for point in one.points if point.series == "random" and point.metric == "kendall")
    assert chance.baseline and chance.estimate.value is not None and abs(chance.estimate.value) < 0.4
    scores = random_scores(plots.items, seed=0)
    assert set(scores) <= set(range(1, 11)) and (scores != random_scores(plots.items, seed=1)).any()
    assert random_scores(plots.items[5:], seed=0).tolist() == scores[5:].tolist()
    pairs = tuple(zip(plots.items[::2], plots.items[1::2], strict=True))
    coins = random_choices(pairs, better={pair_id(*pair): better(plots.truth, pair) for pair in pairs}, seed=0)
    # A coin for each order: right and consistent in about half of 20 pairs; all heads would be 0 or 1.
    assert 0.2 < coins.right.mean() < 0.8 and 0.2 < coins.consistent.mean() < 0.8 and np.isnan(coins.bias_known).all()
