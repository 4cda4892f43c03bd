"""`perse data`: options reach the build, stdout carries machine output alone, files appear whole."""

import gzip
import json
import re
from pathlib import Path

import pytest
from command_line import perse
from typer.testing import CliRunner, Result

from perse.commands.data.build import app
from perse.data.dataset.folder import load_folder
from perse.data.examples_file import read_examples
from perse.errors import BadInput


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_json_is_alone_on_stdout_and_export_writes_what_the_folder_holds(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    built = run("pairwise", "--pairs", raw / "pairs.jsonl", "--out", out, "--max-queries", 0, "--json")
    summary = json.loads(built.stdout)
    assert built.exit_code == 0 and summary["digest"] == load_folder(out).digest
    assert "left out" in built.stderr and "written:" in built.stderr
    assert "validation texts also stand in training" in summary["notes"][0] and summary["notes"][0] in built.stderr
    assert summary["parts"][1]["texts_in_training"] == 0
    assert load_folder(out).manifest["options"]["max_queries"] is None
    assert run("export", out, "--split", "train", "--out", tmp_path / "train.jsonl").stdout == ""
    assert read_examples(tmp_path / "train.jsonl") == load_folder(out).examples("train")
    assert run("export", out, "--split", "train").stdout == (tmp_path / "train.jsonl").read_text("utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set", "train.jsonl"]


def test_an_export_that_cannot_be_written_leaves_nothing(raw: Path, tmp_path: Path) -> None:
    run("pairwise", "--pairs", raw / "pairs.jsonl", "--out", tmp_path / "set")
    (tmp_path / "taken" / "full").mkdir(parents=True)
    result = run("export", tmp_path / "set", "--out", tmp_path / "taken")
    assert isinstance(result.exception, BadInput) and "give another --out" in str(result.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set", "taken"]


def test_an_export_replaces_a_file_on_request_only_and_a_data_sets_own_never(raw: Path, tmp_path: Path) -> None:
    data, there = tmp_path / "set", tmp_path / "there.jsonl"
    run("pairwise", "--pairs", raw / "pairs.jsonl", "--out", data)
    there.write_text("mine")
    refused = run("export", data, "--out", there)
    assert isinstance(refused.exception, BadInput) and "already there; give another --out, or --overwrite" in str(
        refused.exception
    )
    assert there.read_text() == "mine"
    (tmp_path / "link").symlink_to(data)
    before = {path: path.read_bytes() for path in data.iterdir()}
    for own in (data / "examples.parquet", tmp_path / "link" / "README.md", data / "reviews.parquet"):
        refused = run("export", data, "--out", own, "--overwrite")
        assert isinstance(refused.exception, BadInput)
        assert re.search("which perse wrote, and is not overwritten|says another format", str(refused.exception))
    assert {path: path.read_bytes() for path in data.iterdir()} == before
    refused = run("export", data, "--out", there, "--overwrite")
    assert isinstance(refused.exception, BadInput) and "is no file that this command writes" in str(refused.exception)
    assert there.read_text() == "mine"
    there.write_text("")
    assert run("export", data, "--out", there, "--overwrite").exit_code == 0 and len(read_examples(there)) > 0
    assert run("export", data, "--split", "train", "--out", there, "--overwrite").exit_code == 0


@pytest.mark.parametrize("name", ["reviews.csv", "reviews.CSV.gz", "texts.tsv", "raw.parquet"])
def test_an_export_is_not_called_a_table_and_so_replaces_none_that_a_set_was_built_from(
    name: str, raw: Path, tmp_path: Path
) -> None:
    run("pairwise", "--pairs", raw / "pairs.jsonl", "--out", tmp_path / "set")
    (tmp_path / name).write_text("mine")
    refused = run("export", tmp_path / "set", "--out", tmp_path / name, "--overwrite")
    assert isinstance(refused.exception, BadInput) and "JSON lines are written: end it with .jsonl" in str(refused.exception)
    assert (tmp_path / name).read_text() == "mine"


def test_an_export_never_replaces_what_it_reads(raw: Path, tmp_path: Path) -> None:
    data, theirs = tmp_path / "set", tmp_path / "PerMPST.jsonl"
    run("pairwise", "--pairs", raw / "pairs.jsonl", "--out", data)
    theirs.write_text("released")
    refused = run("export", data, "--wording", theirs, "--out", theirs, "--overwrite")
    assert isinstance(refused.exception, BadInput) and "is an input and cannot be the output too" in str(refused.exception)
    assert theirs.read_text() == "released"


def test_the_folder_of_an_export_is_made_and_a_file_in_its_place_is_named(raw: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "set", tmp_path / "new" / "deep" / "valid.jsonl"
    run("pairwise", "--pairs", raw / "pairs.jsonl", "--out", data)
    assert run("export", data, "--out", out).exit_code == 0 and read_examples(out) == load_folder(data).examples("valid")
    refused = run("export", data, "--out", out / "valid.jsonl")
    assert str(refused.exception) == f"{out}/valid.jsonl: {out} is no folder; give another --out"


def test_an_export_whose_name_ends_in_gz_is_packed_to_the_same_bytes_each_time(raw: Path, tmp_path: Path) -> None:
    data, packed, plain = tmp_path / "set", tmp_path / "valid.jsonl.gz", tmp_path / "valid.jsonl"
    run("pairwise", "--pairs", raw / "pairs.jsonl", "--out", data)
    run("export", data, "--out", plain)
    assert run("export", data, "--out", packed).exit_code == 0
    first = packed.read_bytes()
    assert gzip.decompress(first) == plain.read_bytes() and first[4:8] == bytes(4)  # no time in its head
    assert read_examples(packed) == read_examples(plain)
    run("export", data, "--out", packed, "--overwrite")
    assert packed.read_bytes() == first


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--map", "text"), "--map text: expected FIELD=COLUMN"),
        (("--map", "text=a", "--map", "text=b"), "field 'text' is mapped twice"),
        (("--map", "txt=a"), "no field 'txt' (nearest: 'text')"),
        (("--scale", "five"), "--scale five: expected LOW-HIGH"),
        (("--scale", "1-5"), "expected a number from 1 to 5"),
        (("--k", "6"), "min_reviews is 6, expected more than k = 6"),
    ],
)
def test_wrong_options_are_one_clear_sentence(raw: Path, tmp_path: Path, options: tuple[str, ...], expected: str) -> None:
    result = run(
        "pointwise", "--reviews", raw / "reviews.jsonl", "--items", raw / "items.jsonl", "--out", tmp_path / "x", *options
    )
    assert isinstance(result.exception, BadInput) and expected in str(result.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["items.jsonl", "items.jsonl.work/rewriting.jsonl"])
def test_answers_are_not_kept_in_a_file_that_the_rewriting_replaces(tmp_path: Path, place: str) -> None:
    table, out = tmp_path / "plots.csv", tmp_path / "items.jsonl"
    table.write_text("item_id,text\na,Anna Berg left Paris.\n")
    line = ["anonymize", "--items", str(table), "--out", str(out), "--cache", str(tmp_path / place)]
    said = CliRunner().invoke(app, line).exception
    assert isinstance(said, BadInput) and "among the files that a build of" in str(said), said
    assert [path.name for path in tmp_path.iterdir()] == ["plots.csv"]


@pytest.mark.parametrize("command", ["anonymize", "summarize", "per-mpst"])
def test_an_output_that_nothing_can_stand_beside_is_refused_in_a_sentence(tmp_path: Path, command: str) -> None:
    table = tmp_path / "plots.jsonl"
    table.write_text('{"item_id": "a", "text": "Anna Berg left Paris."}\n')
    given = ["--plots", str(table), "--reviews", str(table)] if command == "per-mpst" else ["--items", str(table)]
    for place in ("/", ".", "", ".."):
        said = CliRunner().invoke(app, [command, *given, "--out", place]).exception
        assert isinstance(said, BadInput) and len(str(said)) < 200, (place, said)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ['{"item_id": 5, "names": {}}', '{"item_id": "a"}', '{"item_id": "a", "names": ["Ann"]}', "5", "{"]
)
def test_a_damaged_log_of_a_rewriting_is_named_with_its_line_by_the_next(tmp_path: Path, line: str) -> None:
    table, made = tmp_path / "plots.csv", tmp_path / "anonymous.jsonl"
    table.write_text("item_id,text\na,Anna Berg left Paris for the sea. She found the lamp there.\n")
    done = perse("data", "anonymize", "--items", table, "--out", made)
    assert done.returncode == 0, done.stderr
    log = tmp_path / "anonymous.jsonl.work" / "rewriting.jsonl"
    log.write_text(line + "\n" + log.read_text())
    done = perse("data", "summarize", "--items", made, "--out", tmp_path / "short.jsonl")
    assert done.returncode == 2 and f"{log}, line 1" in done.stderr.replace("\n", ""), done.stderr
    assert "Traceback" not in done.stderr and not (tmp_path / "short.jsonl").exists()
