"""Judge: examples in, judgements out, whatever the engine.

The judge renders, groups prompts by reviewer so that the engine shares the work on profiles, lets the model write the
review where the question wants one, and reads the exact label distribution after it. What goes wrong with an example
becomes the status of its judgement (DESIGN.md, promise 3).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from perse.engines.base import Engine, Generation, LabelDistribution, Sampling
from perse.errors import BadInput, TooLong
from perse.judgement import Judgement, Status, Tokens
from perse.questions import Question, question_for
from perse.records import Example, PointwiseExample, ProfileReview, explain
from perse.rendering import Ids, Rendered, Renderer

log = logging.getLogger(__name__)

MIN_MASS = 0.5
"""Below this probability of any label at all, the model would rather have said something else: `unparsed`."""

CHUNK = 32
"""Examples sent to the engine, and written to the run log, together."""


@dataclass(frozen=True)
class JudgeSettings:
    """How to answer. Defaults are the paper's (PerSE, section 4.2); temperature 0 is greedy.

    The label is drawn from the exact distribution at `temperature`, as if the model had written it; `expected` and
    `distribution` do not depend on the draw.
    """

    temperature: float = 0.8
    max_new_tokens: int = 600
    seed: int = 0


@dataclass
class _Work:
    """One example on its way: its prompts, then what was written, then the distributions."""

    example: Example
    rendered: tuple[Rendered, ...]
    written: Generation | None = None
    text: str = ""
    read: tuple[LabelDistribution, ...] = ()

    def prefixes(self, answer: Ids) -> list[Ids]:
        return [prompt.ids + answer for prompt in self.rendered]


class Judge:
    """One model that answers questions for particular readers."""

    def __init__(self, engine: Engine, renderer: Renderer, *, name: str, digest: str = "") -> None:
        self.engine = engine
        self.renderer = renderer
        self.name = name
        self.digest = digest

    @classmethod
    def load(cls, model: str | Path, *, dtype: str = "bfloat16", context: int | None = None, max_rows: int = 16) -> Judge:
        """The judge `model`: a training run's folder, a model folder, an embedded model's name, or a hub name.

        Args:
            dtype: "bfloat16", "float16" or "float32" (exact comparisons).
            context: tokens to use, at most what the model was made for.
        Raises:
            ModelNotFound: nowhere to be had; the message lists what was tried.
        """
        from transformers import AutoTokenizer

        from perse.engines.transformers import TransformersEngine
        from perse.models import context_length, find, weights_digest

        path = find(str(model))
        engine = TransformersEngine.load(path, dtype=dtype, max_rows=max_rows)
        longest = context_length(path)
        renderer = Renderer(AutoTokenizer.from_pretrained(str(path)), min(context or longest, longest))
        return cls(engine, renderer, name=str(model), digest=weights_digest(path))

    def ask(self, question: Question, examples: Sequence[Example], settings: JudgeSettings | None = None) -> list[Judgement]:
        """A judgement for every example, in the order given.

        Raises:
            BadInput: two examples with one id.
        """
        if len({example.id for example in examples}) < len(examples):
            raise BadInput("two examples have the same id; give each its own")
        by_id = {judgement.id: judgement for chunk in self.stream(question, examples, settings) for judgement in chunk}
        return [by_id[example.id] for example in examples]

    def stream(
        self, question: Question, examples: Iterable[Example], settings: JudgeSettings | None = None
    ) -> Iterator[list[Judgement]]:
        """Judgements in chunks, as they are ready, ordered by reviewer."""
        settings = settings or JudgeSettings()
        ordered = sorted(examples, key=lambda example: example.reviewer_id)
        for start in range(0, len(ordered), CHUNK):
            yield self._chunk(question, ordered[start : start + CHUNK], settings)

    def ask_one(
        self,
        *,
        reviews: Sequence[ProfileReview | tuple[str, str, int]],
        text: str,
        question: str = "pointwise",
        settings: JudgeSettings | None = None,
    ) -> Judgement:
        """What one reader, known by a few reviews (text, review, score 1-10), would say of `text`.

        Raises:
            BadInput: an empty text, or a review that is none; the message says which field.
        """
        try:
            profile = tuple(
                review
                if isinstance(review, ProfileReview)
                else ProfileReview(text=review[0], review=review[1], score=review[2])
                for review in reviews
            )
        except ValidationError as error:
            raise BadInput(f"a past review, {explain(error)}") from None
        if not text.strip():
            raise BadInput("the text to judge is empty; give the text that the reader would review")
        example = PointwiseExample(id="ask", reviewer_id="reader", item_id="text", profile=profile, query=text)
        return self.ask(question_for([example], question), [example], settings)[0]

    def _chunk(self, question: Question, examples: Sequence[Example], settings: JudgeSettings) -> list[Judgement]:
        done: list[Judgement] = []
        work: list[_Work] = []
        for example in examples:
            try:
                work.append(_Work(example, self._render(question, example, settings)))
            except TooLong as error:
                done.append(self._failed(question, example, Status.TOO_LONG, str(error)))
        return done + self._answer(question, work, settings)

    def _render(self, question: Question, example: Example, settings: JudgeSettings) -> tuple[Rendered, ...]:
        return self.renderer.render(question, example, answer_tokens=settings.max_new_tokens)

    def prompt_digest(self, question: Question, examples: Sequence[Example], settings: JudgeSettings) -> str:
        """What the prompts of these examples depend on, as one digest: wording, template, tokenizer, budget."""
        digest = hashlib.sha256(repr(self.renderer.label_support(question)).encode())
        for example in examples:
            with contextlib.suppress(TooLong):
                digest.update(repr([prompt.ids for prompt in self._render(question, example, settings)]).encode())
        return digest.hexdigest()

    def _answer(self, question: Question, work: Sequence[_Work], settings: JudgeSettings) -> list[Judgement]:
        if not work:
            return []
        try:
            self._run(question, work, settings)
        except RuntimeError as error:  # what torch raises, out of memory included
            if len(work) == 1:
                log.warning("example %s: the engine failed: %s", work[0].example.id, error)
                return [self._failed(question, work[0].example, Status.ENGINE_ERROR, f"{type(error).__name__}: {error}")]
            return [judgement for one in work for judgement in self._answer(question, [one], settings)]
        return [self._judgement(question, one, settings) for one in work]

    def _run(self, question: Question, work: Sequence[_Work], settings: JudgeSettings) -> None:
        answers: list[Ids] = [()] * len(work)
        if question.layout.free_stem is not None:
            sampling = Sampling(
                settings.temperature, settings.max_new_tokens, self.renderer.newline_ids | self.renderer.end_ids
            )
            stem = self.renderer.free_stem(question)
            seeds = [random.Random(f"{settings.seed}:{one.example.id}:text").getrandbits(63) for one in work]
            generations = self.engine.generate([one.prefixes(stem)[0] for one in work], sampling, seeds=seeds)
            for at, (one, generation) in enumerate(zip(work, generations, strict=True)):
                one.written = generation
                one.text = self.renderer.neutralise(self.renderer.decode(generation.ids).partition("\n")[0])
                answers[at] = self.renderer.free_line(question, one.text)
        prefixes = [one.prefixes(answer) for one, answer in zip(work, answers, strict=True)]
        flat = [prefix for each in prefixes for prefix in each]
        read = iter(self.engine.label_distributions(flat, self.renderer.label_support(question)))
        for one, each in zip(work, prefixes, strict=True):
            one.read = tuple(next(read) for _ in each)

    def _judgement(self, question: Question, one: _Work, settings: JudgeSettings) -> Judgement:
        scale, n = question.scale, len(one.read)
        in_order = question.unswap([read.probabilities for read in one.read])
        probabilities = tuple(math.fsum(p) / n for p in zip(*in_order, strict=True))
        mass = math.fsum(read.mass for read in one.read) / n
        parsed = mass >= MIN_MASS
        label = _draw(scale.labels, probabilities, settings.temperature, f"{settings.seed}:{one.example.id}:label")
        asked = [len(prompt.ids) for prompt in one.rendered]
        known = [read.cached for read in one.read] if one.written is None else [one.written.cached]
        return Judgement(
            id=one.example.id,
            question=question.name,
            status=Status.OK if parsed else Status.UNPARSED,
            label=label if parsed else None,
            expected=scale.expected(probabilities),
            distribution=dict(zip(scale.labels, probabilities, strict=True)),
            mass=mass,
            text=one.text,
            mean_logprob=one.written.mean_logprob if one.written else None,
            order_gap=abs(in_order[0][0] - in_order[1][0]) if n == 2 else None,
            k_effective=one.rendered[0].k_effective,
            finish_reason=one.written.finish_reason if one.written else None,
            tokens=Tokens(
                prompt=sum(asked),
                cached=sum(map(min, asked, known)),
                generated=len(one.written.ids) if one.written else 0,
            ),
            model=self.name,
            error=None
            if parsed
            else f"the labels {scale.labels[0]}..{scale.labels[-1]} have {mass:.2g} of the probability, below {MIN_MASS}",
        )

    def _failed(self, question: Question, example: Example, status: Status, error: str) -> Judgement:
        return Judgement(
            id=example.id,
            question=question.name,
            status=status,
            k_effective=0,
            tokens=Tokens(prompt=0, cached=0, generated=0),
            model=self.name,
            error=error,
        )


def _draw(labels: Sequence[str], probabilities: Sequence[float], temperature: float, seed: str) -> str:
    """The likeliest label at temperature 0, else one drawn from the distribution at that temperature."""
    if temperature == 0:
        return labels[max(range(len(labels)), key=lambda i: probabilities[i])]
    largest = max(probabilities)
    weights = [(p / largest) ** (1 / temperature) for p in probabilities]
    return random.Random(seed).choices(labels, weights)[0]
