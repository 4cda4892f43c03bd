"""The stories of all samples, as the page's script reads them: numbers to filter and order by, and each story as references to texts.

The practice of a sample is the same under every method that has it, and so are its reviews: each text is in the page once. Differences are
found here, and told as lengths alone, since the script has both texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perse.data.persum.folder import ProductReview, Sample
from perse.rehearsal.folder import Filtered, Played, Response, Trace, Verdict
from perse.rehearsal.judging import MEASURES, Measure, mean_of
from perse.rehearsal.methods import METHODS
from perse.rehearsal.reporting.changes import changes, lengths
from perse.rehearsal.reporting.compared import ComparedRound, ComparedTurn, ComparedVersion, rounds, turns, versions
from perse.rehearsal.scoring.asking import Scored
from perse.rehearsal.scoring.telling import MEASURE_NAMES
from perse.reporting.packing import Numbered, Packed, kept, pack

Values = Mapping[Measure, float | None]


@dataclass(frozen=True)
class Stories:
    """What the page shows of the samples. The head has columns, one entry a sample, and of each method some more."""

    packed: Packed
    shown: int
    there: int
    """Samples before some were left out."""


def pack_traces(samples: Sequence[Sample], scored: Scored, *, chain: bool, most: int, seed: int) -> Stories:
    """Args:
    samples: in the order of the table.
    chain: as in `compared.versions`.
    most: samples to keep: those that some method has no scored summary of first, then a random draw of the others.
    seed: of the draw.
    """
    shown = _chosen(samples, scored, most=most, seed=seed)
    stories = _Stories(chain=chain)
    details = [stories.detail(sample, scored) for sample in shown]
    methods = list(scored.traces)
    head = {
        "measures": list(MEASURE_NAMES),
        "methods": [
            {"name": METHODS[name].published, "what": METHODS[name].what, "plays": METHODS[name].plays} for name in methods
        ],
        "id": [sample.id for sample in shown],
        "reader": [sample.own.reviewer_id for sample in shown],
        "item": [sample.own.item_id for sample in shown],
        "category": [sample.category for sample in shown],
        "group": [sample.group for sample in shown],
        "runs": [_columns(shown, name, scored.traces[name], scored.scores.get(name, {})) for name in methods],
    }
    return Stories(pack(head, stories.texts, details), shown=len(shown), there=len(samples))


def _chosen(samples: Sequence[Sample], scored: Scored, *, most: int, seed: int) -> list[Sample]:
    names = [sample.id for sample in samples]
    failed = {name for name in names if any(_average(of_one.get(name)) is None for of_one in scored.scores.values())}
    there = set(kept(names, failed, most=most, seed=seed))
    return [sample for sample in samples if sample.id in there]


def _columns(
    samples: Sequence[Sample], method: str, traces: Mapping[str, Trace], scores: Mapping[str, Values]
) -> dict[str, list[Any]]:
    """One method's: whether there is a summary, its average and the mean against the user's own review, and how it came about."""
    supervised = METHODS[method].supervised
    found = [traces.get(sample.id) for sample in samples]
    played = [None if trace is None else trace.suggestions for trace in found]
    values = [scores.get(sample.id) for sample in samples]
    return {
        "summary": [trace is not None and trace.summary is not None for trace in found],
        "average": [_average(one) for one in values],
        "user": [
            _average(None if one is None else {key: value for key, value in one.items() if key[0] == "user"}) for one in values
        ],
        "turns": [None if one is None else one.responses for one in played],
        "passed": [None if one is None or not supervised else one.passed for one in played],
        "kept": [None if trace is None else trace.kept for trace in found],
        "rounds": [len(trace.rounds) if trace is not None and trace.rounds else None for trace in found],
        "stood": [sum(one.stands for one in trace.rounds) if trace is not None and trace.rounds else None for trace in found],
    }


def _average(values: Values | None) -> float | None:
    mean = mean_of(values or {})
    return None if mean is None else round(mean, 2)


class _Stories:
    """Makes the details; `texts` has every text of them once."""

    def __init__(self, *, chain: bool) -> None:
        self.texts = Numbered()
        self._chain = chain
        self._changes: dict[tuple[str, str], str] = {}

    def detail(self, sample: Sample, scored: Scored) -> dict[str, Any]:
        """A sample's reviews, and its trace under each method."""
        traces = [of_one.get(sample.id) for of_one in scored.traces.values()]
        values = [scored.scores.get(name, {}).get(sample.id) for name in scored.traces]
        return {
            "own": self._review(sample.own),
            "product": [self._review(one) for one in sample.product_reviews],
            "history": [self._review(one) for one in sample.history],
            "traces": [
                None if trace is None else self._trace(trace, of_one) for trace, of_one in zip(traces, values, strict=True)
            ],
        }

    def _review(self, review: ProductReview) -> dict[str, Any]:
        return {"text": self._text(review.review), "score": review.score}

    def _trace(self, trace: Trace, values: Values | None) -> dict[str, Any]:
        return {
            "summary": self._text(trace.summary),
            "changes": None if trace.versions or trace.rounds else self._changed(trace.general, trace.summary),
            "scores": None if values is None else [_rounded(values.get(measure)) for measure in MEASURES],
            "failed": self._text(trace.failed),
            "general": self._text(trace.general),
            "analysis": self._text(trace.analysis),
            "practice": [self._played(one, supervised=True) for one in trace.practice],
            "demonstrations": [self._text(one) for one in trace.demonstrations],
            "suggestions": None
            if trace.suggestions is None
            else self._played(trace.suggestions, supervised=METHODS[trace.method].supervised),
            "filtered": None if trace.filtered is None else self._filtered(trace.filtered),
            "versions": [self._version(one) for one in versions(trace, chain=self._chain)],
            "kept": trace.kept,
            "rounds": [self._round(one) for one in rounds(trace)],
        }

    def _played(self, played: Played, *, supervised: bool) -> dict[str, Any]:
        passed = played.passed if supervised else None
        return {"passed": passed, "responses": played.responses, "turns": [self._turn(one) for one in turns(played)]}

    def _turn(self, one: ComparedTurn) -> dict[str, Any]:
        return {
            "response": None if one.turn.response is None else self._response(one.turn.response, one.before),
            "verdict": None if one.turn.verdict is None else self._verdict(one.turn.verdict),
            "failed": self._text(one.turn.failed),
        }

    def _response(self, response: Response, before: Response | None) -> list[tuple[int | None, int | None, str | None]]:
        """Analysis and suggestions, each with what it was before."""
        pairs = (
            (response.analysis, before.analysis if before else None),
            (response.suggestions, before.suggestions if before else None),
        )
        return [(self._text(text), self._text(old), self._changed(old, text)) for text, old in pairs]

    def _verdict(self, verdict: Verdict) -> dict[str, Any]:
        return {
            "thought": self._text(verdict.thought),
            "recommendations": self._text(verdict.recommendations),
            "passed": verdict.passed,
        }

    def _filtered(self, filtered: Filtered) -> dict[str, Any]:
        return {
            "removed": filtered.removed,
            "drawn": filtered.drawn,
            "history": filtered.history,
            "historyDrawn": filtered.history_drawn,
            "failed": self._text(filtered.failed),
        }

    def _version(self, one: ComparedVersion) -> dict[str, Any]:
        return {
            "summary": self._text(one.version.summary),
            "before": self._text(one.before),
            "changes": self._changed(one.before, one.version.summary),
            "score": _rounded(one.version.score),
            "failed": self._text(one.version.failed),
        }

    def _round(self, one: ComparedRound) -> dict[str, Any]:
        said = one.round.suggestions
        return {
            "response": None if said is None else self._response(said, None),
            "filtered": None if one.round.filtered is None else self._filtered(one.round.filtered),
            "summary": self._text(one.round.summary),
            "before": self._text(one.before),
            "changes": self._changed(one.before, one.round.summary),
            "preferred": _rounded(one.round.preferred, 4),
            "gap": _rounded(one.round.order_gap, 4),
            "stands": one.round.stands,
            "failed": self._text(one.round.failed),
        }

    def _text(self, text: str | None) -> int | None:
        return self.texts.number(text) if text else None

    def _changed(self, before: str | None, after: str | None) -> str | None:
        """Lengths of what stayed, went and came; None where there is nothing to compare."""
        if before is None or after is None:
            return None
        if (before, after) not in self._changes:
            self._changes[before, after] = lengths(changes(before, after))
        return self._changes[before, after]


def _rounded(value: float | None, digits: int = 2) -> float | None:
    return None if value is None else round(value, digits)
