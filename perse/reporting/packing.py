"""What a page's script unpacks when somebody looks: every distinct text once, in a numbered list, and details that refer to it by number.

Both are base64 of gzipped JSON, in chunks; the script is `packed.js`.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from perse.identity import draw

TEXT_CHUNK = 400_000
"""Characters of text in a chunk: unpacked in a few milliseconds."""
ITEM_CHUNK = 250
"""Details in a chunk."""


class Numbered:
    """Texts in the order of their first use, each once."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))


@dataclass(frozen=True)
class Packed:
    """What the script of a page reads. `head` is plain JSON; `texts` and `items` are chunks."""

    head: dict[str, Any]
    texts: tuple[str, ...]
    items: tuple[str, ...]


def pack(head: dict[str, Any], texts: Numbered, details: Sequence[Any]) -> Packed:
    """`head` gets the numbers by which the script finds a text and an item in their chunks."""
    chunks = list(_cut(texts.known))
    return Packed(
        head={**head, "textStarts": [start for start, _ in chunks], "itemChunk": ITEM_CHUNK},
        texts=tuple(_packed(chunk) for _, chunk in chunks),
        items=tuple(_packed(details[start : start + ITEM_CHUNK]) for start in range(0, len(details), ITEM_CHUNK)),
    )


def kept(ids: Sequence[str], failed: Collection[str], *, most: int, seed: int) -> Collection[str]:
    """At most `most` of the samples: those that failed first, then a random draw of the others."""
    if len(ids) <= most:
        return ids
    return set(sorted(ids, key=lambda name: (name not in failed, draw(seed, name, "report samples").random(), name))[:most])


def _cut(texts: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Chunks of about `TEXT_CHUNK` characters, each with the number of its first text."""
    start, size, chunk = 0, 0, list[str]()
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size >= TEXT_CHUNK:
            yield start, chunk
            start, size, chunk = start + len(chunk), 0, []
    if chunk:
        yield start, chunk


def _packed(rows: Sequence[Any]) -> str:
    """Base64 of gzipped JSON. ASCII throughout, so that half a surrogate pair in a text cannot break the file."""
    plain = json.dumps(rows, separators=(",", ":"), allow_nan=False).encode()
    return base64.b64encode(gzip.compress(plain, compresslevel=6, mtime=0)).decode()
