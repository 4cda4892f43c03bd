"""Groups of options of `perse score` and its commands: what is asked of whom, and how a run in shards is worked on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from perse.commands import options
from perse.commands.options.judging import Answering, Loading, ShownProfiles
from perse.errors import BadInput
from perse.judging.loading import judge_help

Driver = Literal["local", "ray", "http"]
ShardRows = Annotated[int, typer.Option(min=1, max=100_000, help="In shards: most examples of one.")]

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run in shards.", show_default=False)]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, max=10_000, help="Worker processes, each with a judge of its own.", show_default="one for each GPU, or one"
    ),
]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of whom, about which examples. The first two are needed; of a command with commands below it none can be required."""

    examples: Annotated[
        str | None,
        typer.Option(
            help="Needed. A data set folder, or a file of exported JSON lines; in shards also CSV, Parquet, a folder, a glob or a URL of "
            "an object store.",
            show_default=False,
        ),
    ] = None
    judge: Annotated[str | None, typer.Option(help=f"Needed. {judge_help()}", show_default=False)] = None
    split: options.SplitOption = "valid"
    fold: options.Fold = None
    question: options.QuestionName = None
    limit: options.Sample = None
    shown: ShownProfiles
    answering: Answering
    loading: Loading
    trust_remote_code: options.TrustRemoteCode = False

    def given(self) -> tuple[str, str]:
        """The examples and the judge.

        Raises:
            BadInput: one of them is missing.
        """
        missing = [name for name, value in (("--examples", self.examples), ("--judge", self.judge)) if not value]
        if missing:
            options = " and ".join(f"'{name}'" for name in missing)
            raise BadInput(f"missing option {options} (see perse score --help)")
        return str(self.examples), str(self.judge)
