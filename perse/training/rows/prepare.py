"""From settings to the rows of a whole run: which examples, what fits, which rows in which step. `perse plan` reads it, too."""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from rich.console import Console

from perse.data.load import LoadedExamples, load_examples
from perse.errors import BadInput
from perse.formats.plain_files import refuse_other_than_plain
from perse.models import finding as models
from perse.progress import counted, shown_on, unseen_part
from perse.questions import Question, question_for
from perse.records import Example
from perse.rendering.prompt import Renderer
from perse.settings.training import Data, TrainConfig
from perse.training.rows.branches import Branch, Branches, training_branches
from perse.training.rows.label_tree import label_tree
from perse.training.rows.mixing import mixed_in
from perse.training.rows.schedule import Schedule, schedule

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """What a run trains on.

    `branches` are those of all draws, the longest of which has `longest` tokens; `data_digest` is of what they came from,
    `digest` of every token of every row, in order.
    """

    question: Question
    renderer: Renderer
    data_digest: str
    branches: Branches
    schedule: Schedule
    reviewers: frozenset[str | None]
    digest: str
    longest: int
    examples: int
    """How many are trained on. A text asked of a reader is one, however often passes, draws of profiles and mixtures repeat it."""
    times: float
    """How often the run shows one of them, on average."""
    apart: frozenset[str] = frozenset()
    """Reviewers of the data who are not trained on, so that they can be watched."""
    mixed_digests: tuple[str, ...] = ()
    """Of the sets beside `data.path`."""
    unwatched: str = ""
    """Why there are none, in words, where there should be."""

    @property
    def left_out(self) -> int:
        """Examples too long for the model's context, in every draw; counted as `examples` are."""
        return len(self.branches.too_long)


def prepare(config: TrainConfig, renderer: Renderer, *, apart: frozenset[str] = frozenset(), quiet: bool = True) -> Prepared:
    """Load, render and pack what `config` names.

    Args:
        apart: reviewers who are not trained on.
        quiet: draw no progress bar.
    Raises:
        BadInput: no data, an aspect that no example has, none that fits, or one longer than a row.
    """
    first = _load(config, 0, apart)
    question = question_for(first.examples, config.data.question)
    settings, answer_tokens = config.train, config.data.answer_tokens
    tree = label_tree(renderer, question, asked_by=settings.reads_labels) if settings.reads_labels else None
    fitting: list[Branch] = []
    too_long: dict[tuple[str | None, ...], str] = {}
    reviewers: set[str | None] = set()
    distinct: set[tuple[str | None, ...]] = set()

    @cache
    def drawn(epoch: int) -> Sequence[Branch]:
        examples = first.examples if epoch == 0 else _load(config, epoch, apart).examples
        words = f"rendering epoch {epoch + 1}" if first.redrawn else "rendering"
        with nullcontext(unseen_part) if quiet else shown_on(Console(stderr=True)) as on_part:
            seen = counted(examples, partial(on_part, words))
            found = training_branches(renderer, question, seen, answer_tokens=answer_tokens, tree=tree)
        fitting.extend(found.fitting)
        fits = {branch.example_id for branch in found.fitting}
        reviewers.update(example.reviewer_id for example in examples)
        for one in examples:
            asked = (one.reviewer_id, one.work, one.aspect)
            if one.id in fits:
                distinct.add(asked)
            else:
                too_long.setdefault(asked, one.id)
        return found.fitting

    planned = schedule(
        drawn if first.redrawn else lambda _: drawn(0),
        epochs=settings.epochs,
        steps=settings.steps,
        rows_per_step=settings.rows_per_step,
        row_tokens=settings.row_tokens,
        batch_size=settings.batch_size,
        max_shared_examples=settings.max_shared_examples,
        seed=settings.seed,
    )
    if settings.rank_weight and not any(planned.pairs(step) for step in range(1, planned.steps + 1)):
        raise BadInput(
            f"train.rank_weight is {settings.rank_weight:g}, and no row holds two texts that one reader scored differently, so that no order can be "
            "learned; raise train.batch_size and train.max_shared_examples, build the data set with --profiles per_reviewer_epoch, or leave it out"
        )
    known = {id(branch): hashlib.sha256(_identity(branch).encode()).digest() for branch in fitting}
    whole = hashlib.sha256()
    for row in planned.rows:
        whole.update(len(row).to_bytes(4) + b"".join(known[id(branch)] for branch in row))
    never = tuple(example_id for asked, example_id in too_long.items() if asked not in distinct)
    return Prepared(
        question=question,
        renderer=renderer,
        data_digest=first.digest,
        mixed_digests=first.mixed,
        branches=Branches(tuple(fitting), never),
        schedule=planned,
        reviewers=frozenset(reviewers),
        digest=whole.hexdigest(),
        longest=max(branch.tokens for branch in fitting),
        examples=len(distinct),
        times=sum(map(len, planned.rows)) / len(distinct),
        apart=apart,
    )


def _identity(branch: Branch) -> str:
    """All of a branch; one whose label is not read is what it was before there was such a thing."""
    return repr(branch) + ("" if branch.label is None else f" {branch.label.index} {branch.label.reader}")


def training_side(data: Data, *, epoch: int = 0, without: Collection[str] = ()) -> LoadedExamples:
    """All examples that `data` names for training, but those of some reviewers.

    Raises:
        BadInput: as `load_examples`, or it is no plain file.
    """
    if not Path(data.path).is_dir():
        refuse_other_than_plain(Path(data.path))  # it is read again: by each process, and by a run that goes on
        if data.split != "train":
            raise BadInput(
                f"{data.path} is a file of examples, all of which are trained on: it has no sides; leave data.split out"
            )
    return load_examples(data.path, split=data.split, fold=data.fold, view=data.view, epoch=epoch, without=without)


@dataclass(frozen=True)
class _Pass:
    """The training examples of an epoch; `digest` is of `data.path`, `mixed` of the sets beside it."""

    examples: list[Example]
    digest: str
    mixed: tuple[str, ...]
    redrawn: bool


def _load(config: TrainConfig, epoch: int, apart: frozenset[str]) -> _Pass:
    """Without reviewers held apart, of one aspect, mixed with other sets, and a sample, if asked."""
    data = config.data

    def side(path: str) -> LoadedExamples:
        loaded = training_side(data.model_copy(update={"path": path}), epoch=epoch, without=apart)
        return replace(loaded, examples=_of_aspect(loaded.examples, data.aspect))

    first = side(data.path)
    if data.profile_aspects == "asked" and all(one.aspect is None for one in first.examples):
        raise BadInput(
            f"data.profile_aspects is asked, and {data.path} holds single texts, which have no aspects; leave it out"
        )
    examples, mixed, redrawn = mixed_in(data, first.examples, side, epoch=epoch, seed=config.train.seed)
    if data.max_examples is not None and data.max_examples < len(examples):
        seed: int | str = f"{config.train.seed} {epoch}" if epoch else config.train.seed
        examples = random.Random(seed).sample(examples, data.max_examples)
    return _Pass(examples, first.digest, tuple(mixed), first.redrawn or redrawn)


def renderer_for(config: TrainConfig, base: Path, tokenizer: Any) -> Renderer:
    """The renderer of the model at `base`, with the budgets of `config`."""
    longest = models.context_length(base)
    if config.model.context is not None and config.model.context > longest:
        log.warning("model.context is %d, and the model was made for %d, which is what is used", config.model.context, longest)
    return Renderer(tokenizer, min(config.model.context or longest, longest), max_words=config.data.max_words)


def _of_aspect(examples: list[Example], aspect: str | None) -> list[Example]:
    """Those of one aspect, or all.

    Raises:
        BadInput: no example has it.
    """
    if aspect is None:
        return examples
    known = sorted({example.aspect for example in examples if example.aspect is not None})
    if aspect not in known:
        found = f"aspects {', '.join(known)}" if known else "single texts, which have no aspects"
        raise BadInput(
            f"data.aspect is '{aspect}', and the training examples hold {found}; choose one of them, or leave it out"
        )
    return [example for example in examples if example.aspect == aspect]
