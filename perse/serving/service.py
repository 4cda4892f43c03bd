"""A judge for concurrent requests: items go to worker threads and return as judgements or problems.

A list is cut into parts, which take turns with those of others (`perse.serving.turns`). The engine decides how many items it works
on: one part at a time on the embedded engine, many on vLLM, whose own scheduler batches them. An abandoned request cancels its
calls of the engine.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from perse import __version__
from perse.answering.base import JudgeSettings
from perse.data.examples_file import shown_query
from perse.data.profiles.views import ProfileAspects, asked_alone
from perse.engines.base import Engine
from perse.engines.calls import Calls
from perse.engines.kind import Identity
from perse.errors import BadInput, TooLong
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge
from perse.questions import QUESTIONS, Question, check_evidence_given
from perse.records import ClaimsExample, PairwiseExample, PointwiseExample, Served
from perse.rendering.prompt import Renderer
from perse.serving.metrics import Metrics
from perse.serving.problems import ClientLeft, EngineFailed, NotAllowed, NotThere, UnknownModel, brief, problem
from perse.serving.readers.shown import shown
from perse.serving.readers.store import Reader
from perse.serving.schemas import (
    Asking,
    EachClaim,
    ErrorBody,
    Item,
    Pick,
    ReadersItem,
    Results,
    ServedModel,
    ServedStacking,
    Version,
)
from perse.serving.turns import Turns
from perse.stacking.beside import stacking_of
from perse.stacking.file import Stacking

Answer = TypeVar("Answer")

DISCONNECTED_EVERY = 0.2
"""Seconds between looks at whether the client is still there."""

LARGEST_PART = 32
"""Items of a list that are asked together; others' requests come between."""

MOST_BAD = 1000
"""Items of a list that each have an error in their place; a list with more has one for all."""


@dataclass(frozen=True)
class Model:
    """One name that requests can ask for. `engine` makes an engine whose calls can be cancelled; `forget` drops what it keeps of
    prompts."""

    engine: Callable[[Calls], Engine]
    renderer: Renderer
    digest: str
    adapter: bool
    forget: Callable[[], None] = lambda: None
    stacking: Stacking | None = None
    """What combines its answers with numbers."""
    profile_aspects: ProfileAspects | None = None
    """What an entry of a profile of pairs showed when it was trained, and is shown here; None where that is not known."""

    @property
    def told(self) -> ServedModel:
        """What the server says of it."""
        mine = self.stacking
        return ServedModel(
            sha256=self.digest,
            adapter=self.adapter,
            stacking=ServedStacking(
                sha256=mine.digest, question=mine.question, data_sha256=mine.data.sha256, fold=mine.data.fold
            )
            if mine
            else None,
        )


def stacking_served(model: Path, adapter: Path | None, digest: str, given: Path | bool) -> Stacking | None:
    """The stacking of a model in a folder, or of an adapter on it, under whatever name it is served.

    Args:
        digest: of its weights.
        given: the file of the model, whose adapters have those beside them; True: the one beside it, False: none, for adapters as well.
    Raises:
        BadInput: as `stacking_of`.
    """
    who = Identity(str(model), str(adapter) if adapter else None, digest).portable
    folders = [folder for folder in (model, adapter) if folder is not None]
    return stacking_of(who, folders, given if adapter is None else given is not False)


class JudgeService:
    """Answers requests for the models of one server.

    Args:
        models: by name; the first is asked when a request names none.
        settings: of requests that give none.
        turns: which items are asked about next, and how many at once.
        part: items of a list that are asked together.
        metrics: what counts the judgements.
        engine_version: what /version says of the program underneath; perse's own by default.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        settings: JudgeSettings,
        *,
        turns: Turns,
        metrics: Metrics,
        part: int = LARGEST_PART,
        engine_version: str = __version__,
    ) -> None:
        self.models = dict(models)
        self.settings = settings
        self.base = next(iter(models))
        self.turns = turns
        self.engine_version = engine_version
        self._metrics = metrics
        self._part = part
        self._threads = ThreadPoolExecutor(turns.room, thread_name_prefix="judge")

    async def answer(
        self, request: Asking, disconnected: Callable[[], Awaitable[bool]], kept: Callable[[str], Reader] | None = None
    ) -> Judgement | EachClaim | Results:
        """What is said of one item, or the results of a list in its order. `kept` gives a reader by name, where some are kept.

        Raises:
            PerseError: an unknown model; for one item alone also what is wrong with it.
        """
        calls = Calls()
        judge = self._judge(request.model, calls)
        given, settings = request.input, self.settings_of(request)
        read = await self.read(request, kept)
        examples = [example for example in read if not isinstance(example, ErrorBody)]
        question = QUESTIONS[request.question]
        self.turns.check(sum(map(_size, examples)))
        asked = asyncio.create_task(self._all(judge, question, examples, settings))
        judgements = {judgement.id: judgement for judgement in await _while_wanted(asked, calls, disconnected)}
        results = [example if isinstance(example, ErrorBody) else _said(example, judgements) for example in read]
        if isinstance(given, list):
            return Results(results=results)
        return await asyncio.to_thread(_alone, results[0], lambda: judge.check(question, examples[0], settings))

    async def read(self, request: Asking, kept: Callable[[str], Reader] | None = None) -> list[Served | ErrorBody]:
        """Each item of a request as the example that is asked about, or what is wrong with it.

        Raises:
            PerseError: an unknown model; no items, or too many, or too many bad ones.
        """
        model = self._model(request.model)
        items = request.input if isinstance(request.input, list) else [request.input]
        if not items:
            raise BadInput("'input' is an empty list; give an item, or a list of some")
        if len(items) > self.turns.most:
            raise BadInput(f"'input' has {len(items):,} items; this server takes at most {self.turns.most:,} at a time")
        if (request.k is not None or request.pick != "recent") and not names_readers(items):
            raise BadInput(
                "'k' and 'pick' choose of a kept reader's entries, and no item names a 'reader'; shorten the profile itself"
            )
        profiles = Profiles(
            cache(kept or _keeps_none), request.k, request.pick, self.settings_of(request).seed, model.profile_aspects
        )
        return await asyncio.to_thread(_examples, items, request.item, profiles, QUESTIONS[request.question])

    async def run(
        self, name: str | None, work: Callable[[Engine, Renderer], Answer], disconnected: Callable[[], Awaitable[bool]]
    ) -> Answer:
        """What `work` does with the engine of a model, when it is its turn and while its client is there.

        Raises:
            PerseError: an unknown model, or what `work` raises.
        """
        calls, model = Calls(), self._model(name)

        async def turn() -> Answer:
            async with self.turns.turn("", 1):
                asked = partial(work, model.engine(calls), model.renderer)
                return await asyncio.get_running_loop().run_in_executor(self._threads, _contained, asked)

        self.turns.check(1)
        return await _while_wanted(asyncio.create_task(turn()), calls, disconnected)

    async def forget(self) -> None:
        """Drop what the engines keep of prompts, for a reader who is gone."""
        loop = asyncio.get_running_loop()
        for model in list(self.models.values()):
            await loop.run_in_executor(self._threads, model.forget)

    def version(self) -> Version:
        """What is served, by which programs."""
        return Version(
            version=self.engine_version,
            perse=__version__,
            engine=self.models[self.base].engine(Calls()).settings,
            models={name: model.told for name, model in self.models.items()},
        )

    def close(self) -> None:
        """Accept no more work; running calls finish in their threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _all(
        self, judge: Judge, question: Question, examples: Sequence[Served], settings: JudgeSettings
    ) -> list[Judgement]:
        size = min(self._part, judge.engine.capabilities.batch)
        ordered = sorted(examples, key=lambda one: (one.reviewer_id or "", _beginning(one)))  # a reader's side by side
        parts = [ordered[start : start + size] for start in range(0, len(ordered), size)]
        asked = await asyncio.gather(*(self._ask(judge, question, part, settings) for part in parts))
        return [judgement for part in asked for judgement in part]

    async def _ask(
        self, judge: Judge, question: Question, examples: Sequence[Served], settings: JudgeSettings
    ) -> list[Judgement]:
        """The judgements of one part of a request, when it is its turn."""
        beginning = f"{judge.identity.adapter}:{_beginning(examples[0])}"
        async with self.turns.turn(beginning, len(examples), items=sum(map(_size, examples))):
            loop = asyncio.get_running_loop()
            work = partial(_asked, judge, question, examples, settings)
            judgements = await loop.run_in_executor(self._threads, _contained, work)
        for judgement in judgements:
            self._metrics.judged(judgement)
        return judgements

    def _model(self, name: str | None) -> Model:
        model = self.models.get(name or self.base)
        if model is None:
            raise UnknownModel(f"there is no model '{brief(str(name))}' here; served are {', '.join(self.models)}")
        return model

    def _judge(self, name: str | None, calls: Calls) -> Judge:
        model = self._model(name)
        adapter = name if model.adapter else None
        return Judge(
            model.engine(calls),
            model.renderer,
            name=self.base,
            adapter=adapter,
            digest=model.digest,
            stacking=model.stacking,
        )

    def settings_of(self, request: Asking) -> JudgeSettings:
        """What a request is answered with: its own, or the server's."""
        own = self.settings
        return JudgeSettings(
            temperature=own.temperature if request.temperature is None else request.temperature,
            max_new_tokens=own.max_new_tokens if request.max_new_tokens is None else request.max_new_tokens,
            seed=own.seed if request.seed is None else request.seed,
        )


def _asked(judge: Judge, question: Any, examples: Sequence[Any], settings: JudgeSettings) -> list[Judgement]:
    if question.example_type is ClaimsExample:
        return [claim for each in judge.ask_listed(question, examples, settings) for claim in each]
    return judge.ask(question, examples, settings)


def names_readers(items: Sequence[Any]) -> bool:
    """Whether some item names a kept reader."""
    return any("reader" in one for one in items if isinstance(one, dict))


def _said(example: Served, judgements: Mapping[str, Judgement]) -> Judgement | EachClaim:
    if isinstance(example, ClaimsExample):
        return EachClaim(results=[judgements[claim.id] for claim in example.each()])
    return judgements[example.id]


def _size(example: Served) -> int:
    """Judgements that it takes."""
    return len(example.claims) if isinstance(example, ClaimsExample) else 1


def _beginning(example: Served) -> int:
    """Alike for items whose prompts begin alike."""
    return hash(repr(getattr(example, "profile", None) or getattr(example, "text", None)))


@dataclass(frozen=True)
class Profiles:
    """How items about kept readers get their profiles."""

    kept: Callable[[str], Reader]
    k: int | None
    pick: Pick
    seed: int
    aspects: ProfileAspects | None = None
    """What entries of pairs showed when the judge was trained."""

    def example(self, item: Item) -> Served:
        """The item as an example.

        Raises:
            NotThere: its reader is not kept here.
        """
        example = item.example()
        reader = item.reader if isinstance(item, ReadersItem) else None
        if reader is not None:
            assert isinstance(example, PointwiseExample | PairwiseExample)
            example = shown(self.kept(reader), example, k=self.k, pick=self.pick, seed=self.seed)
        if self.aspects == "asked" and isinstance(example, PairwiseExample):
            return asked_alone(example)
        return example


def _keeps_none(reader: str) -> Reader:
    raise NotThere("this server keeps no readers; send a profile, or start it with readers=FILE")


def _examples(items: Sequence[Any], kind: type[Item], profiles: Profiles, question: Question) -> list[Served | ErrorBody]:
    """Every item as an example, or its problem.

    Raises:
        BadInput: too many of them are invalid.
    """
    read: list[Served | ErrorBody] = []
    numbers: dict[str, int] = {}
    bad: list[ErrorBody] = []
    for number, item in enumerate(items):
        where = f"input.{number}"
        try:
            if not isinstance(item, dict):
                given = item[:100] if isinstance(item, str | list) else item
                raise BadInput(f"an item is a JSON object; found {json.dumps(given)[:100]}")
            example = profiles.example(kind.model_validate(item))
            if "id" not in item and example.id in numbers:  # the same item twice is two draws
                example = example.model_copy(update={"id": f"{example.id}-{number}"})
            if example.id in numbers:
                raise BadInput(f"id '{example.id}' is already item {numbers[example.id]}'s; give each its own")
            if shown_query(example):
                raise BadInput("the query stands in its own profile; the judge would only have to copy the answer")
            check_evidence_given(question, [example])
        except (ValidationError, BadInput, NotAllowed, NotThere) as error:
            bad.append(problem(error, param=where))
            if len(bad) > MOST_BAD:
                first = bad[0].error
                raise BadInput(
                    f"more than {MOST_BAD:,} of the {len(items):,} items cannot be judged, the first, {first.param}, because "
                    f"{first.message}; correct them, or send fewer at a time"
                ) from None
            read.append(bad[-1])
            continue
        numbers[example.id] = number
        read.append(example)
    return read


def _alone(result: Judgement | EachClaim | ErrorBody, check: Callable[[], None]) -> Judgement | EachClaim:
    """The only result, or what is wrong with it, raised: a client of one item learns it from the HTTP status."""
    if isinstance(result, ErrorBody):
        kinds = {HTTPStatus.NOT_FOUND: NotThere, HTTPStatus.FORBIDDEN: NotAllowed}
        raise kinds.get(HTTPStatus(result.error.code), BadInput)(result.error.message)
    first = result.results[0] if isinstance(result, EachClaim) else result
    if first.status is Status.TOO_LONG:
        check()
        raise TooLong(first.error or "too long")
    if first.status is Status.ENGINE_ERROR:
        raise EngineFailed(first.error or "the engine failed")
    return result


class _Exit(Exception):
    """A SystemExit on its way to whoever answers the request: in a task it would end the event loop."""

    def __init__(self, exit: SystemExit) -> None:
        super().__init__(exit.code)
        self.exit = exit


def _contained(work: Callable[[], Answer]) -> Answer:
    try:
        return work()
    except SystemExit as exit:
        raise _Exit(exit) from None


async def _while_wanted(call: asyncio.Future[Answer], calls: Calls, disconnected: Callable[[], Awaitable[bool]]) -> Answer:
    """The call's result; if the client leaves before, or its time is over, what it has running in the engine is cancelled."""
    try:
        while not (await asyncio.wait({call}, timeout=DISCONNECTED_EVERY))[0]:
            if await disconnected():
                raise ClientLeft("the client left before the answer was ready")
        return call.result()
    except _Exit as wished:
        raise wished.exit from None
    finally:
        if not call.done() or call.cancelled() or call.exception() is not None:
            calls.cancel()
            call.cancel()
            call.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody is told of it any more
