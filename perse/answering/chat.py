"""Answers in words, from an engine that takes a user's message: the label is what the model wrote, and there is a distribution
only where the server tells enough of what it could have written in its place (`likeliest`). Pairs are asked in both orders; where the
two answers disagree, one of them is drawn, and the order gap is 1 without distributions."""

from __future__ import annotations

import contextlib
import hashlib
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from perse.answering.base import JudgeSettings, failed, prompts_of, tell_failure, text_seed
from perse.answering.likeliest import Likeliest, likeliest_labels
from perse.engines.base import ChatEngine, Failure, Reply, Sampling, was_cut
from perse.engines.kind import Identity
from perse.errors import TooLong
from perse.judgement import Judgement, Status, Tokens
from perse.questions import Question
from perse.records import Asked
from perse.rendering.prompt import Message, TextRenderer, label_room


class ChatAnswering:
    """Asks a `ChatEngine`, with messages that `renderer` makes."""

    def __init__(self, engine: ChatEngine, renderer: TextRenderer, identity: Identity) -> None:
        self.engine = engine
        self.renderer = renderer
        self.identity = identity

    def answer(
        self,
        question: Question,
        examples: Sequence[Asked],
        settings: JudgeSettings,
        *,
        note: Callable[[Failure], None] = lambda failure: None,
    ) -> list[Judgement]:
        asked, done = prompts_of(self.identity, question, examples, lambda one: self.render(question, one, settings))
        flat = [(message.prompt, text_seed(settings, example)) for example, messages in asked for message in messages]
        limit = label_room(question) + (settings.max_new_tokens if question.layout.text_prefix is not None else 0)
        sampling = Sampling(settings.temperature, limit, likeliest=True)
        replies = iter(
            self.engine.chat([prompt for prompt, _ in flat], sampling, seeds=[seed for _, seed in flat]) if flat else []
        )
        for example, messages in asked:
            own = [next(replies) for _ in messages]
            if failure := next((reply for reply in own if isinstance(reply, Failure)), None):
                note(failure)
            done[example.id] = self._judgement(question, example, messages, own, settings)
        return [done[example.id] for example in examples]

    def render(self, question: Question, example: Asked, settings: JudgeSettings) -> tuple[Message, ...]:
        return self.renderer.render(question, example)

    def prompt_digest(self, question: Question, examples: Sequence[Asked], settings: JudgeSettings) -> str:
        digest = hashlib.sha256()
        for example in examples:
            with contextlib.suppress(TooLong):
                digest.update(repr([message.prompt for message in self.render(question, example, settings)]).encode())
        return digest.hexdigest()

    def _judgement(
        self,
        question: Question,
        example: Asked,
        messages: Sequence[Message],
        replies: Sequence[Reply | Failure],
        settings: JudgeSettings,
    ) -> Judgement:
        said = []
        for reply in replies:
            if isinstance(reply, Failure):
                tell_failure(example.id, reply.reason)
                return failed(self.identity, question, example, Status.ENGINE_ERROR, reply.reason)
            said.append(reply)
        read = [question.layout.read(_complete(reply), question.scale) for reply in said]
        texts = [self.renderer.neutralise(reply.text) for reply in said]
        labels = [label for label, _ in read if label is not None]
        label, gap, error, status = None, None, None, Status.OK
        told: list[Likeliest | None] = []
        refusals = [text[:200] or reply.finish_reason for text, reply in zip(texts, said, strict=True) if reply.refused]
        if refusals:
            status, error = Status.REFUSED, f"the model declined to answer: {refusals[0]}"
        elif len(labels) < len(said):
            unread = next(i for i, (known, _) in enumerate(read) if known is None)
            status, error = Status.UNPARSED, _no_label(question, texts[unread], said[unread].finish_reason)
        else:
            chosen = _in_given_order(question, labels)
            label = random.Random(f"{settings.seed}:{example.id}:label").choice(chosen)
            gap = float(chosen[0] != chosen[1]) if len(chosen) == 2 else None
            told = [_told(question, reply) for reply in said]
        free = (
            self.renderer.neutralise(read[0][1]) if status is Status.OK and question.layout.text_prefix else " / ".join(texts)
        )
        judgement = Judgement(
            id=example.id,
            question=question.name,
            status=status,
            label=label,
            text=free,
            order_gap=gap,
            k_effective=messages[0].k_effective,
            finish_reason=said[0].finish_reason,
            tokens=Tokens(
                prompt=sum(reply.tokens.prompt for reply in said),
                cached=sum(reply.tokens.cached for reply in said),
                generated=sum(reply.tokens.generated for reply in said),
            ),
            model=self.identity.model,
            adapter=self.identity.adapter,
            error=error,
        )
        known = [one for one in told if one is not None]
        return judgement.model_copy(update=_probabilities(question, known)) if known and len(known) == len(said) else judgement


def _told(question: Question, reply: Reply) -> Likeliest | None:
    """What the server tells of the labels that the model could have written; None where it tells nothing."""
    place = question.layout.label_place(_complete(reply), question.scale)
    return None if place is None or not reply.told else likeliest_labels(reply.told, reply.text, place, question.scale)


def _probabilities(question: Question, told: Sequence[Likeliest]) -> dict[str, Any]:
    """Fields of a judgement, from what was told of the labels of each answer."""
    found: dict[str, Any] = {"exact": False, "mass": math.fsum(one.mass for one in told) / len(told)}
    known = [one.probabilities for one in told if one.probabilities is not None]
    if len(known) < len(told):
        return found
    in_order = question.to_label_order(known)
    probabilities = tuple(math.fsum(p) / len(known) for p in zip(*in_order, strict=True))
    found |= {
        "distribution": dict(zip(question.scale.labels, probabilities, strict=True)),
        "expected": question.scale.expected(probabilities),
    }
    if len(known) == 2:
        found |= {
            "order_gap": abs(in_order[0][0] - in_order[1][0]),
            "order_probabilities": (in_order[0][0], in_order[1][0]),
        }
    return found


def _complete(reply: Reply) -> str:
    """The text to read, without the last line if it is cut off: "1" may be half of "10"."""
    return reply.text.rpartition("\n")[0] if was_cut(reply.finish_reason) else reply.text


def _in_given_order(question: Question, labels: Sequence[str]) -> list[str]:
    """Each answer's label for the given order of the texts, by `question.to_label_order` of a certain distribution."""
    certain = [tuple(float(label == known) for known in question.scale.labels) for label in labels]
    return [question.scale.labels[max(range(len(p)), key=lambda i: p[i])] for p in question.to_label_order(certain)]


def _no_label(question: Question, text: str, finish_reason: str) -> str:
    shown = (text if len(text) <= 200 else text[:200] + "...") or "(nothing)"
    cut = (
        ", before it was cut off"
        if finish_reason == "length"
        else f" and ended for '{finish_reason}', which may have cut it off"
    )
    cut = cut if was_cut(finish_reason) else ""
    return f"expected '{question.layout.label_prefix}' and one of {question.scale.shown}; the model said{cut}: {shown}"
