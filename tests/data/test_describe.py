"""Descriptions of files: every format is told by its columns, everything is counted, bad rows never stop it."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from described_files import PAIR, REVIEW, lines, printed
from places import SHARED

from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset.folder import load_folder
from perse.data.describing.facts import Description, Spread, describe
from perse.data.sources import SOURCES
from perse.errors import BadInput
from perse.records import example_lines

TITLES = {source.name: source.title for source in SOURCES.values()}
SHAPES: dict[str, list[dict[str, Any]]] = {
    "reviews": [REVIEW],
    "items": [{"id": "i1", "plot": "a plot"}],
    "pairs": [PAIR],
    "ratings": [{"user": "ann", "item": "i1", "rating": 7}],
    "mpst": [{"imdb_id": "tt1", "title": "One", "plot_synopsis": "a plot", "tags": "cult"}],
    "doc": [{"WorkerId": "w1", "Input.plotA": "one", "Input.plotB": "two", "Answer.ending": "Plot A"}],
    "amazon": [{"reviewerID": "A1", "asin": "B1", "reviewText": "fine", "overall": 4, "unixReviewTime": 0}],
    "products": [{"asin": "B1", "title": "Pick", "description": ["thin"]}],
    "released-mpst": [
        {
            "examples": [{"reviewer_name": "ann"}],
            "idx": 1,
            "review_index": 0,
            "prompt": ["three words long"],
            "completion": '```json{ "Review": "x", "Score": 8 }```',
        }
    ],
    "released-doc": [{"idx": 1, "review_id": "w1", "prompt": ["two words"], "completion": '{"Choice": "Plot B",}'}],
    "pointwise": [
        {
            "id": "e",
            "reviewer_id": "ann",
            "item_id": "i",
            "profile": [],
            "query": "a plot",
            "reference": {"review": "r", "score": 3},
        }
    ],
    "pairwise": [
        {
            "id": "e",
            "reviewer_id": "ann",
            "aspect": "Ending",
            "profile": [],
            "query": {"text_a": "one", "text_b": "two"},
            "reference": {"preference": "B"},
        }
    ],
    "verbatim": [{"id": "e", "prompt": "as it is"}],
    "unknown": [{"colour": "red"}],
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzipped"])
@pytest.mark.parametrize("source", SHAPES)
def test_each_format_is_told_by_its_columns_and_described(tmp_path: Path, source: str, packed: bool) -> None:
    path = lines(tmp_path / ("file.jsonl.gz" if packed else "file.jsonl"), SHAPES[source])
    found = describe(path)
    assert (found.format, found.rows, found.whole) == (TITLES[source], 1, True)
    assert found.problems.counts == {}
    assert Description.model_validate_json(found.model_dump_json()) == found
    assert found.format in printed(found) and "next: " in printed(found)
    assert found == describe(path)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "noise"])
def test_no_build_is_recommended_of_a_file_that_cannot_be_read(tmp_path: Path, name: str, encoding: str) -> None:
    header, row = "reviewer_id,item_id,review,score\n", "ann,i1,fine,5\n"
    text = header + row * 8 if name == "rows.csv" else (json.dumps(REVIEW) + "\n") * 8
    noise = random.Random(1).randbytes(3000)
    (tmp_path / name).write_bytes(noise if encoding == "noise" else text.encode(encoding))
    found = describe(tmp_path / name)
    assert found.next is None and found.problems.counts
    assert "perse data" not in printed(found) and "next: put right what is above" in printed(found)


@pytest.mark.parametrize(
    ("source", "scores", "answers"),
    [
        ("released-mpst", {"8": 1}, {}),
        ("released-doc", {}, {"preference": {"B": 1}}),
        ("pointwise", {"3": 1}, {}),
        ("pairwise", {}, {"Ending": {"B": 1}}),
        ("doc", {}, {"Ending": {"Plot A": 1}}),
        ("ratings", {"7": 1}, {}),
    ],
)
def test_scores_and_answers_are_found_where_each_format_has_them(
    tmp_path: Path, source: str, scores: dict[str, int], answers: dict[str, Any]
) -> None:
    found = describe(lines(tmp_path / "file.jsonl", SHAPES[source]))
    assert (found.scores, found.answers) == (scores, answers)


def test_people_scores_lengths_and_dates_are_counted(tmp_path: Path) -> None:
    rows = [REVIEW | {"item_id": f"i{n}", "score": 1 + n % 3, "review": "w " * (n + 1)} for n in range(6)]
    rows += [REVIEW | {"reviewer_id": "bob", "score": "4/5", "date": "10/11/2018"}]
    rows += [REVIEW | {"reviewer_id": "cyd", "score": 4.5, "date": "2020-01-02T10:00:00"}]
    found = describe(lines(tmp_path / "r.jsonl", rows))
    assert (found.reviewers, found.items, found.rows) == (3, 6, 8)
    assert found.per_reviewer is not None and found.per_reviewer.enough == 1
    assert found.per_reviewer.spread == Spread(least=1, median=1, most=6)
    assert found.scores == {"1": 2, "2": 2, "3": 2, "4.5": 1, "4/5": 1}
    # Reviews of 1, 2, 3, 4, 5, 6, 2 and 2 words: 1 2 2 2 | 3 4 5 6.
    assert found.review_words == Spread(least=1, median=2.5, most=6)
    assert found.dates is not None
    assert (found.dates.iso, found.dates.other, found.dates.first, found.dates.last) == (7, 1, "2018-11-10", "2020-01-02")
    assert found.next is None and str(found.note).endswith(
        "two reviews each, and here only one reader has so many: give a file with more"
    )


def test_bad_rows_are_counted_and_the_first_five_are_told_with_their_line(tmp_path: Path) -> None:
    rows = [REVIEW, REVIEW | {"score": "C"}, REVIEW | {"reviewer_id": ""}, REVIEW | {"review": " "}]
    path = lines(tmp_path / "r.jsonl", rows)
    path.write_bytes(path.read_bytes() + b"{oops\n" * 9 + b"\xff\n")
    found = describe(path)
    assert found.rows == 4
    assert found.problems.counts == {
        "not JSON": 9,
        # The three rows of ann about i1.
        "reviewed twice": 2,
        "empty review": 1,
        "no reviewer": 1,
        "not UTF-8": 1,
        "score not a number": 1,
    }
    assert len(found.problems.first) == 5
    assert found.problems.first[0].startswith("line 2: field 'score'")


def test_a_limit_says_that_there_is_more(tmp_path: Path) -> None:
    path = lines(tmp_path / "r.jsonl", [REVIEW | {"item_id": f"i{n}"} for n in range(3)])
    assert [(describe(path, limit=n).rows, describe(path, limit=n).whole) for n in (2, 3, 4)] == [
        (2, False),
        (3, True),
        (3, True),
    ]
    assert "the limit; there are more" in printed(describe(path, limit=2))
    with pytest.raises(BadInput, match="limit is 0"):
        describe(path, limit=0)


@pytest.mark.parametrize(
    ("scores", "bars"), [([n / 7 for n in range(50)], 10), (list(range(1, 11)), 10), (list(range(25)), 10)]
)
def test_a_histogram_of_many_scores_is_drawn_over_ten_ranges(tmp_path: Path, scores: list[float], bars: int) -> None:
    rows = [REVIEW | {"item_id": f"i{n}", "score": score} for n, score in enumerate(scores)]
    found = describe(lines(tmp_path / "r.jsonl", rows))
    shown = [line for line in printed(found).splitlines() if line.startswith("score ")]
    assert len(shown) == bars
    assert sum(int(line.split()[-1]) for line in shown) == len(scores)


@pytest.mark.parametrize("kind", ["pointwise", "pairwise"])
def test_a_data_set_folder_and_its_export_are_described(raw: Path, tmp_path: Path, kind: str) -> None:
    if kind == "pointwise":
        made = build_pointwise(PointwiseOptions(reviews=raw / "reviews.jsonl", items=raw / "items.jsonl", out=tmp_path / "out"))
    else:
        made = build_pairwise(PairwiseOptions(pairs=raw / "pairs.jsonl", out=tmp_path / "out"))
    found = describe(tmp_path / "out")
    assert (found.format, found.sha256, found.rows, found.reviewers) == (
        "perse data set",
        made.digest,
        made.records,
        made.reviewers,
    )
    assert bool(found.scores) == (kind == "pointwise") and bool(found.answers) == (kind == "pairwise")
    exported = tmp_path / "valid.jsonl"
    exported.write_text("".join(example_lines(load_folder(tmp_path / "out").examples("valid"))), "utf-8")
    assert describe(exported).format == f"{kind} examples"


def test_no_export_is_recommended_of_a_data_set_that_this_perse_does_not_read(raw: Path, tmp_path: Path) -> None:
    build_pointwise(PointwiseOptions(reviews=raw / "reviews.jsonl", items=raw / "items.jsonl", out=tmp_path / "out"))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    (tmp_path / "out" / "manifest.json").write_text(json.dumps({**manifest, "schema": 99}))
    found = describe(tmp_path / "out")
    assert found.next is None and str(found.note).startswith("the data set has schema 99, this perse reads ")


def test_what_stands_in_a_file_neither_steers_the_terminal_nor_is_markup(tmp_path: Path) -> None:
    shown = printed(describe(lines(tmp_path / "p.jsonl", [PAIR | {"aspect": "[red]", "preference": "\x1b[31mA"}])))
    assert "\x1b" not in shown and "[red]" in shown


def test_what_cannot_be_read_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "x.xlsx").touch()
    for path, expected in [
        (tmp_path / "no.jsonl", "no such file"),
        (tmp_path / "empty.csv", "empty"),
        (tmp_path, "no perse data set"),
        (tmp_path / "x.xlsx", "cannot tell the format"),
        (tmp_path / "x", "no such file"),
    ]:
        with pytest.raises(BadInput, match=expected):
            describe(path)


def test_a_table_of_texts_under_other_names_is_shown_the_way_beside_its_reviews(tmp_path: Path) -> None:
    """It was told a build of reviews, with reader and score to be filled in, and nothing else."""
    path = tmp_path / "texts.csv"
    path.write_text("book_title;blurb\nferry;A ferryman waits.\n", "utf-8")
    found = describe(path)
    assert found.format == "unknown" and f"perse quickstart REVIEWS {path}" in (found.note or "")


def test_a_file_of_bad_lines_alone_is_still_described(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text("{oops\n" * 7, "utf-8")
    found = describe(path)
    assert (found.format, found.rows, found.problems.counts) == ("unknown", 0, {"not JSON": 7})
    assert "line 1: not JSON" in printed(found)


REAL = {
    "movie_critics/reviews.jsonl.gz": ("reviews", 29_597),
    "movie_critics/items.jsonl.gz": ("items", 1_596),
    "amazon_reviews/Musical_Instruments.csv": ("amazon", 5_050),
    "story_endings/pairs.jsonl": ("pairs", 689),
    "perse_release/PerMPST.k3.sample.jsonl": ("released-mpst", 4),
    "perse_release/PerDOC.I.sample.jsonl": ("released-doc", 4),
}


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="the shared real data is not here")
@pytest.mark.parametrize("name", REAL)
def test_real_files_are_described(name: str) -> None:
    found = describe(SHARED / name)
    source, rows = REAL[name]
    assert (found.format, found.rows) == (TITLES[source], rows)
    if name.startswith("movie_critics/reviews"):
        assert found.per_reviewer is not None and found.per_reviewer.enough == 794
        assert found.problems.counts == {}
