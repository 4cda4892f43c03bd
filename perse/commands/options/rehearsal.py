"""What several `perse rehearsal` commands take."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perse.commands import options
from perse.errors import BadInput
from perse.rehearsal.methods import METHODS
from perse.rehearsal.settings import GAIN, WIDE, Best, Labels, Practice, Rewrites, Settings, check_gain

if TYPE_CHECKING:
    from perse.rehearsal.agents import Role

Data = Annotated[Path, typer.Argument(metavar="DATA", help="A folder that `perse data persum` wrote.", show_default=False)]
Samples = Annotated[
    int | None, typer.Option("--limit", min=1, help="Take the folder's first so many samples.", show_default=False)
]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `perse rehearsal run` wrote.", show_default=False)]

SummaryScale = Annotated[
    Labels,
    typer.Option(
        help="On which a summary is scored: the paper's, in steps of 20, or 1 to 5, for a judge that gives those no scores."
    ),
]

PERSONAL_JUDGE = "personal:"
"""What stands before the personal judge's name."""

MethodName = StrEnum("MethodName", {name: name for name in METHODS})  # type: ignore[misc]
Methods = Annotated[
    list[MethodName] | None,
    typer.Option(
        "--method",
        help="May be repeated; see docs/rehearsal.md. The method personal needs --supervisor personal:JUDGE.",
        show_default="all that there are models for",
    ),
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
    supervisor: Annotated[
        list[str] | None,
        typer.Option(
            help="Supervises the user, as in the paper. personal:JUDGE is the reader's own judge, which says after each rewriting of the method "
            "personal whether it stands. May be given once each.",
            show_default="the writer; no personal judge",
        ),
    ] = None
    gain: Annotated[
        float,
        typer.Option(
            help="A rewriting stands if the personal judge's probability of it is above one half by more than this.",
        ),
    ] = GAIN
    filter: Annotated[str | None, typer.Option(help="Retrieves reviews.", show_default="the writer")] = None
    judge: Annotated[str | None, typer.Option(help="Scores versions of a summary.", show_default="the writer")] = None

    @property
    def roles(self) -> dict[Role, str]:
        return {
            "writer": self.writer,
            "user": self.user or self.writer,
            "supervisor": self._one_of(personal=False) or self.writer,
            "filter": self.filter or self.writer,
        }

    @property
    def personal(self) -> str | None:
        """The personal judge's name.

        Raises:
            BadInput: it has none, two are given, or the gain is none.
        """
        check_gain(self.gain)
        found = self._one_of(personal=True)
        if found is not None and not found.removeprefix(PERSONAL_JUDGE).strip():
            raise BadInput(f"--supervisor {found} names no judge; write {PERSONAL_JUDGE}JUDGE")
        return None if found is None else found.removeprefix(PERSONAL_JUDGE)

    def _one_of(self, *, personal: bool) -> str | None:
        found = [one for one in self.supervisor or () if one.startswith(PERSONAL_JUDGE) == personal]
        if len(found) > 1:
            raise BadInput(
                f"--supervisor names {' and '.join(found)}; give one for the paper's role, and one {PERSONAL_JUDGE}JUDGE"
            )
        return found[0] if found else None


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
    scale: SummaryScale = WIDE
    temperature: options.Temperature = 1.0
    max_new_tokens: options.MaxNewTokens = 1024
    tries: options.Tries = 3
    seed: options.Seed = 0
    skip_failed: Annotated[bool, typer.Option("--skip-failed", help="Go on without what the engine failed at.")] = False

    def settings(self) -> Settings:
        return Settings(**{each.name: getattr(self, each.name) for each in fields(self)})
