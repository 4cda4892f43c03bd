"""What every route says of itself in /openapi.json: a name that programs can be made from, the key, and the answers of the front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from perse.serving.problems import ProblemRoute
from perse.serving.schemas import ErrorBody

Responses = dict[int | str, dict[str, Any]]

KEY = HTTPBearer(
    scheme_name="key",
    auto_error=False,  # the front looks at keys, before any route
    description="A key of the server's (PERSE_API_KEY, or one of `keys`), where it has any; each has scopes (judge, readers, admin).",
)


def errors(told: Mapping[int, str]) -> Responses:
    """Answers that are errors, by their status."""
    return {status: {"model": ErrorBody, "description": says} for status, says in told.items()}


OF_KEYS = errors(
    {
        401: "No key, a wrong one, or two.",
        403: "A key without the scope that is needed; or another machine's name in Host, where there is no key.",
        429: "This key asks too often, or too much at once; come again after Retry-After.",
    }
)
OF_BODIES = errors(
    {
        408: "The body did not arrive within 60 s.",
        413: "The body is too large; send fewer items at a time.",
        415: "No Content-Type: application/json.",
    }
)
"""Of routes that read a body."""


def operation_id(route: APIRoute) -> str:
    """The name of the function, which no other route has."""
    return route.name


KEYED = Security(KEY)
"""What makes a route say that it wants a key."""


def keyed_router(tag: str, responses: Responses | None = None) -> APIRouter:
    """A router whose routes want a key where the server has any."""
    return APIRouter(
        route_class=ProblemRoute,
        tags=[tag],
        responses=OF_KEYS | (responses or {}),
        dependencies=[KEYED],
        generate_unique_id_function=operation_id,
    )
