"""Does the order in which a profile is shown change the judgement? Each profile in several seeded orders (PerSE, figure 4).

The mean over the orders and their standard deviation at each k, how far one item's expected score moves between two different
orders, and how often its likeliest label changes (its label, where the judge tells no probabilities). No profile is shown in one order twice while it has another: k = 1 is asked once, k = 2
twice. Differs from the paper: inference only, with one judge for all k, and the same queries at every k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import factorial
from pathlib import Path

import numpy as np

from perse.data.load import LoadedExamples
from perse.data.profiles.views import View
from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.shares import share_note
from perse.evaluation.stats.unseen import of_mean
from perse.judgement import Judgement
from perse.judging.loading import short_name
from perse.progress import OnPart, unseen_part
from perse.records import Example, chooses
from perse.results.result import Cell, Estimate, Point, Result, Table
from perse.studies.frame.arms import Arm, LoadJudge, Source
from perse.studies.frame.measuring import Condition, Measured, measure
from perse.studies.frame.running import Asking, opened
from perse.studies.frame.summarizing import NOTHING, SharedResamples, heading, predictions, undefined, words

ASKS = "How much do the judge's answers depend on the order in which a reader's past is shown?"


def order(
    asking: Asking,
    out: Path,
    *,
    orders: int = 3,
    ks: Sequence[int] | None = None,
    load: LoadJudge | None = None,
    on_progress: OnPart = unseen_part,
) -> Result:
    """Every metric at each k as the mean over at most `orders` different orders, with their standard deviation.

    Args:
        orders: in how many a profile is shown that has as many.
        ks: by default the folder's own k.
    Raises:
        BadInput: fewer than two orders, or a k that the folder does not keep.
        RunMismatch: `out` holds another study, or one of an older perse, whose orders could be the same twice.
    """
    if orders < 2:
        raise BadInput(f"found {orders} orders; two or more can differ")
    source, judge = asking.open(), asking.judge_name()
    data = source.folder("another order")
    chosen = sorted(set([data.k] if ks is None else ks))
    question = asking.ask(source)
    arms = {
        k: [
            Arm(name=f"k{k}-order{n}", loaded=shown, judge=judge, question=question, settings=asking.settings)
            for n, shown in enumerate(_orders(source, k, orders, seed=asking.settings.seed))
        ]
        for k in chosen
    }
    options = {"orders": orders, "ks": chosen, "different": True}
    with opened(
        out, "order", asking, source=source, question=question, options=options, load=load, on_progress=on_progress
    ) as study:
        answers = study.ask([arm for own in arms.values() for arm in own])
        asked = [
            Asked(
                Condition(short_name(judge), str(k), tuple(answers[arm.name] for arm in own), own[0].loaded.examples),
                tuple(arm.loaded.examples for arm in own),
            )
            for k, own in arms.items()
        ]
        return study.finish(_result(asking, asked, writes=question.writes_review))


@dataclass(frozen=True)
class Asked:
    """One k: the answers in every order, and the examples as they were shown in each."""

    condition: Condition
    shown: tuple[Sequence[Example], ...]

    @property
    def x(self) -> str:
        return self.condition.x

    @property
    def orders(self) -> str:
        return str(len(self.shown))


def _orders(source: Source, k: int, orders: int, *, seed: int) -> list[LoadedExamples]:
    """The examples in each order: as many as the longest profile has, at most `orders`."""
    first = source.shown(View(k=k, order_seed=seed))
    most = min(orders, factorial(max(len(example.profile) for example in first.examples)))
    return [first, *(source.shown(View(k=k, order_seed=seed, order=n)) for n in range(1, most))]


def _result(asking: Asking, asked: Sequence[Asked], *, writes: bool) -> Result:
    found = measure([one.condition for one in asked], resamples=asking.resamples, seed=asking.settings.seed)
    orders = {one.x: one.orders for one in asked}
    moves = {one.x: _moves(asking, one) for one in asked}
    most = max(asked, key=lambda one: int(one.x))
    answered = [one for each in asked for one in _answered(each.condition)]
    untold = [one for one in answered if not one.distribution]
    told = len(untold) < len(answered) or not answered
    partly = [
        f"{len(untold)} of {len(answered)} answers told no probabilities: the label that they gave stands for the likeliest"
    ]
    partly = partly if told and untold else []
    judge = asked[0].condition.judge
    moved = tuple(Point(series=judge, x=x, metric="moved", estimate=both[0]) for x, both in moves.items())
    spreads: list[tuple[Cell, ...]] = []
    for point in found.points:
        if not point.baseline and point.metric == found.main:
            spreads.append((point.series, point.x, orders[point.x], point.estimate, _number(point.spread)))
    rows: list[tuple[Cell, ...]] = [(x, str(both[1].items), *both) for x, both in moves.items()]
    return Result(
        name="order",
        asks=ASKS,
        answer=_answer(found, most, moves, told=told) + _sampled(asking, most, writes=writes),
        plot="lines",
        x_label="k: how many of the reader's past reviews are shown",
        points=(*found.points, *moved),
        tables=(
            Table(
                title="Different orders",
                header=("who", "k", "orders", heading(found.main), "sd over orders"),
                rows=tuple(spreads),
            ),
            Table(
                title="One item, two different orders",
                header=("k", "items", "answer moves by", "likeliest label changes" if told else "label changes"),
                rows=tuple(rows),
                notes=(
                    "moves: mean absolute difference of the expected score (pairs: of the probability of A, where it was told); changes: share of "
                    "items whose label differs; both over all pairs of different orders of an item, of the items that were answered in every order "
                    "of that k, whatever they were at another",
                    *partly,
                ),
            ),
            found.table("Means over the orders", "k"),
        ),
        notes=(
            *dict.fromkeys((*found.notes, share_note())),
            "no profile is shown in one order twice while it has another; one with fewer than two entries has one order and does not move",
            *_sampling(asking, asked, writes=writes),
            "differs from PerSE, figure 4: one judge is asked at every k, and the queries are the same",
        ),
    )


def _answer(found: Measured, most: Asked, moves: Mapping[str, tuple[Estimate, Estimate]], *, told: bool) -> str:
    ours = next(p for p in found.points if (p.series, p.x, p.metric) == (most.condition.judge, most.x, found.main))
    said = f"At k = {most.x}, {heading(found.main)} is {words(ours.estimate)}"
    if len(most.shown) == 1:
        return f"{said}; a profile has one order there."
    moved, changed = moves[most.x]
    spread = f", standard deviation {ours.spread:.3f}" if ours.spread is not None else ""
    known = moved.value is not None or changed.value is None  # pairs answered in words alone have labels that change
    moves_by = f"answer moves by {words(moved)}, and its " if known else ""
    return (
        f"{said} on average over {most.orders} orders{spread}; between two different orders one item's "
        f"{moves_by}{'likeliest label' if told else 'label'} changes in {words(changed)} of cases."
    )


def _answered(condition: Condition) -> list[Judgement]:
    """In every order."""
    return [one for answers in condition.passes for one in answers.values() if one.label is not None]


def _sampled(asking: Asking, asked: Asked, *, writes: bool) -> str:
    """What the order has no part in, where no order is asked twice to see how much that is. `writes`: whether a review is written first, which is sampled."""
    answered = _answered(asked.condition)
    drawn = [one for one in answered if writes or not one.distribution]
    if asking.settings.temperature == 0 or not drawn or len(asked.shown) == 1:
        return ""
    at = f" At a temperature of {asking.settings.temperature:g}"
    if len(drawn) < len(answered):
        return f"{at} {len(drawn)} of its {len(answered)} answers, which told no probabilities, may be apart from others by sampling: no order is asked twice."
    return f"{at} whatever moves may do so by sampling alone: no order is asked twice."


def _sampling(asking: Asking, asked: Sequence[Asked], *, writes: bool) -> list[str]:
    """The note of that, where any answer is drawn."""
    if not any(_sampled(asking, one, writes=writes) for one in asked):
        return []
    return [
        "at a temperature above 0 a review that is written first is sampled anew for each order, and so is the answer of a judge that is "
        "asked in words, so some of the movement is the sampling's, or all; ask --temperature 0 for that of the order alone"
    ]


def _moves(asking: Asking, asked: Asked) -> tuple[Estimate, Estimate]:
    """How far an item's answer moves between two different orders, and how often its label changes; over items that all answered."""
    passes = asked.condition.passes
    if len(passes) < 2:
        return undefined("one order"), undefined("one order")
    places = [
        n
        for n, example in enumerate(asked.condition.examples)
        if all((given := one.get(example.id)) and given.label is not None for one in passes)
    ]
    if not places:
        return undefined(NOTHING), undefined(NOTHING)
    shown = [[examples[n] for n in places] for examples in asked.shown]
    kept = shown[0]
    answers: list[FloatArray] = []
    labels = []
    for one in passes:
        if chooses(kept):
            shares = [(one[example.id].distribution or {}).get("A", np.nan) for example in kept]
            answers.append(np.array(shares, dtype=np.float64))
        else:
            expected = predictions(kept, one, "expected")
            assert expected is not None
            answers.append(expected)
        labels.append(np.array([_likeliest(one[example.id]) for example in kept], dtype=object))
    gaps, flips = [], []
    for a, b in combinations(range(len(passes)), 2):
        same = [left.profile == right.profile for left, right in zip(shown[a], shown[b], strict=True)]
        gaps.append(np.where(same, np.nan, np.abs(answers[a] - answers[b])))
        flips.append(np.where(same, np.nan, (labels[a] != labels[b]).astype(np.float64)))
    shared = SharedResamples.over(kept, resamples=asking.resamples, seed=asking.settings.seed)
    reach = 1.0 if chooses(kept) else float(np.ptp(np.concatenate([shared.gold[~np.isnan(shared.gold)], *answers])))
    moved = shared.mean(_mean_known(gaps))
    changed = shared.share(_mean_known(flips))
    if not moved.items and changed.items:
        return undefined("no probabilities were told"), changed
    return of_mean(moved, np.full(moved.items, reach)), changed


def _likeliest(answer: Judgement) -> str | None:
    """The label that is likeliest; the one given, where the judge tells no probabilities: that may be drawn."""
    shares = answer.distribution
    return max(shares, key=lambda label: shares[label]) if shares else answer.label


def _mean_known(pairs: Sequence[FloatArray]) -> FloatArray:
    """Mean of each item, (n,), over the pairs of orders that differ; NaN where none does."""
    values = np.array(pairs)
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    mean: FloatArray = np.where(count > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)
    return mean


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"
