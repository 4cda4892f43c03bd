"""The known quality of a judge: its judgings while training, and runs of `perse score`, evaluated by `evaluation`.

Nothing is computed here but which numbers to show.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.evaluation.metrics import METRICS
from perse.models.finding import weights_digest
from perse.publishing.facts import ADAPTER, MERGED, RunFacts
from perse.publishing.markdown import plain

STRAYS = 0.67
"""Kendall of n examples strays by about this / sqrt(n) by chance (perse/training/watch/judging.py)."""
_KENDALL = METRICS["kendall"].title
_WATCHED = {
    "loss": "loss",
    "parse_rate": "ok / asked",
    "accuracy": METRICS["accuracy"].title,
    "within_one": "within one",
    "kendall": _KENDALL,
    "kendall_imputed": f"{_KENDALL}, failures imputed",
}
_SCORES = {name: METRICS[name].alone for name in ("kendall", "within_kendall", "pearson", "spearman", "mae")}
_PAIRS = {name: METRICS[name].alone for name in ("accuracy", "order_consistency")}


@dataclass(frozen=True)
class Watched:
    """Judgings while training. `asked` is 0 where only the loss was computed; `strays` is Kendall's standard error."""

    asked: int
    strays: float | None
    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Scored:
    """A run of `perse score`, evaluated. Cells of `rows` are Markdown; everything else is as it was read."""

    name: str
    verdict: Sequence[str]
    ok: int
    asked: int
    reviewers: int
    intervals: str
    """How they were made."""
    header: list[str]
    rows: list[list[str]]
    unavailable: list[tuple[str, str]]
    notes: list[str]
    index: dict[str, float]
    """Metrics of the judge's own row by their names, for programs of the hub; those that are undefined, have no interval or are of what was answered alone
    are left out, and all where `beside` says what these numbers are not of."""
    beside: tuple[str, ...]
    """What whoever reads the verdict alone must know: that readers are not unseen, profiles not their own, or many not answered."""


def while_training(facts: RunFacts) -> Watched | None:
    """The first, the kept and the last judging."""
    judgings = facts.judgings
    if not judgings:
        return None
    last = judgings[-1]
    kept = facts.kept_step
    shown = {int(line["step"]): line for line in judgings if line is judgings[0] or line is last or line["step"] == kept}
    columns = {key: name for key, name in _WATCHED.items() if any(f"eval_{key}" in line for line in shown.values())}
    asked = int(last.get("eval_asked", 0))
    return Watched(
        asked=asked,
        strays=STRAYS / math.sqrt(asked) if asked and "kendall" in columns else None,
        header=["step", *columns.values()],
        rows=[[_step(step, kept), *(_watched(line, key) for key in columns)] for step, line in shown.items()],
    )


def when_scored(facts: RunFacts, folder: Path, *, unidentified: bool = False) -> Scored:
    """The verdict, the metrics with intervals and the baselines of the run in `folder`.

    Args:
        unidentified: take a run whose weights are not known, on the word of whoever asks for the card, which says so.
    Raises:
        BadInput: the folder is no scored run, or one of another judge.
    """
    from perse.batch.comparing import OWN, gather, shown_in
    from perse.evaluation.evaluate import evaluate_many
    from perse.evaluation.seen import NO_TEST
    from perse.evaluation.verdict import WELL_COVERED
    from perse.models.vectors import KeptVectors

    served = _check_judge(facts, folder, unidentified=unidentified)
    gathered = gather([folder])
    notes = [*gathered.notes, *(f"baselines that need training data are unavailable: {why}" for why in gathered.missing)]
    result = evaluate_many(gathered.judges, gathered.folds, notes=notes, vectors=KeptVectors())
    [summary] = result.judges.values()
    header, rows = _values(result)
    beside = tuple(note for note in result.notes if note.endswith(NO_TEST))
    if result.kind == "pointwise" and 0 < summary.ok < WELL_COVERED * summary.asked:  # pairs count as wrong
        beside += (f"{summary.ok} of {summary.asked} examples were answered, and its numbers are of these",)
    beside += () if shown_in(folder) == OWN else ("the profiles that were shown are not the readers' own",)
    return Scored(
        name=folder.name,
        verdict=result.verdict,
        ok=summary.ok,
        asked=summary.asked,
        reviewers=result.reviewers,
        intervals=_intervals(result),
        header=header,
        rows=rows,
        unavailable=[(row.name, row.unavailable) for row in result.rows if row.unavailable],
        notes=[*result.notes, *served],
        index={} if beside else _own(result, folder.name, least=WELL_COVERED * summary.asked),
        beside=beside,
    )


def _intervals(result: Any) -> str:
    if result.kind == "pairwise":
        return f"exact, of fewer pairs where those of one reviewer{' or about one text' if result.resample == 'two-way' else ''} go together"
    return f"by a bootstrap over {'reviewers and texts' if result.resample == 'two-way' else result.resample}"


def _own(result: Any, name: str, *, least: float) -> dict[str, float]:
    columns = _PAIRS if result.kind == "pairwise" else _SCORES
    own = next((row for row in result.rows if row.name in (f"{name} (expected)", f"{name} (likeliest)")), None)
    cells = {} if own is None or own.unavailable else own.columns
    return {
        key: value
        for key in columns
        if key in cells
        and (value := cells[key].value) is not None
        and cells[key].interval.low is not None
        and cells[key].items >= least
    }


def _values(result: Any) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of metrics."""
    from perse.evaluation.verdict import shown

    columns = _PAIRS if result.kind == "pairwise" else _SCORES
    known = {key: name for key, name in columns.items() if any(key in row.columns for row in result.rows)}
    failed = any(row.imputed for row in result.rows)
    rows = []
    for row in result.rows:
        if row.unavailable or not any(key in row.columns for key in known):
            continue
        cells = [plain(shown(row.columns[key])) if key in row.columns else "" for key in known]
        imputed = (row.imputed or {}).get("kendall")
        rows.append([plain(row.name), *cells, *([plain(shown(imputed)) if imputed else ""] if failed else [])])
    return ["", *known.values(), *(["Kendall, failures imputed"] if failed else [])], rows


def _check_judge(facts: RunFacts, folder: Path, *, unidentified: bool) -> list[str]:
    """Check that the run scored this judge, by the digest of its weights, which a server may not tell.

    Raises:
        BadInput: it is another's, or may be, and was not vouched for.
    """
    from perse.batch.judged_by import judged_by, weights_of

    judge = judged_by(folder)
    told = weights_of(judge)
    if not told:
        if not unidentified:
            raise BadInput(
                f"{folder} does not say which weights answered (judge {judge.get('model', 'unknown')}), so its "
                f"numbers may be another judge's; score with `perse score --judge {facts.folder}`, or on a server of `perse serve`, or vouch "
                "for it with --unidentified, which the card then says"
            )
        return [
            "which weights answered is not known, since the judge's server did not tell: whoever wrote this card vouches for them"
        ]
    if told not in _digests(facts):
        raise BadInput(
            f"{folder} was judged with other weights than those of {facts.folder} (judge {judge.get('model')}); give a folder that "
            f"`perse score --judge {facts.folder}` wrote"
        )
    return []


def _digests(facts: RunFacts) -> set[str]:
    """The merged model's, and that of the adapter on its base (`models.judge_digest`), which need not be here."""
    found = set()
    if (facts.folder / MERGED).is_dir():
        found.add(weights_digest(facts.folder / MERGED))
    if (facts.folder / ADAPTER).is_dir():
        both = f"{facts.run.get('model_digest')}+{weights_digest(facts.folder / ADAPTER)}"
        found.add(hashlib.sha256(both.encode()).hexdigest())
    return found


def _step(step: int, kept: int | None) -> str:
    return f"{step} (kept)" if step == kept else f"{step} (untrained)" if step == 0 else str(step)


def _watched(line: Mapping[str, Any], key: str) -> str:
    value = line.get(f"eval_{key}")
    if not isinstance(value, int | float):
        return "undefined"
    asked = line.get("eval_asked")
    if key.startswith("kendall") and isinstance(asked, int | float) and asked:
        return f"{value:.2f} ± {1.96 * STRAYS / math.sqrt(asked):.2f}"
    return f"{value:.3g}"
