"""Exact distributions from a server like vLLM's: of told log-probabilities, by its own tokenizer, refused where they are none."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
from builders import KINDS, pointwise_examples
from openai_stub import (
    SOON,
    Answer,
    Completions,
    Json,
    Stub,
    fault,
    listing,
)

from perse import Judge
from perse.engines.base import Failure, Generation, LabelDistribution, Sampling
from perse.engines.openai import CompletionsEngine
from perse.errors import BadInput
from perse.judging.judge import JudgeSettings
from perse.questions import QUESTIONS
from perse.rendering.prompt import Renderer


@pytest.mark.parametrize("kind", KINDS)
def test_distributions_are_those_of_the_told_log_probabilities(
    server: Stub, completions: Completions, tokenizers: dict[str, Any], kind: str
) -> None:
    """Split digits: P(10) = P("1") P("0" | "1"), and P(1) = P("1") - P(10). Whole numbers: as told. Then over their sum."""
    question = QUESTIONS["pointwise_score"]
    renderer = Renderer(tokenizers[kind], 2048)
    support = renderer.label_tokens(question)
    prompts = [renderer.render(question, example)[0].ids for example in pointwise_examples(2, 2)]
    first = [label[0] for label in support.labels]

    def model(ids: tuple[int, ...]) -> dict[int, float]:
        chance = random.Random(str(ids))
        return {token: chance.uniform(0.01, 0.09) for token in (*first, support.labels[9][-1])}

    completions.next = model
    found = CompletionsEngine(server.url, "m").label_distributions(prompts, support)
    for prompt, read in zip(prompts, found, strict=True):
        told = model(prompt + support.stem)
        by_hand = [told[token] for token in first]
        if kind != "whole_numbers":
            one, zero = support.labels[9]
            by_hand[9] = told[one] * model((*prompt, *support.stem, one))[zero]
            by_hand[0] = told[one] - by_hand[9]
        assert isinstance(read, LabelDistribution)
        assert read.mass == pytest.approx(sum(by_hand))
        assert read.probabilities == pytest.approx([p / sum(by_hand) for p in by_hand])
        assert read.cached == len(prompt + support.stem) // 2
    assert len(server.asked) == len(prompts)  # one request each


def test_every_setting_that_a_server_could_have_of_its_own_is_said(
    server: Stub, completions: Completions, tokenizers: dict[str, Any]
) -> None:
    renderer = Renderer(tokenizers["chatml"], 2048)
    support = renderer.label_tokens(QUESTIONS["pointwise_score"])
    engine = CompletionsEngine(server.url, "m")
    engine.label_distributions([(5, 6, 7)], support)
    engine.generate([(5, 6, 7)], Sampling(0.8, 12, frozenset({9, 8}), {"type": "object"}), seeds=[2**62])
    reading, writing = server.bodies("/completions")
    common = {"model": "m", "top_p": 1, "top_k": 0, "min_p": 0, "repetition_penalty": 1, "presence_penalty": 0}
    common |= {"frequency_penalty": 0, "logprobs": 1, "add_special_tokens": False}
    common |= {"return_token_ids": True, "return_tokens_as_token_ids": True}
    one = support.labels[0][0]
    assert reading == common | {
        "prompt": [[5, 6, 7, *support.stem]],
        "max_tokens": 2,
        "temperature": 0,
        "logprob_token_ids": sorted({token for label in support.labels for token in label}),
        "allowed_token_ids": [one],
        "ignore_eos": True,
    }
    assert writing == common | {
        "prompt": [[5, 6, 7]],
        "max_tokens": 12,
        "temperature": 0.8,
        "seed": 2**62,
        "logprob_token_ids": [0],
        "stop_token_ids": [8, 9],
        "structured_outputs": {"json": {"type": "object"}},
    }


def test_what_was_written_comes_back_with_its_end_and_its_mean_log_probability(server: Stub, completions: Completions) -> None:
    completions.text = (4, 3, 9)
    completions.next = lambda ids: {4: 0.5, 3: 0.25, 9: 0.125}
    engine = CompletionsEngine(server.url, "m")
    [stopped] = engine.generate([(1, 2)], Sampling(stop_ids=frozenset({9})), seeds=[1])
    assert isinstance(stopped, Generation)
    assert (stopped.ids, stopped.finish_reason, stopped.cached) == ((4, 3, 9), "stop", 1)
    assert stopped.mean_logprob == pytest.approx((math.log(0.5) + math.log(0.25) + math.log(0.125)) / 3)
    [cut, failed] = engine.generate([(1, 2), (1, 2)], Sampling(schema={"type": "object"}), seeds=[1, 2])
    assert isinstance(cut, Generation) and cut.finish_reason == "length" and cut.mean_logprob is None
    assert isinstance(failed, Generation)


def test_a_server_that_leaves_a_label_out_is_a_failure_and_not_a_distribution(
    server: Stub, completions: Completions, tokenizers: dict[str, Any]
) -> None:
    support = Renderer(tokenizers["whole_numbers"], 2048).label_tokens(QUESTIONS["pointwise_score"])

    def top_two_only(body: Json) -> Json:
        answer = completions.answer(body)
        told = answer["choices"][0]["logprobs"]
        told["top_logprobs"] = [dict(list(step.items())[:2]) for step in told["top_logprobs"]]
        return answer

    server.routes["POST /v1/completions"] = top_two_only
    [failure] = CompletionsEngine(server.url, "m").label_distributions([(1, 2)], support)
    assert failure == Failure("the server did not tell the log-probability of every label")


@pytest.fixture
def vllm(server: Stub, completions: Completions, tokenizers: dict[str, Any], tiny_model_folder: Path) -> Stub:
    """A server that passes for perse's, with the tiny model and an adapter on it."""
    tokenizer = tokenizers["whole_numbers"]

    def tokenize(body: Json) -> Json:
        return {"tokens": tokenizer.encode(body["prompt"], add_special_tokens=body["add_special_tokens"])}

    listing(
        server,
        {"id": "tiny", "owned_by": "vllm", "root": str(tiny_model_folder), "max_model_len": 4096},
        {"id": "lora", "owned_by": "vllm", "root": "/adapters/lora", "parent": "tiny", "max_model_len": None},
    )
    server.routes["POST /tokenize"] = tokenize
    models = {"tiny": {"sha256": "aa", "adapter": False}, "lora": {"sha256": "bb", "adapter": True}}
    server.routes["GET /version"] = lambda _: {"version": "0.32.0", "perse": "0.1", "engine": {}, "models": models}
    return server


@pytest.mark.slow
def test_a_vllm_server_judges_exactly_and_an_adapter_with_its_base_models_tokenizer(
    vllm: Stub, completions: Completions
) -> None:
    for name, digest in (("tiny", "aa"), ("lora", "bb")):
        judge = Judge.load(f"openai:{vllm.url}#{name}")
        adapter = "lora" if name == "lora" else None
        assert (judge.identity.model, judge.identity.adapter, judge.identity.digest) == ("tiny", adapter, digest)
        assert judge.renderer.context == 4096
        server = {"engine": "openai", "url": vllm.url, "model": name, "api": "completions", "server": "vllm 0.32.0"}
        assert judge.engine.settings == server
        ten, one = (judge.renderer.label_tokens(QUESTIONS["pointwise_score"]).labels[n][0] for n in (9, 0))
        completions.next = lambda ids, ten=ten, one=one: {ten: 0.6, one: 0.2}  # type: ignore[misc]
        judgements = judge.ask(QUESTIONS["pointwise_score"], pointwise_examples(2, 2), JudgeSettings(temperature=0))
        assert {judgement.label for judgement in judgements} == {"10"}
        assert judgements[0].distribution is not None and judgements[0].distribution["1"] == pytest.approx(0.25, abs=1e-4)
        assert vllm.bodies("/v1/completions")[-1]["model"] == name
    assert Judge.load(f"openai:{vllm.url}#tiny", context=1000).renderer.context == 1000


@pytest.mark.slow
def test_plain_vllm_has_no_digest_and_one_without_the_routes_beside_v1_will_do(vllm: Stub) -> None:
    vllm.routes["GET /version"] = lambda _: {"version": "0.32.0", "models": {"tiny": {"sha256": "not ours to read"}}}
    assert Judge.load(f"openai:{vllm.url}#tiny").identity.digest == ""
    del vllm.routes["GET /version"], vllm.routes["POST /tokenize"]
    assert Judge.load(f"openai:{vllm.url}#tiny").engine.settings["server"] == "vllm"


def test_processed_log_probabilities_are_refused(vllm: Stub, completions: Completions) -> None:
    completions.processed = True
    with pytest.raises(BadInput, match="start vLLM with --logprobs-mode raw_logprobs"):
        Judge.load(f"openai:{vllm.url}#tiny")


def test_logits_are_refused(vllm: Stub, completions: Completions) -> None:
    completions.next = lambda ids: dict.fromkeys(range(600), 20.0)  # log 20 = 3.0
    with pytest.raises(BadInput, match="does not tell the model's own log-probabilities"):
        Judge.load(f"openai:{vllm.url}#tiny")


def test_logits_are_refused_where_those_of_the_tokens_looked_at_are_negative(vllm: Stub, completions: Completions) -> None:
    completions.text = (599,)
    completions.next = lambda ids: {599: 20.0}
    with pytest.raises(BadInput, match="does not tell the model's own log-probabilities"):
        Judge.load(f"openai:{vllm.url}#tiny")


@pytest.mark.slow
@pytest.mark.parametrize("bad", [fault(500, "starting", **SOON), (0, {}, None)], ids=["500", "hung up"])
def test_a_version_that_is_there_is_waited_for_and_missed(vllm: Stub, bad: Answer) -> None:
    told = vllm.routes["GET /version"]
    waiting = [bad, bad]
    vllm.routes["GET /version"] = lambda body: waiting.pop() if waiting else told(body)
    assert Judge.load(f"openai:{vllm.url}#tiny").identity.digest == "aa"
    vllm.routes["GET /version"] = lambda _: bad
    with pytest.raises(
        BadInput, match="/version did not say which model runs there, after 3 tries \\(.*; look after the server"
    ):
        Judge.load(f"openai:{vllm.url}#tiny")


@pytest.mark.parametrize(
    "foreign", ["<html>", [], {"version": {"major": 3}}, {"perse": "0.1", "models": ["tiny"]}, fault(404), fault(405)]
)
def test_a_version_of_another_shape_is_none(vllm: Stub, foreign: Any) -> None:
    vllm.routes["GET /version"] = lambda _: foreign if isinstance(foreign, tuple) else (200, {}, foreign)
    judge = Judge.load(f"openai:{vllm.url}#tiny")
    assert (judge.identity.digest, judge.engine.settings["server"]) == ("", "vllm")


@pytest.mark.slow
def test_another_tokenizer_than_the_servers_is_refused(vllm: Stub, tokenizers: dict[str, Any], embedded: Path) -> None:
    with pytest.raises(BadInput, match="is not that of tiny, .*; give the right one with --tokenizer FOLDER"):
        Judge.load(f"openai:{vllm.url}#tiny", tokenizer=str(embedded))
    tokenizer = tokenizers["chatml"]
    vllm.routes["POST /tokenize"] = lambda body: {"tokens": tokenizer.encode(body["prompt"], add_special_tokens=False)}
    assert Judge.load(f"openai:{vllm.url}#tiny", tokenizer=str(embedded)).renderer.tokenizer.name_or_path == str(embedded)


def test_a_tokenizer_that_is_not_on_this_machine_must_be_given(vllm: Stub, tiny_model_folder: Path) -> None:
    listing(vllm, {"id": "tiny", "owned_by": "vllm", "root": "/models/elsewhere", "max_model_len": 4096})
    with pytest.raises(BadInput, match="'/models/elsewhere' does not give one on this machine .*--tokenizer FOLDER"):
        Judge.load(f"openai:{vllm.url}")
    assert Judge.load(f"openai:{vllm.url}", tokenizer=str(tiny_model_folder)).renderer.context == 4096
