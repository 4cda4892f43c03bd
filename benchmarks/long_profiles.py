"""How long it takes to render a prompt for a reader with very many reviews, most of which have to leave the profile.

    OMP_NUM_THREADS=1 python benchmarks/long_profiles.py

Made-up reviews of 60 words about texts of 60 words each. Once with the usual limit of 2,500 words, so that words decide what leaves, once
without it, so that the tokens of a context of 8,192 do. The best of `--times` renderings, each by a new renderer, which knows no text yet.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from perse.models import finding as models
from perse.models import opening
from perse.questions import QUESTIONS
from perse.records import PointwiseExample, ProfileReview
from perse.rendering.prompt import MAX_WORDS, Renderer

CONTEXT = 8192
WORDS = [
    "a",
    "quiet",
    "harbour",
    "town",
    "loses",
    "its",
    "ferry",
    "and",
    "gains",
    "a",
    "ghost",
    "who",
    "sells",
    "tickets",
    "for",
    "10",
    "coins",
    "until",
    "winter",
    "ends",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m", help="whose tokenizer")
    parser.add_argument("--reviews", type=int, nargs="+", default=[250, 500, 1000, 4000])
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    sizes, times = ([30, 60], 1) if options.small else (options.reviews, options.times)
    tokenizer = opening.tokenizer(models.find(options.model))
    table = Table(title=f"seconds to render one prompt, tokenizer of {options.model}, best of {times}")
    for column in ("reviews", f"at most {MAX_WORDS:,} words", "shown", f"at most {CONTEXT:,} tokens", "shown"):
        table.add_column(column, justify="right")
    for size in sizes:
        by_words = [rendered(tokenizer, reader(size), MAX_WORDS) for _ in range(times)]
        by_tokens = [rendered(tokenizer, reader(size), 10**9) for _ in range(times)]
        cells = [cell for found in (by_words, by_tokens) for cell in (f"{min(found)[0]:.3f}", str(found[0][1]))]
        table.add_row(f"{size:,}", *cells)
    Console(width=100).print(table)


def rendered(tokenizer: Any, example: PointwiseExample, max_words: int) -> tuple[float, int]:
    """Seconds, and how many reviews are shown."""
    renderer = Renderer(tokenizer, CONTEXT, max_words=max_words)
    begun = time.perf_counter()
    [prompt] = renderer.render(QUESTIONS["pointwise"], example)
    return time.perf_counter() - begun, prompt.k_effective


def reader(reviews: int) -> PointwiseExample:
    dice = random.Random(reviews)

    def words() -> str:
        return " ".join(dice.choices(WORDS, k=60))

    profile = tuple(ProfileReview(text=words(), review=words(), score=dice.randint(1, 10)) for _ in range(reviews))
    return PointwiseExample(id="e", reviewer_id="r", item_id="i", profile=profile, query=words())


if __name__ == "__main__":
    main()
