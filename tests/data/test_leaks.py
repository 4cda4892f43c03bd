"""Every kind of leak, planted, is an error that names the rows: when a folder is written and when it is read."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.folder import DataSet, load_folder, write_folder
from perse.data.leaks import check_leaks
from perse.data.parquet import write_parquet
from perse.data.profiles import ExampleRow
from perse.errors import BadInput


@pytest.fixture(scope="session")
def critics(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    out = tmp_path_factory.mktemp("sets") / "critics"
    options = PointwiseOptions(
        reviews=raw / "reviews.jsonl",
        items=raw / "items.jsonl",
        out=out,
        k=2,
        split="reviewer_item",
        valid_items=0.4,
        valid=0.3,
    )
    build_pointwise(options)
    return load_folder(out)


@pytest.fixture(scope="session")
def endings(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    out = tmp_path_factory.mktemp("sets") / "endings"
    build_pairwise(PairwiseOptions(pairs=raw / "pairs.jsonl", out=out))
    return load_folder(out)


def write(path: Path, data: DataSet, rows: list[ExampleRow], records: list[object] | None = None) -> None:
    kept = records if records is not None else [*data.reviews.values(), *data.comparisons.values()]
    manifest = {name: data.manifest[name] for name in ("perse", "options", "sources", "counts", "dropped")}
    write_folder(path, kept, kind=data.kind, rows=rows, manifest=manifest)  # type: ignore[arg-type]


def refuses(data: DataSet, rows: list[ExampleRow], tmp_path: Path, *expected: str, records: list[object] | None = None) -> None:
    """The planted leak stops both a build, before anything is written, and the reading of a folder that has it."""
    with pytest.raises(BadInput) as caught:
        write(tmp_path / "new", data, rows, records)
    assert not list(tmp_path.iterdir())
    for part in ("leak: ", *expected):
        assert part in str(caught.value)
    planted = tmp_path / "planted"
    write(planted, data, list(data.rows))
    write_parquet(planted / "examples.parquet", [asdict(row) for row in rows])
    if records is not None:
        write_parquet(planted / "reviews.parquet", [record.model_dump() for record in records])  # type: ignore[attr-defined]
    with pytest.raises(BadInput, match="leak: "):
        load_folder(planted)


def edited(data: DataSet, change: Callable[[ExampleRow], ExampleRow], *, split: str = "train") -> tuple[list[ExampleRow], str]:
    """The rows with the first one of `split` changed, and its id."""
    place = next(place for place, row in enumerate(data.rows) if row.split == split)
    rows = list(data.rows)
    rows[place] = change(rows[place])
    return rows, rows[place].example_id


def test_built_sets_have_no_leak(critics: DataSet, endings: DataSet) -> None:
    for data in (critics, endings):
        assert data.examples("train") and data.examples("valid")
        check_leaks(data.rows, data.reviews, data.comparisons, disjoint_items=True)


def test_the_query_itself_in_its_profile(critics: DataSet, tmp_path: Path) -> None:
    rows, name = edited(critics, lambda row: replace(row, profile_ids=(row.query_id, row.profile_ids[0])))
    refuses(critics, rows, tmp_path, "the query is in its own profile", "1 examples", name)


@pytest.mark.parametrize("what", ["item_id", "text"])
def test_the_query_under_another_review_id(critics: DataSet, tmp_path: Path, what: str) -> None:
    row = next(row for row in critics.rows if row.split == "train")
    query, shown = critics.reviews[row.query_id], critics.reviews[row.profile_ids[0]]
    value = query.item_id if what == "item_id" else f"  {query.text.upper()}\n"
    records = dict(critics.reviews) | {shown.review_id: shown.model_copy(update={what: value})}
    refuses(critics, list(critics.rows), tmp_path, "own profile", row.example_id, records=list(records.values()))


def test_the_same_pair_in_its_profile_in_swapped_order(endings: DataSet) -> None:
    row = endings.rows[0]
    query, shown = endings.comparisons[row.query_id], endings.comparisons[row.profile_ids[0]]
    swapped = shown.model_copy(update={"text_a": query.text_b, "text_b": query.text_a})
    with pytest.raises(BadInput, match=f"own profile.*{row.example_id}"):
        check_leaks(endings.rows, {}, dict(endings.comparisons) | {shown.comparison_id: swapped}, disjoint_items=False)


@pytest.mark.parametrize("place", ["text_a", "text_b"])
def test_one_text_of_a_pair_in_its_profile(endings: DataSet, place: str) -> None:
    row = endings.rows[0]
    query, shown = endings.comparisons[row.query_id], endings.comparisons[row.profile_ids[0]]
    planted = shown.model_copy(update={place: f" {query.text_a.upper()}\n"})
    with pytest.raises(BadInput) as caught:
        check_leaks(endings.rows, {}, dict(endings.comparisons) | {shown.comparison_id: planted}, disjoint_items=False)
    for part in ("leak: a text of the query is in its own profile", row.example_id, row.query_id, shown.comparison_id):
        assert part in str(caught.value)


def test_a_text_may_stand_on_both_sides_in_other_pairs(endings: DataSet) -> None:
    train, valid = (next(row for row in endings.rows if row.split == split) for split in ("train", "valid"))
    text = endings.comparisons[train.query_id].text_a
    shared = endings.comparisons[valid.query_id].model_copy(update={"text_a": text})
    check_leaks(endings.rows, {}, dict(endings.comparisons) | {shared.comparison_id: shared}, disjoint_items=True)


def test_a_reviewer_on_both_sides(critics: DataSet, tmp_path: Path) -> None:
    rows, name = edited(critics, lambda row: replace(row, split="valid"))
    refuses(critics, rows, tmp_path, "a reviewer is on two sides", name.split("-")[0], "train and valid")


def test_a_reviewer_in_two_folds(endings: DataSet) -> None:
    rows = [replace(row, split=None, fold=place % 2) for place, row in enumerate(endings.rows)]
    with pytest.raises(BadInput, match=r"two sides.*fold 0 and fold 1"):
        check_leaks(rows, {}, endings.comparisons, disjoint_items=False)


def test_an_item_on_both_sides_through_a_profile(critics: DataSet, tmp_path: Path) -> None:
    train_items = {critics.reviews[row.query_id].item_id for row in critics.rows if row.split == "train"}
    row = next(row for row in critics.rows if row.split == "valid")
    stray = next(
        one.review_id
        for one in critics.reviews.values()
        if one.reviewer_id == row.reviewer_id
        and one.item_id in train_items
        and one.item_id != critics.reviews[row.query_id].item_id
    )
    rows, name = edited(critics, lambda row: replace(row, profile_ids=(stray, row.profile_ids[0])), split="valid")
    refuses(critics, rows, tmp_path, "an item is in training and in validation", name, "shares item ")
    # Where the split promises reviewers only, items may be shared.
    check_leaks(rows, critics.reviews, {}, disjoint_items=False)


def test_a_pair_on_both_sides(endings: DataSet) -> None:
    train = next(row for row in endings.rows if row.split == "train")
    valid = next(row for row in endings.rows if row.split == "valid")
    theirs = endings.comparisons[train.query_id]
    copy = endings.comparisons[valid.query_id].model_copy(update={"text_a": theirs.text_b, "text_b": theirs.text_a})
    with pytest.raises(BadInput, match=f"in training and in validation.*{valid.example_id}"):
        check_leaks(endings.rows, {}, dict(endings.comparisons) | {copy.comparison_id: copy}, disjoint_items=True)


def test_rows_that_point_nowhere_or_to_another_reviewer(critics: DataSet, tmp_path: Path) -> None:
    rows, name = edited(critics, lambda row: replace(row, query_id="nobody-r001"))
    refuses(critics, rows, tmp_path, "not among the records", name)
    mine, other = (next(row for row in critics.rows if row.split == split) for split in ("train", "valid"))
    rows, name = edited(critics, lambda row: replace(row, profile_ids=(other.query_id,)))
    with pytest.raises(BadInput, match=f"another reviewer's.*{mine.example_id}"):
        check_leaks(rows, critics.reviews, {}, disjoint_items=False)


def test_many_leaks_are_counted_and_the_first_are_named(critics: DataSet) -> None:
    rows = [replace(row, profile_ids=(row.query_id,)) for row in critics.rows]
    with pytest.raises(BadInput, match=f"in {len(rows)} examples: {rows[0].example_id}.* and {len(rows) - 3} more"):
        check_leaks(rows, critics.reviews, {}, disjoint_items=False)
