"""What was found of a judge's leniency: kept beside its answers, and beside its scores of a run, so that whoever tells these tells it first."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from perse.errors import BadInput
from perse.files.own_files import write_own
from perse.files.runlog import MANIFEST, read_manifest, what_it_is
from perse.judging.judge import Judge
from perse.records import explain
from perse.rehearsal.judging import labels_of, who_judges
from perse.rehearsal.leniency.telling import REHEARSAL_LENIENCY
from perse.rehearsal.settings import WIDE, Labels
from perse.results.result import Result

FOUND = "leniency.json"


def keep(folder: Path, result: Result) -> None:
    """Write what was found into a folder of leniency, or of scores by the same judge; one that a person edited gets another name."""
    write_own(folder / FOUND, result.model_dump_json(indent=1) + "\n")


def leniency_of(folder: Path, judge: Judge, labels: Labels = WIDE) -> Result:
    """What was found of this judge on this scale.

    Raises:
        BadInput: no such folder, one that is not finished, or one of another judge; the message names what differs.
    """
    result = _read(folder)
    run = read_manifest(folder).get("run", {})
    now = json.loads(json.dumps(who_judges(judge, labels)))
    if labels_of(run) != labels:
        raise BadInput(
            f"{folder} is of scores on the scale of {labels_of(run)}, these are on that of {labels}; measure the judge's leniency with "
            f"`perse rehearsal leniency --scale {labels}`, into another folder"
        )
    if {name: run.get(name) for name in now} != now:
        raise BadInput(
            f"{folder} is of the judge {_named(run.get('judge'))}, not of {_named(now['judge'])}, which scores here; measure that one's leniency with "
            "`perse rehearsal leniency`, into another folder"
        )
    return result


def finding_in(folder: Path) -> str | None:
    """The sentences about the judge whose scores a folder has; None if its leniency is not known.

    Raises:
        BadInput: the file is none of ours.
    """
    return str(_read(folder).details["finding"]) if (folder / FOUND).exists() else None


def _read(folder: Path) -> Result:
    if not (folder / FOUND).is_file():
        holds = f"holds {what_it_is(read_manifest(folder))}, and" if (folder / MANIFEST).is_file() else "has"
        raise BadInput(f"{folder} {holds} no {FOUND}; run `perse rehearsal leniency` to its end, and give its --out")
    try:
        result = Result.model_validate_json((folder / FOUND).read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        why = explain(error) if isinstance(error, ValidationError) else "not UTF-8"
        raise BadInput(f"{folder / FOUND}: {why}; run `perse rehearsal leniency` again") from None
    if result.name != REHEARSAL_LENIENCY or not isinstance(result.details.get("finding"), str):
        raise BadInput(f"{folder / FOUND} holds another result ({result.name}); run `perse rehearsal leniency` again")
    return result


def _named(judge: object) -> str:
    """Model and adapter, with what else may differ of the same."""
    if not isinstance(judge, dict):
        return "unknown"
    name = "+".join(str(part) for part in (judge.get("model"), judge.get("adapter")) if part)
    others = ", ".join(f"{key} {judge[key]}" for key in ("dtype", "context") if judge.get(key) is not None)
    return f"{name} ({others})" if others else name
