"""Does a loss that ranks teach the order within a reader? Readers of a made-up world, whose scores follow from text and reader.

    python benchmarks/rank_loss.py
    python benchmarks/rank_loss.py --arms plain rank --steps 60 --seeds 0 1 2

Everybody likes the sea better than mountains. A reader who is hard to please gives 1, 3 or 5, by how many of a text's two sentences are about the
sea; one who is easily pleased gives 6, 8 or 10. The profile shows which, by a review and its score. Readers who are judged are not trained on;
their texts are made of the same sentences. Every arm trains the same model on the same rows, a reader in each, for as many steps, and its judge
is asked for the score alone. Told are Kendall's tau-b of expected and true score, within each reader, averaged, and over all texts; and the
seconds that training took.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from perse.answering.base import JudgeSettings
from perse.engines.transformers import TransformersEngine
from perse.evaluation.stats.correlation import Convention, kendall, within_reviewers
from perse.files.disk import write_whole
from perse.judging.judge import Judge
from perse.models import finding as models
from perse.models import opening
from perse.questions import QUESTIONS
from perse.records import PointwiseExample, ProfileReview, ReviewReference, example_lines
from perse.rendering.prompt import Renderer
from perse.settings.training import load_config
from perse.training.trainer import train

ARMS = {
    "plain": (),
    "rank": ("train.rank_weight=1",),
    "soft": ("train.ordinal_smoothing=0.5",),
    "rank+soft": ("train.rank_weight=1", "train.ordinal_smoothing=0.5"),
}
SENTENCES = 2
TOPICS = (
    (("A sailor", "The captain", "A fisher", "The crew", "A diver"), ("steers past the reef.", "waits for the tide.", "mends the sails.", "crosses the bay.")),
    (("A climber", "The guide", "A shepherd", "The party", "A hunter"), ("reaches the ridge.", "camps below the summit.", "follows the glacier.", "descends the gorge.")),
)  # fmt: skip
"""Who, and what they do, at sea and in the mountains."""
SAYS = ("I am hard to please.", "I am easily pleased.")
SCORES = ((1, 3, 5), (6, 8, 10))
"""Of the two kinds of readers: by the number of sentences about the sea."""


def reader(number: int, texts: int, *, side: str) -> list[PointwiseExample]:
    """One of kind `number % 2`, with a profile of one and so many texts to score."""
    rng, kind = random.Random(f"{side} {number}"), number % 2

    def written(share: int) -> tuple[str, int]:
        """A text that was not there before, and its score."""
        topics = [0] * share + [1] * (SENTENCES - share)
        text = ""
        while not text or text in before:
            rng.shuffle(topics)
            text = " ".join(f"{rng.choice(TOPICS[topic][0])} {rng.choice(TOPICS[topic][1])}" for topic in topics)
        before.add(text)
        return text, SCORES[kind][share]

    before: set[str] = set()
    text, score = written(rng.randint(0, SENTENCES))
    profile = (ProfileReview(text=text, review=SAYS[kind], score=score),)
    found = []
    for at in range(texts):
        text, score = written(at % (SENTENCES + 1))
        name = f"{side}{number}"
        reference = ReviewReference(review=SAYS[kind], score=score)
        example = f"{name}-{at}"
        found.append(
            PointwiseExample(id=example, reviewer_id=name, item_id=example, profile=profile, query=text, reference=reference)
        )
    return found


def judged(run: Path | str, examples: Sequence[PointwiseExample]) -> tuple[float | None, float | None]:
    """Kendall within readers, and over all."""
    folder = models.find(str(run))
    renderer = Renderer(opening.tokenizer(folder), models.context_length(folder))
    judge = Judge(TransformersEngine.load(folder, dtype="float32"), renderer, name="ranked")
    answers = judge.ask(QUESTIONS["pointwise_score"], examples, JudgeSettings(temperature=0))
    told = np.array([np.nan if one.expected is None else one.expected for one in answers])
    gold = np.array([float(one.reference.score) for one in examples if one.reference])
    names = sorted({str(one.reviewer_id) for one in examples})
    whose = np.array([names.index(str(one.reviewer_id)) for one in examples])
    ok = ~np.isnan(told)
    within = within_reviewers(kendall, gold[ok], predicted=told[ok], reviewer=whose[ok])
    return within.mean(Convention.SKIP_CONSTANT), kendall(gold[ok], told[ok])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m", help="what is trained")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--steps", type=int, default=30, help="optimizer steps of one row each, which holds a reader's texts")
    parser.add_argument("--texts", type=int, default=6, help="of a reader")
    parser.add_argument("--readers", type=int, default=20, help="who are judged")
    parser.add_argument("--rate", type=float, default=6e-4, help="learning rate of LoRA: the recipe's")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.steps, options.texts, options.readers = 2, 3, 2
    unseen = [one for number in range(options.readers) for one in reader(number, options.texts, side="judged")]
    print("| arm | seed | within each reader | over all | seconds |\n|---|---:|---:|---:|---:|")
    print(row("untrained", "", judged(options.model, unseen), 0.0), flush=True)
    with tempfile.TemporaryDirectory() as place:
        known = [one for number in range(options.steps) for one in reader(number, options.texts, side="trained")]
        data = Path(place) / "train.jsonl"
        write_whole(data, "".join(example_lines(known)))
        for seed in options.seeds:
            for arm in options.arms:
                given = [
                    f"model.path={options.model}",
                    f"data.path={data}",
                    "data.question=pointwise_score",
                    f"train.batch_size={options.texts}",
                    f"train.max_shared_examples={options.texts}",
                    "train.rows_per_step=1",
                    f"train.steps={options.steps}",
                    f"train.learning_rate={options.rate}",
                    f"train.seed={seed}",
                    "train.report_to=[]",
                    "watch=null",
                    f"output={Path(place) / f'{arm}-{seed}'}",
                ]
                began = time.monotonic()
                run = train(load_config("embedded_lora", [*given, *ARMS[arm]]))
                seconds = time.monotonic() - began
                print(row(arm, str(seed), judged(run / "merged", unseen), seconds), flush=True)


def row(arm: str, seed: str, found: tuple[float | None, float | None], seconds: float) -> str:
    within, pooled = ("undefined" if value is None else f"{value:.3f}" for value in found)
    return f"| {arm} | {seed} | {within} | {pooled} | {seconds:.0f} |"


if __name__ == "__main__":
    main()
