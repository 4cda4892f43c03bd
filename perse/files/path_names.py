"""Names that come from outside and become a part of a path: one part, in the folder it is meant for, on any file system.

A `PathName` is checked when it is made, so whoever takes one need not look again. What a person types is refused (`PathName`); what is
made of words that may be anything, such as an aspect's, is put into such a form (`path_name_of`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection
from pathlib import Path

from perse.errors import BadInput

LONGEST = 100
"""Characters. File systems take 255 bytes, of which what perse adds to a name, such as `.NAME.perse-new-0123abcd`, must have its part."""

CUT = 80
"""Of a name that is made of words; a digest comes behind it."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


class PathName(str):
    """A name of letters, digits, `.`, `_` and `-` that begins with none of `.` and `-`.

    Args:
        name: as it was given.
        what: is named, as in "--name"; for the message.
        reserved: names that stand for something else there; upper and lower case are one, as some file systems have it.
    Raises:
        BadInput: it is no such name.
    """

    __slots__ = ()

    def __new__(cls, name: str, *, what: str = "the name", reserved: Collection[str] = ()) -> PathName:
        shown = ascii(name if len(name) <= LONGEST else name[:LONGEST] + "...")
        if _NAME.fullmatch(name) is None or len(name) > LONGEST or name.endswith("."):
            raise BadInput(
                f"{what} is {shown}; give a name and no path: at most {LONGEST} letters (a-z), digits, '.', '_' and '-', of which neither "
                "'.' nor '-' comes first, and '.' not last"
            )
        if name.casefold() in {one.casefold() for one in reserved}:
            raise BadInput(f"{what} is {shown}, which stands for something else there; give another name")
        return super().__new__(cls, name)


def place_named(name: str | Path) -> Path:
    """The path that a name stands for, `~` and `~somebody` read as homes; a home that nobody has is a name like others, of nothing."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def without_detours(path: Path) -> Path:
    """`path` without what is not there and is left again at once: `mine/new/..` is nothing as long as `mine/new` is not made, and then is `mine`."""
    found = Path()
    for part in path.parts:
        found = found.parent if part == ".." and found.name not in ("", "..") and not os.path.lexists(found) else found / part
    return found


def run_around(folder: Path) -> Path | None:
    """The training run that left this merged model or adapter in its own folder; None of any other folder."""
    whole = Path(os.path.realpath(folder))  # links that lead in a circle stay as they are; Path.resolve raises at them
    return whole.parent if whole.name in ("merged", "adapter") else None


def path_name_of(words: str) -> PathName:
    """`words` as a name: lower case, with dashes for all but letters, digits and dots.

    Names of other alphabets, and long ones, end in a digest of the words, so that two of them do not become one.
    """
    plain = re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-.") or "unnamed"
    if len(plain) > CUT or re.search(r"[^\W_a-z0-9]", words.lower()):
        plain = f"{plain[:CUT].rstrip('-.')}-{hashlib.sha256(words.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return PathName(plain)
