"""Turns at the engine: never more inside than there is room, nobody is lost, readers are kept together, nobody waits for ever."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perse.serving.problems import Busy
from perse.serving.turns import PATIENCE, Turns


def order_of(turns: Turns, asked: list[tuple[str, int]]) -> list[str]:
    """The keys in the order of their turns, all having come at once while the engine was busy; each takes one step."""

    async def run() -> list[str]:
        done: list[str] = []

        async def one(key: str, size: int) -> None:
            async with turns.turn(key, size):
                done.append(key)
                await asyncio.sleep(0)

        async with turns.turn("before", turns.room):
            tasks = [asyncio.create_task(one(*each)) for each in asked]
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return done

    return asyncio.run(run())


def test_one_readers_items_go_together() -> None:
    assert order_of(Turns(1, 99), [("a", 1), ("b", 1), ("a", 1), ("c", 1), ("b", 1), ("a", 1)]) == list("aaabbc")


def test_the_first_of_the_queue_is_not_overtaken_for_ever() -> None:
    done = order_of(Turns(1, 999), [("a", 1), ("b", 1), *[("a", 1)] * 100])
    assert done.index("b") == 1 + PATIENCE and done.count("a") == 101


def test_a_large_part_is_not_starved_by_small_ones() -> None:
    done = order_of(Turns(4, 999), [("big", 4), *[(f"small {n}", 1) for n in range(50)]])
    assert done[0] == "big"


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 6), st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=40), st.integers(0, 2**32))
def test_there_are_never_more_inside_than_there_is_room_and_all_have_their_turn(
    room: int, asked: list[tuple[str, int]], seed: int
) -> None:
    async def run() -> None:
        turns, inside, most, done = Turns(room, 10**6), 0, 0, 0
        chance = random.Random(seed)

        async def one(key: str, size: int) -> None:
            nonlocal inside, most, done
            async with turns.turn(key, size):
                inside += min(size, room)
                most = max(most, inside)
                try:
                    for _ in range(chance.randrange(4)):
                        await asyncio.sleep(0)
                finally:
                    inside -= min(size, room)
                done += 1

        tasks = [asyncio.create_task(one(*each)) for each in asked]
        leaving = chance.sample(tasks, len(tasks) // 3)
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
        gone = sum(task.cancel() for task in leaving)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(asked) - gone <= done <= len(asked) and turns.waiting == 0 and most <= room
        async with asyncio.timeout(5), turns.turn("after", room):  # clients that left have given their room back
            pass

    asyncio.run(run())


def test_a_queue_that_is_full_says_so_and_when_to_come_again() -> None:
    async def run() -> None:
        turns = Turns(1, 3, wait=lambda: 12)
        async with turns.turn("a", 1):
            waiting = [asyncio.create_task(turns.turn("b", 1).__aenter__()) for _ in range(2)]
            await asyncio.sleep(0)
            turns.check(1)
            with pytest.raises(Busy, match="2 items wait for the engine, and 2 more would be above the limit of 3") as refused:
                turns.check(2)
            assert refused.value.retry_after == 12
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert turns.waiting == 0

    asyncio.run(run())


def test_a_part_that_is_larger_than_the_room_waits_as_the_items_that_it_has() -> None:
    async def run() -> None:
        turns = Turns(1, 24)
        async with turns.turn("a", 12):
            waiting = [asyncio.create_task(turns.turn("b", 12).__aenter__())]
            waiting += [asyncio.create_task(turns.turn("c", 1, items=8).__aenter__())]
            await asyncio.sleep(0)
            assert turns.waiting == 20
            with pytest.raises(Busy, match="20 items wait for the engine, and 5 more would be above the limit of 24"):
                turns.check(5)
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        async with asyncio.timeout(5), turns.turn("after", 99):
            assert turns.waiting == 0

    asyncio.run(run())
