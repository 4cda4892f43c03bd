"""`perse ask` and servers that do not answer as they should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import perse
from evaluation_builders import answered
from hostile_server import hostile
from rich.console import Console

from perse.commands.ask import show_judgement


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


@pytest.mark.parametrize(
    ("label", "said"),
    [("9", "expected 6.6 of 10, likeliest 9   (profile"), ("3", "expected 6.6 of 10, likeliest 9, drawn 3   (profile")],
)
def test_what_is_expected_comes_first_and_a_draw_is_called_one(
    label: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"3": 0.4, "9": 0.6}
    told = answered("a", label, distribution={str(n): given.get(str(n), 0.0) for n in range(1, 11)}, question="pointwise")
    show_judgement(Console(width=100), told)
    assert said in capsys.readouterr().out


def test_a_judge_in_words_has_the_score_that_it_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    show_judgement(Console(width=100), answered("a", "7", question="pointwise"))
    assert "score 7 of 10   (profile" in capsys.readouterr().out


def test_a_score_on_another_scale_is_told_of_the_scale(reviews: Path) -> None:
    reviews.write_text('{"text": "A story", "review": "Nice", "score": 45}\n')
    done = perse("ask", "--judge", "nowhere", "--reviews", reviews, "--text", "A new story")
    assert done.returncode == 2
    assert "scores are 1 to 10: of others say the scale, such as --scale 0-100" in done.stderr


@pytest.mark.parametrize(
    ("line", "text", "said"),
    [
        ({"text": "A", "review": "", "score": 5}, "B", "mine.jsonl, line 2: field 'review': found a blank text; give what the reader wrote, or leave the field out"),
        ({"text": "A", "review": " \n", "score": 5}, "B", "line 2: field 'review': found a blank text"),
        ({"text": " ", "review": "r", "score": 5}, "B", "line 2: field 'text': found a blank text; give the text that was reviewed"),
        ({"text": "A", "score": 5}, " ", "the text to judge is blank; give the text that the reader would review"),
    ],
)  # fmt: skip
def test_a_blank_text_or_review_is_refused_before_a_judge_is_loaded(
    reviews: Path, line: dict[str, Any], text: str, said: str
) -> None:
    with reviews.open("a") as file:
        file.write(json.dumps(line) + "\n")
    done = perse("ask", "--judge", "nobody", "--reviews", reviews, "--text", text)
    assert done.returncode == 2 and said in " ".join(done.stderr.split()), done.stderr
