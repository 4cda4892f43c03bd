"""The reader of raw tables: round trips, aliases, and one clear sentence for everything that is wrong."""

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perse.data.sources.faults import Faults
from perse.data.sources.lines import LONGEST_CELL, column_names, read_records
from perse.data.sources.table import read_comparisons, read_json_lines, read_reviews, read_rows
from perse.errors import BadInput

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)

GOOD = {"reviewer_id": "ann", "item_id": "i1", "score": 7, "review": "fine", "text": "a plot"}
PAIR = {"reviewer_id": "ann", "aspect": "Ending", "text_a": "one", "text_b": "two", "preference": "A"}


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def reviews_of(path: Path, *, items: Path | None = None, skip: bool = False, columns: Any = None, scale: Any = (1, 10)) -> Any:
    faults = Faults("skip" if skip else "stop")
    return read_reviews(path, items, faults, columns=columns or {}, scale=scale), faults.counts


def pairs_of(path: Path, *, items: Path | None = None, skip: bool = False, columns: Any = None) -> Any:
    faults = Faults("skip" if skip else "stop")
    return read_comparisons(path, items, faults, columns=columns or {}), faults.counts


def message(call: Callable[[], object]) -> str:
    with pytest.raises(BadInput) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@quick
@given(values=st.lists(st.dictionaries(any_text, any_text | st.integers() | st.none(), max_size=3), min_size=1, max_size=5))
@pytest.mark.parametrize("gz", [False, True])
def test_json_lines_come_back_as_written(tmp_path: Path, values: list[dict[str, Any]], gz: bool) -> None:
    path = tmp_path / ("rows.jsonl.gz" if gz else "rows.jsonl")
    text = "\n".join(json.dumps(value, ensure_ascii=False) for value in values).encode()
    path.write_bytes(gzip.compress(text, 1) if gz else text)
    assert [value for _, value in read_json_lines(path)] == values


@quick
@given(rows=st.lists(st.tuples(any_text, any_text), min_size=1, max_size=5))
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv.gz"])
def test_csv_comes_back_as_written(tmp_path: Path, rows: list[tuple[str, str]], name: str) -> None:
    path = tmp_path / name
    with (gzip.open if name.endswith(".gz") else open)(path, "wt", encoding="utf-8", newline="") as file:  # type: ignore[operator]
        writer = csv.writer(file, delimiter="\t" if ".tsv" in name else ",", quoting=csv.QUOTE_ALL)
        writer.writerows([("text", "review"), *rows])
    assert [(row.get("text"), row.get("review")) for row in read_rows(path, {})] == rows


def test_line_numbers_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\n1\n\n  \n2\n")
    assert list(read_json_lines(path)) == [(2, 1), (5, 2)]
    table = tmp_path / "rows.csv"
    table.write_text('text,review\n"two\nlines",x\n\n"last",y\n', "utf-8")
    assert [(row.line, row.get("text")) for row in read_rows(table, {})] == [(2, "two\nlines"), (5, "last")]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b'{"a": 1}\n{"a": "\xff"}\n', "line 2: byte 0xff at position 8 is not UTF-8"),
        (b'{"a": 1}\n\n{"a": }\n', "line 3: not JSON, Expecting value at column 7"),
        (b'{"a": Infinity}\n', "line 1: not JSON, Infinity"),
        (b'{"a": "\\ud800"}\n', "line 1: not JSON, half of a surrogate pair"),
        (b'{"a": {"b": 1, "c": 2, "b": 3}}\n', 'line 1: not JSON, "b" is given twice in one object'),
        (b'{"a": 1' + b"0" * 5000 + b"}\n", "line 1: not JSON, a number has 5001 digits, expected at most 4300"),
        (b"[" * 100_000, "line 1: not JSON"),
        (b'[\n{"a": 1}\n]\n', "give one object a line"),
    ],
)
def test_a_broken_json_file_is_named_with_its_line(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    found = message(lambda: list(read_json_lines(path)))
    assert str(path) in found and expected in found


def test_nan_of_pandas_is_a_missing_value(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"genre": NaN}\n', "utf-8")
    assert list(read_json_lines(path)) == [(1, {"genre": None})]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("rows.csv", b"", "empty"),
        ("rows.csv", b"text,review\n", "empty"),
        ("rows.csv", b"text,text\na,b\n", "column 'text' twice"),
        ("rows.csv", b"text,review\na,b\na,b,c\n", "line 3: found 3 fields, expected 2"),
        ("rows.csv", b'text,review\na,b\n"open,b\n', "line 3: a quote that opens here is never closed"),
        ("rows.csv", b"text,review\na,\xe9\n", "line 2: byte 0xe9"),
        ("rows.csv.gz", b"text,review\na,b\n", "cannot be unpacked"),
        ("rows.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 99, mtime=0)[:-9], "cannot be unpacked"),
        ("rows.xlsx", b"PK", "cannot tell the format from '.xlsx'"),
        ("rows.jsonl", b"[1]\n", "line 1: found [1], expected a JSON object"),
    ],
)
def test_a_broken_table_is_named(tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    found = message(lambda: list(read_rows(path, {})))
    assert str(path) in found and expected in found


def test_an_absent_file_is_named_for_every_format(tmp_path: Path) -> None:
    for name in ("no.jsonl", "no.csv", "no.jsonl.gz"):
        assert "no such file" in message(lambda name=name: list(read_rows(tmp_path / name, {})))  # type: ignore[misc]
    assert "cannot be read" in message(lambda: list(read_json_lines(tmp_path)))


def test_usual_column_names_are_found_and_mapping_comes_first(tmp_path: Path) -> None:
    raw = {
        "reviewerID": "ann",
        "asin": 7,
        "overall": "4",
        "reviewText": "fine",
        "plot": "p",
        "Date": "2020-01-01",
        "other": "q",
    }
    (review,), _ = reviews_of(lines(tmp_path / "r.jsonl", [raw]), scale=(1, 5))
    assert (review.reviewer_id, review.item_id, review.text, review.time) == ("ann", "7", "p", "2020-01-01")
    # 1 + 9 * (4 - 1) / (5 - 1) = 7.75
    assert (review.score, review.original_score) == (8, 4.0)
    (mapped,), _ = reviews_of(tmp_path / "r.jsonl", scale=(1, 5), columns={"text": "other+plot"})
    assert mapped.text == "q\np"


def test_a_missing_column_lists_those_found_the_nearest_and_the_option(tmp_path: Path) -> None:
    path = lines(tmp_path / "r.jsonl", [{"reviewer_id": "ann", "item_id": "i", "scor": 7, "review": "r", "text": "t"}])
    found = message(lambda: reviews_of(path))
    assert "field 'score' (nearest: 'scor')" in found
    assert "columns found: reviewer_id, item_id, scor, review, text; give --map score=COLUMN" in found
    assert "no column 'points'" in message(lambda: reviews_of(path, columns={"score": "points"}))
    assert "no field 'scoer' (nearest: 'score')" in message(lambda: reviews_of(path, columns={"scoer": "scor"}))


def test_a_column_with_a_plus_in_its_name_is_taken_whole(tmp_path: Path) -> None:
    (review,), _ = reviews_of(lines(tmp_path / "r.jsonl", [GOOD | {"a+b": "whole", "a": "x"}]), columns={"text": "a+b"})
    assert review.text == "whole"


BAD_REVIEWS = [
    ({"score": "seven"}, "field 'score': found \"seven\", expected a number from 1 to 10", "score not a number"),
    ({"score": None}, "field 'score': found null, expected a number", "score not a number"),
    ({"score": True}, "field 'score': found true, expected a number", "score not a number"),
    ({"score": "nan"}, "field 'score': found \"nan\", expected a number", "score not a number"),
    ({"score": 11}, "field 'score': found 11, expected a number from 1 to 10; give --scale", "score off the scale"),
    ({"review": " "}, "field 'review': found nothing, expected a text", "empty review"),
    ({"review": ["x"]}, "field 'review': found [\"x\"], expected a text", "not a text"),
    ({"text": ""}, "field 'text': found nothing", "empty text"),
    ({"reviewer_id": ""}, "field 'reviewer_id': found nothing", "no reviewer"),
    ({"item_id": "i1", "reviewer_id": "ann"}, "already reviewed 'i1' on line 1", "reviewed twice"),
]


@pytest.mark.parametrize(("change", "expected", "reason"), BAD_REVIEWS)
def test_a_bad_review_is_one_sentence_or_counted(tmp_path: Path, change: dict[str, Any], expected: str, reason: str) -> None:
    path = lines(tmp_path / "r.jsonl", [GOOD, GOOD | {"item_id": "i2"} | change])
    found = message(lambda: reviews_of(path))
    assert found.startswith(f"{path}, line 2: ") and expected in found
    reviews, problems = reviews_of(path, skip=True)
    assert [review.item_id for review in reviews] == ["i1"] and problems == {reason: 1}


def test_a_row_without_a_column_that_others_have_can_be_dropped(tmp_path: Path) -> None:
    path = lines(tmp_path / "r.jsonl", [GOOD, {"reviewer_id": "bob", "item_id": "i", "review": "r", "text": "t"}])
    assert "line 2: no column for field 'score'" in message(lambda: reviews_of(path))
    assert reviews_of(path, skip=True)[1] == {"column missing": 1}


def test_dropping_every_row_is_an_error_that_shows_the_first(tmp_path: Path) -> None:
    path = lines(tmp_path / "r.jsonl", [{"who": "ann"}, {"who": "bob"}])
    assert "no usable row; the first:" in message(lambda: reviews_of(path, skip=True))


def test_a_broken_line_is_skipped_and_listed_but_a_broken_file_stays_an_error(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("{oops\n" + json.dumps(GOOD) + "\n[1]\n", "utf-8")
    path.write_bytes(path.read_bytes() + b"\xff\n")
    faults = Faults("skip")
    assert len(read_reviews(path, None, faults, columns={}, scale=(1, 10))) == 1
    assert [(bad.line, bad.reason) for bad in faults.rows] == [(1, "not JSON"), (3, "no JSON object"), (4, "not UTF-8")]
    assert "line 1: not JSON" in message(lambda: reviews_of(path))
    assert "no such file" in message(lambda: reviews_of(tmp_path / "absent.jsonl", skip=True))


def test_a_csv_file_put_together_with_cat_names_the_header_that_stands_there_again(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("reviewer_id,text,score,review\nann,a plot,7,fine\nreviewer_id,text,score,review\nbob,a plot,8,too,long\n")
    assert "line 3: the header stands here again" in message(lambda: reviews_of(path))
    found, counts = reviews_of(path, skip=True)
    assert len(found) == 1
    assert counts == {"the header again": 1, "fields do not fit the header": 1}


def test_a_long_cell_is_read_and_one_beyond_all_measure_is_told_as_that(tmp_path: Path) -> None:
    path, faults = tmp_path / "r.csv", Faults("skip")
    long = "word " * 40_000  # 200,000 characters; Python alone reads 131,072
    path.write_text(f"user,comment\nann,{long}\nbob,{'x' * (LONGEST_CELL + 1)}\ncyd,fine\n", "utf-8")
    assert [row.values for row in read_rows(path, {}, faults)] == [
        {"user": "ann", "comment": long},
        {"user": "cyd", "comment": "fine"},
    ]
    assert [str(bad) for bad in faults.rows] == [
        f"{path}, line 3: a cell has more than 10,000,000 characters; shorten it, or close its quote"
    ]
    assert faults.met == {"a cell too long": 1}


def test_texts_come_from_the_items_file(tmp_path: Path) -> None:
    rows = [{"critic": "ann", "film": "f1", "score": 7, "review": "fine"}]
    path = lines(tmp_path / "r.jsonl", rows)
    items = lines(tmp_path / "items.jsonl", [{"film": "f1", "story": "a plot"}, {"film": "f2", "story": "b"}])
    (review,), _ = reviews_of(path, items=items, columns={"item_id": "film", "text": "story"})
    assert (review.item_id, review.text) == ("f1", "a plot")
    other = lines(tmp_path / "other.jsonl", [{"key": "f1", "plot": "a plot"}])
    assert "give --map items.item_id=COLUMN" in message(lambda: reviews_of(path, items=other, columns={"item_id": "film"}))
    (review,), _ = reviews_of(path, items=other, columns={"item_id": "film", "items.item_id": "key"})
    assert review.text == "a plot"
    assert "give --map items.text=COLUMN" in message(lambda: reviews_of(path, items=items, columns={"item_id": "film"}))


@pytest.mark.parametrize(
    ("items", "expected", "reason"),
    [
        ([{"item_id": "i9", "text": "x"}], "which {items} lacks, or has no text for", "item without text in the items file"),
        ([{"item_id": "i1", "text": "x"}, {"item_id": "i1", "text": "y"}], "already stands on line 1", "item listed twice"),
        ([{"item_id": "i1", "text": "x"}, {"item_id": "i2", "text": ""}], "line 2: field 'text'", "item without text"),
    ],
)
def test_trouble_with_items_is_named_or_counted(tmp_path: Path, items: list[Any], expected: str, reason: str) -> None:
    path = lines(tmp_path / "r.jsonl", [GOOD, GOOD | {"item_id": "i9"}])
    items_path = lines(tmp_path / "items.jsonl", items)
    assert expected.format(items=items_path) in message(lambda: reviews_of(path, items=items_path))
    assert reviews_of(path, items=items_path, skip=True)[1][reason] == 1


def test_reviews_without_item_ids_share_an_item_when_they_share_a_text(tmp_path: Path) -> None:
    rows = [
        {"user": name, "plot": plot, "rating": 5, "comment": "c"} for name, plot in [("a", "Same  Plot"), ("b", "same plot")]
    ]
    first, second = reviews_of(lines(tmp_path / "r.jsonl", rows))[0]
    assert first.item_id == second.item_id


def test_rows_of_one_pair_merge_into_one_comparison_even_swapped(tmp_path: Path) -> None:
    swapped = {"text_a": "two", "text_b": "one", "aspect": "Surprise", "preference": "Plot A"}
    rows = [PAIR, PAIR | swapped, PAIR | swapped | {"reviewer_id": "bob"}]
    ann, bob = pairs_of(lines(tmp_path / "p.jsonl", rows))[0]
    # Ann's Surprise prefers "two", which is text B in the order of her first row.
    assert (ann.text_a, ann.preference) == ("one", {"Ending": "A", "Surprise": "B"})
    assert (bob.text_a, bob.preference) == ("two", {"Surprise": "A"})
    assert ann.pair_id == bob.pair_id


@pytest.mark.parametrize("said", ["b", "B", "Plot B", " plot  b "])
def test_preferences_are_read_in_any_case(tmp_path: Path, said: str) -> None:
    (one,), _ = pairs_of(lines(tmp_path / "p.jsonl", [PAIR | {"preference": said}]))
    assert one.preference == {"Ending": "B"}


def test_undecided_answers_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [PAIR] + [
        PAIR | {"text_a": f"x{n}", "preference": said} for n, said in enumerate(["both", "Neither", "tie", "", None])
    ]
    comparisons, problems = pairs_of(lines(tmp_path / "p.jsonl", rows))
    assert len(comparisons) == 1
    assert problems == {"preference 'both'": 1, "preference 'neither'": 1, "preference 'tie'": 1, "no preference": 2}


@pytest.mark.parametrize(
    ("change", "expected", "reason"),
    [
        ({"text_a": "new", "preference": 1}, "found 1, expected A or B", "preference not A or B"),
        ({"text_a": "new", "preference": "2"}, 'found "2", expected A or B', "preference not A or B"),
        ({}, "already judged 'Ending' of this pair on line 1", "judged twice"),
        ({"text_a": "two", "text_b": "one"}, "already judged 'Ending' of this pair on line 1", "judged twice"),
        ({"text_a": "Two", "text_b": "two "}, "the same text as text_a", "the same text twice"),
        ({"text_a": ""}, "field 'text_a': found nothing", "empty text"),
        ({"text_a": "new", "aspect": ""}, "field 'aspect': found nothing", "no aspect"),
    ],
)
def test_a_bad_pair_is_one_sentence_or_counted(tmp_path: Path, change: dict[str, Any], expected: str, reason: str) -> None:
    path = lines(tmp_path / "p.jsonl", [PAIR, PAIR | change])
    found = message(lambda: pairs_of(path))
    assert found.startswith(f"{path}, line 2: ") and expected in found
    comparisons, problems = pairs_of(path, skip=True)
    assert [one.preference for one in comparisons] == [{"Ending": "A"}] and problems == {reason: 1}


def test_pairs_can_name_items(tmp_path: Path) -> None:
    rows = [{"annotator": "ann", "aspect": "Ending", "item_a": "i1", "item_b": "i2", "pref": "B"}]
    path = lines(tmp_path / "p.jsonl", rows)
    items = lines(tmp_path / "items.jsonl", [{"id": "i1", "plot": "one"}, {"id": "i2", "plot": "two"}])
    (one,), _ = pairs_of(path, items=items)
    assert (one.text_a, one.text_b, one.preference) == ("one", "two", {"Ending": "B"})
    fewer = lines(tmp_path / "fewer.jsonl", [{"id": "i1", "plot": "one"}])
    assert "field 'item_b': found 'i2'" in message(lambda: pairs_of(path, items=fewer))


def test_parts_of_a_text_are_never_guessed_to_be_the_whole(tmp_path: Path) -> None:
    row = {"annotator": "ann", "aspect": "e", "story_a": "s", "ending_a": "x", "story_b": "s", "ending_b": "y", "pref": "A"}
    path = lines(tmp_path / "p.jsonl", [row])
    assert "join several with +" in message(lambda: pairs_of(path))
    (one,), _ = pairs_of(path, columns={"text_a": "story_a+ending_a", "text_b": "story_b+ending_b"})
    assert (one.text_a, one.text_b) == ("s\nx", "s\ny")


def test_seconds_with_a_fraction_are_a_time_as_whole_ones_are(tmp_path: Path) -> None:
    rows = [{**GOOD, "item_id": f"i{n}", "time": 1577836800.5 + n} for n in range(2)]
    found, counts = reviews_of(lines(tmp_path / "r.jsonl", rows))
    assert [one.time for one in found] == ["1577836800.5", "1577836801.5"] and not counts


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_table_in_utf_16_is_told_to_be_one(tmp_path: Path, encoding: str) -> None:
    """What spreadsheets save as Unicode text; its columns were called by names full of NULs."""
    place = tmp_path / "reviews.csv"
    place.write_bytes("\ufeffreader,book,score\nann,b1,3\n".encode(encoding))
    for read in (column_names, lambda path: list(read_records(path, Faults("skip")))):
        with pytest.raises(BadInput, match="is UTF-16, .*; save it as UTF-8"):
            read(place)
