"""Order: a judge that ignores it does not move, one that goes by it moves by as much as can be counted by hand."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from judging_builders import asking, average, last, point, scripted

from perse.data.profiles.views import View
from perse.errors import BadInput
from perse.evaluation.shared_texts import crossed, several_readers
from perse.studies.frame.summarizing import crossed_note
from perse.studies.order import order


def test_a_judge_that_ignores_the_order_has_no_spread_and_does_not_move(readers: Path, tmp_path: Path) -> None:
    result = order(asking(readers), tmp_path, orders=3, load=scripted(average))
    assert point(result, "script", "3").spread == 0
    assert point(result, "script", "3", "moved").estimate.value == 0
    assert "standard deviation 0.000" in result.answer


def test_how_far_answers_move_is_the_mean_difference_over_pairs_of_orders(readers: Path, tmp_path: Path) -> None:
    one = asking(readers)
    result = order(one, tmp_path, orders=3, load=scripted(last))
    # The judge says the last score shown: so does this, from the examples themselves.
    said = [
        [example.profile[-1].score for example in one.open().shown(View(k=3, order_seed=seed)).examples]  # type: ignore[union-attr]
        for seed in range(3)
    ]
    pairs = list(combinations(np.array(said), 2))
    moved = np.mean([abs(left - right).mean() for left, right in pairs])
    flipped = np.mean([(left != right).mean() for left, right in pairs])
    assert moved > 0 and point(result, "script", "3", "moved").estimate.value == pytest.approx(moved, abs=1e-12)
    (row,) = result.tables[1].rows
    assert getattr(row[2], "value", None) == pytest.approx(flipped, abs=1e-12)
    assert (point(result, "script", "3").spread or 0) > 0


def test_a_profile_of_one_has_one_order_and_is_asked_once(readers: Path, tmp_path: Path) -> None:
    result = order(asking(readers, limit=8), tmp_path, orders=3, ks=[1, 2], load=scripted(last))
    assert sorted(folder.name for folder in (tmp_path / "arms").iterdir()) == [
        "k1-order0",
        "k2-order0",
        "k2-order1",
        "k2-order2",
    ]
    assert point(result, "script", "1").spread is None
    assert point(result, "script", "1", "moved").estimate.interval.reason == "undefined (one order)"


def test_one_order_is_no_study(readers: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="found 1 orders; two or more can differ"):
        order(asking(readers), tmp_path, orders=1, load=scripted(last))


def test_readers_of_the_same_texts_are_noted(readers: Path, tmp_path: Path) -> None:
    result = order(asking(readers), tmp_path, load=scripted(average))
    examples = asking(readers).open().shown().examples
    said = several_readers(examples)
    notes = [note for note in result.notes if "judged by several readers" in note]
    assert said and notes == crossed(examples, two_way=True), "and the texts are resampled, too"
    assert crossed_note([*examples, examples[0].model_copy(update={"reviewer_id": "another"})])
