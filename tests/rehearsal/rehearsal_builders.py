"""Samples of PerSum by hand, and a cast of agents that answer as a test says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from perse.data.persum.folder import ProductReview, Sample, Scores
from perse.engines.base import Failure, Reply
from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge
from perse.rehearsal.agents import ROLES, Agents
from perse.rehearsal.process import rehearse
from perse.rehearsal.settings import Settings
from perse.rendering.prompt import TextRenderer
from perse.writing.cache import AnswerCache
from perse.writing.writer import Writer

Said = str | Reply | Failure

STEPS = {
    "wants the least relevant": r"matters? least to the suggestions",
    "wants the nearest": r"has most to do with them",
    "supervises": r"You are an expert in role-playing",
    "revises": r"Give your response anew",
    "suggests": r"suggest how to change it",
    "rewrites": r"Change the summary as the user suggests",
    "adapts": r"Change it so that it suits the user",
    "writes for interests": r"What the user cares about: ",
    "analyses": r"Say what the user cares about in products",
    "writes for the user": r"\[User\] Reviews that the user wrote",
    "summarizes": r"Summarize the reviews of this product\.",
    "scores coverage": r"How well does the text cover",
    "scores sentiment": r"How consistent is the sentiment",
}
"""What a prompt wants, by words that no other has."""


def step_of(message: str) -> str:
    """Which agent's prompt a message is."""
    return next(name for name, words in STEPS.items() if re.search(words, message))


def review(reviewer: str, item: str, text: str) -> ProductReview:
    return ProductReview(reviewer_id=reviewer, item_id=item, review=text, score=4.0, time=None)


def sample(number: int = 1, *, product: Sequence[str] = (), history: Sequence[str] = (), group: Any = "High") -> Sample:
    """User uN on product pN."""
    product = product or (f"The {number} strings are loud.", f"They broke after {number} days.")
    history = history or (f"I like quiet things, said {number}.", f"Price matters to me {number} times.")
    return Sample(
        id=f"s{number}",
        category="Strings",
        group=group,
        own=review(f"u{number}", f"p{number}", f"Quiet enough for me, all {number} of them."),
        product_reviews=tuple(review(f"other{n}", f"p{number}", text) for n, text in enumerate(product)),
        history=tuple(review(f"u{number}", f"h{n}", text) for n, text in enumerate(history)),
        scores=Scores(history_coverage=4.5, product_coverage=4.5, product_sentiment=4.5),
    )


def usual(message: str) -> str:
    """A good answer to any prompt; it says what it was made of, so that different prompts get different answers."""
    step = step_of(message)
    mark = sum(map(ord, message)) % 10_000
    if step in ("wants the least relevant", "wants the nearest"):
        wanted = re.search(r"exactly (\d+)", message)
        assert wanted is not None
        return json.dumps({"Numbers": list(range(1, int(wanted[1]) + 1))})
    if step == "supervises":
        return "Thought: it fits.\nSuggestions: No suggestions."
    if step in ("suggests", "revises"):
        return json.dumps({"Analysis": f"I care about quiet, {mark}.", "Suggestions": f"Say more about noise, {mark}."})
    if step == "analyses":
        return json.dumps({"Analysis": f"The user likes quiet, {mark}."})
    if step.startswith("scores"):
        return "[Score] 60"
    return json.dumps({"Summary": f"{step} {mark}"})


class Cast:
    """A scripted model that plays every role, and notes what it was asked, in order."""

    def __init__(self, reply: Callable[[str], Said] = usual, *, name: str = "scripted") -> None:
        self.asked: list[str] = []
        self._reply = reply
        self.name = name

    @property
    def judge(self) -> Judge:
        def reply(message: str, seed: int) -> Said:
            self.asked.append(message)
            return self._reply(message)

        return Judge(ScriptedEngine(reply, batch=1, name=self.name), TextRenderer(), name=self.name)

    @property
    def writer(self) -> Writer:
        return Writer(self.judge)

    def steps(self) -> list[str]:
        return [step_of(message) for message in self.asked]

    def agents(self, folder: Path, **settings: Any) -> Agents:
        return Agents(dict.fromkeys(ROLES, self.writer), AnswerCache(folder / "answers.sqlite"), Settings(**settings))

    def rehearse(self, out: Path, samples: Sequence[Sample], methods: Sequence[str] = ("rehearsal",), **settings: Any) -> Path:
        writers = dict.fromkeys(ROLES, self.writer)
        return rehearse(writers, self.judge, samples, out, digest="of these", methods=methods, settings=Settings(**settings))


def persum_folder(folder: Path, samples: Sequence[Sample]) -> Path:
    """A folder as `perse data persum` writes it, of these samples."""
    folder.mkdir(parents=True)
    (folder / "samples.jsonl").write_text("".join(one.model_dump_json() + "\n" for one in samples), "utf-8")
    (folder / "manifest.json").write_text(json.dumps({"schema": 1, "kind": "persum", "options": {}}), "utf-8")
    return folder
