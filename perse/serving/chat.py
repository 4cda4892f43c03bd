"""OpenAI's chat route on the embedded engine, so that any client of that API works; vLLM's server has its own.

The judge's own routes give exact distributions, which this API has no place for. What it cannot do is refused by name and never
ignored. A stream comes in one piece, when all is written. Without a `seed` the server's is used: the same request has the same answer.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from perse.engines.base import Engine, Failure, Generation, Sampling
from perse.errors import BadInput
from perse.identity import draw
from perse.rendering.prompt import Ids, Renderer
from perse.serving.described import OF_BODIES, errors, keyed_router
from perse.serving.problems import EngineFailed
from perse.serving.service import JudgeService
from perse.strict import Strict

UNSUPPORTED: Mapping[str, tuple[Any, ...]] = {
    "logprobs": (None, False),
    "top_logprobs": (None, 0),
    "tools": (None, []),
    "tool_choice": (None, "none", "auto"),
    "functions": (None, []),
    "logit_bias": (None, {}),
    "top_p": (None, 1, 1.0),
    "presence_penalty": (None, 0, 0.0),
    "frequency_penalty": (None, 0, 0.0),
    "modalities": (None, ["text"]),
}
"""Fields of the API that this engine has not, and the values that ask for nothing."""

NO_MATTER = frozenset(
    (
        "user",
        "safety_identifier",
        "metadata",
        "store",
        "service_tier",
        "prompt_cache_key",
        "stream_options",
        "parallel_tool_calls",
    )
)
"""Fields that change nothing of an answer."""


class Part(Strict):
    """A piece of a message's content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["text"]
    text: str


class ChatMessage(Strict):
    """One turn."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    role: Literal["system", "developer", "user", "assistant"]
    content: str | tuple[Part, ...]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class JsonSchema(Strict):
    model_config = ConfigDict(extra="ignore", frozen=True)

    schema_: dict[str, Any] = Field(alias="schema")


class ResponseFormat(Strict):
    """What the answer must be: any text, an object, or what a JSON Schema allows."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _has_its_schema(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError("of type json_schema, without json_schema")
        return self

    @property
    def schema_asked(self) -> Mapping[str, Any] | None:
        if self.type == "json_object":
            return {"type": "object"}
        return self.json_schema.schema_ if self.json_schema and self.type == "json_schema" else None


class ChatRequest(Strict):
    """A conversation that ends with the user's words."""

    model_config = ConfigDict(extra="allow", frozen=True)

    messages: tuple[ChatMessage, ...] = Field(min_length=1)
    model: str | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    seed: int | None = None
    stop: str | tuple[str, ...] | None = None
    n: int = Field(1, ge=1, le=8)
    response_format: ResponseFormat | None = None
    stream: bool = False

    @field_validator("stop")
    @classmethod
    def _few(cls, stop: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        if isinstance(stop, tuple) and len(stop) > 4:
            raise ValueError(f"found {len(stop)} strings, expected at most 4")
        return stop

    @model_validator(mode="after")
    def _can_be_done(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            if name not in NO_MATTER and value not in UNSUPPORTED.get(name, (None,)):
                raise ValueError(f"'{name}' is not supported by the embedded engine; leave it out, or serve the model on vLLM")
        return self

    @property
    def turns(self) -> list[str]:
        """User, assistant, user, ...; what the system says stands before the user's first words.

        Raises:
            BadInput: turns in another order.
        """
        system = [one.text for one in self.messages if one.role in ("system", "developer")]
        spoken = [one for one in self.messages if one.role in ("user", "assistant")]
        if [one.role for one in spoken] != ["user", "assistant"] * (len(spoken) // 2) + ["user"]:
            raise BadInput(
                "field 'messages': expected user and assistant in turn, the user first and last, after any system message"
            )
        texts = [one.text for one in spoken]
        return ["\n\n".join([*system, texts[0]]), *texts[1:]]

    @property
    def stops(self) -> tuple[str, ...]:
        return (self.stop,) if isinstance(self.stop, str) else self.stop or ()


@dataclass(frozen=True)
class Written:
    """What was written to one request."""

    texts: tuple[str, ...]
    reasons: tuple[str, ...]
    prompt: int
    cached: int
    generated: int


class ModelEntry(BaseModel):
    """A model that requests can name; `parent` is the model that an adapter is on."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["perse"] = "perse"
    parent: str | None = None


class ModelList(BaseModel):
    """The models that requests can name."""

    object: Literal["list"] = "list"
    data: list[ModelEntry]


OF_CHATS = errors(
    {
        400: "A body that is not JSON, a field that does not fit or is not supported, or a conversation that does not fit.",
        404: "A model that is not served here.",
        500: "The engine failed at this request.",
        503: "No room now, with Retry-After; or the engine is gone.",
        504: "Not answered within the server's time limit, and given up.",
    }
)


def chat_router() -> APIRouter:
    """/v1/models and /v1/chat/completions."""
    router = keyed_router("OpenAI")

    @router.get("/v1/models")
    async def models(request: Request) -> ModelList:
        """The models that requests can name."""
        service: JudgeService = request.app.state.judge
        entries = [
            ModelEntry(id=name, parent=service.base if model.adapter else None) for name, model in service.models.items()
        ]
        return ModelList(data=entries)

    @router.post("/v1/chat/completions", response_model=None, responses=OF_BODIES | OF_CHATS)
    async def chat(request: Request, asked: ChatRequest) -> Response:
        """Text after a conversation, as OpenAI's API has it."""
        service: JudgeService = request.app.state.judge
        settings = service.settings
        most = asked.max_completion_tokens or asked.max_tokens or settings.max_new_tokens
        temperature = settings.temperature if asked.temperature is None else asked.temperature
        seed = settings.seed if asked.seed is None else asked.seed

        def work(engine: Engine, renderer: Renderer) -> Written:
            return write(engine, renderer, asked, most=most, temperature=temperature, seed=seed)

        written = await service.run(asked.model, work, request.is_disconnected)
        said = _completion(written, asked.model or service.base, stream=asked.stream)
        kind = "text/event-stream" if asked.stream else "application/json"
        return Response(said, media_type=kind)

    return router


def write(engine: Engine, renderer: Renderer, asked: ChatRequest, *, most: int, temperature: float, seed: int) -> Written:
    """Have the engine write to a conversation, whose texts cannot pass for the template's markers (DESIGN.md, promise 9).

    Raises:
        BadInput: it does not fit the model's context.
        EngineFailed: the engine could not.
    """
    ids = renderer.conversation([renderer.spoken(turn) for turn in asked.turns])
    room = renderer.context - len(ids)
    if room < 1 or (most > room and (asked.max_tokens or asked.max_completion_tokens)):
        raise BadInput(
            f"the messages have {len(ids)} tokens and {most} more are asked for; the model's context is {renderer.context}; shorten them, "
            "or ask for fewer"
        )
    schema = asked.response_format.schema_asked if asked.response_format else None
    sampling = Sampling(temperature, min(most, room), renderer.end_ids, schema)
    who = hashlib.sha256(repr(ids).encode()).hexdigest()
    seeds = [draw(seed, who, f"chat {n}").getrandbits(63) for n in range(asked.n)]
    found = engine.generate([ids] * asked.n, sampling, seeds=seeds)
    for one in found:
        if isinstance(one, Failure):
            raise (EngineFailed if schema is None else BadInput)(one.reason)
    done = [one for one in found if isinstance(one, Generation)]
    ends = [_text(renderer, one.ids, one.finish_reason, asked.stops) for one in done]
    return Written(
        texts=tuple(text for text, _ in ends),
        reasons=tuple(reason for _, reason in ends),
        prompt=len(ids),
        cached=done[0].cached,
        generated=sum(len(one.ids) for one in done),
    )


def _text(renderer: Renderer, ids: Ids, reason: str, stops: tuple[str, ...]) -> tuple[str, str]:
    """The text up to the first of `stops`, and why it ends."""
    text = renderer.decode(ids)
    places = [at for stop in stops if stop and (at := text.find(stop)) >= 0]
    return (text[: min(places)], "stop") if places else (text, reason)


def _completion(written: Written, model: str, *, stream: bool) -> str:
    told = {"id": f"chatcmpl-{time.time_ns():x}", "created": int(time.time()), "model": model}
    usage = {
        "prompt_tokens": written.prompt,
        "completion_tokens": written.generated,
        "total_tokens": written.prompt + written.generated,
        "prompt_tokens_details": {"cached_tokens": min(written.prompt, written.cached)},
    }
    ends = list(enumerate(zip(written.texts, written.reasons, strict=True)))
    if not stream:
        choices = [
            {"index": n, "message": {"role": "assistant", "content": text}, "logprobs": None, "finish_reason": reason}
            for n, (text, reason) in ends
        ]
        return json.dumps({**told, "object": "chat.completion", "choices": choices, "usage": usage})
    chunks: list[dict[str, Any]] = []
    for n, (text, reason) in ends:
        chunks.append({"index": n, "delta": {"role": "assistant", "content": text}, "finish_reason": None})
        chunks.append({"index": n, "delta": {}, "finish_reason": reason})
    lines = [{**told, "object": "chat.completion.chunk", "choices": [chunk]} for chunk in chunks]
    lines.append({**told, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return "".join(f"data: {json.dumps(line)}\n\n" for line in lines) + "data: [DONE]\n\n"
