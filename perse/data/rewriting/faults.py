"""Faults of a rewritten text, besides those of any answer (`perse.writing.loop.Kind`)."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """Why a mapping or a summary is refused."""

    SURVIVORS = "survivors"
    """A correct mapping that leaves original names in the text."""
    MISSING_KEY = "missing_key"
    """A name that is not in the text."""
    CHAINED = "chained"
    """A new name that is itself to be replaced."""
    MERGED = "merged"
    """Two names with one new name."""
    BAD_MAPPING = "bad_mapping"
    """Any other fault of a mapping, such as a family torn apart."""
    COPIED = "copied"
    NAMED = "named"
    """An original name, or the title, in a summary."""
    ECHOED = "echoed"
    """Words of the instruction, or a remark about the answer, in a summary."""
