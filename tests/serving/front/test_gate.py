"""How many are let in, how often, and what a refusal says; counted with a clock of the tests' own."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perse.serving.front.gate import LONGEST_WAIT, Gate
from perse.serving.front.keys import Caller
from perse.settings.serving import Limits

ALICE, BOB = Caller("alice", frozenset()), Caller("bob", frozenset())


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def visits(gate: Gate, *callers: Caller) -> ExitStack:
    inside = ExitStack()
    for caller in callers:
        inside.enter_context(gate.visit(caller, asyncio.Timeout(None)))
    return inside


def test_a_full_house_refuses_and_says_when_to_come_again() -> None:
    clock = Clock()
    gate = Gate(Limits(requests=2), clock=clock)
    with visits(gate, ALICE, BOB):
        refused = gate.refusal(ALICE)
        assert refused and (refused.status, refused.reason) == (HTTPStatus.SERVICE_UNAVAILABLE, "full")
        assert refused.retry_after == 1, "nothing is known yet"
        clock.now += 7.5
    assert gate.refusal(ALICE) is None and gate.inside == 0
    with visits(gate, ALICE, BOB):
        again = gate.refusal(ALICE)
        assert again and again.retry_after == 8, "what a request took of late"
        clock.now += 5000
    assert gate.wait() == LONGEST_WAIT


def test_one_key_does_not_fill_the_house() -> None:
    gate = Gate(Limits(requests=9, per_key=1))
    with visits(gate, ALICE):
        refused = gate.refusal(ALICE)
        assert refused and refused.status == HTTPStatus.TOO_MANY_REQUESTS and refused.reason == "per_key"
        assert gate.refusal(BOB) is None
    assert gate.refusal(ALICE) is None


@given(st.integers(1, 30), st.lists(st.floats(0, 30), max_size=100))
def test_no_minute_has_more_than_twice_a_keys_rate_and_waiting_as_told_helps(rate: int, pauses: list[float]) -> None:
    clock = Clock()
    gate = Gate(Limits(per_minute=rate), clock=clock)
    let_in: list[float] = []
    for pause in [*pauses, *[0.0] * (2 * rate)]:
        clock.now += pause
        refused = gate.refusal(ALICE)
        if refused is None:
            let_in.append(clock.now)
        else:
            assert refused.status == HTTPStatus.TOO_MANY_REQUESTS
            last = refused
    # A bucket holds a minute's worth and gets a minute's worth within any minute.
    assert all(sum(start <= one < start + 60 for one in let_in) <= 2 * rate for start in let_in)
    clock.now += last.retry_after
    assert gate.refusal(ALICE) is None
    assert gate.refusal(BOB) is None, "others have their own"


def test_bodies_that_are_too_large_together_are_refused_and_one_alone_never_is() -> None:
    gate = Gate(Limits(body_mb=8))
    with gate.holding(9 * 2**20) as first:
        assert first is None, "nothing else is held"
        with gate.holding(1) as second:
            assert second and (second.status, second.reason) == (HTTPStatus.SERVICE_UNAVAILABLE, "bytes")
    with gate.holding(4 * 2**20) as third, gate.holding(4 * 2**20) as fourth:
        assert third is None and fourth is None


def test_a_server_that_is_stopping_lets_nobody_in_and_tells_who_asked_to_know() -> None:
    gate, told = Gate(Limits()), []
    gate.when_draining(lambda: told.append("stopping"))
    gate.drain()
    refused = gate.refusal(ALICE)
    assert refused and refused.reason == "draining" and told == ["stopping"]


def test_it_is_known_when_the_house_is_empty_and_whoever_stays_too_long_is_ended() -> None:
    async def stay(gate: Gate, seconds: float) -> str:
        try:
            async with asyncio.timeout(None) as limit:
                with gate.visit(ALICE, limit):
                    await asyncio.sleep(seconds)
        except TimeoutError:
            return "ended"
        return "answered"

    async def stop() -> list[str]:
        gate = Gate(Limits())
        assert await gate.emptied(0)
        tasks = [asyncio.create_task(stay(gate, seconds)) for seconds in (0, 3600)]
        await asyncio.sleep(0)
        assert not await gate.emptied(0.05)
        gate.end_all()
        assert await gate.emptied(5)
        return list(await asyncio.gather(*tasks))

    assert asyncio.run(stop()) == ["answered", "ended"]


@pytest.mark.parametrize("wrong", [{"requests": 0}, {"deadline": 0}, {"per_minute": 0}, {"drain": -1}])
def test_limits_that_would_let_nobody_in_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        Limits(**wrong)  # type: ignore[arg-type]
