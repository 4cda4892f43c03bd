"""`--json` of commands that otherwise speak to a person: one document on stdout and nothing else, words on stderr."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from command_line import perse


def told(*arguments: object) -> Any:
    done = perse(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_models_that_are_embedded() -> None:
    assert {"name", "hub", "licence", "here"} == set(told("models", "list")[0])


def test_a_rewriting(tmp_path: Path) -> None:
    table = tmp_path / "plots.csv"
    table.write_text("item_id,text\na,Anna Berg left Paris for the sea.\n")
    found = told("data", "anonymize", "--items", table, "--out", tmp_path / "items.jsonl")
    assert (found["texts"], found["of"], found["out"]) == (1, 1, str(tmp_path / "items.jsonl"))
    assert found["rewriting"]["writer"]["name"] == "rules"


def test_a_person_who_leaves(tmp_path: Path) -> None:
    samples = Path(str(files("perse"))) / "samples"
    given = ("--reviews", samples / "reviews.jsonl", "--items", samples / "items.jsonl", "--out", tmp_path / "set")
    told("data", "pointwise", *given, "--keep-names")
    person = json.loads((samples / "reviews.jsonl").read_text(encoding="utf-8").splitlines()[0])["reviewer_id"]
    gone = told("data", "forget", person, tmp_path / "set")
    assert gone["ids"] and gone["forgotten"][0]["records"] > 0 and gone["left"]["all"] is True
    again = perse("data", "forget", person, tmp_path / "set", "--json")
    assert again.returncode == 2 and "nobody was forgotten" in again.stderr
    assert json.loads(again.stdout)["forgotten"][0]["records"] == 0
