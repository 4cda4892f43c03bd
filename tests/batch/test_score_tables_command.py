"""`perse score` with tables: CSV of reviews and of texts in, CSV of what was answered out."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from builders import pairwise_examples, pointwise_examples
from command_line import perse
from evaluation_builders import answered, fitted
from hypothesis import given
from hypothesis import strategies as st

from perse import Judge
from perse.answering.base import JudgeSettings
from perse.batch.tables import load_tables
from perse.commands.scoring.exporting import as_csv
from perse.data.sources.faults import Faults
from perse.errors import BadInput
from perse.formats.csv_cells import plain
from perse.identity import item_of
from perse.judgement import Judgement, Status, Tokens
from perse.judging.tables import read_tables
from perse.records import example_lines
from perse.stacking.file import StackedJudge, write_stacking

REVIEWS = """user,movie_id,stars,comment,date
ann,sea,4,slow but true,2020-01-02
bob,sea,1,"nothing, nothing happens",2020-01-01
ann,hill,5,=1+1,2019-05-05
"""
TEXTS = """movie_id,plot
sea,A sailor waits for a letter that the sea keeps and learns to read the tides.
hill,Two sisters build a tower on a hill nobody wants until the town moves in.
house,A house is sold five times in one night and each buyer finds another door.
"""
QUICK = ("--question", "pointwise_score", "--temperature", "0", "--dtype", "float32")


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "reviews.csv").write_text(REVIEWS, encoding="utf-8")
    (tmp_path / "texts.csv").write_text(TEXTS, encoding="utf-8")
    return tmp_path / "reviews.csv", tmp_path / "texts.csv"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: plain(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


@pytest.mark.slow
def test_csv_of_reviews_and_texts_is_judged_and_comes_out_as_csv(
    tables: tuple[Path, Path], answering_model: Path, tmp_path: Path
) -> None:
    reviews, texts = tables
    run, out = tmp_path / "run", tmp_path / "out.csv"
    asked = (
        "score",
        "--reviews",
        reviews,
        "--texts",
        texts,
        "--scale",
        "1-5",
        "--judge",
        answering_model,
        "--out",
        run,
        *QUICK,
    )
    done = perse(*asked)
    assert done.returncode == 0, done.stderr
    assert "3 pairs are not judged, since the reader's own reviews have the text" in done.stderr
    assert f"perse score export {run}" in "".join(done.stderr.split("\n")), done.stderr
    kept = [json.loads(line) for line in (run / "examples.jsonl").read_text("utf-8").splitlines()]
    assert [one["id"] for one in kept] == ["ann/house", "bob/hill", "bob/house"]
    assert [past["review"] for past in kept[0]["profile"]] == ["=1+1", "slow but true"], "oldest first"
    assert perse(*asked).returncode == 0, "the same command continues"
    told = perse("score", "export", run, "--out", out)
    assert told.returncode == 0, told.stderr
    rows = rows_of(out)
    assert [(row["reviewer_id"], row["item_id"], row["status"]) for row in rows] == [
        ("ann", "house", "ok"), ("bob", "hill", "ok"), ("bob", "house", "ok"),
    ]  # fmt: skip
    assert all(1 <= float(row["own_expected"]) <= 5 for row in rows)
    again = [tuple(line.values()) for line in csv.DictReader(REVIEWS.splitlines())]  # the same in Python: one reading of tables
    frames = [dict(zip(("user", "movie_id", "stars", "comment", "date"), line, strict=True)) for line in again]
    settings = JudgeSettings(temperature=0)
    found = Judge.load(answering_model, dtype="float32").score(
        frames, [*csv.DictReader(TEXTS.splitlines())], scale=(1, 5), question="pointwise_score", settings=settings
    )
    assert [one.id for one in found] == [row["id"] for row in rows]
    assert [one.expected for one in found] == pytest.approx([float(row["expected"]) for row in rows], abs=1e-4)


BAD_REVIEWS = [
    *(
        "ann,house,,never rated,2021-01-01",
        "ann,house,five,in words,2021-01-01",
        ",house,4,of nobody,",
        "bob,house,2,,2021-01-01",
    ),
    *(
        "bob,cliff,4,of a text that is not there,2021-01-01",
        "bob,sea,3,again,2021-01-01",
        "bob,hill,,,",
        "cyd,hill,,,",
        "cyd,sea,,,",
    ),
]


SAID = (
    "5 score not a number (reviews.csv, lines 5, 6, 11, ...); 1 empty review (reviews.csv, line 8); 1 item without text "
    "(texts.csv, line 5); 1 item without text in the items file (reviews.csv, line 9); 1 no reviewer (reviews.csv, line 7); 1 reviewed twice "
    "(reviews.csv, line 10)"
)


def spoil(tables: tuple[Path, Path]) -> None:
    with tables[0].open("a", encoding="utf-8") as reviews, tables[1].open("a", encoding="utf-8") as texts:
        reviews.write("\n".join(BAD_REVIEWS) + "\n")
        texts.write("cliff,\n")


def test_bad_rows_of_both_tables_are_left_out_where_that_is_asked_for(tables: tuple[Path, Path]) -> None:
    given: dict[str, Any] = {"columns": {}, "scale": (1, 5), "k": None}
    clean, faults = asked_by(*tables, None, **given), Faults("skip")
    spoil(tables)
    with pytest.raises(BadInput, match=r"texts\.csv, line 5: field 'text': found nothing"):
        asked_by(*tables, None, **given)
    assert asked_by(*tables, None, **given, faults=faults) == clean, "a row that is left out changes nothing"
    assert faults.told() == SAID


def test_the_rows_that_are_left_out_are_told_even_where_a_candidate_names_one(
    tables: tuple[Path, Path], tmp_path: Path
) -> None:
    spoil(tables)
    (tmp_path / "pairs.csv").write_text("user,movie_id\nbob,cliff\n", "utf-8")
    done = perse(
        *("score", "--reviews", tables[0], "--texts", tables[1], "--scale", "1-5", "--on-error", "skip"),
        *("--candidates", tmp_path / "pairs.csv", "--judge", "nobody", "--out", tmp_path / "run"),
    )
    assert done.returncode == 2 and f"left out, rows: {SAID}\n" in done.stderr, done.stderr
    assert "name the text 'cliff', which is none of the texts" in done.stderr, "what is named is never left out"


def test_a_mistake_in_the_columns_is_no_bad_row(tables: tuple[Path, Path]) -> None:
    with pytest.raises(BadInput, match=r"no usable row; the first: .*reviews\.csv, line 2: no column 'rate'"):
        asked_by(*tables, None, columns={"score": "rate"}, scale=(1, 5), k=None, faults=Faults("skip"))


@pytest.mark.parametrize(
    ("manifest", "asked", "said"),
    [
        ({"context": {"longest_profile": 1}}, [], True),
        ({"context": {"longest_profile": 1}}, ["--k", "2"], False),
        ({"context": {"longest_profile": 2}}, [], False),
        ({"config": {"data": {"k": 1}}}, [], True),
        ({"config": {"data": {"k": None}}}, [], False),
        ({"context": {"longest_profile": 0}}, [], False),  # of prompts whose profiles are not told apart
        ({"context": {"longest_profile": 1}, "question": "pairwise"}, [], False),
    ],
)
def test_longer_profiles_than_a_judge_was_trained_on_are_said_where_nobody_asked_for_them(
    manifest: dict[str, Any], asked: list[str], said: bool, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    judge = tmp_path / "judge"
    judge.mkdir()
    run = {"kind": "train", "config": manifest.get("config", {}), "question": manifest.get("question", "pointwise_score")}
    (judge / "manifest.json").write_text(json.dumps({"run": run, "context": manifest.get("context", {})}), encoding="utf-8")
    files = ("--reviews", tables[0], "--texts", tables[1], "--scale", "1-5")
    done = perse("score", *files, *asked, "--judge", judge, "--out", tmp_path / "run")
    note = "note: the judge was trained on profiles of 1 review, and readers here have up to 2; --k 1 shows the latest 1\n"
    assert (note in done.stderr) == said and ("was trained on" in done.stderr) == said, done.stderr


def test_a_column_that_both_tables_have_is_mapped_for_the_texts_as_the_message_says(tables: tuple[Path, Path]) -> None:
    reviews, texts = tables
    reviews.write_text(REVIEWS.replace("comment", "words"), encoding="utf-8")
    texts.write_text(TEXTS.replace("plot", "words", 1), encoding="utf-8")
    given: dict[str, Any] = {"scale": (1, 5), "k": None}
    with pytest.raises(BadInput, match=r"texts\.csv, line 2: no column for field 'text'.*; give --map items\.text=COLUMN"):
        asked_by(*tables, None, columns={"review": "words"}, **given)
    found, _ = asked_by(*tables, None, columns={"review": "words", "items.text": "words"}, **given)
    assert found[0].query.startswith("A house") and found[0].profile[0].text.startswith("Two sisters")
    with pytest.raises(BadInput, match=r"no field 'items\.txt' \(nearest: 'items\.text'\)"):
        asked_by(*tables, None, columns={"review": "words", "items.txt": "words"}, **given)


def test_candidates_and_columns_are_said_as_elsewhere(tables: tuple[Path, Path], answering_model: Path, tmp_path: Path) -> None:
    reviews, texts = tables
    reviews.write_text(REVIEWS.replace("user", "who").replace("comment", "text"), encoding="utf-8")
    (tmp_path / "some.csv").write_text("user,movie_id\nbob,house\n", encoding="utf-8")
    done = perse(
        *("score", "--reviews", reviews, "--texts", texts, "--candidates", tmp_path / "some.csv", "--map", "reviewer_id=who"),
        *("--k", 1, "--scale", "1-5", "--judge", answering_model, "--out", tmp_path / "run", *QUICK),
    )
    assert done.returncode == 0, done.stderr
    [one] = [json.loads(line) for line in (tmp_path / "run" / "examples.jsonl").read_text("utf-8").splitlines()]
    assert one["id"] == "bob/house" and one["profile"][0]["review"] == "nothing, nothing happens", "text is what they wrote"


def asked_by(*files: Any, **given: Any) -> tuple[list[Any], int]:
    loaded, left_out = load_tables(*files, **given)
    return [*loaded.examples], left_out


def test_mapped_columns_are_those_of_the_candidates_too_and_texts_need_no_ids(
    tables: tuple[Path, Path], tmp_path: Path
) -> None:
    rows = list(csv.DictReader(TEXTS.splitlines()))
    texts, plots = {row["movie_id"]: row["plot"] for row in rows}, "".join(f'"{row["plot"]}"\n' for row in rows)
    past = f'who,plot,stars,comment\nann,"{texts["sea"]}",4,slow\nbob,"{texts["sea"]}",1,nothing\n'
    columns = {"reviewer_id": "who"}
    (tmp_path / "past.csv").write_text(past, encoding="utf-8")
    (tmp_path / "plots.csv").write_text(f"plot\n{plots}", encoding="utf-8")
    (tmp_path / "some.csv").write_text(f"who,item_id\nbob ,{item_of(texts['house'])}\n", encoding="utf-8")
    of = (tmp_path / "past.csv", tmp_path / "plots.csv")
    given: dict[str, Any] = {"columns": columns, "scale": (1, 5), "k": None}
    every, left_out = asked_by(*of, None, **given)
    assert left_out == 2 and [one.query for one in every] == [texts["hill"], texts["house"]] * 2
    some, _ = asked_by(*of, str(tmp_path / "some.csv"), **given)
    assert [(one.reviewer_id, one.query) for one in some] == [("bob", texts["house"])]
    frames = [list(csv.DictReader((tmp_path / name).open(encoding="utf-8"))) for name in ("past.csv", "plots.csv", "some.csv")]
    assert read_tables(*frames, **given).asked.examples == some, "as in Python"
    (tmp_path / "plots.csv").write_text(
        "key,plot\n" + "".join(f"{n},{row}\n" for n, row in enumerate(plots.splitlines())), "utf-8"
    )
    keyed, _ = asked_by(*of, None, **given | {"columns": columns | {"item_id": "key"}})
    assert [one.item_id for one in keyed] == ["1", "2"] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("pointwise_score", ""),
        ("pointwise_score_evidence", "another question (--question; in Python question=), such as pointwise_score_stated"),
    ],
)
def test_the_question_of_the_judges_stacking_is_the_usual_one_of_tables(
    question: str, said: str, tables: tuple[Path, Path], answering_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "judge"
    shutil.copytree(answering_model, folder)
    who = Judge.load(folder, dtype="float32").identity.portable
    write_stacking(folder / "stacking.json", fitted(question, StackedJudge(model=who.model, sha256=who.digest)))
    done = perse(
        *("score", "--reviews", tables[0], "--texts", tables[1], "--scale", "1-5", "--judge", folder),
        *("--out", tmp_path / "run", "--temperature", "0", "--dtype", "float32"),
    )
    if said:
        assert done.returncode == 2 and said in " ".join(done.stderr.split()), done.stderr
        return
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in (tmp_path / "run" / "judgements.jsonl").read_text("utf-8").splitlines()]
    assert {one["question"] for one in told} == {question} and all(one["stacked"] is not None for one in told)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--reviews", "{reviews}"], "--reviews and --texts belong together"),
        (["--reviews", "{reviews}", "--texts", "{texts}", "--examples", "x"], "in the place of --examples"),
        (["--reviews", "{reviews}", "--texts", "{texts}", "--readers", "x"], "in the place of --examples"),
        (["--reviews", "{reviews}", "--texts", "{texts}", "--driver", "local"], "--reviews are judged in this process"),
        (["--reviews", "{reviews}", "--texts", "{texts}", "--fold", "0"], "--fold is of data set folders"),
        (["--reviews", "{reviews}", "--texts", "{texts}", "--no-review-text"], "are of data set folders"),
        (["--reviews", "{reviews}", "--texts", "{texts}", "--scale", "1-3"], "line 2: field 'score': found \"4\", expected a number from 1 to 3"),
        (["--reviews", "{texts}", "--texts", "{texts}"], "no column for field 'reviewer_id'"),
        (["--examples", "{texts}", "--scale", "1-5"], "--scale, --map and --on-error are of --reviews"),
        (["--examples", "{texts}", "--on-error", "skip"], "--scale, --map and --on-error are of --reviews"),
        (["--examples", "{texts}"], "CSV of reviews and of texts is --reviews and --texts"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_a_sentence(
    options: list[str], said: str, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    given = [one.format(reviews=tables[0], texts=tables[1]) for one in options]
    done = perse("score", *given, "--judge", "nobody", "--out", tmp_path / "run")
    assert done.returncode == 2 and said in " ".join(done.stderr.split()), done.stderr
    assert not (tmp_path / "run").exists()


def test_any_run_comes_out_as_csv_with_what_the_readers_said(answering_model: Path, tmp_path: Path) -> None:
    for name, examples in (("single", pointwise_examples(1, 2)), ("pairs", pairwise_examples(1))):
        (tmp_path / f"{name}.jsonl").write_text("".join(example_lines(examples)), encoding="utf-8")
        scored = perse(
            "score",
            "--examples",
            tmp_path / f"{name}.jsonl",
            "--judge",
            answering_model,
            "--out",
            tmp_path / name,
            "--max-new-tokens",
            4,
        )
        assert scored.returncode == 0, scored.stderr
        assert perse("score", "export", tmp_path / name, "--out", tmp_path / f"{name}.csv").returncode == 0
        rows = rows_of(tmp_path / f"{name}.csv")
        assert [row["id"] for row in rows] == [example.id for example in examples]
        assert [row["truth"] for row in rows] == [str(example.truth) for example in examples]
    assert {"p_A", "p_B", "aspect"} <= rows[0].keys()
    for out, said in (("single.csv", "--overwrite"), ("single.xlsx", "end it with .csv")):
        refused = perse("score", "export", tmp_path / "single", "--out", tmp_path / out)
        assert refused.returncode == 2 and said in refused.stderr, refused.stderr
    refused = perse("score", "export", tmp_path / "nowhere", "--out", tmp_path / "x.csv")
    assert refused.returncode == 2 and "is not a run folder" in refused.stderr


@pytest.fixture
def half_a_run(tmp_path: Path) -> Path:
    """A run of two examples that was ended after one."""
    run, examples = tmp_path / "half", pointwise_examples(1, 2)
    run.mkdir()
    (run / "manifest.json").write_text(json.dumps({"run": {"kind": "score"}, "context": {}}), encoding="utf-8")
    (run / "examples.jsonl").write_text("".join(example_lines(examples)), encoding="utf-8")
    (run / "judgements.jsonl").write_text(answered(examples[0].id, "7").model_dump_json() + "\n", encoding="utf-8")
    return run


def test_half_a_run_is_exported_as_half_a_run(half_a_run: Path, tmp_path: Path) -> None:
    done = perse("score", "export", half_a_run, "--out", tmp_path / "some.csv")
    assert done.returncode == 0, done.stderr
    assert "1 of 2 judged; the run is not finished" in " ".join(done.stderr.split())
    assert len(rows_of(tmp_path / "some.csv")) == 1


def test_the_table_is_written_into_a_folder_that_was_not_there(half_a_run: Path, tmp_path: Path) -> None:
    done = perse("score", "export", half_a_run, "--out", tmp_path / "new" / "tables" / "some.csv")
    assert done.returncode == 0 and len(rows_of(tmp_path / "new" / "tables" / "some.csv")) == 1, done.stderr
    (tmp_path / "nothing").symlink_to(tmp_path / "gone")
    refused = perse("score", "export", half_a_run, "--out", tmp_path / "nothing" / "some.csv")
    assert refused.returncode == 2 and "give another --out" in refused.stderr, refused.stderr


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), st.sampled_from("=+-@\t\r'\uff1d"))
def test_no_text_of_a_model_or_a_reader_is_a_formula_in_a_spreadsheet_and_all_come_back(text: str, first: str) -> None:
    hostile: Any = first + text
    judgement = Judgement(
        id=hostile, question="q", status=Status.OK, label="5", text=hostile, k_effective=0,
        tokens=Tokens(prompt=0, cached=0, generated=0), model="m",
    )  # fmt: skip
    [row] = csv.DictReader(io.StringIO(as_csv([judgement], []), newline=""))
    for name in ("id", "text"):
        assert plain(row[name]) == hostile
        assert row[name].startswith("'") or is_number(row[name]), "a lone sign and a number compute nothing"


def is_number(cell: str) -> bool:
    try:
        return float(cell) == float(cell)
    except ValueError:
        return False
