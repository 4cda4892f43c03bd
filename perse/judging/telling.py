"""What is made of a judge's answers before anyone sees them, in one place, whoever asks: the stacking applied, and the reader's own scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perse.judgement import Judgement, OnOwnScale, Status
from perse.records import PointwiseExample
from perse.scale import SCORES, OwnScale, expected_on_own_scale, on_own_scale
from perse.stacking.applying import with_stacked
from perse.stacking.file import Stacking


def told(stacking: Stacking | None, examples: Sequence[Any], judgements: Sequence[Judgement]) -> list[Judgement]:
    """The judgements with what they say beside the raw values; each finds its example by id."""
    by_id = {example.id: example for example in examples}
    return [_told(stacking, by_id.get(judgement.id), judgement) for judgement in judgements]


def _told(stacking: Stacking | None, example: Any, judgement: Judgement) -> Judgement:
    found = with_stacked(stacking, example, judgement)
    if not isinstance(example, PointwiseExample) or example.own_scale is None or found.status is not Status.OK:
        return found
    return found.model_copy(update={"own_scale": _on(example.own_scale, found)})


def _on(scale: OwnScale, judgement: Judgement) -> OnOwnScale | None:
    """None for an answer that is no score."""
    if judgement.label not in SCORES.labels:
        return None
    stacked = judgement.stacked
    expected = None if judgement.expected is None else on_own_scale(judgement.expected, scale)
    return OnOwnScale(
        low=scale[0],
        high=scale[1],
        label=on_own_scale(float(judgement.label), scale),
        expected=expected_on_own_scale(judgement.distribution, scale) if judgement.distribution else expected,
        stacked=expected_on_own_scale(stacked.distribution, scale) if stacked else None,
    )
