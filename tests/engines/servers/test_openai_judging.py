"""Judgements in words from a chat server: labels without a distribution, refusals, and what settings are told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from builders import pairwise_examples, pointwise_examples
from openai_stub import (
    Answer,
    Completions,
    Json,
    Stub,
    chat,
    echoing,
    fault,
    said,
    texts,
    words_of,
)

from perse import Judge
from perse.engines.base import Failure, Reply, Sampling
from perse.engines.openai import ChatCompletionsEngine, CompletionsEngine
from perse.judgement import Status, Tokens
from perse.judging.judge import JudgeSettings
from perse.questions import QUESTIONS
from perse.rendering.prompt import LABEL_TOKENS, TextRenderer


def test_a_chat_judgement_has_a_label_and_no_distribution(server: Stub, chatting: Judge) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said("[Review] Fine.\n[Score] 10")
    [judgement] = chatting.ask(
        QUESTIONS["pointwise"], pointwise_examples(1, 1), JudgeSettings(temperature=0.3, max_new_tokens=9)
    )
    assert (judgement.status, judgement.label, judgement.text) == (Status.OK, "10", "Fine.")
    assert judgement.distribution is None and judgement.expected is None and judgement.mass is None
    assert (judgement.tokens.prompt, judgement.tokens.cached, judgement.tokens.generated) == (40, 32, 5)
    [body] = server.bodies("completions")
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0.3, 9 + LABEL_TOKENS)
    assert 0 <= body["seed"] < 2**31 and "max_completion_tokens" not in body


def test_where_no_review_is_asked_for_the_limit_is_the_labels(server: Stub, chatting: Judge) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said("[Score] 10")
    chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1), JudgeSettings(max_new_tokens=9))
    assert server.bodies("completions")[0]["max_tokens"] == LABEL_TOKENS


class Saying:
    """A chat engine that says what it was given, one reply after the other."""

    capabilities = ChatCompletionsEngine.capabilities

    def __init__(self, *replies: Reply) -> None:
        self.settings: dict[str, str] = {}
        self.replies = list(replies)

    def chat(self, messages: Sequence[str], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply | Failure]:
        return [self.replies.pop(0) for _ in messages]


NOTHING = Tokens(prompt=0, cached=0, generated=0)


@pytest.mark.parametrize(
    ("text", "label"), [("[Review] Fine.\n[Score] 1", None), ("1", None), ("[Score] 10\nBec", "10"), ("[Score] 10\n", "10")]
)
def test_of_an_answer_that_is_cut_off_only_complete_lines_count(text: str, label: str | None) -> None:
    for question in ("pointwise", "pointwise_score"):
        judge = Judge(Saying(Reply(text, "length", NOTHING)), TextRenderer(), name="m")
        [judgement] = judge.ask(QUESTIONS[question], pointwise_examples(1, 1))
        assert (judgement.label, judgement.status) == (label, Status.OK if label else Status.UNPARSED)
        assert label or (judgement.error or "").endswith(f"the model said, before it was cut off: {judgement.text}")


@pytest.mark.parametrize("reason", ["model_length", "MAX_TOKENS", "max_tokens", "error", "None", "stop", "EOS", "end_turn"])
def test_an_answer_that_does_not_say_that_it_ended_may_be_half_a_label(reason: str) -> None:
    judge = Judge(Saying(Reply("[Score] 1", reason, NOTHING)), TextRenderer(), name="m")
    [judgement] = judge.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    if reason in ("stop", "EOS", "end_turn"):
        assert judgement.label == "1"
    else:
        assert judgement.status is Status.UNPARSED and f"ended for '{reason}', which may have cut it off" in str(
            judgement.error
        )


@pytest.mark.parametrize(("refusal", "shown"), [("I would rather not.", "I would rather not."), ("", "content_filter")])
def test_of_two_replies_the_refused_one_is_quoted(refusal: str, shown: str) -> None:
    engine = Saying(Reply("Plot A", "stop", NOTHING), Reply(refusal, "content_filter", NOTHING, refused=True))
    [judgement] = Judge(engine, TextRenderer(), name="m").ask(QUESTIONS["pairwise"], pairwise_examples(1)[:1])
    assert judgement.status is Status.REFUSED and judgement.error == f"the model declined to answer: {shown}"


def test_usage_that_is_not_told_is_zero(server: Stub, chatting: Judge) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: {"choices": said("7")["choices"]}
    [judgement] = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert judgement.label == "7" and judgement.tokens.prompt == judgement.tokens.generated == 0


@pytest.mark.parametrize(
    "reply",
    [said(None, refusal="I cannot judge that."), said(None, finish_reason="content_filter"), said("[Score] 7", refusal="No.")],
    ids=["refusal", "filter", "refusal after all"],
)
def test_a_refusal_is_refused(server: Stub, chatting: Judge, reply: Json) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: reply
    [judgement] = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert judgement.status is Status.REFUSED and judgement.label is None
    assert "the model declined to answer" in (judgement.error or "")


def test_a_filter_that_answers_400_refuses_and_loses_nothing(server: Stub, chatting: Judge) -> None:
    """Azure's, which looks at prompts too; however many it holds back, the server is well."""
    error = {"message": "The prompt triggered the content management policy", "code": "content_filter", "status": 400}
    server.routes["POST /v1/chat/completions"] = lambda _: (400, {}, {"error": error})
    judgements = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 6))
    assert {(j.status, j.finish_reason, j.tokens.prompt) for j in judgements} == {(Status.REFUSED, "content_filter", 0)}
    assert len(server.asked) == 6


@pytest.mark.parametrize("text", ["I liked it.", "[Score] 7.5", "", None])
def test_an_answer_without_a_label_is_unparsed(server: Stub, chatting: Judge, text: str | None) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said(text)
    [judgement] = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert judgement.status is Status.UNPARSED and "expected '[Score] ' and one of 1 to 10" in (judgement.error or "")


@pytest.mark.parametrize(("text", "shown"), [("a" * 200, "a" * 200), ("a" * 201, "a" * 200 + "...")])
def test_a_long_answer_without_a_label_is_quoted_from_its_beginning(
    server: Stub, chatting: Judge, text: str, shown: str
) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said(text)
    [judgement] = chatting.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1))
    assert (judgement.error or "").endswith(f"; the model said: {shown}") and judgement.text == text


def test_a_failed_request_is_one_examples_engine_error(server: Stub, chatting: Judge) -> None:
    examples = pointwise_examples(1, 3)

    def answer(body: Json) -> Answer | Json:
        return fault(400, "bad") if examples[1].query in words_of(body) else said("7")

    server.routes["POST /v1/chat/completions"] = answer
    statuses = [judgement.status for judgement in chatting.ask(QUESTIONS["pointwise_score"], examples)]
    assert statuses == [Status.OK, Status.ENGINE_ERROR, Status.OK]


def test_pairs_are_asked_in_both_orders(server: Stub, chatting: Judge) -> None:
    """Always the first: of A and B in turn, so the orders disagree. Always the same text: they agree."""
    question, [example, *_] = QUESTIONS["pairwise"], pairwise_examples(1)
    server.routes["POST /v1/chat/completions"] = lambda _: said("Plot A")
    [judgement] = chatting.ask(question, [example])
    assert judgement.order_gap == 1 and judgement.label in ("A", "B")
    assert judgement.tokens.prompt == 80 and len(server.asked) == 2

    def second_text(body: Json) -> Json:
        shown = words_of(body).rpartition("[New pair]")[2]
        return said("Plot A" if shown.index(example.query.text_b) < shown.index(example.query.text_a) else "Plot B")

    server.routes["POST /v1/chat/completions"] = second_text
    [judgement] = chatting.ask(question, [example])
    assert judgement.order_gap == 0 and judgement.label == "B"


def test_temperature_zero_and_seed_zero_are_told_to_the_server(server: Stub, completions: Completions) -> None:
    echoing(server)
    chat(server, "x", temperature=0)
    CompletionsEngine(server.url, "m").generate([(1, 2)], Sampling(temperature=0), seeds=[0])
    for body in server.bodies("completions"):
        assert (body["temperature"], body["seed"]) == (0, 0)


NEWER = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."


def test_a_reasoning_model_is_told_the_limit_by_its_newer_name_from_then_on(server: Stub) -> None:
    def newer(body: Json) -> Answer | Json:
        return fault(400, NEWER) if "max_tokens" in body else said(words_of(body))

    server.routes["POST /v1/chat/completions"] = newer
    engine = ChatCompletionsEngine(server.url, "m")
    assert texts(engine.chat(["one"], Sampling(max_new_tokens=9), seeds=[1])) == ["one"]
    assert texts(engine.chat(["two"], Sampling(max_new_tokens=9), seeds=[1])) == ["two"]
    assert [body.get("max_completion_tokens") for body in server.bodies("completions")] == [None, 9, 9]


def test_a_server_that_knows_the_older_name_alone_writes_no_more_than_was_asked(server: Stub) -> None:
    """As llama-cpp-python's does, it passes over `max_completion_tokens` and writes on."""

    def writing(body: Json) -> Json:
        wrote = min(body.get("max_tokens") or 548, 548)
        return said("word " * wrote, finish_reason="length") | {"usage": {"completion_tokens": wrote}}

    server.routes["POST /v1/chat/completions"] = writing
    [reply] = chat(server, "x", max_new_tokens=8)
    assert isinstance(reply, Reply) and reply.tokens.generated == 8


@pytest.mark.parametrize("usage", [{"completion_tokens": 548}, None])
def test_an_answer_longer_than_allowed_is_a_failure_that_says_so(server: Stub, usage: Json | None) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said("word " * 548) | {"usage": usage}
    [failure] = chat(server, "x", max_new_tokens=8)
    assert isinstance(failure, Failure) and "it wrote 548 tokens where 8 were allowed" in failure.reason


@pytest.mark.parametrize(
    ("usage", "message"),
    [
        ({"completion_tokens": 900, "completion_tokens_details": {"reasoning_tokens": 895}}, {}),
        ({"completion_tokens": 900}, {"reasoning_content": "Let me think."}),
        ({"completion_tokens": 900}, {}),
    ],
)
def test_thoughts_that_are_not_shown_are_not_an_answer_that_is_too_long(server: Stub, usage: Json, message: Json) -> None:
    server.routes["POST /v1/chat/completions"] = lambda _: said("[Score] 10", **message) | {"usage": usage}
    assert texts(chat(server, "x", max_new_tokens=16)) == ["[Score] 10"]


def test_a_limit_that_is_wrong_by_either_name_is_a_failure(server: Stub) -> None:
    server.routes["POST /v1/chat/completions"] = lambda body: fault(400, f"{min(body)} or max_completion_tokens is too large")
    assert texts(chat(server, "x")) == ["failed"]


def test_a_schema_goes_to_the_server(server: Stub) -> None:
    echoing(server)
    chat(server, "x", schema={"type": "object"})
    assert server.bodies("completions")[0]["response_format"]["json_schema"]["schema"] == {"type": "object"}
