"""A question: the segments to show, the layout of an answer, and the labels that end it.

An answer is written the same way in training and in judging: optionally one free line (`[Review] ...`), then a line made
of `label_prefix` and a label. So the trainer's completion and the judge's exact reading come from one definition.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from perse.questions.written import json_fields, label_place, read_json, read_written
from perse.records import Asked
from perse.scale import Scale


@dataclass(frozen=True)
class Ask:
    """The text of one prompt, cut at newlines into the segments of DESIGN.md, section 3. All but the last end in a newline."""

    instruction: str
    profile: tuple[str, ...]
    query: str
    ask: str
    before: tuple[str, ...] = ()
    """Turns of the conversation that came before, the user's first and the model's last; safe to show already."""

    @property
    def text(self) -> str:
        """The whole prompt, as one user's message."""
        return "".join((self.instruction, *self.profile, self.query, self.ask))


def request_first(ask: Ask) -> Ask:
    """The same with what is wanted before the text that it is wanted of: then questions that want other things share no work on it."""
    return replace(ask, query=f"{ask.ask}\n{ask.query.removesuffix(chr(10))}", ask="")


@dataclass(frozen=True)
class AnswerLayout:
    """`text_prefix` starts a line the model writes by itself (None: no such line); `label_prefix` starts the line of the label.

    An answer with `keys` is a JSON object: the free text is a JSON string, the last key is the label's, `closing` ends it.
    """

    text_prefix: str | None
    label_prefix: str
    closing: str = ""
    keys: tuple[str, ...] = ()

    @property
    def surroundings(self) -> int:
        """Room, in tokens, for what JSON puts around text and label: its characters, since no token is less than one."""
        return len((self.text_prefix or "") + self.label_prefix + self.closing) if self.keys else 0

    def completion(self, label: str, free: str | None = None) -> tuple[str, ...]:
        """The segments of a whole answer, cut at newlines; all but the last end in one."""
        last = self.label_prefix + label + self.closing
        return (last,) if self.text_prefix is None else (self.free_line(str(free)), last)

    def free_line(self, free: str) -> str:
        """The line of the free text, newline included."""
        value = json.dumps(free, ensure_ascii=False) + "," if self.keys else free
        return f"{self.text_prefix} {value}".rstrip() + "\n"

    def free_text(self, written: str) -> str:
        """The free text of what a model wrote behind `text_prefix`; in JSON it may have gone on to the label."""
        if not self.keys:
            return written
        return dict(reversed(json_fields(f"{self.text_prefix}{written}", self.keys))).get(self.keys[0], "")

    def read(self, answer: str, scale: Scale) -> tuple[str | None, str]:
        """The label of an answer given in words, or None, and the free text before it (see `written`)."""
        if self.keys:
            return read_json(answer, scale, label_prefix=self.label_prefix, keys=self.keys)
        return read_written(answer, scale, label_prefix=self.label_prefix, text_prefix=self.text_prefix)

    def label_place(self, answer: str, scale: Scale) -> int | None:
        """Where the label that `read` finds begins in the answer; None where none is found, or the answer is JSON."""
        return None if self.keys else label_place(answer, scale, label_prefix=self.label_prefix)


class Question(Protocol):
    """A kind of judgement. Implementations hold no state; texts they receive are already neutralised."""

    @property
    def name(self) -> str: ...
    @property
    def scale(self) -> Scale: ...
    @property
    def layout(self) -> AnswerLayout: ...
    @property
    def example_type(self) -> type: ...
    @property
    def usual(self) -> bool:
        """Whether it is the default question about examples of its type."""

    @property
    def delimiters(self) -> tuple[str, ...]:
        """What stands in brackets in its prompts and answers, numbers left out: no text may say it (`perse.rendering.neutralising`)."""

    @property
    def served(self) -> str | None:
        """Description for users of the server; None: it is not served over HTTP."""

    @property
    def writes_review(self) -> bool:
        """Whether its free text is a review, to be compared with the reader's own."""

    def asks(self, example: Any, profile: Sequence[Any]) -> tuple[Ask, ...]:
        """The prompts whose label distributions are averaged, each with `profile` in place of the example's own."""

    def to_label_order(self, probabilities: Sequence[tuple[float, ...]]) -> tuple[tuple[float, ...], ...]:
        """The distributions of `asks`, brought to the order of `scale.labels`."""

    def answer(self, example: Any) -> tuple[str, str | None]:
        """Label and free text of the reviewer's true answer, of an example that has a reference."""

    def clean(self, example: Any, clean: Any) -> Asked:
        """The example with every text that came from a file passed through `clean(text, lines=...)`."""


class ListedQuestion(Question, Protocol):
    """A question about several things at once: the answer has a line for each, in their order, and each a judgement of its own.

    `example_type` is a `SeveralAsked`, `layout` that of the first line, and `asks` has one prompt.
    """

    def stem(self, number: int) -> str:
        """The beginning of the line of the label of number `number`, from 1."""

    def text_stem(self, number: int) -> str | None:
        """The beginning of the line that the model writes before it; None: no such line."""

    def read(self, number: int, of: int, answer: str) -> tuple[str | None, str]:
        """The label of number `number` in an answer that a model wrote by itself, or None, and what it says there."""
