"""Examples as branches: the prompt's segments of token ids, then the answer that is learned.

Which tokens are learned follows from the segments, not from searching for a response string. Examples that begin with equal
segments share them when they are packed (trie.py); the leading segments before the query make an example's group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perse.errors import BadInput, TooLong
from perse.questions import Question
from perse.records import Example
from perse.rendering.prompt import ANSWER_TOKENS, Ids, Rendered, Renderer, label_room


@dataclass(frozen=True)
class Branch:
    """One example: `segments` of its prompt, then `answer` (end-of-turn included).

    `shared` is the number of leading segments that make its group: all before the query. `k_effective` of the `k` profile
    entries are in the prompt.
    """

    example_id: str
    segments: tuple[Ids, ...]
    answer: Ids
    shared: int
    k: int
    k_effective: int

    @property
    def prompt(self) -> Ids:
        return tuple(token for segment in self.segments for token in segment)

    @property
    def tokens(self) -> int:
        """Length on its own."""
        return sum(map(len, self.segments)) + len(self.answer)


@dataclass(frozen=True)
class Branches:
    """The examples that fit, and the ids of those that did not (`too_long`: counted, not trained on)."""

    fitting: Sequence[Branch]
    too_long: tuple[str, ...]


def training_branches(
    renderer: Renderer, question: Question, examples: Iterable[Example], *, answer_tokens: int = ANSWER_TOKENS
) -> Branches:
    """Every example's prompt with its true answer. Pairs are learned in the order given.

    Raises:
        BadInput: an example without a reference, or none that fits.
    """
    kept = label_room(question) + (answer_tokens if question.layout.text_prefix is not None else 0)
    fitting: list[Branch] = []
    too_long: list[str] = []
    longest = 0
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
            fitting.append(
                Branch(example.id, segments, answer, _before_query(prompt), len(example.profile), prompt.k_effective)
            )
    if not fitting:
        raise BadInput(
            f"none of the {len(too_long)} examples fits {renderer.context} tokens with {kept} or more kept for the answer "
            f"(the longest true answer has {longest}); raise model.context or shorten the texts"
        )
    return Branches(tuple(fitting), tuple(too_long))


def _before_query(prompt: Rendered) -> int:
    """How many segments precede the query, or the last segment if there is no query."""
    names = [segment.name for segment in prompt.segments]
    return names.index("query") if "query" in names else len(names) - 1
