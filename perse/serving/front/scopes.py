"""Which scope a route needs. What is not named here changes the server, or may do so in another version of vLLM: administrators only."""

from __future__ import annotations

import re

from starlette.routing import Match
from starlette.types import Scope as Asgi

from perse.serving.front.keys import Scope

OPEN = re.compile(r"/health|/ready|/|/docs|/openapi\.json|/page/[a-z.]+")
"""Whether the server lives, and its own pages, which hold nothing that is not in this repository."""

_READERS = re.compile(r"/v1/readers(/.*)?", re.DOTALL)
_JUDGE = re.compile(
    r"/v1/(judge|models|completions|chat|responses|messages|realtime)(/.*)?|/(tokenize|detokenize|version|metrics|load|ping)/?"
    r"|/redoc|/static/.*",
    re.DOTALL,
)


def is_open(scope: Asgi) -> bool:
    """Whether anyone may ask for this route without a key."""
    return scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and OPEN.fullmatch(scope["path"]) is not None


def needed(scope: Asgi) -> Scope | None:
    """The scope that a request needs; None where there is no such route, which its own answer says best."""
    path = scope["path"]
    if _READERS.fullmatch(path):
        return Scope.READERS
    if _JUDGE.fullmatch(path):
        return Scope.JUDGE
    there = any(route.matches(scope)[0] is not Match.NONE for route in scope["app"].routes)
    return Scope.ADMIN if there else None
