"""Ids as short as "0" stand in many files, of other people's examples too; only within one run do they tell whose a line is."""

import json
from pathlib import Path

import pytest

from perse.data.forgetting.forget import forget

ANN, BOB, CY = "Ann", "Bob", "Cy"


def example(who: str, number: int) -> dict[str, object]:
    return {"id": str(number), "reviewer_id": who, "item_id": "i", "profile": [], "query": "a text"}


def written(file: Path, *rows: dict[str, object]) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def judgement(number: int) -> dict[str, object]:
    return {"id": str(number), "question": "q", "status": "ok"}


def scored(folder: Path) -> Path:
    """A scored run of two examples: 0 is Bob's, 1 is Cy's."""
    written(folder / "examples.jsonl", example(BOB, 0), example(CY, 1))
    written(folder / "judgements.jsonl", judgement(0), judgement(1))
    (folder / "manifest.json").write_text(json.dumps({"run": {"kind": "score"}}))
    return folder


def ids(file: Path) -> list[str]:
    return [json.loads(line)["id"] for line in file.read_text().splitlines()]


def test_a_person_of_an_export_that_lies_in_a_run_takes_no_line_of_the_run_along(tmp_path: Path) -> None:
    run = scored(tmp_path / "run")
    written(run / "b.jsonl", example(ANN, 0), example(BOB, 1))
    before = [(run / name).read_bytes() for name in ("examples.jsonl", "judgements.jsonl")]
    (gone,) = forget(ANN, [run])
    assert [(run / name).read_bytes() for name in ("examples.jsonl", "judgements.jsonl")] == before
    assert ids(run / "b.jsonl") == ["1"] and gone.examples == 1


def test_a_person_of_a_run_takes_their_judgements_along_and_no_line_of_an_export_that_lies_there(tmp_path: Path) -> None:
    run = scored(tmp_path / "run")
    export = written(run / "b.jsonl", example(ANN, 0), {"id": "0", "query": "of nobody known"})
    before = export.read_bytes()
    forget(BOB, [run])
    assert ids(run / "examples.jsonl") == ids(run / "judgements.jsonl") == ["1"]
    assert export.read_bytes() == before


@pytest.mark.parametrize("name", ["examples.jsonl", "b.jsonl"])
def test_a_line_that_names_another_reviewer_stays_whoever_has_its_id(tmp_path: Path, name: str) -> None:
    run = scored(tmp_path / "run")
    written(run / name, example(ANN, 0), example(BOB, 0), example(CY, 1))
    alone = written(tmp_path / "alone.jsonl", example(ANN, 0), example(BOB, 0))
    forget(ANN, [run, alone])
    assert ids(run / name) == ["0", "1"] and ids(alone) == ["0"]


def test_a_sample_that_names_another_reviewer_stays_whoever_has_its_id(tmp_path: Path) -> None:
    ann, bob = "r0123456789ab", "r1123456789ab"
    samples = written(tmp_path / "samples.jsonl", *({"id": "0", "own": {"reviewer_id": who}} for who in (ann, bob)))
    forget(ann, [samples])
    assert [json.loads(line)["own"]["reviewer_id"] for line in samples.read_text().splitlines()] == [bob]


def test_an_id_found_in_one_place_counts_in_no_other_place_of_the_command(tmp_path: Path) -> None:
    run, other = scored(tmp_path / "run"), scored(tmp_path / "other")
    written(other / "examples.jsonl", example(ANN, 0), example(CY, 1))
    alone = written(tmp_path / "alone.jsonl", example(ANN, 1), judgement(0))
    before = (run / "judgements.jsonl").read_bytes()
    forget(ANN, [alone, other, run])
    assert (run / "judgements.jsonl").read_bytes() == before
    assert ids(other / "judgements.jsonl") == ["1"] and ids(alone) == ["0"]


def test_a_file_is_no_place_of_its_own_where_its_folder_is_named_too(tmp_path: Path) -> None:
    run = scored(tmp_path / "run")
    link = tmp_path / "link"
    link.symlink_to(run)
    written(run / "b.jsonl", example(BOB, 5), example(CY, 6))
    gone = forget(BOB, [link / "judgements.jsonl", run, run / "b.jsonl"])
    assert [one.path for one in gone] == [run]
    assert ids(run / "examples.jsonl") == ids(run / "judgements.jsonl") == ["1"] and ids(run / "b.jsonl") == ["6"]


@pytest.mark.parametrize("name", ["mixed.jsonl", "export.txt"])
def test_a_file_that_its_folder_leaves_alone_is_still_a_place_of_its_own(tmp_path: Path, name: str) -> None:
    run = scored(tmp_path / "run")
    file = written(run / name, example(BOB, 0), *([judgement(1)] if name == "mixed.jsonl" else [example(CY, 1)]))
    assert [one.path for one in forget(BOB, [run, file])] == [run, file]
    assert ids(file) == ["1"]
