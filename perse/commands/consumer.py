"""A consumer of the judge on the command line. Apart from `app`, which lists them, so that a package can import it while it is listed."""

from __future__ import annotations

from dataclasses import dataclass

import typer


@dataclass(frozen=True)
class Consumer:
    """`perse NAME ...`; its questions are in the registry of questions, as all are."""

    name: str
    app: typer.Typer

    def __post_init__(self) -> None:
        if not isinstance(self.app, typer.Typer):
            raise TypeError(f"the app of the consumer '{self.name}' is of {type(self.app)}, expected a typer.Typer")
