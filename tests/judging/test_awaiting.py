"""`Judge.aask`: beside other work of an event loop, with the same answers as `ask`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from builders import pointwise_examples, tiny_llama

from perse import Judge
from perse.engines.base import Capabilities, Failure, Reply, Sampling, Turns
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput
from perse.judgement import Tokens
from perse.judging.judge import JudgeSettings
from perse.questions import QUESTIONS
from perse.rendering.prompt import Renderer, TextRenderer

SCORE = QUESTIONS["pointwise_score"]


class Together:
    """A chat engine that answers only once as many calls wait as may be under way."""

    capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False, at_once=3)

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.waiting = threading.Barrier(3)

    def chat(self, messages: Sequence[str | Turns], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply | Failure]:
        self.waiting.wait(timeout=20)
        return [Reply("[Score] 7", "stop", Tokens(prompt=1, cached=0, generated=4)) for _ in messages]


def test_the_event_loop_goes_on_while_a_server_is_asked_by_several() -> None:
    judge = Judge(Together(), TextRenderer(), name="m")

    async def asked() -> list[Any]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(other())
        found = await asyncio.gather(*(judge.aask(SCORE, [one]) for one in pointwise_examples(1, 3)))
        beside.cancel()
        assert turns > 1
        return found

    assert [judgements[0].label for judgements in asyncio.run(asked())] == ["7", "7", "7"]


def test_calls_that_wait_for_an_engine_of_this_process_answer_as_those_one_by_one(tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["chatml"]
    judge = Judge(TransformersEngine(tiny_llama(tokenizer)), Renderer(tokenizer, 2048), name="tiny")
    examples, greedy = pointwise_examples(2, 2), JudgeSettings(temperature=0)

    async def asked() -> list[Any]:
        return await asyncio.gather(*(judge.aask(SCORE, [one], greedy) for one in examples))

    alone = [judge.ask(SCORE, [one], greedy)[0] for one in examples]
    for [beside], one in zip(asyncio.run(asked()), alone, strict=True):
        assert beside.id == one.id and beside.distribution == pytest.approx(one.distribution, abs=1e-3)


def test_what_ask_refuses_aask_refuses() -> None:
    judge, [example] = Judge(Together(), TextRenderer(), name="m"), pointwise_examples(1, 1)
    with pytest.raises(BadInput, match="two examples have the same id"):
        asyncio.run(judge.aask(SCORE, [example, example]))
