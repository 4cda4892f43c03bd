"""From settings to the rows of a whole run: which examples, what fits, which rows in which step. `perse plan` reads it, too."""

from __future__ import annotations

import hashlib
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from perse import models
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.questions import Question, question_for
from perse.records import Example, PairwiseExample
from perse.rendering import Renderer
from perse.training.branches import Branches, training_branches
from perse.training.config import TrainConfig
from perse.training.schedule import Schedule, schedule


@dataclass(frozen=True)
class Prepared:
    """What a run trains on. `branches` are those of all draws, `data_digest` is of what they came from."""

    question: Question
    renderer: Renderer
    data_digest: str
    branches: Branches
    schedule: Schedule
    reviewers: frozenset[str | None]

    @property
    def digest(self) -> str:
        """Of every token of every row, in order."""
        whole = hashlib.sha256()
        for row in self.schedule.rows:
            whole.update(repr(row).encode())
        return whole.hexdigest()


def prepare(config: TrainConfig, renderer: Renderer, *, ranks: int = 1, quiet: bool = True) -> Prepared:
    """Load, render and pack what `config` names.

    Args:
        ranks: devices that train together.
        quiet: draw no progress bar.
    Raises:
        BadInput: no data, an aspect that no example has, none that fits, or one longer than a row.
    """
    loaded = load_examples(
        config.data.path,
        split=config.data.split,
        fold=config.data.fold,
        view=config.data.view,
        epochs=_draws(config, ranks),
    )
    examples = _of_aspect(loaded.examples, config.data.aspect)
    question = question_for(examples, config.data.question)
    each = len(examples) // loaded.epochs
    draws = [examples[start : start + each] for start in range(0, len(examples), each)]
    if config.data.max_examples is not None and config.data.max_examples < each:
        chosen = random.Random(config.train.seed).sample(range(each), config.data.max_examples)
        draws = [[draw[at] for at in chosen] for draw in draws]  # the same readers and texts in every epoch
    asked = [example for draw in draws for example in draw]
    seen = track(asked, "rendering", console=Console(stderr=True), disable=quiet)
    branches = training_branches(renderer, question, seen, answer_tokens=config.data.answer_tokens)
    fitting = {branch.example_id: branch for branch in branches.fitting}  # every draw's examples have ids of their own
    settings = config.train
    longest = max(branch.tokens for branch in branches.fitting)
    return Prepared(
        question,
        renderer,
        loaded.digest,
        branches,
        schedule(
            [[fitting[example.id] for example in draw if example.id in fitting] for draw in draws],
            epochs=settings.epochs,
            steps=settings.steps,
            rows_per_step=settings.accumulation * ranks,
            row_tokens=settings.row_tokens or settings.batch_size * longest,
            batch_size=settings.batch_size,
            branches=settings.branches,
            seed=settings.seed,
        ),
        frozenset(example.reviewer_id for example in asked),
    )


def renderer_for(config: TrainConfig, base: Path, tokenizer: Any) -> Renderer:
    """The renderer of the model at `base`, with the budgets of `config`."""
    longest = models.context_length(base)
    return Renderer(tokenizer, min(config.model.context or longest, longest), max_words=config.data.max_words)


def _draws(config: TrainConfig, ranks: int) -> int:
    """For how many epochs data drawn by epoch must be drawn: one too many where rows hold fewer examples than they may."""
    if config.train.steps is None:
        return math.ceil(config.train.epochs)
    loaded = load_examples(config.data.path, split=config.data.split, fold=config.data.fold, view=config.data.view)
    once = len(_of_aspect(loaded.examples, config.data.aspect))
    asked = config.train.steps * config.train.batch_size * config.train.accumulation * ranks
    return math.ceil(asked / min(once, config.data.max_examples or once))


def _of_aspect(examples: list[Example], aspect: str | None) -> list[Example]:
    """Those of one aspect, or all.

    Raises:
        BadInput: no example has it.
    """
    if aspect is None:
        return examples
    known = sorted({example.aspect for example in examples if isinstance(example, PairwiseExample)})
    if aspect not in known:
        found = f"aspects {', '.join(known)}" if known else "single texts, which have no aspects"
        raise BadInput(
            f"data.aspect is '{aspect}', and the training examples hold {found}; choose one of them, or leave it out"
        )
    return [example for example in examples if isinstance(example, PairwiseExample) and example.aspect == aspect]
