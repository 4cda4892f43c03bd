"""Small examples and judgements by hand, for the studies that read what was answered, and a judge that follows a script."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from perse.engines.scripted import ScriptedEngine
from perse.files.runlog import write_whole
from perse.judgement import Judgement, Status, Tokens, judgement_line
from perse.judging.judge import Judge
from perse.records import (
    Choice,
    ChoiceReference,
    Example,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileReview,
    ReviewReference,
    example_lines,
)
from perse.rendering.prompt import TextRenderer

TOKENS = Tokens(prompt=10, cached=0, generated=5)


def scored(
    id: str, reviewer: str, score: int | None, *, item: str | None = None, profile: tuple[ProfileReview, ...] = ()
) -> PointwiseExample:
    reference = None if score is None else ReviewReference(review="r", score=score)
    return PointwiseExample(
        id=id, reviewer_id=reviewer, item_id=item or f"item-{id}", profile=profile, query=f"query {id}", reference=reference
    )


def pair(id: str, reviewer: str, choice: Choice, *, aspect: str = "Ending") -> PairwiseExample:
    query = Pair(text_a="x", text_b="y")
    reference = ChoiceReference(preference=choice)
    return PairwiseExample(id=id, reviewer_id=reviewer, aspect=aspect, profile=(), query=query, reference=reference)


def answered(
    id: str, label: str, *, distribution: dict[str, float] | None = None, order_gap: float | None = None, text: str = ""
) -> Judgement:
    numbers = distribution is not None and all(key.isdigit() for key in distribution)
    expected = sum(int(key) * p for key, p in distribution.items()) if distribution and numbers else None
    return Judgement(
        id=id,
        question="q",
        status=Status.OK,
        label=label,
        expected=expected,
        distribution=distribution,
        order_gap=order_gap,
        text=text,
        k_effective=1,
        tokens=TOKENS,
        model="m",
    )


def failed(id: str) -> Judgement:
    return Judgement(id=id, question="q", status=Status.UNPARSED, k_effective=1, tokens=TOKENS, model="m")


def run_folder(out: Path, examples: Sequence[Example], judgements: Sequence[Judgement]) -> Path:
    """A scoring run with these answers, whatever they are."""
    run = {"kind": "score", "question": "pointwise", "fold": None, "judge": {"name": "m"}, "settings": {}}
    out.mkdir()
    write_whole(out / "examples.jsonl", "".join(example_lines(examples)))
    write_whole(out / "judgements.jsonl", "".join(map(judgement_line, judgements)))
    write_whole(out / "timing.jsonl", "")
    write_whole(out / "manifest.json", json.dumps({"run": run, "context": {}, "environment": {}}))
    return out


def scripted(reply: Callable[[str], str]) -> Judge:
    """A judge that answers in words, by a function of the message."""
    return Judge(ScriptedEngine(lambda message, seed: reply(message)), TextRenderer(), name="scripted")
