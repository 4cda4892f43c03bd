"""A Rehearsal report: a run and a judge's scores of it -> one HTML page, the tables as Markdown, plots and numbers as files (`perse.reporting.written`).

The page begins with what the numbers rest on. The same run and options give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.drawing.figure import Figure
from perse.errors import BadInput
from perse.files.runlog import read_manifest
from perse.rehearsal.folder import read_rates
from perse.rehearsal.methods import METHODS
from perse.rehearsal.reporting.compared import in_chain
from perse.rehearsal.reporting.figures import rehearsal_figures
from perse.rehearsal.reporting.telling import ON_THE_WAY, PASS_RATES, report_result
from perse.rehearsal.reporting.traces import Stories, pack_traces
from perse.rehearsal.samples import Samples
from perse.rehearsal.scoring.asking import Scored, read_scores
from perse.rehearsal.scoring.results import Results, results
from perse.rehearsal.scoring.telling import REHEARSAL_SCORE
from perse.reporting.page import Section, embedded, fill
from perse.reporting.written import refuse_other, write_files
from perse.results.markdown import table_markdown
from perse.results.result import Result, Table
from perse.secrets import redact, redact_tree

SCRIPTS = ("page.js", "packed.js", "changes.js", "told.js", "story.js", "dialog.js", "found.js", "listing.js", "stories.js")
MOST_SAMPLES = 2000
_LONG = 15
"""Rows of a table that is folded away."""


@dataclass(frozen=True)
class RehearsalPage:
    """Everything that the page shows. `lead`: what came out; `notes`: what that rests on."""

    title: str
    lead: str
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    methods: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    stories: Stories
    manifests: tuple[tuple[str, str], ...]


def write_report(
    given: Samples,
    run: Path,
    out: Path,
    *,
    name: str,
    resamples: int,
    seed: int,
    title: str | None = None,
    max_samples: int = MOST_SAMPLES,
    manifest: Mapping[str, object] | None = None,
) -> Path:
    """Write the report into `out` and say where its page is.

    Args:
        given: the samples that the run was made from.
        name: of the scores in the run's folder.
        seed: of resamples, and of which samples are shown.
        title: of the page; by default after the models.
        max_samples: stories in the page; those without a scored summary come before others.
        manifest: what the report was made of.
    Raises:
        BadInput: `out` holds something else than a report, or cannot be made; no run, other samples, or no
            scores; or matplotlib is not installed.
    """
    refuse_strangers(out)
    scored = read_scores(given.samples, run, digest=given.digest, name=name)
    found = _compared(given, scored, resamples=resamples, seed=seed)
    rates, made = read_rates(run), read_manifest(run)
    settings = _part(made, "settings")
    together = settings.get("practice") == "together"
    result = report_result(found, scored, rates, together=together)
    figures = rehearsal_figures(found if isinstance(found, Results) else None, rates, together=together)
    stories = pack_traces(given.samples, scored, chain=in_chain(made), most=max_samples, seed=seed)
    page = RehearsalPage(
        title=redact(title) if title else f"{_models(made)}: Rehearsal",
        lead=result.answer,
        notes=result.notes,
        facts=_facts(result, made, name),
        methods=tuple((METHODS[method].published, METHODS[method].what) for method in scored.traces),
        sections=_sections(result, figures),
        stories=stories,
        manifests=tuple((what, _pretty(one)) for what, one in (("this report", _lasting(manifest)), ("the run", made)) if one),
    )
    html = fill("rehearsal.html.jinja", SCRIPTS, page=page, head=embedded(stories.packed.head))
    tables = "\n\n".join(map(table_markdown, result.tables)) + "\n"
    return write_files(out, result, html=html, tables=tables, figures=figures, manifest=manifest)


def _compared(given: Samples, scored: Scored, *, resamples: int, seed: int) -> Results | str:
    """Means and differences; or why there are none, since the stories tell where the samples were lost."""
    try:
        return results(given.samples, scored, resamples=resamples, seed=seed)
    except BadInput as nothing:
        return str(nothing)


def refuse_strangers(out: Path) -> None:
    """Refuse to replace anything but a Rehearsal report.

    Raises:
        BadInput: `out` is a file, or a folder that holds something else.
    """
    refuse_other(out, result=REHEARSAL_SCORE, what="Rehearsal report")


def _sections(result: Result, figures: Sequence[Figure]) -> tuple[Section, ...]:
    """The scores, and the role-play; details are folded away."""
    play = tuple(table for table in result.tables if table.title in (PASS_RATES, ON_THE_WAY))
    scores = tuple(table for table in result.tables if table not in play)

    def of(tables: Sequence[Table], *, finer: bool) -> tuple[Table, ...]:
        return tuple(table for table in tables if (table.detail or len(table.rows) > _LONG) is finer)

    pass_rates, *of_scores = figures
    return (
        Section("scores", "Scores", tables=of(scores, finer=False), finer=of(scores, finer=True), figures=tuple(of_scores)),
        Section("role-play", "Role-play", _ROLE_PLAY, tables=play, figures=(pass_rates,)),
    )


_ROLE_PLAY = (
    "How many of the samples' users had given suggestions that the supervisor let pass, after each iteration. With demonstrations, the first "
    "prompt shows the responses that passed in practice, or where none did the last of each round."
)


def _facts(result: Result, made: Mapping[str, Any], name: str) -> tuple[tuple[str, str], ...]:
    run, details, settings = made.get("run", {}), result.details, _part(made, "settings")
    roles = _part(made, "roles")
    models: dict[str, list[str]] = {}
    for role, of_one in roles.items():
        models.setdefault(_model(of_one), []).append(role)
    begun = str(made.get("environment", {}).get("started", ""))[:10]
    facts = [
        ("Compared", f"{details['compared']} of {details['samples']} samples, of {details['readers']} readers"),
        *((", ".join(of_one).capitalize(), model) for model, of_one in models.items()),
        ("Judge of the scores", f"{details['judge']} ({name})"),
        ("Judge of the versions", _model(run["judge"]) if run.get("judge") else "none: the last is kept"),
        ("Constants", _constants(settings)),
        ("Samples", f"digest {str(_part(made, 'samples').get('sha256', ''))[:12]}"),
        ("Begun", begun),
    ]
    return tuple((of_one, redact(value)) for of_one, value in facts if value)


def _constants(settings: Mapping[str, Any]) -> str:
    told = {
        "practice_rounds": "{} practice rounds",
        "max_iterations": "at most {} iterations",
        "rewrites": "{} rewritings",
        "best": "best by {}",
        "temperature": "temperature {}",
        "seed": "seed {}",
    }
    return ", ".join(words.format(settings[key]) for key, words in told.items() if key in settings)


def _models(made: Mapping[str, Any]) -> str:
    names = list(dict.fromkeys(_model(of_one) for of_one in _part(made, "roles").values()))
    return redact(", ".join(names[:3]) or "A run")


def _model(identity: Any) -> str:
    """A writer's or a judge's name, with its adapter."""
    given = identity if isinstance(identity, dict) else {}
    parts = [given.get("name") or given.get("model"), given.get("adapter")]
    return "+".join(str(part) for part in parts if part) or "?"


def _part(made: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = made.get("run", {}).get(name)
    return found if isinstance(found, dict) else {}


def _lasting(manifest: Mapping[str, object] | None) -> Mapping[str, object]:
    """Without the time and the machine, so that the page is the same again."""
    return {name: value for name, value in (manifest or {}).items() if name != "environment"}


def _pretty(manifest: Mapping[str, object]) -> str:
    return json.dumps(redact_tree(dict(manifest)), indent=2) + "\n"
