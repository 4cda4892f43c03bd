"""The items of a table: examples with a reference that every judge has judged, in the order of the examples.

Examples come in folds, each with its own training side: one is the plain case, several mean cross-fitting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from perse.errors import BadInput
from perse.evaluation.shared_texts import works
from perse.evaluation.stats.correlation import IntArray
from perse.evaluation.stats.results import JudgeSummary
from perse.judgement import Judgement, Status
from perse.records import Example, SummaryExample


@dataclass(frozen=True)
class Fold:
    """Examples that share a training side: a whole data set, or one fold of it."""

    examples: Sequence[Example]
    """What was judged."""
    train: Sequence[Example] | None
    """Fits the baselines and the training mean of these examples; None if it is not available."""
    own_scores: bool = True
    """Whether the scores in the examples' profiles are the readers' own."""


@dataclass(frozen=True)
class Items:
    """Judged examples: `judgements[name][n]` is the answer of judge `name` to `examples[n]`."""

    folds: tuple[Fold, ...]
    """The parts that hold an item, reduced to their items."""
    judgements: Mapping[str, tuple[Judgement, ...]]
    without_reference: int
    notes: tuple[str, ...]

    @property
    def examples(self) -> tuple[Example, ...]:
        """The items of all parts, concatenated."""
        return tuple(chain.from_iterable(fold.examples for fold in self.folds))

    def reviewer(self) -> IntArray:
        """Each item's reviewer, 0 to C - 1 in the order of their ids: independent of the order of the examples."""
        return _numbered([example.reviewer_id or example.id for example in self.examples])

    def reviewer_ids(self) -> list[str]:
        """The ids of reviewers 0 to C - 1."""
        return sorted({example.reviewer_id or example.id for example in self.examples})

    def work(self) -> IntArray:
        """The text that each item asks about, as `works` numbers them."""
        return works(self.examples)

    def summaries(self) -> dict[str, JudgeSummary]:
        """Status counts of each judge."""
        return {name: _summary(answers) for name, answers in self.judgements.items()}


def _numbered(ids: Sequence[str]) -> IntArray:
    place = {id_: number for number, id_ in enumerate(sorted(set(ids)))}
    return np.array([place[id_] for id_ in ids], dtype=np.int64)


def align(folds: Sequence[Fold], judges: Mapping[str, Sequence[Judgement]]) -> Items:
    """The items common to all judges.

    Raises:
        BadInput: no example or judge; examples of two kinds; an id twice, be it in two folds; a judgement of no example; no
            reference at all; no common item; or a single judge that has not judged every example (several are compared on
            what they share).
    """
    examples = [example for fold in folds for example in fold.examples]
    if not examples or not judges:
        raise BadInput(f"{len(examples)} examples and {len(judges)} judges to evaluate; give at least one of each")
    if len({type(example) for example in examples}) > 1:
        raise BadInput(f"{_kinds(examples)} examples together; evaluate them apart")
    _refuse_twice([example.id for example in examples], "examples" if len(folds) == 1 else f"examples of {len(folds)} folds")
    answers = {name: _answers(name, judgements, examples=examples) for name, judgements in judges.items()}
    notes = _unfinished(answers, examples=len(examples))
    if isinstance(examples[0], SummaryExample):
        notes = (*notes, OF_SUMMARIES)

    with_reference = [example for example in examples if example.reference]
    if not with_reference:
        raise BadInput(f"none of the {len(examples)} examples has a reference; evaluation needs the reviewers' true answers")
    common = {example.id for example in with_reference if all(example.id in given for given in answers.values())}
    if not common:
        none = [name for name, given in answers.items() if not given]
        why = (
            f"{', '.join(none)} {'has' if len(none) == 1 else 'have'} judged nothing yet; go on with the command that began it"
            if none
            else "score the same examples with each"
        )
        raise BadInput(f"no example with a reference was judged by all of {', '.join(judges)}; {why}")
    kept = (Fold(tuple(example for example in fold.examples if example.id in common), fold.train) for fold in folds)
    aligned = {
        name: tuple(given[example.id] for example in examples if example.id in common) for name, given in answers.items()
    }
    return Items(
        tuple(fold for fold in kept if fold.examples),
        aligned,
        without_reference=len(examples) - len(with_reference),
        notes=notes,
    )


OF_SUMMARIES = (
    "these are summaries of reviews: where readers are named, it is whose reviews they are that stands there, such as a product, and what a reader said is what "
    "people gave the summary"
)


def _kinds(examples: Sequence[Example]) -> str:
    return " and ".join(dict.fromkeys(example.kind for example in examples))


def _answers(name: str, judgements: Sequence[Judgement], *, examples: Sequence[Example]) -> dict[str, Judgement]:
    _refuse_twice([judgement.id for judgement in judgements], f"judgements of {name}")
    known = {example.id for example in examples}
    strangers = [judgement.id for judgement in judgements if judgement.id not in known]
    if strangers:
        shown = f"{len(strangers)} judgements of {name} answer none of the {len(examples)} examples, the first '{strangers[0]}'"
        raise BadInput(f"{shown}; give the examples that were scored")
    return {judgement.id: judgement for judgement in judgements}


def _refuse_twice(ids: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for id_ in ids:
        if id_ in seen:
            raise BadInput(f"id '{id_}' appears twice among the {what}; ids must be unique")
        seen.add(id_)


def _unfinished(answers: Mapping[str, Mapping[str, Judgement]], *, examples: int) -> tuple[str, ...]:
    missing = {name: len(given) for name, given in answers.items() if len(given) < examples}
    if missing and len(answers) == 1:
        done = next(iter(missing.values()))
        raise BadInput(
            f"the run is not finished: {done} of {examples} examples judged; run `perse score` again with the same command"
        )
    return tuple(
        f"{name} has judged {done} of {examples} examples; all rows are of the common ones" for name, done in missing.items()
    )


def _summary(judgements: Sequence[Judgement]) -> JudgeSummary:
    counts = {status: sum(judgement.status is status for judgement in judgements) for status in Status}
    return JudgeSummary(
        models=tuple(dict.fromkeys(judgement.model for judgement in judgements)),
        adapters=tuple(dict.fromkeys(judgement.adapter for judgement in judgements if judgement.adapter)),
        statuses=counts,
        questions=tuple(dict.fromkeys(judgement.question for judgement in judgements)),
    )
