"""`Judge.score`: data frames, dicts and tuples in; every reader is asked about every text that they have not reviewed."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from evaluation_builders import answered, fitted

from perse import BadInput, Judge, Judgement, Judgements, JudgeSettings
from perse.judging.tables import is_pandas, read_tables
from perse.records import PointwiseExample

PLOTS = {
    "sea": "A sailor waits for a letter that the sea keeps, and learns to read the tides instead.",
    "hill": "Two sisters build a tower on a hill nobody wants, until the whole town moves in.",
    "house": "A house is sold five times in one night, and each buyer finds another door in it.",
}
REVIEWS = [("ann", PLOTS["sea"], "slow but true", 8), ("bob", PLOTS["sea"], "nothing happens", 2)]
TEXTS = [*PLOTS.items()]
QUICK: dict[str, Any] = {"question": "pointwise_score", "settings": JudgeSettings(temperature=0)}


@pytest.fixture(scope="module")
def judge(answering_model: Path) -> Judge:
    return Judge.load(answering_model, dtype="float32")


def asked(reviews: Any, texts: Any, **more: Any) -> list[PointwiseExample]:
    given = {"columns": {}, "scale": None, "k": None, "candidates": None} | more
    return read_tables(reviews, texts, given.pop("candidates"), **given).asked.examples


def pairs(examples: list[PointwiseExample]) -> list[tuple[str, str]]:
    return [(one.reviewer_id, one.item_id) for one in examples]


def test_every_reader_is_asked_about_every_text_that_they_have_not_reviewed(judge: Judge) -> None:
    found = judge.score(REVIEWS, TEXTS, **QUICK)
    assert isinstance(found, Judgements) and [one.id for one in found] == ["ann/hill", "ann/house", "bob/hill", "bob/house"]
    assert all(one.status == "ok" and one.question == "pointwise_score" and one.k_effective == 1 for one in found)
    assert found.rows()[0].keys() >= {"reviewer_id", "item_id", "expected", "likeliest", "label", "p_1", "p_10"}
    alone = judge.ask_one(reviews=[REVIEWS[0][1:]], text=PLOTS["hill"], **QUICK)
    assert found[0].distribution == pytest.approx(alone.distribution, abs=1e-4), "what ask_one says of the same"


def test_data_frames_of_pandas_come_back_as_one_that_joins_with_what_was_given(judge: Judge) -> None:
    pandas = pytest.importorskip("pandas")
    reviews = pandas.DataFrame({"user": ["ann", "bob"], "movie_id": [1, 1], "stars": [5, 1.5], "comment": ["fine", "no"]})
    texts = pandas.DataFrame({"id": [1, 2, 3], "plot": [*PLOTS.values()], "year": [1990, 1991, None]})
    found = judge.score(reviews, texts, scale=(1, 5), **QUICK)
    assert isinstance(found, pandas.DataFrame) and found["reviewer_id"].tolist() == ["ann", "ann", "bob", "bob"]
    assert found["item_id"].tolist() == [2, 3, 2, 3] and found["expected"].between(1, 10).all()
    assert found["own_expected"].between(1, 5).all() and (found["own_high"] == 5).all()
    assert found[[f"p_{n}" for n in range(1, 11)]].sum(axis=1).tolist() == pytest.approx([1] * 4)
    assert len(found.merge(texts, left_on="item_id", right_on="id")) == 4


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: rows,
        lambda rows: iter(rows),
        lambda rows: [tuple(row.values()) for row in rows],
        lambda rows: pa.Table.from_pylist(rows),
        lambda rows: pytest.importorskip("pandas").DataFrame(rows),
    ],
    ids=["dicts", "a generator", "tuples", "arrow", "pandas"],
)
def test_the_same_rows_are_the_same_examples_whatever_holds_them(made: Callable[[Any], Any]) -> None:
    reviews = [dict(zip(("reviewer_id", "text", "review", "score"), row, strict=True)) for row in REVIEWS]
    texts = [{"item_id": item, "text": text} for item, text in TEXTS]
    assert asked(made(reviews), made(texts)) == asked(REVIEWS, TEXTS)


def test_bare_texts_are_known_by_their_words() -> None:
    [one, other] = asked(REVIEWS[:1], [*PLOTS.values()])
    assert one.query == PLOTS["hill"] and one.item_id.startswith("t") and one.item_id != other.item_id


@pytest.mark.parametrize("made", ["pandas", "arrow"])
def test_a_column_of_texts_is_bare_texts(made: str) -> None:
    texts = [*PLOTS.values()]
    column = pa.chunked_array([texts[:1], texts[1:]]) if made == "arrow" else pytest.importorskip("pandas").Series(texts)
    assert asked(REVIEWS, column) == asked(REVIEWS, texts)
    hollow = pa.chunked_array([["a", None]]) if made == "arrow" else pytest.importorskip("pandas").Series(["a", None])
    with pytest.raises(BadInput, match="the texts, row 2: found null"):
        asked(REVIEWS, hollow)
    with pytest.raises(BadInput, match="the reviews, row 1: found a text, expected a data frame"):
        asked(column, texts)


def test_a_stream_of_batches_that_comes_once_is_read_as_a_table() -> None:
    texts = pa.Table.from_pylist([{"item_id": item, "text": text} for item, text in TEXTS])
    assert asked(REVIEWS, texts.to_reader()) == asked(REVIEWS, TEXTS)


def test_a_data_frame_of_a_class_made_from_pandas_comes_back_as_one() -> None:
    pandas = pytest.importorskip("pandas")
    own = type("Own", (pandas.DataFrame,), {"__module__": "elsewhere"})
    assert is_pandas(own({"text": ["a"]})) and is_pandas(pandas.DataFrame())
    assert not any(map(is_pandas, (pandas.Series(["a"]), pa.table({"text": ["a"]}), [])))


def test_a_part_of_judgements_and_several_together_know_what_was_asked(judge: Judge) -> None:
    found, others = judge.score(REVIEWS, TEXTS[:2], **QUICK), judge.score(REVIEWS, TEXTS[2:], **QUICK)
    rows = found.rows() + others.rows()
    assert found[:1].rows() == rows[:1] and found[::-1].rows() == rows[1::-1] and isinstance(found[0], Judgement)
    assert (found + others).rows() == sum([found, others], Judgements()).rows() == rows
    bare = [*others]
    assert type(found + bare) is Judgements and len(found) == 2
    found += others
    assert found.rows() == rows


def test_what_a_review_is_about_is_found_by_item_among_the_texts() -> None:
    reviews = [{"user": "ann", "item": "sea", "rating": "8/10", "text": "slow but true", "date": datetime.date(2020, 1, 2)}]
    [one, _] = asked(reviews, TEXTS)
    [past] = one.profile
    assert (past.text, past.review, past.score, past.time) == (PLOTS["sea"], "slow but true", 8, "2020-01-02")


def test_a_text_that_a_reader_reviewed_is_left_out_word_for_word_and_nearly_so() -> None:
    changed = PLOTS["sea"].replace("letter", "parcel") + " " + " ".join(f"word{n}" for n in range(40))
    near = changed.replace("word39", "other")
    texts = [("again", near), ("upper", changed.upper()), ("new", PLOTS["hill"])]
    assert pairs(asked([("ann", changed, "fine", 7)], texts)) == [("ann", "new")]


def test_candidates_are_asked_alone_and_in_their_order(judge: Judge, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = judge.score(REVIEWS, TEXTS, candidates=[("bob", "house"), ("ann", "sea"), ("ann", "hill")], **QUICK)
    assert [one.id for one in found] == ["bob/house", "ann/hill"]
    assert "the reader's own reviews have the text: 1 of the candidates is left out" in caplog.text


def test_the_latest_reviews_are_shown_by_their_dates_and_else_by_their_order() -> None:
    rows = [
        {"reader": "ann", "text": f"{text} {n}", "review": f"r{n}", "score": n} for n in (1, 2, 3) for text in ("A tale of",)
    ]
    [one] = asked(rows, ["A new one"], k=2)
    assert [past.review for past in one.profile] == ["r2", "r3"]
    dated = [row | {"time": f"2020-01-0{4 - n}"} for n, row in enumerate(rows, start=1)]
    assert [past.review for past in asked(dated, ["A new one"], k=2)[0].profile] == ["r2", "r1"]
    assert asked(rows, ["A new one"], k=0)[0].profile == () and len(asked(rows, ["A new one"], k=9)[0].profile) == 3


def test_columns_that_names_do_not_tell_are_said() -> None:
    reviews = [{"who": "ann", "blurb": PLOTS["sea"], "said": "fine", "n": np.int64(7)}]
    texts = [{"key": "hill", "blurb": PLOTS["hill"]}]
    columns = {"reviewer_id": "who", "text": "blurb", "review": "said", "score": "n", "items.item_id": "key"}
    [one] = asked(reviews, texts, columns=columns)
    assert (one.item_id, one.query, one.profile[0].text) == ("hill", PLOTS["hill"], PLOTS["sea"])
    of_texts = [{"who": "ann", "item": "sea", "said": "fine", "n": 7}]
    columns["items.item_id"] = "key"
    assert pairs(asked(of_texts, [*texts, {"key": "sea", "blurb": "A sea"}], columns=columns)) == [("ann", "hill")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"reviews": 5}, r"the reviews are a number, expected a data frame, dicts, or tuples of \(reviewer_id, text, review, score\)"),
        ({"reviews": "x"}, "the reviews are a text, expected a data frame"),
        ({"reviews": {"text": ["a"]}}, "the reviews are an object, expected"),
        ({"reviews": []}, "the reviews are empty; give past reviews"),
        ({"reviews": [("ann", "a", 8)]}, "the reviews, row 1: found 3 values, expected"),
        ({"reviews": ["x"]}, "the reviews, row 1: found a text, expected"),
        ({"reviews": [*REVIEWS, ("ann", "a", "b", "good")]}, "the reviews, row 3: field 'score': found \"good\", expected a number from 1 to 10"),
        ({"reviews": [("ann", "a", "b", None)]}, "row 1: field 'score': found null, expected"),
        ({"reviews": [("ann", "a", "b", float("nan"))]}, "field 'score': found null"),
        ({"reviews": [("ann", "a", "b", True)]}, "field 'score': found true"),
        ({"reviews": [("ann", "a", "b", 60)]}, r"found 60, expected a number from 1 to 10; give scale=\(LOWEST, HIGHEST\)"),
        ({"reviews": [("ann", "a", "b", "4/5")]}, "found \"4/5\", expected a number from 1 to 10; write all out of 10"),
        ({"reviews": [("ann", "a", "b", "7,5")]}, r"found \"7,5\", expected .*; write 7.5"),
        ({"reviews": [("ann", "a", " ", 5)]}, "field 'review': found nothing, expected what the reader wrote; fill it in, or leave the row out"),
        ({"reviews": [("ann", " ", "b", 5)]}, "field 'text': found nothing, expected a text; fill it in, or leave the row out"),
        ({"reviews": [("ann", 5, "b", 5)]}, "field 'text': found 5, expected a text"),
        ({"reviews": [(None, "a", "b", 5)]}, "field 'reviewer_id': found nothing, expected an id"),
        ({"reviews": [(2.5, "a", "b", 5)]}, "field 'reviewer_id': found 2.5, expected an id"),
        ({"reviews": [("a\x07", "a", "b", 5)]}, "field 'reviewer_id': found the control character U"),
        ({"reviews": [("ann", "a\ud800", "b", 5)]}, "field 'text': found half of a surrogate pair"),
        ({"reviews": [REVIEWS[0], REVIEWS[0]]}, "row 2: field 'item_id': 'ann' already reviewed '.*' in row 1; keep one"),
        ({"reviews": [{"text": "a", "review": "b", "score": 5}]}, r"the reviews: no column for field 'reviewer_id' .*; columns found: text, review, score; rename one, or give columns={'reviewer_id': 'COLUMN'}"),
        ({"reviews": [{"user": "ann", "review": "b", "score": 5}]}, "no column for field 'item_id'; .* or the text that each review is about in a column text"),
        ({"reviews": [{"user": "ann", "item": "x", "review": "b", "score": 5}]}, "field 'item_id': found 'x', which is none of the texts; give its text"),
        ({"reviews": [{5: "ann"}]}, "row 1: a column is called 5, expected a text"),
        ({"texts": []}, "the texts are empty"),
        ({"texts": [""]}, "the texts, row 1: field 'text': found nothing"),
        ({"texts": [("a", "x"), ("a", "y")]}, "the texts, row 2: field 'item_id': found 'a', which another text has, too"),
        ({"texts": [{"item_id": "a", "blurb": "x"}]}, r"the texts: no column for field 'text'; .*columns={'items.text': 'COLUMN'}"),
        ({"texts": [{"book;blurb": "a;x"}]}, r"the texts: no column for field 'text'.*: book;blurb \(one alone: a table whose columns ';' divides, read as if another"),
        ({"texts": [PLOTS["sea"]]}, "nothing is left to judge"),
        ({"candidates": [("ann", "sea")]}, "nothing is left to judge"),
        ({"candidates": [("eve", "sea")]}, "the candidates name the reader 'eve', of whom there is no review"),
        ({"candidates": [("ann", "x")]}, "the candidates name the text 'x', which is none of the texts"),
        ({"candidates": [("ann", "hill")] * 2}, "reader 'ann' and text 'hill' twice"),
        ({"columns": {"plot": "x"}}, "columns: there is no field 'plot'"),
        ({"columns": {"text": 5}}, "columns: 'text' is a number, expected the name of a column"),
        ({"columns": {"score": "grades"}}, "the reviews: no column 'grades', to which field 'score' is mapped; columns found"),
        ({"columns": 5}, "columns is a number, expected field -> column"),
        ({"k": -1}, "k is -1, expected how many reviews"),
        ({"k": True}, "k is true, expected"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_a_sentence_with_its_place_and_remedy(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        asked(**({"reviews": REVIEWS, "texts": TEXTS} | given))


def test_a_data_frame_of_columns_that_are_none_is_a_sentence() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": ["ann", "bob"], "review": ["a", 5], "score": [1, 2], "text": ["x", "y"]})
    with pytest.raises(BadInput, match="the reviews: the data frame has a column that is no plain one"):
        asked(frame, TEXTS)
    twice = pa.table([["ann"], ["bob"]], names=["user", "user"])
    with pytest.raises(BadInput, match="the reviews: the data frame has two columns called 'user'; rename one"):
        asked(twice, TEXTS)
    with pytest.raises(BadInput, match="the reader's scale"):
        Judge.score(object(), frame, TEXTS, scale=5)  # type: ignore[call-overload]


def test_an_id_that_no_float_should_be_is_whole_again_where_pandas_made_it_one() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"user": ["ann", "ann"], "item": [1, None], "text": ["x", "y"], "review": ["a", "b"], "score": [1, 2]}
    )
    items = {past.item_id for one in asked(frame, ["new"]) for past in one.profile}
    assert "1" in items and any(item and item.startswith("t") for item in items)


def test_with_a_stacking_its_question_is_the_usual_one_and_its_values_stand_in_the_rows(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "stacking", fitted("pointwise_score"))
    for row in judge.score(REVIEWS, TEXTS, scale=(0, 20)).rows():
        assert row["question"] == "pointwise_score" and 1 <= row["stacked"] <= 10
        assert row["own_stacked"] == pytest.approx((row["stacked"] - 1) * 20 / 9, abs=1e-5)
    monkeypatch.setattr(judge, "stacking", fitted("pointwise_stated"))
    assert [row["stacked"] for row in judge.score(REVIEWS, TEXTS, **QUICK).rows()] == [None] * 4


@pytest.mark.parametrize("question", ["pointwise_evidence", "pointwise_score_evidence"])
def test_a_question_that_shows_evidence_is_not_the_usual_one_of_tables_which_bring_none(
    question: str, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "stacking", fitted(question))
    with pytest.raises(
        BadInput, match=r"no evidence, which the question '.*_evidence' shows.* question=.* pointwise_score_stated"
    ):
        judge.score(REVIEWS, TEXTS)
    settings = JudgeSettings(temperature=0)
    [one, *_] = judge.score(REVIEWS, TEXTS, question="pointwise_score_stated", settings=settings)
    assert one.status == "ok" and one.stacked is None


def test_without_a_stacking_the_usual_question_is_asked(judge: Judge) -> None:
    [one] = judge.score(REVIEWS[:1], TEXTS[:2], settings=JudgeSettings(temperature=0, max_new_tokens=4))
    assert one.question == "pointwise"


def test_why_nothing_is_stacked_stands_in_a_column_of_its_own() -> None:
    held = answered("a", "7").model_copy(update={"not_stacked": "of the training side"})
    one, other = Judgements([held, answered("b", "7")]).rows()
    assert one["not_stacked"] == "of the training side" and other["not_stacked"] is None and one["error"] is None
    assert [*one] == [*other], "one order of columns"


def test_what_stands_in_a_notebook_is_escaped_and_small() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    many = Judgements([answered(f"{hostile}{n}", "7", distribution={"7": 0.75, "8": 0.25}, text=hostile) for n in range(30)])
    page = many._repr_html_()
    assert hostile not in page and "&lt;img" in page and page.count("<tr>") == 21 and "and 10 more" in page and "7.250" in page
    alone = many[0]._repr_html_()
    assert hostile not in alone and "expected" in alone and "None" not in alone
    assert Judgements()._repr_html_().startswith("<table>")


HUGE = 10**5000


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (("ann", "a", {(1, 2): 3}, 5), "row 1: field 'review': found an object, expected a text"),
        (("ann", "a", "b", HUGE), "row 1: field 'score': found Infinity, expected a number from 1 to 10"),
        ((HUGE, "a", "b", 5), "row 1: field 'reviewer_id': found Infinity, expected an id"),
    ],
)
def test_a_value_that_json_has_no_place_for_is_told_all_the_same(row: tuple[Any, ...], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        asked([row], TEXTS)


class Broken:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise RuntimeError("the connection is gone")


def not_utf8() -> pa.Array:
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            pa.array([10**18], pa.timestamp("s")),
            "column 'seen' holds what cannot be read .*; give it as text, or leave the column out",
        ),
        (pa.array([1], pa.timestamp("us", tz="No/Where")), "column 'seen' holds what cannot be read"),
        (pa.array([10**17], pa.date64()), "column 'seen' holds what cannot be read"),
        (pa.array([2**62], pa.duration("s")), "column 'seen' holds what cannot be read"),
        (not_utf8(), "column 'seen' holds what cannot be read"),
    ],
    ids=["far", "no zone", "far day", "long", "no text"],
)
def test_a_column_that_python_cannot_hold_is_named(value: pa.Array, said: str) -> None:
    table = pa.table({"user": ["ann"], "text": ["a"], "review": ["b"], "score": [5], "seen": value})
    with pytest.raises(BadInput, match=f"the reviews: {said}"):
        asked(table, TEXTS)


def test_a_frame_that_cannot_be_given_to_arrow_is_a_sentence() -> None:
    pandas = pytest.importorskip("pandas")
    for frame in (pandas.DataFrame({"score": [10**30]}), Broken()):
        with pytest.raises(BadInput, match="the reviews: the data frame has a column that is no plain one"):
            asked(frame, TEXTS)


def test_a_missing_value_of_pandas_is_missing_in_a_dict_too() -> None:
    pandas = pytest.importorskip("pandas")
    row = {"user": "ann", "item": pandas.NA, "text": "a", "review": "b", "score": 5, "time": pandas.NA}
    [past] = asked([row], ["new"], k=np.int64(1))[0].profile
    assert past.time is None and past.item_id is not None and past.item_id.startswith("t")
    with pytest.raises(BadInput, match="row 1: field 'score': found null"):
        asked([row | {"score": pandas.NA}], TEXTS)


def test_scores_that_may_be_stars_are_told_of_the_scale(caplog: pytest.LogCaptureFixture) -> None:
    def stars(most: int, **scale: Any) -> str:
        caplog.clear()
        asked([(f"reader {n}", f"text {n}", "Good.", 1 + n % most) for n in range(12)], ["new"], **scale)
        return caplog.text

    assert "none of the 12 scores is above 5" in stars(5) and "scale=(1, 5)" in caplog.text
    assert stars(5, scale=(1, 5)) == stars(6) == "", "nothing is said where the scale is given, or cannot be of five"
