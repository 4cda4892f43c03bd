"""How often a 95% interval of accuracy covers the truth where the texts of pairs have several readers, or stand in several pairs.

    python benchmarks/shared_pairs.py --simulations 300

Readers choose the better of two texts by the texts' quality and a taste of their own; the judge errs by text, in the same way for all
who read it, so it is right or wrong about a pair for everybody. *Pairs alone*: each text stands in one pair. *Stories*: each pair is of
two of a story's four texts. *Web*: each pair is of any two texts, and all hang together. `reviewers` resamples the readers, `two-way` readers
and what hangs together (`perse.evaluation.shared_texts.works`), which `perse evaluate` takes where there is enough of it. *0.5 left out*: by a judge
whose errors drown the quality, whose true accuracy is one half.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.shared_texts import to_draw, works
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.records import ChoiceReference, Pair, PairwiseExample
from perse.results.result import Interval

WORLDS = {"pairs alone": 2, "stories": 4, "web": 0}
"""Texts among which pairs are drawn; 0 for all."""
METHODS = ("reviewers", "two-way")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=300)
    parser.add_argument("--reviewers", type=int, nargs="+", default=[36, 108])
    parser.add_argument("--texts", type=int, nargs="+", default=[48, 192])
    parser.add_argument("--each", type=int, default=10, help="pairs of a reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="the shares as JSON on stdout instead of the table")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.simulations, options.reviewers, options.texts = 2, [36], [48]
    found = [
        _simulated(reviewers, texts, world, options=options)
        for reviewers in options.reviewers
        for texts in options.texts
        for world in WORLDS
    ]
    print(json.dumps({**vars(options), "found": found}, indent=2) if options.json else _markdown(found))


def _simulated(reviewers: int, texts: int, world: str, *, options: argparse.Namespace) -> dict[str, object]:
    values, bounds, left_out, taken = [], [], [], []
    console = Console(stderr=True)
    for number in track(
        range(options.simulations), description=f"{reviewers} reviewers, {texts} texts, {world}", console=console
    ):
        generator = np.random.default_rng((options.seed, reviewers, texts, WORLDS[world], number))
        examples, judged, blind = _world(reviewers, texts, WORLDS[world], options.each, generator=generator)
        taken.append(to_draw(examples, "auto"))
        reviewer = np.repeat(np.arange(reviewers), options.each)
        both = [Bootstrap.over(reviewer, resamples=1, seed=number, item=item) for item in (None, works(examples))]
        every = np.ones(len(examples), dtype=bool)
        values.append(judged.mean())
        bounds.append([_bounds(one.share(judged, every).interval) for one in both])
        left_out.append([not low <= 0.5 <= high for low, high in (_bounds(one.share(blind, every).interval) for one in both)])
    truth, ends = float(np.mean(values)), np.array(bounds)
    covers = ((ends[..., 0] <= truth) & (truth <= ends[..., 1])).mean(axis=0)
    width = (ends[..., 1] - ends[..., 0]).mean(axis=0) / (2 * 1.96 * np.std(values))
    shown = {
        method: {"covers": float(covers[nth]), "width": float(width[nth]), "left_out": float(np.mean(left_out, axis=0)[nth])}
        for nth, method in enumerate(METHODS)
    }
    return {"size": reviewers, "texts": texts, "world": world, "taken": max(set(taken), key=taken.count), **shown}


def _world(
    reviewers: int, texts: int, among: int, each: int, *, generator: np.random.Generator
) -> tuple[list[PairwiseExample], FloatArray, FloatArray]:
    """Pairs, and for each whether a judge that knows half of the quality is right, and whether one that knows nothing is."""
    quality, wrong, guess = generator.normal(0, 1, texts), generator.normal(0, 0.8, texts), generator.normal(0, 1, texts)
    seen = 0.5 * quality + wrong
    examples, judged, blind = [], [], []
    for reader in range(reviewers):
        for number in range(each):
            group = int(generator.integers(texts // among)) * among if among else 0
            one, other = (group + generator.permutation(among or texts)[:2]).tolist()
            prefers = quality[one] - quality[other] + generator.normal(0, 1.3) > 0
            judged.append(float((seen[one] > seen[other]) == prefers))
            blind.append(float((guess[one] > guess[other]) == prefers))
            query = Pair(text_a=f"text {one}", text_b=f"text {other}")
            examples.append(
                PairwiseExample(
                    id=f"{reader}-{number}",
                    reviewer_id=f"r{reader:03}",
                    aspect="Ending",
                    query=query,
                    reference=ChoiceReference(preference="A" if prefers else "B"),
                    profile=(),
                )
            )
    return examples, np.array(judged), np.array(blind)


def _bounds(interval: Interval) -> tuple[float, float]:
    return (interval.low, interval.high) if interval.low is not None and interval.high is not None else (np.nan, np.nan)


def _markdown(found: list[dict[str, object]]) -> str:
    head = "".join(f" {method}: covered (width) | 0.5 left out |" for method in METHODS)
    lines = [f"| reviewers | texts | pairs | `auto` takes |{head}", "|---:|---:|---|---|" + "---:|" * 2 * len(METHODS)]
    for row in found:
        cells = ""
        for method in METHODS:
            shown = row[method]
            assert isinstance(shown, dict)
            known = not np.isnan(shown["width"])
            cells += (
                f" {shown['covers']:.1%} ({shown['width']:.2f}) | {shown['left_out']:.1%} |" if known else " no interval | |"
            )
        lines.append(f"| {row['size']} | {row['texts']} | {row['world']} | {row['taken']} |{cells}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
