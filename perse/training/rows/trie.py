"""Trie packing: one row holds every shared segment once, and what differs as branches (DESIGN.md, section 5).

Branches that begin with equal segments of token ids are laid out depth first: a shared segment, then its branches one after
the other, to any depth (instruction -> profile -> query -> aspect). Positions go on from the branch point, and a token sees
its own path only, so losses and gradients are those of separate rows while the shared tokens are computed once. Branches
with nothing in common stand in one row as trees of their own, without padding. The trade-off: examples of one reader come
in one optimizer step together, at most `max_shared_examples` of them in a row.

Letters: L tokens of a row, T learned tokens.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

from perse.errors import BadInput
from perse.rendering.prompt import Ids
from perse.training.rows.branches import Branch
from perse.training.rows.label_tree import Reading, pairs_in_order

OPEN_ROWS = 8
"""Rows that can still take a group while they are filled; more fill better, fewer keep closer to the shuffled order."""


@dataclass(frozen=True)
class Span:
    """A run of tokens that the same branches share: `start` to `own` in the row; what branches off stands in `own` to `end`."""

    start: int
    own: int
    end: int


@dataclass(frozen=True)
class Tree:
    """Who sees whom in a row of `length` tokens: a token sees those before it in its own span, and every span that its own
    span branches off from. `depth` is the length of the longest path."""

    length: int
    depth: int
    spans: tuple[Span, ...]

    @property
    def pairs(self) -> int:
        """Query-key pairs that attend."""
        return sum(
            (span.own - span.start) * (span.own - span.start + 1) // 2 + (span.end - span.own) * (span.own - span.start)
            for span in self.spans
        )


@dataclass(frozen=True)
class PackedRow:
    """One forward pass.

    `ids`, `positions`: L. `targets[t]` is predicted at place `sources[t]` of the row (T each): the first token of an answer
    comes from the last token of its prompt, which branches may share. `unshared` is what the branches would take alone.
    Behind the T sources stand those that are read for the `reading` alone.
    """

    ids: Ids
    positions: tuple[int, ...]
    tree: Tree
    sources: tuple[int, ...]
    targets: Ids
    example_ids: tuple[str, ...]
    unshared: int
    reading: Reading | None = None


def packed(branches: Sequence[Branch], *, share: bool = True) -> PackedRow:
    """The branches as one row; `share=False` lays them side by side, each a tree of its own."""
    layout = _Layout()
    paths, trees = _paths(branches, share=share)
    for members in trees:
        layout.lay(paths, members, depth=0, above=())
    sources: list[int] = []
    aside: list[list[tuple[int, ...]]] = []  # for each branch, its ways beside the answer
    laid = iter(layout.places[at] for at in range(len(paths)))
    for branch in branches:
        places, *ways = islice(laid, len(branch.paths))
        sources += places[len(places) - len(branch.answer) - 1 : len(places) - 1]
        aside.append(ways)
    reading = _reading(branches, aside, sources)
    return PackedRow(
        ids=tuple(layout.ids),
        positions=tuple(layout.positions),
        tree=Tree(len(layout.ids), max(layout.positions, default=-1) + 1, tuple(layout.spans)),
        sources=tuple(sources),
        targets=tuple(token for branch in branches for token in branch.answer),
        example_ids=tuple(branch.example_id for branch in branches),
        unshared=sum(branch.tokens for branch in branches),
        reading=reading,
    )


def _paths(branches: Sequence[Branch], *, share: bool) -> tuple[list[tuple[Ids, ...]], list[list[int]]]:
    """The paths of all branches one after the other, and which of them make a tree."""
    ways = [branch.paths for branch in branches]
    paths = [path for each in ways for path in each]
    if share:
        return paths, [list(range(len(paths)))]
    ends = [0, *accumulate(map(len, ways))]
    return paths, [list(range(start, end)) for start, end in pairwise(ends)]


def _reading(branches: Sequence[Branch], aside: Sequence[Sequence[tuple[int, ...]]], sources: list[int]) -> Reading | None:
    """Where the branches' labels are read; the places that predict no learned token are added to `sources`."""
    labels = [branch.label for branch in branches if branch.label is not None]
    if not labels or len(labels) < len(branches):
        return None
    tree = labels[0].tree
    nodes, begins, at = [], [], 0
    for branch, label, ways in zip(branches, labels, aside, strict=True):
        begins.append(at + label.begins(branch.answer))
        at += len(branch.answer)
        known = {
            node: begins[-1] + len(node)
            for node, is_passed in zip(tree.nodes, label.passed(branch.answer), strict=True)
            if is_passed
        }
        ends = [end for end in tree.ends if end not in known]
        for end, places in zip(ends, ways, strict=True):
            for n in range(1, len(end) + 1):
                if end[:n] not in known:
                    known[end[:n]] = len(sources)
                    sources.append(places[len(places) - len(end) + n - 1])
        nodes.append(tuple(known[node] for node in tree.nodes))
    return Reading(tree, tuple(nodes), tuple(each.index for each in labels), tuple(begins), pairs_in_order(labels))


@dataclass(frozen=True)
class RowSize:
    """What a row takes: `tokens`, query-key `pairs` that attend, `learned` tokens, what its branches would take alone, and `read`:
    places at which the next token is predicted, the learned ones and those that labels are read at."""

    tokens: int
    pairs: int
    learned: int
    unshared: int
    read: int


def row_size(branches: Sequence[Branch], *, share: bool = True) -> RowSize:
    """Of `packed(branches)`, from the lengths of segments alone: a run has a hundred million tokens to count."""
    paths, trees = _paths(branches, share=share)
    sizes = [_size(paths, members, depth=0) for members in trees]
    return RowSize(
        tokens=sum(tokens for tokens, _ in sizes),
        pairs=sum(pairs for _, pairs in sizes),
        learned=sum(len(branch.answer) for branch in branches),
        unshared=sum(branch.tokens for branch in branches),
        read=sum(len(branch.answer) + branch.beside for branch in branches),
    )


def _size(paths: Sequence[tuple[Ids, ...]], members: Sequence[int], *, depth: int) -> tuple[int, int]:
    """Tokens, and pairs, of what stands below `depth` segments of `members`."""
    tokens = pairs = 0
    for alike in _by_segment(paths, [at for at in members if len(paths[at]) > depth], depth):
        own = len(paths[alike[0]][depth])
        below, among = _size(paths, alike, depth=depth + 1)
        tokens += own + below
        pairs += own * (own + 1) // 2 + below * own + among
    return tokens, pairs


class _Layout:
    """A row while it is laid out: its tokens so far, and for every branch the places of its path."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.spans: list[Span] = []
        self.places: dict[int, tuple[int, ...]] = {}

    def lay(self, paths: Sequence[tuple[Ids, ...]], members: Sequence[int], *, depth: int, above: tuple[int, ...]) -> None:
        """Append what stands below `depth` segments of `members`, which are equal up to there and lie at `above`."""
        ending = [at for at in members if len(paths[at]) == depth]
        self.places |= dict.fromkeys(ending, above)
        for alike in _by_segment(paths, [at for at in members if len(paths[at]) > depth], depth):
            last = depth + 1  # a run of segments that all of them share is one span
            while len({paths[at][last : last + 1] for at in alike}) == 1 and len(paths[alike[0]]) > last:
                last += 1
            own = [token for segment in paths[alike[0]][depth:last] for token in segment]
            if not own:  # an empty segment; no attention kernel takes a piece without tokens
                self.lay(paths, alike, depth=last, above=above)
                continue
            start = len(self.ids)
            self.ids += own
            self.positions += range(len(above), len(above) + len(own))
            at_span = len(self.spans)
            self.spans.append(Span(start, start + len(own), start + len(own)))
            self.lay(paths, alike, depth=last, above=above + tuple(range(start, start + len(own))))
            self.spans[at_span] = Span(start, start + len(own), len(self.ids))


def _by_segment(paths: Sequence[tuple[Ids, ...]], members: Sequence[int], depth: int) -> list[list[int]]:
    """`members` by their segment at `depth`, in order of first appearance."""
    found: dict[Ids, list[int]] = {}
    for at in members:
        found.setdefault(paths[at][depth], []).append(at)
    return list(found.values())


def pack(
    branches: Sequence[Branch], *, row_tokens: int, batch_size: int, max_shared_examples: int, seed: int | str
) -> list[tuple[Branch, ...]]:
    """The branches, shuffled by `seed`, as rows of at most `row_tokens` tokens and `batch_size` examples.

    Branches with equal segments before the query are a group. At most `max_shared_examples` that share a profile come into one
    row; the rest of it is for other profiles, so a row of few readers stays short of `batch_size`. Without a profile there is
    no such limit: they share an instruction, as everybody does. Nor is there with 1, where nothing is shared.

    Raises:
        BadInput: a branch alone is longer than a row.
    """
    longest = max(branches, key=lambda branch: branch.laid_out)
    if longest.laid_out > row_tokens:
        raise BadInput(
            f"example {longest.example_id} takes {longest.laid_out} tokens, {len(longest.answer)} of them its answer, and a row "
            f"holds {row_tokens}; raise train.row_tokens, or lower model.context to leave such examples out"
        )
    rng = random.Random(f"{seed} pack")
    share = max_shared_examples > 1
    most = min(max_shared_examples, batch_size)
    pieces = [(at, piece) for at, group in enumerate(_groups(branches, rng)) for piece in _pieces(group, most, row_tokens)]
    rng.shuffle(pieces)
    rows: list[tuple[Branch, ...]] = []
    still_open: list[_Filling] = []
    for group, piece in pieces:
        limit = max_shared_examples if share and piece[0].k_effective else batch_size
        row = next(
            (row for row in still_open if row.groups[group] + len(piece) <= limit and row.takes(piece, row_tokens, batch_size)),
            None,
        )
        if row is None:
            row = _Filling(share)
            still_open.append(row)
        row.add(piece)
        row.groups[group] += len(piece)
        if len(still_open) > OPEN_ROWS:
            rows.append(tuple(still_open.pop(0).branches))
    rows += [tuple(row.branches) for row in still_open]
    rng.shuffle(rows)  # rows were closed in the order in which they filled: short groups late
    return rows


def _groups(branches: Sequence[Branch], rng: random.Random) -> list[list[Branch]]:
    """Branches by the segments before their query, each group shuffled with equal queries side by side."""
    groups: dict[tuple[Ids, ...], list[Branch]] = {}
    for branch in branches:
        groups.setdefault(branch.segments[: branch.shared], []).append(branch)
    for group in groups.values():
        rng.shuffle(group)
        first: dict[tuple[Ids, ...], int] = {}
        group.sort(key=lambda branch: first.setdefault(branch.segments[: branch.shared + 1], len(first)))
    return list(groups.values())


def _pieces(group: Sequence[Branch], most: int, row_tokens: int) -> Iterator[list[Branch]]:
    """A group cut into pieces of similar size, at most `most` branches and `row_tokens` tokens each."""
    size = -(-len(group) // -(-len(group) // most))
    filling = _Filling(most > 1)
    for branch in group:
        if filling.branches and not filling.takes([branch], row_tokens, size):
            yield filling.branches
            filling = _Filling(most > 1)
        filling.add([branch])
    yield filling.branches


class _Filling:
    """A row, or a piece of one, while it is filled, and the tokens it takes when packed."""

    def __init__(self, share: bool) -> None:
        self.share = share
        self.branches: list[Branch] = []
        self.groups: Counter[int] = Counter()
        self.tokens = 0
        self._known: set[tuple[Ids, ...]] = set()

    def takes(self, piece: Sequence[Branch], row_tokens: int, batch_size: int) -> bool:
        if len(self.branches) + len(piece) > batch_size:
            return False
        return self.tokens + self._new(piece)[0] <= row_tokens

    def add(self, piece: Sequence[Branch]) -> None:
        tokens, paths = self._new(piece)
        self.tokens += tokens
        self._known |= paths
        self.branches += piece

    def _new(self, piece: Sequence[Branch]) -> tuple[int, set[tuple[Ids, ...]]]:
        """Tokens that `piece` would add, and the paths they stand at the end of."""
        if not self.share:
            return sum(branch.laid_out for branch in piece), set()
        paths: set[tuple[Ids, ...]] = set()
        for whole in (path for branch in piece for path in branch.paths):
            paths.update(whole[:n] for n in range(1, len(whole) + 1))
        paths -= self._known
        return sum(len(path[-1]) for path in paths), paths
