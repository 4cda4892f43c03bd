"""An Evaluation as a Result: the verdict in words, then the tables that matter to most, then the finer ones as details."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perse.evaluation.metrics import Kind, Metric, Sheet, added, metrics_of, title_of
from perse.evaluation.metrics.metric import ERRORS, POOLED, WITHIN, WITHIN_ZERO
from perse.evaluation.stats.accuracy import NOT_ANSWERED
from perse.evaluation.stats.results import Evaluation, Row, Spent
from perse.evaluation.stats.shares import share_note
from perse.evaluation.verdict import answering
from perse.judgement import Status
from perse.results.result import Cell, Result, Table
from perse.results.words import ABSENT, alike

_DIGITS = 2
ROUNDED_LAST = "differences are taken of values before these are rounded, so their last digit may be one off from what the printed values give"


def evaluation_result(evaluation: Evaluation) -> Result:
    """Everything that an evaluation tells."""
    return Result(
        name="evaluate",
        asks="How well do the judges agree with the readers, beside rules that need no judge?",
        answer="\n".join(evaluation.verdict),
        tables=tuple(evaluation_tables(evaluation)),
        details=evaluation.model_dump(mode="json"),
    )


def evaluation_tables(evaluation: Evaluation) -> list[Table]:
    """All tables, details among them, in the order in which they are read."""
    found = [_statuses(evaluation)]
    if evaluation.kind == "pairwise":
        found += [*_choices(evaluation), *_aspects(evaluation), *_counts(evaluation)]
    else:
        found += _scores(evaluation, imputed=False)
        if any(row.imputed for row in evaluation.rows):
            found += _scores(evaluation, imputed=True)
        found += [*_p_values(evaluation), *_texts(evaluation)]
    return [*found, _costs(evaluation)]


def _table(
    title: str,
    header: Sequence[str],
    judged: Sequence[Sequence[Cell]],
    baselines: Sequence[Sequence[Cell]] = (),
    *,
    notes: Sequence[str] = (),
    detail: bool = False,
) -> Table:
    """Baselines stand below the judges."""
    return Table(
        title=title,
        header=tuple(header),
        rows=tuple(tuple(row) for row in (*judged, *baselines)),
        notes=tuple(notes),
        breaks=(len(judged),) if judged and baselines else (),
        detail=detail,
        digits=_DIGITS,
    )


def _statuses(evaluation: Evaluation) -> Table:
    header = ("judge", "model", "asked", *(str(status) for status in Status), "coverage")
    lines = []
    for name, summary in evaluation.judges.items():
        model = ", ".join(summary.models) + "".join(f" + {adapter}" for adapter in summary.adapters)
        counts = [str(summary.statuses[status]) for status in Status]
        coverage = 1000 * summary.ok // summary.asked / 10  # rounded down: 100% means that nothing failed
        lines.append((name, model, str(summary.asked), *counts, f"{coverage:.1f}%"))
    drawn = "the reviewers" if evaluation.resample == "reviewers" else "reviewers and texts"
    notes = [f"intervals: 95%, bootstrap over {drawn}, {evaluation.resamples} resamples, seed {evaluation.seed}"]
    if any(", difference " in sentence for sentence in evaluation.verdict):
        notes.append(ROUNDED_LAST)
    if evaluation.kind == "pairwise":
        notes.append(share_note())
    if evaluation.without_reference:
        notes.append(f"{evaluation.without_reference} of {evaluation.examples} examples have no reference and are left out")
    title = f"Judgements: {evaluation.items} items of {evaluation.reviewers} reviewers"
    return _table(title, header, lines, notes=(*notes, *evaluation.notes))


def _scores(evaluation: Evaluation, *, imputed: bool) -> list[Table]:
    """Pooled, within and between reviewers, and errors. With failures imputed all but the first are details."""
    if imputed:
        where = f"all {evaluation.items} items, {_imputed_by(evaluation)}"
    else:
        where = f"{evaluation.ok_items} items answered" + (
            f" by {answering(evaluation.judges)}" if len(evaluation.judges) > 1 else ""
        )

    found = []
    for sheet, columns in _sheets(evaluation, "scores"):
        last = _OK if imputed and sheet is ERRORS else _LAST.get(sheet, _OK)
        detail = sheet.detail or (imputed and sheet is not POOLED)
        found.append(_values(evaluation, f"{sheet.title}: {where}", sheet, columns, last=last, imputed=imputed, detail=detail))
    return found


def _sheets(evaluation: Evaluation, kind: Kind) -> list[tuple[Sheet, list[Metric]]]:
    """The tables of one kind with their columns; what other packages bring, where a row has it."""
    known = {name for row in evaluation.rows for name in (*row.columns, *row.text)}
    sheets: dict[Sheet, list[Metric]] = {}
    for metric in metrics_of(kind):
        if metric.name in known or not (added(metric) or kind == "texts"):
            sheets.setdefault(metric.sheet, []).append(metric)
    return list(sheets.items())


def _explained(sheet: Sheet, columns: Sequence[Metric]) -> list[str]:
    """The sheet's own notes, and what its columns are."""
    told = [metric for metric in columns if sheet.explained or added(metric)]
    return [*sheet.notes, *(f"{one.title}: {one.about}" + ("; less is better" if one.lower else "") for one in told)]


_Last = tuple[str, Callable[[Row], str]]
"""Header and text of a sheet's last column."""


def _skipped(row: Row) -> str:
    """The same for judges and baselines; of all items where failures are imputed, nearly."""
    number = row.columns["within_pearson"].skipped_reviewers if "within_pearson" in row.columns else None
    return ABSENT if number is None else str(number)


def _epsilons(row: Row) -> str:
    given = row.epsilons or ()
    return " / ".join(ABSENT if epsilon is None else f"{epsilon:.2f}" for epsilon in given) or ABSENT


_OK: _Last = ("ok/asked", lambda row: f"{row.ok}/{row.asked}")
_SKIPPED: _Last = ("skipped", _skipped)
_CONSTANT: _Last = ("constant", _skipped)
_EPSILONS: _Last = ("tie up to", _epsilons)
_LAST = {WITHIN: _SKIPPED, WITHIN_ZERO: _CONSTANT, ERRORS: _EPSILONS}
"""Last columns of sheets, where they are not how many were answered."""


def _imputed_by(evaluation: Evaluation) -> str:
    """A fold without a mean has no failure here, or nothing would be imputed."""
    means = [mean for mean in evaluation.training_means if mean is not None]
    if len(means) == 1:
        return f"failures = training mean {means[0]:.2f}"
    return f"failures = their fold's training mean ({min(means):.2f} to {max(means):.2f})"


def _values(
    evaluation: Evaluation,
    title: str,
    sheet: Sheet,
    columns: Sequence[Metric],
    *,
    last: _Last = _OK,
    imputed: bool = False,
    detail: bool = False,
) -> Table:
    def line(row: Row) -> tuple[Cell, ...]:
        values = (row.imputed or {}) if imputed else row.columns
        if row.unavailable:
            return (row.name, *(ABSENT for _ in columns), ABSENT)
        return (row.name, *(values.get(column.name) for column in columns), last[1](row))

    rows = [row for row in evaluation.rows if row.columns or row.unavailable]
    unavailable = alike([(row.name, f"unavailable: {row.unavailable}") for row in rows if row.unavailable])
    return _table(
        title,
        ("", *(column.title for column in columns), last[0]),
        [line(row) for row in rows if row.judge],
        [line(row) for row in rows if not row.judge],
        notes=(*unavailable, *_explained(sheet, columns)),
        detail=detail,
    )


def _choices(evaluation: Evaluation) -> list[Table]:
    where = f"{evaluation.items} pairs, not answered = wrong"
    return [
        _values(evaluation, f"{sheet.title}: {where}", sheet, columns, detail=sheet.detail)
        for sheet, columns in _sheets(evaluation, "choices")
    ]


def _aspects(evaluation: Evaluation) -> list[Table]:
    """Aspects down, judges and baselines across: there may be any number of aspects."""
    rows = [row for row in evaluation.rows if not row.unavailable]
    aspects = list(dict.fromkeys(aspect for row in rows for aspect in row.aspects))
    if not rows or not aspects:
        return []
    lines = [(one, str(rows[0].aspects[one].items), *(row.aspects.get(one) for row in rows)) for one in aspects]
    return [_table("Accuracy by aspect", ("", "pairs", *(row.name for row in rows)), lines)]


def _counts(evaluation: Evaluation) -> list[Table]:
    """What was answered where A was true, and where B was; of each judge's likeliest choices."""
    found = []
    for row in evaluation.rows:
        if not row.judge or not row.counts or not row.name.endswith("(likeliest)"):
            continue
        given = (*evaluation.labels, NOT_ANSWERED)
        header = ("", *(f"{truth}, said {answer}" for truth in evaluation.labels for answer in given))
        lines = tuple(
            (aspect, *(str(counts[truth][answer]) for truth in evaluation.labels for answer in given))
            for aspect, counts in row.counts.items()
        )
        found.append(_table(f"True answer, and what {row.name} said", header, lines, detail=True))
    return found


def _p_values(evaluation: Evaluation) -> list[Table]:
    rows = [row for row in evaluation.rows if row.p_values]
    if not rows:
        return []
    names = list(rows[0].p_values)

    def line(row: Row) -> tuple[Cell, ...]:
        return (row.name, *(ABSENT if (p := row.p_values[name]) is None else f"{p:.2g}" for name in names))

    return [
        _table(
            f"p of the pooled correlations, two-sided: {evaluation.ok_items} items answered",
            ("", *(title_of(name) for name in names)),
            [line(row) for row in rows if row.judge],
            [line(row) for row in rows if not row.judge],
            notes=(
                "as papers print them: of no relation, and of items that are independent, which those of one reader or of one text are "
                "not, so that they are too small; a correlation other than 0 is no reason to trust a judge, and no sentence rests on them",
            ),
        )
    ]


def _texts(evaluation: Evaluation) -> list[Table]:
    rows = [row for row in evaluation.rows if row.text]
    if not rows:
        return []
    where = f"{next(iter(rows[0].text.values())).items} items, not answered = empty text"
    skipped = [f"skipped: {why}" for why in evaluation.text_skipped.values()]
    found: list[Table] = []
    for sheet, columns in _sheets(evaluation, "texts"):
        header = ("", *(column.title for column in columns))
        names = [column.name for column in columns]
        judged = [(row.judge, *map(row.text.get, names)) for row in rows if row.judge]
        others = [(row.name, *map(row.text.get, names)) for row in rows if not row.judge]
        notes = [*(skipped if not found else ()), *_explained(sheet, columns)]
        found.append(_table(f"{sheet.title}: {where}", header, judged, others, notes=notes, detail=sheet.detail))
    return found


def _costs(evaluation: Evaluation) -> Table:
    header = ("judge", "judgements", "prompt", "cached", "generated", "reviews shown", "cost", "seconds", "tokens/s")
    spent = {name: one.spent for name, one in evaluation.judges.items() if one.spent}
    lines = tuple((name, *_spent(one)) for name, one in spent.items())
    notes = [
        "tokens of the whole run, without requests that failed; reviews shown: mean number of profile entries in the prompts that were read"
    ]
    if any(one.cost is None for one in spent.values()):
        notes.append("cost: unknown without prices (--prices NAME=INPUT,OUTPUT per million tokens)")
    return _table("Tokens and cost", header, lines, notes=notes, detail=all(one.cost is None for one in spent.values()))


def _spent(one: Spent) -> tuple[str, ...]:
    counts = (one.judgements, one.prompt, one.cached, one.generated)
    measured = ((one.k_effective, ".2f"), (one.cost, ".4f"), (one.seconds, ".0f"), (one.tokens_per_second, ".0f"))
    return (*(f"{count:,}" for count in counts), *(ABSENT if value is None else f"{value:{form}}" for value, form in measured))
