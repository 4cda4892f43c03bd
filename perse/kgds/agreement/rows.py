"""The results of each way of asking, next to a baseline without a judge: say yes by the words in common.

A judge that does not beat counting shared words gives no evidence that it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.judgement import Judgement
from perse.kgds.agreement.measures import (
    NO_ANSWERS,
    NO_PROBABILITIES,
    ONE_CLASS,
    Answered,
    SampleResamples,
    Value,
    answered,
    measured,
)
from perse.kgds.agreement.pairs import Pair, word_share
from perse.results.result import Estimate, Interval

FACTS, LISTED, OPINIONS = "facts-single", "facts-listed", "opinions-single"
"""Ways of asking, as folders are named."""
NAMES = {FACTS: "facts one by one", LISTED: "facts in lists", OPINIONS: "opinions one by one"}
ALL = "all one by one"


@dataclass(frozen=True)
class Way:
    """One way of asking: its pairs, their judgements in the same order, and wall seconds for a question (None: not timed)."""

    name: str
    pairs: tuple[Pair, ...]
    judgements: tuple[Judgement, ...]
    seconds: float | None


@dataclass(frozen=True)
class Row:
    """A row of the tables: a way of asking, or everything asked one by one."""

    name: str
    given: Answered
    values: Mapping[str, Value]
    words: Mapping[str, Value]
    """Words in common: accuracy, true, false and AUROC."""

    def estimate(self, metric: str) -> Estimate:
        """A value of the judge with its interval, or why it is undefined."""
        return self.values[metric].estimate(self.undefined)

    @property
    def undefined(self) -> Interval:
        """Why values based on probabilities may be undefined."""
        if not self.given.ok.any():
            return NO_ANSWERS
        return ONE_CLASS if self.given.known.any() else NO_PROBABILITIES


def rows_of(ways: Sequence[Way], *, places: Mapping[int, int], shared: SampleResamples) -> dict[str, Row]:
    """A row for each way, and where facts and opinions were asked, one for both one by one.

    Args:
        places: of the samples' numbers, 0 to C - 1.
    """
    rows = {way.name: _row(NAMES[way.name], way.pairs, way.judgements, places=places, shared=shared) for way in ways}
    singles = [way for way in ways if way.name != LISTED]
    if len(singles) == 2:
        pairs = [pair for way in singles for pair in way.pairs]
        judgements = [judgement for way in singles for judgement in way.judgements]
        rows[ALL] = _row(ALL, pairs, judgements, places=places, shared=shared)
    return rows


def _row(
    name: str, pairs: Sequence[Pair], judgements: Sequence[Judgement], *, places: Mapping[int, int], shared: SampleResamples
) -> Row:
    given = answered(pairs, judgements, samples=places)
    shares = np.array([word_share(pair.claim, pair.text) for pair in pairs], dtype=np.float64)
    every, who = np.ones_like(given.ok), given.sample
    words = {
        "accuracy": shared.share((shares > 0.5) == given.truth, every, who),
        "true": shared.share(shares > 0.5, given.truth, who),
        "false": shared.share(shares <= 0.5, ~given.truth, who),
        "AUROC": shared.auroc(shares, given.truth, chosen=every, sample=who),
    }
    return Row(name, given, measured(given, shared), words)
