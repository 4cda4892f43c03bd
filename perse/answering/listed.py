"""Several judgements of one prompt: a line for each claim, read one after the other (DESIGN.md, promise 4).

Where an engine takes token ids, the lines are ours and only the labels the model's: the distribution of claim n is read behind the lines
before it, each with the label it was given, so that nothing has to be parsed and no claim goes without an answer. An engine of words
writes all lines itself; a missing or unreadable line fails its claim only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perse.answering.base import JudgeSettings, draw, failed, tell_failure, text_seed
from perse.answering.exact import MIN_MASS, no_label_mass
from perse.engines.base import ChatEngine, Engine, Failure, LabelDistribution, Reply, Sampling
from perse.engines.kind import Identity
from perse.errors import TooLong
from perse.judgement import Judgement, Status, Tokens
from perse.questions.base import ListedQuestion
from perse.questions.written import read_written
from perse.records import ClaimExample, ClaimsExample
from perse.rendering.prompt import LABEL_TOKENS, Ids, LabelTokens, Renderer, TextRenderer

NOTHING = Tokens(prompt=0, cached=0, generated=0)


@dataclass(frozen=True)
class Listed:
    """A question about each example's claims.

    `known` are existing judgements, by id; `note` is called with the failures of the engine.
    """

    question: ListedQuestion
    examples: Sequence[ClaimsExample]
    settings: JudgeSettings
    known: Mapping[str, Judgement]
    note: Callable[[Failure], None]

    def missing(self, judgements: Iterable[Judgement]) -> list[Judgement]:
        """The judgements that were not known."""
        return [one for one in judgements if one.id not in self.known]


@dataclass
class _Lines:
    """One example on its way: its prompt with the lines that are answered, and how many those are."""

    claims: Sequence[ClaimExample]
    ids: Ids
    done: int = 0


def listed_exactly(engine: Engine, renderer: Renderer, identity: Identity, asked: Listed) -> Iterator[list[Judgement]]:
    """The judgements of all claims from an engine of token ids: of each example's first one, then of the second, and so on."""
    question = asked.question
    going: list[_Lines] = []
    for example in asked.examples:
        claims = example.each()
        room = tuple(_line(renderer, question, number, longest(question)) for number in range(1, len(claims) + 1))
        try:
            (prompt,) = renderer.render(question, example, completion=room)
        except TooLong as error:
            yield asked.missing(failed(identity, question, claim, Status.TOO_LONG, str(error)) for claim in claims)
            continue
        one = _Lines(claims, prompt.ids)
        while one.done < len(claims) and (probabilities := _known(asked, claims[one.done])):
            _go_on(one, renderer, asked, probabilities)
        if one.done < len(claims):
            going.append(one)
    while going:
        number = min(one.done for one in going) + 1
        now = [one for one in going if one.done + 1 == number]
        for one, read in zip(
            now, _read(engine, [one.ids for one in now], renderer.line_support(question, number)), strict=True
        ):
            claim, shown = one.claims[number - 1], len(one.ids)
            if isinstance(read, Failure):  # the claims that follow it cannot be asked either
                tell_failure(claim.id, read.reason)
                asked.note(read)
                rest, one.done = one.claims[one.done :], len(one.claims)
                yield asked.missing(failed(identity, question, each, Status.ENGINE_ERROR, read.reason) for each in rest)
                continue
            label = _go_on(one, renderer, asked, read.probabilities)
            yield asked.missing([_judgement(identity, question, claim, read, label=label, prompt=shown)])
        going = [one for one in going if one.done < len(one.claims)]


def _known(asked: Listed, claim: ClaimExample) -> tuple[float, ...] | None:
    """The probabilities of the labels of a claim that was asked about before."""
    judgement = asked.known.get(claim.id)
    if judgement is None or judgement.distribution is None:
        return None
    return tuple(judgement.distribution[label] for label in asked.question.scale.labels)


def _go_on(one: _Lines, renderer: Renderer, asked: Listed, probabilities: Sequence[float]) -> str:
    """Add the line of the next claim, with the label that its probabilities give."""
    label = draw(asked.question.scale.labels, probabilities, asked.settings, one.claims[one.done])
    one.done += 1
    one.ids += _line(renderer, asked.question, one.done, label)
    return label


def listed_in_words(engine: ChatEngine, renderer: TextRenderer, identity: Identity, asked: Listed) -> Iterator[list[Judgement]]:
    """The judgements of all claims, as a chat engine wrote them, those of an example together."""
    question, settings = asked.question, asked.settings
    messages: list[tuple[ClaimsExample, str]] = []
    for example in asked.examples:
        if all(claim.id in asked.known for claim in example.each()):
            continue
        try:
            messages.append((example, renderer.render(question, example)[0].text))
        except TooLong as error:
            long = [failed(identity, question, one, Status.TOO_LONG, str(error)) for one in example.each()]
            yield asked.missing(long)
    most = max((len(example.claims) for example, _ in messages), default=0)
    sampling = Sampling(settings.temperature, LABEL_TOKENS * (most + 1))
    seeds = [text_seed(settings, example.each()[0]) for example, _ in messages]
    replies = engine.chat([text for _, text in messages], sampling, seeds=seeds) if messages else []
    for (example, _), reply in zip(messages, replies, strict=True):
        if isinstance(reply, Failure):
            asked.note(reply)
        yield asked.missing(_as_written(identity, question, example, reply, renderer))


def longest(question: ListedQuestion) -> str:
    """The label that takes the most room."""
    return max(question.scale.labels, key=len)


def _line(renderer: Renderer, question: ListedQuestion, number: int, label: str) -> Ids:
    """The ids of a claim's whole line."""
    lead = renderer.frame.lead if number == 1 else ""
    return renderer.encode(f"{lead}{question.stem(number)}{label}\n")


def _read(engine: Engine, prefixes: list[Ids], support: LabelTokens) -> list[LabelDistribution | Failure]:
    """The distributions after each prefix; if the engine fails at them together, each is asked alone."""
    try:
        return engine.label_distributions(prefixes, support)
    except RuntimeError as error:  # what torch raises, out of memory included
        if len(prefixes) == 1:
            return [Failure(f"{type(error).__name__}: {error}")]
        return [_read(engine, [prefix], support)[0] for prefix in prefixes]


def _judgement(
    identity: Identity, question: ListedQuestion, claim: ClaimExample, read: LabelDistribution, *, label: str, prompt: int
) -> Judgement:
    parsed = read.mass >= MIN_MASS
    return Judgement(
        id=claim.id,
        question=question.name,
        status=Status.OK if parsed else Status.UNPARSED,
        label=label if parsed else None,
        expected=question.scale.expected(read.probabilities),
        distribution=dict(zip(question.scale.labels, read.probabilities, strict=True)),
        mass=read.mass,
        k_effective=0,
        tokens=Tokens(prompt=prompt, cached=min(prompt, read.cached), generated=0),
        model=identity.model,
        adapter=identity.adapter,
        error=None if parsed else no_label_mass(question.scale, read.mass),
    )


def _lines_of(number: int, answer: str) -> list[str]:
    """The lines of an answer that begin with this number, or with one word and it ("Statement 2: no"), from the number on."""
    return re.findall(rf"(?m)^\W*(?:[A-Za-z]+ )?({number}\b(?![.,]\d)\W.*)$", answer)


def _as_written(
    identity: Identity, question: ListedQuestion, example: ClaimsExample, reply: Reply | Failure, renderer: TextRenderer
) -> list[Judgement]:
    claims = example.each()
    if isinstance(reply, Failure):
        tell_failure(example.id, reply.reason)
        return [failed(identity, question, claim, Status.ENGINE_ERROR, reply.reason) for claim in claims]
    if reply.refused:
        reason = f"the model declined to answer: {renderer.neutralise(reply.text)[:200] or reply.finish_reason}"
        return [failed(identity, question, claim, Status.REFUSED, reason) for claim in claims]
    whole = reply.text.rpartition("\n")[0] if reply.finish_reason == "length" else reply.text
    found = []
    for number, claim in enumerate(claims, start=1):
        lines = _lines_of(number, whole)
        labels = {read_written(line, question.scale, label_prefix=question.stem(number), text_prefix=None)[0] for line in lines}
        if len(claims) == 1 and not lines:
            labels = {
                read_written(
                    whole.replace("[Answer]", ""), question.scale, label_prefix=question.stem(number), text_prefix=None
                )[0]
            }
        label = labels.pop() if len(labels) == 1 else None
        said = renderer.neutralise(" / ".join(lines) if lines else whole)[:200] or "(nothing)"
        one = failed(
            identity, question, claim, Status.UNPARSED, f"expected a line '{number}: yes' or no; the model said: {said}"
        )
        ok = {"status": Status.OK, "label": label, "error": None} if label else {}
        # One request: its tokens are counted with the first claim.
        found.append(
            one.model_copy(
                update={**ok, "tokens": reply.tokens if number == 1 else NOTHING, "finish_reason": reply.finish_reason}
            )
        )
    return found
