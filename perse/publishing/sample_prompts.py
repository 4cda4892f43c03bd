"""Real prompts to compare two models on: readers of the sample corpus, rendered as judging renders them, answers included."""

from __future__ import annotations

import json
from collections import defaultdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from perse.models.finding import context_length
from perse.models.opening import tokenizer
from perse.questions import QUESTIONS
from perse.records import PointwiseExample, ProfileReview, ReviewReference
from perse.rendering.prompt import Renderer

READERS = 3
SHOWN = 2


def sample_prompts(model: Path, *, trust_remote_code: bool = False) -> list[tuple[int, ...]]:
    """For three sample readers the ids of one prompt and of the reader's true answer, by the tokenizer in the folder `model`.

    Raises:
        TooLong: the model's context does not take the shortest of prompts.
    """
    renderer = Renderer(tokenizer(model, trust_remote_code=trust_remote_code), context_length(model))
    question = QUESTIONS["pointwise"]
    prompts = []
    for example in sample_examples():
        answer = renderer.completion(question, example)
        [rendered] = renderer.render(question, example, answer_tokens=1, completion=answer)
        prompts.append((*rendered.ids, *(token for line in answer for token in line)))
    return prompts


def sample_examples() -> list[PointwiseExample]:
    """The first reviewers of the sample corpus, each with two reviews shown and asked about the third."""
    plots = {row["item_id"]: row["plot"] for row in _rows("items.jsonl")}
    reviews: dict[str, list[Any]] = defaultdict(list)
    for row in _rows("reviews.jsonl"):
        reviews[row["reviewer_id"]].append(row)
    return [
        PointwiseExample(
            id=who,
            reviewer_id=who,
            item_id=asked["item_id"],
            profile=tuple(ProfileReview(text=plots[row["item_id"]], review=row["review"], score=row["score"]) for row in shown),
            query=plots[asked["item_id"]],
            reference=ReviewReference(review=asked["review"], score=asked["score"]),
        )
        for who, (*shown, asked) in ((who, rows[: SHOWN + 1]) for who, rows in [*reviews.items()][:READERS])
    ]


def _rows(name: str) -> list[Any]:
    text = (files("perse") / "samples" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
