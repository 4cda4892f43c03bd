"""Folders that the scripts make and make anew: a list in each says what was written there, so that nothing else is ever removed.

mkdocs empties the folder of its site before it builds, so it calls this first (`hooks` in mkdocs.yml): a file that is not in the list, or is not
as it was written, is somebody's, and ends the build with its name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.files.disk import write_whole
from perse.files.runlog import file_digest
from perse.formats.json_text import read_object

LIST = ".made.json"
"""name -> sha256 of every file that was made. mkdocs leaves alone what begins with a point."""


def refuse_strangers(folder: Path) -> None:
    """That all in `folder`, if there is anything, is as it was made.

    Raises:
        BadInput: it is a link or a file, or holds what somebody put or changed there.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput(f"{folder} is {'a link' if folder.is_symlink() else 'no folder'}, and is not made anew; move it away")
    made = read_object(folder / LIST, remedy="move the folder away") if (folder / LIST).is_file() else {}
    for file in _files(folder):
        name = file.relative_to(folder).as_posix()
        if name != LIST and (file.is_symlink() or not file.is_file() or made.get(name) != file_digest(file)):
            what = "was changed since" if name in made else "was not"
            raise BadInput(f"{folder} is made anew, and {name} in it {what} made by this script; move it elsewhere")


def list_made(folder: Path) -> None:
    """Write the list of all that is there."""
    made = {file.relative_to(folder).as_posix(): file_digest(file) for file in _files(folder) if file.name != LIST}
    write_whole(folder / LIST, json.dumps(made, indent=1) + "\n")


def _files(folder: Path) -> list[Path]:
    """Whatever is no folder, links to folders among them."""
    return sorted(one for one in folder.rglob("*") if one.is_symlink() or not one.is_dir())


def on_pre_build(config: Any) -> None:
    """Called by mkdocs before it empties the folder of the site."""
    from mkdocs.exceptions import Abort

    try:
        refuse_strangers(Path(config.site_dir))
    except BadInput as error:
        raise Abort(str(error)) from None


def on_post_build(config: Any) -> None:
    """Called by mkdocs when all pages are written."""
    list_made(Path(config.site_dir))
