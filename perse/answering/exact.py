"""Exact answers from an engine of token ids: let it write the review where the question wants one, then read the label
distribution behind it (DESIGN.md, promise 4)."""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from perse.answering.base import JudgeSettings, draw, failed, prompts_of, tell_failure, text_seed
from perse.engines.base import Engine, Failure, Generation, LabelDistribution, Sampling
from perse.engines.kind import Identity
from perse.errors import TooLong
from perse.judgement import Judgement, Status, Tokens
from perse.questions import Question
from perse.records import Asked
from perse.rendering.prompt import Ids, Rendered, Renderer, label_room
from perse.scale import Scale

MIN_MASS = 0.5
"""With less mass on all labels together the answer is `unparsed`."""


@dataclass
class _Work:
    """One example on its way: its prompts, then what was written, then the distributions, or what failed."""

    example: Asked
    rendered: tuple[Rendered, ...]
    written: Generation | None = None
    text: str = ""
    answer: Ids = ()
    read: tuple[LabelDistribution, ...] = ()
    failure: Failure | None = None

    def prefixes(self, answer: Ids) -> list[Ids]:
        return [prompt.ids + answer for prompt in self.rendered]


class ExactAnswering:
    """Asks an `Engine`, with prompts that `renderer` makes."""

    def __init__(self, engine: Engine, renderer: Renderer, identity: Identity) -> None:
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
        for one, judgement in self._try(question, [_Work(*each) for each in asked], settings):
            done[one.example.id] = judgement
            if one.failure is not None:
                note(one.failure)
        return [done[example.id] for example in examples]

    def prompt_digest(self, question: Question, examples: Sequence[Asked], settings: JudgeSettings) -> str:
        digest = hashlib.sha256(repr(self.renderer.label_tokens(question)).encode())
        for example in examples:
            with contextlib.suppress(TooLong):
                digest.update(repr([prompt.ids for prompt in self.render(question, example, settings)]).encode())
        return digest.hexdigest()

    def render(self, question: Question, example: Asked, settings: JudgeSettings) -> tuple[Rendered, ...]:
        return self.renderer.render(question, example, answer_tokens=settings.max_new_tokens)

    def _try(self, question: Question, work: Sequence[_Work], settings: JudgeSettings) -> list[tuple[_Work, Judgement]]:
        """The judgements of `work`; if the engine fails at them together, each is asked alone."""
        if not work:
            return []
        try:
            self._run(question, work, settings)
        except RuntimeError as error:  # what torch raises, out of memory included
            if len(work) > 1:
                return [done for one in work for done in self._try(question, [one], settings)]
            work[0].failure = Failure(f"{type(error).__name__}: {error}")
        return [(one, self._judgement(question, one, settings)) for one in work]

    def _run(self, question: Question, work: Sequence[_Work], settings: JudgeSettings) -> None:
        if question.layout.text_prefix is not None:
            self._write(question, work, settings)
        going = [one for one in work if one.failure is None]
        prefixes = [one.prefixes(one.answer) for one in going]
        flat = [prefix for each in prefixes for prefix in each]
        read = iter(self.engine.label_distributions(flat, self.renderer.label_tokens(question)) if flat else [])
        for one, each in zip(going, prefixes, strict=True):
            found = [next(read) for _ in each]
            one.failure = next((answer for answer in found if isinstance(answer, Failure)), None)
            one.read = tuple(answer for answer in found if not isinstance(answer, Failure))

    def _write(self, question: Question, work: Sequence[_Work], settings: JudgeSettings) -> None:
        stop = self.renderer.newline_ids | self.renderer.end_ids
        sampling = Sampling(settings.temperature, settings.max_new_tokens, stop)
        stem = self.renderer.text_prefix(question)
        seeds = [text_seed(settings, one.example) for one in work]
        generations = self.engine.generate([one.prefixes(stem)[0] for one in work], sampling, seeds=seeds)
        for one, generation in zip(work, generations, strict=True):
            if isinstance(generation, Failure):
                one.failure = generation
                continue
            one.written = generation
            line = self.renderer.decode(generation.ids).partition("\n")[0]
            one.text = self.renderer.neutralise(question.layout.free_text(line))
            one.answer = self.renderer.free_line(question, one.text)
            # Cleaned and tokenized again, a text can have more tokens than were written; not seen in real reviews.
            while (beyond := self._beyond(question, one)) > 0 and one.text:
                one.text = one.text[:-beyond].rstrip()
                one.answer = self.renderer.free_line(question, one.text)
                one.written = replace(generation, finish_reason="length")
            if beyond > 0:
                one.failure = Failure(f"{beyond} tokens too many for the context, once an empty review is read again")

    def _beyond(self, question: Question, one: _Work) -> int:
        """Tokens by which the prompts with the answer so far, and a label, are longer than the context."""
        return max(map(len, one.prefixes(one.answer))) + label_room(question) - self.renderer.context

    def _judgement(self, question: Question, one: _Work, settings: JudgeSettings) -> Judgement:
        if one.failure is not None:
            tell_failure(one.example.id, one.failure.reason)
            return failed(self.identity, question, one.example, Status.ENGINE_ERROR, one.failure.reason)
        scale, n = question.scale, len(one.read)
        in_order = question.to_label_order([read.probabilities for read in one.read])
        probabilities = tuple(math.fsum(p) / n for p in zip(*in_order, strict=True))
        mass = math.fsum(read.mass for read in one.read) / n
        parsed = mass >= MIN_MASS
        asked = [len(prompt.ids) for prompt in one.rendered]
        known = [read.cached for read in one.read] if one.written is None else [one.written.cached]
        return Judgement(
            id=one.example.id,
            question=question.name,
            status=Status.OK if parsed else Status.UNPARSED,
            label=draw(scale.labels, probabilities, settings, one.example) if parsed else None,
            expected=scale.expected(probabilities),
            distribution=dict(zip(scale.labels, probabilities, strict=True)),
            exact=True,
            mass=mass,
            text=one.text,
            mean_logprob=one.written.mean_logprob if one.written else None,
            order_gap=abs(in_order[0][0] - in_order[1][0]) if n == 2 else None,
            order_probabilities=(in_order[0][0], in_order[1][0]) if n == 2 else None,
            k_effective=one.rendered[0].k_effective,
            finish_reason=one.written.finish_reason if one.written else None,
            tokens=Tokens(
                prompt=sum(asked),
                cached=sum(map(min, asked, known)),
                generated=len(one.written.ids) if one.written else 0,
            ),
            model=self.identity.model,
            adapter=self.identity.adapter,
            error=None if parsed else no_label_mass(scale, mass),
        )


def no_label_mass(scale: Scale, mass: float) -> str:
    """The error of an answer without enough mass on the labels."""
    return f"the labels {scale.shown} have {mass:.2g} of the probability, below {MIN_MASS}"
