"""Votes become a score (DRPE, formulas 1 to 4), and beside it what the reason's length has no part in.

The score of a candidate is the sum, over the roles that vote for it, of exp of the mean log-probability of the tokens of reason and vote. The expected vote
is the mean probability of a vote for the candidate over all roles; the share of votes counts heads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from perse.drpe.votes.ballots import Ballot, Prompting
from perse.judgement import Judgement, Status

EVEN = 0.5
"""The vote of somebody who is shown the same text twice."""


@dataclass(frozen=True)
class Decision:
    """What the roles make of one candidate. None: no role answered, or the judge does not tell it."""

    document: str
    system: str
    prompting: Prompting
    score: float | None
    """Mean over orders, references and wordings of the sum over roles (formula 4)."""
    expected: float | None
    """Mean probability of a vote for the candidate."""
    votes: float | None
    """Share of the votes that are for it."""
    asked: int
    """Ballots that somebody was asked ..."""
    answered: int
    """... and those that came back with a vote."""
    order_gap: float | None
    """Mean distance of the probabilities in the two orders, over roles that answered in both."""
    turned: float | None
    """Share of the roles that choose the text at the same place in both orders."""
    same: bool = False
    """Whether the candidate is the reference: half of the roles are taken to vote for it, with the run's mean confidence."""

    @property
    def key(self) -> tuple[str, str]:
        return self.document, self.system


def confidence(judgement: Judgement) -> float | None:
    """exp of the mean log-probability of the tokens of reason and vote (formula 3); None of a judge that does not tell it.

    The reason's tokens are those that were written, its line end among them; the vote is one more, with the probability that the model gave its label.
    What stands around both is ours, and not counted.
    """
    if judgement.status is not Status.OK or judgement.mean_logprob is None or not judgement.distribution or not judgement.label:
        return None
    vote = judgement.distribution[judgement.label] * (judgement.mass or 0.0)
    if vote <= 0:
        return 0.0
    written = judgement.tokens.generated
    return math.exp((written * judgement.mean_logprob + math.log(vote)) / (written + 1))


def decisions(ballots: Sequence[Ballot], answers: Mapping[Prompting, Mapping[str, Judgement]]) -> tuple[Decision, ...]:
    """One for each candidate and prompting, in the order of the ballots.

    Args:
        answers: prompting -> id -> judgement; a ballot without one counts as asked and not answered.
    """
    known = (answers[ballot.prompting].get(ballot.judgement) for ballot in ballots if ballot.judgement)
    sure = [weight for one in known if one is not None and (weight := confidence(one)) is not None]
    usual = fmean(sure) if sure else None
    ordered = sorted(enumerate(ballots), key=lambda one: (one[1].prompting, one[1].document, one[1].system, one[0]))
    told = {prompting for prompting, of_one in answers.items() if any(one.distribution for one in of_one.values())}
    found: dict[tuple[Prompting, str, str], Decision] = {}
    for key, group in groupby(ordered, key=lambda one: (one[1].prompting, one[1].document, one[1].system)):
        found[key] = _decision([ballot for _, ballot in group], answers[key[0]], usual, told=key[0] in told)
    return tuple(found[key] for key in dict.fromkeys((one.prompting, one.document, one.system) for one in ballots))


def scores_by_name(decided: Iterable[Decision]) -> dict[str, dict[tuple[str, str], float | None]]:
    """Each way of scoring with its value for each (document, system): "score", "expected" and "votes" of each prompting that was asked."""
    found: dict[str, dict[tuple[str, str], float | None]] = {}
    for one in decided:
        for name in ("score", "expected", "votes"):
            found.setdefault(f"{name}, {one.prompting}", {})[one.key] = getattr(one, name)
    return found


def _decision(ballots: Sequence[Ballot], answers: Mapping[str, Judgement], usual: float | None, *, told: bool) -> Decision:
    """Of the ballots about one candidate. `told`: whether the judge tells probabilities at all; if not, there is none of a candidate that is the reference."""
    rounds: dict[tuple[int, int, str], list[Ballot]] = {}
    for ballot in ballots:
        rounds.setdefault((ballot.wording, ballot.reference, ballot.candidate), []).append(ballot)
    scores = [_score(of_one, answers, usual) for of_one in rounds.values()]
    known = [score for score in scores if score is not None]
    votes = [vote for ballot in ballots if (vote := _for(ballot, answers)) is not None]
    chances = [chance for ballot in ballots if (chance := _probability(ballot, answers)) is not None]
    pairs = _in_both_orders(ballots)
    gaps = [abs(one - other) for one, other in _both(pairs, answers, _probability)]
    first = ballots[0]
    return Decision(
        document=first.document,
        system=first.system,
        prompting=first.prompting,
        score=fmean(known) if len(known) == len(scores) else None,
        expected=fmean(chances) if chances and told else None,
        votes=fmean(votes) if votes else None,
        asked=sum(ballot.judgement is not None for ballot in ballots),
        answered=sum(ballot.judgement is not None and _for(ballot, answers) is not None for ballot in ballots),
        order_gap=fmean(gaps) if gaps else None,
        turned=_mean(one != other for one, other in _both(pairs, answers, _for)),
        same=all(ballot.judgement is None for ballot in ballots),
    )


def _score(ballots: Sequence[Ballot], answers: Mapping[str, Judgement], usual: float | None) -> float | None:
    """Formula 4 over the roles of one order, reference and wording; None if none of them answered, or no confidence is known."""
    weights = []
    for ballot in ballots:
        if ballot.judgement is None:
            weights.append(None if usual is None else EVEN * usual)
            continue
        vote = _for(ballot, answers)
        if vote is not None:
            sure = confidence(answers[ballot.judgement])
            weights.append(None if sure is None else vote * sure)
    known = [weight for weight in weights if weight is not None]
    return math.fsum(known) if known and len(known) == len(weights) else None


def _for(ballot: Ballot, answers: Mapping[str, Judgement]) -> float | None:
    """1 for a vote for the candidate, 0 for one against it (formula 1)."""
    if ballot.judgement is None:
        return EVEN
    answer = answers.get(ballot.judgement)
    return None if answer is None or answer.label is None else float(answer.label == ballot.candidate)


def _probability(ballot: Ballot, answers: Mapping[str, Judgement]) -> float | None:
    """That the vote is for the candidate; None where there is no vote, or no distribution."""
    if ballot.judgement is None:
        return EVEN
    answer = answers.get(ballot.judgement)
    if answer is None or answer.status is not Status.OK or answer.distribution is None:
        return None
    return answer.distribution[ballot.candidate]


def _in_both_orders(ballots: Sequence[Ballot]) -> list[tuple[Ballot, Ballot]]:
    """The ballots of each role on each reference, in each wording, that differ by the order alone."""
    found: dict[tuple[int, int, str], tuple[list[Ballot], list[Ballot]]] = {}
    for ballot in ballots:
        role = ballot.role.text if ballot.role else ""
        # Two roles of a document may say the same: each of its ballots has one of the other order.
        found.setdefault((ballot.wording, ballot.reference, role), ([], []))[ballot.candidate == "B"].append(ballot)
    return [pair for first, second in found.values() for pair in zip(first, second, strict=False)]


def _both(
    pairs: Sequence[tuple[Ballot, Ballot]],
    answers: Mapping[str, Judgement],
    of: Callable[[Ballot, Mapping[str, Judgement]], float | None],
) -> list[tuple[float, float]]:
    """What `of` says of both, where it says it of both; without those that nobody was asked about."""
    values = [(of(one, answers), of(other, answers)) for one, other in pairs if one.judgement and other.judgement]
    return [(one, other) for one, other in values if one is not None and other is not None]


def _mean(values: Iterable[bool]) -> float | None:
    known = list(values)
    return fmean(known) if known else None
