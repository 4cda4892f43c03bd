"""Does the order in which a profile is shown change the judgement? Each profile in several seeded orders (PerSE, figure 4).

The mean over the orders and their standard deviation at each k, how far one item's expected score moves between two orders,
and how often its label changes. Profiles with fewer than two entries have one order and are asked once. Differs from the paper: inference
only, with one judge for all k, and the same queries at every k.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import numpy as np

from perse.data.profiles.views import View
from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray
from perse.judging.loading import short_name
from perse.progress import OnPart, unseen_part
from perse.records import chooses
from perse.results.result import Cell, Estimate, Point, Result, Table
from perse.studies.frame.arms import Arm, LoadJudge
from perse.studies.frame.measuring import Condition, measure
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
    """Every metric at each k as the mean over `orders` shuffles, with their standard deviation.

    Args:
        orders: how many shuffles; their seeds count up from the asking's.
        ks: by default the folder's own k.
    Raises:
        BadInput: fewer than two orders, or a k that the folder does not keep.
        RunMismatch: `out` holds another study.
    """
    if orders < 2:
        raise BadInput(f"found {orders} orders; two or more can differ")
    source, judge = asking.open(), asking.judge_name()
    data = source.folder("another order")
    chosen = sorted(set([data.k] if ks is None else ks))
    question = asking.ask(source)
    seeds = [asking.settings.seed + n for n in range(orders)]
    arms = {
        (k, seed): Arm(
            name=f"k{k}-order{seed}",
            loaded=source.shown(View(k=k, order_seed=seed)),
            judge=judge,
            question=question,
            settings=asking.settings,
        )
        for k in chosen
        for seed in (seeds if k > 1 else seeds[:1])
    }
    options = {"orders": orders, "ks": chosen}
    with opened(out, "order", asking, source=source, options=options, load=load, on_progress=on_progress) as study:
        answers = study.ask(list(arms.values()))
        conditions = [
            Condition(
                short_name(judge),
                str(k),
                tuple(answers[arm.name] for (own, _), arm in arms.items() if own == k),
                next(arm.loaded.examples for (own, _), arm in arms.items() if own == k),
            )
            for k in chosen
        ]
        return study.finish(_result(asking, conditions, orders))


def _result(asking: Asking, conditions: Sequence[Condition], orders: int) -> Result:
    found = measure(conditions, resamples=asking.resamples, seed=asking.settings.seed)
    moves = {one.x: _moves(asking, one) for one in conditions}
    moved = tuple(Point(series=one.judge, x=one.x, metric="moved", estimate=moves[one.x][0]) for one in conditions)
    spreads: list[tuple[Cell, ...]] = []
    for point in found.points:
        if not point.baseline and point.metric == found.main:
            spreads.append((point.series, point.x, point.estimate, _number(point.spread)))
    rows: list[tuple[Cell, ...]] = [(one.x, *moves[one.x]) for one in conditions]
    most = max(conditions, key=lambda one: int(one.x))
    ours = next(p for p in found.points if (p.series, p.x, p.metric) == (most.judge, most.x, found.main))
    answer = (
        f"At k = {most.x}, {heading(found.main)} is {words(ours.estimate)} on average over {orders} orders"
        + (f", standard deviation {ours.spread:.3f}" if ours.spread is not None else "")
        + f"; between two orders one item's answer moves by {words(moves[most.x][0])}, and its label changes in "
        f"{words(moves[most.x][1])} of cases."
    )
    return Result(
        name="order",
        asks=ASKS,
        answer=answer,
        plot="lines",
        x_label="k: how many of the reader's past reviews are shown",
        points=(*found.points, *moved),
        tables=(
            Table(title=f"{orders} orders", header=("who", "k", heading(found.main), "sd over orders"), rows=tuple(spreads)),
            Table(
                title="One item, two orders",
                header=("k", "answer moves by", "label changes"),
                rows=tuple(rows),
                notes=(
                    "moves: mean absolute difference of the expected score (pairs: of the probability of A); changes: share of "
                    "items whose label differs; both over all pairs of orders",
                ),
            ),
            found.table("Means over the orders", "k"),
        ),
        notes=(
            *found.notes,
            "profiles with fewer than two entries have one order and no spread",
            *_sampling(asking),
            "differs from PerSE, figure 4: one judge is asked at every k, and the queries are the same",
        ),
    )


def _sampling(asking: Asking) -> list[str]:
    if asking.settings.temperature == 0:
        return []
    return [
        "at a temperature above 0 a review that is written first is sampled anew for each order, and so is the answer of a judge that is "
        "asked in words, so some of the movement is the sampling's; ask --temperature 0 for that of the order alone"
    ]


def _moves(asking: Asking, condition: Condition) -> tuple[Estimate, Estimate]:
    """How far an item's answer moves between two orders, and how often its label changes; over items that all answered."""
    if len(condition.passes) < 2:
        return undefined("one order"), undefined("one order")
    kept = [
        example
        for example in condition.examples
        if all((given := one.get(example.id)) and given.label is not None for one in condition.passes)
    ]
    if not kept:
        return undefined(NOTHING), undefined(NOTHING)
    answers: list[FloatArray] = []
    labels = []
    for one in condition.passes:
        if chooses(kept):
            shares = [(one[example.id].distribution or {}).get("A", np.nan) for example in kept]
            answers.append(np.array(shares, dtype=np.float64))
        else:
            expected = predictions(kept, one, "expected")
            assert expected is not None
            answers.append(expected)
        labels.append(np.array([one[example.id].label for example in kept], dtype=object))
    pairs = list(combinations(range(len(answers)), 2))
    gaps = np.mean([np.abs(answers[a] - answers[b]) for a, b in pairs], axis=0)
    flips = np.mean([(labels[a] != labels[b]).astype(np.float64) for a, b in pairs], axis=0)
    shared = SharedResamples.over(kept, resamples=asking.resamples, seed=asking.settings.seed)
    return shared.mean(gaps), shared.mean(flips)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"
