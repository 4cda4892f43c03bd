"""How often a judge that knows nothing more is called better or worse: by the verdict, and by the rules that it had before.

    python benchmarks/verdict_worlds.py --worlds 400

Kinds of worlds, in each of which "better" is false. *Below chance*: a coin for a judge, and a reader's own average that is
worse than chance, as it is where a profile holds the reader's other scores. *Copying*: a coin again, on pairs in 45% of which the shown answer
is the reader's. *Coins*: the same in 50%. *Constant*: `perse compare` within readers, where both judges know nothing and one says the same to all but a few readers. *Ties*: the
judge says the reader's own average of three whole scores with a noise of 0.02, which breaks its ties and changes nothing else; "worse" is false, too,
and so is what a study tells of the change from the one to the other.
*Lean* and *off*: `perse compare` by MAE of two judges that are as far off on average. All readers lean one way or the other, and each judge the
other way; or one judge is off by a point here and there, and the other right of all but one reader in five, ten or twenty, and off by five points there.
*Truly*: one judge is right, and the other off by a point in a quarter of the texts, in half or in nine of ten: here "better" is true.
*Gains*: `perse study counterfactual` of a judge that reads a text and no profile, asked under four profiles, each time with some noise.
*Rare*: of two answers the reader and the judge both nearly always give the same one, and depart from it independently of each other.
A nominal rate is 2.5% (one side of a 95% interval); with 400 worlds a rate of 2.5% is seen as 1.0% to 4.0%.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.alignment import Fold
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.comparing.results import LEVEL
from perse.evaluation.evaluate import evaluate
from perse.evaluation.stats.correlation import IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import bootstrap_interval
from perse.evaluation.stats.significance import paired_permutation
from perse.evaluation.verdict import EVENED
from perse.judgement import Judgement, Status, Tokens
from perse.records import (
    Choice,
    ChoiceReference,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileComparison,
    ProfileReview,
    ReviewReference,
)
from perse.studies.frame.measuring import Measured
from perse.studies.frame.summarizing import SharedResamples, minus, verdict

READERS, TEXTS = 40, 6
COPYING_IS_RIGHT = 0.45
DEPARTING = (0.05, 0.1, 0.2)
"""The share of answers that are not the usual one, of the readers' and of the judge's."""
FEW_AND_MANY = (12, 40)
"""Readers, where errors in MAE are looked at."""
FAR_OFF = (0.05, 0.1, 0.2)
"""The share of readers of whom a judge is five points off."""
VARIED = (3, 20)
"""Readers, of 79, to whom the constant judge says different things."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=400)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one kind of worlds, or all that begin so, such as: ties, rare")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples = 2, 100
    kinds: dict[str, Callable[[np.random.Generator, int], dict[str, bool]]] = {
        "below chance": _below_chance,
        "copying": partial(_copying, right=COPYING_IS_RIGHT),
        "coins": partial(_copying, right=0.5),
        **{f"constant but for {few} readers": partial(_constant, few=few) for few in VARIED},
        **{f"lean: {readers} readers": partial(_apart, readers=readers, world=_lean) for readers in FEW_AND_MANY},
        **{
            f"off: {share} of {readers} readers": partial(_apart, readers=readers, world=partial(_off, share=share))
            for readers in FEW_AND_MANY
            for share in FAR_OFF
        },
        "ties": _ties,
        **{
            f"truly: {often} of {readers} readers": partial(_apart, readers=readers, world=partial(_truly, often=often))
            for readers in (*FEW_AND_MANY, 79)
            for often in (0.25, 0.5, 0.9)
        },
        **{f"rare: {share}": partial(_rare, share=share) for share in DEPARTING},
        "gains": _gains,
    }
    found: dict[str, Counter[str]] = {}
    for nth, (name, world) in enumerate(kinds.items()):
        if not name.startswith(options.only or ""):
            continue
        found[name] = Counter()
        for number in track(range(options.worlds), description=name, console=Console(stderr=True)):
            found[name].update(world(np.random.default_rng((options.seed, nth, number)), options.resamples))
    shares = {name: {rule: round(times / options.worlds, 4) for rule, times in rules.items()} for name, rules in found.items()}
    print(json.dumps({"worlds": options.worlds, "called so": shares}, indent=1))


def _gains(generator: np.random.Generator, resamples: int) -> dict[str, bool]:
    """Whether some gain of the own profile is shown, or some difference either way: of three as one family, and each by itself."""
    reader = np.repeat(np.arange(READERS), TEXTS)
    size = len(reader)
    gold = np.clip(np.round(6 + generator.normal(0, 0.8, READERS)[reader] + generator.normal(0, 1.5, size)), 1, 10)
    text = 6 + 0.4 * (gold - 6) + generator.normal(0, 1, size)
    own, *others = (("judge", profile) for profile in ("own", "empty", "another", "dealt anew"))
    values = {place: (text + generator.normal(0, 0.7, size),) for place in (own, *others)}
    shared = SharedResamples(gold, reader, Bootstrap.over(reader, resamples=resamples, seed=0))
    found = Measured(shared, ("kendall",), "kendall", values, (), (), ())
    told = {
        "": found.told_together(own, others, seed=0),
        ", each by itself": [found.told(own, other) for other in others],
    }
    shown = {how: [one for one in said if "not shown" not in one] for how, said in told.items()}
    return {f"a gain{how}": any(one.startswith("+") for one in kept) for how, kept in shown.items()} | {
        f"a difference{how}": bool(kept) for how, kept in shown.items()
    }


def _below_chance(generator: np.random.Generator, resamples: int) -> dict[str, bool]:
    """A reader's other scores, which are shown, are on average lower where the asked one is high: all six have one sum."""
    examples = []
    for reader in range(READERS):
        golds = generator.permutation(np.arange(2, 2 + TEXTS))
        for at, gold in enumerate(golds):
            others = [int(one) for n, one in enumerate(golds) if n != at]
            past = tuple(ProfileReview(text=f"{n}", review="r", score=one) for n, one in enumerate(others))
            examples.append(
                PointwiseExample(
                    id=f"{reader}-{at}",
                    reviewer_id=f"u{reader}",
                    item_id=f"{reader}-{at}",
                    profile=past,
                    query="q",
                    reference=ReviewReference(review="r", score=int(gold)),
                )
            )
    coin = [_said(one.id, str(generator.integers(1, 11)), "pointwise") for one in examples]
    result = evaluate(examples, coin, train=None, resamples=resamples)
    apart = next((one for one in result.differences if one.baseline == "profile average"), None)
    return {
        "verdict": result.conclusions[0].standing == "better",
        "above the baseline alone": apart is not None and apart.estimate.above_zero,
    }


def _copying(generator: np.random.Generator, resamples: int, *, right: float) -> dict[str, bool]:
    examples = []
    for reader in range(READERS):
        for at in range(TEXTS):
            choice: Choice = "A" if generator.random() < 0.5 else "B"
            other: Choice = "B" if choice == "A" else "A"
            shown = choice if generator.random() < right else other
            examples.append(
                PairwiseExample(
                    id=f"{reader}-{at}",
                    reviewer_id=f"u{reader}",
                    aspect="Ending",
                    profile=(ProfileComparison(text_a="a", text_b="b", preference={"Ending": shown}),),
                    query=Pair(text_a=f"x{reader}-{at}", text_b=f"y{reader}-{at}"),
                    reference=ChoiceReference(preference=choice),
                )
            )
    coin = [_said(one.id, "A" if generator.random() < 0.5 else "B", "pairwise") for one in examples]
    result = evaluate(examples, coin, train=None, resamples=resamples)
    apart = next(one for one in result.differences if one.baseline == "copy the example")
    return {
        "verdict": result.conclusions[0].standing == "better",
        "worse": result.conclusions[0].standing == "worse",
        "worse than chance": result.differences[0].estimate.below_zero,
        "above the baseline alone": apart.estimate.above_zero,
    }


def _constant(generator: np.random.Generator, resamples: int, *, few: int) -> dict[str, bool]:
    """Either judge may be called better. What was tested before is the mean of one over 79 readers minus that of the other over a few."""
    examples = [
        PointwiseExample(
            id=f"{reader}-{at}",
            reviewer_id=f"u{reader}",
            item_id=f"{reader}-{at}",
            profile=(ProfileReview(text="t", review="r", score=5),),
            query="q",
            reference=ReviewReference(review="r", score=int(generator.integers(1, 11))),
        )
        for reader in range(79)
        for at in range(TEXTS)
    ]
    varied = [_said(one.id, str(generator.integers(1, 11)), "pointwise") for one in examples]
    flat = [
        _said(one.id, str(generator.integers(1, 11)) if int(one.reviewer_id[1:]) < few else "5", "pointwise")
        for one in examples
    ]
    found = compare(
        {"varied": varied, "flat": flat},
        [Fold(examples, None)],
        resamples=resamples,
        permutations=resamples,
        metrics=["within_kendall"],
        against="flat",
    )
    gold, one, other = (
        np.array(values, dtype=float) for values in ([e.truth for e in examples], _labels(varied), _labels(flat))
    )
    [before] = paired_permutation(
        lambda bootstrap, true, said: {"within_kendall": bootstrap.resampled("within_kendall", true, said)},
        gold,
        one=one,
        other=other,
        reviewer=np.array([int(e.reviewer_id[1:]) for e in examples]),
        permutations=resamples,
        seed=0,
    ).values()
    return {
        "verdict": found.pairings[0].contrasts[0].better is not None,
        "p over each side's own readers": before.p is not None and before.p <= LEVEL,
    }


def _lean(generator: np.random.Generator, reader: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    leaning = generator.choice([-1, 1], reader.max() + 1) * generator.integers(1, 4, reader.max() + 1)
    gold = 6 + leaning[reader] + generator.integers(-1, 2, len(reader))
    return gold, np.full_like(gold, 5), np.full_like(gold, 7)


def _off(generator: np.random.Generator, reader: IntArray, *, share: float) -> tuple[IntArray, IntArray, IntArray]:
    gold = generator.integers(5, 7, len(reader))
    wrong = (generator.random(reader.max() + 1) < share)[reader]
    by_one = generator.random(len(reader)) < 5 * share
    far = np.where(gold == 5, 10, 1)
    return gold, np.where(by_one, gold + generator.choice([-1, 1], len(gold)), gold), np.where(wrong, far, gold)


def _truly(generator: np.random.Generator, reader: IntArray, *, often: float) -> tuple[IntArray, IntArray, IntArray]:
    gold = generator.integers(2, 10, len(reader))
    return gold, gold, np.where(generator.random(len(reader)) < often, gold + generator.choice([-1, 1], len(gold)), gold)


def _apart(
    generator: np.random.Generator,
    resamples: int,
    *,
    readers: int,
    world: Callable[[np.random.Generator, IntArray], tuple[IntArray, IntArray, IntArray]],
) -> dict[str, bool]:
    """Of two judges with the same MAE, by what they say on average over all readers there could be."""
    reader = np.repeat(np.arange(readers), TEXTS)
    gold, *said = world(generator, reader)
    examples = [
        PointwiseExample(
            id=f"{at}",
            reviewer_id=f"u{who}",
            item_id=f"{at}",
            profile=(ProfileReview(text="t", review="r", score=5),),
            query="q",
            reference=ReviewReference(review="r", score=int(score)),
        )
        for at, (who, score) in enumerate(zip(reader, gold, strict=True))
    ]
    judges = {
        name: [_said(f"{at}", str(label), "pointwise") for at, label in enumerate(labels)]
        for name, labels in zip(("one", "other"), said, strict=True)
    }
    found = compare(judges, [Fold(examples, None)], resamples=resamples, permutations=resamples, metrics=["mae"], against="one")
    contrast = found.pairings[0].contrasts[0]
    told = contrast.better is not None
    return {
        "verdict": told and not contrast.of_these_readers,
        "of these readers": told and contrast.of_these_readers,
        "p alone": contrast.p is not None and contrast.p <= LEVEL,
        "interval alone": contrast.estimate.above_zero or contrast.estimate.below_zero,
    }


def _ties(generator: np.random.Generator, resamples: int) -> dict[str, bool]:
    examples, said = [], []
    for reader in range(60):
        scores = np.clip(np.round(generator.normal(6, 1.2) + generator.normal(0, 1.5, 8)), 1, 10).astype(int)
        for at in range(4):
            shown = [int(scores[n]) for n in generator.choice([n for n in range(8) if n != at], 3, replace=False)]
            examples.append(
                PointwiseExample(
                    id=f"{reader}-{at}",
                    reviewer_id=f"u{reader}",
                    item_id=f"{reader}-{at}",
                    profile=tuple(ProfileReview(text=f"{n}", review="r", score=one) for n, one in enumerate(shown)),
                    query="q",
                    reference=ReviewReference(review="r", score=int(scores[at])),
                )
            )
            value = float(np.clip(np.mean(shown) + generator.normal(0, 0.02), 1, 9.99))
            expected = {str(int(value)): 1 - value % 1, str(int(value) + 1): value % 1}
            said.append(_said(f"{reader}-{at}", str(round(value)), "pointwise").model_copy(update={"distribution": expected}))
    result = evaluate(examples, said, train=None, resamples=resamples)
    by_ties = any(one.baseline == EVENED for one in result.differences)
    shown_apart = any(
        one.baseline == "profile average" and (one.estimate.above_zero or one.estimate.below_zero) for one in result.differences
    )
    study = SharedResamples.over(examples, resamples=resamples, seed=0)
    average = np.array([np.mean([past.score for past in one.profile]) for one in examples])
    jittered = np.array([sum(int(label) * share for label, share in (one.distribution or {}).items()) for one in said])
    change = minus([(1.0, jittered)], [(1.0, average)])
    return {
        "verdict": result.conclusions[0].standing in ("better", "worse"),
        "tau-b alone": by_ties or shown_apart,
        "study": "not shown" not in study.told("kendall", change),
        "study, tau-b alone": "not shown" not in verdict(study.value("kendall", change)),
    }


def _rare(generator: np.random.Generator, resamples: int, *, share: float) -> dict[str, bool]:
    """The bootstrap alone is the interval that was shown before departures were counted (`perse.evaluation.stats.departures`)."""
    rows = [(reader, at) for reader in range(READERS) for at in range(8)]
    gold, judged = np.where(generator.random((2, len(rows))) < share, 1, 5)
    examples = [
        PointwiseExample(
            id=f"{reader}-{at}",
            reviewer_id=f"u{reader}",
            item_id=f"{reader}-{at}",
            profile=(),
            query="q",
            reference=ReviewReference(review="r", score=int(score)),
        )
        for (reader, at), score in zip(rows, gold, strict=True)
    ]
    said = [_said(one.id, str(label), "pointwise") for one, label in zip(examples, judged, strict=True)]
    standing = evaluate(examples, said, train=None, resamples=resamples).conclusions[0].standing
    bootstrap = Bootstrap.over(np.array([reader for reader, _ in rows]), resamples=resamples, seed=0)
    resampled = bootstrap.resampled("kendall", gold.astype(float), judged.astype(float))
    alone = bootstrap_interval(resampled, reviewers=READERS)
    return {
        "better": standing == "better",
        "worse": standing == "worse",
        "undefined": standing == "undefined",
        "bootstrap alone: above 0": alone.low is not None and alone.low > 0,
        "bootstrap alone: below 0": alone.high is not None and alone.high < 0,
    }


def _labels(given: list[Judgement]) -> list[float]:
    return [float(one.label or 0) for one in given]


def _said(name: str, label: str, question: str) -> Judgement:
    return Judgement(
        id=name,
        question=question,
        status=Status.OK,
        label=label,
        text=label,
        model="m",
        k_effective=1,
        tokens=Tokens(prompt=1, cached=0, generated=1),
    )


if __name__ == "__main__":
    main()
