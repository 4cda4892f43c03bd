"""What of readers' choices between two texts can be told without a judge: accuracy of every baseline, cross-fitted over readers.

    python benchmarks/pair_baselines.py work/endings-known work/endings-new --embedding-model FOLDER

Of data sets of pairs that were built with `--folds`. The rows are those of `perse evaluate`; the difference is from the majority answer. Intervals
resample readers, and pairs that have a text in common together with them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from perse.data.dataset.folder import load_folder
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.evaluation.alignment import Fold, align
from perse.evaluation.pairwise_rows import baseline_choices
from perse.evaluation.shared_texts import to_draw
from perse.evaluation.stats.estimates import Bootstrap
from perse.judgement import Judgement, Status, Tokens
from perse.models.vectors import KeptVectors
from perse.records import Example
from perse.results.words import shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+", type=Path)
    parser.add_argument("--embedding-model", help="a folder or a hub name (default: the package's)")
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="few resamples")
    settings = parser.parse_args()
    for place in settings.sets:
        table(place, settings.embedding_model, resamples=100 if settings.small else settings.resamples, seed=settings.seed)


def table(place: Path, embedding_model: str | None, *, resamples: int, seed: int) -> None:
    data = load_folder(place)
    folds = [
        Fold(load_examples(place, split="valid", fold=fold).examples, load_examples(place, split="train", fold=fold).examples)
        for fold in range(data.folds or 0)
    ]
    if not folds:
        raise BadInput(f"{place} has no folds; build it with perse data pairwise --folds 5")
    always_a = [answered_a(example) for fold in folds for example in fold.examples]
    items = align(folds, {"always A": always_a})
    two_way = to_draw(items.examples, "auto") == "two-way"
    bootstrap = Bootstrap.over(items.reviewer(), resamples=resamples, seed=seed, item=items.work() if two_way else None)
    rows = baseline_choices(items, seed=seed, vectors=KeptVectors(embedding_model))
    everything = np.ones(len(items.examples), dtype=bool)
    found = {row.name: row.hits for row in rows if row.hits is not None}
    said = Table(title=f"{place.name}: {len(items.examples)} choices of {len(items.reviewer_ids())} readers")
    for column in ("", "accuracy", "minus majority"):
        said.add_column(column)
    for row in rows:
        if row.hits is None:
            said.add_row(row.name, row.unavailable, "")
            continue
        apart = bootstrap.shares_apart(row.hits - found["majority"], everything)
        minus = "" if row.name == "majority" else shown(apart, digits=3)
        said.add_row(row.name, shown(bootstrap.share(row.hits, everything), digits=3), minus)
    console = Console(width=150)
    console.print(said)
    for row in rows:
        if row.note:
            console.print(f"- {row.note}")


def answered_a(example: Example) -> Judgement:
    """The table wants a judge; this one knows nothing."""
    return Judgement(
        id=example.id,
        question="pairwise",
        status=Status.OK,
        label="A",
        k_effective=0,
        tokens=Tokens(prompt=0, cached=0, generated=0),
        model="always A",
    )


if __name__ == "__main__":
    main()
