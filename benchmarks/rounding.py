"""What bfloat16 does to expected scores, and how much of it is the LM head's.

    OMP_NUM_THREADS=2 python benchmarks/rounding.py --model runs/first --examples valid.jsonl --limit 50

The same prompts are read by the embedded engine in float32, in bfloat16 with the head in bfloat16 as Hugging Face has it, and
in bfloat16 with the head in float32 as ours does; each with shared prefixes reused and without. Differences are to float32.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from perse.data.examples_file import read_examples
from perse.engines.base import LabelDistribution
from perse.engines.prefix_cache import BUDGET
from perse.engines.transformers import TransformersEngine
from perse.models import finding as models
from perse.models import opening
from perse.questions import QUESTIONS
from perse.rendering.prompt import Renderer

QUESTION = QUESTIONS["pointwise_score"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--examples", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=50)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.limit = 2
    path = models.find(options.model)
    examples = sorted(read_examples(options.examples)[: options.limit], key=lambda example: example.reviewer_id)
    renderer = Renderer(opening.tokenizer(path), models.context_length(path))
    prompts = [renderer.render(QUESTION, example)[0].ids for example in examples]
    plain = models.load(path, dtype="bfloat16").eval()

    def expected(engine: TransformersEngine) -> list[float]:
        read = engine.label_distributions(prompts, renderer.label_tokens(QUESTION))
        scores = [QUESTION.scale.expected(d.probabilities) for d in read if isinstance(d, LabelDistribution)]
        return [score for score in scores if score is not None]

    truth = expected(TransformersEngine.load(path, dtype="float32"))
    ours = TransformersEngine.load(path, dtype="bfloat16").model
    table = Table(title=f"difference of expected scores to float32: {options.model}, {len(prompts)} items")
    for column in ("bfloat16, head in", "prefixes", "median", "90%", "largest"):
        table.add_column(column, justify="right" if column in ("median", "90%", "largest") else "left")
    for head, model in (("bfloat16", plain), ("float32", ours)):
        for prefixes, budget in (("reused", BUDGET), ("not reused", 0)):
            gaps = _gaps(expected(TransformersEngine(model, cache_bytes=budget)), truth)
            table.add_row(head, prefixes, *(f"{gap:.3f}" for gap in gaps))
    Console(width=100).print(table)


def _gaps(one: Sequence[float], two: Sequence[float]) -> tuple[float, float, float]:
    gaps = sorted(abs(a - b) for a, b in zip(one, two, strict=True))
    return statistics.median(gaps), gaps[int(0.9 * (len(gaps) - 1))], gaps[-1]


if __name__ == "__main__":
    main()
