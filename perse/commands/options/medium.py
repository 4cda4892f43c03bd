"""In which form a command that measures prints its Result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from perse.commands.options import AsJson
from perse.errors import BadInput


@dataclass(frozen=True, kw_only=True)
class Medium:
    """One of the forms that a Result has on stdout; none of them: for a person at a terminal.

    Raises:
        BadInput: several are asked for.
    """

    as_json: AsJson = False
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the result as Markdown on stdout.")] = False
    csv: Annotated[
        bool, typer.Option("--csv", help="Print the result as CSV on stdout: a line for each cell of each table.")
    ] = False

    def __post_init__(self) -> None:
        asked = [f"--{name.removeprefix('as_')}" for name, given in vars(self).items() if given]
        if len(asked) > 1:
            raise BadInput(f"{' and '.join(asked)} cannot be given together: the result is printed once, in one form")
