"""When two texts, two works or two pairs count as the same, and where every random choice comes from.

The single source of truth for both, with `perse.data.near` for texts that are the same but for a word: readers, profiles,
splits and the leak check all decide by these functions, so that what one of them keeps apart, the others cannot bring
together.
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


def text_groups(texts: Iterable[str]) -> dict[str, str]:
    """text -> a key that is equal for texts that are the same or near-duplicates (`perse.data.near`), also through others.

    The key is the smallest `text_key` of its group: without near-duplicates the text's own, whatever else there is.

    Raises:
        BadInput: rensa, which finds the candidates, is not installed.
    """
    from perse.data.near import near_groups

    distinct = list(dict.fromkeys(texts))
    groups = near_groups(distinct)
    smallest: dict[int, str] = {}
    for text, group in zip(distinct, groups, strict=True):
        key = text_key(text)
        smallest[group] = min(smallest.get(group, key), key)
    return {text: smallest[group] for text, group in zip(distinct, groups, strict=True)}


def works(reviews: Iterable[Review], near: bool = True) -> dict[str, str]:
    """review_id -> the work reviewed: reviews share one if they share an item id or a text, directly or through others.

    Two item ids with one text (a film listed twice) are one work, or the query's text could stand in its own profile. So are
    two with near-duplicate texts (a plot with a typing error put right), unless `near` is False.

    Raises:
        BadInput: `near`, and rensa is not installed.
    """
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        parent.setdefault(node, node)
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    nodes: dict[str, str] = {}
    keys: dict[str, str] = {}
    joined: dict[str, str] = {}
    found: dict[str, str] = {}
    for review in reviews:
        node = nodes.get(review.item_id) or nodes.setdefault(review.item_id, "item:" + review.item_id)
        found[review.review_id] = node
        if joined.get(node) == review.text:  # as with all but the first review of an item
            continue
        if review.text not in keys:
            keys[review.text] = "text:" + text_key(review.text)
        item, text = root(node), root(keys[review.text])
        # The smaller name is the root, whatever the order of the rows.
        parent[max(item, text)] = min(item, text)
        joined[node] = review.text
    for text, key in text_groups(keys).items() if near else ():
        one, other = root(keys[text]), root("text:" + key)
        parent[max(one, other)] = min(one, other)
    for review_id, node in found.items():
        found[review_id] = root(node)
    return found
