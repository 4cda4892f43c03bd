"""A person's own files are understood as they meant them, or a sentence says what is not plain."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import messy_files
import pytest
from typer.testing import CliRunner

from perse.commands.data.build import app as data_app
from perse.commands.quickstart import _rows
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.quickstart import understanding
from perse.quickstart.understanding import understand

WORDS = [
    "quiet",
    "river",
    "captain",
    "mystery",
    "winter",
    "letter",
    "garden",
    "machine",
    "lonely",
    "doctor",
    "bridge",
    "war",
    "love",
    "city",
    "storm",
    "island",
]
TITLES = [f"Book {number}" for number in range(12)]
ALL = 8 * (12 - 3)
"""Examples of 8 readers with 12 reviews, 3 of which are the profile."""


def written(path: Path, header: list[str], rows: list[list[object]], *, delimiter: str = ",", bom: bool = False) -> Path:
    with path.open("w", newline="", encoding="utf-8-sig" if bom else "utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return path


def said(seed: int, words: int = 12) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def reviews(path: Path, *, more: list[list[object]] | None = None) -> Path:
    rows: list[list[object]] = [
        [f"user{reader}", title, (reader + at) % 5 + 1, said(reader * 100 + at), f"March {at + 1}, 2019"]
        for reader in range(8)
        for at, title in enumerate(TITLES)
    ]
    return written(path, ["user_id", "book_title", "stars", "text", "date"], rows + (more or []))


def texts(path: Path, **options: object) -> Path:
    rows: list[list[object]] = [[title, at % 3, said(at + 1, 30)] for at, title in enumerate(TITLES)]
    return written(path, ["book_title", "shelf", "blurb"], rows, **options)  # type: ignore[arg-type]


def built(command: tuple[str, ...], out: Path) -> int:
    """How many examples the command builds, of both sides."""
    done = CliRunner().invoke(data_app, [*command[1:], "--out", str(out)])
    assert done.exit_code == 0, done.output
    return sum(len(load_examples(out, split=side).examples) for side in ("train", "valid"))  # type: ignore[arg-type]


def test_a_messy_pair_of_files_is_built_at_the_first_try(tmp_path: Path) -> None:
    odd = [["user1", "Book 3", "five", "great", "n/a"], ["", "Book 3", "4", "great", ""], ["user2", "Book 99", 3, said(7), ""]]
    found = understand(reviews(tmp_path / "reviews.csv", more=odd), texts(tmp_path / "texts.csv", delimiter=";", bom=True), {})
    assert found.texts is not None and (found.texts.by, found.texts.item_id, found.texts.text) == (
        "book_title",
        "book_title",
        "blurb",
    )
    assert (found.texts.found, found.texts.looked) == (98, 99)
    assert found.description.fields == {
        "reviewer_id": "user_id", "item_id": "book_title", "score": "stars", "review": "text", "time": "date"
    }  # fmt: skip
    assert found.build[found.build.index("--scale") + 1] == "1-5"
    assert built(found.build, tmp_path / "set") == ALL


def test_readers_of_few_reviews_are_kept_as_the_command_keeps_them_and_it_is_said(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        [f"user{reader}", TITLES[(reader + at) % 12], (reader + at) % 5 + 1, said(reader * 100 + at)]
        for reader in range(30)
        for at in range(4)
    ]
    mine = written(tmp_path / "reviews.csv", ["user_id", "book_title", "stars", "text"], rows)
    found = understand(mine, texts(tmp_path / "texts.csv"), {})
    told = dict(_rows(found))
    assert told[""] == "of each 4 in the median; 0 readers have 6 or more; kept is who has 4 or more that can be used"
    assert found.build[found.build.index("--valid") + 1] == "0.34", "twenty of thirty are more than a third"
    assert built(found.build, tmp_path / "set") == 30


def test_reviews_of_texts_that_are_empty_are_not_told_as_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs: list[list[object]] = [[title, "" if at < 3 else said(at + 1, 30)] for at, title in enumerate(TITLES)]
    found = understand(reviews(tmp_path / "reviews.csv"), written(tmp_path / "texts.csv", ["book_title", "blurb"], theirs), {})
    assert dict(_rows(found))["joined by"] == "book_title = book_title, which finds a text for 72 of the first 96 reviews"
    monkeypatch.setattr(understanding, "LOOKED_AT", 25)
    found = understand(tmp_path / "reviews.csv", tmp_path / "texts.csv", {})
    assert dict(_rows(found))["joined by"].endswith("finds a text for 18 of the first 25 reviews"), (
        "of the others nobody looked"
    )


def test_what_a_newcomers_tables_have_wrong_is_left_out_and_counted_with_its_lines(tmp_path: Path) -> None:
    found = understand(*messy_files.write(tmp_path), {})
    assert found.description.problems.counts == {"score not a number": 19, "empty review": 1, "no reviewer": 1}
    assert all(one.startswith("line ") for one in found.description.problems.first)
    done = CliRunner().invoke(data_app, [*found.build[1:], "--out", str(tmp_path / "set")])
    assert done.exit_code == 0 and "1 item without text; 1 item without text in the items file" in done.output
    sides = [load_examples(tmp_path / "set", split=side).examples for side in ("train", "valid")]  # type: ignore[arg-type]
    assert [len(side) for side in sides] == [33 * 10, 17 * 10]


def test_columns_that_no_name_tells_are_told_by_their_values(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        [f"user{reader}", f"b-{at}", (reader * at) % 7 + 1, said(reader * 100 + at)] for reader in range(8) for at in range(12)
    ]
    mine = written(tmp_path / "r.csv", ["user", "what", "mark", "opinion"], rows)
    theirs = written(tmp_path / "t.csv", ["key", "year", "story"], [[f"b-{at}", 1990 + at, said(at, 25)] for at in range(12)])
    found = understand(mine, theirs, {})
    assert found.description.fields == {"reviewer_id": "user", "item_id": "what", "score": "mark", "review": "opinion"}
    assert found.texts is not None and (found.texts.item_id, found.texts.text) == ("key", "story")
    assert built(found.build, tmp_path / "set") == ALL
    two = written(
        tmp_path / "two.csv", ["user", "what", "mark", "opinion", "helpful"], [[*row, at % 5] for at, row in enumerate(rows)]
    )
    with pytest.raises(BadInput, match=r"several columns could be the score: mark, helpful; give --map score=COLUMN"):
        understand(two, theirs, {})
    assert understand(two, theirs, {"score": "mark"}).description.fields["score"] == "mark"


def test_reviews_that_carry_their_texts_need_no_other_file(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        [f"user{reader}", said(at, 25), (reader + at) % 10 + 1, said(reader * 100 + at + 50)]
        for reader in range(8)
        for at in range(12)
    ]
    found = understand(written(tmp_path / "r.csv", ["user", "plot", "score", "review"], rows), None, {})
    assert found.texts is None and "--scale" not in found.build and found.scale == "1-10"
    assert built(found.build, tmp_path / "set") == ALL


def test_what_is_not_plain_is_asked_for_with_the_columns_there_are(tmp_path: Path) -> None:
    mine = reviews(tmp_path / "reviews.csv")
    with pytest.raises(
        BadInput, match=r"no texts that they are about; give the file of the texts behind it, or --map text=COLUMN"
    ):
        understand(mine, None, {"review": "text"})
    with pytest.raises(BadInput, match="'text' is either what the reviewers wrote or the text that they wrote of"):
        understand(mine, None, {})
    theirs = texts(tmp_path / "texts.csv")
    nobody = written(
        tmp_path / "n.csv", ["who", "book_title", "stars", "review"], [["a", title, 3, said(1)] for title in TITLES]
    )
    with pytest.raises(
        BadInput,
        match=r"says who wrote a review; columns found: who, book_title, stars, review; give --map reviewer_id=COLUMN",
    ):
        understand(nobody, theirs, {})
    strange = written(tmp_path / "other.csv", ["key", "story"], [[f"x{at}", said(at, 25)] for at in range(12)])
    with pytest.raises(
        BadInput,
        match="no column names the texts that the reviews are about; the nearest are .*, for 0% of the first 96 reviews",
    ):
        understand(mine, strange, {})
    short = written(tmp_path / "short.csv", ["book_title", "shelf"], [[title, at] for at, title in enumerate(TITLES)])
    with pytest.raises(
        BadInput, match=r"no column holds texts; columns found: book_title, shelf; give --map items\.text=COLUMN"
    ):
        understand(mine, short, {})


def test_what_the_user_says_comes_before_what_is_guessed(tmp_path: Path) -> None:
    rows: list[list[object]] = [[title, said(at, 9), said(at + 50, 30)] for at, title in enumerate(TITLES)]
    theirs = written(tmp_path / "texts.csv", ["book_title", "tagline", "blurb"], rows)
    found = understand(reviews(tmp_path / "reviews.csv"), theirs, {"items.text": "tagline"})
    assert found.texts is not None and found.texts.text == "tagline"
    assert "items.text=tagline" in found.build and built(found.build, tmp_path / "set") == ALL


def test_whole_numbers_that_any_ids_have_join_nothing(tmp_path: Path) -> None:
    """Scores and numbers of readers stand in every column of ids from 1 on."""
    rows: list[list[object]] = [
        [reader, at, (reader + at) % 5 + 1, said(reader * 100 + at)] for reader in range(1, 9) for at in range(1, 13)
    ]
    mine = written(tmp_path / "REVIEWS.CSV", ["reviewer_id", "item_id", "score", "review"], rows)
    theirs = written(tmp_path / "ITEMS.CSV", ["item_id", "text"], [[at, said(at, 25)] for at in range(1, 201)])
    found = understand(mine, theirs, {})
    assert found.texts is not None and (found.texts.by, found.texts.item_id) == ("item_id", "item_id")
    assert built(found.build, tmp_path / "set") == ALL
    unnamed = written(
        tmp_path / "m.csv", ["user", "votes", "what", "stars", "review"], [[r[0], r[1], r[1], *r[2:]] for r in rows]
    )
    keys = written(tmp_path / "k.csv", ["number", "text"], [[at, said(at, 25)] for at in range(1, 201)])
    with pytest.raises(
        BadInput, match=r"could be named by (votes|what) = number \(100% of the first 96 reviews\) or (votes|what) = number"
    ):
        understand(unnamed, keys, {})
    said_so = understand(unnamed, keys, {"item_id": "what"})
    assert said_so.texts is not None and said_so.texts.by == "what"


def test_a_row_number_without_a_name_is_no_key(tmp_path: Path) -> None:
    rows: list[list[object]] = [[at, title, said(at, 25)] for at, title in enumerate(TITLES[1:])]
    theirs = written(tmp_path / "t.csv", ["", "book_title", "blurb"], rows)
    found = understand(reviews(tmp_path / "r.csv"), theirs, {})
    assert found.texts is not None and found.texts.item_id == "book_title"


def test_what_everyone_says_of_a_text_is_not_what_a_reader_wrote(tmp_path: Path) -> None:
    rows: list[list[object]] = [
        [f"user{reader}", title, (reader + at) % 5 + 1, said(reader * 100 + at, 8), said(at, 30), said(at + 40, 30)]
        for reader in range(8)
        for at, title in enumerate(TITLES)
    ]
    mine = written(tmp_path / "r.csv", ["user", "title", "stars", "opinion", "storyline", "trailer"], rows)
    theirs = written(tmp_path / "t.csv", ["title", "storyline"], [[title, said(at, 30)] for at, title in enumerate(TITLES)])
    found = understand(mine, theirs, {})
    assert found.description.fields["review"] == "opinion" and found.texts is not None and found.texts.text == "storyline"


def test_two_columns_that_could_both_be_meant_are_named(tmp_path: Path) -> None:
    rows: list[list[object]] = [[title, said(at, 20), said(at + 50, 30)] for at, title in enumerate(TITLES)]
    theirs = written(tmp_path / "t.csv", ["book_title", "about", "blurb"], rows)
    with pytest.raises(
        BadInput,
        match=r"two columns could hold the texts: blurb \(30 words on average\) or about \(20\); give --map items\.text=",
    ):
        understand(reviews(tmp_path / "r.csv"), theirs, {})
    both: list[list[object]] = [
        [f"user{reader}", title, 3, said(reader * 100 + at, 9), said(reader * 90 + at, 7)]
        for reader in range(8)
        for at, title in enumerate(TITLES)
    ]
    mine = written(tmp_path / "b.csv", ["user", "book_title", "stars", "pros", "cons"], both)
    with pytest.raises(
        BadInput, match=r"two columns could be what the reviewers wrote: pros .* or cons .*; give --map review=COLUMN"
    ):
        understand(mine, texts(tmp_path / "texts.csv"), {})
    assert understand(mine, tmp_path / "texts.csv", {"review": "pros+cons"}).description.fields["review"] == "pros+cons"


@pytest.mark.slow
def test_a_large_file_of_texts_is_read_to_its_end(tmp_path: Path) -> None:
    many: list[list[object]] = [[f"other {at}", 0, said(at % 50, 25)] for at in range(20_000)]
    theirs = written(
        tmp_path / "t.csv",
        ["book_title", "shelf", "blurb"],
        [*many, *([title, 1, said(at, 25)] for at, title in enumerate(TITLES))],
    )
    found = understand(reviews(tmp_path / "r.csv"), theirs, {})
    assert found.texts is not None and (found.texts.rows, found.texts.found, found.texts.looked) == (20_012, 96, 96)


def test_of_very_many_columns_the_first_are_named(tmp_path: Path) -> None:
    wide = tmp_path / "wide.csv"
    wide.write_text(",".join(f"c{n}" for n in range(1000)) + "\n" + ",".join("1" for _ in range(1000)) + "\n", "utf-8")
    with pytest.raises(BadInput, match=r"columns found: c0, c1, .*, c29 and 970 more; give --map"):
        understand(wide, None, {})
