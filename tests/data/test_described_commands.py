"""The command that ends a description: it builds the file, and there is none where none could; and what stands in its way."""

import gzip
import io
import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from described_files import PAIR, REVIEW, kept_as, lines, printed, table_of
from released_rows import entry, mpst_row
from rich.console import Console
from typer.testing import CliRunner

from perse.commands.app import app
from perse.data.build import PointwiseOptions, build_pointwise
from perse.data.dataset.folder import load_folder
from perse.data.describing.facts import Description, Spread, describe
from perse.data.describing.table import description_table
from perse.data.examples_file import read_examples
from perse.data.sources.lines import read_records
from perse.errors import BadInput


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
    assert not needed or f"for {repeating} of the {repeating + others} who have enough reviews" in str(found.note)
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


def _amazon(folder: Path) -> Path:
    lines(folder / "meta.jsonl", [{"asin": f"B{n}", "title": f"Pick {n}", "description": ["thin"]} for n in range(8)])
    return lines(
        folder / "reviews.jsonl",
        [
            {
                "reviewerID": f"A{who}",
                "asin": f"B{n}",
                "reviewText": f"fine {who} {n}",
                "overall": 1 + n % 5,
                "unixReviewTime": n,
            }
            for who in range(6)
            for n in range(8)
        ],
    )


def _pairs(folder: Path) -> Path:
    return lines(
        folder / "pairs.jsonl",
        [
            PAIR
            | {
                "reviewer_id": f"r{who}",
                "text_a": f"story {n + who} a",
                "text_b": f"story {n + who} b",
                "preference": "AB"[n % 2],
            }
            for who in range(12)
            for n in range(8)
        ],
    )


def _doc(folder: Path) -> Path:
    rows = [
        {
            "WorkerId": f"w{who}",
            "Input.plotA": f"plot {n} a",
            "Input.plotB": f"plot {n} b",
            "Answer.ending": f"Plot {'AB'[n % 2]}",
        }
        for who in range(12)
        for n in range(8)
    ]
    return lines(folder / "doc.jsonl", rows)


def _released(folder: Path) -> Path:
    past = [entry(n, plot=f"A keeper of ferry {n} waits.", review=f"Fine, {n}.", score=n + 2) for n in range(3)]
    rows = [mpst_row(n, past, entry(9 + n, plot=f"Another keeper, {n}.", review=f"Slow, {n}.", score=4)) for n in range(2)]
    return lines(folder / "released.jsonl", rows)


def _items(folder: Path) -> Path:
    lines(folder / "reviews.jsonl", [{name: row[name] for name in row if name != "text"} for row in table_of(8)])
    return lines(folder / "items.jsonl", [{"item_id": f"i{n}", "text": f"plot {n}"} for n in range(8)])


def _plots(folder: Path) -> Path:
    _items(folder).unlink()
    return lines(
        folder / "plots.jsonl",
        [
            {"imdb_id": f"i{n}", "title": f"The Affair {n}", "plot_synopsis": f"A keeper waits {n}. " * 9, "tags": ""}
            for n in range(8)
        ],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "command"),
    [
        (_amazon, "amazon"), (_pairs, "pairwise"), (_doc, "per-doc"), (_items, "pointwise"), (_plots, "per-mpst"),
    ],
)  # fmt: skip
def test_of_every_format_the_command_that_ends_its_description_builds_it(
    make: Callable[[Path], Path], command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = describe(make(tmp_path))
    assert found.next is not None and found.next.startswith(f"perse data {command} "), found.next
    assert built_from(found, monkeypatch, tmp_path) > 0


def test_of_released_files_the_command_that_ends_a_description_writes_their_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = describe(_released(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert found.next is not None and found.next.startswith("perse data release ")
    done = CliRunner().invoke(app, shlex.split(found.next)[1:])
    assert done.exit_code == 0, done.stderr
    assert len((Path(found.next.split()[-1]) / "examples.jsonl").read_text("utf-8").splitlines()) == 2


@pytest.mark.parametrize(("readers", "pairs", "shared"), [(5, 20, True), (30, 12, True), (12, 8, False), (40, 30, False)])
def test_where_all_readers_compare_the_same_pairs_the_command_keeps_readers_apart_alone(
    readers: int, pairs: int, shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Annotators who all judge the same pairs are the commonest table; without the option no example is left for training."""
    numbers = {who: [n if shared else pairs * who // 2 + n for n in range(pairs)] for who in range(readers)}
    rows = [
        PAIR | {"reviewer_id": f"r{who}", "text_a": f"story {n} a", "text_b": f"story {n} b", "preference": "AB"[n % 2]}
        for who in range(readers)
        for n in numbers[who]
    ]
    found = describe(lines(tmp_path / "pairs.jsonl", rows))
    assert found.next is not None and ("--split reviewer " in found.next) == shared == bool(found.note), found
    assert built_from(found, monkeypatch, tmp_path) > 0


def test_amazon_reviews_without_their_products_are_for_summaries_and_the_note_says_what_else_they_need(tmp_path: Path) -> None:
    reviews = _amazon(tmp_path)
    (tmp_path / "meta.jsonl").unlink()
    found = describe(reviews)
    assert found.next == f"perse data persum --reviews {reviews} --judge smollm2-135m --out work/reviews"
    assert "put the category's meta file beside it (perse data amazon --meta META)" in (found.note or "")


@pytest.mark.parametrize(
    ("scores", "option", "problem"),
    [
        (["1/5", "3/5", "5/5"], " --scale 1-5", {}),
        (["0/5", "3/5", "5/5"], " --scale 0-5", {}),
        (["1/10", "7/10"], "", {}),
        ([0, 0.25, 1], " --scale 0-1", {}),
        ([0, 1], " --scale 0-1", {}),
        ([0.5, 3, 5], " --scale 0.5-5", {}),
        ([0, 0.5, 5], " --scale 0-5", {}),
        ([0.5, 0.7, 5], " --scale 0-5", {}),
        ([0.5, 10], " --scale 0-10", {}),
        ([10, 100], " --scale 1-100", {}),
        (
            [10, 95],
            " --scale 1-95",
            {"scores up to 95: the scale is taken for 1 to 95 (if it is another, give --scale LOW-HIGH)": 30},
        ),
        (
            [-4, 0, 5],
            " --scale -4-5",
            {"score below 0: the scale is taken for -4 to 5 (if it is another, give --scale LOW-HIGH)": 10},
        ),
    ],
    ids=[
        "of 5",
        "of 5 from 0",
        "of 10",
        "shares",
        "thumbs",
        "half stars",
        "half stars from 0",
        "of 5 below 1",
        "halves to 10",
        "percent",
        "percent that end early",
        "below 0",
    ],
)
def test_the_scale_of_a_command_holds_all_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scores: list[object], option: str, problem: dict[str, int]
) -> None:
    rows = [row | {"score": scores[number % len(scores)]} for number, row in enumerate(table_of(8)[:30])]
    found = describe(lines(tmp_path / "r.jsonl", rows))
    assert found.next == f"perse data pointwise --reviews {tmp_path}/r.jsonl{option} --out work/r"
    assert found.problems.counts == problem
    assert built_from(found, monkeypatch, tmp_path) == 30


@pytest.mark.parametrize(("most", "said"), [(7, True), (8, False)])
def test_a_scale_whose_upper_quarter_is_empty_is_named_as_one_that_was_taken(tmp_path: Path, most: int, said: bool) -> None:
    rows = [row | {"score": 1 + n % most} for n, row in enumerate(table_of(28))]
    found = describe(lines(tmp_path / "r.jsonl", rows))
    [reason, *_] = [*found.problems.counts, ""]
    assert (reason.startswith("scores, none of them above 7: the scale is taken for 1 to 10")) is said
    assert found.next is not None and "--on-error" not in found.next


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
    assert str(found.next).startswith("perse data pointwise") and "make a line of each" not in str(found.note)


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
        "the command below is right if 'text' is what the reviewers wrote; else no column is recognised as what the reviewers wrote; "
        "name it by --map review=COLUMN, or take the file of the same reviews that has one"
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


def test_answers_of_comparisons_that_a_build_stops_at_are_problems_and_are_skipped_by_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {
            "reviewer": f"r{who}",
            "aspect": "Ending",
            "text_a": f"plot {who} {nth}",
            "text_b": f"other {who} {nth}",
            "preference": "AB"[nth % 2],
        }
        for who in range(12)
        for nth in range(4)
    ]
    odd = [rows[0] | {"text_a": "new", "preference": "Second"}, rows[1], rows[2] | {"text_b": rows[2]["text_a"]}]
    undecided = rows[0] | {"text_a": "newer", "preference": "both"}
    found = describe(lines(tmp_path / "p.jsonl", [*rows, *odd, undecided]))
    assert found.problems.counts == {"judged twice": 1, "preference not A or B": 1, "the same text twice": 1}
    assert found.next == f"perse data pairwise --pairs {tmp_path / 'p.jsonl'} --on-error skip --out work/p"
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, shlex.split(found.next)[1:])
    assert done.exit_code == 0, done.output


def test_of_comparisons_none_of_which_says_a_or_b_no_command_is_shown(tmp_path: Path) -> None:
    rows = [
        {
            "reviewer": f"r{nth % 5}",
            "aspect": "Ending",
            "text_a": f"plot {nth}",
            "text_b": f"other {nth}",
            "preference": nth % 2 + 1,
        }
        for nth in range(20)
    ]
    found = describe(lines(tmp_path / "p.jsonl", rows))
    assert (
        found.next is None
        and found.note is not None
        and "none of the 20 rows can be used (preference not A or B)" in found.note
    )


def test_of_reviews_in_a_column_of_another_name_it_is_said_how_to_name_it(tmp_path: Path) -> None:
    rows = [{"User": f"u{n % 4}", "Book": f"b{n}", "Stars": 1 + n % 5, "Opinion": f"a good read {n}"} for n in range(20)]
    path = lines(tmp_path / "r.jsonl", rows)
    assert describe(path).next == (
        "nothing: no column is recognised as what the reviewers wrote; name it by --map review=COLUMN, or take the file of the same reviews that has one"
    )
    assert describe(path, columns={"review": "Opinion"}).format == "table of reviews"


@pytest.mark.parametrize("asked", [None, "question"])
def test_comparisons_that_name_no_aspect_are_shown_how_to_name_one(
    asked: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"annotator": f"r{who}", "text_a": f"plot {who} {nth}", "text_b": f"other {who} {nth}", "preference": "AB"[nth % 2]}
        | ({asked: "Ending"} if asked else {})
        for who in range(12)
        for nth in range(4)
    ]
    path = lines(tmp_path / "p.jsonl", rows)
    found = describe(path)
    assert found.format == "comparisons without an aspect" and found.reviewers == 12 and not found.problems.counts
    assert found.note is not None and "where none does, add one that says the same in each row" in found.note
    assert found.next == f"perse data pairwise --pairs {path} --map aspect=COLUMN --out work/p"
    monkeypatch.chdir(tmp_path)
    column = asked or "asked"
    lines(path, [row | {column: "Ending"} for row in rows])
    done = CliRunner().invoke(app, shlex.split(found.next.replace("COLUMN", column))[1:])
    assert done.exit_code == 0, done.output


def test_a_file_of_summaries_is_known_and_its_command_asks_about_them(tmp_path: Path) -> None:
    rows = [
        {"id": f"s{n}", "reviewer_id": "boots", "reviews": ["Good boots."], "summary": "Good.", "reference": {"score": 3.3}}
        for n in range(4)
    ]
    path = lines(tmp_path / "s.jsonl", rows)
    found = describe(path)
    assert (found.format, found.next) == (
        "summaries of reviews",
        f"perse score --examples {path} --question coverage --judge smollm2-135m --out work/s",
    )
    assert [one.kind for one in read_examples(path)] == ["summary"] * 4
