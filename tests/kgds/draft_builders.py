"""Two drafts of samples, a model that takes them apart as it should, and a build that is run with the sheet filled in."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from places import SHARED

from perse.engines.base import Failure, Reply
from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge
from perse.kgds.building.build import BuildOptions, BuildReport, build
from perse.rendering.prompt import TextRenderer
from perse.writing.writer import Writer

Script = Callable[[str, int], Reply | Failure | str]

LIBRARY = {
    "article": [
        "The library opens on Sundays. The council pays for the library.",
        "The mayor likes cats.",
        "The building dates from 1911. The council pays for the library.",
        "Mara Lind works there. The library opens on Sundays.",
        "The doors are green. The building dates from 1911.",
    ],
    "discussion": [{"participant": "Person1", "utterance": "At last!"}, {"participant": "Person2", "utterance": "Who pays?"}],
    "supporting": {"Ann": [1, 4], "Ben": [1, 2, 4]},
    "opinions": ["Person1 thinks that **the Sunday opening** was overdue.", "Person2 wonders who pays."],
}
FERRY = {
    "article": ["The ferry is old.", "-5 degrees were measured on board. The ferry sails twice a day."],
    "discussion": [{"participant": "Person1", "utterance": "Too few."}],
    "supporting": {"Ann": [2], "Cem": [2]},
    "opinions": ["Person1 thinks that **two sailings** are too few."],
}

REAL = SHARED / "kgds" / "KGDS.first60.json"

PARAGRAPH = re.compile(r"\[Paragraph \d+\]\n(.*)\n\[Answer\]")


def facts_of(message: str) -> list[str]:
    """The sentences of the paragraph that a message asks about."""
    found = PARAGRAPH.search(message)
    assert found, message
    return [f"{sentence}." for sentence in found[1].rstrip(".").split(". ")]


def obedient(message: str, seed: int) -> str:
    """One fact a sentence; a statement follows from a text that has its words."""
    if claim := re.search(r"\[Statement\] (.*)", message):
        text = message.partition("[Text]\n")[2].partition("\nAnswer with")[0]
        return f"[Answer] {'yes' if claim[1] in text else 'no'}"
    return json.dumps({"facts": facts_of(message)})


def a_judge(script: Script, *, batch: int = 32) -> Judge:
    return Judge(ScriptedEngine(script, batch=batch), TextRenderer(), name="scripted")


def write_drafts(folder: Path, drafts: Sequence[dict[str, Any]] = (LIBRARY, FERRY)) -> Path:
    path = folder / "drafts.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in drafts), encoding="utf-8")
    return path


def run(
    folder: Path, script: Script = obedient, *, drafts: Path | None = None, batch: int = 32, **settings: Any
) -> BuildReport:
    judge = a_judge(script, batch=batch)
    options = BuildOptions(drafts=drafts or write_drafts(folder), out=folder / "new", **settings)
    return build(options, Writer(judge), lambda: judge)


def sheet_rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "new" / "key-facts.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def write_sheet(folder: Path, rows: Sequence[dict[str, str]]) -> None:
    with (folder / "new" / "key-facts.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def fill_in(folder: Path) -> list[dict[str, str]]:
    """Everybody says yes, but Ben and Cem of the first fact of their samples."""
    rows = sheet_rows(folder)
    seen: set[str] = set()
    for row in rows:
        first = row["sample"] not in seen
        seen.add(row["sample"])
        for name in ("Ann", "Ben", "Cem"):
            row[name] = row[name] or ("no" if first and name != "Ann" else "Yes ")
    write_sheet(folder, rows)
    return rows


def finished(folder: Path, script: Script = obedient, **settings: Any) -> BuildReport:
    run(folder, script, **settings)
    fill_in(folder)
    return run(folder, script, **settings)
