"""What was found of a judge's leniency, kept beside its answers, and told wherever this judge's scores are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perse.errors import BadInput
from perse.files.disk import write_whole
from perse.files.runlog import MANIFEST, read_manifest, what_it_is
from perse.judging.judge import Judge
from perse.records import explain
from perse.rehearsal.judging import who_judges
from perse.rehearsal.leniency.telling import REHEARSAL_LENIENCY
from perse.results.result import Result

FOUND = "leniency.json"


def keep(folder: Path, result: Result) -> None:
    """Write what was found."""
    write_whole(folder / FOUND, result.model_dump_json(indent=1) + "\n")


def finding_of(folder: Path, judge: Judge) -> str:
    """The sentences about this judge.

    Raises:
        BadInput: as `finding_about`.
    """
    return finding_about(folder, json.loads(json.dumps(who_judges(judge))))


def finding_about(folder: Path, who: Mapping[str, Any]) -> str:
    """The sentences about a judge that is known as manifests know it.

    Args:
        who: what `who_judges` says of it, as JSON has it.
    Raises:
        BadInput: no such folder, one that is not finished, or one of another judge; the message names what differs.
    """
    if not (folder / FOUND).is_file():
        holds = f"holds {what_it_is(read_manifest(folder))}, and" if (folder / MANIFEST).is_file() else "has"
        raise BadInput(f"{folder} {holds} no {FOUND}; run `perse rehearsal leniency` to its end, and give its --out")
    try:
        result = Result.model_validate_json((folder / FOUND).read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        why = explain(error) if isinstance(error, ValidationError) else "not UTF-8"
        raise BadInput(f"{folder / FOUND}: {why}; run `perse rehearsal leniency` again") from None
    told = result.details.get("finding")
    if result.name != REHEARSAL_LENIENCY or not isinstance(told, str):
        raise BadInput(f"{folder / FOUND} holds another result ({result.name}); run `perse rehearsal leniency` again")
    run = read_manifest(folder).get("run", {})
    if any(run.get(name) != value for name, value in who.items()):
        raise BadInput(
            f"{folder} is of the judge {_named(run.get('judge'))}, not of {_named(who.get('judge'))}, which scores here; measure that one's leniency with "
            "`perse rehearsal leniency`, into another folder"
        )
    return told


def _named(judge: object) -> str:
    """Model and adapter, with what else may differ of the same."""
    if not isinstance(judge, dict):
        return "unknown"
    name = "+".join(str(part) for part in (judge.get("model"), judge.get("adapter")) if part)
    others = ", ".join(f"{key} {judge[key]}" for key in ("dtype", "context") if judge.get(key) is not None)
    return f"{name} ({others})" if others else name
