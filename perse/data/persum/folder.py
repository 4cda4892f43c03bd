"""The PerSum folder: written, and checked when read back (Rehearsal, section 4.1 and appendix A).

    samples.jsonl    one sample a line: a user's review of a product, the others' reviews of it, and the user's history
    manifest.json    files, options, how many candidates each filter left, who judged and how often it failed
    skipped.jsonl    the bad rows that were left out, if any were
    README.md        the card, with the header by which `datasets.load_dataset(FOLDER)` finds the samples

The same inputs, options and answers give the same bytes. JSON lines instead of Parquet: samples repeat the reviews that they
share, but a person can read one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ConfigDict, Field, ValidationError
from rich.table import Table
from rich.text import Text

from perse.data.overlap import Tokenizer, is_copy
from perse.data.persum.card import Unseen, persum_card
from perse.data.sources.lines import read_json_lines
from perse.errors import BadInput
from perse.files.belongings import Belongings, kind_of
from perse.files.replacing import Claim, reading
from perse.formats.json_text import read_object
from perse.records import explain
from perse.secrets import without_keys
from perse.strict import Name, Strict

SCHEMA = 1

KIND = "persum"
"""What the manifest calls such a folder."""

SAMPLES = "samples.jsonl"

PERSUM = Belongings(what="PerSum folder", kinds=(KIND,), names=(SAMPLES, "skipped.jsonl", "README.md"))
"""The files of such a folder."""

Group = Literal["High", "Low", "HHPL"]

GROUPS: tuple[Group, ...] = get_args(Group)
"""Columns of Rehearsal's table 3; HHPL: high history, low product."""


class _Record(Strict):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ProductReview(_Record):
    """A review of one product. `score` is in stars, 1 to 5."""

    reviewer_id: str
    item_id: str
    review: str
    score: float
    time: str | None


class Scores(_Record):
    """How well the user's review agrees with the product's other reviews and the user's history, 1 to 5 each."""

    history_coverage: float = Field(ge=1, le=5)
    product_coverage: float = Field(ge=1, le=5)
    product_sentiment: float = Field(ge=1, le=5)


class Sample(_Record):
    """One task: from `product_reviews` and `history`, summarize the product for this user; `own` shows what they would say."""

    id: Name
    category: str
    group: Group
    own: ProductReview
    product_reviews: tuple[ProductReview, ...] = Field(min_length=1)
    """By others, of this product; oldest first."""
    history: tuple[ProductReview, ...] = Field(min_length=1)
    """By the same user, of other products of the category; oldest first."""
    scores: Scores


UNSEEN = {"history": "histories", "product": "products' reviews"}
"""What sets of reviews are called."""


class PersumSummary(_Record):
    """Counts of a build by category, as `--json` prints them."""

    out: Path | None
    """None if only the counts were asked for."""
    funnel: dict[str, dict[str, int]]
    """How many reviews are left after each step."""
    left_out: dict[str, dict[str, int]]
    """Why reviews were left out."""
    groups: dict[str, dict[str, int]]
    """How many candidates are of each group; without these samples there is no table."""
    samples: dict[str, dict[str, int]]
    """How many of them were drawn."""
    unseen: dict[str, Unseen]
    """What the judge's context left out: history and product."""
    notes: tuple[str, ...]
    """Cautions about the data."""


def check_samples(samples: Sequence[Sample], where: Path, *, repeats: bool = False) -> None:
    """Check that no sample gives its own answer away, and that its reviews are of the right people and products.

    Args:
        repeats: whether copies of the user's review may stand there (`PersumOptions.keep_repeats`).
    Raises:
        BadInput: the user's review, or nearly, is among the other reviews, or a review stands on the wrong side; names the line.
    """
    tokens = Tokenizer()
    first: dict[str, int] = {}
    for number, sample in enumerate(samples, start=1):
        place = f"{where}, line {number}: sample '{sample.id}'"
        if first.setdefault(sample.id, number) != number:
            raise BadInput(f"{place} also stands on line {first[sample.id]}; ids must be unique: build the folder again")
        own = sample.own
        for name, reviews in (("product_reviews", sample.product_reviews), ("history", sample.history)):
            for at, other in enumerate(reviews):
                mine, same = other.reviewer_id == own.reviewer_id, other.item_id == own.item_id
                if (mine, same) != ((False, True) if name == "product_reviews" else (True, False)):
                    raise BadInput(
                        f"{place}: {name}[{at}] is by '{other.reviewer_id}' of '{other.item_id}', expected "
                        f"{'another reviewer of the same' if name == 'product_reviews' else 'the same reviewer of another'} product; "
                        "build the folder again"
                    )
                if not repeats and is_copy(tokens(own.review), tokens(other.review)):
                    raise BadInput(f"{place}: leak: {name}[{at}] is a copy of the user's own review; build the folder again")


def write_persum(place: Claim, samples: Sequence[Sample], manifest: Mapping[str, Any], *, skipped: str = "") -> None:
    """Writes the folder, of `claimed(out, PERSUM, ...)`, after checking the samples; `skipped` is the text of `skipped.jsonl`, if any.

    Raises:
        BadInput: as `check_samples`, or the folder cannot be written.
    """
    check_samples(samples, place.out / SAMPLES, repeats=_repeats(manifest))
    whole = {"schema": SCHEMA, "kind": KIND, **manifest}

    def write(fresh: Path) -> None:
        (fresh / SAMPLES).write_text("".join(sample.model_dump_json() + "\n" for sample in samples), "utf-8", newline="\n")
        (fresh / "README.md").write_text(without_keys(persum_card(whole, groups=GROUPS)), "utf-8")
        if skipped:
            (fresh / "skipped.jsonl").write_text(without_keys(skipped), "utf-8", newline="\n")

    place.fill(write, whole)


def load_persum(folder: Path) -> list[Sample]:
    """The samples of a folder, checked.

    Raises:
        BadInput: no PerSum folder, an invalid line, or a sample that gives its answer away; names file and line.
    """
    with reading(folder):
        return _load(folder)


def _load(folder: Path) -> list[Sample]:
    if kind_of(folder) != KIND:
        raise BadInput(f"{folder}: found no PerSum folder (manifest.json of kind 'persum'); build one with `perse data persum`")
    samples = parse_samples(read_json_lines(folder / SAMPLES), folder / SAMPLES)
    manifest = read_object(folder / "manifest.json", remedy="build the folder again")
    check_samples(samples, folder / SAMPLES, repeats=_repeats(manifest))
    return samples


def _repeats(manifest: Mapping[str, Any]) -> bool:
    options = manifest.get("options")
    return isinstance(options, dict) and options.get("keep_repeats") is True


def parse_samples(lines: Iterable[tuple[int, object]], where: Path) -> list[Sample]:
    """Numbered lines of a file as samples, not yet checked.

    Raises:
        BadInput: an invalid line.
    """
    samples = []
    for line, fields in lines:
        try:
            samples.append(Sample.model_validate_json(json.dumps(fields)))
        except ValidationError as error:
            raise BadInput(f"{where}, line {line}: {explain(error)}; build the folder again") from None
    return samples


def counted_samples(samples: Sequence[Sample], categories: Iterable[str]) -> dict[str, dict[str, int]]:
    """category -> group -> how many samples: Rehearsal's table 3."""
    counts = Counter((sample.category, sample.group) for sample in samples)
    return {name: {group: counts[name, group] for group in GROUPS} for name in categories}


def persum_tables(summary: PersumSummary) -> list[Table]:
    """What each filter left, and Rehearsal's table 3 where samples were drawn."""
    steps = list(next(iter(summary.funnel.values()), {}))
    turned = {step: {name: left[step] for name, left in summary.funnel.items()} for step in steps}
    tables = [_table("Reviews left after each step", turned, list(summary.funnel))]
    if summary.out is not None:
        tables.append(_table("Samples", summary.samples, GROUPS))
    return tables


def _table(title: str, rows: Mapping[str, Mapping[str, int]], columns: Sequence[str]) -> Table:
    shown = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    shown.add_column("", no_wrap=True)
    for column in columns:
        shown.add_column(Text(column), justify="right")
    for name, counts in rows.items():
        shown.add_row(Text(name), *(f"{counts.get(column, 0):,}" for column in columns))
    return shown
