"""`perse data forget`: remove a person, and say where they may still be."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perse.commands import options
from perse.commands.options.building import Salt
from perse.commands.terminal import say
from perse.data.forgetting.leaving import Departure, leave, looked_around, nobody
from perse.errors import BadInput
from perse.serving.readers.mark import is_store
from perse.settings.serving import READERS

if TYPE_CHECKING:
    from perse.serving.readers.store import Readers


def forget(
    person: Annotated[str, typer.Argument(metavar="ID", help="A pseudonym, or the name as the raw files have it.")],
    places: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH...",
            help="Data set folders, PerSum folders, scored runs, votes of readers, files of examples, or a server's readers=FILE; with --readers, none.",
            show_default=False,
        ),
    ] = None,
    salt: Salt = None,
    look_in: Annotated[
        list[Path] | None,
        typer.Option(help="A folder to look for the person in; nothing there is changed. May be repeated.", show_default=False),
    ] = None,
    readers: Annotated[
        bool, typer.Option("--readers", help="Also from the database of a judge server whose address is in PERSE_READERS.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Remove a person: reviews, examples, what a judge said of them, and what a judge server keeps of them (its readers=FILE is a
    place like others). The raw files and trained models stay as they are.

    If one place is refused, none is changed. Each is changed wholly or not at all; after a kill the same command does the rest.

    Example: [bold]perse data forget "Ann Example" data/critics runs/first-valid valid.jsonl[/bold]
    """
    if not places and not readers:
        raise BadInput("there is no place to forget a person in; give a PATH, or --readers for the database in PERSE_READERS")
    for folder in look_in or ():
        if not folder.is_dir():
            raise BadInput(f"--look-in {folder} is no folder; name one that is there, or leave the option out")
    kept = [place for place in places or () if is_store(place)]
    others = [place for place in places or () if place not in kept]
    stores = _opened([str(place) for place in kept], database=readers)
    gone = leave(person, others, salt=salt) if others else nobody(person, salt=salt)
    _show_removed(gone)
    from_stores = {store.name: sum(store.delete_everywhere(name) for name in gone.ids) for store in stores}
    for name, count in from_stores.items():
        say(f"{name}: {count:,} kept readers removed; a server that runs keeps what it computed of them until it is restarted")
    gone = looked_around(gone, look_in or ())
    _show_left(gone, looked_elsewhere=bool(look_in))
    if as_json:
        typer.echo(json.dumps({**asdict(gone), "readers": from_stores}, indent=2, default=str))
    if any(from_stores.values()):
        return
    if gone.finished and not any(one.records or one.examples for one in gone.forgotten):
        say(f"'{person}' is in none of these places now")
    if not gone.found:
        raise BadInput(
            f"nobody was forgotten: '{person}' is in none of these places (looked for {', '.join(gone.ids)}); if they have not left "
            "before, check the spelling and --salt"
        )


def _opened(files: Sequence[str], *, database: bool) -> list[Readers]:
    """The stores of readers, before anything is removed anywhere."""
    from perse.serving.readers.store import Readers

    address = os.environ.get(READERS)
    if database and not address:
        raise BadInput(f"--readers: there is no address in {READERS}; set it as for the server, or leave the option out")
    if database and address and "://" not in address and "@" not in address and not Path(address).exists():
        raise BadInput(f"--readers: {READERS} names a file that is not there, so nobody was ever kept in it; correct it")
    return [Readers.open(where) for where in (*files, *([address] if database and address else []))]


def _show_removed(gone: Departure) -> None:
    for one in gone.forgotten:
        if one.path in gone.finished:
            say(f"{one.path}: a removal that was interrupted here is finished")
            if not (one.records or one.examples):
                continue
        removed = f"{one.records:,} records and {one.examples:,} examples removed"
        say(f"{one.path}: {removed if one.records or one.examples else 'nothing there'}")


def _show_left(gone: Departure, *, looked_elsewhere: bool) -> None:
    for still in gone.left.places:
        say(f"still holds the person: {still}")
    for file in gone.linked:
        say(f"may still hold the person: the other name of {file} (a hard link)")
    for file in gone.left.unread:
        say(f"could not be looked into: {file}")
    where = ["in and beside these places"] * bool(gone.forgotten) + ["in --look-in"] * looked_elsewhere
    if not where:
        return
    looked = "looked into" if gone.left.all else "looked into the first"
    say(
        f"{looked} {gone.left.files:,} files {' and '.join(where)}; what lies elsewhere, such as other exports, runs and copies, is not "
        "known: name its folders with --look-in"
    )
