"""A KGDS report: Results -> one HTML page, the paper's tables as Markdown, its plots and numbers as files (`perse.reporting.written`).

The same Results give the same bytes. Values and intervals are printed without conclusions: intervals of
single values do not tell whether one model is better than another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perse.drawing.figure import Figure
from perse.drawing.named_rows import value_in_words
from perse.kgds.reporting.figures import kgds_figures
from perse.kgds.reporting.finer import (
    cost_table,
    count_tables,
    failure_table,
    interval_tables,
    refused_table,
    win_rate_table,
)
from perse.kgds.reporting.tables import (
    PATTERN_NAMES,
    PaperTable,
    correlation_table,
    highest,
    markdown,
    models,
    patterns,
    probable_errors,
    shown,
    table_1,
    table_2,
)
from perse.kgds.reporting.telling import KGDS_METRICS, kgds_result
from perse.kgds.scoring.results import Results
from perse.reporting.page import fill
from perse.reporting.written import refuse_other, write_files
from perse.results.result import Table
from perse.secrets import redact

SCRIPTS = ("page.js", "plain.js")


@dataclass(frozen=True)
class Section:
    """A part of the page under one heading. `name` is its anchor; `finer` is folded away under `finer_title`."""

    name: str
    title: str
    lead: str = ""
    paper: tuple[PaperTable, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    finer: tuple[Table, ...] = ()
    finer_title: str = ""


@dataclass(frozen=True)
class KgdsPage:
    """Everything that the page shows. `models`: name and what came out for it."""

    title: str
    lead: tuple[str, ...]
    models: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    parts: tuple[Section, ...]


def write_report(
    results: Results, out: Path, *, title: str | None = None, manifest: Mapping[str, object] | None = None
) -> Path:
    """Write the report into `out` and say where its page is.

    Args:
        title: of the page; by default after the models.
        manifest: what it was made of.
    Raises:
        BadInput: `out` holds something else than a report, or cannot be made; or matplotlib is not installed.
    """
    refuse_strangers(out)
    figures = kgds_figures(results)
    html = fill("kgds.html.jinja", SCRIPTS, page=_page(results, figures, title))
    return write_files(
        out,
        kgds_result(results),
        html=html,
        tables=markdown([table_1(results), table_2(results)]),
        figures=figures.values(),
        manifest=manifest,
    )


def refuse_strangers(out: Path) -> None:
    """Refuse to replace anything but a KGDS report.

    Raises:
        BadInput: `out` is a file, or a folder that holds something else.
    """
    refuse_other(out, result=KGDS_METRICS, what="KGDS report")


def _page(results: Results, figures: Mapping[str, Figure], title: str | None) -> KgdsPage:
    names = models(results)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return KgdsPage(
        title=redact(title) if title else f"{', '.join(names[:3])}{more}: KGDS",
        lead=_lead(results),
        models=tuple((model, _model_sentence(results, model)) for model in names),
        facts=_facts(results),
        notes=results.notes,
        parts=_parts(results, figures),
    )


def _parts(results: Results, figures: Mapping[str, Figure]) -> tuple[Section, ...]:
    probable = probable_errors(results)
    wins, costs = win_rate_table(results), cost_table(results)
    missing = [table for table in (failure_table(results), refused_table(results)) if table]

    def drawn(*beginnings: str) -> tuple[Figure, ...]:
        return tuple(figure for start in beginnings for name, figure in figures.items() if name.startswith(start))

    return (
        Section(
            "overall",
            "Overall performance",
            paper=(table_1(results),),
            figures=drawn("figure-6", "figure-8", "figure-7", "figure-9"),
            finer=tuple(interval_tables(results)),
            finer_title="All values with their intervals",
        ),
        Section(
            "background",
            "Background",
            "How much of the article is extracted, beside the share that experts hold to be needed; and how often the experts' selection "
            "is preferred to the model's own.",
            tables=(wins,) if wins else (),
            figures=drawn("figure-2", "figure-3"),
        ),
        Section(
            "together",
            "Background and opinions",
            "Do models whose background is better also cover more opinions? Each point is a model.",
            tables=(correlation_table(results),) if results.correlations else (),
            figures=drawn("figure-4", "figure-5"),
        ),
        Section(
            "errors",
            "Errors in opinions",
            "Why the summary does not say what the experts wrote down, by type.",
            paper=(table_2(results), *((probable,) if probable else ())),
            figures=drawn("errors"),
        ),
        *([Section("costs", "Costs", tables=(costs,))] if costs else []),
        Section(
            "counts",
            "Counts",
            tables=tuple(count_tables(results)),
            finer=tuple(missing),
            finer_title="What failed, and what is left out",
        ),
    )


def _lead(results: Results) -> tuple[str, ...]:
    """The highest values, with a warning about what they do not show."""
    said: list[str] = []
    if len(models(results)) > 1:
        said += (line for pattern in patterns(results) for line in highest(results, pattern))
        if said:
            instead = ", but from the tables of differences" if any(one.values for one in results.differences) else ""
            said.append(
                f"Each interval is of one value: whether two models differ cannot be read from whether they overlap{instead}."
            )
    if results.deltas:
        said.append("A model that was asked both ways stands here with its structured prompt.")
    return tuple(said)


def _model_sentence(results: Results, model: str) -> str:
    """Overall performance by the structured prompt where there is one: what reflection changes stands in table 1."""
    found = [scores for pattern in patterns(results) if (scores := shown(results, model, pattern))]
    parts = [
        f"{value_in_words(scores.values['op']) if 'op' in scores.values else 'not known'} under {PATTERN_NAMES[scores.pattern]}"
        + (" after reflection" if scores.paradigm == "reflection" else "")
        for scores in found
    ]
    paradigms = {scores.paradigm for scores in found}
    mean = next((one.mean for one in results.across if one.model == model and {one.paradigm} == paradigms), None)
    if mean is not None and mean.value is not None:
        parts.append(f"{value_in_words(mean)} on average")
    return f"overall performance {', '.join(parts)}."


def _facts(results: Results) -> tuple[tuple[str, str], ...]:
    compared, left = len(results.samples), sum(map(len, results.left_out.values()))
    return (
        ("Compared", f"{compared} of {compared + left} samples"),
        ("Models", str(len(models(results)))),
        ("Experts' choice", f"{results.supporting_share:.2f}% of a sample's paragraphs on average"),
        ("Intervals", f"95%, {results.resamples:,} resamples of the samples, seed {results.seed}"),
        ("Benchmark", f"digest {results.benchmark[:12]}"),
    )
