"""Whom a text serves and whom it loses: the probabilities of a vote for it over real readers, instead of one number.

P is a table of texts (a document's candidate) by readers, each cell the mean of both orders. What differs in it is divided as an analysis of variance does: between
texts (all readers agree which is good), between readers (some are won more easily), who votes for which text, and chance. How much is chance the two orders
tell: by how much they differ beyond what a reader leans to one place, and what all do at a text. Asked in one order, the last two cannot be told apart.

The share of who votes for which text is what is left above chance, and never below 0: where readers agree, it is not 0, and more the fewer texts there are. It
is what a reader does in both orders: so it is shown where the two orders' residuals go together, over documents drawn anew. It is taste, and it is not taste alone:
a probability ends at 0 and at 1, so that of readers who agree one who leans much to a place, or is surer, follows the texts by less or by more than another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from perse.drpe.votes.ballots import Ballot, Prompting
from perse.drpe.votes.scoring import EVEN
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.judgement import Judgement, Status
from perse.records import Choice

Text = tuple[str, str]
"""Document and system."""


@dataclass(frozen=True)
class Shares:
    """Of the variance of P: components of an analysis of variance, which add up to 1; none is below 0."""

    texts: float
    readers: float
    taste: float
    """Who votes for which text, for whatever reason. With chance in it where `chance` is None."""
    chance: float | None


@dataclass(frozen=True)
class Readership:
    """`chances`: text -> reader -> mean probability of a vote for it, over orders and references; only texts that every reader voted on."""

    readers: tuple[str, ...]
    chances: Mapping[Text, Mapping[str, float]]
    orders: Mapping[Text, Mapping[str, float | None]]
    """The same with the candidate first minus with it second; None where it was asked in one order."""
    votes: Mapping[Text, Mapping[str, float]]
    """Share of a reader's votes that are for the text."""
    incomplete: int
    """Texts that some reader gave no vote."""
    probable: bool = True
    """Whether the judge told probabilities; if not, `chances` are shares of votes."""

    def of_reader(self, reader: str) -> float:
        """Mean over texts."""
        return fmean(of_one[reader] for of_one in self.chances.values())

    def lean(self, reader: str) -> float | None:
        """By how much more probable their vote for a text is where it stands first, on average; None in one order."""
        apart = [of_one[reader] for of_one in self.orders.values()]
        known = [one for one in apart if one is not None]
        return fmean(known) if known and len(known) == len(apart) else None

    def won(self, text: Text, stands_for: Mapping[str, int]) -> float:
        """Share of the readers, each counted as often as they stand for others, who vote for this text and not for the reference; one who does both, in two
        orders, counts half."""
        votes = self.votes[text]
        return sum(stands_for[name] * _side(vote) for name, vote in votes.items()) / sum(stands_for[name] for name in votes)

    @property
    def _table(self) -> FloatArray:
        """(texts, readers)."""
        return np.array([[of_one[reader] for reader in self.readers] for of_one in self.chances.values()], dtype=np.float64)

    @property
    def spread(self) -> float:
        """The standard deviation of all chances: how much there is to divide into shares."""
        return float(self._table.std())

    @property
    def shares(self) -> Shares | None:
        """None of fewer than two texts or readers, or if nothing differs."""
        table = self._table
        if table.size == 0 or min(table.shape) < 2 or table.std() < 1e-6:
            return None
        texts, readers = table.shape
        rows, columns = table.mean(axis=1) - table.mean(), table.mean(axis=0) - table.mean()
        rest = _residuals(table)
        residual = _spread(rest)
        between = max(0.0, float((rows**2).sum() / (texts - 1)) - residual / readers)
        of_readers = max(0.0, float((columns**2).sum() / (readers - 1)) - residual / texts)
        noise = self._noise
        chance = None if noise is None else min(noise, residual)
        whole = between + of_readers + residual
        return Shares(
            between / whole,
            of_readers / whole,
            (residual - (chance or 0.0)) / whole,
            None if chance is None else chance / whole,
        )

    @property
    def taste_shown(self) -> bool | None:
        """Whether more than chance is in who votes for which text: the 95% interval of the covariance of both orders' residuals is above 0; None in one order,
        or of fewer than ten documents."""
        if self.shares is None or self._noise is None:
            return None
        halves = np.array([[(self.orders[text][reader] or 0.0) / 2 for reader in self.readers] for text in self.chances])
        first, second = (_residuals(self._table + sign * halves) for sign in (1, -1))
        documents = np.unique([document for document, _ in self.chances], return_inverse=True)[1]
        drawn = Bootstrap.over(documents, resamples=1000, seed=0)
        found = drawn.mean((first * second).sum(axis=1), np.ones(len(documents), dtype=bool))
        return None if found.interval.low is None else found.above_zero

    @property
    def _noise(self) -> float | None:
        """The variance of a cell that is chance: a quarter of that of the difference between orders, since a cell is the mean of two; what a reader leans to a
        place is no chance, nor what everybody does at a text."""
        given = [[self.orders[text][reader] for reader in self.readers] for text in self.chances]
        if any(one is None for row in given for one in row):
            return None
        apart = np.array(given, dtype=np.float64)  # (texts, readers)
        return _spread(_residuals(apart)) / 4


def _residuals(table: FloatArray) -> FloatArray:
    """(texts, readers) what neither the text nor the reader decides."""
    rest: FloatArray = table - table.mean(axis=1, keepdims=True) - table.mean(axis=0) + table.mean()
    return rest


def _spread(residuals: FloatArray) -> float:
    """Their variance, (texts - 1) (readers - 1) of them being free."""
    texts, readers = residuals.shape
    return float((residuals**2).sum() / ((texts - 1) * (readers - 1)))


def _side(vote: float) -> float:
    return 0.5 if vote == EVEN else float(vote > EVEN)


def readership(
    ballots: Sequence[Ballot], answers: Mapping[Prompting, Mapping[str, Judgement]], readers: Sequence[str]
) -> Readership:
    """Of the votes of real readers; a text that is the reference itself is left out."""
    found: dict[Text, dict[str, list[tuple[Choice, float | None, bool]]]] = {}
    seen: set[tuple[str, str | None]] = set()
    probable = False
    for ballot in ballots:
        if ballot.role is None or ballot.role.source != "reader" or ballot.judgement is None:
            continue
        if (ballot.system, ballot.judgement) in seen:  # the same answer stands in both ways of prompting
            continue
        seen.add((ballot.system, ballot.judgement))
        answer = answers[ballot.prompting].get(ballot.judgement)
        probable |= answer is not None and answer.distribution is not None
        of_text = found.setdefault((ballot.document, ballot.system), {})
        voted = answer is not None and answer.label == ballot.candidate
        of_text.setdefault(ballot.role.type, []).append((ballot.candidate, _chance(ballot, answer), voted))
    whole = {
        text: of_text
        for text, of_text in found.items()
        if set(of_text) == set(readers) and all(chance is not None for each in of_text.values() for _, chance, _ in each)
    }
    return Readership(
        readers=tuple(readers),
        chances={text: {name: _mean(each) or 0.0 for name, each in of_text.items()} for text, of_text in whole.items()},
        orders={text: {name: _apart(each) for name, each in of_text.items()} for text, of_text in whole.items()},
        votes={
            text: {name: fmean(voted for *_, voted in each) for name, each in of_text.items()}
            for text, of_text in whole.items()
        },
        incomplete=len(found) - len(whole),
        probable=probable,
    )


def _mean(votes: Sequence[tuple[Choice, float | None, bool]], *sides: Choice) -> float | None:
    """Of the probabilities with the candidate at one of `sides`; of all without any."""
    known = [chance for side, chance, _ in votes if chance is not None and (not sides or side in sides)]
    return fmean(known) if known else None


def _apart(votes: Sequence[tuple[Choice, float | None, bool]]) -> float | None:
    first, second = _mean(votes, "A"), _mean(votes, "B")
    return None if first is None or second is None else first - second


def _chance(ballot: Ballot, answer: Judgement | None) -> float | None:
    """The probability of a vote for the candidate; of a judge without distributions, the vote."""
    if answer is None or answer.status is not Status.OK:
        return None
    return float(answer.label == ballot.candidate) if answer.distribution is None else answer.distribution[ballot.candidate]
