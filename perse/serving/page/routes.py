"""Routes of the server's own pages: static files of this folder, which hold no data and need no key.

They may load and ask this server alone (Content-Security-Policy), and no other page may frame them. What a key opens, the page asks
for with the key that its user typed, and keeps nowhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from types import MappingProxyType

from fastapi import APIRouter, Response

FILES = MappingProxyType(
    {
        "/": ("index.html", "text/html; charset=utf-8"),
        "/docs": ("docs.html", "text/html; charset=utf-8"),
        "/page/style.css": ("style.css", "text/css; charset=utf-8"),
        "/page/app.js": ("app.js", "text/javascript; charset=utf-8"),
        "/page/csv.js": ("csv.js", "text/javascript; charset=utf-8"),
        "/page/samples.js": ("samples.js", "text/javascript; charset=utf-8"),
        "/page/docs.js": ("docs.js", "text/javascript; charset=utf-8"),
        "/page/icon.svg": ("icon.svg", "image/svg+xml"),
    }
)
"""path -> file and media type."""

HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
)


def page_router() -> APIRouter:
    """All of them."""
    router = APIRouter(include_in_schema=False)
    for path, (name, kind) in FILES.items():
        router.add_api_route(path, _shows(name, kind), methods=["GET", "HEAD"], name=name)
    return router


def _shows(name: str, kind: str) -> Callable[[], Awaitable[Response]]:
    content = files("perse.serving.page").joinpath(name).read_bytes()

    async def show() -> Response:
        return Response(content, media_type=kind, headers=dict(HEADERS))

    return show
