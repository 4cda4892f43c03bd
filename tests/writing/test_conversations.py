"""Conversations of several turns: rendered by the model's own template, sent as turns to a server, asked again in the last turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import KINDS

from perse.engines.base import Failure, Reply, Sampling
from perse.engines.openai import RequestFailure, _message
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput
from perse.judging.judge import Judge
from perse.rendering.prompt import Renderer, TextRenderer
from perse.writing.cache import AnswerCache
from perse.writing.loop import Bad, Good, Kind, ask_until_good
from perse.writing.writer import Unwritable, Writer, Written


@pytest.mark.parametrize("name", KINDS)
def test_a_single_turn_is_the_frame_around_it(tokenizers: dict[str, Any], name: str) -> None:
    tokenizer = tokenizers[name]
    renderer = Renderer(tokenizer, 2048)
    whole = renderer.frame.head + "Tell me of the ferry." + renderer.frame.middle
    assert renderer.conversation(("Tell me of the ferry.",)) == tuple(tokenizer.encode(whole, add_special_tokens=False))


def test_three_turns_are_what_the_chat_template_makes_of_them(tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["chatml"]
    turns = ("Tell me of the ferry.", "It sails twice a day.", "Look at that again.")
    roles = ("user", "assistant", "user")
    expected = tokenizer.apply_chat_template(
        [{"role": role, "content": turn} for role, turn in zip(roles, turns, strict=True)],
        add_generation_prompt=True,
        return_dict=False,
    )
    assert list(Renderer(tokenizer, 2048).conversation(turns)) == expected


def test_a_conversation_begins_with_the_ids_of_its_first_turn(tokenizers: dict[str, Any]) -> None:
    renderer = Renderer(tokenizers["chatml"], 2048)
    first = renderer.conversation(("Tell me of the ferry.",))
    longer = renderer.conversation(("Tell me of the ferry.", "It sails twice a day.", "Look at that again."))
    assert longer[: len(first)] == first  # so that the second turn computes nothing of the first again


def test_a_template_that_hides_earlier_turns_is_refused(tokenizers: dict[str, Any]) -> None:
    import copy

    tokenizer = copy.deepcopy(tokenizers["chatml"])
    renderer = Renderer(tokenizer, 2048)
    tokenizer.chat_template = "{{ messages[0]['content'] }}<|im_end|>{{ messages[-1]['content'] }}<|im_end|>"
    with pytest.raises(BadInput, match="each turn of a conversation once and in order"):
        renderer.conversation(("one", "two", "three"))


def test_a_server_is_sent_turns_by_role() -> None:
    sent = _message(("one", "two", "three"), Sampling(), 1)["messages"]
    assert sent == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "three"},
    ]
    assert _message("one", Sampling(), 1)["messages"] == [{"role": "user", "content": "one"}]


@pytest.mark.parametrize("more", [0, 1, 500])
def test_an_answer_that_takes_all_of_the_context_is_a_mistake_of_the_settings(tiny_model_folder: Path, more: int) -> None:
    writer = Writer.load(tiny_model_folder, dtype="float32", context=400)
    with pytest.raises(BadInput, match=f"{400 + more} tokens are kept for the answer, all of a context of 400; allow fewer"):
        list(writer.write(["one"], Sampling(max_new_tokens=400 + more), seeds=[1]))
    assert writer.excess("one", Sampling(max_new_tokens=300)) is None


def test_where_memory_runs_out_for_several_texts_each_is_asked_alone(
    tiny_model_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer.load(tiny_model_folder, dtype="float32", context=2048)
    engine: Any = type(writer._judge.engine)
    made = engine.generate

    def generate(self: Any, prompts: Any, sampling: Sampling, *, seeds: Any) -> Any:
        if len(prompts) > 1 or len(prompts[0]) > 300:
            raise RuntimeError("out of memory")
        return made(self, prompts, sampling, seeds=seeds)

    monkeypatch.setattr(engine, "generate", generate)
    said = dict(writer.write(["one", "two " * 300, "three"], Sampling(max_new_tokens=4), seeds=[1, 2, 3]))
    assert isinstance(said[0], Written) and isinstance(said[2], Written)
    assert said[1] == Failure("RuntimeError: out of memory")


def test_a_message_may_take_all_the_room_that_its_answer_leaves(tiny_model_folder: Path) -> None:
    writer = Writer.load(tiny_model_folder, dtype="float32", context=400)
    tokens = len(writer.prompt("one two three"))
    assert writer.excess("one two three", Sampling(max_new_tokens=400 - tokens)) is None
    assert writer.excess("one two three", Sampling(max_new_tokens=401 - tokens)) == Unwritable(
        f"too_long: {tokens} tokens, {tokens - 1} allowed", too_long=True
    )


@pytest.mark.parametrize("status", [400, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 503])
def test_only_a_status_that_another_try_does_not_heal_is_blamed_on_the_message(status: int) -> None:
    """408, 409 and 429 tell of the server's moment, as every 5xx does: the same message may well be answered later."""
    judge = Judge(ScriptedEngine(lambda message, seed: RequestFailure("no", status)), TextRenderer(), name="m")
    [(_, failed)] = Writer(judge).write(["one"], Sampling(), seeds=[1])
    assert isinstance(failed, Unwritable) == (status < 500 and status not in (408, 409, 429))


@pytest.mark.parametrize("length", [1, 599, 600, 601, 5000])
def test_a_bad_answer_is_shown_again_up_to_600_characters(tmp_path: Path, length: int) -> None:
    asked: list[str] = []

    def reply(message: str, seed: int) -> str:
        asked.append(message)
        return "a" * length

    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        ask_until_good(
            Writer(Judge(ScriptedEngine(reply, batch=1), TextRenderer(), name="scripted")),
            {"one": "first"},
            lambda name, answer: Bad(Kind.BAD_JSON, "it is bad"),
            cache=cache,
            again=lambda answer, reason: f"YOU SAID: {answer}",
            sampling=Sampling(),
            seed=0,
            purpose="test",
            tries=2,
        )
    assert asked == ["first", "first\nYOU SAID: " + ("a" * length if length <= 600 else "a" * 600 + " ...")]


def test_what_must_change_is_said_in_the_last_turn(tmp_path: Path) -> None:
    asked: list[str] = []

    def reply(message: str, seed: int) -> Reply | Failure | str:
        asked.append(message)
        return "good" if "MUST CHANGE" in message else "bad"

    judge = Judge(ScriptedEngine(reply, batch=1), TextRenderer(), name="scripted")
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        outcomes = ask_until_good(
            Writer(judge),
            {"one": ("first", "answered", "again")},
            lambda name, answer: Good(answer) if answer == "good" else Bad(Kind.BAD_JSON, "it is bad"),
            cache=cache,
            again=lambda answer, reason: f"MUST CHANGE: {reason}",
            sampling=Sampling(),
            seed=0,
            purpose="test",
        )
    assert outcomes["one"].value == "good"
    assert asked == ["first\n\nanswered\n\nagain", "first\n\nanswered\n\nagain\nMUST CHANGE: it is bad"]
