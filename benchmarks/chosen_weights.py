"""By how much a judge looks too good on readers on whom its weights were chosen.

    python benchmarks/chosen_weights.py --worlds 2000

In every world a training run is judged on 64 examples (`watch.examples`) as often as `--judgings` says, and all its checkpoints are
equally good: their scores have the same correlation with the readers', and what they share (`--alike`) strays together. The best
judged is kept. Its Kendall of the watched examples, of a validation side that holds them, and of readers apart from them, beside
what every checkpoint is worth.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from rich.console import Console
from rich.progress import track
from scipy.stats import kendalltau

WATCHED = 64
VALIDATION = (400, 741)
"""Examples that are scored: a limited run, and all of movie_critics' validation side."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--judgings", type=int, default=10)
    parser.add_argument("--correlation", type=float, default=0.3, help="of a checkpoint's scores with the readers'")
    parser.add_argument("--alike", type=float, default=0.5, help="share of the checkpoints' noise that is the same for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="the numbers as JSON on stdout instead of the table")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds = 3
    found = []
    for number in track(range(options.worlds), description="worlds", console=Console(stderr=True)):
        found.append(_world(np.random.default_rng((options.seed, number)), options))
    means = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
    told = {"worlds": options.worlds, "judgings": options.judgings, "means": means}
    print(json.dumps(told, indent=2) if options.json else _markdown(means))


def _world(generator: np.random.Generator, options: argparse.Namespace) -> dict[str, float]:
    """Kendall of the kept checkpoint, of every set of examples; and of one checkpoint that nobody chose."""
    count = WATCHED + max(VALIDATION)
    truth = generator.normal(size=count)
    same, own = generator.normal(size=count), generator.normal(size=(options.judgings, count))
    noise = np.sqrt(options.alike) * same + np.sqrt(1 - options.alike) * own
    scores = options.correlation * truth + np.sqrt(1 - options.correlation**2) * noise

    def tau(checkpoint: int, some: slice) -> float:
        return float(kendalltau(truth[some], scores[checkpoint, some]).statistic)

    kept = max(range(options.judgings), key=lambda one: tau(one, slice(WATCHED)))
    found = {"watched": tau(kept, slice(WATCHED))}
    found |= {f"{size} of which {WATCHED} were watched": tau(kept, slice(size)) for size in VALIDATION}
    found |= {f"{size} others": tau(kept, slice(WATCHED, WATCHED + size)) for size in VALIDATION}
    return found | {"any checkpoint": tau(0, slice(None))}


def _markdown(means: dict[str, float]) -> str:
    lines = ["| examples | Kendall | more than it is worth |", "|---|---:|---:|"]
    lines += [f"| {name} | {value:.3f} | {value - means['any checkpoint']:+.3f} |" for name, value in means.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
