"""Trie packing: a row is its branches, each shared segment once, and nothing is lost or repeated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from perse.errors import BadInput
from perse.training.rows.attention import dense_mask
from perse.training.rows.batches import IGNORED, collate
from perse.training.rows.branches import Branch
from perse.training.rows.schedule import schedule
from perse.training.rows.trie import PackedRow, RowSize, pack, packed, row_size

# Few different segments, so that many branches begin alike, some equal others whole, and some end where others go on.
SEGMENTS = st.sampled_from([(1, 2, 3), (4, 5), (1, 2), (6,), (7, 8, 9, 1)])
BRANCHES = st.lists(st.tuples(st.lists(SEGMENTS, min_size=1, max_size=4), SEGMENTS), min_size=1, max_size=9)

Drawn = list[tuple[list[tuple[int, ...]], tuple[int, ...]]]


def branches_of(drawn: Drawn) -> list[Branch]:
    return [
        Branch(f"e{at}", tuple(segments), answer, shared=len(segments) - 1, k=1, k_effective=1)
        for at, (segments, answer) in enumerate(drawn)
    ]


def path_to(row: PackedRow, place: int) -> list[int]:
    """The places that a token sees, itself last: its path through the row."""
    return [int(at) for at in dense_mask(row.tree)[0, 0, place].nonzero()[:, 0]]


@pytest.mark.slow
@settings(deadline=None)
@given(BRANCHES, st.booleans())
def test_every_learned_token_sees_exactly_its_own_example(drawn: Drawn, share: bool) -> None:
    branches = branches_of(drawn)
    row = packed(branches, share=share)
    at = 0
    for branch in branches:
        whole = branch.prompt + branch.answer
        for n in range(len(branch.answer)):
            path = path_to(row, row.sources[at])
            assert tuple(row.ids[place] for place in path) == whole[: len(branch.prompt) + n]
            assert [row.positions[place] for place in path] == list(range(len(path)))
            assert row.targets[at] == whole[len(branch.prompt) + n]
            at += 1
    assert at == len(row.targets) == len(row.sources)
    assert row.unshared == sum(len(branch.prompt) + len(branch.answer) for branch in branches)
    assert row.tree.pairs == int(dense_mask(row.tree).sum())
    assert row.tree.depth == max(len(branch.prompt) + len(branch.answer) for branch in branches)


@settings(deadline=None)
@given(BRANCHES, st.booleans())
def test_the_size_of_a_row_is_counted_without_laying_it_out(drawn: Drawn, share: bool) -> None:
    branches = branches_of(drawn)
    row = packed(branches, share=share)
    size = RowSize(len(row.ids), row.tree.pairs, len(row.targets), row.unshared, read=len(row.sources))
    assert row_size(branches, share=share) == size


@given(BRANCHES)
def test_a_shared_row_holds_every_beginning_once(drawn: Drawn) -> None:
    branches = branches_of(drawn)
    beginnings = set()
    for branch in branches:
        whole = (*branch.segments, branch.answer)
        beginnings |= {whole[: n + 1] for n in range(len(whole))}
    assert len(packed(branches).ids) == sum(len(beginning[-1]) for beginning in beginnings)
    assert len(packed(branches, share=False).ids) == sum(branch.tokens for branch in branches)


def test_a_row_by_hand() -> None:
    # instruction (1 2), profile (3), two queries (4 5) and (6), the first asked twice: answers (7) (8) and (9 9)
    first = Branch("a", ((1, 2), (3,), (4, 5)), (7,), 2, 1, 1)
    second = Branch("b", ((1, 2), (3,), (4, 5)), (8,), 2, 1, 1)
    third = Branch("c", ((1, 2), (3,), (6,)), (9, 9), 2, 1, 1)
    row = packed([first, third, second])
    assert row.ids == (1, 2, 3, 4, 5, 7, 8, 6, 9, 9)
    assert row.positions == (0, 1, 2, 3, 4, 5, 5, 3, 4, 5)
    # 7 and 8 are both predicted after 5 (place 4); 9 9 after 6 (place 7) and after the first 9 (place 8)
    assert row.sources == (4, 7, 8, 4) and row.targets == (7, 9, 9, 8)
    assert row.unshared == 6 + 6 + 6
    given = collate([row], attention="tree")
    assert given["use_cache"] is False and given["labels"].tolist() == [[IGNORED, 7, 9, 9, 8]]
    assert given["logits_to_keep"].tolist() == [4, 7, 8, 4] and given["input_ids"].tolist() == [list(row.ids)]


@settings(deadline=None, max_examples=60)
@given(BRANCHES, st.integers(14, 60), st.integers(1, 6), st.integers(1, 5), st.integers(0, 3))
def test_packing_keeps_every_example_once_and_every_limit(
    drawn: Drawn, row_tokens: int, batch_size: int, most: int, seed: int
) -> None:
    branches = branches_of(drawn)
    if max(branch.tokens for branch in branches) > row_tokens:
        with pytest.raises(BadInput, match="raise train.row_tokens"):
            pack(branches, row_tokens=row_tokens, batch_size=batch_size, max_shared_examples=most, seed=seed)
        return
    rows = pack(branches, row_tokens=row_tokens, batch_size=batch_size, max_shared_examples=most, seed=seed)
    assert sorted(branch.example_id for row in rows for branch in row) == sorted(branch.example_id for branch in branches)
    for row in rows:
        assert len(row) <= batch_size
        assert len(packed(row, share=most > 1).ids) <= row_tokens
    assert rows == pack(branches, row_tokens=row_tokens, batch_size=batch_size, max_shared_examples=most, seed=seed)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(2, 4), st.integers(1, 9), st.integers(0, 3))
def test_no_row_has_more_of_a_profile_than_asked(queries: list[int], most: int, more: int, seed: int) -> None:
    """However many a row could take, and wherever a profile's other pieces went."""
    branches = [branch for reader, count in enumerate(queries) for branch in readers(1, count, first=reader)]
    rows = pack(branches, row_tokens=1000, batch_size=most + more, max_shared_examples=most, seed=seed)
    assert sorted(branch.example_id for row in rows for branch in row) == sorted(branch.example_id for branch in branches)
    for row in rows:
        assert len(row) <= most + more
        assert max(Counter(branch.segments[1] for branch in row).values()) <= most


@pytest.mark.parametrize(("k", "most"), [(0, 4), (1, 1)], ids=["no-profile", "nothing-shared"])
def test_a_row_is_filled_where_no_profile_is_shared(k: int, most: int) -> None:
    branches = [replace(one, k=k, k_effective=k) for one in readers(1, 16)]
    rows = pack(branches, row_tokens=1000, batch_size=8, max_shared_examples=most, seed=0)
    assert [len(row) for row in rows] == [8, 8]


def readers(count: int, queries: int, *, first: int = 0) -> list[Branch]:
    """Every reader's examples share (0,) and a profile of 10 tokens; a query takes 4, its answer 1: 15 tokens alone."""
    return [
        Branch(f"r{r}-{q}", ((0,), (100 + r,) * 9, (200 + q,) * 4), (7,), 2, 1, 1)
        for r in range(first, first + count)
        for q in range(queries)
    ]


def test_a_readers_examples_share_a_row_up_to_the_cap() -> None:
    rows = pack(readers(6, 8), row_tokens=10 + 4 * 5, batch_size=4, max_shared_examples=4, seed=0)
    assert {len(row) for row in rows} == {4} and len(rows) == 12
    assert all(len({branch.example_id.split("-")[0] for branch in row}) == 1 for row in rows)
    assert {len(packed(row).ids) for row in rows} == {30}
    assert rows != pack(readers(6, 8), row_tokens=30, batch_size=4, max_shared_examples=4, seed=1)


def sizes_and_readers(seed: int | str) -> list[tuple[int, int]]:
    """Of 60 readers in their order, each second with 4 examples, the others with 1: of each row how many, and the reader."""
    branches = [one for r in range(60) for one in readers(1, 4 if r % 2 else 1, first=r)]
    rows = pack(branches, row_tokens=30, batch_size=4, max_shared_examples=4, seed=seed)
    return [(len(row), int(branch.example_id[1:].split("-")[0])) for row in rows for branch in row[:1]]


@pytest.mark.parametrize("seed", range(3))
def test_rows_come_in_no_order_of_the_data_or_of_their_size(seed: int) -> None:
    """Spearman's rho of 60 or more shuffled places has a standard deviation of 0.13: five of them."""
    found = sizes_and_readers(seed)
    places = range(len(found))
    assert abs(stats.spearmanr(places, [reader for _, reader in found]).statistic) < 0.6
    assert abs(stats.spearmanr(places, [size for size, _ in found]).statistic) < 0.6
    assert found != sizes_and_readers(seed + 1)


def test_rows_that_nothing_filled_are_not_the_last_of_an_epoch() -> None:
    """Groups of 3 and of 1 in rows of 4: what is still open at the end is closed with room left, some 12 rows of 84 each time; 4 standard errors."""
    branches = [one for r in range(160) for one in readers(1, 3 if r % 2 else 1, first=r)]
    places: list[float] = []
    for seed in range(10):
        rows = pack(branches, row_tokens=1000, batch_size=4, max_shared_examples=4, seed=seed)
        places += [at / len(rows) for at, row in enumerate(rows) if len(row) < 4]
    assert len(places) > 100 and 0.38 < sum(places) / len(places) < 0.62


def test_who_shares_a_row_is_drawn_from_all_and_not_from_neighbours() -> None:
    branches = readers(40, 1)
    rows = pack(branches, row_tokens=1000, batch_size=4, max_shared_examples=2, seed=0)
    apart = [abs(int(one.example_id[1:-2]) - int(other.example_id[1:-2])) for row in rows for one, other in pairwise(row)]
    assert sum(apart) / len(apart) > 8  # neighbours are 1 apart, two of 40 drawn at random 13.7


def test_a_readers_examples_are_shuffled_before_they_are_dealt_to_rows() -> None:
    rows = pack(readers(10, 8), row_tokens=30, batch_size=4, max_shared_examples=4, seed=0)
    dealt = [sorted(int(branch.example_id[-1]) for branch in row) for row in rows]
    assert sum(own in ([0, 1, 2, 3], [4, 5, 6, 7]) for own in dealt) < len(dealt) / 4


def test_questions_about_the_same_text_stand_in_the_same_row() -> None:
    """Of 4 texts, each asked about twice, pieces of 4 hold two texts whole: their queries are computed once for both."""
    branches = [
        Branch(f"{text}-{aspect}", ((0,), (1,) * 9, (2 + text,) * 4, (9, aspect)), (7,), 2, 1, 1)
        for aspect in range(2)
        for text in range(4)
    ]
    for seed in range(4):
        rows = pack(branches, row_tokens=1000, batch_size=4, max_shared_examples=4, seed=seed)
        assert [Counter(Counter(one.example_id[0] for one in row).values()) for row in rows] == [{2: 2}] * 2


def test_the_rows_of_a_step_are_those_of_the_schedule_in_their_order() -> None:
    planned = schedule(
        lambda _: readers(6, 2),
        epochs=1,
        steps=None,
        rows_per_step=3,
        row_tokens=15,
        batch_size=1,
        max_shared_examples=1,
        seed=0,
    )
    assert planned.steps == 4
    laid_out = [row.example_ids for step in range(1, 5) for row in planned.step_rows(step)]
    assert laid_out == [tuple(branch.example_id for branch in row) for row in planned.rows]


def test_every_epoch_is_shuffled_anew() -> None:
    planned = schedule(
        lambda _: readers(30, 1),
        epochs=2,
        steps=None,
        rows_per_step=1,
        row_tokens=15,
        batch_size=1,
        max_shared_examples=1,
        seed=0,
    )
    seen = [branch.example_id for row in planned.rows for branch in row]
    assert sorted(seen[:30]) == sorted(seen[30:]) and seen[:30] != seen[30:]


def test_with_one_branch_a_group_nothing_is_shared() -> None:
    planned = schedule(
        lambda _: readers(2, 4),
        epochs=1,
        steps=None,
        rows_per_step=1,
        row_tokens=45,
        batch_size=8,
        max_shared_examples=1,
        seed=0,
    )
    for at in range(len(planned.rows)):
        row = planned.row(at)
        assert row.unshared == len(row.ids)
        assert {span.start for span in row.tree.spans} == set(range(0, len(row.ids), 15))


@pytest.mark.parametrize(("epochs", "steps"), [(1.0, None), (2.0, None), (1.5, None), (1.0, 7), (1.0, 1)])
def test_a_schedule_has_whole_steps_and_every_example_once_an_epoch(epochs: float, steps: int | None) -> None:
    branches = readers(5, 3)
    planned = schedule(
        lambda _: branches,
        epochs=epochs,
        steps=steps,
        rows_per_step=4,
        row_tokens=25,
        batch_size=3,
        max_shared_examples=3,
        seed=0,
    )
    assert len(planned.rows) == planned.steps * 4
    seen = [branch.example_id for row in planned.rows for branch in row]
    if steps is not None:
        assert planned.steps == steps
        return
    assert len(seen[:15]) == len(set(seen[:15])) == 15  # an epoch is over before the next begins
    if epochs == 2:
        assert sorted(seen[15:]) == sorted(seen[:15]) and seen[15:] != seen[:15]
    if epochs == 1.5:
        assert 15 < len(seen) < 30
    assert all(planned.rows[: -planned.rows_per_step]), "only the last step is filled up with empty rows"


@example(1.6, 15)  # 1.6 - 1 is a little more than 0.6
@given(st.floats(0.01, 4), st.integers(1, 60))
def test_a_fraction_of_an_epoch_is_that_fraction_of_its_rows(epochs: float, readers_: int) -> None:
    branches = readers(readers_, 1)
    planned = schedule(
        lambda _: branches,
        epochs=epochs,
        steps=None,
        rows_per_step=1,
        row_tokens=15,
        batch_size=1,
        max_shared_examples=1,
        seed=0,
    )
    assert epochs * readers_ <= len(planned.rows) + 1e-6 and len(planned.rows) < epochs * readers_ + 1
    assert planned.epochs == pytest.approx(len(planned.rows) / readers_)
    seen = [branch.example_id for row in planned.rows for branch in row]
    assert max(map(seen.count, seen)) <= -(-len(seen) // readers_)


def test_only_the_draws_that_are_needed_are_made() -> None:
    asked: list[int] = []

    def draw(epoch: int) -> list[Branch]:
        asked.append(epoch)
        return readers(2, 2)

    planned = schedule(draw, epochs=9, steps=3, rows_per_step=2, row_tokens=None, batch_size=100, max_shared_examples=2, seed=0)
    assert planned.steps == 3 and asked == list(range(len(asked))) and len(asked) <= 6


def test_every_epoch_is_packed_from_its_own_draw() -> None:
    first = readers(2, 2)
    second = [replace(one, example_id=f"{one.example_id}-e1") for one in first]
    planned = schedule(
        lambda epoch: [first, second][epoch],
        epochs=2,
        steps=None,
        rows_per_step=1,
        row_tokens=60,
        batch_size=2,
        max_shared_examples=2,
        seed=0,
    )
    seen = [branch.example_id for row in planned.rows for branch in row]
    assert sorted(seen[:4]) == sorted(branch.example_id for branch in first)
    assert sorted(seen[4:]) == sorted(branch.example_id for branch in second)


def test_the_mask_of_a_tree_is_causal_along_paths() -> None:
    row = packed(readers(1, 2))
    mask = dense_mask(row.tree)[0, 0]
    assert torch.equal(mask, mask.tril())
    assert not mask[15:, 10:15].any(), "the second query sees the first"
