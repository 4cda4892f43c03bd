"""Descriptions of files: every format is told by its columns, everything is counted, bad rows never stop it."""

import csv
import gzip
import io
import json
import random
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from places import SHARED
from rich.console import Console
from typer.testing import CliRunner

from perse.commands.app import app
from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset.folder import load_folder
from perse.data.describing.facts import Description, Spread, describe
from perse.data.describing.table import description_table
from perse.data.sources import SOURCES
from perse.data.sources.lines import read_records
from perse.errors import BadInput
from perse.records import example_lines

REVIEW = {"reviewer_id": "ann", "item_id": "i1", "score": 7, "review": "quite fine", "text": "a plot", "date": "2018-11-10"}
PAIR = {"reviewer_id": "ann", "aspect": "Ending", "text_a": "one", "text_b": "two words", "preference": "A"}


def lines(path: Path, rows: Sequence[Any]) -> Path:
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(content, 1, mtime=0) if path.suffix == ".gz" else content)
    return path


def printed(description: Description) -> str:
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(description_table(description), crop=False)
    return console.export_text()


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
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "noise"])
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


@pytest.mark.skipif(not SHARED.exists(), reason="the shared real data is not here")
@pytest.mark.parametrize("name", REAL)
def test_real_files_are_described(name: str) -> None:
    found = describe(SHARED / name)
    source, rows = REAL[name]
    assert (found.format, found.rows) == (TITLES[source], rows)
    if name.startswith("movie_critics/reviews"):
        assert found.per_reviewer is not None and found.per_reviewer.enough == 794
        assert found.problems.counts == {}


def test_a_zero_that_means_not_rated_widens_no_scale(tmp_path: Path) -> None:
    rows = [
        REVIEW | {"reviewer_id": f"r{n % 3}", "item_id": f"i{n}", "score": n // 3 % 6, "review": f"fine {n}"} for n in range(36)
    ]
    found = describe(lines(tmp_path / "r.jsonl", rows))
    assert found.next is not None and "--scale 1-5 --on-error skip" in found.next
    assert any(
        reason.startswith("score 0, taken for not rated") and count == 6 for reason, count in found.problems.counts.items()
    )
    halves = describe(lines(tmp_path / "h.jsonl", [*rows, REVIEW | {"item_id": "i99", "score": 0.5}]))
    assert halves.next is not None and "--scale 0-5 --out" in halves.next


@pytest.mark.parametrize("column", ["content", "body", "review_content"])
def test_a_review_column_of_another_usual_name_is_found(tmp_path: Path, column: str) -> None:
    row = {
        "reviewer_name": "ann",
        "item_id": "i1",
        "score": 7,
        column: "quite fine",
        "text": "a plot",
        "date_added": "2018-11-10",
    }
    found = describe(
        lines(tmp_path / "r.jsonl", [row | {"reviewer_name": one, "item_id": two} for one in "ab" for two in "ij"])
    )
    assert (
        found.fields["review"] == column
        and found.fields["reviewer_id"] == "reviewer_name"
        and found.fields["time"] == "date_added"
    )
    assert found.next is not None and found.next.startswith("perse data pointwise")


def table_of(count: int, reviewers: int = 4, **more: Any) -> list[dict[str, Any]]:
    """So many reviews by each reviewer, all of other items."""
    return [
        {
            "reviewer_id": f"r{who}",
            "item_id": f"i{n}",
            "score": 1 + (who + n) % 5,
            "review": f"I say {who} of {n}",
            "text": f"plot {n}",
        }
        | more
        for who in range(reviewers)
        for n in range(count)
    ]


def kept_as(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The rows in the format that the name says; `;.csv` is a spreadsheet's with semicolons."""
    if path.name.startswith("array"):
        path.write_text(json.dumps(rows, indent=1), "utf-8")
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        lines(path, rows)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]), delimiter=";")
            table.writeheader()
            table.writerows(rows)
    return path


FORMATS = ["array.json", "array.jsonl", "rows.parquet", "rows.csv"]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("count", "extra", "options"),
    [
        (8, [], "--scale 1-5"),
        (4, [], "--scale 1-5 --min-reviews 4"),
        (3, [], "--scale 1-5 --k 2 --min-reviews 3"),
        (8, table_of(1), "--scale 1-5 --on-error skip"),
        (8, table_of(1, 1, item_id="i99", score=0), "--scale 1-5 --on-error skip"),
    ],
    ids=["plain", "few", "very few", "reviewed twice", "not rated"],
)
def test_the_command_that_ends_a_description_builds_the_file(
    tmp_path: Path, name: str, count: int, extra: list[dict[str, Any]], options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = kept_as(tmp_path / name, table_of(count) + extra)
    found = describe(path)
    assert found.next == f"perse data pointwise --reviews {path} {options} --out work/{path.name.partition('.')[0]}"
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(found.next)[1:])
    assert done.exit_code == 0, done.stderr
    assert len(load_folder(Path(found.next.split()[-1])).rows) == 4 * count


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv"])
@pytest.mark.parametrize(
    ("repeating", "others", "count", "needed"),
    [(4, 0, 8, True), (4, 0, 3, True), (1, 3, 8, True), (1, 30, 8, False), (3, 30, 8, True), (0, 4, 8, False)],
)
def test_the_command_builds_a_file_whose_readers_always_say_the_same(
    tmp_path: Path, name: str, repeating: int, others: int, count: int, needed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of readers of whom each has one thing to say no review has a profile of others: which side of the split they fall on is chance.
    same = table_of(count, repeating, review="Great!")
    path = kept_as(tmp_path / name, same + [row | {"reviewer_id": f"o{row['reviewer_id']}"} for row in table_of(count, others)])
    found = describe(path)
    assert found.next is not None and ("--keep-repeats" in found.next) == needed == bool(found.note), found.next
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(found.next)[1:])
    assert done.exit_code == 0, done.stderr


def test_one_review_that_says_something_else_has_a_profile_of_the_others(tmp_path: Path) -> None:
    rows = [row | ({"review": "No."} if row["item_id"] == "i7" else {}) for row in table_of(8, 4, review="Great!")]
    found = describe(kept_as(tmp_path / "rows.jsonl", rows))
    assert found.next is not None and "--keep-repeats" not in found.next


def built_from(found: Description, monkeypatch: pytest.MonkeyPatch, folder: Path) -> int:
    """How many examples the command that ends a description makes."""
    monkeypatch.chdir(folder)
    assert found.next is not None
    done = CliRunner().invoke(app, shlex.split(found.next)[1:])
    assert done.exit_code == 0, done.stderr or done.exception
    return len(load_folder(Path(found.next.split()[-1])).rows)


@pytest.mark.parametrize(
    ("scores", "option", "problem"),
    [
        (["1/5", "3/5", "5/5"], " --scale 1-5", {}),
        (["0/5", "3/5", "5/5"], " --scale 0-5", {}),
        (["1/10", "7/10"], "", {}),
        ([0, 0.25, 1], " --scale 0-1", {}),
        ([0, 1], " --scale 0-1", {}),
        ([0.5, 5], " --scale 0-5", {}),
        ([0.5, 10], " --scale 0-10", {}),
        ([10, 100], " --scale 1-100", {}),
        (
            [-4, 0, 5],
            " --scale -4-5",
            {"score below 0: the scale is taken for -4 to 5 (if it is another, give --scale LOW-HIGH)": 10},
        ),
    ],
    ids=["of 5", "of 5 from 0", "of 10", "shares", "thumbs", "half stars", "halves to 10", "percent", "below 0"],
)
def test_the_scale_of_a_command_holds_all_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scores: list[object], option: str, problem: dict[str, int]
) -> None:
    rows = [row | {"score": scores[number % len(scores)]} for number, row in enumerate(table_of(8)[:30])]
    found = describe(lines(tmp_path / "r.jsonl", rows))
    assert found.next == f"perse data pointwise --reviews {tmp_path}/r.jsonl{option} --out work/r"
    assert found.problems.counts == problem
    assert built_from(found, monkeypatch, tmp_path) == 30


def test_scores_out_of_another_number_are_left_out_by_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row | {"score": f"{row['score']}/5"} for row in table_of(8)]
    rows += [REVIEW | {"item_id": "x", "score": "7/10"}, REVIEW | {"item_id": "y", "score": 9}]
    found = describe(lines(tmp_path / "r.jsonl", rows))
    assert found.problems.counts == {"score out of another number than 5": 1, "score off the scale 1 to 5": 1}
    assert str(found.next).endswith(" --scale 1-5 --on-error skip --out work/r")
    assert built_from(found, monkeypatch, tmp_path) == 32


def test_a_review_that_stands_twice_is_seen_where_items_have_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{name: value for name, value in row.items() if name != "item_id"} for row in table_of(8)]
    path = lines(tmp_path / "r.jsonl", [*rows, *rows[:3]])
    found = describe(path)
    assert (found.items, found.problems.counts) == (8, {"reviewed twice": 3})
    assert str(found.next).endswith(" --scale 1-5 --on-error skip --out work/r")
    assert built_from(found, monkeypatch, tmp_path) == 32
    with pytest.raises(BadInput, match="line 33: field 'text': 'r0' already reviewed this text on line 1; keep one"):
        build_pointwise(PointwiseOptions(reviews=path, scale=(1, 5), out=tmp_path / "no"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row | {"score": "7,5"} for row in table_of(8)], "none of the 32 rows can be used (score not a number): put right"),
        ([row | {"reviewer_id": "\x1b[31mann"} for row in table_of(8)], "none of the 32 rows can be used (a control character"),
        ([row | {"review": {"v": 1}} for row in table_of(8)], "none of the 32 rows can be used (not a text): put right"),
        ([row | {"score": [7]} for row in table_of(1, 1)], "the row cannot be used (score not a number): put right"),
        (table_of(1, 1), "needs two readers with two reviews each, and here no reader has so many"),
        (table_of(8, 1), "needs two readers with two reviews each, and here only one reader has so many"),
        (table_of(1, 2) * 9, "needs two readers with two reviews each, and here no reader has so many"),
        (table_of(8, 1) + table_of(8, 1, reviewer_id="zed", score=0), "only one reader has so many"),
        ([PAIR], "needs two readers with two comparisons each, and here no reader has so many"),
    ],
    ids=["commas", "control", "nested", "one bad row", "one row", "one reader", "repeated", "not rated", "one pair"],
)
def test_no_command_is_shown_where_none_could_work(tmp_path: Path, rows: list[dict[str, Any]], said: str) -> None:
    path = lines(tmp_path / "r.jsonl", rows)
    found = describe(path)
    assert found.next is None and said in str(found.note)
    assert "perse data" not in printed(found) and "next: " in printed(found)
    kind = ("pairwise", "--pairs") if rows == [PAIR] else ("pointwise", "--reviews")
    command = ["data", kind[0], kind[1], str(path), "--on-error", "skip", "--out", str(tmp_path / "no")]
    assert CliRunner().invoke(app, command).exception is not None


def test_a_bad_score_is_told_with_what_was_found(tmp_path: Path) -> None:
    found = describe(lines(tmp_path / "r.jsonl", [REVIEW | {"score": "7,5"}]))
    assert found.problems.first == ("line 1: field 'score': found \"7,5\", expected a number; write 7.5",)


WRAPPED: dict[str, tuple[Any, str]] = {
    "a list": ({"reviews": table_of(8), "version": 2}, "the rows under 'reviews'"),
    "an odd key": ({"our reviews": table_of(8)}, "the rows under 'our reviews'"),
    "a row a key": ({str(number): row for number, row in enumerate(table_of(8))}, "one row under each key"),
    "a list a key": (
        {f"r{who}": [row for row in table_of(8) if row["reviewer_id"] == f"r{who}"] for who in range(4)},
        "a list of rows",
    ),
}


@pytest.mark.parametrize("indent", [None, 1], ids=["one line", "many lines"])
@pytest.mark.parametrize("name", ["our rows.json", "rows.jsonl", "rows.json.gz"])
@pytest.mark.parametrize("shape", WRAPPED)
def test_an_object_around_the_rows_is_told_with_what_makes_lines_of_them(
    tmp_path: Path, shape: str, name: str, indent: int | None
) -> None:
    whole, said = WRAPPED[shape]
    path, content = tmp_path / name, json.dumps(whole, indent=indent).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    found = describe(path)
    assert found.next is None and found.note is not None
    assert found.note.startswith(f"the file is one object that holds {said}") and "COLUMN" not in printed(found)
    if shutil.which("jq"):
        before = path.read_bytes()
        subprocess.run(["sh", "-c", found.note.partition("make a line of each: ")[2]], check=True)
        [made] = [one for one in tmp_path.iterdir() if one != path]
        assert str(describe(made).next).startswith("perse data pointwise") and describe(made).rows == 32
        assert path.read_bytes() == before


def test_one_row_of_a_file_of_unknown_columns_is_no_object_around_rows(tmp_path: Path) -> None:
    found = describe(lines(tmp_path / "r.jsonl", [{"who": "ann", "said": "fine", "stars": 3}]))
    assert str(found.next).startswith("perse data pointwise") and found.note is None


def test_a_damaged_array_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("[\n" + json.dumps(REVIEW) + ",\n" + json.dumps(REVIEW)[:-9], "utf-8")
    with pytest.raises(BadInput, match=r"r.json, line 3: the JSON array that the file is breaks off or is damaged"):
        list(read_records(path))


def test_a_comma_in_quotes_is_no_delimiter(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text('reviewer;item;score;"review, long"\nann;i1;7;fine\n', "utf-8")
    assert [values for _, values in read_records(tmp_path / "r.csv")] == [
        {"reviewer": "ann", "item": "i1", "score": "7", "review, long": "fine"}
    ]


def test_a_review_column_named_text_is_offered_and_described_by_a_mapping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a mapping it may be the text reviewed; the command that is then shown builds the file."""
    rows = [
        {name: value for name, value in row.items() if name not in ("review", "text")} | {"text": row["review"]}
        for row in table_of(8)
    ]
    items = lines(tmp_path / "items.jsonl", [{"item_id": f"i{n}", "text": f"plot {n}"} for n in range(8)])
    path = lines(tmp_path / "r.jsonl", rows)
    command = f"perse data pointwise --reviews {path} --items {items} --map review=text --scale 1-5 --out work/r"
    offered, mapped = describe(path), describe(path, columns={"review": "text"})
    assert offered.next == command and offered.note == (
        "the command below is right if 'text' is what the reviewers wrote; else it has no review texts; take the file of the same reviews "
        "that has them"
    )
    console = Console(width=400, file=io.StringIO(), record=True)
    console.print(description_table(offered), crop=False)
    *_, note, last = console.export_text().splitlines()
    assert note.split() == ["note", *offered.note.split()] and last == f"next: {command}"
    assert mapped.fields["review"] == "text" and mapped.review_words == Spread(least=5, median=5, most=5)
    assert mapped.next == command and "text" not in mapped.fields, "the review is not the text reviewed, too"
    with pytest.raises(BadInput, match="no column for field 'text'"):
        build_pointwise(PointwiseOptions(reviews=path, columns={"review": "text"}, scale=(1, 5), out=tmp_path / "no"))
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.stderr
    shown = CliRunner().invoke(app, ["data", "describe", str(path), "--map", "review=text", "--json"])
    assert json.loads(shown.stdout)["format"] == "table of reviews"


def test_a_command_names_the_file_that_lies_beside_and_none_where_two_could_be_meant(tmp_path: Path) -> None:
    rows = [{name: value for name, value in row.items() if name != "text"} for row in table_of(8)]
    path = lines(tmp_path / "our reviews (new).jsonl", rows)
    assert str(describe(path).next).endswith(" --items ITEMS --scale 1-5 --out work/our-reviews-new")
    items = lines(tmp_path / "items.jsonl", [{"item_id": f"i{n}", "text": f"plot {n}"} for n in range(8)])
    (tmp_path / "notes.txt").write_text("no table", "utf-8")
    (tmp_path / "broken.json").write_text("[{", "utf-8")
    assert f" --items {items} " in str(describe(path).next)
    assert str(describe(items).next) == f"perse data pointwise --reviews '{path}' --items {items} --out work/items"
    lines(tmp_path / "more.jsonl", [{"item_id": "i9", "text": "plot 9"}])
    assert " --items ITEMS " in str(describe(path).next)


@pytest.mark.parametrize(("field", "expected"), [("revue", "no field 'revue'"), ("review", "with this --map it is no table")])
def test_a_mapping_that_fits_nothing_is_refused(tmp_path: Path, field: str, expected: str) -> None:
    with pytest.raises(BadInput, match=expected):
        describe(lines(tmp_path / "r.jsonl", [{"who": "ann", "said": "fine"}]), columns={field: "said"})


@pytest.mark.parametrize("more", ["xx", '[{"reviewer_id": "bob"}]', "\n{}"])
def test_what_stands_behind_an_array_is_not_left_out_without_a_word(tmp_path: Path, more: str) -> None:
    path = tmp_path / "r.json"
    path.write_text('[{"reviewer_id": "ann", "score": 3, "review": "fine", "text": "a plot"}]\n' + more)
    with pytest.raises(BadInput, match="the JSON array ends here, and more stands behind it; keep one array in the file"):
        [*read_records(path)]
