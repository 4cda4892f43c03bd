"""`perse keys ...`: the keys of a judge server, of which it keeps digests only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.terminal import say
from perse.errors import BadInput

app = typer.Typer(no_args_is_help=True, help="Add, list and remove keys of a judge server (its setting keys=FILE).")

File = Annotated[
    Path, typer.Argument(callback=options.here, help="The file that the server's setting keys= names.", show_default=False)
]
Name = Annotated[str, typer.Argument(help="Whose key it is; keys of one name see the same readers.", show_default=False)]


@app.command()
def add(
    file: File,
    name: Name,
    scope: Annotated[
        list[str], typer.Option(help="What it may do: judge, readers, admin. May be repeated.", show_default="judge")
    ] = ["judge"],  # noqa: B006  # typer's way; not changed
) -> None:
    """Make a key, and print it: it cannot be shown again. A running server takes it within seconds.

    Example:  perse keys add keys.txt alice --scope judge --scope readers
    """
    from perse.files.privacy import within_reach
    from perse.serving.front.keys import add_key
    from perse.settings.serving import KEYS_HOLD

    linked = _has_other_name(file)
    key = add_key(file, name, scope)
    _tell_of_link(file, linked)
    for warning in within_reach([(file, KEYS_HOLD)]):
        say(warning)
    say(f"a key of '{name}' for {', '.join(scope)}; {file} holds its digest. This is the only time that you see it:")
    typer.echo(key)


@app.command("list")
def list_keys(file: File, as_json: options.AsJson = False) -> None:
    """Whose keys there are, since when, and how their digests begin.

    Example:  perse keys list keys.txt
    """
    from perse.files.privacy import within_reach
    from perse.serving.front.keys import read_keys
    from perse.settings.serving import KEYS_HOLD

    stored = read_keys(file)
    for warning in within_reach([(file, KEYS_HOLD)]):
        say(warning)
    told = [
        {"name": one.caller.name, "scopes": sorted(one.caller.scopes), "since": one.since, "digest": one.digest[:8]}
        for one in stored
    ]
    if as_json:
        typer.echo(json.dumps(told, indent=2))
        return
    for one in told:
        typer.echo(f"{one['name']}\t{','.join(one['scopes'])}\t{one['since']}\t{one['digest']}")


@app.command()
def remove(
    file: File,
    name: Name,
    digest: Annotated[
        str | None, typer.Option(help="Only the key whose digest begins so (see `perse keys list`).", show_default=False)
    ] = None,
) -> None:
    """Remove the keys of a name. A running server refuses them within seconds.

    Example:  perse keys remove keys.txt alice --digest 3fa1
    """
    from perse.serving.front.keys import remove_keys

    if digest == "":
        raise BadInput("--digest is empty, and would remove all keys of that name; give its beginning, or leave the option out")
    linked = _has_other_name(file)
    count = remove_keys(file, name, digest=digest or "")
    _tell_of_link(file, linked)
    say(f"{count} {'key' if count == 1 else 'keys'} of '{name}' removed from {file}")


def _has_other_name(file: Path) -> bool:
    return file.is_file() and file.stat().st_nlink > 1


def _tell_of_link(file: Path, linked: bool) -> None:
    if linked:
        say(
            f"the other name of {file} (a hard link) keeps the keys that were in it; a server that is given that name does not see the change"
        )
