"""Every failure of a request as an HTTP answer of one shape, `ErrorBody`, whichever server we run in.

FastAPI parses a body, checks it and writes the answer in the event loop, where one body of a million items blocks everyone. Our
routes read and write in threads, and the number of messages about one body is limited.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException as NoRoute
from starlette.requests import ClientDisconnect

from perse.errors import BadInput, EngineLost, PerseError, TooLong, panic
from perse.formats.json_text import in_our_words
from perse.records import explain
from perse.registry import fault_of_addition
from perse.secrets import printable
from perse.serving.schemas import ErrorBody, Problem, Results

log = logging.getLogger(__name__)

MOST_FIELDS = 1000
"""Of one JSON object in a body."""
MOST_PARTS = 400_000
"""Lists and objects of a body, as its opening brackets tell: while it is parsed, nobody else is answered."""

LONGEST_MESSAGE, REPEATED = 1000, 200
"""Characters of an error's message; those that it repeats of a name that was sent."""


CLIENT_LEFT = 499
"""The status, for the log alone, of a request whose client had left before there was an answer."""
ANOTHER_SERVER = 10
"""Seconds until whoever supervises a server whose engine died may have started another."""


class UnknownModel(PerseError):
    """A request for a model that is not served here."""


class NotThere(PerseError):
    """What was asked for is not here."""


class NotAllowed(PerseError):
    """What was asked for wants a scope that the key does not have."""


class Conflict(PerseError):
    """What was asked for cannot be done as things stand."""


class StoreFailed(PerseError):
    """What is kept here, readers or batches, cannot be read or written now; what was acknowledged is there."""


class EngineFailed(PerseError):
    """The engine could not answer this request; others may fare better."""


class ClientLeft(PerseError):
    """Nobody waits for the answer any more."""


class Busy(PerseError):
    """There is no room now; after `retry_after` seconds there may be."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


_CODES: Mapping[type[PerseError], HTTPStatus] = {
    TooLong: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnknownModel: HTTPStatus.NOT_FOUND,
    NotThere: HTTPStatus.NOT_FOUND,
    NotAllowed: HTTPStatus.FORBIDDEN,
    Conflict: HTTPStatus.CONFLICT,
    StoreFailed: HTTPStatus.SERVICE_UNAVAILABLE,
    EngineLost: HTTPStatus.SERVICE_UNAVAILABLE,
    Busy: HTTPStatus.SERVICE_UNAVAILABLE,
    EngineFailed: HTTPStatus.INTERNAL_SERVER_ERROR,
    BadInput: HTTPStatus.BAD_REQUEST,
}


def body(message: str, status: HTTPStatus, *, param: str | None = None, details: dict[str, int] | None = None) -> ErrorBody:
    """An error; its type is named after the status, as vLLM does."""
    name = status.phrase.title().replace(" ", "").replace("-", "")
    kind = name if name.endswith("Error") else f"{name}Error"
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:REPEATED]} ... {message[-REPEATED:]}"
    message, param = printable(message), param and printable(brief(param))  # both may repeat what was sent
    return ErrorBody(error=Problem(message=message, type=kind, param=param, code=status, details=details or {}))


def brief(sent: str) -> str:
    """A name that was sent, as an error repeats it."""
    return sent if len(sent) <= REPEATED else f"{sent[:REPEATED]}..."


def problem(error: PerseError | ValidationError, *, param: str | None = None) -> ErrorBody:
    """The body for one of our errors, or for fields of an item that do not fit."""
    if isinstance(error, ValidationError):
        return body(explain(error), HTTPStatus.BAD_REQUEST, param=param)
    status = next((code for kind, code in _CODES.items() if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)
    return body(str(error), status, param=param, details=getattr(error, "numbers", None))


def answer(error: ErrorBody, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The HTTP answer of an error."""
    return JSONResponse(error.model_dump(), status_code=error.error.code, headers=dict(headers or {}))


class ProblemRoute(APIRoute):
    """A route whose failures have our shape, and whose body and answer keep no event loop busy; handlers of the app it stands in
    are not reached."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            sent = request.headers.get("content-type", "")
            if request.method in ("POST", "PUT") and sent.partition(";")[0].strip().lower() != "application/json":
                # Also keeps out forms on web pages, which browsers let post anywhere.
                return answer(
                    body(f"send the header 'Content-Type: application/json'; found '{sent}'", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
                )
            try:
                if self.body_field is None:
                    return await handle(request)
                kind = self.body_field.field_info.annotation
                asked = await asyncio.to_thread(read_body, await request.body(), kind)
                if isinstance(asked, ErrorBody):
                    return answer(asked)
                said = await self.endpoint(request, asked, **request.path_params)
                if isinstance(said, Response):
                    return said
                return Response(await asyncio.to_thread(written, said), media_type="application/json")
            except ClientLeft:  # no client reads this; the log and the counters do
                return Response(status_code=CLIENT_LEFT)
            except PerseError as error:
                return answer(problem(error), _come_again(error))
            except RequestValidationError as error:  # of what stands in the address
                return answer(_unfit(error.errors()[0]))
            except HTTPException as error:  # FastAPI's own
                return answer(body(str(error.detail), HTTPStatus(error.status_code)), error.headers)
            except ClientDisconnect:  # in the middle of its body
                return Response(status_code=CLIENT_LEFT)
            except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError):
                raise
            except BaseException as error:  # a panic in Rust, as of a tokenizer's pattern, is no Exception
                if fault := fault_of_addition(error):
                    log.error("%s %s: %s", request.method, request.url.path, fault)
                    return answer(body(str(fault), HTTPStatus.INTERNAL_SERVER_ERROR))
                if isinstance(error, SystemExit):
                    raise
                if panicked := panic(error):
                    log.warning("%s %s: %s", request.method, request.url.path, panicked)
                    return answer(problem(panicked))
                log.error("%s %s failed", request.method, request.url.path, exc_info=error)
                said = body(f"{type(error).__name__}; the server's log has more", HTTPStatus.INTERNAL_SERVER_ERROR)
                return answer(said)

        return handled


def _come_again(error: PerseError) -> dict[str, str]:
    """The header that says when to ask again, where that may help."""
    if isinstance(error, Busy):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, EngineLost):
        return {"Retry-After": str(ANOTHER_SERVER)}
    return {"Retry-After": "1"} if isinstance(error, StoreFailed) else {}


def read_body(sent: bytes, kind: Any) -> BaseModel | ErrorBody:
    """A body as the pydantic model `kind`, or its problems."""
    if (parts := sent.count(b"[") + sent.count(b"{")) > MOST_PARTS:
        return body(
            f"the body has {parts:,} lists and objects; expected at most {MOST_PARTS:,}: send fewer items at a time",
            HTTPStatus.BAD_REQUEST,
        )
    try:
        fields = json.loads(sent, object_pairs_hook=_fields) if sent else None
    except json.JSONDecodeError as error:
        return body(f"the body is not JSON: {error.msg}, at character {error.pos}", HTTPStatus.BAD_REQUEST)
    except (RecursionError, ValueError) as error:  # nested without end, not in Unicode, or with a number of a thousand digits
        return body(f"the body is not JSON that can be read: {in_our_words(error)}", HTTPStatus.BAD_REQUEST)
    except BadInput as error:
        return problem(error)
    try:
        asked: BaseModel = kind.model_validate(fields)
    except ValidationError as error:
        return _unfit(error.errors(include_url=False, include_context=False)[0])
    return asked


def written(said: BaseModel) -> bytes:
    """An answer as JSON, a list's results one after the other, so that other threads have their turns."""
    if not isinstance(said, Results):
        return said.model_dump_json().encode()
    return b'{"results":[' + b",".join(result.model_dump_json().encode() for result in said.results) + b"]}"


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object.

    Raises:
        BadInput: a field stands twice, of which another reader might take the other one; or it has so many fields that what is wrong with each
            would fill the memory.
    """
    if len(pairs) > MOST_FIELDS:
        raise BadInput(f"an object in the body has {len(pairs):,} fields; expected at most {MOST_FIELDS:,}")
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise BadInput(f"an object in the body has the field '{brief(twice)}' twice; send it once")
    return found


async def not_a_route(request: Request, error: Exception) -> Response:
    """Handler of paths and methods that no route has."""
    assert isinstance(error, NoRoute)
    missing = body(f"{request.method} {request.url.path}: {error.detail}; see /docs", HTTPStatus(error.status_code))
    return answer(missing, error.headers)


def _unfit(first: Mapping[str, Any]) -> ErrorBody:
    """The first of pydantic's errors in our words."""
    if not first["loc"]:
        said = first["msg"].removeprefix("Value error, ")
        more = "" if said != first["msg"] else "; expected a JSON object, as /docs has it"
        return body(f"the body: {said}{more}", HTTPStatus.BAD_REQUEST)
    name = ".".join(str(part) for part in first["loc"])
    given = first["input"][:100] if isinstance(first["input"], str) else first["input"]
    found = f", found {json.dumps(given)[:100]}" if isinstance(given, str | int | float) else ""
    message = first["msg"].removeprefix("Value error, ")
    found = "" if message.startswith("found ") else found
    return body(f"field '{name}': {message[0].lower()}{message[1:]}{found}", HTTPStatus.BAD_REQUEST, param=name)
