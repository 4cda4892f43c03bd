"""Ablations and the role curve as a `Result`: what each part brings, beside the published rows."""

from __future__ import annotations

from collections.abc import Mapping

from perse.drpe.correlation import published
from perse.drpe.correlation.ablations import AT_RANDOM, CURVES, WHOLE, Ablations
from perse.drpe.correlation.correlating import COMPARED, Correlations, Level
from perse.drpe.correlation.said import of_least_p, of_selection
from perse.results.result import Cell, Point, Result, Table
from perse.results.words import in_percent
from perse.results.words import shown as in_words

DRPE_ABLATE = "drpe-ablations"
PUBLISHED: Mapping[str, str] = {
    WHOLE: "w/o Batch Inferring",
    "w/o clustering": "w/o Clustering",
    "w/o dynamic roles": "w/o Dynamic Roles",
    "w/o static roles": "w/o Static Roles",
}
"""Rows of table 2 by ours."""
_OF_K = (WHOLE, "w/o static roles")
"""Published of k-means with k = 4."""
_LEVELS: tuple[tuple[str, Level, str], ...] = (
    (COMPARED[0], "pooled", "pooled"),
    (COMPARED[1], "within", "within documents"),
)


def ablations_result(found: Ablations, compared: Correlations, *, by: str) -> Result:
    """What `compared`, whose methods are the variants and perhaps other runs, says of `found`."""
    return Result(
        name=DRPE_ABLATE,
        asks="What does each part of DRPE bring to its agreement with people?",
        answer=_answer(found, compared, by),
        plot="lines",
        x_label="invented roles a document (k)",
        points=tuple(
            Point(series=line, x=str(k), metric=metric, estimate=compared.rows[name].mean[level]["pearson"])
            for metric, level, _ in _LEVELS
            for line in CURVES
            for (of_line, k), name in sorted(found.curve.items(), key=lambda one: one[0][1])
            if of_line == line and name in compared.rows
        ),
        tables=(_variants(found, compared), _curve(found, compared), _beside(compared)),
        notes=_notes(found, compared, by),
        details={"by": by, "documents": compared.documents, "candidates": compared.compared},
    )


def _answer(found: Ablations, compared: Correlations, by: str) -> str:
    if WHOLE not in compared.rows:
        return "The whole has no score, so there is nothing to hold its parts against."
    # A sum over roles is larger where a document has more of them; within documents it is not.
    of_which, level, where = _LEVELS[1 if by == "score" and found.uneven else 0]
    of = compared.rows[WHOLE].mean[level]["pearson"]
    over = f"over {compared.compared} candidates of {compared.documents} documents"
    said = f"The scores of all parts together have a Pearson correlation with people's of {in_words(of)}, {where}, {over}"
    if not of.above_zero:
        return f"{said}: they are not shown to agree with people, so nothing is said of what a part brings."
    looked = [one for one in compared.differences if one.of == of_which]
    shown = [one for one in looked if one.shown]
    if not shown:
        return f"{said}. None of {len(looked)} other rows is shown to differ from that ({where})."
    parts = [
        f"{word} ({where}): {', '.join(_with_roles(found, one.method) for one in named)}"
        for word, named in (("lower", [one for one in shown if one.lower]), ("higher", [one for one in shown if one.higher]))
        if named
    ]
    fewer = any(one.lower and _fewer(found, one.method) for one in shown)
    whoever = (
        " Fewer roles are noisier, whoever they are: of those with fewer than the whole it is no sign yet that a part is missed."
        if fewer
        else ""
    )
    return f"{said}. Of {len(looked)} other rows these are shown to be {'; '.join(parts)}.{whoever}"


def _fewer(found: Ablations, name: str) -> bool:
    """Whether fewer roles vote in a variant than in the whole."""
    return name in found.variants and found.variants[name].roles < found.variants[WHOLE].roles


def _with_roles(found: Ablations, name: str) -> str:
    """With how many vote: fewer voters are noisier, whoever they are."""
    if name not in found.variants:
        return name
    return f"{name} ({found.variants[name].roles:.1f} roles, the whole has {found.variants[WHOLE].roles:.1f})"


def _variants(found: Ablations, compared: Correlations) -> Table:
    rows: list[tuple[Cell, ...]] = []
    on_curve = {name for (line, k), name in found.curve.items() if name.startswith("k = ")}
    for name, row in compared.rows.items():
        if name in on_curve:
            continue
        theirs = published.TABLE_2.get(PUBLISHED.get(name, "")) if found.as_published or name not in _OF_K else None
        beside = "-" if theirs is None else f"{theirs[published.DATASETS.index('SummEval')]:.3f}"
        roles = f"{found.variants[name].roles:.1f}" if name in found.variants else "-"
        mean = row.mean
        rows.append(
            (name, roles, beside, row.absolute, mean["pooled"]["pearson"], mean["pooled"]["kendall"], mean["within"]["pearson"])
        )
    others = sum(name in found.variants and name not in on_curve for name in compared.rows)
    return Table(
        title="With and without",
        header=("variant", "roles", "SummEval, published", "|Pearson|", "Pearson", "Kendall", "within documents, Pearson"),
        rows=tuple(rows),
        breaks=(others,) if others < len(rows) else (),
        notes=(
            f"published: |Pearson| over 400 candidates of {published.DOCUMENTS} documents, by text-davinci-003; its DRPE with all roles in one prompt has "
            f"{published.of_summeval('DRPE')}, and ours, where a role has a prompt of its own, is beside its 'w/o Batch Inferring'",
        ),
    )


def _curve(found: Ablations, compared: Correlations) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for (line, k), name in sorted(found.curve.items(), key=lambda one: (CURVES.index(one[0][0]), one[0][1])):
        if name in compared.rows:
            mean = compared.rows[name].mean
            roles = f"{found.variants[name].roles:.1f}"
            rows.append((line, str(k), roles, mean["pooled"]["pearson"], mean["within"]["pearson"]))
    return Table(
        title="By the number of invented roles",
        header=("line", "k", "roles", "Pearson", "within documents, Pearson"),
        rows=tuple(rows),
        notes=(
            "figure 6 of the paper, of CNN2022 and BBC2022 and without numbers, is highest at k = 4; roles: of a document, on average, for where fewer than k were invented all are kept",
        ),
    )


def _beside(compared: Correlations) -> Table:
    """Each variant minus the whole."""
    rows: list[tuple[Cell, ...]] = []
    pairs = zip(*([one for one in compared.differences if one.of == of] for of in COMPARED), strict=True)
    for pooled, within in pairs:
        rows.append((pooled.method, pooled.estimate, pooled.p_in_words, within.estimate, within.p_in_words))
    return Table(
        title=f"Minus {WHOLE}",
        header=("variant", "pooled Pearson", "p", "within documents", "p"),
        rows=tuple(rows),
        notes=("p: exchanging the two document by document; adjusted (Holm) over all rows of both columns",),
    )


def _notes(found: Ablations, compared: Correlations, by: str) -> tuple[str, ...]:
    told = {
        "score": "by formula 4, the sum over roles that vote for a candidate of their confidence: over documents it grows with the number of roles, which differs where fewer than k were invented",
        "expected": "by the mean P(candidate) of the roles",
        "votes": "by the share of votes for the candidate",
    }
    said = [
        told[by],
        *(
            [
                f"{in_percent(found.turned)} of the whole's roles choose the same place in both orders, whatever stands there: only the others tell the texts apart by their votes"
            ]
            if found.turned is not None
            else []
        ),
        "each variant counts the votes of some of the run's roles; nothing was asked for it",
        f"fewer voters are noisier, and their scores may correlate less for that alone: a part is missed at most as far as its row is lower than the row '{AT_RANDOM.removeprefix(': ')}' below it, of as "
        "many of the whole's roles, drawn for each document",
        f"compared on the {compared.compared} candidates that every variant has a score for, of {len(compared.selected.items)}",
    ]
    said += of_least_p(compared)
    if compared.left_out:
        said.append(f"without a score for any candidate, and left out: {', '.join(compared.left_out)}")
    return (*said, *of_selection(compared.selected))
