"""Which scoring runs stand in one table: judges of the same examples side by side, folds of one data set together.

Runs of the same examples are judges to compare. Runs of different folds are one cross-fitted judge; where every fold comes
several times, the first run of each fold is the first judge, and so on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from os.path import commonprefix
from pathlib import Path
from typing import Any

from perse.batch.local import ScoredRun, read_run
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.evaluation.evaluate import Part
from perse.judgement import Judgement
from perse.records import ChoiceReference, Example, Pair, PairwiseExample, PointwiseExample, VerbatimExample

IN_PROMPT = "as prompted"
"""The aspect of pairs whose prompt alone names it."""


def judges_and_parts(
    folders: Sequence[Path], train_data: Path | None = None
) -> tuple[dict[str, list[Judgement]], list[Part], list[str]]:
    """Judgements by judge, the parts they were made of, and why training sides are missing.

    Raises:
        BadInput: runs of other examples, or judges that were not scored on the same folds.
    """
    by_fold: dict[int | None, list[tuple[Path, ScoredRun]]] = defaultdict(list)
    for folder in folders:
        run = read_run(folder)
        by_fold[run.fold].append((folder, run))
    counts = {len(runs) for runs in by_fold.values()}
    if len(counts) > 1:
        shown = ", ".join(f"fold {fold}: {len(runs)}" for fold, runs in by_fold.items())
        raise BadInput(f"every judge must be scored on the same folds; found runs of {shown}")
    judges: dict[str, list[Judgement]] = {}
    for nth in range(counts.pop()):
        own = [runs[nth] for runs in by_fold.values()]
        name = _name([folder for folder, _ in own], folders, taken=judges)
        judges[name] = [judgement for _, run in own for judgement in run.judgements]
    parts: list[Part] = []
    missing: list[str] = []
    for runs in by_fold.values():
        folder, first = runs[0]
        for other, run in runs[1:]:
            if run.examples != first.examples:
                raise BadInput(f"{other} was asked other examples than {folder}; evaluate runs of the same examples together")
        train, reason = _training_side(first, train_data)
        parts.append(Part(_answered(first.examples), None if train is None else _answered(train)))
        missing += [reason] if reason else []
    return judges, parts, missing


def _training_side(run: ScoredRun, train_data: Path | None) -> tuple[Sequence[Example] | None, str | None]:
    if train_data is None:
        return run.training_side()
    return load_examples(train_data, split="train", fold=run.fold).examples, None


def _answered(examples: Sequence[Example]) -> list[Example]:
    """The examples with prompts taken for what they ask, which is what their answers are compared by.

    Nobody knows who is behind a prompt without reviewer: each is a reviewer of its own. Its profile and aspect are not told.
    """
    chosen = any(isinstance(example.reference, ChoiceReference) for example in examples)
    return [_asked(example, chosen) if isinstance(example, VerbatimExample) else example for example in examples]


def _asked(example: VerbatimExample, chosen: bool) -> Example:
    reviewer = example.reviewer_id or example.id
    common: dict[str, Any] = {"id": example.id, "reviewer_id": reviewer, "profile": (), "reference": example.reference}
    if chosen:
        return PairwiseExample(**common, aspect=IN_PROMPT, query=Pair(text_a=example.prompt, text_b=""))
    return PointwiseExample(**common, item_id=example.id, query=example.prompt)


def _name(own: Sequence[Path], folders: Sequence[Path], *, taken: dict[str, list[Judgement]]) -> str:
    """A run's folder name, or what its folds' names begin with; the whole path where that says too little."""
    name = own[0].name if len(own) == 1 else commonprefix([folder.name for folder in own]).rstrip("-_. ")  # noqa: RUF071 (characters are meant, not parts of a path)
    alike = [folder for folder in folders if folder.name == own[0].name]
    return str(own[0]) if not name or name in taken or len(alike) > 1 else name
