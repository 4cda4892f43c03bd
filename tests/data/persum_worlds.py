"""Reviews of toy pianos, and an engine that scores them by a code in their text."""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Sequence
from pathlib import Path

from perse import Judge
from perse.data.persum.folder import ProductReview
from perse.engines.base import Capabilities, Reply, Sampling
from perse.judgement import Tokens
from perse.rendering.prompt import TextRenderer

CODES = ("555", "444", "544", "554", "355", "222")


"""History coverage, product coverage and sentiment as the judge below gives them: High, Low, HHPL, and three that are none."""


VOCABULARY = [
    a + b for a in ("bo", "ka", "li", "mu", "ne", "pa", "ro", "su") for b in ("dan", "fel", "gor", "hip", "jut", "kem")
]


def text(user: str, item: str, code: str) -> str:
    own = random.Random(f"{user} {item}").sample(VOCABULARY, 12)
    return f"Good sound and a solid build for the price by {user} scored {code} " + " ".join(own)


def review(user: str, item: str, said: str, time: str | None = "2014-01-01") -> ProductReview:
    return ProductReview(reviewer_id=user, item_id=item, review=said, score=5.0, time=time)


def write_table(folder: Path, *, users: int) -> Path:
    """FOLDER/Toy_Pianos.csv of so many users, each with 8 reviews."""
    path = folder / "Toy_Pianos.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["reviewerID", "asin", "reviewText", "overall", "unixReviewTime"])
        for user in range(users):
            for n in range(8):
                item = (user + n) % 10
                code = CODES[(user * 8 + n) % len(CODES)]
                names = f"USER{user:02d}", f"B0000000{item:02d}"
                rows.writerow([*names, text(f"user{user}", f"item{item}", code), 1 + n % 5, 1393545600 + n * 86400 + user])
    return path


class Scoring:
    """A chat engine that scores the text by the code in it; `stop_after` so many messages, as if the process had been ended."""

    def __init__(self, *, stop_after: int | None = None, silent_at: str = "", always: str = "") -> None:
        self.capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False)
        self.settings: dict[str, str] = {}
        self.asked = 0
        self._stop_after, self._silent_at, self._always = stop_after, silent_at, always

    def chat(self, messages: Sequence[str], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply]:
        if self._stop_after is not None and self.asked + len(messages) > self._stop_after:
            raise KeyboardInterrupt
        self.asked += len(messages)
        return [Reply(self._answer(message), "stop", Tokens(prompt=0, cached=0, generated=0)) for message in messages]

    def _answer(self, message: str) -> str:
        shown, _, judged = message.partition("\n[Text] ")
        writer, code = re.search(r"by (\w+) scored (\d+)", judged).groups()  # type: ignore[union-attr]
        if code == self._silent_at:
            return "I cannot say."
        of_history = set(re.findall(r"by (\w+) scored", shown)) == {writer}
        assert of_history or writer not in re.findall(r"by (\w+) scored", shown)
        return (
            f"[Score] {self._always}"
            if self._always
            else f"[Score] {code[0] if of_history else code[1 + ('sentiment' in judged)]}"
        )


def judging(engine: Scoring) -> Judge:
    return Judge(engine, TextRenderer(max_words=5000), name="scripted")  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
