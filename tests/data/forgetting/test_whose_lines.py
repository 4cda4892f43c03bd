"""What is perse's own in a folder depends on what its kind writes there; all other lines and files keep their bytes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from perse.commands.app import app
from perse.data.forgetting.forget import forget
from perse.data.forgetting.lines import is_own, own_lines
from perse.errors import BadInput
from perse.identity import catalogue_id

ANN, BOB = "r0123456789ab", "r1123456789ab"


def example(who: str, number: int = 1) -> dict[str, object]:
    return {"id": f"{who}/{number}", "reviewer_id": who, "item_id": "i", "profile": [], "query": "a text"}


def run_of(folder: Path, run: dict[str, object]) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"run": run}))
    return folder


def scored(folder: Path) -> Path:
    """A scored run of one example of Ann's and one of Bob's."""
    run_of(folder, {"kind": "score"})
    (folder / "examples.jsonl").write_text("".join(json.dumps(example(who)) + "\n" for who in (ANN, BOB)))
    (folder / "judgements.jsonl").write_text("".join(json.dumps({"id": f"{who}/1"}) + "\n" for who in (ANN, BOB)))
    return folder


MINE = json.dumps({"reviewer_id": ANN}) + '\n{"score": 1e2}\nhalf a li'


@pytest.mark.parametrize("name", ["arms.jsonl", "pairs.jsonl", "names.jsonl", "skipped.jsonl", "samples.jsonl"])
def test_a_file_that_this_kind_of_run_does_not_write_is_the_users_whatever_its_name(tmp_path: Path, name: str) -> None:
    run = scored(tmp_path / "run")
    (run / name).write_text(MINE)
    done = CliRunner().invoke(app, ["data", "forget", ANN, str(run)])
    assert done.exit_code == 0, done.output
    assert (run / name).read_text() == MINE
    assert f"still holds the person: {run / name}" in done.stderr.splitlines()
    assert ANN not in (run / "examples.jsonl").read_text() + (run / "judgements.jsonl").read_text()


@pytest.mark.parametrize(
    ("manifest", "own"),
    [
        ({"run": {"kind": "study", "study": "k"}}, {"arms.jsonl"}),
        ({"run": {"kind": "study", "study": "kgds-agreement"}}, {"asked.jsonl", "pairs.jsonl"}),
        ({"run": {"kind": "kgds-generate"}}, {"summaries.jsonl"}),
        ({"run": {"kind": "persum"}}, {"judgements.jsonl", "timing.jsonl"}),
        ({"run": {"kind": "train"}}, set()),
        ({"schema": 1, "kind": "persum", "files": {"samples.jsonl": ""}}, {"samples.jsonl"}),
        ({"schema": 1, "kind": "release", "files": {"verbatim.jsonl": "", "skipped.jsonl": ""}}, {"verbatim.jsonl", "skipped.jsonl"}),
        ({"note": "mine"}, set()),
    ],
)  # fmt: skip
def test_every_kind_of_folder_has_its_own_files_of_lines(tmp_path: Path, manifest: dict[str, object], own: set[str]) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert {name for name in own_lines(tmp_path) if name.endswith(".jsonl")} == own


def test_the_work_folder_of_a_rewritten_table_owns_what_was_written_there(tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    table.write_text("item_id,text\na,Anna Berg left Paris for the sea.\n")
    done = CliRunner().invoke(app, ["data", "anonymize", "--items", str(table), "--out", str(tmp_path / "out.jsonl")])
    assert done.exit_code == 0, done.output
    work = tmp_path / "out.jsonl.work"
    (work / "pairs.jsonl").write_text(MINE)
    assert is_own(work / "rewriting.jsonl") and is_own(work / "skipped.jsonl") and not is_own(work / "pairs.jsonl")


def odd(row: dict[str, object]) -> bytes:
    """A line as other programs write it: numbers, escapes, spaces and line ends unlike Python's."""
    text = json.dumps(row)[:-1] + ',  "extra": [1e2, 0.10000000000000000555, 123456789012345678901234567890, "\\u00e4\\/"]}'
    return text.encode() + b"\r\n"


def lone(tmp_path: Path) -> Path:
    return tmp_path / "valid.jsonl"


def in_a_run(tmp_path: Path) -> Path:
    return run_of(tmp_path / "run", {"kind": "score"}) / "examples.jsonl"


@pytest.mark.parametrize("place", [lone, in_a_run])
def test_the_lines_of_others_keep_their_bytes(tmp_path: Path, place: Callable[[Path], Path]) -> None:
    file = place(tmp_path)
    last = odd(example(BOB, 2)).rstrip()
    file.write_bytes(odd(example(BOB)) + odd(example(ANN)) + last)
    forget(ANN, [file if file.parent == tmp_path else file.parent])
    assert file.read_bytes() == odd(example(BOB)) + last


def test_a_sample_that_loses_a_review_is_written_anew_and_the_others_are_not(tmp_path: Path) -> None:
    def sample(number: int, *reviewers: str) -> dict[str, object]:
        reviews = [{"reviewer_id": who, "review": "half \ud83d"} for who in reviewers]
        return {"id": str(number), "own": {"reviewer_id": "cy"}, "product_reviews": reviews}

    file = tmp_path / "samples.jsonl"
    file.write_bytes(odd(sample(1, BOB)) + odd(sample(2, ANN, BOB)))
    (gone,) = forget(ANN, [file])
    one, two = file.read_bytes().splitlines(keepends=True)
    assert one == odd(sample(1, BOB)) and json.loads(two)["product_reviews"] == sample(2, BOB)["product_reviews"]
    assert (gone.records, gone.examples) == (1, 0)


def test_a_last_line_that_is_no_json_is_torn_in_a_runs_own_log_and_refused_in_a_file_of_its_own(tmp_path: Path) -> None:
    run, export = scored(tmp_path / "run"), tmp_path / "valid.jsonl"
    with (run / "judgements.jsonl").open("a") as file:
        file.write('{"id": "torn')
    forget(ANN, [run])
    assert (run / "judgements.jsonl").read_text() == json.dumps({"id": f"{BOB}/1"}) + "\n"
    export.write_text(json.dumps(example(ANN)) + '\n{"id": "torn')
    before = export.read_bytes()
    with pytest.raises(BadInput, match=r"valid.jsonl, line 2: not JSON .*; give a file of examples or judgements"):
        forget(ANN, [export])
    assert export.read_bytes() == before


def test_examples_of_a_run_are_written_at_once_so_their_last_line_is_never_torn(tmp_path: Path) -> None:
    run = scored(tmp_path / "run")
    with (run / "examples.jsonl").open("a") as file:
        file.write("mine")
    with pytest.raises(BadInput, match=r"examples.jsonl, line 3: not JSON"):
        forget(ANN, [run])


def test_an_export_in_a_run_whose_last_line_is_no_json_is_left_and_named(tmp_path: Path) -> None:
    run = scored(tmp_path / "run")
    (run / "export.jsonl").write_text(json.dumps(example(ANN)) + "\nhalf a li")
    done = CliRunner().invoke(app, ["data", "forget", ANN, str(run)])
    assert done.exit_code == 0 and (run / "export.jsonl").read_text().endswith("\nhalf a li")
    assert f"still holds the person: {run / 'export.jsonl'}" in done.stderr.splitlines()


def test_a_raw_file_is_refused_and_stays_as_it_is_with_all_other_places(tmp_path: Path) -> None:
    run, raw = scored(tmp_path / "run"), tmp_path / "reviews.jsonl"
    raw.write_text("".join(json.dumps({"reviewer_id": who, "review": "good", "score": 5}) + "\n" for who in (ANN, BOB)))
    before = {file: file.read_bytes() for file in (raw, *run.iterdir())}
    with pytest.raises(BadInput, match=r"reviews.jsonl, line 1: is no example or judgement .*raw files are changed by hand"):
        forget(ANN, [run, raw])
    assert {file: file.read_bytes() for file in before} == before


def test_judgements_and_samples_may_be_given_as_files(tmp_path: Path) -> None:
    judgements, samples = tmp_path / "judgements.jsonl", tmp_path / "samples.jsonl"
    judgements.write_text("".join(json.dumps({"id": f"{one}/1", "question": "q", "status": "ok"}) + "\n" for one in (ANN, BOB)))
    samples.write_text(
        "".join(json.dumps({"id": str(n), "own": {"reviewer_id": one}}) + "\n" for n, one in enumerate((ANN, BOB)))
    )
    assert [gone.examples for gone in forget(ANN, [judgements, samples])] == [1, 1]
    assert ANN not in judgements.read_text() + samples.read_text()


def test_one_file_of_a_run_is_refused_since_its_ids_tell_nobody_alone(tmp_path: Path) -> None:
    run = scored(tmp_path / "run")
    before = {file: file.read_bytes() for file in run.iterdir()}
    for files in ([run / "judgements.jsonl"], [run / "examples.jsonl", run / "judgements.jsonl"]):
        with pytest.raises(BadInput, match=r"goes with the other files of .*run, .*; name the folder"):
            forget(ANN, files)
    assert {file: file.read_bytes() for file in run.iterdir()} == before


def test_ids_that_are_no_text_are_nobodys(tmp_path: Path) -> None:
    run = scored(tmp_path / "run")
    with (run / "judgements.jsonl").open("a") as file:
        file.write('{"id": [1], "reviewer_id": [2]}\n')
    forget(ANN, [run])
    assert '{"id": [1], "reviewer_id": [2]}\n' in (run / "judgements.jsonl").read_text()


def merged(file: Path, *ids: str) -> Path:
    """Judgements as `perse score merge` writes them."""
    file.write_text("".join(json.dumps({"id": one, "question": "pointwise", "status": "ok"}) + "\n" for one in ids))
    return file


def kept(file: Path) -> list[str]:
    return [json.loads(line)["id"] for line in file.read_text().splitlines()]


@pytest.mark.parametrize("name", ["Ann", "Ann/A. 100%", ANN])
def test_a_person_leaves_the_merged_judgements_of_a_catalogue_by_name(tmp_path: Path, name: str) -> None:
    theirs = [catalogue_id(name, text) for text in ("t1", "Ann")]
    others = [catalogue_id(who, text) for who in (BOB, "Anna") for text in ("t1", name)]
    if name == ANN:  # a pseudonym stands for nobody and nothing else
        others = [catalogue_id(who, "t1") for who in (BOB, "Anna")]
    file = merged(tmp_path / "all.jsonl", *theirs, *others)
    done = CliRunner().invoke(app, ["data", "forget", name, str(file)])
    assert done.exit_code == 0, done.output
    assert kept(file) == others and "2 examples removed" in done.stderr


def test_a_person_leaves_the_best_texts_of_readers(tmp_path: Path) -> None:
    rows = [
        {"reader": who, "text": "Ann", "rank": 1, "tied": 1, "expected": 5.5, "label": "5", "status": "ok", "id": f"{who}/Ann"}
        for who in ("Ann", "Bob")
    ]
    file = tmp_path / "best.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = CliRunner().invoke(app, ["data", "forget", "Ann", str(file)])
    assert done.exit_code == 0, done.output
    assert kept(file) == ["Bob/Ann"]


def test_ids_of_other_judgements_name_nobody(tmp_path: Path) -> None:
    file = merged(tmp_path / "all.jsonl", "Ann/1", "Ann/1/2")
    (gone,) = forget("Ann", [file], salt="s")
    assert gone.examples == 0 and len(kept(file)) == 2
    run = run_of(tmp_path / "run", {"kind": "score"})
    (run / "examples.jsonl").write_text(
        json.dumps(example("Bob") | {"id": "Ann/1"}) + "\n" + json.dumps(example("Ann") | {"id": "Bob/1"}) + "\n"
    )
    merged(run / "judgements.jsonl", "Ann/1", "Bob/1")
    forget("Bob", [run])
    assert kept(run / "examples.jsonl") == kept(run / "judgements.jsonl") == ["Bob/1"], (
        "in a run the examples say whose they are"
    )


def test_a_place_that_nobody_can_be_taken_out_of_is_refused_with_what_to_do(tmp_path: Path) -> None:
    whole = scored(tmp_path / "run")
    before = {path.name: path.read_bytes() for path in whole.iterdir()}
    (tmp_path / "link").symlink_to(whole)
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    (tmp_path / "empty").mkdir()
    shards = {}
    for name in ("shards", "groups"):
        shards[name] = run_of(tmp_path / name, {"kind": "score"})
        (shards[name] / "plan").mkdir()
        (shards[name] / "plan" / f"{name}.parquet").write_bytes(b"")
    rehearsed = run_of(tmp_path / "rehearsed", {"kind": "rehearsal-leniency"})
    for place, said in (
        (tmp_path / "link", "is a link to .*run, and is not written through; name what it leads to"),
        (tmp_path / "table.parquet", "is a file of Parquet, of which nobody is taken out; remove it"),
        (tmp_path / "empty", "found no data set, scored run or file of examples to forget a person in"),
        (tmp_path / "nowhere", "found no data set, scored run or file of examples to forget a person in"),
        (shards["shards"], "is a run in shards, of which nobody can be taken out"),
        (shards["groups"], "is a run in shards, of which nobody can be taken out"),
        (rehearsed, "is a run of perse rehearsal, whose summaries and answers are made of many people's reviews"),
    ):
        with pytest.raises(BadInput, match=said):
            forget(ANN, [whole, place])
    for nobody in ("", "  "):
        with pytest.raises(BadInput, match="no person is named"):
            forget(nobody, [whole])
    assert {path.name: path.read_bytes() for path in whole.iterdir()} == before
    [gone] = forget(ANN, [whole])
    assert gone.examples == 1
