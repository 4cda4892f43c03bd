"""Servers that tell the likeliest tokens of each place (top_logprobs): asked for once it is known that they do, and looked at."""

from __future__ import annotations

import math
from typing import Any

import pytest
from builders import pointwise_examples
from openai_stub import Answer, Json, Stub, chat, fault, listing, said

from perse import Judge
from perse.engines.base import Failure, Sampling
from perse.engines.openai import ChatCompletionsEngine
from perse.questions import QUESTIONS


def entry(token: str, likeliest: dict[str, float]) -> Json:
    top = [{"token": name, "logprob": math.log(p), "bytes": None} for name, p in likeliest.items()]
    return {"token": token, "logprob": math.log(likeliest.get(token, 0.9)), "bytes": None, "top_logprobs": top}


def telling(server: Stub, likeliest: dict[str, float], *, most: int = 20) -> None:
    """It says [Score] 7, and tells what else it could have said where that is asked for."""

    def answer(body: Json) -> Answer | Json:
        if body.get("top_logprobs", 0) > most:
            return fault(400, f"top_logprobs must be at most {most}")
        reply = said("[Score] 7")
        if body.get("logprobs"):
            reply["choices"][0]["logprobs"] = {"content": [entry("[Score]", {}), entry(" 7", likeliest)]}
        return reply

    listing(server, {"id": "m", "owned_by": "somebody"})
    server.routes["POST /v1/chat/completions"] = answer


SCORES = {" 7": 0.55} | {f" {n}": 0.05 for n in (1, 2, 3, 4, 5, 6, 8, 9, 10)}


@pytest.mark.parametrize("most", [20, 5])
def test_a_server_that_tells_likeliest_tokens_gives_distributions_that_say_they_are_not_exact(server: Stub, most: int) -> None:
    telling(server, SCORES, most=most)
    judge = Judge.load(f"openai:{server.url}")
    assert f"distributions from the {most} likeliest tokens alone" in judge.without_distributions
    assert judge.for_manifest["likeliest"] == str(most)
    [judgement] = judge.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert judgement.exact is False and judgement.distribution == pytest.approx(
        {label.strip(): p for label, p in SCORES.items()}
    )
    assert server.bodies("completions")[-1]["top_logprobs"] == most


@pytest.mark.parametrize(
    "refusal", [fault(400, "logprobs are not supported"), fault(422, "logprobs: extra"), fault(404), said("yes")]
)
def test_a_server_that_tells_none_is_asked_in_words(server: Stub, refusal: Any) -> None:
    listing(server, {"id": "m", "owned_by": "somebody"})
    server.routes["POST /v1/chat/completions"] = lambda body: refusal if body.get("logprobs") else said("[Score] 7")
    judge = Judge.load(f"openai:{server.url}")
    assert judge.without_distributions.startswith("asked in words: no distributions") and "likeliest" not in judge.for_manifest
    [judgement] = judge.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert (judgement.label, judgement.distribution, judgement.exact) == ("7", None, None)
    assert "logprobs" not in server.bodies("completions")[-1]


def test_a_text_is_written_without_asking_for_tokens(server: Stub) -> None:
    telling(server, SCORES)
    ChatCompletionsEngine(server.url, "m", likeliest=20).chat(["x"], Sampling(), seeds=[1])
    assert "logprobs" not in server.bodies("completions")[-1]


@pytest.mark.parametrize(
    ("likeliest", "why"),
    [({" 7": 0.9, " 8": 0.9}, "1.8 of the probability"), ({" 7": 3.0}, "invalid log-probabilities")],
)
def test_probabilities_that_cannot_be_are_a_failure(server: Stub, likeliest: dict[str, float], why: str) -> None:
    telling(server, likeliest)
    [failure] = ChatCompletionsEngine(server.url, "m", likeliest=20).chat(["x"], Sampling(likeliest=True), seeds=[1])
    assert isinstance(failure, Failure) and why in failure.reason


def test_a_token_of_no_probability_is_left_out(server: Stub) -> None:
    """OpenAI writes -9999 where a token is not among those that it tells."""
    reply = said("7")
    top = [{"token": "7", "logprob": -0.1, "bytes": None}, {"token": "8", "logprob": -9999.0, "bytes": None}]
    reply["choices"][0]["logprobs"] = {"content": [{"token": "7", "logprob": -0.1, "bytes": None, "top_logprobs": top}]}
    server.routes["POST /v1/chat/completions"] = lambda _: reply
    [answer] = chat(server, "x")
    assert not isinstance(answer, Failure) and answer.told[0].likeliest == (("7", -0.1),)
