"""The labels of a scale as a tree of tokens, so that a row can be read for the probability of each of them.

A label's probability is that of its tokens less that of the labels that go on from it (`perse.engines.labels`), so it is read
after every inner node of the tree: before the first token, and where a tokenizer splits "10", after the "1" too. Of these nodes an
answer passes some; those it does not pass stand beside it in the row as branches of their own, from which nothing is learned
but the label's distribution. Where every label is one token there are none, and the row is what it is without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from perse.errors import BadInput
from perse.questions import Question
from perse.records import VerbatimExample
from perse.rendering.prompt import Ids, Renderer


@dataclass(frozen=True)
class LabelTree:
    """`labels[i]`: the tokens of a label behind the stem, `values[i]` its number, ascending; `tail` tokens end every answer."""

    labels: tuple[Ids, ...]
    values: tuple[float, ...]
    tail: int

    def __post_init__(self) -> None:
        ascending = all(low < high for low, high in pairwise(self.values))
        if not (len({*self.labels}) == len(self.labels) == len(self.values) > 1 and ascending and self.tail >= 0):
            raise ValueError(
                f"{len(self.labels)} labels with the values {self.values} before {self.tail} tokens are no tree of labels"
            )

    @cached_property
    def nodes(self) -> tuple[Ids, ...]:
        """The inner nodes as paths from the stem, which is the first of them."""
        inner = {label[:n] for label in self.labels for n in range(len(label))}
        return tuple(sorted(inner, key=lambda node: (len(node), node)))

    @cached_property
    def ends(self) -> tuple[Ids, ...]:
        """The inner nodes behind the stem from which no other goes on: a way to each passes all."""
        return tuple(node for node in self.nodes if node and not any(_begins(other, node) for other in self.nodes))

    @property
    def step(self) -> float:
        """The distance of two neighbouring values, on average."""
        return (self.values[-1] - self.values[0]) / (len(self.values) - 1)


@dataclass(frozen=True)
class TrueLabel:
    """Which label of the tree an answer has, and the number of the reader who gave it (None: nobody by name)."""

    tree: LabelTree
    index: int
    reader: int | None

    def begins(self, answer: Ids) -> int:
        """Where the label begins in its answer."""
        return len(answer) - self.tree.tail - len(self.tree.labels[self.index])

    def passed(self, answer: Ids) -> list[bool]:
        """Of each node of the tree, whether the answer passes it."""
        label = answer[self.begins(answer) :]
        return [label[: len(node)] == node for node in self.tree.nodes]

    def paths(self, answer: Ids) -> tuple[tuple[Ids, ...], ...]:
        """The answer in pieces, cut at the nodes that it passes; then the ways to those that it does not pass, cut likewise."""
        if not self.tree.ends:
            return ((answer,),)
        passed = [node for node, is_passed in zip(self.tree.nodes, self.passed(answer), strict=True) if is_passed]
        at = self.begins(answer)
        cuts = [0, *(at + len(node) for node in passed), len(answer)]
        way = tuple(answer[start:end] for start, end in pairwise(cuts))
        aside = [end for end in self.tree.ends if end not in passed]
        return way, *((answer[:at], *((token,) for token in end)) for end in aside)


@dataclass(frozen=True)
class Reading:
    """Where the labels of a row's examples are read, B of them with N nodes each.

    `nodes`: B x N places in the row's `sources`; `index`: B true labels; `begins`: B places in its `targets`, of each label's first
    token. `pairs`: two examples of one reader, the one with the higher label first. `of_step`: pairs of all rows of the step.
    """

    tree: LabelTree
    nodes: tuple[tuple[int, ...], ...]
    index: tuple[int, ...]
    begins: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    of_step: int = 0


def label_tree(renderer: Renderer, question: Question, *, asked_by: str) -> LabelTree:
    """The tree of a question's labels.

    Args:
        asked_by: the setting that wants it, for the message.
    Raises:
        BadInput: labels without an order, or prompts that are used as they are.
    """
    scale = question.scale
    if scale.values is None:
        raise BadInput(
            f"{asked_by} orders scores, and the labels {', '.join(scale.labels)} of the question {question.name} have no order; leave it out, or "
            "choose a question that is answered with a score"
        )
    if question.example_type is VerbatimExample:
        raise BadInput(
            f"{asked_by} compares texts that share a reader's profile, and prompts that are used as they are ({question.name}) share none; leave "
            "it out, or train on a data set of single texts"
        )
    support = renderer.label_tokens(question)
    order = sorted(range(len(scale.values)), key=scale.values.__getitem__)
    return LabelTree(
        tuple(support.labels[at] for at in order),
        tuple(scale.values[at] for at in order),
        tail=len(renderer.encode_tail(question.layout.closing)),
    )


def pairs_in_order(labels: Sequence[TrueLabel | None]) -> tuple[tuple[int, int], ...]:
    """Places of every two examples of one reader with different labels, the higher first."""
    known = [(at, one) for at, one in enumerate(labels) if one is not None and one.reader is not None]
    return tuple(
        (high, low)
        for high, above in known
        for low, below in known
        if above.reader == below.reader and above.index > below.index
    )


def _begins(longer: Ids, shorter: Ids) -> bool:
    return len(longer) > len(shorter) and longer[: len(shorter)] == shorter
