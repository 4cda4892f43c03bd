"""Folders that the scripts make and make anew: a list in each says what was written there, so that nothing else is ever removed.

A file that is not in the list, or is not as it was written, is somebody's, and ends the build with its name. All is written aside and put in place
whole, so that a kill leaves nothing that looks like somebody's. mkdocs, which empties the folder of its site before it builds, is led aside, too
(`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.files.disk import aside, write_whole
from perse.files.runlog import file_digest
from perse.formats.json_text import read_object

LIST = ".made.json"
"""name -> sha256 of every file that was made. mkdocs leaves alone what begins with a point."""


def stage(folder: Path) -> Path:
    """Where `folder` is to be written; nothing is there.

    Raises:
        BadInput: `folder` holds something else than what was made.
    """
    _refuse_strangers(folder)
    for left in (aside(folder), _old(folder)):  # by a kill
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
    return aside(folder)


def put(staged: Path, folder: Path) -> None:
    """What was written becomes `folder`, with a list of all that is there.

    Raises:
        BadInput: `folder` holds something else than what was made.
    """
    made = {file.relative_to(staged).as_posix(): file_digest(file) for file in _files(staged) if file.name != LIST}
    write_whole(staged / LIST, json.dumps(made, indent=1) + "\n")
    _refuse_strangers(folder)  # again: what somebody put there while this was written
    if folder.is_dir():
        folder.rename(_old(folder))
    staged.rename(folder)
    shutil.rmtree(_old(folder), ignore_errors=True)


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.perse-old")


def _refuse_strangers(folder: Path) -> None:
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
            raise BadInput(
                f"{folder} is made anew, and {name} in it {what} made by this script; move it, or the folder, elsewhere"
            )


def _files(folder: Path) -> list[Path]:
    """Whatever is no folder, links to folders among them."""
    return sorted(one for one in folder.rglob("*") if one.is_symlink() or not one.is_dir())


def on_config(config: Any) -> None:
    """Called by mkdocs when it has read mkdocs.yml."""
    from mkdocs.exceptions import Abort

    config.extra["site"] = config.site_dir
    try:
        config.site_dir = str(stage(Path(config.site_dir)))
    except BadInput as error:
        raise Abort(str(error)) from None


def on_post_build(config: Any) -> None:
    """Called by mkdocs when all pages are written."""
    from mkdocs.exceptions import Abort

    staged, config.site_dir = config.site_dir, config.extra.pop("site")
    try:
        put(Path(staged), Path(config.site_dir))
    except BadInput as error:
        raise Abort(str(error)) from None
