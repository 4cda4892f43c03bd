"""Every failure of a request as an HTTP answer of one shape, `ErrorBody`, whichever server we run in."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.exceptions import HTTPException as NoRoute

from perse.errors import BadInput, EngineLost, PerseError, TooLong
from perse.records import explain
from perse.serving.schemas import ErrorBody, Problem


class UnknownModel(PerseError):
    """A request for a model that is not served here."""


class EngineFailed(PerseError):
    """The engine could not answer this request; others may fare better."""


_CODES: Mapping[type[PerseError], HTTPStatus] = {
    TooLong: HTTPStatus.UNPROCESSABLE_ENTITY,
    UnknownModel: HTTPStatus.NOT_FOUND,
    EngineLost: HTTPStatus.SERVICE_UNAVAILABLE,
    EngineFailed: HTTPStatus.INTERNAL_SERVER_ERROR,
    BadInput: HTTPStatus.BAD_REQUEST,
}


def body(message: str, status: HTTPStatus, *, param: str | None = None, details: dict[str, int] | None = None) -> ErrorBody:
    """An error; its type is named after the status, as vLLM does."""
    name = status.phrase.title().replace(" ", "").replace("-", "")
    kind = name if name.endswith("Error") else f"{name}Error"
    return ErrorBody(error=Problem(message=message, type=kind, param=param, code=status, details=details or {}))


def problem(error: PerseError | ValidationError | RequestValidationError, *, param: str | None = None) -> ErrorBody:
    """The body for one of our errors, or for fields that do not fit."""
    if isinstance(error, ValidationError):
        return body(explain(error), HTTPStatus.BAD_REQUEST, param=param)
    if isinstance(error, RequestValidationError):
        return _unfit(error)
    status = next((code for kind, code in _CODES.items() if isinstance(error, kind)), HTTPStatus.BAD_REQUEST)
    return body(str(error), status, param=param, details=getattr(error, "numbers", None))


def answer(error: ErrorBody, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The HTTP answer of an error."""
    return JSONResponse(error.model_dump(), status_code=error.error.code, headers=dict(headers or {}))


class ProblemRoute(APIRoute):
    """A route whose failures have our shape; handlers of the app it stands in are not reached."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            sent = request.headers.get("content-type", "")
            if request.method == "POST" and sent.partition(";")[0].strip().lower() != "application/json":
                # Also keeps out forms on web pages, which browsers let post anywhere.
                return answer(
                    body(f"send the header 'Content-Type: application/json'; found '{sent}'", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
                )
            try:
                return await handle(request)
            except (PerseError, RequestValidationError) as error:
                return answer(problem(error))
            except HTTPException as error:  # FastAPI's own, such as a body that cannot be read
                return answer(body(str(error.detail), HTTPStatus(error.status_code)), error.headers)

        return handled


async def not_a_route(request: Request, error: Exception) -> Response:
    """Handler of paths and methods that no route has."""
    assert isinstance(error, NoRoute)
    missing = body(f"{request.method} {request.url.path}: {error.detail}; see /docs", HTTPStatus(error.status_code))
    return answer(missing, error.headers)


def _unfit(error: RequestValidationError) -> ErrorBody:
    first = error.errors()[0]
    where = [str(part) for part in first["loc"] if part != "body"]
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", first["msg"])
        return body(f"the body is not JSON: {reason}, at character {where[0] if where else '?'}", HTTPStatus.BAD_REQUEST)
    if not where:
        return body(f"the body: {first['msg']}; expected a JSON object with 'input'", HTTPStatus.BAD_REQUEST)
    name = ".".join(where)
    found = f", found {json.dumps(first['input'])[:100]}" if isinstance(first.get("input"), str | int | float) else ""
    return body(f"field '{name}': {first['msg'][0].lower()}{first['msg'][1:]}{found}", HTTPStatus.BAD_REQUEST, param=name)
