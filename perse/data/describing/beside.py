"""What a command needs besides the file that is described: the file next to it that belongs to it, a judge, a place for the result."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from perse.data.sources import recognised
from perse.data.sources.amazon import PRODUCTS
from perse.data.sources.mpst import ITEM_TEXTS
from perse.data.sources.table import REVIEW_TABLE
from perse.errors import BadInput

_MOST_LOOKED_AT = 30
_ROLES = {"items": ITEM_TEXTS, "meta": PRODUCTS, "reviews": REVIEW_TABLE}


def filled_in(path: Path) -> dict[str, str]:
    """`Seen.out`, `Seen.judge`, and of `Seen.items`, `meta` and `reviews` those that a single file beside `path` can be."""
    found: dict[str, list[Path]] = {role: [] for role in _ROLES}
    for other in sorted(path.absolute().parent.iterdir())[:_MOST_LOOKED_AT] if path.is_file() else ():
        if other.name.startswith(".") or other.name == path.name or not other.is_file():
            continue
        try:
            source = recognised(other)
        except (BadInput, OSError):
            continue
        for role, wanted in _ROLES.items():
            found[role] += [other] if source.name == wanted.name else []
    single = {role: shlex.quote(str(path.parent / others[0].name)) for role, others in found.items() if len(others) == 1}
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", path.resolve().name.partition(".")[0]).strip("-") or "data"
    return {"judge": "smollm2-135m", "out": f"work/{name}", **single}
