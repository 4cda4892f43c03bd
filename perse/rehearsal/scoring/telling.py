"""A run's scores as a `Result`: the paper's tables with intervals, the published rows beside them, differences, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from perse.rehearsal.judging import MEASURES, Measure
from perse.rehearsal.leniency.telling import unknown
from perse.rehearsal.methods import BESIDE, METHODS, TABLE_1, TABLE_2, told_of
from perse.rehearsal.scoring import published
from perse.rehearsal.scoring.results import AVERAGE, USER, Results
from perse.rehearsal.settings import Labels
from perse.results.result import Cell, Result, Table

REHEARSAL_SCORE = "rehearsal-score"
ASKS = "How well do the summaries of each method cover, and feel as, the product's reviews, the user's history and the user's own review?"
MEASURE_NAMES = ("Product AC", "Product SC", "History AC", "History SC", "User AC", "User SC")
"""Aspect coverage and sentiment consistency, as in the paper's columns."""
SCALES: dict[Labels, str] = {"0-100": "0 to 100", "1-5": "which was asked for 1 to 5, brought to 0 to 100: 1 is 0, 5 is 100"}


def rehearsal_result(found: Results) -> Result:
    """Everything that `found` says; what is known of the judge's leniency before any number."""
    return Result(
        name=REHEARSAL_SCORE,
        asks=ASKS,
        answer=f"{found.leniency or unknown(found.judge)}\n{answer(found)}",
        tables=(
            *(table for table in (_scores(found, "Table 1", TABLE_1), _scores(found, "Table 2", TABLE_2)) if table),
            *_beside(found),
            _differences(found),
            *(_parts(found)),
            _counts(found),
            _published("Table 1", published.TABLE_1),
            _published("Table 2", published.TABLE_2),
        ),
        notes=notes(found),
        details={
            "judge": found.judge,
            "scale": found.labels,
            "samples": found.samples,
            "compared": found.compared,
            "readers": found.readers,
            "leniency": found.leniency,
        },
    )


def answer(found: Results) -> str:
    """What Rehearsal and the personal judge, or else the last method, are worth beside the others: at most two sentences of each."""
    return " ".join(_worth(found, method) for method in told_of(found.rows))


def _worth(found: Results, method: str) -> str:
    value = found.rows[method][AVERAGE]
    chosen_by = (
        ", by the judge that chose its versions" if found.chose and METHODS[method].plays and not METHODS[method].judged else ""
    )
    scores = f"{METHODS[method].published} scores {value.value:.1f} of 100 on average over {found.compared} samples of {found.readers} readers{chosen_by}"
    mine = [one for one in found.differences if one.method == method and one.of == AVERAGE]
    if not mine:
        return f"{scores}{_missing(found, method)}; no method that it is held against was run."
    told = [
        (word, [METHODS[one.minus].published + _missing(found, one.minus) for one in mine if chosen(one)])
        for word, chosen in (
            ("higher than", lambda one: one.higher),
            ("lower than", lambda one: one.lower),
            ("not shown to differ from", lambda one: not (one.higher or one.lower)),
        )
    ]
    return f"{scores}{_missing(found, method)}. It is {'; '.join(f'{word} {_listed(names)}' for word, names in told if names)}."


def _missing(found: Results, method: str) -> str:
    """What a method's average has of 0 since it wrote nothing: said of each method that is named, since it makes one low and the others high beside it."""
    missing = found.lacking[method]
    counted = "1 sample, which counts" if missing == 1 else f"{missing} samples, which count"
    return f" (no summary of {counted} 0)" if missing else ""


def notes(found: Results) -> tuple[str, ...]:
    """What the numbers rest on."""
    drawn = "readers and products are" if found.two_way else "readers are"
    said = []
    if found.chose:
        said.append(
            "this judge also chose, of each rewritten summary's versions, the one that it scored highest: methods that rewrite are flattered beside those "
            "that do not, which have one version; score with another judge than `run --judge`, or keep the last version (`run --best last`)"
        )
    if found.supervised and BESIDE[-1] in found.rows:
        said.append(
            f"this judge was the personal judge, too: that {METHODS[BESIDE[-1]].published} scores higher would say only that it agrees with itself"
        )
    if {"rehearsal", "personal"} <= found.rows.keys():
        said.append(
            f"{METHODS['personal'].published} and {METHODS['rehearsal'].published} differ in more than who supervises: practice, revised responses, and how many "
            f"versions are written and by what one is kept; {METHODS['role-retriever'].published} has the same suggestions in its first round, and nobody who says what stands"
        )
    if found.wrote:
        said.append("this judge also wrote the summaries; models tend to like what they wrote")
    said += [
        f"scores are of the judge {found.judge}, {SCALES[found.labels]}; a judge may be lenient, and its scores are no grades of a person",
        f"95% intervals: {drawn} drawn anew, {found.resamples:,} resamples, seed {found.seed}; p-values exchange methods by reader and by product, the "
        "larger counts, and are adjusted (Holm): those of the differences told above, and those of all others",
    ]
    if any(found.lacking.values()):
        said.append(
            "a sample that a method has no summary of scores 0 under it; the table of samples has the average without them"
        )
    if found.compared < found.samples:
        said.append(
            f"{found.samples - found.compared} of {found.samples} samples are not compared, since the judge could not score some summary of them"
        )
    if found.saw_user:
        said.append(
            "the versions were chosen by scores against the user's own review, too (`run --best all`), which nobody has who writes for them: methods that "
            "rewrite are flattered against the user's review"
        )
    return tuple(said)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _scores(found: Results, title: str, methods: Sequence[str]) -> Table | None:
    here = [method for method in methods if method in found.rows]
    if not here:
        return None
    columns: tuple[Measure | str, ...] = (*MEASURES, AVERAGE)
    rows: list[tuple[Cell, ...]] = [
        (METHODS[method].published, *(found.rows[method][column] for column in columns)) for method in here
    ]
    return Table(title=title, header=("method", *MEASURE_NAMES, "AVG"), rows=tuple(rows), digits=2)


def _beside(found: Results) -> list[Table]:
    """Ours, where it was run."""
    table = _scores(found, "The personal judge beside the paper's supervisor", BESIDE) if BESIDE[-1] in found.rows else None
    return [table] if table else []


def _differences(found: Results) -> Table:
    return Table(
        title="Differences on the same samples",
        header=("method", "minus", "AVG", "p", "User", "p"),
        rows=tuple(
            (
                METHODS[one.method].published,
                METHODS[one.minus].published,
                one.estimate,
                one.p_in_words,
                other.estimate,
                other.p_in_words,
            )
            for one, other in zip(
                (each for each in found.differences if each.of == AVERAGE),
                (each for each in found.differences if each.of == USER),
                strict=True,
            )
        ),
        notes=("User: the mean of the two scores against the user's own review.",),
        digits=2,
    )


def _parts(found: Results) -> list[Table]:
    if not found.parts:
        return []
    rows: list[tuple[Cell, ...]] = [
        (name, METHODS[method].published, means[AVERAGE], means[USER])
        for name, of_one in found.parts.items()
        for method, means in of_one.items()
    ]
    return [
        Table(
            title="By class and category", header=("samples", "method", "AVG", "User"), rows=tuple(rows), detail=True, digits=2
        )
    ]


def _counts(found: Results) -> Table:
    return Table(
        title="Samples",
        header=("method", "summaries", "scored", "AVG of the compared ones with a summary"),
        rows=tuple(
            (
                METHODS[method].published,
                f"{count} of {found.samples}",
                f"{found.scored[method]} of {count}",
                "-" if (mean := found.there[method]) is None else f"{mean:.2f}",
            )
            for method, count in found.summaries.items()
        ),
    )


def _published(title: str, rows: Sequence[published.Published]) -> Table:
    return Table(
        title=f"{title} as published",
        header=("model", "method", *MEASURE_NAMES, "AVG"),
        rows=tuple(
            (row.model, METHODS[row.method].published, *(f"{score:.2f}" for score in row.scores), f"{row.average:.2f}")
            for row in rows
        ),
        notes=("Other models, other judges and another data set: not comparable with the rows above.",),
        detail=True,
    )
