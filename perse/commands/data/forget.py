"""`perse data forget`: remove a person, and say where they may still be."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.building import Salt
from perse.commands.terminal import say
from perse.data.forgetting.leaving import Departure, leave
from perse.errors import BadInput


def forget(
    person: Annotated[str, typer.Argument(metavar="ID", help="A pseudonym, or the name as the raw files have it.")],
    places: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Data set folders, PerSum folders, scored runs, or files of examples."),
    ],
    salt: Salt = None,
    look_in: Annotated[
        list[Path] | None,
        typer.Option(help="A folder to look for the person in; nothing there is changed. May be repeated.", show_default=False),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Remove a person: reviews, examples, and what a judge said of them. The raw files and trained models stay as they are.

    If one place is refused, none is changed. Each is changed wholly or not at all; after a kill the same command does the rest.

    Example: [bold]perse data forget "Ann Example" data/critics runs/first-valid valid.jsonl[/bold]
    """
    gone = leave(person, places, salt=salt, look_in=look_in or ())
    _show(gone, looked_elsewhere=bool(look_in))
    if as_json:
        typer.echo(json.dumps(asdict(gone), indent=2, default=str))
    if gone.finished and not any(one.records or one.examples for one in gone.forgotten):
        say(f"'{person}' is in none of these places now")
    if not gone.found:
        raise BadInput(
            f"nobody was forgotten: '{person}' is in none of these places (looked for {', '.join(gone.ids)}); if they have not left "
            "before, check the spelling and --salt"
        )


def _show(gone: Departure, *, looked_elsewhere: bool) -> None:
    for one in gone.forgotten:
        if one.path in gone.finished:
            say(f"{one.path}: a removal that was interrupted here is finished")
            if not (one.records or one.examples):
                continue
        removed = f"{one.records:,} records and {one.examples:,} examples removed"
        say(f"{one.path}: {removed if one.records or one.examples else 'nothing there'}")
    for still in gone.left.places:
        say(f"still holds the person: {still}")
    for file in gone.linked:
        say(f"may still hold the person: the other name of {file} (a hard link)")
    for file in gone.left.unread:
        say(f"could not be looked into: {file}")
    looked = "looked into" if gone.left.all else "looked into the first"
    say(
        f"{looked} {gone.left.files:,} files in and beside these places{' and in --look-in' if looked_elsewhere else ''}; what lies "
        "elsewhere, such as other exports, runs and copies, is not known: name its folders with --look-in"
    )
