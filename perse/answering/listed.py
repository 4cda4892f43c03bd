"""Several judgements of one prompt: a line for each, read one after the other (DESIGN.md, promise 4).

Where an engine takes token ids, the lines are ours and only the labels, and what is said before them, the model's: the distribution of number n is read
behind the lines before it, each with the label it was given, so that nothing has to be parsed and nothing goes without an answer. An engine of words
writes all lines itself; a missing or unreadable line fails its own number only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perse.answering.base import JudgeSettings, draw, failed, tell_failure, text_seed
from perse.answering.exact import MIN_MASS, no_label_mass
from perse.engines.base import ChatEngine, Engine, Failure, Generation, LabelDistribution, Reply, Sampling, was_cut
from perse.engines.kind import Identity
from perse.errors import TooLong
from perse.judgement import Judgement, Status, Tokens
from perse.questions.base import ListedQuestion
from perse.records import Asked, SeveralAsked
from perse.rendering.prompt import LABEL_TOKENS, Ids, LabelTokens, Renderer, TextRenderer

NOTHING = Tokens(prompt=0, cached=0, generated=0)


@dataclass(frozen=True)
class Listed:
    """A question about several things in each example.

    `known` are existing judgements, by id; `note` is called with the failures of the engine.
    """

    question: ListedQuestion
    examples: Sequence[SeveralAsked]
    settings: JudgeSettings
    known: Mapping[str, Judgement]
    note: Callable[[Failure], None]

    @property
    def writes(self) -> bool:
        """Whether the model writes a line before each label."""
        return self.question.text_stem(1) is not None

    def missing(self, judgements: Iterable[Judgement]) -> list[Judgement]:
        """The judgements that were not known."""
        return [one for one in judgements if one.id not in self.known]


@dataclass
class _Lines:
    """One example on its way: its prompt with the lines that are answered, how many those are, and what was written for the next."""

    parts: Sequence[Asked]
    ids: Ids
    done: int = 0
    text: str = ""
    written: Generation | None = None

    @property
    def next(self) -> Asked:
        return self.parts[self.done]


def listed_exactly(engine: Engine, renderer: Renderer, identity: Identity, asked: Listed) -> Iterator[list[Judgement]]:
    """All judgements from an engine of token ids: of each example's first line, then of the second, and so on."""
    question = asked.question
    going: list[_Lines] = []
    for example in asked.examples:
        parts = example.each()
        try:
            (prompt,) = renderer.render(question, example, completion=_room(renderer, asked, len(parts)))
        except TooLong as error:
            yield asked.missing(failed(identity, question, part, Status.TOO_LONG, str(error)) for part in parts)
            continue
        one = _Lines(parts, prompt.ids)
        while one.done < len(parts) and (known := asked.known.get(one.next.id)) and known.distribution is not None:
            one.ids += _free_line(renderer, asked, one.done + 1, known.text)
            _go_on(one, renderer, asked, tuple(known.distribution[label] for label in question.scale.labels))
        if one.done < len(parts):
            going.append(one)
    while going:
        number = min(one.done for one in going) + 1
        now = [one for one in going if one.done + 1 == number]
        failures = _write(engine, renderer, asked, now, number) if asked.writes else {}
        whole = [one for one in now if id(one) not in failures]
        reads = _read(engine, [one.ids for one in whole], _support(renderer, asked, number)) if whole else []
        for one, read in [*((one, failures[id(one)]) for one in now if id(one) in failures), *zip(whole, reads, strict=True)]:
            part, shown = one.next, len(one.ids)
            if isinstance(read, Failure):  # what follows it cannot be asked either
                tell_failure(part.id, read.reason)
                asked.note(read)
                rest, one.done = one.parts[one.done :], len(one.parts)
                yield asked.missing(failed(identity, question, each, Status.ENGINE_ERROR, read.reason) for each in rest)
                continue
            label = _go_on(one, renderer, asked, read.probabilities)
            yield asked.missing([_judgement(identity, question, part, one, read, label=label, prompt=shown)])
        going = [one for one in going if one.done < len(one.parts)]


def _room(renderer: Renderer, asked: Listed, parts: int) -> tuple[Ids, ...]:
    """As many ids as the whole answer can have."""
    label = longest(asked.question)
    lines = [_line(renderer, asked, number, label) for number in range(1, parts + 1)]
    if not asked.writes:
        return tuple(lines)
    begun = [_free_line(renderer, asked, number, "") for number in range(1, parts + 1)]
    return tuple(stem + stem[:1] * asked.settings.max_new_tokens + line for stem, line in zip(begun, lines, strict=True))


def _write(engine: Engine, renderer: Renderer, asked: Listed, now: Sequence[_Lines], number: int) -> dict[int, Failure]:
    """Let the model write what it says before label `number`, and put it to the lines; what failed, by the `id` of the lines."""
    question, settings = asked.question, asked.settings
    stem = renderer.encode(_lead(renderer, asked, number, written=True) + str(question.text_stem(number)))
    sampling = Sampling(settings.temperature, settings.max_new_tokens, renderer.newline_ids | renderer.end_ids)
    seeds = [text_seed(settings, one.next) for one in now]
    failures: dict[int, Failure] = {}
    for one, made in zip(now, _generated(engine, [one.ids + stem for one in now], sampling, seeds), strict=True):
        if isinstance(made, Failure):
            failures[id(one)] = made
            continue
        text = renderer.neutralise(renderer.decode(made.ids).partition("\n")[0], question=question)
        # Cleaned and tokenized again, a text can have more tokens than there is room for.
        while (beyond := len(_free_line(renderer, asked, number, text)) - len(stem) - settings.max_new_tokens - 1) > 0:
            text = text[:-beyond].rstrip()
        one.text, one.written = text, made
        one.ids += _free_line(renderer, asked, number, text)
    return failures


def _generated(engine: Engine, prompts: list[Ids], sampling: Sampling, seeds: Sequence[int]) -> list[Generation | Failure]:
    """What is written after each prompt; if the engine fails at them together, each is asked alone."""
    try:
        return engine.generate(prompts, sampling, seeds=seeds)
    except RuntimeError as error:  # what torch raises, out of memory included
        if len(prompts) == 1:
            return [Failure(f"{type(error).__name__}: {error}")]
        return [_generated(engine, [one], sampling, [seed])[0] for one, seed in zip(prompts, seeds, strict=True)]


def _read(engine: Engine, prefixes: list[Ids], support: LabelTokens) -> list[LabelDistribution | Failure]:
    """The distributions after each prefix; if the engine fails at them together, each is asked alone."""
    try:
        return engine.label_distributions(prefixes, support)
    except RuntimeError as error:
        if len(prefixes) == 1:
            return [Failure(f"{type(error).__name__}: {error}")]
        return [_read(engine, [prefix], support)[0] for prefix in prefixes]


def _go_on(one: _Lines, renderer: Renderer, asked: Listed, probabilities: Sequence[float]) -> str:
    """Add the line of the next label, which its probabilities give."""
    label = draw(asked.question.scale.labels, probabilities, asked.settings, one.next)
    one.done += 1
    one.ids += _line(renderer, asked, one.done, label)
    return label


def longest(question: ListedQuestion) -> str:
    """The label that takes the most room."""
    return max(question.scale.labels, key=len)


def _lead(renderer: Renderer, asked: Listed, number: int, *, written: bool) -> str:
    """What the template puts before the answer's first word, if this line begins with it."""
    return renderer.frame.lead if number == 1 and written == asked.writes else ""


def _line(renderer: Renderer, asked: Listed, number: int, label: str) -> Ids:
    """The ids of the whole line of a label."""
    return renderer.encode(f"{_lead(renderer, asked, number, written=False)}{asked.question.stem(number)}{label}\n")


def _free_line(renderer: Renderer, asked: Listed, number: int, text: str) -> Ids:
    """The ids of the whole line before it; none where nothing is written."""
    stem = asked.question.text_stem(number)
    if stem is None:
        return ()
    return renderer.encode(f"{_lead(renderer, asked, number, written=True)}{stem} {text}".rstrip() + "\n")


def _support(renderer: Renderer, asked: Listed, number: int) -> LabelTokens:
    return renderer.line_support(asked.question, number, first=number == 1 and not asked.writes)


def _judgement(
    identity: Identity, question: ListedQuestion, part: Asked, one: _Lines, read: LabelDistribution, *, label: str, prompt: int
) -> Judgement:
    parsed = read.mass >= MIN_MASS
    written = one.written
    return Judgement(
        id=part.id,
        question=question.name,
        status=Status.OK if parsed else Status.UNPARSED,
        label=label if parsed else None,
        expected=question.scale.expected(read.probabilities),
        distribution=dict(zip(question.scale.labels, read.probabilities, strict=True)),
        exact=True,
        mass=read.mass,
        text=one.text,
        mean_logprob=written.mean_logprob if written else None,
        k_effective=0,
        finish_reason=written.finish_reason if written else None,
        tokens=Tokens(
            prompt=prompt,
            cached=min(prompt, written.cached if written else read.cached),
            generated=len(written.ids) if written else 0,
        ),
        model=identity.model,
        adapter=identity.adapter,
        error=None if parsed else no_label_mass(question.scale, read.mass),
    )


def listed_in_words(engine: ChatEngine, renderer: TextRenderer, identity: Identity, asked: Listed) -> Iterator[list[Judgement]]:
    """All judgements, as a chat engine wrote them, those of an example together."""
    question, settings = asked.question, asked.settings
    messages: list[tuple[SeveralAsked, str]] = []
    for example in asked.examples:
        if all(part.id in asked.known for part in example.each()):
            continue
        try:
            messages.append((example, renderer.render(question, example)[0].text))
        except TooLong as error:
            long = [failed(identity, question, one, Status.TOO_LONG, str(error)) for one in example.each()]
            yield asked.missing(long)
    most = max((len(example.each()) for example, _ in messages), default=0)
    each = LABEL_TOKENS + (settings.max_new_tokens if asked.writes else 0)
    sampling = Sampling(settings.temperature, each * most + LABEL_TOKENS)
    seeds = [text_seed(settings, example.each()[0]) for example, _ in messages]
    replies = engine.chat([text for _, text in messages], sampling, seeds=seeds) if messages else []
    for (example, _), reply in zip(messages, replies, strict=True):
        if isinstance(reply, Failure):
            asked.note(reply)
        yield asked.missing(_as_written(identity, question, example, reply, renderer))


def _as_written(
    identity: Identity, question: ListedQuestion, example: SeveralAsked, reply: Reply | Failure, renderer: TextRenderer
) -> list[Judgement]:
    parts = example.each()
    if isinstance(reply, Failure):
        tell_failure(example.id, reply.reason)
        return [failed(identity, question, part, Status.ENGINE_ERROR, reply.reason) for part in parts]
    if reply.refused:
        reason = f"the model declined to answer: {renderer.neutralise(reply.text)[:200] or reply.finish_reason}"
        return [failed(identity, question, part, Status.REFUSED, reason) for part in parts]
    whole = reply.text.rpartition("\n")[0] if was_cut(reply.finish_reason) else reply.text
    found = []
    for number, part in enumerate(parts, start=1):
        label, told = question.read(number, len(parts), whole)
        said = renderer.neutralise(told or whole)[:200] or "(nothing)"
        first, second = question.scale.labels[:2]
        expected = f"expected a line '{question.stem(number)}{first}' or {second}; the model said: {said}"
        one = failed(identity, question, part, Status.UNPARSED, expected)
        text = renderer.neutralise(told) if question.text_stem(number) else ""
        ok = {"status": Status.OK, "label": label, "error": None, "text": text} if label else {}
        # One request: its tokens are counted with the first line.
        found.append(
            one.model_copy(
                update={**ok, "tokens": reply.tokens if number == 1 else NOTHING, "finish_reason": reply.finish_reason}
            )
        )
    return found
