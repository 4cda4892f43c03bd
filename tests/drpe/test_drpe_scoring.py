"""Votes become scores: formulas 1 to 4 of DRPE, by hand."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log
from typing import Any

import pytest
from vote_builders import CLERK, SAILOR

from perse.drpe.documents import Documents
from perse.drpe.roles import Role
from perse.drpe.votes.ballots import Ballot, Prompting
from perse.drpe.votes.run_folder import Run
from perse.drpe.votes.scoring import Decision, confidence, decisions
from perse.drpe.votes.telling import vote_result
from perse.judgement import Judgement, Status, Tokens


def judgement(name: str, p_a: float = 0.75, *, logprob: float | None = -0.5, written: int = 4, mass: float = 0.8) -> Judgement:
    """A vote for the likelier text."""
    return Judgement(
        id=name,
        question="vote",
        status=Status.OK,
        label="A" if p_a > 0.5 else "B",
        distribution={"A": p_a, "B": 1 - p_a},
        mass=mass,
        mean_logprob=logprob,
        k_effective=0,
        tokens=Tokens(prompt=10, cached=0, generated=written),
        model="m",
    )


def unparsed(name: str) -> Judgement:
    return judgement(name).model_copy(update={"status": Status.UNPARSED, "label": None, "error": "no vote"})


def ballot(name: str | None, *, candidate: Any = "B", role: Role | None = SAILOR, reference: int = 1) -> Ballot:
    return Ballot(
        document="d", system="M1", reference=reference, candidate=candidate, prompting="single", role=role, judgement=name
    )


def decided(ballots: list[Ballot], *answers: Judgement) -> Decision:
    given: Mapping[Prompting, Mapping[str, Judgement]] = {"single": {one.id: one for one in answers}}
    [found] = decisions(ballots, given)
    return found


def test_confidence_is_the_exponential_of_the_mean_log_probability_of_reason_and_vote() -> None:
    # four tokens at -0.5, and the vote: 0.75 of the 0.8 that both labels have
    assert confidence(judgement("j")) == pytest.approx(exp((4 * -0.5 + log(0.75 * 0.8)) / 5))
    assert confidence(judgement("j", written=0, logprob=0.0)) == pytest.approx(0.6)


def test_the_score_sums_the_confidence_of_the_roles_that_vote_for_the_candidate() -> None:
    ballots = [ballot("s"), ballot("c", role=CLERK)]
    one, other = judgement("s", 0.25, logprob=-0.1), judgement("c", 0.9)  # the first for B, the candidate, the second for A
    found = decided(ballots, one, other)
    assert found.score == pytest.approx(confidence(one))
    assert found.votes == 0.5 and found.expected == pytest.approx((0.75 + 0.1) / 2)
    both = decided(ballots, one, judgement("c", 0.2))
    assert both.score == pytest.approx(sum(exp((4 * m + log(p * 0.8)) / 5) for m, p in ((-0.1, 0.75), (-0.5, 0.8))))


def test_the_score_is_the_mean_over_both_orders_and_the_gap_says_what_the_place_did() -> None:
    ballots = [ballot("second"), ballot("first", candidate="A")]
    second, first = judgement("second", 0.9), judgement("first", 0.7)  # "A" both times: against the candidate, then for it
    found = decided(ballots, second, first)
    weight = confidence(first)
    assert weight is not None and found.score == pytest.approx((0 + weight) / 2)
    assert found.expected == pytest.approx((0.1 + 0.7) / 2)
    assert found.order_gap == pytest.approx(0.6) and found.turned == 1.0
    assert decided(ballots, judgement("second", 0.1), first).turned == 0.0


def test_in_one_order_there_is_no_gap() -> None:
    found = decided([ballot("j")], judgement("j"))
    assert found.order_gap is None and found.turned is None


def test_two_roles_that_say_the_same_are_not_taken_for_the_two_orders_of_one() -> None:
    one_order = decided([ballot("j"), ballot("j")], judgement("j"))
    assert one_order.order_gap is None and one_order.turned is None
    both = [ballot("second"), ballot("second"), ballot("first", candidate="A"), ballot("first", candidate="A")]
    found = decided(both, judgement("second", 0.9), judgement("first", 0.7))
    assert found.order_gap == pytest.approx(0.6) and found.turned == 1.0


def test_a_role_without_a_vote_is_counted_and_not_guessed() -> None:
    ballots = [ballot("s"), ballot("c", role=CLERK)]
    sure = judgement("s", 0.25)
    found = decided(ballots, sure, unparsed("c"))
    assert (found.asked, found.answered, found.votes) == (2, 1, 1.0)
    assert found.score == pytest.approx(confidence(sure)) and found.expected == pytest.approx(0.75)
    nobody = decided(ballots, unparsed("s"))
    assert (nobody.asked, nobody.answered) == (2, 0)
    assert nobody.score is None and nobody.expected is None and nobody.votes is None


def test_a_judge_that_does_not_tell_its_confidence_has_votes_and_no_score() -> None:
    found = decided([ballot("j")], judgement("j", 0.25, logprob=None))
    assert found.score is None and found.votes == 1.0


def test_a_candidate_that_is_the_reference_is_scored_by_rule() -> None:
    equal = [ballot(None), ballot(None, role=CLERK)]
    [other] = [Ballot(document="e", system="M1", reference=1, candidate="B", prompting="single", role=SAILOR, judgement="j")]
    sure = judgement("j", 0.25)
    same, _ = decisions([*equal, other], {"single": {"j": sure}})
    weight = confidence(sure)
    assert same.same and same.votes == same.expected == 0.5 and same.order_gap is None
    assert weight is not None and same.score == pytest.approx(2 * 0.5 * weight)  # half of two roles, as sure as all are


def test_several_references_are_averaged() -> None:
    ballots = [ballot("one"), ballot("two", reference=2)]
    one = judgement("one", 0.25)
    found = decided(ballots, one, judgement("two", 0.9))
    weight = confidence(one)
    assert weight is not None and found.score == pytest.approx(weight / 2)


def test_a_score_that_lacks_for_a_vote_is_not_said_to_lack_for_the_judges_words() -> None:
    both = [ballot("second", role=None), ballot("first", candidate="A", role=None)]
    answers: Mapping[Prompting, Mapping[str, Judgement]] = {
        "single": {"second": judgement("second"), "first": unparsed("first")}
    }
    run = Run("J", {"orders": 2}, Documents(()), tuple(both), answers, {"single": (0, 0.0)}, (), {})
    notes = " ".join(vote_result(run).notes)
    assert "1 decision has no score: in some order or wording" in notes and "it is not known how probable" not in notes
