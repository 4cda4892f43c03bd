"""The readers of published corpora: every shape they came in, and every rule for what does not fit."""

import csv
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import SHARED

from perse.data.sources import recognised
from perse.data.sources.amazon import (
    NINE_COLUMNS,
    amazon_reviews_as_records,
    category_of,
    iso_date,
    plain_text,
    read_amazon,
    read_product_texts,
)
from perse.data.sources.doc import read_doc
from perse.data.sources.faults import Faults
from perse.data.sources.mpst import plot_texts, read_mpst
from perse.data.sources.rows import read_rows
from perse.data.sources.table import read_reviews
from perse.errors import BadInput
from perse.records.dates import sortable

quick = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(path: Path, content: str) -> Path:
    """`content` as a file, packed if the name says so."""
    path.write_bytes(gzip.compress(content.encode(), 1) if path.suffix == ".gz" else content.encode())
    return path


def lines(path: Path, rows: Sequence[Any]) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def table(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def message(call: Callable[[], object]) -> str:
    with pytest.raises(BadInput) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@quick
@given(rows=st.lists(st.tuples(*[st.text(st.characters(exclude_categories=["Cs"]), max_size=30)] * 2), min_size=1, max_size=6))
def test_csv_written_by_python_comes_back_with_the_line_that_each_record_starts_on(
    tmp_path: Path, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path / "rows.csv"
    starts = []
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("text", "review"))
        for row in rows:
            file.flush()
            starts.append(path.read_bytes().count(b"\n") + 1)
            writer.writerow(row)
    wanted = [(line, *row) for line, row in zip(starts, rows, strict=True) if row != ("text", "review")]
    assert [(row.line, row.get("text"), row.get("review")) for row in read_rows(path, {}, Faults("skip"))] == wanted


# --- MPST

MPST_HEADER = ("imdb_id", "title", "plot_synopsis", "tags", "split", "synopsis_source")


def mpst(path: Path, *rows: tuple[str, str, str]) -> Path:
    return table(path, [MPST_HEADER, *((*row, "cult, violence", "train", "imdb") for row in rows)])


def test_mpst_plots_of_many_lines_are_read_with_their_titles(tmp_path: Path) -> None:
    path = mpst(tmp_path / "m.csv", ("tt1", "One, Two", 'A man says "no".\n\nHe leaves.'), ("tt2", "", "Another."))
    plots = read_mpst(path, Faults())
    assert [(plot.item_id, plot.title, plot.text) for plot in plots.values()] == [
        ("tt1", "One, Two", 'A man says "no".\n\nHe leaves.'),
        ("tt2", None, "Another."),
    ]


def test_any_table_of_plots_is_read_as_mpst_is(tmp_path: Path) -> None:
    path = lines(tmp_path / "plots.jsonl", [{"id": "f1", "plot": "A plot."}])
    (plot,) = read_mpst(path, Faults()).values()
    assert (plot.item_id, plot.title, plot.text) == ("f1", None, "A plot.")


@pytest.mark.parametrize(
    ("row", "reason", "expected"),
    [
        (("tt1", "Again", "Other plot."), "item listed twice", "line 5: field 'item_id': 'tt1' already stands on line 2"),
        (("tt2", "Two", "  "), "item without text", "line 5: field 'text': found nothing"),
        (("", "Two", "A plot."), "item without id", "line 5: field 'item_id': found nothing"),
    ],
)
def test_a_bad_mpst_row_is_named_or_counted(tmp_path: Path, row: tuple[str, str, str], reason: str, expected: str) -> None:
    path = mpst(tmp_path / "m.csv", ("tt1", "One", "Three\nlines of\nplot."), row)
    assert expected in message(lambda: read_mpst(path, Faults()))
    faults = Faults("skip")
    assert list(read_mpst(path, faults)) == ["tt1"]
    assert faults.counts == {reason: 1}


def test_reviews_join_mpst_plots_by_imdb_id_and_those_without_a_plot_are_bad_rows(tmp_path: Path) -> None:
    plots = read_mpst(mpst(tmp_path / "m.csv", ("tt1", "One", "A plot.")), Faults())
    reviews = lines(
        tmp_path / "r.jsonl",
        [{"reviewer": "ann", "imdb_id": item, "rating": 7, "review": "Fine."} for item in ("tt1", "tt9")],
    )
    faults = Faults("skip")
    (review,) = read_reviews(reviews, plot_texts(plots), faults, columns={}, scale=(1, 10))
    assert (review.item_id, review.text) == ("tt1", "A plot.")
    assert faults.counts == {"item without text in the items file": 1}
    found = message(lambda: read_reviews(reviews, plot_texts(plots), Faults(), columns={}, scale=(1, 10)))
    assert "line 2: field 'item_id': found 'tt9', which the file of texts lacks" in found
    assert read_reviews(reviews, tmp_path / "m.csv", Faults("skip"), columns={}, scale=(1, 10)) == [review]


# --- Scores of tables


@pytest.mark.parametrize("value", [7, 7.0, "7", " 7 ", "7.0", "7/10", " 7 / 10 "])
def test_a_score_may_be_a_number_its_text_or_a_share_of_the_scale(tmp_path: Path, value: object) -> None:
    rows = [{"reviewer": "ann", "item_id": "a", "text": "t", "review": "r", "score": value, "rating_text": "C"}]
    (review,) = read_reviews(lines(tmp_path / "r.jsonl", rows), None, Faults(), columns={}, scale=(1, 10))
    assert review.score == 7


@pytest.mark.parametrize(
    ("value", "reason", "expected"),
    [
        ("4/5", "score out of another number", 'found "4/5", expected a number from 1 to 10; give --scale LOW-5'),
        ("12/10", "score off the scale", "give --scale"),
        ("7,5", "score not a number", "; write 7.5"),
        ("C", "score not a number", 'found "C"'),
        (False, "score not a number", "found false"),
        (float("nan"), "score not a number", "found null"),
        ("1_0", "score not a number", "expected a number"),
        ([7], "score not a number", "found [7]"),
    ],
)
def test_a_score_that_is_none_is_refused_with_the_remedy(tmp_path: Path, value: object, reason: str, expected: str) -> None:
    good = {"reviewer": "ann", "item_id": "a", "text": "t", "review": "r", "score": 5}
    path = lines(tmp_path / "r.jsonl", [good, good | {"item_id": "b", "score": value}])
    found = message(lambda: read_reviews(path, None, Faults(), columns={}, scale=(1, 10)))
    assert "line 2: field 'score'" in found and expected in found
    faults = Faults("skip")
    read_reviews(path, None, faults, columns={}, scale=(1, 10))
    assert faults.counts == {reason: 1}
    assert [(bad.line, bad.field) for bad in faults.rows] == [(2, "score")]


# --- Plot comparisons

WIDE = ("WorkerId", "Input.premise", "Input.plotA", "Input.plotB")
QUESTIONS = (
    "Which plot interests you more?",
    "Which one would make the more interesting book or movie?",
    "Which has more suspense?",
    "Whose characters do you care for?",
    "Which ending is better?",
)
ASPECTS = ["Interestingness", "Adaptability", "Surprise", "Character Development", "Ending"]


@pytest.mark.parametrize(
    "names",
    [
        QUESTIONS,
        ("Interestingness", "Adaptability", "Surprise", "Character Development", "Ending"),
        ("Answer.interesting", "Answer.adapt", "Answer.surprise", "Answer.character", "Answer.ending"),
    ],
    ids=["questions", "aspects", "mechanical turk"],
)
def test_each_question_is_known_by_its_name_or_its_words(tmp_path: Path, names: tuple[str, ...]) -> None:
    path = table(
        tmp_path / "d.csv", [(*WIDE, *names), ("w1", "A premise.", "One.", "Two.", "A", "Plot B", "plot a", "Plot 2", "B")]
    )
    (one,) = read_doc(path, Faults())
    assert one.preference == dict(zip(ASPECTS, "ABABB", strict=True))
    assert (one.reviewer_id, one.premise, one.text_a, one.text_b) == ("w1", "A premise.", "One.", "Two.")


def test_answers_that_choose_neither_are_left_out_and_counted_by_answer(tmp_path: Path) -> None:
    rows = [
        ("w1", "p", "One.", "Two.", "A", "both", "Both are good", "Neither is good", ""),
        ("w2", "p", "One.", "Two.", "both", "both", "both", "both", "both"),
    ]
    faults = Faults()
    (one,) = read_doc(table(tmp_path / "d.csv", [(*WIDE, *QUESTIONS), *rows]), faults)
    assert one.preference == {"Interestingness": "A"}
    assert faults.answers == {"preference 'both'": 7, "preference 'neither'": 1, "no preference": 1}
    assert not faults.counts, "the second row chooses nothing, but neither is bad"


def test_a_pair_shown_again_in_swapped_order_is_one_comparison_with_turned_answers(tmp_path: Path) -> None:
    rows = [("w1", "One.", "Two.", "A", ""), ("w1", "two. ", "ONE.", "", "A")]
    path = table(tmp_path / "d.csv", [("worker", "plot_1", "plot_2", "surprise", "ending"), *rows])
    (one,) = read_doc(path, Faults())
    # The second row prefers its first plot, which is the first row's B.
    assert (one.text_a, one.preference) == ("One.", {"Surprise": "A", "Ending": "B"})


@pytest.mark.parametrize(
    ("row", "reason", "expected"),
    [
        (("w1", "One.", "Two.", "B", "B"), "judged twice", "line 3: field 'preference': 'w1' already judged 'Surprise'"),
        (("w1", "Four.", "Two.", "A", "1"), "preference not A or B", "line 3: field 'ending': found \"1\""),
        (("", "Four.", "Two.", "A", "A"), "no reviewer", "line 3: field 'reviewer_id': found nothing"),
        (("w1", "Four.", "", "A", "A"), "empty text", "line 3: field 'text_b': found nothing"),
        (("w1", "Four.", "four.", "both", "A"), "the same text twice", "line 3: field 'text_b': the same text as text_a"),
    ],
)
def test_a_bad_row_of_answers_is_bad_as_a_whole(tmp_path: Path, row: tuple[str, ...], reason: str, expected: str) -> None:
    header = ("worker", "plot1", "plot2", "surprise", "ending")
    path = table(tmp_path / "d.csv", [header, ("w1", "One.", "Two.", "A", ""), row])
    assert expected in message(lambda: read_doc(path, Faults()))
    faults = Faults("skip")
    (one,) = read_doc(path, faults)
    assert one.preference == {"Surprise": "A"}
    assert faults.met == {reason: 1} and faults.answers == {"no preference": 1}


def test_questions_are_mapped_by_aspect_and_two_columns_for_one_are_refused(tmp_path: Path) -> None:
    header = ("worker", "plot_a", "plot_b", "q1", "ending", "ending_again")
    path = table(tmp_path / "d.csv", [header, ("w1", "One.", "Two.", "A", "B", "A")])
    assert "columns 'ending' and 'ending_again' both seem to be about Ending" in message(lambda: read_doc(path, Faults()))
    (one,) = read_doc(path, Faults(), columns={"interestingness": "q1", "Ending": "ending_again"})
    assert one.preference == {"Interestingness": "A", "Ending": "A"}
    wrong = message(lambda: read_doc(path, Faults(), columns={"Interestingness": "q9"}))
    assert "no column 'q9' (nearest: 'q1')" in wrong
    assert "no field 'Endng' (nearest: 'Ending')" in message(lambda: read_doc(path, Faults(), columns={"Endng": "q1"}))


def test_a_table_without_questions_says_what_was_expected(tmp_path: Path) -> None:
    path = table(tmp_path / "d.csv", [("worker", "plot_a", "plot_b", "q1"), ("w1", "One.", "Two.", "A")])
    assert "no question found among the columns worker, plot_a, plot_b, q1" in message(lambda: read_doc(path, Faults()))


def test_a_row_for_each_question_is_read_too(tmp_path: Path) -> None:
    rows = [
        {"WorkerId": "w1", "Input.plotA": "One.", "Input.plotB": "Two.", "aspect": aspect, "Answer.choice": said}
        for aspect, said in (("Ending", "A"), ("Surprise", "both"), ("Humour", "Plot B"))
    ]
    faults = Faults()
    (one,) = read_doc(lines(tmp_path / "d.jsonl", rows), faults)
    assert one.preference == {"Ending": "A", "Humour": "B"}
    assert faults.counts == {"preference 'both'": 1}


# --- Amazon

OLD = {
    "reviewerID": "A1",
    "asin": "B000000001",
    "reviewerName": "Ann",
    "helpful": [0, 0],
    "reviewText": "Sounds fine.",
    "overall": 4.0,
    "summary": "Fine",
    "unixReviewTime": 1393545600,
    "reviewTime": "02 28, 2014",
}
NEWER = OLD | {"style": {"Color:": " Red"}, "image": ["x.jpg"], "vote": "1,024", "verified": True}
NEWEST = {
    "rating": 4.0,
    "title": "Fine",
    "text": "Sounds<br />fine.",
    "images": [],
    "asin": "B000000009",
    "parent_asin": "B000000001",
    "user_id": "A1",
    "timestamp": 1393595130123,
    "helpful_vote": 0,
    "verified_purchase": True,
}


@pytest.mark.parametrize("name", ["r.json", "r.json.gz", "r.jsonl"])
@pytest.mark.parametrize("row", [OLD, NEWER, NEWEST], ids=["2014", "2018", "2023"])
def test_every_published_shape_of_a_review_is_read(tmp_path: Path, name: str, row: dict[str, Any]) -> None:
    (one,) = read_amazon(lines(tmp_path / name, [row]), Faults())
    assert (one.reviewer_id, one.item_id, one.score, one.title) == ("A1", "B000000001", 4.0, "Fine")
    # 1393595130 s is 2014-02-28 13:45:30 UTC; the older files have midnight for the time of day.
    assert (one.review, one.time) == (
        ("Sounds\nfine.", "2014-02-28T13:45:30") if row is NEWEST else ("Sounds fine.", "2014-02-28")
    )


def nine(**changes: object) -> list[str]:
    row = OLD | changes
    return [str(row[name]) for name in NINE_COLUMNS]


def test_csv_is_read_with_and_without_its_header(tmp_path: Path) -> None:
    rows = [nine(), nine(reviewerID="A2", reviewText="Two\nlines.", overall="5")]
    headed = read_amazon(table(tmp_path / "r.csv", [NINE_COLUMNS, *rows]), Faults())
    assert [one.review for one in headed] == ["Sounds fine.", "Two\nlines."]
    assert read_amazon(table(tmp_path / "bare.csv", rows), Faults()) == headed


@pytest.mark.parametrize(
    "rows",
    [
        [("A1", "B000000001", "4.0", "1393545600")],
        [("B000000001", "A1XXXXXXXXXXXX", "4.0", "1393545600")],
        [("UserId", "ProductId", "Rating", "Timestamp"), ("A1", "B000000001", "4.0", "1393545600")],
        [("user_id", "parent_asin", "rating", "timestamp"), ("A1", "B000000001", "4.0", "1393545600")],
    ],
    ids=["user first", "item first", "older header", "newer header"],
)
def test_ratings_without_texts_are_refused_in_one_sentence(tmp_path: Path, rows: list[tuple[str, ...]]) -> None:
    path = table(tmp_path / "ratings.csv", rows)
    assert "holds ratings without review texts; take the reviews file" in message(lambda: read_amazon(path, Faults()))
    assert recognised(path).title == "ratings without review texts"


def test_reviews_without_text_are_left_out_and_counted_but_never_an_error(tmp_path: Path) -> None:
    absent = {name: value for name, value in OLD.items() if name != "reviewText"}
    faults = Faults()
    rows = [OLD, absent | {"asin": "B000000002"}, OLD | {"asin": "B000000003", "reviewText": " "}]
    assert len(read_amazon(lines(tmp_path / "r.json", rows), faults)) == 1
    assert faults.counts == {"no review text": 2}
    assert "without review texts" in message(lambda: read_amazon(lines(tmp_path / "none.json", [absent]), Faults()))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_latest_review_of_a_product_stays_whatever_the_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    rows = [OLD | {"reviewText": f"Try {n}.", "unixReviewTime": 1393545600 + n * 86400} for n in range(3)]
    faults = Faults()
    (one,) = read_amazon(lines(tmp_path / "r.json", [rows[n] for n in order]), faults)
    assert (one.review, one.time) == ("Try 2.", "2014-03-02")
    assert faults.counts == {"an older review of the same product by the same reviewer": 2}


def test_of_two_reviews_of_one_time_the_later_line_stays(tmp_path: Path) -> None:
    (one,) = read_amazon(lines(tmp_path / "r.json", [OLD, OLD | {"reviewText": "Second."}]), Faults())
    assert one.review == "Second."


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"overall": 6}, "score off the scale"),
        ({"overall": "good"}, "score not a number"),
        ({"overall": "4/10"}, "score out of another number"),
        ({"reviewerID": ""}, "no reviewer"),
        ({"asin": None}, "no item"),
        ({"reviewText": ["x"]}, "not a text"),
    ],
)
def test_a_bad_amazon_row_is_named_or_counted(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    path = lines(tmp_path / "r.json", [OLD, OLD | {"asin": "B000000002"} | change])
    assert f"{path}, line 2: field" in message(lambda: read_amazon(path, Faults()))
    faults = Faults("skip")
    assert len(read_amazon(path, faults)) == 1
    assert faults.counts == {reason: 1}


@pytest.mark.parametrize(
    ("value", "time"), [("02 9, 2014", "2014-02-09"), ("soon", None), (None, None), ("2014-02-09", "2014-02-09")]
)
def test_a_time_that_cannot_be_read_is_absent(tmp_path: Path, value: str | None, time: str | None) -> None:
    row = {name: value for name, value in OLD.items() if name != "unixReviewTime"} | {"reviewTime": value}
    assert read_amazon(lines(tmp_path / "r.json", [row]), Faults())[0].time == time


PRODUCTS_2014 = "{'asin': 'B000000001', 'title': \"Ann's pick\", 'description': 'A &quot;pick&quot;.<br>Thin.', 'salesRank': {'Music': 1}}\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (PRODUCTS_2014, 'Ann\'s pick\nA "pick".\nThin.'),
        (
            '{"asin": "B000000001", "title": "Pick", "description": ["A pick.", "", "<b>Th</b>in &amp; red."]}\n',
            "Pick\nA pick.\nThin & red.",
        ),
        ('{"parent_asin": "B000000001", "title": "Pick", "description": [], "features": ["Thin", "Red"]}\n', "Pick\nThin\nRed"),
        ('{"asin": "B000000001", "description": "A pick."}\n', "A pick."),
    ],
    ids=["2014", "2018", "2023", "no title"],
)
@pytest.mark.parametrize("name", ["meta.json", "meta.json.gz"])
def test_every_published_shape_of_a_product_is_read(tmp_path: Path, content: str, text: str, name: str) -> None:
    assert read_product_texts(write(tmp_path / name, content), Faults()) == {"B000000001": text}


@pytest.mark.parametrize(
    "line",
    [
        "{'asin': open('x')}",
        "{'asin': __import__('os').getcwd()}",
        "{'asin': 'B1', 'title': b'x'}",
        "{'asin': 'B1', 'title': {1, 2}}",
        "{'asin': 'B1', 'rank': 1e999}",
        "{'asin': '\\ud800'}",
        "{'asin': 'B1', 'title': '" + "x" * 200_000 + "'}",
        "(" * 500 + ")" * 500,
        "-" * 100_000 + "1",
    ],
    ids=["call", "import", "bytes", "set", "infinite", "half a character", "too long", "nested", "signs"],
)
def test_a_literal_is_built_and_never_run(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "meta.json", PRODUCTS_2014 + line + "\n")
    assert "line 2: not JSON" in message(lambda: read_product_texts(path, Faults()))
    faults = Faults("skip")
    assert len(read_product_texts(path, faults)) == 1
    assert faults.counts == {"not JSON": 1}


def test_products_without_text_or_listed_again_are_left_out_and_only_wanted_ones_kept(tmp_path: Path) -> None:
    rows = [
        {"asin": "B1", "title": "One"},
        {"asin": "B1", "title": "Other"},
        {"asin": "B2", "title": "", "description": []},
        {"asin": "B3", "title": "Three"},
    ]
    faults = Faults()
    assert read_product_texts(lines(tmp_path / "m.json", rows), faults, wanted={"B1", "B2"}) == {"B1": "One"}
    assert faults.counts == {"product listed twice": 1, "product without text": 1}


def test_reviews_and_products_become_records_on_the_scale_of_ten(tmp_path: Path) -> None:
    reviews = lines(tmp_path / "r.json", [OLD, OLD | {"asin": "B000000002"}, OLD | {"reviewerID": "A2", "overall": 1}])
    meta = lines(tmp_path / "m.json", [{"asin": "B000000001", "title": "Pick"}])
    faults = Faults()
    first, second = amazon_reviews_as_records(reviews, meta, faults)
    # 1 + 9 * (4 - 1) / (5 - 1) = 7.75
    assert (first.review_id, first.text, first.score, first.original_score) == ("A1-r001", "Pick", 8, 4.0)
    assert (second.reviewer_id, second.score) == ("A2", 1)
    assert faults.counts == {"product not in the meta file": 1}
    other = lines(tmp_path / "o.json", [{"asin": "B9", "title": "Drum"}])
    assert "has none of the 2 products" in message(lambda: amazon_reviews_as_records(reviews, other, Faults()))


@pytest.mark.parametrize(
    ("html", "plain"),
    [
        ("plain", "plain"),
        ("a &lt;b&gt; &#34;c&#34;", 'a <b> "c"'),
        ("<p>One</p><p>two <em>th</em>ree</p>", "One\ntwo three"),
        ("a<script>var x = '<p>';</script>b<style type='x'>p{}</style>c", "abc"),
        ("5 < 6 and 7 > 6, <3", "5 < 6 and 7 > 6, <3"),
        ("<script>" * 3 + "never closed", ""),
    ],
)
def test_html_is_taken_out_of_texts(html: str, plain: str) -> None:
    assert plain_text(html) == plain


@quick
@given(st.text("<>/abscript &;#3\n", max_size=60))
def test_taking_html_out_never_fails(text: str) -> None:
    assert plain_text(text) == plain_text(text).strip()


def test_the_category_is_in_the_name_of_the_file() -> None:
    names = ["reviews_Musical_Instruments_5.json.gz", "Musical_Instruments.csv", "meta_Musical_Instruments.jsonl"]
    assert {category_of(Path(name)) for name in names} == {"Musical Instruments"}


@pytest.mark.skipif(not SHARED.exists(), reason="the shared real data is not here")
def test_the_real_amazon_sample_is_read_the_same_with_and_without_its_header(tmp_path: Path) -> None:
    path = SHARED / "amazon_reviews" / "Musical_Instruments.csv"
    faults = Faults()
    reviews = read_amazon(path, faults)
    assert (len(reviews), faults.counts) == (5048, {"no review text": 2})
    bare = write(tmp_path / "bare.csv", path.read_text("utf-8").split("\n", 1)[1])
    assert read_amazon(bare, Faults()) == reviews
    assert all(one.time is not None for one in reviews)


@pytest.mark.parametrize("who", ["reviewerID", "user_id"])
def test_a_file_of_reviews_is_not_taken_for_products(tmp_path: Path, who: str) -> None:
    """The headline of a review (`title`, `summary`) would become the text of its product."""
    rows = [{who: "A1", "asin": "B000000001", "title": "Love it", "summary": "Love it", "reviewText": "fine", "overall": 5}]
    reviews = lines(tmp_path / "r.json", rows)
    with pytest.raises(BadInput, match=r"r.json: holds reviews, not products .*; give the category's meta file"):
        read_product_texts(reviews, Faults("skip"))


def test_features_of_2018_are_read(tmp_path: Path) -> None:
    meta = lines(tmp_path / "m.json", [{"asin": "B000000001", "title": "Pick", "feature": ["thin", "red"]}])
    assert read_product_texts(meta, Faults()) == {"B000000001": "Pick\nthin\nred"}


@pytest.mark.parametrize("written", ["September 10, 2012", "Sep 10, 2012", "sept. 10, 2012"])
def test_a_month_by_name_is_a_date(written: str) -> None:
    assert iso_date(written) == "2012-09-10"
    assert sortable(written) == sortable("2012-09-10")
    assert sortable("September 31, 2012") is None
