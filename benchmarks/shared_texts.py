"""How often a 95% interval of a correlation within readers, of all items, or of MAE covers the truth where readers share texts, and how wide it is.

    python benchmarks/shared_texts.py --simulations 500

Every reader reads some of the texts, drawn at random, so that a text has 1, 3, 9 or 36 readers on average. `--popularity` gives some more readers than
others: *control*, the first text is read by all; *few*, four have six in ten readings; *zipf*, the n-th is drawn as often as 1 / n. Texts differ in quality,
which two judges of equal worth see in part. *By text*: what a judge misjudges is the text's, so all of its readers share the error.
*By answer*: every error is its own. `reviewers` and `two-way` are the intervals of `--resample`, `product` is the two-way bootstrap
as it stands, without what draws it together. Width is in units of the interval that the estimates' true spread would give. The
truth of the value is its mean over the simulations; of the difference of the judges it is 0. A nominal 95% is met up to chance by
95 +- 2 points with 500 simulations.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import FEWEST_TEXTS, bootstrap_interval
from perse.evaluation.stats.resamples import Resamples
from perse.results.result import Interval

COLUMNS = ("within_kendall", "kendall", "mae")
METHODS = ("reviewers", "two-way", "product")
ERRORS = {"by text": (0.8, 0.4), "by answer": (0.0, 0.8)}
"""Standard deviations of a judge's error: of each text, of each answer."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=500)
    parser.add_argument("--resamples", type=int, default=400)
    parser.add_argument("--reviewers", type=int, nargs="+", default=[36, 108])
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 3, 9, 36], help="of a text, on average")
    parser.add_argument("--each", type=int, nargs="+", default=[4, 10], help="texts that a reader reads")
    parser.add_argument("--popularity", choices=("even", "control", "few", "zipf"), default="even")
    parser.add_argument("--columns", choices=COLUMNS, nargs="+", default=COLUMNS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="the shares as JSON on stdout instead of the table")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.simulations, options.resamples, options.reviewers, options.each = 2, 100, [36], [10]
    found = [
        row
        for size in options.reviewers
        for each in options.each
        for readers in options.readers
        if size * each >= FEWEST_TEXTS * readers
        for errors in ERRORS
        if (row := _simulated(size, each, readers, errors, options=options))
    ]
    print(json.dumps({**vars(options), "found": found}, indent=2) if options.json else _markdown(found, options.columns))


def _simulated(size: int, each: int, readers: int, errors: str, *, options: argparse.Namespace) -> dict[str, Any]:
    texts = max(each, size * each // readers)
    found = []
    for number in track(
        range(options.simulations), description=f"{size} reviewers, {each} of {texts} texts", console=Console(stderr=True)
    ):
        seed = (options.seed, size, each, readers, number)
        drawn = _readings(size, texts, each, options.popularity, generator=np.random.default_rng((*seed, 1)))
        found.append(_one(size, texts, drawn, errors, options.columns, seed=seed, resamples=options.resamples))
    columns = {name: _summed([one[name] for one in found]) for name in options.columns}
    return {"size": size, "each": each, "texts": texts, "readers": readers, "errors": errors, "columns": columns}


def _summed(found: Sequence[tuple[list[float], list[list[tuple[float, float]]]]]) -> dict[str, dict[str, list[float]]]:
    """How often the truth of the value and of the difference is covered, and the width, by method."""
    estimates, bounds = np.array([one for one, _ in found]), np.array([one for _, one in found])  # (S, 2), (S, methods, 2, 2)
    truth = np.array([estimates[:, 0].mean(), 0.0])
    covers = ((bounds[..., 0] <= truth) & (truth <= bounds[..., 1])).mean(axis=0)  # (methods, 2)
    width = (bounds[..., 1] - bounds[..., 0]).mean(axis=0) / (2 * 1.96 * estimates.std(axis=0))
    return {
        method: {"covers": [float(share) for share in covers[nth]], "width": [float(one) for one in width[nth]]}
        for nth, method in enumerate(METHODS)
    }


def _one(
    size: int, texts: int, drawn: IntArray, errors: str, columns: Sequence[str], *, seed: tuple[int, ...], resamples: int
) -> dict[str, tuple[list[float], list[list[tuple[float, float]]]]]:
    """By column the value of a judge and its difference from another's, and the interval of both by each method."""
    generator = np.random.default_rng(seed)
    gold, judges, reviewer, item = _world(size, texts, drawn, ERRORS[errors], generator=generator)
    draws = int(generator.integers(2**31))
    by_reviewers = Bootstrap.over(reviewer, resamples=resamples, seed=draws)
    both = Bootstrap.over(reviewer, resamples=resamples, seed=draws, item=item)
    once = Bootstrap(Resamples(reviewer, np.ones((size, 1), dtype=np.float32)))
    plain = [once.resampled_scores(gold, judge) for judge in judges]
    resamples_of = [
        (bootstrap, [bootstrap.resampled_scores(gold, judge) for judge in judges]) for bootstrap in (by_reviewers, both)
    ]
    found = {}
    for column in columns:
        ours, theirs = (float(one[column][0]) for one in plain)
        values = [ours, ours - theirs]
        bounds = []
        for bootstrap, (one, other) in resamples_of:
            resampled = (one[column], one[column] - other[column])
            bounds.append(
                [
                    _bounds(bootstrap.interval(value, draw, reviewers=size))
                    for value, draw in zip(values, resampled, strict=True)
                ]
            )
        fewer = min(size, int(item.max()) + 1)
        bounds.append([_bounds(bootstrap_interval(draw[:resamples], reviewers=fewer)) for draw in resampled])
        found[column] = (values, bounds)
    return found


def _readings(size: int, texts: int, each: int, popularity: str, *, generator: np.random.Generator) -> IntArray:
    """(size * each,) the texts that each reader reads, reader by reader."""
    if popularity == "control":
        return np.concatenate([[0, *(1 + generator.permutation(texts - 1)[: each - 1])] for _ in range(size)])
    weights = {
        "even": np.ones(texts),
        "few": np.where(np.arange(texts) < 4, 0.15 * max(1, texts - 4) / 0.4, 1.0),
        "zipf": 1 / np.arange(1, texts + 1),
    }[popularity]
    return np.concatenate(
        [generator.choice(texts, each, replace=False, p=weights / weights.sum()) for _ in range(size)]
    ).astype(np.int64)


def _world(
    size: int, texts: int, drawn: IntArray, spread: tuple[float, float], *, generator: np.random.Generator
) -> tuple[FloatArray, list[FloatArray], IntArray, IntArray]:
    reviewer = np.repeat(np.arange(size), len(drawn) // size)
    quality, taste = generator.normal(0, 1, texts), generator.normal(0, 1.3, len(drawn))
    leniency = generator.normal(0, 1.2, size)[reviewer]
    gold = np.clip(np.round(6.5 + leniency + quality[drawn] + taste), 1, 10)
    judges = [
        0.5 * quality[drawn]
        + 0.2 * generator.normal(0.5, 0.3, size)[reviewer] * taste
        + generator.normal(0, spread[0], texts)[drawn]
        + generator.normal(0, spread[1], len(drawn))
        for _ in range(2)
    ]
    _, item = np.unique(drawn, return_inverse=True)
    return gold, judges, reviewer, item.astype(np.int64)


def _bounds(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None and interval.high is not None, interval.reason
    return interval.low, interval.high


def _markdown(found: list[dict[str, Any]], columns: Sequence[str]) -> str:
    head = "".join(f" {method}: value | difference |" for method in METHODS)
    lines = []
    for column in columns:
        lines += [
            f"{column}: covered (width)",
            "",
            f"| reviewers | texts each | readers a text | judge errs |{head}",
            "|---:|---:|---:|---|" + "---:|" * 2 * len(METHODS),
        ]
        for row in found:
            shown = row["columns"][column]
            pairs = [pair for method in METHODS for pair in zip(shown[method]["covers"], shown[method]["width"], strict=True)]
            cells = "".join(f" {share:.1%} ({width:.2f}) |" for share, width in pairs)
            lines.append(f"| {row['size']} | {row['each']} | {row['readers']} | {row['errors']} |{cells}")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
