"""Pseudonyms, profiles and splits: who is asked what, shown what, and on which side."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.data import pseudonyms as naming
from perse.data.profiles.profiles import Drawing, ExampleRow, pairwise_rows, pointwise_rows
from perse.data.profiles.splits import review_pools, reviewer_folds, sides, valid_share
from perse.data.pseudonyms import hidden, pseudonym, pseudonyms
from perse.data.works import works
from perse.errors import BadInput
from perse.identity import normalised, pair_key, text_key
from perse.records import Comparison, Review
from perse.records.dates import oldest_first, sortable


def review(who: str, item: str, *, text: str | None = None, time: str | None = None) -> Review:
    return Review(
        review_id=f"{who}-{item}",
        reviewer_id=who,
        item_id=item,
        text=text or f"text of {item}",
        review=f"of {item}",
        score=5,
        original_score=5,
        time=time,
    )


def comparison(who: str, pair: int, *aspects: str) -> Comparison:
    a, b = f"a{pair}", f"b{pair}"
    return Comparison(
        comparison_id=f"{who}-c{pair}",
        reviewer_id=who,
        pair_id=pair_key(a, b),
        text_a=a,
        text_b=b,
        preference=dict.fromkeys(aspects or ("Ending",), "A"),
    )


def people(count: int, reviews: int = 12) -> dict[str, list[Review]]:
    return {f"p{who}": [review(f"p{who}", f"i{n + who}") for n in range(reviews)] for who in range(count)}


def rows_of(reviews: dict[str, list[Review]], **changes: object) -> list[ExampleRow]:
    drawing = Drawing(**({"k": 3, "max_queries": 10} | changes))  # type: ignore[arg-type]
    return pointwise_rows(reviews, works(one for theirs in reviews.values() for one in theirs), drawing)


def test_pseudonyms_are_stable_salted_and_short() -> None:
    assert pseudonym("Ann", salt="s") == pseudonym("Ann", salt="s")
    assert pseudonym("Ann", salt="s") != pseudonym("Ann", salt="t")
    assert pseudonym("Ann", salt="x" * 500)[0] == "r" and len(pseudonym("Ann", salt="s")) == 13
    one = hidden([review("Ann", "i1")], salt="s")[0]
    assert (one.reviewer_id, one.review_id) == (pseudonym("Ann", salt="s"), pseudonym("Ann", salt="s") + "-i1")


def test_two_names_with_one_pseudonym_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "pseudonym", lambda name, *, salt: "r0")
    with pytest.raises(BadInput, match="'Ann' and 'Bob' get one pseudonym"):
        pseudonyms(["Ann", "Bob"], salt="s")


def test_the_same_text_is_known_in_any_case_spacing_and_unicode_form() -> None:
    assert normalised(" Caf\u00e9\n NOIR ") == normalised("cafe\u0301 noir")
    assert text_key("A  b") == text_key("a b") != text_key("ab")
    assert pair_key("x", "y") == pair_key("Y ", "x") != pair_key("x", "z")


def test_items_that_share_a_text_are_one_work_through_others() -> None:
    about = works([review("p", "1", text="T"), review("p", "2", text="t "), review("q", "2", text="u"), review("p", "3")])
    assert about["p-1"] == about["p-2"] == about["q-2"] != about["p-3"]


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 1000), k=st.integers(0, 5), shared=st.booleans(), cap=st.none() | st.integers(1, 12))
def test_a_query_is_never_in_its_profile(seed: int, k: int, shared: bool, cap: int | None) -> None:
    # Two item ids with one text: neither may be shown beside the other.
    reviews = {"p": [review("p", f"i{n}", text="same" if n < 2 else None) for n in range(9)]}
    about = works(reviews["p"])
    rows = rows_of(reviews, seed=seed, k=k, profiles="per_reviewer_epoch" if shared else "per_example", max_queries=cap)
    assert rows and len(rows) <= (cap or 9)
    for row in rows:
        assert len(row.profile_ids) == len(set(row.profile_ids)) == k
        assert about[row.query_id] not in {about[one] for one in row.profile_ids}
    assert len({row.query_id for row in rows}) == len({row.example_id for row in rows}) == len(rows)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 1000), k=st.integers(1, 5), count=st.integers(2, 30), cap=st.none() | st.integers(1, 12))
def test_held_apart_no_query_stands_in_any_profile_of_its_reader(seed: int, k: int, count: int, cap: int | None) -> None:
    """Nor does its work (items 0 and 1 have one text), nor a review that says the same (items 2 and 3)."""
    mine = [review("p", f"i{n}", text="same" if n < 2 else None) for n in range(count)]
    mine[2:4] = [replace(one, review="All the same to me.") for one in mine[2:4]]
    about = works(mine)
    rows = rows_of({"p": mine}, seed=seed, k=k, profiles="per_example_apart", max_queries=cap)
    shown = {one for row in rows for one in row.profile_ids}
    asked = {row.query_id for row in rows}
    assert {about[one] for one in asked}.isdisjoint(about[one] for one in shown)
    assert not ({"p-i2", "p-i3"} & asked and {"p-i2", "p-i3"} & shown)
    assert all(len(set(row.profile_ids)) == k for row in rows) and len(rows) <= (cap or count)
    if count >= k + 3:  # at most one query is lost to each of the two pairs
        assert len(rows) >= min(cap or count, count - max(k, count // 2, count - (cap or count))) - 2


def test_held_apart_each_query_has_a_draw_of_its_own_from_half_the_reviews() -> None:
    rows = rows_of(people(1, 12), profiles="per_example_apart", max_queries=None)
    assert len(rows) == 6 and len({frozenset(row.profile_ids) for row in rows}) > 3
    assert len({one for row in rows for one in row.profile_ids}) > 3
    ten = rows_of(people(1, 30), profiles="per_example_apart")
    assert len(ten) == 10 and len({one for row in ten for one in row.profile_ids}) > 15, "what is not asked about is drawn from"


def test_held_apart_no_comparison_is_both_asked_and_shown() -> None:
    mine = [comparison("p", n, "Ending", "Surprise") for n in range(9)]
    rows = pairwise_rows({"p": mine}, Drawing(k=2, profiles="per_example_apart", max_queries=None, seed=0))
    asked = {row.query_id for row in rows}
    assert len(asked) == 5 and len(rows) == 10 and asked.isdisjoint(one for row in rows for one in row.profile_ids)


def test_a_reviewer_without_k_others_has_no_example() -> None:
    assert rows_of({"p": [review("p", f"i{n}") for n in range(3)]}) == []


def test_one_more_reviewer_changes_nobody_elses_draw() -> None:
    few = rows_of(people(4))
    assert [row for row in rows_of(people(5)) if row.reviewer_id != "p4"] == few
    assert few[0].example_id == "p0-p01"


def test_per_reviewer_profiles_are_shared_and_never_asked_about() -> None:
    rows = rows_of(people(3), profiles="per_reviewer_epoch", max_queries=None)
    for who in ("p0", "p1", "p2"):
        mine = [row for row in rows if row.reviewer_id == who]
        assert len({row.profile_ids for row in mine}) == 1 and len(mine) == 12 - 3


def test_a_drawing_is_the_same_in_every_version() -> None:
    """Written down once: a data set built again from the same files, or redrawn in training, is the one that was published."""
    drawn = {
        (profiles, epoch): rows_of(people(1, 5), profiles="".join(profiles), k=2, max_queries=1, seed=1, epoch=epoch)
        for profiles in ("per_example", "per_reviewer_epoch", "per_example_apart")
        for epoch in (0, 1)
    }
    assert {key: [(row.query_id, row.profile_ids) for row in rows] for key, rows in drawn.items()} == {
        ("per_example", 0): [("p0-i1", ("p0-i3", "p0-i2"))],
        ("per_example", 1): [("p0-i0", ("p0-i1", "p0-i2"))],
        ("per_example_apart", 0): [("p0-i1", ("p0-i3", "p0-i0"))],
        ("per_example_apart", 1): [("p0-i0", ("p0-i4", "p0-i3"))],
        ("per_reviewer_epoch", 0): [("p0-i1", ("p0-i0", "p0-i2"))],
        ("per_reviewer_epoch", 1): [("p0-i4", ("p0-i2", "p0-i0"))],
    }


def test_profiles_stand_oldest_first_only_where_all_times_sort() -> None:
    dated = [review("p", "b", time="2020-05-01"), review("p", "a", time="2019-01-01T10:00:00+00:00")]
    assert [one.item_id for one in oldest_first(dated)] == ["a", "b"]
    assert [one.item_id for one in oldest_first([*dated, review("p", "c", time="05/01/2018")])] == ["b", "a", "c"]
    assert sortable("2020-13-01") is None and sortable("1393545600") is None


def test_profiles_of_pairs_prefer_comparisons_with_the_same_aspect() -> None:
    mine = [comparison("p", 0, "Ending", "Surprise"), comparison("p", 1, "Ending"), comparison("p", 2, "Surprise")]
    rows = pairwise_rows({"p": mine}, Drawing(k=1, profiles="per_example", max_queries=None, seed=3))
    shown = {(row.query_id, row.aspect): row.profile_ids for row in rows}
    assert shown["p-c1", "Ending"] == ("p-c0",) and shown["p-c2", "Surprise"] == ("p-c0",)
    assert shown["p-c0", "Ending"] == ("p-c1",) and shown["p-c0", "Surprise"] == ("p-c2",)


@pytest.mark.parametrize("profiles", ["per_example", "per_reviewer_epoch"])
def test_pairs_are_capped_for_each_aspect_and_never_shown_to_themselves(profiles: str) -> None:
    mine = [comparison("p", n, "Ending", "Surprise") for n in range(20)]
    rows = pairwise_rows({"p": mine}, Drawing(k=2, profiles=profiles, max_queries=5, seed=0))  # type: ignore[arg-type]
    assert [sum(row.aspect == aspect for row in rows) for aspect in ("Ending", "Surprise")] == [5, 5]
    assert all(row.query_id not in row.profile_ids and len(row.profile_ids) == 2 for row in rows)
    # All aspects of a query share a profile when all comparisons judge all aspects.
    assert len({(row.query_id, row.profile_ids) for row in rows}) == 5


@pytest.mark.parametrize("profiles", ["per_example", "per_reviewer_epoch"])
def test_no_text_of_a_query_stands_in_its_profile_in_another_pair(profiles: str) -> None:
    # Pair n is (text n, text n + 1): pairs 3 and 4 share a text, once as B and once as A, in another case and spacing.
    mine = [
        replace(
            comparison("p", n),
            text_a=f"text {n}",
            text_b=f"TEXT  {n + 1}",
            pair_id=pair_key(f"text {n}", f"text {n + 1}"),
        )
        for n in range(9)
    ]
    rows = pairwise_rows({"p": mine}, Drawing(k=2, profiles=profiles, max_queries=None, seed=0))  # type: ignore[arg-type]
    number = {one.comparison_id: n for n, one in enumerate(mine)}
    apart = [abs(number[row.query_id] - number[one]) for row in rows for one in row.profile_ids]
    assert apart and min(apart) > 1
    # With one neighbour on each side at most, 6 of the 9 others are left for every query.
    assert profiles == "per_reviewer_epoch" or len(rows) == 9
    if profiles == "per_example":
        assert pairwise_rows({"p": mine[:3]}, Drawing(k=1, profiles=profiles, max_queries=None, seed=0))[0].query_id in (
            "p-c0",
            "p-c2",
        )
        assert pairwise_rows({"p": mine[:2]}, Drawing(k=1, profiles=profiles, max_queries=None, seed=0)) == []


@settings(max_examples=50, deadline=None)
@given(count=st.integers(2, 60), share=st.floats(0.01, 0.99), seed=st.integers(0, 99))
def test_both_sides_always_get_someone(count: int, share: float, seed: int) -> None:
    everyone = {f"p{n}" for n in range(count)}
    valid = valid_share(everyone, share=share, seed=seed, what="reviewers")
    assert 1 <= len(valid) < count and valid < everyone
    assert abs(len(valid) - share * count) <= 1


def test_one_reviewer_cannot_be_split() -> None:
    with pytest.raises(BadInput, match="1 reviewers left after the filters, expected at least 2"):
        valid_share(["p"], share=0.1, seed=0, what="reviewers")


@settings(max_examples=50, deadline=None)
@given(count=st.integers(2, 40), folds=st.integers(2, 12), seed=st.integers(0, 99))
def test_folds_partition_reviewers_evenly(count: int, folds: int, seed: int) -> None:
    everyone = [f"p{n}" for n in range(count)]
    if count < folds:
        with pytest.raises(BadInput, match="fewer than the"):
            reviewer_folds(everyone, folds=folds, seed=seed)
        return
    fold_of = reviewer_folds(everyone, folds=folds, seed=seed)
    sizes = [list(fold_of.values()).count(fold) for fold in range(folds)]
    assert set(fold_of) == set(everyone) and max(sizes) - min(sizes) <= 1


def test_pools_keep_a_reviewer_to_the_works_of_their_side() -> None:
    reviews = people(4)
    about = works(one for theirs in reviews.values() for one in theirs)
    valid_works = valid_share(set(about.values()), share=0.4, seed=0, what="items")
    pools = review_pools(reviews, about, valid=frozenset({"p1"}), valid_works=valid_works)
    for who, theirs in pools.items():
        assert theirs and all((about[one.review_id] in valid_works) == (who == "p1") for one in theirs)


def test_the_training_side_of_a_fold_leaves_out_pairs_that_cross() -> None:
    by_id = {one.comparison_id: one for who in "pq" for one in (comparison(who, n) for n in range(4))}
    row = ExampleRow("x", "p", "p-c0", ("p-c1",), "Ending", fold=0)
    crossing = replace(row, example_id="y", reviewer_id="q", query_id="q-c2", profile_ids=("q-c1",), fold=1)
    clear = replace(crossing, example_id="z", profile_ids=("q-c3",))
    assert sides([row, crossing, clear], 0, apart=by_id) == ([clear], [row])
    assert sides([row, crossing, clear], 0, apart=None) == ([crossing, clear], [row])
