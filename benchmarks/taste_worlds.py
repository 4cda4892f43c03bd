"""How often "it orders a reader's texts better" is said of a judge that does not: `perse evaluate` within readers, and `perse compare` by Kendall within readers.

    python benchmarks/taste_worlds.py --worlds 400

Texts differ in quality, and each reader likes what they like beside that. Three other readers said of each text what the unpersonalized row knows. *None*: the
judge knows nothing. *Equal*: it knows what three others said, as much as the row. *Rounded*: the same, as labels. *Halves*: it says what the row says, rounded to
halves, which is the row with less in it and more ties. *Jittered*: the row with a noise of 0.02, which breaks its ties. Of none is "better" true: 2.5 of 100 are
meant. *Compared*: two judges that are worth the same, of which either may be called better by `perse compare --metric within_kendall`: 5 are meant.
*Knows*: a judge that knows half of a reader's taste, for which "better" is true. (What `perse evaluate` resamples and compares is called here without its other
rows.)
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.alignment import Fold
from perse.evaluation.baselines.bias import fit_bias_model
from perse.evaluation.baselines.ratings import UNPERSONALIZED
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.differences import score_differences
from perse.evaluation.pointwise_rows import Scores
from perse.evaluation.shared_texts import to_draw, works
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.verdict import WITHIN
from perse.judgement import Judgement, Status, Tokens
from perse.records import PointwiseExample, ProfileReview, ReviewReference
from perse.scale import SCORES

OTHERS = 3
"""Training readers of each text, and readers whom a judge that is equal knows."""
KINDS = ("none", "equal", "rounded", "halves", "jittered", "knows")
OF_A_TEXT = (1, 6)
"""Readers of a text, on average."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--readers", type=int, default=40)
    parser.add_argument("--each", type=int, nargs="+", default=[3, 12], help="texts that a reader reads")
    parser.add_argument("--shared", type=int, nargs="+", default=OF_A_TEXT, help="readers of a text, on average")
    parser.add_argument("--kinds", choices=(*KINDS, "compared"), nargs="+", default=[*KINDS, "compared"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples, options.each, options.shared = 1, 100, [4], [3]
    print("| texts each | readers a text | judge | called better | within above 0 | no interval |")
    print("|---:|---:|---|---:|---:|---:|")
    for each in options.each:
        for shared in options.shared:
            found: dict[str, Counter[str]] = {kind: Counter() for kind in options.kinds}
            for number in track(range(options.worlds), description=f"{each}, {shared}", console=Console(stderr=True)):
                generator = np.random.default_rng((options.seed, each, shared, number))
                world = _World.drawn(generator, options.readers, each, shared)
                for kind in options.kinds:
                    found[kind].update(world.told(kind, options.resamples))
            for kind, counts in found.items():
                shares = (100 * counts[what] / options.worlds for what in ("better", "above 0", "no interval"))
                print(f"| {each} | {shared} | {kind} |", *(f"{share:.1f} |" for share in shares), flush=True)


class _World:
    """What is asked, what training knows, and what each judge says, (n,)."""

    def __init__(self, examples: Sequence[PointwiseExample], row: FloatArray, said: dict[str, FloatArray]) -> None:
        self.examples, self.row, self.said = examples, row, {kind: np.clip(one, 1, 10) for kind, one in said.items()}

    @classmethod
    def drawn(cls, generator: np.random.Generator, readers: int, each: int, shared: int) -> _World:
        texts = max(each, readers * each // shared)
        item = np.concatenate([generator.choice(texts, each, replace=False) for _ in range(readers)])
        if shared == 1:
            item = np.arange(readers * each)
        reader = np.repeat(np.arange(readers), each)
        quality, leniency = generator.normal(0, 1, texts), generator.normal(0, 1, readers)
        taste = generator.normal(0, 1.3, len(item))

        def scored(at: IntArray, lenient: FloatArray, own: FloatArray) -> FloatArray:
            return np.clip(np.round(6 + quality[at] + lenient + own), 1, 10)

        gold = scored(item, leniency[reader], taste)
        read = np.repeat(np.arange(texts), OTHERS)
        spread = (texts, OTHERS)
        of_train, of_judge, of_other = (
            scored(read, generator.normal(0, 1, len(read)), generator.normal(0, 1.3, len(read))).reshape(spread)
            for _ in range(3)
        )
        examples = [
            _example(f"{n}", f"u{who}", f"t{at}", int(score))
            for n, (who, at, score) in enumerate(zip(reader, item, gold, strict=True))
        ]
        train = [
            _example(f"train{at}-{n}", f"v{(at * OTHERS + n) % (texts * OTHERS // each)}", f"t{at}", int(score))
            for (at, n), score in np.ndenumerate(of_train)
        ]
        row = fit_bias_model(train).predict([one.model_copy(update={"profile": ()}) for one in examples])
        equal = of_judge.mean(axis=1)[item]
        said = {
            "none": generator.uniform(1, 10, len(item)),
            "equal": equal,
            "other": of_other.mean(axis=1)[item],
            "rounded": np.floor(equal + 0.5),
            "halves": np.floor(2 * row + 0.5) / 2,
            "jittered": row + generator.normal(0, 0.02, len(item)),
            "knows": equal + 0.5 * taste,
        }
        return cls(examples, row, said)

    def told(self, kind: str, resamples: int) -> list[str]:
        if kind == "compared":
            sides = {name: self._judged(name) for name in ("equal", "other")}
            found = compare(
                sides,
                [Fold(self.examples, None)],
                resamples=resamples,
                permutations=resamples,
                metrics=["within_kendall"],
                against="equal",
            )
            [contrast, *_] = found.pairings[0].contrasts
            return ["better"] * (contrast.p is not None and contrast.better is not None)
        scores, judged = self._scores(resamples), self.said[kind]
        within = scores.bootstrap.one(WITHIN, scores.gold, judged)
        values = {"judge (expected)": judged, UNPERSONALIZED: self.row}
        [*_, apart] = score_differences("judge", values, scores, profiles=False)
        told = ["better"] * (within.above_zero and apart.estimate.above_zero) + ["above 0"] * within.above_zero
        return told + ["no interval"] * (apart.estimate.interval.low is None)

    def _scores(self, resamples: int) -> Scores:
        """As `perse evaluate` has them, with its own choice of what is drawn."""
        reader = np.unique([one.reviewer_id for one in self.examples], return_inverse=True)[1].astype(np.int64)
        item = works(self.examples) if to_draw(self.examples, "auto") == "two-way" else None
        gold = np.array([one.truth for one in self.examples], dtype=np.float64)
        bootstrap = Bootstrap.over(reader, resamples=resamples, seed=0, item=item)
        return Scores(gold, reader, np.zeros(bootstrap.reviewers, dtype=np.int64), bootstrap, SCORES)

    def _judged(self, kind: str) -> list[Judgement]:
        return [_said(one.id, float(value)) for one, value in zip(self.examples, self.said[kind], strict=True)]


def _example(name: str, reader: str, text: str, score: int) -> PointwiseExample:
    past = (ProfileReview(text="past", review="r", score=5),)
    return PointwiseExample(
        id=name, reviewer_id=reader, item_id=text, profile=past, query=text, reference=ReviewReference(review="r", score=score)
    )


def _said(name: str, value: float) -> Judgement:
    low = min(int(value), 9)
    return Judgement(
        id=name,
        question="pointwise",
        status=Status.OK,
        label=str(round(value)),
        distribution={str(low): 1 - (value - low), str(low + 1): value - low},
        text=str(round(value)),
        model="m",
        k_effective=1,
        tokens=Tokens(prompt=1, cached=0, generated=1),
    )


if __name__ == "__main__":
    main()
