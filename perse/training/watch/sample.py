"""What is judged while training: a fixed, seeded sample of readers who are not trained on (see `perse.training.watch.apart`).

Where a question asks for the label alone, the whole sample is judged. Where it asks for a review first, the label is read
behind the review that the model writes itself, and writing is dear, so the first few of the sample are judged: behind the
reader's own review, or without any, it would be another question than the one that is learned. The validation loss is of the
whole sample in either case; `asked` says of how many examples the other numbers are.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perse.data.dataset.folder import DEFAULT_VIEW, is_data_folder
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.identity import shuffled
from perse.questions import Question, question_for
from perse.records import Example
from perse.rendering.prompt import Ids, Renderer
from perse.settings.training import Data, Train
from perse.settings.watching import Watch
from perse.training.rows.branches import training_branches
from perse.training.rows.prepare import training_side
from perse.training.rows.trie import PackedRow, pack, packed
from perse.training.watch.plan import WatchCost, tokens_once

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Watched:
    """The examples that every judging uses: `judged` are asked, `rows` (of the whole sample) give the loss; `asks` are the prompts
    of `judged` as segments; `best` is the name of the number that decides; `readers` are all who are watched, an example without
    one by its own id."""

    question: Question
    judged: tuple[Example, ...]
    rows: tuple[PackedRow, ...]
    asks: tuple[tuple[Ids, ...], ...]
    answer_tokens: int
    new_tokens: int
    best: str
    readers: frozenset[str]

    @property
    def cost(self) -> WatchCost:
        """Tokens of one judging."""
        written = len(self.judged) * self.new_tokens if self.question.layout.text_prefix is not None else 0
        return WatchCost(sum(len(row.ids) for row in self.rows), tokens_once(self.asks), written)


def unseen_examples(data: Data, watch: Watch, *, trained: Collection[str | None], apart: Collection[str]) -> list[Example]:
    """The examples to draw a sample from: those with a reference, of the asked aspect.

    Args:
        trained: the reviewers of the training examples.
        apart: reviewers of the training side who are not trained on; asked where the settings name no others.
    Raises:
        BadInput: a reviewer is on both sides, or there is no such example.
    """
    if watch.data is not None:
        view = data.view if is_data_folder(Path(watch.data)) else DEFAULT_VIEW  # a file shows them as they were exported
        place, found = watch.data, load_examples(watch.data, split="valid", view=view).examples
    else:
        place, found = data.path, [one for one in training_side(data).examples if one.reviewer_id in apart]
    if data.aspect is not None:
        found = [one for one in found if one.aspect == data.aspect]
    both = sorted({one.reviewer_id for one in found if one.reviewer_id is not None and one.reviewer_id in trained})
    if both:
        raise BadInput(
            f"{place}: reviewer '{both[0]}'{f' and {len(both) - 1} more' if len(both) > 1 else ''} would be watched and is trained "
            "on; expected examples of other reviewers"
        )
    known = [one for one in found if one.reference is not None]
    if not known:
        asked = f" about {data.aspect}" if data.aspect is not None else ""
        raise BadInput(
            f"{place} holds no examples with a reference{asked} to watch; name others as watch.data, or set watch=null"
        )
    return known


def without_writing(what: Watched, watch: Watch) -> Watched:
    """The same, without judging where the question has the model write: where weights are divided among devices, all must compute equally
    often, and one that writes a word more than another would wait for ever. A label alone is read from as many forward passes on each.

    Raises:
        BadInput: `watch.best` asks for a number of judgements that are not made.
    """
    if what.question.layout.text_prefix is None:
        return what
    if watch.best not in (None, "loss"):
        raise BadInput(
            f"watch.best is {watch.best}, and where the weights are divided among devices (FSDP2, ZeRO-3) only the loss is watched of a question "
            f"that writes ({what.question.name}); set watch.best=loss, or train with configs/accelerate/ddp.yaml or zero2.yaml"
        )
    return replace(what, judged=(), asks=(), best="loss")


def watched(
    examples: Sequence[Example], renderer: Renderer, question: Question, *, watch: Watch, train: Train, answer_tokens: int
) -> Watched:
    """A sample of `examples`, rendered and packed as training is.

    Raises:
        BadInput: none of them fits, they are of another kind than the question, or `watch.best` is no number of its labels.
    """
    best = watch.best or ("kendall" if question.scale.values is not None else "accuracy")
    if question.scale.values is None and best in ("kendall", "within_one"):
        raise BadInput(
            f"watch.best is {best}, and the labels {', '.join(question.scale.labels)} have no order; choose accuracy or loss"
        )
    question_for(examples, question.name)  # refuses pairs where single texts are learned
    by_id = {one.id: one for one in examples}
    drawn = [by_id[one] for one in shuffled(by_id, seed=train.seed, purpose="watch")[: watch.examples]]
    try:
        sample = training_branches(renderer, question, drawn, answer_tokens=answer_tokens)
    except BadInput as error:
        place = watch.data or "readers held apart"
        raise BadInput(f"examples of {place} were to be judged while training: {error}, or set watch=null") from None
    if sample.too_long:
        log.info("%d of the %d watched examples do not fit and are left out", len(sample.too_long), len(drawn))
    fitting = {branch.example_id for branch in sample.fitting}
    judged = [one for one in drawn if one.id in fitting]
    if question.layout.text_prefix is not None:
        judged = judged[: watch.generated]
    asks = tuple(
        tuple(segment.ids for segment in prompt.segments)
        for one in judged
        for prompt in renderer.render(question, one, answer_tokens=answer_tokens)
    )
    longest = max(branch.tokens for branch in sample.fitting)
    rows = pack(
        sample.fitting,
        row_tokens=max(longest, train.row_tokens or train.batch_size * longest),
        batch_size=train.batch_size,
        max_shared_examples=train.max_shared_examples,
        seed=f"{train.seed} watch",
    )
    packed_rows = tuple(packed(row, share=train.max_shared_examples > 1) for row in rows)
    decides = "kendall_imputed" if best == "kendall" else best  # answering only the easy ones must not look better
    readers = frozenset(one.reviewer_id or one.id for one in drawn if one.id in fitting)
    return Watched(question, tuple(judged), packed_rows, asks, answer_tokens, watch.new_tokens, decides, readers)
