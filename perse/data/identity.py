"""When two texts, two works or two pairs count as the same, and where every random choice comes from.

The single source of truth for both: readers, profiles, splits and the leak check all decide by these functions, so that
what one of them keeps apart, the others cannot bring together.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterable
from hashlib import blake2b

from perse.records import Review


def draw(seed: int, who: str, purpose: str) -> random.Random:
    """A generator of its own for one choice about one person or thing.

    Nobody shares a stream, so adding a reviewer or an item changes no other's draw. A string seeds it, which Python hashes
    with SHA-512: equal on every machine and in every process, unlike `hash`.
    """
    return random.Random(f"{seed}\x1f{purpose}\x1f{who}")


def shuffled(ids: Iterable[str], *, seed: int, purpose: str) -> list[str]:
    """`ids` in a random order in which each id's place comes from its own draw: one more id moves no two others."""
    return sorted(ids, key=lambda one: (draw(seed, one, purpose).random(), one))


def normalised(text: str) -> str:
    """`text` without differences of case, spacing and Unicode form: what "the same text" compares."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_key(text: str) -> str:
    """12 hex digits, equal for texts that are the same when `normalised`."""
    return blake2b(normalised(text).encode(), digest_size=6).hexdigest()


def pair_key(text_a: str, text_b: str) -> str:
    """A pair's id: 'p' and 12 hex digits, equal for the same two texts in either order."""
    both = "\x1f".join(sorted((normalised(text_a), normalised(text_b))))
    return "p" + blake2b(both.encode(), digest_size=6).hexdigest()


def works(reviews: Iterable[Review]) -> dict[str, str]:
    """review_id -> the work reviewed: reviews share one if they share an item id or a text, directly or through others.

    Two item ids with one text (a film listed twice) are one work, or the query's text could stand in its own profile.
    """
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    keys: dict[str, str] = {}
    items: dict[str, str] = {}
    for review in reviews:
        if review.text not in keys:
            keys[review.text] = "text:" + text_key(review.text)
        item, text = root("item:" + review.item_id), root(keys[review.text])
        # The smaller name is the root, whatever the order of the rows.
        parent[max(item, text)] = min(item, text)
        items[review.review_id] = "item:" + review.item_id
    return {review_id: root(item) for review_id, item in items.items()}
