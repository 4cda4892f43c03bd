"""Samples in the page: light rows to filter and sort by, and every text once, compressed.

Ten thousand samples repeat their readers' profiles many times over. So the page carries ids and numbers as plain columns, each
distinct text once in a numbered list, and what a sample opens to as references into that list. Texts and details are gzipped
in chunks, which the browser unpacks on demand: opening the page only costs the rows. The trade-off is that
the first search unpacks everything (about a second for ten thousand samples).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perse.judgement import Judgement, Status
from perse.records import Example, Parts
from perse.reporting.packing import Numbered, Packed, kept, pack


@dataclass(frozen=True)
class Samples:
    """What the page shows of them. The head has columns, one entry a sample: id, reviewer, gold, and each judge's status, label and prediction."""

    packed: Packed
    shown: int
    judged: int
    """Samples before some were left out."""


def chosen(
    examples: Sequence[Example], judges: Mapping[str, Mapping[str, Judgement]], *, most: int, seed: int
) -> list[Example]:
    """At most `most` of the examples, in their order: failures first, then a random draw of the others."""
    failed = {
        example.id
        for example in examples
        if any(example.id in given and given[example.id].status is not Status.OK for given in judges.values())
    }
    there = kept([example.id for example in examples], failed, most=most, seed=seed)
    return [example for example in examples if example.id in there]


def pack_samples(
    examples: Sequence[Example],
    judges: Mapping[str, Mapping[str, Judgement]],
    *,
    asked: Mapping[str, Mapping[str, Example]] | None = None,
    labels: Sequence[str],
    most: int,
    seed: int,
) -> Samples:
    """The samples that at least one judge has judged.

    Args:
        examples: all of one kind, in the order of the table.
        judges: judge -> example id -> its answer.
        asked: judge -> example id -> the example as it was put to this judge, perhaps with another profile; by default as in
            `examples`.
        labels: the scale, in order.
        most: samples to keep; see `chosen`.
        seed: of the draw.
    """
    judged = [example for example in examples if any(example.id in given for given in judges.values())]
    shown = chosen(judged, judges, most=most, seed=seed)
    texts = Numbered()
    details = []
    for example in shown:
        answers = [given.get(example.id) for given in judges.values()]
        put = [(asked or {}).get(name, {}).get(example.id, example) for name in judges]
        same = [one.profile == example.profile for one in put]
        details.append(_detail(example, answers, same, labels, texts))
    reviewers, aspects = Numbered(), Numbered()
    head: dict[str, Any] = {
        "pairs": any(example.kind == "pairwise" for example in shown),
        "labels": list(labels),
        "judges": list(judges),
        "statuses": [str(status) for status in Status],
        "id": [example.id for example in shown],
        "reviewer": [reviewers.number(example.reviewer_id or "") for example in shown],
        "aspect": [aspects.number(example.aspect) for example in shown if example.aspect is not None],
        "gold": [example.truth for example in shown],
        "answers": [_columns([given.get(example.id) for example in shown]) for given in judges.values()],
    }
    head["reviewers"], head["aspects"] = list(reviewers.known), list(aspects.known)
    return Samples(pack(head, texts, details), shown=len(shown), judged=len(judged))


def _columns(answers: Sequence[Judgement | None]) -> dict[str, list[Any]]:
    """One judge's answers; `value` is the expected score, or the probability of A, or None where there is no distribution; `even` says of pairs of
    which neither text is likelier (`RunData.evened`)."""
    return {
        "status": [None if answer is None else list(Status).index(answer.status) for answer in answers],
        "label": [None if answer is None else answer.label for answer in answers],
        "value": [None if answer is None else _value(answer) for answer in answers],
        "even": [int(answer is not None and _even(answer)) for answer in answers],
    }


def _even(answer: Judgement) -> bool:
    if answer.status is not Status.OK:
        return False
    shares = answer.distribution
    if not shares:
        return answer.order_gap == 1
    return "A" in shares and abs(shares["A"] - shares.get("B", 0.0)) < 1e-9


def _value(answer: Judgement) -> float | None:
    if answer.status is not Status.OK or not answer.distribution:
        return None
    if "A" in answer.distribution:
        return round(answer.distribution["A"], 4)
    if answer.expected is not None:
        return round(answer.expected, 4)
    return round(sum(float(label) * p for label, p in answer.distribution.items()), 4)


def _detail(
    example: Example,
    answers: Sequence[Judgement | None],
    same: Sequence[bool],
    labels: Sequence[str],
    texts: Numbered,
) -> dict[str, Any]:
    """The details of a sample: `query` and each profile entry are pairs of caption and text number; `same` says of each judge
    whether it was shown the example's profile."""
    return {
        "item": getattr(example, "item_id", None),
        "query": _captioned(example.shown_query, texts),
        "profile": [{"about": about, "parts": _captioned(parts, texts)} for about, parts in example.shown_profile],
        "review": texts.number(example.written) if example.written else None,
        "same": list(same),
        "answers": [None if answer is None else _answer(answer, labels, texts) for answer in answers],
    }


def _captioned(parts: Parts, texts: Numbered) -> list[tuple[str, int]]:
    return [(caption, texts.number(text)) for caption, text in parts if text]


def _answer(answer: Judgement, labels: Sequence[str], texts: Numbered) -> dict[str, Any]:
    shares = answer.distribution
    return {
        "text": texts.number(answer.text) if answer.text else None,
        "error": texts.number(answer.error) if answer.error else None,
        "shares": None if not shares else [round(shares.get(label, 0.0), 4) for label in labels],
        "mass": None if answer.mass is None else round(answer.mass, 4),
        "gap": None if answer.order_gap is None else round(answer.order_gap, 4),
        "k": answer.k_effective,
        "finish": answer.finish_reason,
        "tokens": [answer.tokens.prompt, answer.tokens.cached, answer.tokens.generated],
    }
