"""Examples as branches: the prompt's segments of token ids, then the answer that is learned.

Which tokens are learned follows from the segments, not from searching for a response string. Examples that begin with equal
segments share them when they are packed (trie.py); the leading segments before the query make an example's group. Where the
label's distribution is trained, an example knows where its label stands (label_tree.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from perse.errors import BadInput, TooLong
from perse.questions import Question
from perse.records import Example
from perse.rendering.prompt import ANSWER_TOKENS, Ids, Rendered, Renderer, label_room
from perse.training.rows.label_tree import LabelTree, TrueLabel


@dataclass(frozen=True)
class Branch:
    """One example: `segments` of its prompt, then `answer` (end-of-turn included).

    `shared` is the number of leading segments that make its group: all before the query. `k_effective` of the `k` profile
    entries are in the prompt. `label` is there where its distribution is trained, beside the answer's tokens.
    """

    example_id: str
    segments: tuple[Ids, ...]
    answer: Ids
    shared: int
    k: int
    k_effective: int
    label: TrueLabel | None = field(default=None, repr=False)  # out of the digest of rows that were made without

    @property
    def prompt(self) -> Ids:
        return tuple(token for segment in self.segments for token in segment)

    @property
    def tokens(self) -> int:
        """Length on its own."""
        return sum(map(len, self.segments)) + len(self.answer)

    @property
    def paths(self) -> tuple[tuple[Ids, ...], ...]:
        """What is laid out in a row, as segments: prompt and answer, and the ways to what else the label is read after."""
        ways = ((self.answer,),) if self.label is None else self.label.paths(self.answer)
        return tuple((*self.segments, *way) for way in ways)

    @property
    def laid_out(self) -> int:
        """Tokens of a row of its own."""
        return self.tokens + self.beside

    @property
    def beside(self) -> int:
        """Tokens beside its path: one for each node of the labels' tree that the answer does not pass."""
        return 0 if self.label is None else self.label.passed(self.answer).count(False)


@dataclass(frozen=True)
class Branches:
    """The examples that fit, and the ids of those that did not (`too_long`: counted, not trained on)."""

    fitting: Sequence[Branch]
    too_long: tuple[str, ...]


def training_branches(
    renderer: Renderer,
    question: Question,
    examples: Iterable[Example],
    *,
    answer_tokens: int = ANSWER_TOKENS,
    tree: LabelTree | None = None,
) -> Branches:
    """Every example's prompt with its true answer. Pairs are learned in the order given.

    Args:
        tree: of the question's labels, where their distribution is trained.
    Raises:
        BadInput: an example without a reference, or none that fits.
    """
    kept = label_room(question) + (answer_tokens if question.layout.text_prefix is not None else 0)
    fitting: list[Branch] = []
    too_long: list[str] = []
    longest = 0
    readers: dict[str, int] = {}
    for example in examples:
        if example.reference is None:
            raise BadInput(f"example {example.id} has no 'reference'; training needs the reviewer's true answer")
        lines = renderer.completion(question, example)
        answer = tuple(token for line in lines for token in line)
        longest = max(longest, len(answer))
        try:
            prompt = renderer.render(question, example, answer_tokens=answer_tokens, completion=lines)[0]
        except TooLong:
            too_long.append(example.id)
        else:
            segments = tuple(segment.ids for segment in prompt.segments)
            reader = None if example.reviewer_id is None else readers.setdefault(example.reviewer_id, len(readers))
            label = None if tree is None else _true_label(tree, answer, reader, question, example)
            shared, k = _before_query(prompt), len(example.profile)
            fitting.append(Branch(example.id, segments, answer, shared, k, prompt.k_effective, label))
    if not fitting:
        raise BadInput(
            f"none of the {len(too_long)} examples fits {renderer.context} tokens with {kept} or more kept for the answer "
            f"(the longest true answer has {longest}); raise model.context or shorten the texts"
        )
    return Branches(tuple(fitting), tuple(too_long))


def _true_label(tree: LabelTree, answer: Ids, reader: int | None, question: Question, example: Example) -> TrueLabel:
    scale = question.scale
    assert scale.values is not None, scale.name
    value = scale.values[scale.labels.index(question.answer(example)[0])]
    label = TrueLabel(tree, tree.values.index(value), reader)
    at, ids = label.begins(answer), tree.labels[label.index]
    assert answer[at : at + len(ids)] == ids, (example.id, answer, ids)
    return label


def _before_query(prompt: Rendered) -> int:
    """How many segments precede the query, or the last segment if there is no query."""
    names = [segment.name for segment in prompt.segments]
    return names.index("query") if "query" in names else len(names) - 1
