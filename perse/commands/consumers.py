"""What uses the judge for a purpose of its own, as KGDS does: its commands under its name. A new consumer is its room and one line here."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from perse.commands.kgds.ask import app as kgds_app
from perse.registry import Registry


@dataclass(frozen=True)
class Consumer:
    """`perse NAME ...`; its questions are in the registry of questions, as all are."""

    name: str
    app: typer.Typer


CONSUMERS: Registry[Consumer] = Registry("perse.consumers", (Consumer("kgds", kgds_app),), needs=("app",))
