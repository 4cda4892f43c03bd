"""Every kind of leak, planted, is an error that names the rows: when a folder is written and when it is read."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset.folder import DATA_SET, DataSet, load_folder, write_folder
from perse.data.dataset.parquet import write_parquet
from perse.data.leaks import check_leaks, check_names, title_in
from perse.data.profiles.profiles import ExampleRow
from perse.errors import BadInput
from perse.files.replacing import claimed
from perse.records import Comparison, PointwiseExample, Review
from perse.records.near import near_duplicate


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
    with claimed(path, DATA_SET, overwrite=False) as place:
        write_folder(place, kept, kind=data.kind, rows=rows, manifest=manifest)  # type: ignore[arg-type]


def refuses(data: DataSet, rows: list[ExampleRow], tmp_path: Path, *expected: str, records: list[object] | None = None) -> None:
    """The planted leak stops both a build, before anything is written, and the reading of a folder that has it."""
    with pytest.raises(BadInput) as caught:
        write(tmp_path / "new", data, rows, records)
    assert not list(tmp_path.iterdir())
    for part in ("leak: ", *expected):
        assert part in str(caught.value)
    planted = tmp_path / "planted"
    write(planted, data, list(data.rows))
    write_parquet(planted / "examples.parquet", rows)
    if records is not None:
        write_parquet(planted / "reviews.parquet", records)
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
    records = dict(critics.reviews) | {shown.review_id: replace(shown, **{what: value})}
    refuses(critics, list(critics.rows), tmp_path, "own profile", row.example_id, records=list(records.values()))


def test_the_same_pair_in_its_profile_in_swapped_order(endings: DataSet) -> None:
    row = endings.rows[0]
    query, shown = endings.comparisons[row.query_id], endings.comparisons[row.profile_ids[0]]
    swapped = replace(shown, text_a=query.text_b, text_b=query.text_a)
    with pytest.raises(BadInput, match=f"own profile.*{row.example_id}"):
        check_leaks(endings.rows, {}, dict(endings.comparisons) | {shown.comparison_id: swapped}, disjoint_items=False)


@pytest.mark.parametrize("place", ["text_a", "text_b"])
def test_one_text_of_a_pair_in_its_profile(endings: DataSet, place: str) -> None:
    row = endings.rows[0]
    query, shown = endings.comparisons[row.query_id], endings.comparisons[row.profile_ids[0]]
    planted = replace(shown, **{place: f" {query.text_a.upper()}\n"})
    with pytest.raises(BadInput) as caught:
        check_leaks(endings.rows, {}, dict(endings.comparisons) | {shown.comparison_id: planted}, disjoint_items=False)
    for part in ("leak: a text of the query is in its own profile", row.example_id, row.query_id, shown.comparison_id):
        assert part in str(caught.value)


def test_a_text_may_stand_on_both_sides_in_other_pairs(endings: DataSet) -> None:
    train, valid = (next(row for row in endings.rows if row.split == split) for split in ("train", "valid"))
    text = endings.comparisons[train.query_id].text_a
    shared = replace(endings.comparisons[valid.query_id], text_a=text)
    check_leaks(endings.rows, {}, dict(endings.comparisons) | {shared.comparison_id: shared}, disjoint_items=True)


def test_a_reviewer_on_both_sides(critics: DataSet, tmp_path: Path) -> None:
    rows, name = edited(critics, lambda row: replace(row, split="valid"))
    refuses(critics, rows, tmp_path, "a reviewer is on two sides", name.split("-")[0], "train and valid")


def test_a_reviewer_in_two_folds(endings: DataSet) -> None:
    rows = [replace(row, split=None, fold=place % 2) for place, row in enumerate(endings.rows)]
    with pytest.raises(BadInput, match=r"two sides.*fold 0 and fold 1"):
        check_leaks(rows, {}, endings.comparisons, disjoint_items=False)


def test_an_item_on_both_sides_through_a_profile(critics: DataSet, tmp_path: Path) -> None:
    train, valid = (next(row for row in critics.rows if row.split == split) for split in ("train", "valid"))
    shown, item = critics.reviews[valid.profile_ids[0]], critics.reviews[train.query_id].item_id
    records = dict(critics.reviews) | {shown.review_id: replace(shown, item_id=item)}
    expected = ("an item is in training and in validation", valid.example_id, f"shares item {item} with ")
    refuses(critics, list(critics.rows), tmp_path, *expected, records=list(records.values()))
    # Where the split promises reviewers only, items may be shared.
    check_leaks(critics.rows, records, {}, disjoint_items=False)


def test_a_pair_on_both_sides(endings: DataSet) -> None:
    train = next(row for row in endings.rows if row.split == "train")
    valid = next(row for row in endings.rows if row.split == "valid")
    theirs = endings.comparisons[train.query_id]
    copy = replace(endings.comparisons[valid.query_id], text_a=theirs.text_b, text_b=theirs.text_a)
    with pytest.raises(BadInput, match=f"in training and in validation.*{valid.example_id}"):
        check_leaks(endings.rows, {}, dict(endings.comparisons) | {copy.comparison_id: copy}, disjoint_items=True)


PLOT = " ".join(f"word{place}" for place in range(60))
RETYPED = PLOT.replace("word30", "wrod30")


def test_a_near_duplicate_of_the_query_in_its_profile(critics: DataSet, tmp_path: Path) -> None:
    row = next(row for row in critics.rows if row.split == "train")
    query, shown = critics.reviews[row.query_id], critics.reviews[row.profile_ids[-1]]
    records = dict(critics.reviews)
    for one, text in ((query, PLOT), (shown, RETYPED)):
        records[one.review_id] = replace(one, item_id=f"new {one.item_id}", text=text)
    named = f"{row.example_id} (query '{query.review_id}', profile '{shown.review_id}')"
    expected = ("a near-duplicate of the query is in its profile in ", named)
    refuses(critics, list(critics.rows), tmp_path, *expected, records=list(records.values()))


@pytest.mark.parametrize("place", ["text_a", "text_b"])
def test_a_near_duplicate_of_one_text_of_a_pair_in_its_profile(endings: DataSet, place: str) -> None:
    row = endings.rows[0]
    query, shown = endings.comparisons[row.query_id], endings.comparisons[row.profile_ids[0]]
    records = dict(endings.comparisons)
    records |= {query.comparison_id: replace(query, text_b=PLOT), shown.comparison_id: replace(shown, **{place: RETYPED})}
    with pytest.raises(BadInput) as caught:
        check_leaks(endings.rows, {}, records, disjoint_items=False)
    for part in ("near-duplicate of the query", row.example_id, row.query_id, shown.comparison_id):
        assert part in str(caught.value)


def test_a_near_duplicate_item_on_both_sides(critics: DataSet, tmp_path: Path) -> None:
    train, valid = (next(row for row in critics.rows if row.split == split) for split in ("train", "valid"))
    records = dict(critics.reviews)
    for one, text in ((records[train.query_id], PLOT), (records[valid.profile_ids[0]], RETYPED)):
        records[one.review_id] = replace(one, item_id=f"new {one.item_id}", text=text)
    expected = (
        "near-duplicates are in training and in validation",
        valid.example_id,
        f"('{valid.profile_ids[0]}' is near '{train.query_id}' in ",
    )
    refuses(critics, list(critics.rows), tmp_path, *expected, records=list(records.values()))
    check_leaks(critics.rows, records, {}, disjoint_items=False)


@pytest.mark.parametrize("alike", ["the same item", "the same text", "a near-duplicate"])
@pytest.mark.parametrize("train", ["query", "profile"])
@pytest.mark.parametrize("valid", ["query", "profile"])
def test_what_was_only_shown_in_training_was_seen_too(alike: str, train: str, valid: str) -> None:
    """One review of each side is about the same; each of the four stands in one place of one example."""
    places = [f"{side} {place}" for side in ("train", "valid") for place in ("query", "profile")]
    reviews = {
        one: Review(
            review_id=one,
            reviewer_id=one.split()[0],
            item_id=f"item {n}",
            text=" ".join(f"w{n}x{place}" for place in range(60)),
            review="r",
            score=5,
            original_score=5,
        )
        for n, one in enumerate(places)
    }
    rows = [
        ExampleRow(f"{side}-e", side, f"{side} query", (f"{side} profile",), split=side)  # type: ignore[arg-type]
        for side in ("train", "valid")
    ]
    check_leaks(rows, reviews, {}, disjoint_items=True)
    theirs, ours = reviews[f"train {train}"], f"valid {valid}"
    about = {
        "the same item": {"item_id": theirs.item_id},
        "the same text": {"text": f" {theirs.text.upper()}"},
        "a near-duplicate": {"text": theirs.text.replace(" ", " new ", 1)},
    }
    reviews[ours] = replace(reviews[ours], **about[alike])  # type: ignore[arg-type]
    said = "near-duplicates are" if alike == "a near-duplicate" else "an item is"
    with pytest.raises(
        BadInput, match=f"leak: {said} in training and in validation in 1 validation examples: valid-e .*train-e"
    ):
        check_leaks(rows, reviews, {}, disjoint_items=True)
    check_leaks(rows, reviews, {}, disjoint_items=False)


@pytest.mark.parametrize("what", ["items", "near items", "queries", "near queries"])
def test_an_example_that_leaks_in_several_places_is_counted_once(what: str) -> None:
    """A validation example whose query and both profile entries are each about what its training counterpart is about."""
    text, near = ("near" in what), " ".join(f"w{n}" for n in range(60))
    reviews = {
        one: Review(
            review_id=one,
            reviewer_id=one.split()[0],
            item_id=one if text else "item",
            text=near.replace("w30", f"x{n}") if text else f"text {n}",
            review="r",
            score=5,
            original_score=5,
        )
        for n, one in enumerate(f"{side} {place}" for side in ("train", "valid") for place in (0, 1, 2))
    }
    if "items" in what:  # each side of one work; within an example the works differ
        for one in list(reviews):
            place = one.split()[1]
            apart = (
                {"text": f"{reviews[one].text} {' '.join(f'{place}y{n}' for n in range(99))}"} if text else {"item_id": place}
            )
            reviews[one] = replace(reviews[one], **apart)  # type: ignore[arg-type]
    rows = [
        ExampleRow(f"{side}-e", side, f"{side} 0", (f"{side} 1", f"{side} 2"), split=side)  # type: ignore[arg-type]
        for side in ("train", "valid")
    ]
    counted = "1 validation examples: valid-e" if "items" in what else "2 examples: train-e .*, valid-e"
    with pytest.raises(BadInput, match=rf"leak: .* in {counted} \([^)]*\); build"):
        check_leaks(rows, reviews, {}, disjoint_items=True)


@pytest.mark.parametrize("train", ["query", "profile"])
@pytest.mark.parametrize("valid", ["query", "profile"])
def test_a_pair_that_was_only_shown_in_training_was_seen_too(train: str, valid: str) -> None:
    places = [f"{side} {place}" for side in ("train", "valid") for place in ("query", "profile")]
    comparisons = {
        one: Comparison(
            comparison_id=one, reviewer_id=one.split()[0], pair_id=f"pair {n}", text_a=f"a {n}", text_b=f"b {n}", preference={}
        )
        for n, one in enumerate(places)
    }
    rows = [
        ExampleRow(f"{side}-e", side, f"{side} query", (f"{side} profile",), aspect="Ending", split=side)  # type: ignore[arg-type]
        for side in ("train", "valid")
    ]
    check_leaks(rows, {}, comparisons, disjoint_items=True)
    theirs, ours = comparisons[f"train {train}"], f"valid {valid}"
    comparisons[ours] = replace(comparisons[ours], text_a=theirs.text_b, text_b=theirs.text_a)
    with pytest.raises(BadInput, match="in training and in validation in 1 validation examples: valid-e .*train-e"):
        check_leaks(rows, {}, comparisons, disjoint_items=True)


@pytest.mark.parametrize("split", ["reviewer", "reviewer_item"])
def test_a_catalogue_with_near_duplicates_builds_without_a_leak(tmp_path: Path, split: str) -> None:
    plots = [" ".join(f"w{(7 * item + 13 * place * place) % 500}" for place in range(70)) for item in range(20)]
    plots += [plot.replace(" w", " v", 1) for plot in plots[:6]]
    (tmp_path / "items.jsonl").write_text(
        "".join(json.dumps({"item_id": f"i{item}", "text": plot}) + "\n" for item, plot in enumerate(plots)), "utf-8"
    )
    rows = [
        {
            "reviewer_id": f"R{who}",
            "item_id": f"i{item}",
            "score": 1 + (who + item) % 10,
            "review": f"As one expects of number {item}.",
        }
        for who in range(12)
        for item in range(26)
        if (who + item) % 2
    ]
    (tmp_path / "reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    options = PointwiseOptions(
        reviews=tmp_path / "reviews.jsonl",
        items=tmp_path / "items.jsonl",
        out=tmp_path / "out",
        k=3,
        split=split,
        valid=0.3,
        valid_items=0.4,
        max_queries=None,
    )
    build_pointwise(options)
    assert load_folder(tmp_path / "out").examples("valid")
    # Were the first six and their near-duplicates taken for different items, some query would have its twin in its profile.
    twins = {f"i{item}": f"i{item + 20}" for item in range(6)}
    for row in load_folder(tmp_path / "out").examples("train"):
        assert isinstance(row, PointwiseExample)
        assert not {twins.get(row.item_id)} & {past.item_id for past in row.profile}


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), apart=st.booleans())
def test_near_duplicates_are_refused_exactly_where_the_slow_twin_finds_them(seed: int, apart: bool) -> None:
    chance = random.Random(seed)
    base = [[f"w{chance.randrange(300)}" for _ in range(60)] for _ in range(12)]
    texts = []
    for _ in range(16):
        words = list(chance.choice(base))
        for _ in range(chance.randint(0, 3)):
            words[chance.randrange(60)] = f"c{chance.randrange(10**6)}"
        texts.append(" ".join(words))
    reviews = {
        f"p{n % 2}-r{n}": Review(
            review_id=f"p{n % 2}-r{n}",
            reviewer_id=f"p{n % 2}",
            item_id=f"i{n}",
            text=text,
            review="r",
            score=5,
            original_score=5,
        )
        for n, text in enumerate(texts)
        if texts.index(text) == n
    }
    rows = []
    for who, side in (("p0", "train"), ("p1", "valid")):
        mine = [one for one in reviews if one.startswith(who)]
        chance.shuffle(mine)
        rows += [
            ExampleRow(f"{who}-e{n}", who, mine[0], tuple(mine[n : n + 2]), split=side)  # type: ignore[arg-type]
            for n in range(1, len(mine) - 1, 2)
        ]
    leaking = [
        row for row in rows if any(near_duplicate(reviews[row.query_id].text, reviews[one].text) for one in row.profile_ids)
    ]
    used = {
        side: {reviews[one].text for row in rows if row.split == side for one in (row.query_id, *row.profile_ids)}
        for side in ("train", "valid")
    }
    crossing = any(near_duplicate(one, other) for one in used["train"] for other in used["valid"])
    if not leaking and not (apart and crossing):
        check_leaks(rows, reviews, {}, disjoint_items=apart)
        return
    with pytest.raises(BadInput) as caught:
        check_leaks(rows, reviews, {}, disjoint_items=apart)
    if leaking:
        assert f"its profile in {len(leaking)} examples: {leaking[0].example_id} " in str(caught.value)
    else:
        assert "near-duplicates are in training and in validation" in str(caught.value)


def test_an_original_name_in_an_anonymized_text() -> None:
    texts = {"i1": "Tom finds Sam\nSpade's hat.", "i2": "Annie and a rose.", "i3": "Nobody."}
    originals = {"i1": ["Sam Spade", "Archer"], "i2": ["Ann", "Rose"]}
    with pytest.raises(BadInput, match=r"^leak: .*original name in 1 items: i1 \('Sam Spade'\); anonymize"):
        check_names(texts, originals, {}, warn=False)
    (sentence,) = check_names(texts, originals, {}, warn=True)
    assert "i1 ('Sam Spade')" in sentence and "i2" not in sentence
    assert check_names(texts, {"i2": ["Ann", "Rose"]}, {}, warn=False) == []
    with pytest.raises(BadInput, match=r"in 1 items: i \('Tom'\)"):  # of several names the first in the text
        check_names({"i": "Then Tom and Sam met Ann."}, {"i": ["Ann", "Sam", "Tom"]}, {}, warn=False)


def test_a_title_in_an_anonymized_text() -> None:
    texts = {f"i{n}": "This is how Falcons and  the maltese falcon met." for n in range(5)}
    titles = dict.fromkeys(texts, "The Maltese Falcon")
    with pytest.raises(BadInput, match=r"title in 5 items: i0 \('the maltese falcon'\), i1 .*, i2 .* and 2 more; anonymize"):
        check_names(texts, {}, titles, warn=False)
    both = check_names(texts, {"i4": ["Falcons"]}, titles, warn=True)
    assert len(both) == 2 and "original name in 1 items: i4 ('Falcons')" in both[0] and "title in 5 items" in both[1]


@pytest.mark.parametrize(
    ("title", "text", "found"),
    [
        ("Up", "He goes up. Up there he stays.", None),
        ("Up", "In Up a house flies.", "Up"),
        ("Alien", "An alien comes.", None),
        ("Alien", "ALIEN: a ship.", "ALIEN"),
        ("The Ring", "She finds the ring.", None),
        ("The Ring", "In The Ring a ring rings.", None),
        ("The Ring", "In The  Ring all die.", "The Ring"),
        ("Heat Wave", "a heat\nwave", "heat wave"),
        ("Heat", "Heathen", None),
        ("300", "Some 300 men.", None),
        ("Schindler's List", "Schindler\u2019s List", "Schindler's List"),
        ("Am\u00e9lie", "Ame\u0301lie smiles.", "Am\u00e9lie"),
        ("M*A*S*H (1970)", "In M*A*S*H (1970) they laugh.", "M*A*S*H (1970)"),
        ("", "Anything.", None),
        ("  ", "Anything.", None),
    ],
)
def test_a_title_counts_where_it_cannot_be_common_words(title: str, text: str, found: str | None) -> None:
    assert title_in(text, title) == found


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


def test_an_item_in_training_and_in_validation_of_a_fold(endings: DataSet) -> None:
    """With folds, each is validation once, and all others are its training."""
    one = endings.rows[0]
    texts = {endings.comparisons[one.query_id].text_a, endings.comparisons[one.query_id].text_b}
    other = next(
        row
        for row in endings.rows
        if not texts & {endings.comparisons[row.query_id].text_a, endings.comparisons[row.query_id].text_b}
    )
    records = dict(endings.comparisons)
    shared = replace(records[other.query_id], text_a=records[one.query_id].text_a, text_b=records[one.query_id].text_b)
    rows = [
        replace(row, split=None, fold=fold, reviewer_id=f"r{fold}", profile_ids=())
        for fold, row in enumerate((one, other), start=1)
    ]
    owned = {row.query_id: replace(records[row.query_id], reviewer_id=row.reviewer_id) for row in rows}
    check_leaks(rows, {}, owned, disjoint_items=True)
    owned[other.query_id] = replace(shared, reviewer_id=rows[1].reviewer_id)
    with pytest.raises(BadInput, match="an item is in training and in validation"):
        check_leaks(rows, {}, owned, disjoint_items=True)
    check_leaks(rows, {}, owned, disjoint_items=False)
