"""`perse ask` and servers that do not answer as they should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import perse
from hostile_server import hostile


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    path.write_text('{"text": "A story", "review": "Nice", "score": 5}\n')
    return path


def asked(content: Any, reviews: Path) -> Any:
    def say(route: str, body: Any) -> Any:
        if route.startswith("GET"):
            return {"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "x"}]}
        choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    with hostile(say) as server:
        return perse("ask", "--judge", f"openai:{server.url}#m", "--reviews", reviews, "--text", "A new story")


@pytest.mark.parametrize("content", [{"a": 1}, "Score: 7 " + "A" * 3_000_000])
def test_a_question_without_an_answer_ends_with_code_2(content: Any, reviews: Path) -> None:
    done = asked(content, reviews)
    assert done.returncode == 2 and "no score (engine_error)" in done.stdout and len(done.stdout) < 2000, done.stdout[:500]


def test_what_the_model_said_instead_of_a_score_turns_no_terminal_around(reviews: Path) -> None:
    done = asked(json.loads('"bad \\u001b[31mred\\u202e text"'), reviews)
    assert done.returncode == 0 and "no score (unparsed)" in done.stdout
    assert "\u202e" not in done.stdout and "\x1b[31m" not in done.stdout
