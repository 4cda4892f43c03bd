"""Example -> segments of token ids: the ONE renderer, used by training, scoring and serving alike (DESIGN.md, promise 1).

Segments are tokenized on their own and concatenated as ids, so equal segments are equal ids whatever follows them, and
the ids trained on are the ids served. This equals tokenizing the whole text because cuts are at a newline that is followed
by no space, or directly after the template's last word before the answer; tests prove it for ChatML and LLaMA-2.

Whole reviews leave the profile, oldest first, until the prompt fits; query, answer and end-of-turn are never cut.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

from perse.errors import BadInput, TooLong
from perse.prompts import source
from perse.questions import Question
from perse.questions.base import Ask, ListedQuestion
from perse.records import Asked
from perse.rendering.chat_template import rendered_turns
from perse.rendering.fitting import Size, longest_fitting, words
from perse.rendering.neutralising import ANY_MARKER, EMPTY, broken, marker_pattern, neutralised
from perse.scale import Scale

MAX_WORDS = 2500
"""Longest prompt in words (PerSE, section 4.1)."""

ANSWER_TOKENS = 600
"""Room kept for the answer (PerSE, section 4.2: maximum generation length)."""

LABEL_TOKENS = 16
"""Room kept for the line of the label and the end-of-turn."""

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Segment:
    """A piece of a prompt with its ids; examples that begin with equal segments share the work on them."""

    name: str
    ids: Ids


@dataclass(frozen=True)
class Rendered:
    """One prompt: its segments, how many profile entries were kept, and its length in words."""

    segments: tuple[Segment, ...]
    k_effective: int
    words: int

    @property
    def ids(self) -> Ids:
        return tuple(token for segment in self.segments for token in segment.ids)


@dataclass(frozen=True)
class LabelTokens:
    """The token ids of every label of a scale after `stem`.

    `stem` is what all label lines begin with; `labels[i]` continues it. A label may extend another ("10" and "1" where a
    tokenizer splits digits); none equals another.
    """

    stem: Ids
    labels: tuple[Ids, ...]


@dataclass(frozen=True)
class ChatFrame:
    """A chat template rendered once and cut at the two contents: what stands before the user's words, between them and
    the answer, directly before the answer's first word, and after the answer up to the end-of-turn token."""

    head: str
    middle: str
    lead: str
    tail: str


def chat_frame(tokenizer: Any) -> ChatFrame:
    """The frame of the tokenizer's own chat template; ours for a LLaMA-2 tokenizer without one.

    Raises:
        BadInput: no template and not LLaMA-2, or a template that does not end the assistant's turn.
    """
    head, middle, after = _between(tokenizer, 2)
    special = [(after.find(token), token) for token in tokenizer.all_special_tokens if token in after]
    if not special:
        raise BadInput(
            f"the chat template of {tokenizer.name_or_path} does not show a user's and an assistant's words followed by an "
            "end-of-turn token; use a template that does"
        )
    at, token = min(special)
    stripped = middle.rstrip(" ")
    return ChatFrame(head, stripped, middle[len(stripped) :], after[: at + len(token)])


def _between(tokenizer: Any, turns: int) -> list[str]:
    """The chat template's text before, between and after the contents of so many turns, the user's first; cut at sentinels.

    Raises:
        BadInput: no template and not LLaMA-2, or a template that does not show every turn once and in order.
    """
    template = tokenizer.chat_template
    if template is None:
        if (tokenizer.bos_token, tokenizer.eos_token) != ("<s>", "</s>"):
            raise BadInput(
                f"the tokenizer {tokenizer.name_or_path} has no chat template; use an instruct (chat) model, or save one as "
                "chat_template.jinja beside its tokenizer_config.json"
            )
        template = source("llama2_chat.jinja")
    text = rendered_turns(tokenizer, template, turns)
    parts = re.split(r"SENTINEL(\d+)X", text)
    if parts[1::2] != [str(n) for n in range(turns)]:
        raise BadInput(
            f"the chat template of {tokenizer.name_or_path} does not show each turn of a conversation once and in order; use a "
            "template that does"
        )
    return parts[::2]


class Renderer:
    """Renders examples for one tokenizer and context length.

    Args:
        tokenizer: a Hugging Face tokenizer; its chat template decides the frame.
        context: tokens that the model can attend to.
        max_words: longest prompt in words.
    """

    def __init__(self, tokenizer: Any, context: int, *, max_words: int = MAX_WORDS) -> None:
        self.tokenizer = tokenizer
        self.context = context
        self.max_words = max_words
        self.frame = chat_frame(tokenizer)
        self._markers = marker_pattern(tokenizer, self.frame.head + self.frame.middle + self.frame.tail)
        self._newline = self._encode_whole("\n")
        self.encode = lru_cache(maxsize=4096)(self._encode)
        self.end_ids = self._end_ids()

    def clean(self, text: str, *, lines: bool = False, question: Question | None = None) -> str:
        """Untrusted text as it is shown; nothing left of it is shown as "(empty)", so that no segment ends in a blank line."""
        return self.neutralise(text, lines=lines, question=question) or EMPTY

    def neutralise(self, text: str, *, lines: bool = False, question: Question | None = None) -> str:
        """Untrusted text made safe for this tokenizer's template, in a prompt of `question` (see `neutralised`)."""
        return neutralised(text, self._markers, lines=lines, question=question)

    def spoken(self, text: str) -> str:
        """What somebody says in a conversation of their own: it cannot pass for the template's markers, and is else as it was."""
        return broken(text.encode("utf-8", "replace").decode("utf-8"), self._markers)

    def render(
        self, question: Question, example: Asked, *, answer_tokens: int = ANSWER_TOKENS, completion: Sequence[Ids] = ()
    ) -> tuple[Rendered, ...]:
        """The prompts of `question.asks`, all with the same number of profile entries.

        Args:
            answer_tokens: room for the free line of the answer, where the question has one.
            completion: ids that will follow, where they are known (training).
        Raises:
            TooLong: not even an empty profile fits; the numbers are in the message.
            BadInput: the room kept for the answer is all there is.
        """
        example = question.clean(example, partial(self.clean, question=question))
        reserved = label_room(question) + (answer_tokens if question.layout.text_prefix is not None else 0)
        room = self.context - max(reserved, sum(map(len, completion)))
        if reserved >= self.context:
            raise BadInput(
                f"{reserved} tokens are kept for the answer, all of a context of {self.context}; allow fewer new tokens"
            )
        limit, profile = _word_limit(example, self.max_words), example.profile
        shown = longest_fitting(
            len(profile), lambda dropped: _Prompts(question.asks(example, list(profile[dropped:])), limit, self, room)
        )
        if not shown.to_drop:
            return shown.rendered
        words_too = f" and {limit} words" if limit != sys.maxsize else ""
        raise TooLong(
            f"example {example.id}: {shown.tokens} tokens and {shown.words} words{_least(example)}; the budget is {room} tokens "
            f"(context {self.context} less the answer){words_too}; shorten the text or use a model with a longer context",
            tokens=shown.tokens,
            token_budget=room,
            words=shown.words,
            word_budget=limit,
        )

    def completion(self, question: Question, example: Asked) -> tuple[Ids, ...]:
        """The lines of the reviewer's true answer as ids, the last with the template's end-of-turn."""
        label, free = question.answer(question.clean(example, partial(self.clean, question=question)))
        lines = question.layout.completion(label, free)
        return tuple(self.encode(text) for text in self._with_frame(lines))

    def text_prefix(self, question: Question) -> Ids:
        """The ids that start the free line of an answer."""
        assert question.layout.text_prefix is not None
        return self.encode(self.frame.lead + question.layout.text_prefix)

    def free_line(self, question: Question, written: str) -> Ids:
        """A free line the model wrote, as training would have tokenized it, newline included."""
        return self.encode(self.frame.lead + question.layout.free_line(written))

    def label_tokens(self, question: Question) -> LabelTokens:
        """Label ids in context: every whole label line is encoded, end-of-turn included, and their common start is the stem."""
        layout = question.layout
        return self._support(layout.text_prefix is None, layout.label_prefix, layout.closing, question.scale)

    def line_support(self, question: ListedQuestion, number: int, *, first: bool) -> LabelTokens:
        """`label_tokens` of number `number`, from 1, of an answer that has several; `first`: its line begins the answer."""
        return self._support(first, question.stem(number), "", question.scale)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of generated ids; special tokens left out."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def conversation(self, turns: Sequence[str]) -> Ids:
        """The ids of a conversation (user, assistant, user, ...) that ends with the user's words, up to the assistant's first word.

        The space that a template puts before that word is left out: it is the model's to write, as part of the word.
        """
        *between, before_answer, _ = _between(self.tokenizer, len(turns) + 1)
        shown = "".join(part + turn for part, turn in zip(between, turns, strict=True))
        return self._encode_whole(shown + before_answer.rstrip(" "))

    @property
    def newline_ids(self) -> frozenset[int]:
        """Every token whose text has a line break, which ends a free line."""
        return _tokens_with_newline(self.tokenizer)

    def _with_frame(self, lines: Sequence[str]) -> tuple[str, ...]:
        framed = list(lines)
        framed[0] = self.frame.lead + framed[0]
        framed[-1] += self.frame.tail
        return tuple(framed)

    def _support(self, first_line: bool, stem: str, closing: str, scale: Scale) -> LabelTokens:
        lead = self.frame.lead if first_line else ""
        tail = self.encode_tail(closing)
        lines = [self.encode(lead + stem + label + closing + self.frame.tail) for label in scale.labels]
        bare = [line[: len(line) - len(tail)] for line in lines]
        if any(line[len(line) - len(tail) :] != tail for line in lines):
            raise BadInput(
                f"the tokenizer {self.tokenizer.name_or_path} joins a label with what ends the answer; such a tokenizer cannot be read exactly"
            )
        if len(set(bare)) < len(bare):
            raise BadInput(
                f"the tokenizer {self.tokenizer.name_or_path} gives several of the labels {', '.join(scale.labels)[:60]} the same tokens, so "
                "that no probability of theirs can be told apart; give the tokenizer that came with the model"
            )
        shared = 0
        while len({line[shared : shared + 1] for line in bare}) == 1:
            shared += 1
        return LabelTokens(bare[0][:shared], tuple(line[shared:] for line in bare))

    def encode_tail(self, closing: str = "") -> Ids:
        """The ids that follow a label: `closing`, and the template's end-of-turn."""
        word = self.encode("x")
        ids = self.encode("x" + closing + self.frame.tail)
        return ids[len(word) :]

    def _end_ids(self) -> frozenset[int]:
        tail = self.encode_tail()
        if not (self._newline and tail):
            raise _unusable(self.tokenizer)
        ends = {tail[-1]}
        if self.tokenizer.eos_token_id is not None:
            ends.add(self.tokenizer.eos_token_id)
        return frozenset(ends)

    def segments(self, ask: Ask) -> tuple[Segment, ...]:
        """A whole prompt, whatever its length."""
        texts = [("instruction", ask.instruction), *(("profile", text) for text in ask.profile)]
        texts += [(name, text) for name, text in (("query", ask.query), ("ask", ask.ask)) if text]
        texts[-1] = (texts[-1][0], texts[-1][1] + self.frame.middle)
        first = Segment(texts[0][0], self._encode_whole(self._opening(ask.before) + texts[0][1]))
        others = (Segment(name, self._entry(text) if name == "profile" else self.encode(text)) for name, text in texts[1:])
        return (first, *others)

    def _opening(self, before: Sequence[str]) -> str:
        """All that stands before the user's words: the template's beginning, and earlier turns."""
        if not before:
            return self.frame.head
        *between, _, _ = _between(self.tokenizer, len(before) + 2)
        return "".join(part + turn for part, turn in zip(between, (*before, ""), strict=True))

    def number_tokens(self, number: int) -> int:
        """Tokens that the number of a profile's entry takes, up to a constant."""
        return len(self.encode(f"[Plot {number}]"))

    def _entry(self, text: str) -> Ids:
        """An entry of a profile, its first line, which has its number, apart from the rest, which is then tokenized once
        whatever the number."""
        head, newline, rest = text.partition("\n")
        return self.encode(head + newline) + self.encode(rest) if rest else self.encode(text)

    def _encode_whole(self, text: str) -> Ids:
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))

    def _encode(self, text: str) -> Ids:
        """`text` as it is tokenized in the middle of a prompt.

        It is encoded behind a newline whose ids are then dropped: SentencePiece would otherwise put a dummy space before
        the first word of every segment.
        """
        ids = self._encode_whole("\n" + text)
        if ids[: len(self._newline)] != self._newline:
            raise _unusable(self.tokenizer)
        return ids[len(self._newline) :]


def _unusable(tokenizer: Any) -> BadInput:
    """The error for a tokenizer that leaves out texts, as one whose own template has no place for them, or changes them by what follows."""
    return BadInput(
        f"the tokenizer {tokenizer.name_or_path} gives a text no tokens of its own behind a line end; give the tokenizer that came "
        "with the model"
    )


@dataclass(frozen=True)
class _Messages:
    """A question's prompts with some of the profile's entries, as words."""

    asks: tuple[Ask, ...]
    limit: int

    @cached_property
    def words_of(self) -> Size:
        return _words(self.asks)

    @property
    def words(self) -> int:
        return self.words_of.total

    @cached_property
    def to_drop(self) -> int:
        """Entries that must leave the profile before the prompts fit."""
        return self.words_of.to_drop(self.limit)


@dataclass(frozen=True)
class _Prompts(_Messages):
    """The same for an engine of token ids. Tokens are counted only where the words fit."""

    renderer: Renderer
    room: int

    @cached_property
    def segments(self) -> tuple[tuple[Segment, ...], ...]:
        return tuple(self.renderer.segments(ask) for ask in self.asks)

    @cached_property
    def tokens_of(self) -> Size:
        fixed = [sum(len(segment.ids) for segment in each if segment.name != "profile") for each in self.segments]
        return Size(max(fixed), tuple(len(segment.ids) for segment in self.segments[0] if segment.name == "profile"))

    @property
    def tokens(self) -> int:
        return self.tokens_of.total

    @cached_property
    def to_drop(self) -> int:
        return self.words_of.to_drop(self.limit) or self.tokens_of.to_drop(self.room, self.renderer.number_tokens)

    @property
    def rendered(self) -> tuple[Rendered, ...]:
        return tuple(
            Rendered(segments, len(ask.profile), len(ask.text.split()))
            for ask, segments in zip(self.asks, self.segments, strict=True)
        )


@dataclass(frozen=True)
class Message:
    """One prompt as a user's message, for engines that take words; how many profile entries were kept."""

    text: str
    k_effective: int
    before: tuple[str, ...] = ()

    @property
    def prompt(self) -> str | tuple[str, ...]:
        """The message, or the conversation that ends with it."""
        return (*self.before, self.text) if self.before else self.text


class TextRenderer:
    """Renders examples for a chat engine, whose tokenizer and context are not known: the same words, limited in words only."""

    context = None

    def __init__(self, *, max_words: int = MAX_WORDS) -> None:
        self.max_words = max_words

    def clean(self, text: str, *, lines: bool = False, question: Question | None = None) -> str:
        """Untrusted text as it is shown; see `Renderer.clean`."""
        return self.neutralise(text, lines=lines, question=question) or EMPTY

    def neutralise(self, text: str, *, lines: bool = False, question: Question | None = None) -> str:
        """Untrusted text made safe for any common template, in a prompt of `question` (see `neutralised`)."""
        return neutralised(text, ANY_MARKER, lines=lines, question=question)

    def render(self, question: Question, example: Asked) -> tuple[Message, ...]:
        """The prompts of `question.asks`, all with the same number of profile entries.

        Raises:
            TooLong: not even an empty profile fits; the numbers are in the message.
        """
        example = question.clean(example, partial(self.clean, question=question))
        limit, profile = _word_limit(example, self.max_words), example.profile
        shown = longest_fitting(len(profile), lambda dropped: _Messages(question.asks(example, list(profile[dropped:])), limit))
        if not shown.to_drop:
            return tuple(Message(ask.text, len(ask.profile), ask.before) for ask in shown.asks)
        raise TooLong(
            f"example {example.id}: {shown.words} words{_least(example)}; the budget is {limit} words; shorten the text",
            words=shown.words,
            word_budget=limit,
        )


def _words(asks: Sequence[Ask]) -> Size:
    """Of the longest of these prompts, which have one profile."""
    return max((words((ask.instruction, ask.query, ask.ask), ask.profile) for ask in asks), key=lambda size: size.fixed)


def label_room(question: Question) -> int:
    """Tokens kept for all of an answer but its free text."""
    return LABEL_TOKENS + question.layout.surroundings


def _word_limit(example: Asked, most: int) -> int:
    """Of prompts for readers (PerSE, section 4.1); a text that claims are about is as long as it is."""
    return most if example.limited else sys.maxsize


def _least(example: Asked) -> str:
    """What a too long prompt has already lost."""
    return " with an empty profile" if example.shortened else ""


@lru_cache(maxsize=8)
def _tokens_with_newline(tokenizer: Any) -> frozenset[int]:
    texts = tokenizer.batch_decode([[token] for token in range(len(tokenizer))])
    return frozenset(token for token, text in enumerate(texts) if "\n" in text)
