"""The settings of PerSum: the paper's where it gives them, refused in plain words before any file is read (Rehearsal, 4.1, A)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, get_args

from perse.data.options import RawOptions
from perse.data.persum.folder import GROUPS, Group
from perse.data.sources.amazon import category_of
from perse.errors import BadInput

Rouge = Literal["both", "either"]
RougeAgainst = Literal["best", "mean", "whole"]


@dataclass(frozen=True)
class Counts:
    """How many samples of each group to draw; None for all there are."""

    high: int | None = 100
    low: int | None = None
    hhpl: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """From "HIGH,LOW,HHPL", each a number or "all". Raises BadInput for anything else."""
        parts = text.split(",")
        if len(parts) != len(GROUPS) or not all(re.fullmatch(r"all|\d+", part.strip(), re.ASCII) for part in parts):
            raise BadInput(f"invalid counts '{text}'; write HIGH,LOW,HHPL, each a number or all, as in 100,all,all")
        return cls(*(None if part.strip() == "all" else int(part) for part in parts))

    def of(self, group: Group) -> int | None:
        return {"High": self.high, "Low": self.low, "HHPL": self.hhpl}[group]


PUBLISHED = {
    "Clothing Shoes and Jewelry": Counts(100, 50, 46),
    "Electronics": Counts(100, 24, 52),
    "Home and Kitchen": Counts(100, 32, 27),
    "Health and Personal Care": Counts(100, 21, 14),
}
"""Rehearsal, table 3; 666 samples. Other categories: 100 High, all Low, all HHPL."""


@dataclass(frozen=True, kw_only=True)
class PersumOptions(RawOptions):
    """Settings of `build_persum`; the defaults are the paper's. The judge's answers are kept beside `out` (see `work`)."""

    reviews: tuple[Path, ...]
    """One file of Amazon's reviews for each category, which its name says."""
    min_product_reviews: int = 1
    """How many reviews by others a product must have; the paper gives no number."""
    history_over: int = 5
    """The history has more reviews than this ..."""
    history_under: int = 50
    """... and fewer than this,"""
    chars_under: int = 27_000
    """which have fewer characters together than this."""
    keep_repeats: bool = False
    """Keep samples in which a copy of the own review stands in the history or among the product's reviews."""
    rouge: Rouge = "both"
    """Which overlaps must suffice: with history and product's reviews, or either."""
    rouge_against: RougeAgainst = "best"
    """How a review is compared with a set, which the paper does not say: with the best single review, the mean over them, or all
    as one text."""
    min_overlap: float = 0.45
    """Least ROUGE-1 + -2 + -L, as F1."""
    high: float = 4.0
    """High: scores above this."""
    low: float = 3.0
    """Low: scores above this, up to `high`."""
    counts: Mapping[str, Counts] = field(default_factory=dict)
    """Category -> how many samples, in place of `PUBLISHED`."""
    limit: int | None = None
    """At most so many candidates of each category go to the judge, drawn by the seed; for a quick try."""

    def _wrong(self) -> dict[str, bool]:
        named = [category_of(path) for path in self.reviews]
        twice = sorted(name for name, count in Counter(named).items() if count > 1)
        return {
            "reviews is empty, expected a file for each category": not named,
            f"reviews holds two files of {', '.join(twice)}, expected one a category; join them": bool(twice),
            f"min_product_reviews is {self.min_product_reviews}, expected 1 or more": self.min_product_reviews < 1,
            f"history_over is {self.history_over} and history_under {self.history_under}, expected numbers from 0 up with one "
            "between them": not 0 <= self.history_over < self.history_under - 1,
            f"chars_under is {self.chars_under}, expected 2 or more": self.chars_under < 2,
            f"rouge is '{self.rouge}', expected both or either": self.rouge not in get_args(Rouge),
            f"rouge_against is '{self.rouge_against}', expected best, mean or whole": self.rouge_against
            not in get_args(RougeAgainst),
            f"min_overlap is {self.min_overlap:g}, expected 0 to 3, the sum of three F1": not 0 <= self.min_overlap <= 3,
            f"low is {self.low:g} and high {self.high:g}, expected 1 <= low < high < 5": not 1 <= self.low < self.high < 5,
            f"limit is {self.limit}, expected 1 or more": self.limit is not None and self.limit < 1,
            f"counts names {', '.join(sorted(set(self.counts) - set(named)))}, expected of {', '.join(named)}": not set(
                self.counts
            )
            <= set(named),
        }

    @property
    def work(self) -> Path:
        """Where the judge's answers are kept: beside `out`, under its name and ".work"."""
        return self.out.with_name(self.out.name + ".work")

    def counts_of(self, category: str) -> Counts:
        return self.counts.get(category) or PUBLISHED.get(category) or Counts()

    def for_manifest(self) -> dict[str, Any]:
        counts = {name: asdict(self.counts_of(name)) for name in sorted(map(category_of, self.reviews))}
        return super().for_manifest() | {"counts": counts}
