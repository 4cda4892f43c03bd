"""The public name of the model under a judge, which the name of its folder does not tell.

A hub name is never made up; of a folder only the last part is shown, and no machine's paths.
"""

from __future__ import annotations

import re
from pathlib import PureWindowsPath

from perse.files.path_names import place_named
from perse.models.finding import EMBEDDED, cache_folder

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_CACHED = re.compile(r"models--(?P<owner>[^/]+?)--(?P<name>[^/]+)/snapshots/")


def hub_name(path: str) -> str | None:
    """OWNER/NAME of the model that a setting or an adapter calls `path`, or None if unknown.

    Embedded models and those in the hub's cache have one. OWNER/NAME counts as one unless a folder of that name
    is here.
    """
    found = _CACHED.search(path)
    if found:
        return f"{found['owner']}/{found['name']}"
    place = place_named(path)
    known = EMBEDDED.get(path) or (EMBEDDED.get(place.name) if place.parent == cache_folder() else None)
    if known:
        return known.hub
    return path if _HUB_NAME.fullmatch(path) and not place.exists() else None


def public_name(path: str) -> str:
    """`hub_name`, or else the last part of the folder's name."""
    return hub_name(path) or PureWindowsPath(path).name or "unknown"  # both kinds of slash


def licence(hub: str | None) -> str | None:
    """The licence that the model of this hub name is published under, where it is known here."""
    return next((model.licence for model in EMBEDDED.values() if model.hub == hub), None)
