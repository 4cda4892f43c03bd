"""The data of a judge's plots: answers and truths as arrays, one entry per item.

The items are those of the tables (`align`), so that plots and tables agree. Unknown values are NaN
here, and a gap or a reason in words in plots.

Notation: n items, L labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from perse.errors import BadInput
from perse.evaluation.alignment import Items
from perse.evaluation.calibration.reliability import Promised, nearest_label
from perse.evaluation.calibration.risk_coverage import entropy
from perse.evaluation.predictions import answer_scale, expected_values, gold_scores, label_values
from perse.evaluation.shared_texts import to_draw
from perse.evaluation.stats.accuracy import likelier
from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.results import Resample
from perse.judgement import Judgement, Status
from perse.records import Example, VerbatimExample, chooses
from perse.scale import Scale


@dataclass(frozen=True)
class RunData:
    """One judge's answers to the items, in their order.

    Scores are unchanged; of pairs, A is 0 and B is 1 in `gold` and `label`, and `expected` is the probability of B.
    """

    name: str
    kind: str
    """Of the examples, such as "pairwise"."""
    labels: tuple[str, ...]
    """The scale, in order."""
    ids: tuple[str, ...]
    reviewers: tuple[str, ...]
    """Whose each item is; of summaries, the product's or reviewer's whose reviews they are."""
    aspects: tuple[str, ...]
    """What each pair was compared by; "" for scores."""
    gold: FloatArray
    """(n,) the true answer; NaN if unknown."""
    label: FloatArray
    """(n,) the answer given; NaN where it is not ok."""
    expected: FloatArray
    """(n,) the sum of label times probability, the label where there is no distribution; NaN where it is not ok."""
    distributions: FloatArray
    """(n, L) probabilities of the labels; NaN where there are none."""
    order_gap: FloatArray
    """(n,) pairs: |P(A) asked as given - P(A) asked swapped|; NaN where it was not measured."""
    statuses: tuple[Status, ...]
    tokens: IntArray
    """(n, 3) prompt tokens, those of them from a cache, and tokens written."""
    text: IntArray | None = None
    """(n,) which text each item is about, where readers share so many that these are resampled, too."""

    @cached_property
    def values(self) -> FloatArray:
        """(L,) the labels as numbers, 0 and 1 for A and B."""
        numbers = range(2) if self.kind == "pairwise" else self.labels
        return np.array([float(one) for one in numbers])

    @cached_property
    def reviewer(self) -> IntArray:
        """(n,) each item's reviewer, 0 to C - 1 in the order of their ids."""
        place = {one: number for number, one in enumerate(sorted(set(self.reviewers)))}
        return np.array([place[one] for one in self.reviewers], dtype=np.int64)

    @cached_property
    def ok(self) -> BoolArray:
        """(n,) answered."""
        return np.array([status is Status.OK for status in self.statuses], dtype=bool)

    @cached_property
    def known(self) -> BoolArray:
        """(n,) answered, and the true answer is known."""
        found: BoolArray = ~np.isnan(self.gold) & ~np.isnan(self.expected)
        return found

    @cached_property
    def unanswered(self) -> int:
        """How many whose true answer is known have no answer."""
        return int((~np.isnan(self.gold) & ~self.known).sum())

    @cached_property
    def told(self) -> BoolArray:
        """(n,) known, with a distribution."""
        found: BoolArray = self.known & ~np.isnan(self.distributions).any(axis=1)
        return found

    @cached_property
    def likeliest(self) -> FloatArray:
        """(n,) the likeliest label's value, the given label's where there is no distribution; NaN where not ok, or where both of a pair are
        exactly as likely (`evened`)."""
        chosen = self.label.copy()
        rows = self.ok & ~np.isnan(self.distributions).any(axis=1)
        chosen[rows] = self.values[self.distributions[rows].argmax(axis=1)]
        chosen[self.evened] = np.nan
        return chosen

    @cached_property
    def evened(self) -> BoolArray:
        """(n,) of pairs: A and B are exactly as likely, or without probabilities each was chosen in one order, so that a label is one of them by rule or
        by lot."""
        turned = np.isnan(self.distributions).any(axis=1) & (self.order_gap == 1)
        found: BoolArray = self.ok & ((np.ptp(self.distributions, axis=1) < 1e-9) | turned)
        return found if self.kind == "pairwise" else np.zeros_like(found)

    @cached_property
    def entropy(self) -> FloatArray:
        """(n,) of the distribution, in bits; NaN where there is none."""
        return entropy(self.distributions)

    @cached_property
    def on_labels(self) -> bool:
        """Whether no true answer lies between labels, as means of several people do."""
        return bool(np.isin(self.gold[np.isfinite(self.gold)], self.values).all())

    @cached_property
    def promised(self) -> Promised:
        """The distributions of what is `told`, with the place of each true label."""
        truth = nearest_label(self.gold[self.told], self.values)
        text = None if self.text is None else self.text[self.told]
        return Promised(self.labels, self.distributions[self.told], truth, self.reviewer[self.told], text)

    @cached_property
    def error(self) -> FloatArray:
        """(n,) of the expected score; of pairs whether the likelier label is wrong, 1/2 where both are as likely. NaN where not known."""
        if self.kind != "pairwise":
            return np.abs(self.gold - self.expected)
        right = likelier(np.where(self.gold == 0, 1 - self.expected, self.expected), np.full_like(self.expected, 0.5))
        return np.where(self.known, 1 - right, np.nan)


def report_data(items: Items, *, resample: Resample = "auto") -> dict[str, RunData]:
    """Every judge's run, in their order, on `items`, of `align`.

    Args:
        resample: as the tables beside it have it, so that the intervals of both are of the same.
    Raises:
        BadInput: prompts that could not be parsed, or an answer off the scale.
    """
    examples = items.examples
    _check_kind(examples)
    scale, pairs = answer_scale(items), chooses(examples)
    reviewers = tuple(example.reviewer_id or example.id for example in examples)
    aspects = tuple(example.aspect or "" for example in examples)
    gold = _choices(examples) if pairs else gold_scores(items)
    runs = {}
    for name, judgements in items.judgements.items():
        distributions = _distributions(name, judgements, scale=scale)
        runs[name] = RunData(
            name=name,
            kind=examples[0].kind,
            labels=scale.labels,
            ids=tuple(example.id for example in examples),
            reviewers=reviewers,
            aspects=aspects,
            gold=gold,
            label=_given_choices(judgements) if pairs else label_values(judgements),
            expected=_second(judgements, distributions) if pairs else expected_values(judgements),
            distributions=distributions,
            order_gap=np.array([_gap(judgement) for judgement in judgements], dtype=np.float64),
            statuses=tuple(judgement.status for judgement in judgements),
            tokens=np.array([[j.tokens.prompt, j.tokens.cached, j.tokens.generated] for j in judgements], dtype=np.int64),
            text=items.work() if to_draw(examples, resample) == "two-way" else None,
        )
    return runs


def _check_kind(examples: Sequence[Example]) -> None:
    if isinstance(examples[0], VerbatimExample):
        raise BadInput(
            f"example '{examples[0].id}' is a prompt; gather the runs with `judges_and_folds`, which reads what is asked"
        )


def _distributions(name: str, judgements: Sequence[Judgement], *, scale: Scale) -> FloatArray:
    found = np.full((len(judgements), len(scale.labels)), np.nan)
    for row, judgement in zip(found, judgements, strict=True):
        strangers = [label for label in (judgement.label, *(judgement.distribution or ())) if label not in scale.labels]
        if judgement.status is not Status.OK:
            continue
        if strangers:
            raise BadInput(
                f"judgement '{judgement.id}' of {name} is ok with label {strangers[0]!r}, expected one of {', '.join(scale.labels)}"
            )
        if judgement.distribution:
            row[:] = [judgement.distribution.get(label, 0.0) for label in scale.labels]
    return found


def _choices(examples: Sequence[Example]) -> FloatArray:
    given = (example.truth for example in examples)
    return np.array([np.nan if choice is None else float(choice == "B") for choice in given], dtype=np.float64)


def _given_choices(judgements: Sequence[Judgement]) -> FloatArray:
    ok = (judgement.status is Status.OK and judgement.label is not None for judgement in judgements)
    return np.array([float(j.label == "B") if fine else np.nan for j, fine in zip(judgements, ok, strict=True)])


def _second(judgements: Sequence[Judgement], distributions: FloatArray) -> FloatArray:
    told = ~np.isnan(distributions).any(axis=1)
    found: FloatArray = np.where(told, distributions[:, 1], _given_choices(judgements))
    return found


def _gap(judgement: Judgement) -> float:
    known = judgement.status is Status.OK and judgement.order_gap is not None
    return float(judgement.order_gap or 0.0) if known else np.nan
