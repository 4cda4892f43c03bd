"""Where a packed row is read for its labels: every inner node of their tree, each seen from its own example alone, and the pairs of a step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.training.rows.attention import dense_mask
from perse.training.rows.batches import IGNORED, collate
from perse.training.rows.branches import Branch
from perse.training.rows.label_tree import LabelTree, TrueLabel, pairs_in_order
from perse.training.rows.schedule import RowDataset, Schedule
from perse.training.rows.trie import RowSize, pack, packed, row_size

DRAWN = st.lists(
    st.tuples(st.sampled_from([(5, 6), (7,), (5, 8)]), st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=6
)
SPLIT = LabelTree(((1,), (2,), (1, 0), (1, 0, 0)), (1.0, 2.0, 10.0, 100.0), tail=1)
# Read after 1, and after 2, 2 0 and 2 0 0: ways of one token and of three.
DEEP = LabelTree(((1,), (1, 0), (2,), (2, 0, 0, 0)), (1.0, 10.0, 20.0, 2000.0), tail=1)


@settings(deadline=None, max_examples=50)
@given(DRAWN, st.booleans(), st.sampled_from([SPLIT, DEEP]))
def test_what_a_label_is_read_after_sees_its_own_example_and_is_counted(drawn: Any, share: bool, tree: LabelTree) -> None:
    branches = [
        Branch(f"e{at}", ((9,), query), (3, *tree.labels[label], 4), 1, 1, 1, TrueLabel(tree, label, reader))
        for at, (query, label, reader) in enumerate(drawn)
    ]
    row = packed(branches, share=share)
    assert row.reading is not None
    for branch, nodes in zip(branches, row.reading.nodes, strict=True):
        for node, source in zip(tree.nodes, nodes, strict=True):
            path = dense_mask(row.tree)[0, 0, row.sources[source]].nonzero()[:, 0].tolist()
            assert tuple(row.ids[at] for at in path) == (*branch.prompt, 3, *node)
            assert [row.positions[at] for at in path] == list(range(len(path)))
    for branch, begin in zip(branches, row.reading.begins, strict=True):
        assert branch.label is not None
        ids = tree.labels[branch.label.index]
        assert row.targets[begin : begin + len(ids)] == ids
    size = RowSize(len(row.ids), row.tree.pairs, len(row.targets), row.unshared, read=len(row.sources))
    assert row_size(branches, share=share) == size
    if not share:
        assert len(row.ids) == sum(branch.laid_out for branch in branches)
    batch = collate([row])
    assert batch["labels"].shape == (1, 1 + len(row.sources)) == (1, 1 + len(batch["logits_to_keep"]))
    assert int((batch["labels"] != IGNORED).sum()) == len(row.targets), "the Trainer counts what is learned, as without"
    for limit in (12, 30):
        for other in pack(branches, row_tokens=limit, batch_size=4, max_shared_examples=3, seed=1):
            assert len(packed(other).ids) <= limit


def test_pairs_are_of_one_reader_with_different_labels() -> None:
    labels = [TrueLabel(SPLIT, at, reader) for at, reader in ((0, 0), (2, 0), (2, 1), (0, 1), (2, 0))]
    assert pairs_in_order(labels) == ((1, 0), (2, 3), (4, 0))


def test_an_example_without_a_label_leaves_its_row_unread() -> None:
    one = Branch("a", ((9,),), (1, 4), 0, 1, 1, TrueLabel(SPLIT, 0, 0))
    assert packed([one]).reading is not None
    assert packed([one, replace(one, label=None)]).reading is None


@pytest.mark.parametrize(
    ("labels", "values", "tail"),
    [
        (((1,), (1,)), (1.0, 2.0), 1),  # a label twice
        ((), (), 1),
        (((1,),), (1.0,), 1),  # one alone
        (((1,), (2,)), (1.0,), 1),
        (((1,), (2,)), (1.0, 2.0, 3.0), 1),
        (((1,), (2,)), (2.0, 1.0), 1),
        (((1,), (2,)), (1.0, 1.0), 1),
        (((1,), (2,)), (1.0, 2.0), -1),
    ],
)
def test_what_is_no_tree_of_labels_is_said_with_its_numbers(labels: Any, values: Any, tail: int) -> None:
    with pytest.raises(ValueError, match=rf"^{len(labels)} labels with the values .* before {tail} tokens are no tree"):
        LabelTree(labels, values, tail)
    assert LabelTree(((1,), (2,)), (1.0, 2.0), 0).nodes == ((),)


def test_a_tree_by_hand() -> None:
    # 1, 10 and 100 begin alike: read at the stem, after 1 and after 1 0; the last passes all, so it is the one way to lay beside.
    assert SPLIT.nodes == ((), (1,), (1, 0)) and SPLIT.ends == ((1, 0),)
    assert SPLIT.step == pytest.approx(33)
    label = TrueLabel(SPLIT, 2, None)
    answer = (7, 7, 1, 0, 4)
    assert label.begins(answer) == 2 and label.passed(answer) == [True, True, True]
    assert label.paths(answer) == (((7, 7), (1,), (0,), (4,)),)
    other = TrueLabel(SPLIT, 1, None)
    assert other.passed((7, 2, 4)) == [True, False, False]
    assert other.paths((7, 2, 4)) == (((7,), (2, 4)), ((7,), (1,), (0,)))
    plain = LabelTree(((1,), (2,)), (1.0, 2.0), 1)
    assert TrueLabel(plain, 0, None).paths((7, 1, 4)) == (((7, 1, 4),),)


def test_every_row_knows_the_pairs_of_its_whole_step() -> None:
    rows = [
        [
            Branch(f"{at}{n}", ((9, at), (n,)), (*SPLIT.labels[label], 4), 1, 1, 1, TrueLabel(SPLIT, label, reader))
            for n, (label, reader) in enumerate(row)
        ]
        # 1, 3 and 0 pairs, then 1 of two that a third of another reader stands beside, none of alike ones, none of an empty row
        for at, row in enumerate(
            [[(0, 0), (1, 0)], [(0, 0), (1, 0), (2, 0)], [(3, 1)], [(0, 0), (1, 1), (2, 0)], [(1, 1), (1, 1)], []]
        )
    ]
    planned = Schedule(rows, 3, 1.0, share=True)
    assert planned.steps == 2 and [planned.pairs(step) for step in (1, 2)] == [4, 1]
    found = [row.reading for row in (RowDataset(planned)[at] for at in (0, 3, 1, 4, 2))]
    assert [reading.of_step for reading in found if reading] == [4, 1, 4, 1, 4]
    assert [len(reading.pairs) for reading in found if reading] == [1, 1, 3, 0, 0]
    assert RowDataset(planned)[5].reading is None and len(RowDataset(planned)) == 6
