"""The contamination study's data: versions of the same plots, their titles and mean scores, and pairs drawn of them.

All versions are asked about the same items, those that every version has: a rewriting that failed leaves its item out of all,
so that a difference between versions is not one of items.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import fsum
from pathlib import Path

from perse.data.sources.faults import Faults
from perse.data.sources.lines import read_records
from perse.data.sources.mpst import read_mpst
from perse.data.sources.rows import Row, read_rows, read_score, usable
from perse.errors import BadInput
from perse.identity import draw, normalised, shuffled
from perse.records import Choice, Pair, PairwiseExample, PointwiseExample
from perse.studies.contamination.recognition import plain_title

FIELDS = ("item_id", "title", "text", "score")
ASPECT = "Overall"


@dataclass(frozen=True)
class Plots:
    """Versions of the same items."""

    texts: Mapping[str, Mapping[str, str]]
    """Version -> item -> text; every version has every item."""
    titles: Mapping[str, str]
    truth: Mapping[str, float]
    """Item -> mean score of its reviews, on 1-10."""
    left_out: Mapping[str, int]
    """Why items were left out -> how many."""

    @property
    def items(self) -> list[str]:
        return list(self.titles)

    def holding_title(self, version: str) -> int:
        """How many texts of a version name their own work, so that reading is enough to recognize it."""
        plain = {item: f" {plain_title(self.titles[item])} " for item in self.titles}
        return sum(plain[item] in f" {' '.join(_words(text))} " for item, text in self.texts[version].items())


def _words(text: str) -> list[str]:
    return plain_title(normalised(text)).split()


def read_plots(
    versions: Mapping[str, Path],
    reviews: Path,
    *,
    columns: Mapping[str, str],
    scale: tuple[float, float] = (1.0, 10.0),
    min_reviews: int = 1,
    items: int | None = None,
    seed: int = 0,
) -> Plots:
    """The items that all versions have, with a title and at least `min_reviews` reviews; at most `items`, drawn by seed.

    Args:
        versions: name -> items file (item_id, text and, in one of them at least, title).
        reviews: a table with item_id and score.
        columns: field (of `FIELDS`, also with `items.` before it) -> the user's column; holds for the files that have such a column.
        scale: lowest and highest score of the reviews.
    Raises:
        BadInput: a file that cannot be read, a column that no file has, no title anywhere, or no item left.
    """
    theirs = {field.removeprefix("items."): column for field, column in columns.items() if field.startswith("items.")}
    columns = {field: column for field, column in columns.items() if not field.startswith("items.")}
    for given in (columns, theirs):
        _check_columns(given, [*versions.values(), reviews])
    read = {
        name: read_mpst(path, Faults(), columns=_items_mapping({**columns, **theirs}, path)) for name, path in versions.items()
    }
    titles: dict[str, str] = {}
    for plots in read.values():
        for item, plot in plots.items():
            if plot.title:
                titles.setdefault(item, plot.title)
    if not titles:
        names = ", ".join(str(path) for path in versions.values())
        raise BadInput(f"no title in {names}; recognition needs titles: give a column with --map title=COLUMN")
    scores = read_means(reviews, columns={**theirs, **columns}, scale=scale)
    every = list(dict.fromkeys(item for plots in read.values() for item in plots))
    shared = [item for item in every if all(item in plots for plots in read.values())]
    titled = [item for item in shared if item in titles]
    judged = [item for item in titled if item in scores and scores[item][1] >= min_reviews]
    if not judged:
        raise BadInput(
            f"of {len(every)} items {len(shared)} are in every version, {len(titled)} of them have a title, and none of these "
            f"has {min_reviews} or more reviews in {reviews}; do the ids of the files agree? Else lower --min-reviews"
        )
    kept = set(shuffled(judged, seed=seed, purpose="contamination items")[:items])
    counts = {
        "not in every version": len(every) - len(shared),
        "without title": len(shared) - len(titled),
        f"with fewer than {min_reviews} reviews": len(titled) - len(judged),
        "not drawn": len(judged) - len(kept),
    }
    chosen = sorted(kept)
    return Plots(
        texts={name: {item: plots[item].text for item in chosen} for name, plots in read.items()},
        titles={item: titles[item] for item in chosen},
        truth={item: scores[item][0] for item in chosen},
        left_out={reason: count for reason, count in counts.items() if count},
    )


def read_means(path: Path, *, columns: Mapping[str, str], scale: tuple[float, float]) -> dict[str, tuple[float, int]]:
    """Item -> (mean score moved to 1-10, reviews). Review texts are not needed."""
    low, high = scale
    if not low < high:
        raise BadInput(f"--scale {low:g}-{high:g}: expected the lowest score first")
    scores: defaultdict[str, list[float]] = defaultdict(list)

    def read(row: Row) -> None:
        scores[row.text("item_id", reason="no item")].append(1 + 9 * (read_score(row, scale) - low) / (high - low))

    mapping = {field: columns[field] for field in ("item_id", "score") if field in columns and _has(path, columns[field])}
    usable(read_rows(path, mapping, Faults()), read, Faults())
    return {item: (fsum(given) / len(given), len(given)) for item, given in scores.items()}


def _check_columns(columns: Mapping[str, str], paths: Sequence[Path]) -> None:
    for field, column in columns.items():
        if field not in FIELDS:
            raise BadInput(f"--map {field}={column}: no field '{field}'; fields: {', '.join(FIELDS)}")
        if not any(_has(path, column) for path in paths):
            raise BadInput(f"--map {field}={column}: none of {', '.join(map(str, paths))} has a column '{column}'")


def _items_mapping(columns: Mapping[str, str], path: Path) -> dict[str, str]:
    """A rewritten table has item_id and text only, whatever the columns of the first were called."""
    return {f"items.{field}": column for field, column in columns.items() if field != "score" and _has(path, column)}


def _has(path: Path, column: str) -> bool:
    names = {name for _, values in islice(read_records(path), 1) for name in values}
    return column in names or all(part.strip() in names for part in column.split("+"))


@dataclass(frozen=True)
class Pairs:
    """Pairs of items (first, second), and how many drawn pairs were left out for scores too close to have a better one."""

    pairs: tuple[tuple[str, str], ...]
    too_near: int
    reused: bool
    """Whether some item is in more than one pair."""


def draw_pairs(truth: Mapping[str, float], *, pairs: int, gap: float, seed: int) -> Pairs:
    """`pairs` pairs whose mean scores differ by at least `gap`, and never not at all; which is first is drawn, too.

    Items are shuffled and paired off as neighbours, round after round, until there are enough: within a round no item is used twice, and what the
    first leaves missing comes of rounds that may use items again. No pair comes twice.
    """
    found: dict[frozenset[str], tuple[str, str]] = {}
    near: set[frozenset[str]] = set()
    for turn in range(1000):
        order = shuffled(sorted(truth), seed=seed, purpose=f"contamination pairs {turn}")
        for a, b in zip(order[::2], order[1::2], strict=False):
            both = frozenset((a, b))
            if both in found:
                continue
            if truth[a] == truth[b] or abs(truth[a] - truth[b]) < gap:
                near.add(both)
                continue
            found[both] = (a, b) if draw(seed, f"{min(a, b)}\x1f{max(a, b)}", "contamination first").random() < 0.5 else (b, a)
            if len(found) == pairs:
                break
        if len(found) >= pairs or len(found) + len(near) >= len(truth) * (len(truth) - 1) // 2:
            break
    used = [item for pair in found.values() for item in pair]
    return Pairs(tuple(found.values()), len(near), len(set(used)) < len(used))


def single_examples(texts: Mapping[str, str], items: Sequence[str]) -> list[PointwiseExample]:
    """One question about each item. No reader, no profile."""
    return [PointwiseExample(id=item, reviewer_id=item, item_id=item, profile=(), query=texts[item]) for item in items]


def pair_examples(texts: Mapping[str, str], pairs: Sequence[tuple[str, str]], *, swapped: bool) -> list[PairwiseExample]:
    """One question about each pair, the first as plot A; `swapped`: as plot B."""
    examples = []
    for first, second in pairs:
        a, b = (second, first) if swapped else (first, second)
        examples.append(
            PairwiseExample(
                id=pair_id(first, second),
                reviewer_id=pair_id(first, second),
                aspect=ASPECT,
                profile=(),
                query=Pair(text_a=texts[a], text_b=texts[b]),
            )
        )
    return examples


def pair_id(first: str, second: str) -> str:
    """The same in both orders of asking."""
    return f"{first}|{second}"


def better(truth: Mapping[str, float], pair: tuple[str, str]) -> Choice:
    """ "A" where the first of the pair has the higher mean score, else "B"."""
    return "A" if truth[pair[0]] > truth[pair[1]] else "B"
