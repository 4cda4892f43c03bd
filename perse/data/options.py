"""The settings of a build: small, typed, and refused in plain words before any file is read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

from perse.data.profiles.profiles import Drawing, Profiles
from perse.data.profiles.selection import EMBEDDING_MODEL, Select
from perse.data.profiles.splits import SplitBy
from perse.data.pseudonyms import salt_from_seed
from perse.data.sources.faults import OnError
from perse.errors import BadInput

_TABLES = ("reviews", "pairs")
"""The default sources, which the manifest does not mention."""
_NOT_IN_MANIFEST = frozenset({"reviews", "pairs", "items", "files", "out", "overwrite", "salt"})


@dataclass(frozen=True, kw_only=True)
class RawOptions:
    """What all builds of raw files have in common. Raises BadInput for invalid settings."""

    out: Path
    """The folder to write."""
    seed: int = 0
    """Seeds every random choice."""
    on_error: OnError = "stop"
    """`skip` leaves out, counts and lists bad rows instead of stopping at the first."""
    keep_names: bool = False
    """Keep reviewer names as they are instead of pseudonyms."""
    salt: str | None = None
    """Secret of the pseudonyms (`perse.data.pseudonyms`); None derives it from the seed."""
    overwrite: bool = False
    """Replace `out` if it is a folder that such a build wrote."""

    def __post_init__(self) -> None:
        wrong = {
            **self._wrong(),
            f"on_error is '{self.on_error}', expected {_either(OnError)}": self.on_error not in get_args(OnError),
            "keep_names and a salt exclude each other: without pseudonyms there is nothing to salt": self.keep_names
            and self.salt is not None,
            "the salt is empty, which keeps no name secret: give one, or leave it out": self.salt == "",
        }
        if problems := [message for message, holds in wrong.items() if holds]:
            raise BadInput("; ".join(problems))

    @property
    def hidden_by(self) -> str | None:
        """The salt of the pseudonyms; None: names are kept."""
        if self.keep_names:
            return None
        return salt_from_seed(self.seed) if self.salt is None else self.salt

    def _wrong(self) -> dict[str, bool]:
        """What would be wrong with the settings of this build, and whether it is."""
        return {}

    def for_manifest(self) -> dict[str, Any]:
        """All settings but paths and the salt; of the salt only whether it was given."""
        kept = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _NOT_IN_MANIFEST}
        return kept | {"salt": None if self.keep_names else "from seed" if self.salt is None else "given"}


@dataclass(frozen=True, kw_only=True)
class BuildOptions(RawOptions):
    """What both kinds of data set have in common."""

    items: Path | None = None
    """Table of texts by item id; None if the rows carry the texts themselves."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our field -> the user's column (`perse.records.columns`)."""
    source: str
    """What the raw files are read as: the name of a source (`perse.data.sources`)."""
    k: int
    """How many reviews (comparisons) a profile shows."""
    max_k: int | None = None
    """How many are kept for each profile, so that any k up to it can be shown later (`views.View.k`); k by default."""
    profiles: Profiles = "per_example"
    """Draw a profile for each query, from all others or (the paper) from a part held apart, or one for each reviewer, re-drawn in every
    epoch of training (`perse.data.profiles.profiles`)."""
    select: Select = "random"
    """Which of the others make a profile (`perse.data.profiles.selection`)."""
    embedding_model: str = EMBEDDING_MODEL
    """Of `select: embedding`: a folder or a hub name."""
    max_queries: int | None = 10
    """At most so many examples per reviewer (pairs: and aspect); None for all."""
    split: SplitBy
    """What training and validation must not share: reviewers, or reviewers and items (pairs)."""
    valid: float = 0.1
    """Share of the reviewers that is for validation."""
    folds: int | None = None
    """Cross-fitting: every reviewer in one of so many folds, instead of a split."""
    max_reviewers: int | None = None
    """At most so many reviewers, drawn by the seed; for quick tries."""
    limit: int | None = None
    """Read only so many rows of reviews or pairs; for quick tries."""

    @property
    def least(self) -> tuple[str, int]:
        """(option, value) of how many reviews or comparisons a reviewer must have."""
        raise NotImplementedError

    @property
    def drawing(self) -> Drawing:
        """How queries and profiles are drawn."""
        k = self.k if self.max_k is None else self.max_k
        return Drawing(k, self.profiles, self.max_queries, self.seed)

    def _wrong(self) -> dict[str, bool]:
        name, least = self.least
        k = self.drawing.k
        return {
            f"k is {self.k}, expected 0 or more": self.k < 0,
            f"max_k is {self.max_k}, expected at least k = {self.k}": k < self.k,
            f"{name} is {least}, expected more than {'k' if k == self.k else 'max_k'} = {k}, since a query stands beside its "
            "profile": least <= k,
            f"select is '{self.select}', expected {_either(Select)}": self.select not in get_args(Select),
            f"select {self.select} looks at the query, and a profile that is drawn once for a reviewer has many: give profiles "
            "per_example or per_example_apart, or select random or diverse": self.profiles == "per_reviewer_epoch"
            and self.select in ("recent", "bm25", "embedding"),
            f"limit is {self.limit}, expected 1 or more": self.limit is not None and self.limit < 1,
            f"valid is {self.valid:g}, expected a share between 0 and 1, such as 0.1": not 0 < self.valid < 1,
            f"folds is {self.folds}, expected 2 or more": self.folds is not None and self.folds < 2,
            f"max_queries is {self.max_queries}, expected 1 or more": self.max_queries is not None and self.max_queries < 1,
            f"max_reviewers is {self.max_reviewers}, expected 2 or more": self.max_reviewers is not None
            and self.max_reviewers < 2,
            f"profiles is '{self.profiles}', expected {_either(Profiles)}": self.profiles not in get_args(Profiles),
            f"split is '{self.split}', expected {_either(SplitBy)}": self.split not in get_args(SplitBy),
        }

    def for_manifest(self) -> dict[str, Any]:
        kept = super().for_manifest()
        if self.select != "embedding":
            del kept["embedding_model"]
        if self.source in _TABLES:
            del kept["source"]
        return kept | {"columns": dict(self.columns), "max_k": self.drawing.k}


@dataclass(frozen=True, kw_only=True)
class PointwiseOptions(BuildOptions):
    """Settings of `build_pointwise`; the defaults are Per-MPST's (PerSE, section 4.1)."""

    reviews: Path
    """Table of reviews, or what the source reads instead."""
    source: str = "reviews"
    k: int = 3
    split: SplitBy = "reviewer"
    scale: tuple[float, float] = (1, 10)
    """Lowest and highest score of the raw data; scores are rescaled to 1-10."""
    min_reviews: int = 6
    """Reviewers with fewer reviews are left out."""
    min_review_chars: int = 0
    """Reviews with fewer characters are left out."""
    keep_repeats: bool = False
    """Let a profile show a review that says the same as the one asked for, as shops list one under several variants of a product."""
    valid_items: float = 0.3
    """`reviewer_item`: share of the items that is for validation (why: `perse.data.profiles.splits`)."""

    @property
    def least(self) -> tuple[str, int]:
        return "min_reviews", self.min_reviews

    @property
    def drawing(self) -> Drawing:
        return replace(super().drawing, keep_repeats=self.keep_repeats)

    def _wrong(self) -> dict[str, bool]:
        low, high = self.scale
        both = self.folds is not None and self.split == "reviewer_item"
        return super()._wrong() | {
            f"scale is {low:g}-{high:g}, expected the lowest score before the highest": not -math.inf < low < high < math.inf,
            f"min_review_chars is {self.min_review_chars}, expected 0 or more": self.min_review_chars < 0,
            f"valid_items is {self.valid_items:g}, expected a share between 0 and 1, such as 0.3": not 0 < self.valid_items < 1,
            "folds split by reviewer; with split reviewer_item a fold's reviewers would take nearly every item from training: "
            "give split reviewer, or no folds": both,
        }

    def for_manifest(self) -> dict[str, Any]:
        kept = super().for_manifest() | {"scale": [float(bound) for bound in self.scale]}
        # Listed only where it has an effect.
        return kept if self.split == "reviewer_item" else {name: kept[name] for name in kept if name != "valid_items"}


@dataclass(frozen=True, kw_only=True)
class PairwiseOptions(BuildOptions):
    """Settings of `build_pairwise`; the defaults are Per-DOC's (PerSE, section 4.1)."""

    pairs: Path
    """Table of judgements: annotator, aspect, two texts, preference; or what the source reads instead."""
    source: str = "pairs"
    k: int = 1
    split: SplitBy = "reviewer_item"
    min_comparisons: int = 2
    """Annotators with fewer comparisons are left out."""

    @property
    def least(self) -> tuple[str, int]:
        return "min_comparisons", self.min_comparisons


def _either(choices: Any) -> str:
    return " or ".join(get_args(choices))
