"""Options of the commands that build data sets: who is kept, how profiles are drawn, what becomes of bad rows and names."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from perse.commands.options import Map, Overwrite, Seed, here
from perse.commands.options.reading import read_columns
from perse.data.options import PairwiseOptions, PointwiseOptions
from perse.data.profiles.profiles import Profiles
from perse.data.profiles.selection import EMBEDDING_MODEL, Select
from perse.data.profiles.splits import SplitBy
from perse.data.sources.faults import OnError
from perse.judging.loading import judge_forms

ReviewTable = Annotated[
    Path, typer.Option("--reviews", help="Table of reviews: reviewer, item, score, review[, date].", show_default=False)
]
Items = Annotated[
    Path | None,
    typer.Option("--items", help="Table of texts by item id; leave out if the rows carry them.", show_default=False),
]
Rows = Annotated[
    int | None, typer.Option("--limit", min=1, max=10**12, help="Read only so many rows, for a quick try.", show_default=False)
]
K = Annotated[int, typer.Option("--k", help="Reviews, or comparisons, in a profile.")]
MaxK = Annotated[
    int | None,
    typer.Option(
        help="Keep longer profiles than are shown, so that any k up to this can be asked for later.", show_default=False
    ),
]
SplitByOption = Annotated[
    SplitBy,
    typer.Option("--split", help="What training and validation must not share: readers, or readers and items (or pairs)."),
]
Folds = Annotated[
    int | None, typer.Option(help="Cross-fitting: every reader in one of N folds, instead of a split.", show_default=False)
]
MinComparisons = Annotated[int, typer.Option(help="Leave out annotators with fewer comparisons.")]
ProfilesOption = Annotated[
    Profiles,
    typer.Option(
        "--profiles",
        help="per_example: a profile drawn for each query from all the reader's others; per_example_apart: from a part of them that is "
        "never asked about, as in the paper; per_reviewer_epoch: one for each reader, shared by their queries, and drawn again in every "
        "epoch of training.",
    ),
]
MaxQueries = Annotated[
    int | None,
    typer.Option(
        help="At most so many examples per reader (pairs: and aspect); 0 for all.", callback=lambda value: value or None
    ),
]
ErrorAt = Annotated[OnError, typer.Option("--on-error", help="At a bad row: stop, or skip it, count it and list it.")]
KeepNames = Annotated[bool, typer.Option("--keep-names", help="Keep reviewer names as they are; else they become pseudonyms.")]
Salt = Annotated[
    str | None, typer.Option(help="Secret that makes pseudonyms unguessable; else derived from the seed.", show_default=False)
]
SourceName = Annotated[
    str,
    typer.Option(
        "--source",
        metavar="NAME",
        help="What the files are read as, for formats that another package adds: `perse data describe FILE` says its name.",
    ),
]
WriterName = Annotated[
    str,
    typer.Option("--writer", help=f"Who rewrites: a judge's name ({judge_forms()}), rules, or none (as they are)."),
]
Ner = Annotated[
    str, typer.Option(help="Who finds names: rules, or an installed spaCy pipeline, such as en_core_web_sm, or its folder.")
]
Words = Annotated[int, typer.Option(help="Length of a summary to ask for.")]
Cache = Annotated[
    Path | None,
    typer.Option(callback=here, help="File that keeps the writer's answers.", show_default="OUT.work/answers.sqlite"),
]


@dataclass(frozen=True, kw_only=True)
class Enough:
    """Which reviews are kept."""

    min_reviews: Annotated[int, typer.Option(help="Leave out reviewers with fewer reviews.")] = 6
    min_review_chars: Annotated[int, typer.Option(help="Leave out reviews with fewer characters.")] = 0
    keep_repeats: Annotated[
        bool,
        typer.Option(
            "--keep-repeats",
            help="Let a profile show a review that says the same as the one asked for, as shops list one under several variants of "
            "a product; then the answer stands in the question.",
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Who validates, and how profiles are drawn."""

    valid: Annotated[float, typer.Option(help="Share of the readers that is for validation.")] = 0.1
    select: Annotated[
        Select,
        typer.Option(
            help="What makes a profile: random (the paper), recent (the latest before the query), bm25 or embedding (nearest to "
            "the query), diverse."
        ),
    ] = "random"
    embedding_model: Annotated[str, typer.Option(help="For --select embedding: a folder or a hub name.")] = EMBEDDING_MODEL
    max_reviewers: Annotated[
        int | None, typer.Option(help="At most so many readers, drawn by the seed, for a quick try.", show_default=False)
    ] = None
    limit: Rows = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What becomes of bad rows, of names, and of a folder that is there already."""

    seed: Seed = 0
    on_error: ErrorAt = "stop"
    keep_names: KeepNames = False
    salt: Salt = None
    overwrite: Overwrite = False


@dataclass(frozen=True, kw_only=True)
class _Built:
    """All that is built of tables takes."""

    max_k: MaxK = None
    columns: Map = None
    max_queries: MaxQueries = 10
    profiles: ProfilesOption = "per_example"
    drawing: Drawing
    reading: Reading

    def flat(self) -> dict[str, Any]:
        """The options as the library's settings have them: those of groups among the others, columns read."""
        flat: dict[str, Any] = {}
        for name, value in vars(self).items():
            flat |= vars(value) if is_dataclass(value) else {name: value}
        return flat | {"columns": read_columns(self.columns)}


@dataclass(frozen=True, kw_only=True)
class OfReviews(_Built):
    """What is built of reviews."""

    k: K = 3
    split: SplitByOption = "reviewer"
    enough: Enough

    def settings(self, **own: Any) -> PointwiseOptions:
        """With what a command has of its own."""
        return PointwiseOptions(**self.flat(), **own)


@dataclass(frozen=True, kw_only=True)
class OfComparisons(_Built):
    """What is built of comparisons."""

    k: K = 1
    split: SplitByOption = "reviewer_item"
    min_comparisons: MinComparisons = 2

    def settings(self, **own: Any) -> PairwiseOptions:
        """With what a command has of its own."""
        return PairwiseOptions(**self.flat(), **own)
