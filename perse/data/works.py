"""Groups equal or nearly equal texts, works and reviews, also transitively: a profile must not show its query's group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perse.identity import normalised, text_key
from perse.records import Review
from perse.records.near import near_groups


def text_groups(texts: Iterable[str]) -> dict[str, str]:
    """text -> a key that is equal for texts that are the same or near-duplicates (`perse.records.near`), also through others.

    The key is the smallest `text_key` of its group: without near-duplicates the text's own, whatever else there is.

    Raises:
        BadInput: rensa, which finds the candidates, is not installed.
    """
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


def repeats(mine: Sequence[Review]) -> dict[str, str]:
    """review_id -> a key that is equal for reviews of one reviewer that say the same word for word or nearly.

    Shops list one review under every variant of a product: about another item, but the answer all the same. Reviews without a word
    say nothing and repeat nothing.

    Raises:
        BadInput: rensa is not installed.
    """
    written = [one for one in mine if normalised(one.review)]
    found = {one.review_id: one.review_id for one in mine}
    first: dict[int, str] = {}
    for one, group in zip(written, near_groups([one.review for one in written]), strict=True):
        found[one.review_id] = first.setdefault(group, one.review_id)
    return found
