"""Scores as soft labels: every example four times, with the score above, the true one twice, and the one below.

    perse data export DATA --split train --out train.jsonl
    python benchmarks/soft_labels.py train.jsonl soft.jsonl
    perse train --config embedded_lora data.path=soft.jsonl data.question=pointwise_score train.batch_size=64 train.max_shared_examples=64 ...

A cross entropy against 1/4, 1/2, 1/4 is the mean of the cross entropies of four equal answers, and packing computes their prompt
once. So it needs no loss of its own, only rows of four times as many examples. At the ends of the scale the missing neighbour
is the true score again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from perse.data.examples_file import read_examples
from perse.errors import BadInput
from perse.files.disk import write_whole
from perse.records import Example, PointwiseExample, example_lines
from perse.scale import SCORES

NEIGHBOURS = (-1, 0, 0, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", type=Path, help="training examples as JSON lines, of `perse data export`")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    if options.out.exists():
        parser.error(f"{options.out} is there already; give another name, or remove it first")
    write_whole(options.out, "".join(example_lines(softened(read_examples(options.examples)))))


def softened(examples: Iterable[Example]) -> Iterator[PointwiseExample]:
    """Each example under four ids, one for each neighbour of its score.

    Raises:
        BadInput: an example that has no score from 1 to 10.
    """
    lowest, highest = int(SCORES.labels[0]), int(SCORES.labels[-1])
    for example in examples:
        if not isinstance(example, PointwiseExample) or example.reference is None:
            raise BadInput(f"example {example.id} has no true score; soft labels are for single texts with a 'reference'")
        for at, step in enumerate(NEIGHBOURS):
            score = min(highest, max(lowest, example.reference.score + step))
            reference = example.reference.model_copy(update={"score": score})
            yield example.model_copy(update={"id": f"{example.id}-{at}", "reference": reference})


if __name__ == "__main__":
    main()
