"""What tells a file of kept readers from other SQLite files, without opening it as a database."""

from __future__ import annotations

from pathlib import Path

MARK = 0x70657273
"""SQLite's `application_id` of our files."""

_MAGIC, _AT = b"SQLite format 3\0", 68


def is_store(path: Path) -> bool:
    """Whether a file keeps readers."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_AT + 4)
    return head.startswith(_MAGIC) and head[_AT:] == MARK.to_bytes(4, "big")
