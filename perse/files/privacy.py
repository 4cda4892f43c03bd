"""Files that hold what is not for everybody on this machine: those that others can get at are named, and left as they are.

A group may be let in on purpose, and a file belongs to whoever made it, so nothing is changed here.
"""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterable
from pathlib import Path


def within_reach(files: Iterable[tuple[Path, str]]) -> list[str]:
    """For each file that others may read or change: who they are, and the command that ends it. Files that are not there are nobody's.

    Args:
        files: each with what stands in it, such as "holds readers' reviews".
    """
    return [told for path, holds in files if (told := _told(path, holds))]


def _told(path: Path, holds: str) -> str | None:
    try:
        mode = path.stat().st_mode
    except OSError:  # whoever opens it says why
        return None
    read, write = mode & (stat.S_IRGRP | stat.S_IROTH), mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISREG(mode) or not (read or write):
        return None
    who = "everybody on this machine" if mode & (stat.S_IROTH | stat.S_IWOTH) else "its group"
    may = "read and changed" if read and write else "read" if read else "changed"
    return (
        f"warning: {path} can be {may} by {who} (mode {stat.S_IMODE(mode):04o}), as far as its folder lets them, and {holds}; if that is "
        f"not meant, run: chmod go= {shlex.quote(str(path))}"
    )
