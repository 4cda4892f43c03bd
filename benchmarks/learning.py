"""Do two ways of training differ, over seeds: scored runs of several judges of each arm, as one table.

    python benchmarks/learning.py per_example=runs/a-0,runs/a-1,runs/a-2 per_reviewer_epoch=runs/b-0,runs/b-1,runs/b-2

An arm's value is the mean over its judges of Kendall tau-b between expected and true score, of the items that all judges
answered. Its variance is that over resampled readers (all of their items; the same resamples for every judge) and that
between seeds by their number: what differs between two trainings must not be taken for what differs between two arms. Intervals
are 1.96 standard errors wide on each side; with three seeds the second part is known badly. The detectable difference is what
such a comparison would have shown in four of five repetitions: 1.96 + 0.84 standard errors. Items whose text some training
reader reviewed stand apart from the others.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from perse.batch.comparing import gather
from perse.data.load import load_examples
from perse.evaluation.alignment import align
from perse.evaluation.predictions import baseline_predictions, expected_values, gold_scores
from perse.evaluation.stats.correlation import BoolArray, Convention, FloatArray, IntArray, kendall, within_reviewers
from perse.evaluation.stats.estimates import Bootstrap
from perse.files.runlog import read_manifest
from perse.models import finding as models
from perse.models import opening
from perse.records import PointwiseExample
from perse.scale import SCORES
from perse.settings.training import TrainConfig
from perse.training.rows.prepare import prepare, renderer_for

DETECTED = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
"""Standard errors of a difference that a two-sided test at 5% finds in four of five repetitions."""


@dataclass(frozen=True)
class Arm:
    """Kendall of each judge (S,), and each in the same R resamples of readers (S, R)."""

    values: FloatArray
    resampled: FloatArray

    @property
    def value(self) -> float:
        return float(self.values.mean())

    @property
    def between_seeds(self) -> float:
        """Variance of the mean over seeds that is due to the seeds; 0 of a single judge."""
        return float(self.values.var(ddof=1) / len(self.values)) if len(self.values) > 1 else 0.0

    def error(self, less: Arm | None = None) -> float:
        """Standard error of the value, or of its difference from another arm's."""
        draws = self.resampled.mean(axis=0) - (0.0 if less is None else less.resampled.mean(axis=0))
        return math.sqrt(np.nanvar(draws, ddof=1) + self.between_seeds + (0.0 if less is None else less.between_seeds))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arms", nargs="+", metavar="NAME=RUN,RUN,...", help="scored runs, one for each seed")
    parser.add_argument(
        "--trained", type=Path, help="a training run: seen are the films it was trained on, not all it might have been"
    )
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.resamples = 50
    arms = {name: [Path(run) for run in runs.split(",")] for name, _, runs in (arm.partition("=") for arm in options.arms)}
    seen = None if options.trained is None else films_of(options.trained)
    print("\n".join(table(arms, seen=seen, resamples=options.resamples, seed=options.seed)))


def films_of(run: Path) -> set[str]:
    """The films (item ids) of all examples in the rows of a training run."""
    config = TrainConfig.model_validate({**read_manifest(run)["run"]["config"], "output": str(run)})
    base = models.find(config.model.path)
    prepared = prepare(config, renderer_for(config, base, opening.tokenizer(base)))
    ids = {branch.example_id for row in prepared.schedule.rows for branch in row}
    found: set[str] = set()
    for epoch in range(math.ceil(prepared.schedule.epochs)):  # where profiles are drawn by epoch, each has examples of its own
        examples = load_examples(config.data.path, split=config.data.split, fold=config.data.fold, epoch=epoch).examples
        found |= {one.item_id for one in examples if one.id in ids and isinstance(one, PointwiseExample) and one.item_id}
    return found


def table(arms: Mapping[str, Sequence[Path]], *, seen: set[str] | None, resamples: int, seed: int) -> list[str]:
    """The comparison as Markdown lines.

    Args:
        seen: films that the judges were trained on; by default all of the training side.
    """
    folders = [run for runs in arms.values() for run in runs]
    gathered = gather(folders)
    items = align(gathered.folds, gathered.judges)
    names = iter(gathered.judges)
    of_arm = {arm: [next(names) for _ in runs] for arm, runs in arms.items()}
    gold, reviewer = gold_scores(items), items.reviewer()
    expected = {name: expected_values(judgements) for name, judgements in items.judgements.items()}
    ok = ~np.isnan(np.stack(list(expected.values()))).any(axis=0)
    side = [example for fold in gathered.folds for example in fold.train or () if isinstance(example, PointwiseExample)]
    known_films = {example.item_id for example in side} if seen is None else seen
    known = np.array([isinstance(one, PointwiseExample) and one.item_id in known_films for one in items.examples])
    predicted = {arm: [expected[name] for name in judges] for arm, judges in of_arm.items()}
    predicted |= {
        one.name: [one.values]
        for one in baseline_predictions(items, scale=SCORES, seed=seed)
        if one.values is not None and kendall(gold, one.values) is not None
    }
    lines: list[str] = []
    for words, chosen in (("all", ok), ("film seen in training", ok & known), ("film not seen", ok & ~known)):
        if chosen.sum() < 2:
            lines += [f"{words}: {int(chosen.sum())} items", ""]
            continue
        numbered = np.unique(reviewer[chosen], return_inverse=True)[1]
        bootstrap = Bootstrap.over(numbered, resamples=resamples, seed=seed)
        found = {arm: _arm(bootstrap, gold[chosen], [values[chosen] for values in judges]) for arm, judges in predicted.items()}
        lines += _section(words, int(chosen.sum()), bootstrap, found, list(arms))
        if words == "all":
            lines += [_within(predicted, gold, reviewer, chosen), ""]
    return lines


def _arm(bootstrap: Bootstrap, gold: FloatArray, judges: Sequence[FloatArray]) -> Arm:
    values = np.array([kendall(gold, judge) for judge in judges], dtype=np.float64)
    return Arm(values, np.stack([bootstrap.resampled("kendall", gold, judge) for judge in judges]))


def _section(words: str, items: int, bootstrap: Bootstrap, found: Mapping[str, Arm], compared: Sequence[str]) -> list[str]:
    lines = [
        f"{words}: {items} items of {bootstrap.reviewers} readers",
        "",
        "| | seeds | Kendall of each | mean | interval |",
        "|---|---:|---|---:|---:|",
    ]
    for name, arm in found.items():
        each = ", ".join(f"{value:.3f}" for value in arm.values)
        lines.append(f"| {name} | {len(arm.values)} | {each} | {arm.value:.3f} | {_interval(arm.value, arm.error())} |")
    first, *others = compared
    lines.append("")
    for other in others:
        difference, error = found[other].value - found[first].value, found[other].error(less=found[first])
        lines.append(
            f"{other} less {first}: {difference:+.3f} {_interval(difference, error)}; a difference of "
            f"{DETECTED * error:.3f} could have been detected"
        )
    return [*lines, ""]


def _within(predicted: Mapping[str, Sequence[FloatArray]], gold: FloatArray, reviewer: IntArray, ok: BoolArray) -> str:
    found = {
        name: [
            within_reviewers(kendall, gold[ok], predicted=judge[ok], reviewer=reviewer[ok]).mean(Convention.SKIP_CONSTANT)
            for judge in judges
        ]
        for name, judges in predicted.items()
    }
    told = (
        f"{name} {', '.join('undefined' if value is None else f'{value:.3f}' for value in values)}"
        for name, values in found.items()
    )
    return "within readers: " + "; ".join(told)


def _interval(value: float, error: float) -> str:
    return f"[{value - 1.96 * error:.3f}, {value + 1.96 * error:.3f}]"


if __name__ == "__main__":
    main()
