"""`perse kgds generate | verify | errors`: sentences on stderr, with `--json` one document on stdout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import perse
from kgds_builders import write_benchmark_file

from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge
from perse.kgds.asking.reading import ABSTRACTIVE, OPINIONS
from perse.rendering.prompt import TextRenderer

SUMMARY = json.dumps({ABSTRACTIVE: "The library opens on Sundays.", OPINIONS: "Person1 is glad."})


def told(*arguments: object) -> tuple[Any, str]:
    done = perse("kgds", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_what_was_written_verified_and_classified_is_told_to_people_and_to_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(message: str, seed: int) -> str:
        return SUMMARY if ABSTRACTIVE in message else "1" if "kind of error" in message.lower() else "no"

    judge = Judge(ScriptedEngine(answer, batch=2, name="m"), TextRenderer(), name="m")
    monkeypatch.setattr(Judge, "load", classmethod(lambda cls, name, **settings: judge))
    run, given = tmp_path / "run", (write_benchmark_file(tmp_path), tmp_path / "run")
    written, said = told(
        "generate", given[0], "--writer", "m", "--pattern", "abs-aos", "--paradigm", "structured", "--out", run
    )
    assert written["missing"] == 0 and written["combinations"][0]["statuses"] == {"ok": 2}
    assert "abs-aos structured: 2 ok" in said and "abs-aos structured: 2 of 2" in said and "next: perse kgds verify" in said
    verified, said = told("verify", *given, "--judge", "m")
    assert verified["statuses"] == {"ok": sum(verified["statuses"].values())} and verified["folder"] == str(run / "verified")
    assert "verifying: " in said and "next: perse kgds errors" in said
    classified, said = told("errors", *given, "--judge", "m")
    assert set(classified) == {"folder", "statuses", "tokens", "errors"} and "next: perse kgds metrics" in said
