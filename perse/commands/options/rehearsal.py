"""What several `perse rehearsal` commands take."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perse.commands import options
from perse.rehearsal.methods import METHODS
from perse.rehearsal.settings import Best, Practice, Rewrites, Settings

if TYPE_CHECKING:
    from perse.rehearsal.agents import Role

Data = Annotated[Path, typer.Argument(metavar="DATA", help="A folder that `perse data persum` wrote.", show_default=False)]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `perse rehearsal run` wrote.", show_default=False)]
Samples = Annotated[int | None, typer.Option("--limit", min=1, help="The first so many samples.", show_default=False)]

MethodName = StrEnum("MethodName", {name: name for name in METHODS})  # type: ignore[misc]
Methods = Annotated[
    list[MethodName] | None,
    typer.Option("--method", help="May be repeated; see docs/rehearsal.md.", show_default="all"),
]


@dataclass(frozen=True, kw_only=True)
class Cast:
    """Who plays which role."""

    writer: Annotated[
        str,
        typer.Option(
            help="The model that writes summaries, named as a judge is; it plays every role that no other is named for."
        ),
    ]
    user: Annotated[str | None, typer.Option(help="Plays the user.", show_default="the writer")] = None
    supervisor: Annotated[str | None, typer.Option(help="Supervises the user.", show_default="the writer")] = None
    filter: Annotated[str | None, typer.Option(help="Retrieves reviews.", show_default="the writer")] = None
    judge: Annotated[str | None, typer.Option(help="Scores versions of a summary.", show_default="the writer")] = None

    @property
    def roles(self) -> dict[Role, str]:
        return {
            "writer": self.writer,
            "user": self.user or self.writer,
            "supervisor": self.supervisor or self.writer,
            "filter": self.filter or self.writer,
        }


@dataclass(frozen=True, kw_only=True)
class Constants:
    """`Settings` as options."""

    practice_rounds: Annotated[int, typer.Option(min=0, help="Rounds of practice.")] = 3
    practice: Annotated[Practice, typer.Option(help="Whether a round is shown the responses that passed before it.")] = "apart"
    max_iterations: Annotated[
        int, typer.Option(min=1, help="Of a role-play; the paper's rules end it after 16 at the latest.")
    ] = 16
    product_characters: Annotated[int, typer.Option(min=1, help="Product reviews are cut to fewer characters than this.")] = (
        10_000
    )
    rewrites: Annotated[int, typer.Option(min=1, help="Rewritings, of which the best is kept.")] = 5
    rewriting: Annotated[Rewrites, typer.Option(help="From the version before (chain), or each from the general summary.")] = (
        "chain"
    )
    best: Annotated[
        Best,
        typer.Option(
            help="visible: by product's reviews and history; all: also by the user's own review; last: without a judge."
        ),
    ] = "visible"
    temperature: options.Temperature = 1.0
    max_new_tokens: Annotated[int, typer.Option(min=16, help="Longest answer, in tokens.")] = 1024
    tries: options.Tries = 3
    seed: options.Seed = 0
    skip_failed: Annotated[bool, typer.Option("--skip-failed", help="Go on without what the engine failed at.")] = False

    def settings(self) -> Settings:
        return Settings(**{each.name: getattr(self, each.name) for each in fields(self)})
