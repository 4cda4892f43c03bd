"""A report of a vote: a run -> one HTML page, the tables as Markdown, plots and numbers as files (`perse.reporting.written`).

The run says how the roles voted; where people scored the candidates, it is held against them, with the metrics and other runs beside it. The same runs and
options give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perse.drawing.figure import Figure
from perse.drpe.clustering import Embed
from perse.drpe.correlation.baselines import Baselines
from perse.drpe.correlation.correlating import Correlations, Scores, correlate
from perse.drpe.correlation.run_scores import methods_of, of_extremes
from perse.drpe.correlation.telling import correlate_result
from perse.drpe.diversity import OfDocument
from perse.drpe.reporting.candidates import Candidates, pack_candidates
from perse.drpe.reporting.figures import agreement, by_role_figure
from perse.drpe.reporting.roles_map import roles_map
from perse.drpe.roles import Role, static_roles
from perse.drpe.selection import Selected, select
from perse.drpe.votes.ballots import NAMES, Prompting
from perse.drpe.votes.by_role import ByRole, by_role
from perse.drpe.votes.run_folder import Run, read_run
from perse.drpe.votes.telling import vote_result
from perse.errors import BadInput
from perse.files.runlog import read_manifest
from perse.reporting.page import Section, embedded, fill
from perse.reporting.written import refuse_other, write_files
from perse.results.markdown import table_markdown
from perse.results.result import Result, Table
from perse.secrets import redact, redact_tree

DRPE_REPORT = "drpe-report"
SCRIPTS = ("page.js", "packed.js", "told.js", "dialog.js", "found.js", "listing.js", "ballots.js")
MOST_CANDIDATES = 2000
_LONG = 20
"""Rows of a table that is folded away."""


@dataclass(frozen=True)
class DrpePage:
    """Everything that the page shows. `lead`: what came out; `notes`: what that rests on."""

    title: str
    lead: str
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    candidates: Candidates
    manifests: tuple[tuple[str, str], ...]


def selected_of(run: Run) -> Selected | None:
    """The run's candidates with people's scores; None where there are none.

    Raises:
        BadInput: people scored some of a document's dimensions alone, so that none of its candidates can be taken.
    """
    scored = any(candidate.scores for one in run.documents.documents for candidate in one.candidates)
    return select(run.documents, which="all") if scored else None


def write_report(
    runs: Sequence[Path],
    out: Path,
    *,
    baselines: Baselines | None,
    roles: Figure | None = None,
    resamples: int,
    seed: int,
    title: str | None = None,
    max_candidates: int = MOST_CANDIDATES,
    manifest: Mapping[str, object] | None = None,
) -> Path:
    """Write the report into `out` and say where its page is.

    Args:
        runs: the first is shown, vote by vote; all are held against people.
        baselines: metrics of the first run's candidates, as `selected_of` gives them; None for none.
        roles: the map of the roles, as `voters_map` draws it.
        seed: of resamples, and of which candidates are shown.
        title: of the page; by default after the judge.
        max_candidates: in the page; those that lack a vote come before others.
        manifest: what the report was made of.
    Raises:
        BadInput: `out` holds something else than a report, or cannot be made; a folder is no run; or matplotlib is not installed.
    """
    refuse_strangers(out)
    run, made = read_run(runs[0]), read_manifest(runs[0])
    chosen = selected_of(run)
    ours = methods_of(runs, chosen)
    found = _held(chosen, {**ours, **(baselines.scores if baselines else {})}, resamples=resamples, seed=seed)
    voted = vote_result(run)
    agreed = correlate_result(found, baselines, of_whom=of_extremes(runs)) if isinstance(found, Correlations) else None
    groups = {
        prompting: by_role(run.ballots, run.answers, prompting, resamples=resamples, seed=seed) for prompting in run.answers
    }
    result = _result(voted, agreed, groups)
    first = next(iter(groups.values()), ())
    figures = (
        by_role_figure(first),
        agreement(found if isinstance(found, Correlations) else None, list(ours)),
        *([roles] if roles else []),
    )
    page = DrpePage(
        title=redact(title) if title else f"{redact(run.judge)}: votes of role-players",
        lead=result.answer,
        notes=result.notes,
        facts=_facts(run, found),
        sections=(
            _section("votes", "Votes", (*_tables_of_roles(groups), *voted.tables), figures[:1]),
            *([_section("people", "Agreement with people", agreed.tables, figures[1:2])] if agreed else []),
            *([_section("roles", "Roles", (), (roles,))] if roles else []),
        ),
        candidates=pack_candidates(run.documents.documents, run, most=max_candidates, seed=seed),
        manifests=tuple(
            (what, json.dumps(redact_tree(dict(one)), indent=2) + "\n")
            for what, one in (("this report", _lasting(manifest)), ("the run", made))
            if one
        ),
    )
    html = fill("drpe.html.jinja", SCRIPTS, page=page, head=embedded(page.candidates.packed.head))
    tables = "\n\n".join(map(table_markdown, result.tables)) + "\n"
    return write_files(out, result, html=html, tables=tables, figures=figures, manifest=manifest)


def _held(chosen: Selected | None, scores: Scores, *, resamples: int, seed: int) -> Correlations | str:
    """All scores beside people's; or why there is nothing to hold, since the page shows the votes all the same."""
    if chosen is None:
        return "there are no scores of people"
    try:
        return correlate(chosen, scores, resamples=resamples, seed=seed)
    except BadInput as nothing:
        return str(nothing)


def voters_map(run: Run, invented: Mapping[str, Sequence[Role]], embed: Embed) -> Figure:
    """All roles that were invented for the run's documents and the static ones, before clustering, and those of them that voted.

    Raises:
        BadInput: roles of a document are missing, or matplotlib is not installed.
    """
    voted = {(one.document, one.role.text) for one in run.ballots if one.role is not None}
    documents = list(dict.fromkeys(one.document for one in run.ballots))
    if lacking := [name for name in documents if name not in invented]:
        raise BadInput(
            f"the roles are of other documents: there are none for '{lacking[0]}'; give the folder that these voters came from"
        )
    summarized = {one.id: one.summarized for one in run.documents.documents}
    found = []
    for name in documents:
        roles = (*static_roles(summaries=summarized[name]), *invented[name])
        found.append(OfDocument(name, roles, tuple((name, role.text) in voted for role in roles), "", None, None))
    return roles_map(found, embed)


def refuse_strangers(out: Path) -> None:
    """Refuse to replace anything but such a report.

    Raises:
        BadInput: `out` is a file, or a folder that holds something else.
    """
    refuse_other(out, result=DRPE_REPORT, what="report of a vote")


def _result(voted: Result, agreed: Result | None, groups: Mapping[Prompting, Sequence[ByRole]]) -> Result:
    """Votes and agreement as one."""
    return Result(
        name=DRPE_REPORT,
        asks=f"{voted.asks}{f' {agreed.asks}' if agreed else ''}",
        answer="\n".join((voted.answer, *([agreed.answer] if agreed else []))),
        tables=(*_tables_of_roles(groups), *voted.tables, *(agreed.tables if agreed else ())),
        notes=(*voted.notes, *(agreed.notes if agreed else ())),
        details={"votes": voted.details, "people": agreed.details if agreed else None},
    )


def _tables_of_roles(groups: Mapping[Prompting, Sequence[ByRole]]) -> tuple[Table, ...]:
    return tuple(
        Table(
            title=f"By role, {NAMES[prompting]}",
            header=("role", "votes", "for the candidate"),
            rows=tuple((one.name, f"{one.votes.items:,} of {one.asked:,}", one.votes) for one in found),
        )
        for prompting, found in groups.items()
    )


def _section(name: str, title: str, tables: Sequence[Table], figures: Sequence[Figure]) -> Section:
    """Details are folded away."""
    return Section(
        name,
        title,
        tables=tuple(one for one in tables if not one.detail and len(one.rows) <= _LONG),
        finer=tuple(one for one in tables if one.detail or len(one.rows) > _LONG),
        figures=tuple(figures),
    )


def _facts(run: Run, found: Correlations | str) -> tuple[tuple[str, str], ...]:
    documents = run.documents.documents
    candidates = len({(one.document, one.system) for one in run.ballots})
    settings = run.settings
    facts = [
        ("Voted on", f"{candidates:,} candidates of {len(documents) - len(run.unreferenced):,} documents"),
        ("Judge", run.judge),
        ("Prompting", ", ".join(NAMES[prompting] for prompting in run.answers)),
        ("Orders", "both" if settings.get("orders") == 2 else "one, the reference first"),
        ("References", str(settings.get("references", 1))),
        ("Real readers", str(len(run.readers)) if run.readers else ""),
        ("Held against people", f"no: {found}" if isinstance(found, str) else f"{found.compared:,} candidates"),
    ]
    return tuple((name, redact(value)) for name, value in facts if value)


def _lasting(manifest: Mapping[str, object] | None) -> Mapping[str, object]:
    """Without the time and the machine, so that the page is the same again."""
    return {name: value for name, value in (manifest or {}).items() if name != "environment"}
