"""Which items a table stands on: examples with a reference that every judge has judged, in the order of the examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.errors import BadInput
from perse.evaluation.correlation import IntArray
from perse.evaluation.results import JudgeSummary
from perse.judgement import Judgement, Status
from perse.records import Example, PairwiseExample, PointwiseExample


@dataclass(frozen=True)
class Items:
    """Judged examples: `judgements[name][n]` is the answer of judge `name` to `examples[n]`."""

    examples: tuple[Example, ...]
    judgements: Mapping[str, tuple[Judgement, ...]]
    without_reference: int
    notes: tuple[str, ...]

    def pointwise(self) -> list[PointwiseExample]:
        """The examples, if they are scores."""
        return [example for example in self.examples if isinstance(example, PointwiseExample)]

    def pairwise(self) -> list[PairwiseExample]:
        """The examples, if they are pairs."""
        return [example for example in self.examples if isinstance(example, PairwiseExample)]

    def reviewer(self) -> IntArray:
        """Each item's reviewer, 0 to C - 1 in the order of their ids: independent of the order of the examples."""
        _, index = np.unique(np.array([example.reviewer_id for example in self.examples], dtype=object), return_inverse=True)
        return index.astype(np.int64)

    def summaries(self) -> dict[str, JudgeSummary]:
        """Status counts of each judge."""
        return {name: _summary(answers) for name, answers in self.judgements.items()}


def align(examples: Sequence[Example], judges: Mapping[str, Sequence[Judgement]]) -> Items:
    """The items common to all judges.

    Raises:
        BadInput: no example or judge; examples of two kinds; an id twice; a judgement of no example; no reference at all; no
            common item; or a single judge that has not judged every example (several are compared on what they share).
    """
    if not examples or not judges:
        raise BadInput(f"{len(examples)} examples and {len(judges)} judges to evaluate; give at least one of each")
    if len({type(example) for example in examples}) > 1:
        raise BadInput("pointwise and pairwise examples together; evaluate them apart")
    _by_id([example.id for example in examples], "examples")
    answers = {name: _answers(name, judgements, examples=examples) for name, judgements in judges.items()}
    notes = _unfinished(answers, examples=len(examples))

    with_reference = [example for example in examples if example.reference]
    if not with_reference:
        raise BadInput(f"none of the {len(examples)} examples has a reference; evaluation needs the reviewers' true answers")
    common = tuple(example for example in with_reference if all(example.id in given for given in answers.values()))
    if not common:
        raise BadInput(
            f"no example with a reference was judged by all of {', '.join(judges)}; score the same examples with each"
        )
    aligned = {name: tuple(given[example.id] for example in common) for name, given in answers.items()}
    return Items(common, aligned, without_reference=len(examples) - len(with_reference), notes=notes)


def _answers(name: str, judgements: Sequence[Judgement], *, examples: Sequence[Example]) -> dict[str, Judgement]:
    _by_id([judgement.id for judgement in judgements], f"judgements of {name}")
    known = {example.id for example in examples}
    strangers = [judgement.id for judgement in judgements if judgement.id not in known]
    if strangers:
        shown = f"{len(strangers)} judgements of {name} answer none of the {len(examples)} examples, the first '{strangers[0]}'"
        raise BadInput(f"{shown}; give the examples that were scored")
    return {judgement.id: judgement for judgement in judgements}


def _by_id(ids: Sequence[str], what: str) -> None:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            raise BadInput(f"id '{one}' appears twice among the {what}; ids must be unique")
        seen.add(one)


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
    )
