"""A whole run with a talkative cast, scored, as a report is made of: revisions that change some words, filters that remove reviews."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rehearsal_builders import Cast, persum_folder, review, sample, step_of, usual

from perse.data.persum.folder import Sample
from perse.rehearsal.methods import PAPER
from perse.rehearsal.samples import Samples, read_samples
from perse.rehearsal.scoring.asking import score

SCRIPT = "<script>window.hacked=1</script>"
BREAKOUT = f'</script><!--"\'>\u2028\u202e<img src=x onerror="window.hacked=1">{SCRIPT}'
WORDS = [
    "the",
    "strings",
    "sound",
    "quiet",
    "and",
    "warm",
    "on",
    "my",
    "old",
    "guitar,",
    "they",
    "stay",
    "in",
    "tune",
    "for",
    "weeks,",
    "but",
    "the",
    "packaging",
    "was",
    "torn,",
    "the",
    "price",
    "is",
    "fair",
    "and",
    "delivery",
    "took",
    "nine",
    "days;",
    "the",
    "wound",
    "ones",
    "feel",
    "rough",
    "at",
    "first,",
    "my",
    "daughter",
    "broke",
    "one",
    "while",
    "tuning,",
    "and",
    "I",
    "would",
    "buy",
    "them",
    "again",
]


def prose(seed: object, words: int) -> str:
    """Made sentences, always the same for one seed."""
    drawn = random.Random(str(seed))
    start = drawn.randrange(len(WORDS))
    said = [WORDS[(start + n + (drawn.random() < 0.2)) % len(WORDS)] for n in range(words)]
    return " ".join(said).capitalize() + "."


def told_samples(number: int, *, spice: str = "", product: int = 6, history: int = 7, words: int = 60) -> list[Sample]:
    """Samples with reviews of so many words, of two categories and all classes."""
    made = []
    for n in range(1, number + 1):
        one = sample(
            n,
            product=[f"{prose((n, 'p', m), words)} {spice}".strip() for m in range(product)],
            history=[f"{prose((n, 'h', m), words)} {spice}".strip() for m in range(history)],
            group=("High", "Low", "HHPL")[n % 3],
        )
        own = review(f"u{n}{spice}", f"p{n}{spice}", f"Quiet enough for me, all {n} of them. {spice}".strip())
        same = {"item_id": own.item_id}
        made.append(
            one.model_copy(
                update={
                    "id": f"s{n}{spice}",
                    "category": f"{('Strings', 'Picks')[n % 2]}{spice}",
                    "own": own,
                    "product_reviews": tuple(other.model_copy(update=same) for other in one.product_reviews),
                    "history": tuple(past.model_copy(update={"reviewer_id": own.reviewer_id}) for past in one.history),
                }
            )
        )
    return made


def talkative(*, spice: str = "", words: int = 60) -> Cast:
    """Answers in long texts: the supervisor lets about two of three pass, and a revision changes some words of what was there."""

    def changed(message: str) -> str:
        mark = sum(map(ord, message))
        text = prose(mark % 7, words).split(" ")
        text[mark % len(text)] = f"loud{mark % 97}"
        return f"{' '.join(text)} {spice}".strip()

    def reply(message: str) -> str:
        step, mark = step_of(message), sum(map(ord, message))
        if step == "supervises":
            if mark % 3:
                return "Thought: it fits.\nSuggestions: No suggestions."
            return f"Thought: the user never speaks of that. {spice}\nSuggestions: 1. {changed(message)}"
        if step in ("suggests", "revises"):
            return json.dumps({"Analysis": f"I care about quiet. {changed(message)}", "Suggestions": changed(message)})
        if step == "analyses":
            return json.dumps({"Analysis": changed(message)})
        if step.startswith("scores"):
            return f"[Score] {20 * (2 + mark % 4)}"
        if step.startswith("wants"):
            return usual(message)
        return json.dumps({"Summary": changed(message)})

    return Cast(reply, name=f"talkative{spice}")


def scored_run(
    folder: Path,
    samples: Sequence[Sample],
    *,
    methods: Sequence[str] = PAPER,
    cast: Cast | None = None,
    **settings: Any,
) -> tuple[Samples, Path]:
    """A PerSum folder `data`, a run of the methods over it, `run`, and the cast's scores of that."""
    played = cast or talkative()
    given = read_samples(persum_folder(folder / "data", samples))
    settings = {"product_characters": 1200, "max_iterations": 4, **settings}
    run = played.rehearse(folder / "run", given.samples, methods, **settings)
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    manifest["run"]["samples"]["sha256"] = given.digest
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    score(played.judge, given.samples, run, digest=given.digest, name="scored")
    return given, run
