"""Whom a text serves and whom it loses: the probabilities of a vote for it over real readers, instead of one number.

P is a table of texts (a document's candidate) by readers. Its sum of squared deviations from the mean falls into three parts: between texts (all readers agree
which is good), between readers (some are won more easily than others), and the rest, which is who likes which text: taste. A cell has one value, so taste and
whatever else moves a single answer cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from perse.drpe.votes.ballots import Ballot, Prompting
from perse.drpe.votes.scoring import EVEN
from perse.evaluation.stats.correlation import FloatArray
from perse.judgement import Judgement, Status

Text = tuple[str, str]
"""Document and system."""


@dataclass(frozen=True)
class Readership:
    """`chances`: text -> reader -> mean probability of a vote for it, over orders and references; only texts that every reader voted on."""

    readers: tuple[str, ...]
    chances: Mapping[Text, Mapping[str, float]]
    incomplete: int
    """Texts that some reader gave no vote."""

    def of_reader(self, reader: str) -> float:
        """Mean over texts."""
        return fmean(of_one[reader] for of_one in self.chances.values())

    def won(self, text: Text) -> float:
        """Share of the readers who would rather have this text than the reference."""
        return fmean(chance > EVEN for chance in self.chances[text].values())

    @property
    def _table(self) -> FloatArray:
        """(texts, readers)."""
        return np.array([[of_one[reader] for reader in self.readers] for of_one in self.chances.values()], dtype=np.float64)

    @property
    def spread(self) -> float:
        """The standard deviation of all chances: how much there is to divide into shares."""
        return float(self._table.std())

    @property
    def shares(self) -> tuple[float, float, float] | None:
        """Of the sum of squares between texts, between readers, and of taste; None of fewer than two of either, or if nothing differs."""
        table = self._table
        if table.size == 0 or min(table.shape) < 2:
            return None
        whole = ((table - table.mean()) ** 2).sum()
        if whole <= 1e-12:
            return None
        texts = table.shape[1] * ((table.mean(axis=1) - table.mean()) ** 2).sum()
        readers = table.shape[0] * ((table.mean(axis=0) - table.mean()) ** 2).sum()
        return float(texts / whole), float(readers / whole), float(max(0.0, whole - texts - readers) / whole)


def readership(
    ballots: Sequence[Ballot], answers: Mapping[Prompting, Mapping[str, Judgement]], readers: Sequence[str]
) -> Readership:
    """Of the votes of real readers; a text that is the reference itself is left out."""
    found: dict[Text, dict[str, list[float | None]]] = {}
    seen: set[tuple[str, str | None]] = set()
    for ballot in ballots:
        if ballot.role is None or ballot.role.source != "reader" or ballot.judgement is None:
            continue
        if (ballot.system, ballot.judgement) in seen:  # the same answer stands in both ways of prompting
            continue
        seen.add((ballot.system, ballot.judgement))
        of_text = found.setdefault((ballot.document, ballot.system), {})
        of_text.setdefault(ballot.role.type, []).append(_chance(ballot, answers[ballot.prompting].get(ballot.judgement)))
    whole = {
        text: {reader: fmean(value for value in values if value is not None) for reader, values in of_text.items()}
        for text, of_text in found.items()
        if set(of_text) == set(readers) and all(value is not None for values in of_text.values() for value in values)
    }
    return Readership(tuple(readers), whole, len(found) - len(whole))


def _chance(ballot: Ballot, answer: Judgement | None) -> float | None:
    """The probability of a vote for the candidate; of a judge without distributions, the vote."""
    if answer is None or answer.status is not Status.OK:
        return None
    return float(answer.label == ballot.candidate) if answer.distribution is None else answer.distribution[ballot.candidate]
