"""What can be wrong with a rewritten text, beside what can be wrong with any answer (`perse.writing.loop.Kind`)."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """Why a mapping or a summary cannot stand as it is."""

    SURVIVORS = "survivors"
    """A mapping that is right in itself, but original names are still in the text."""
    MISSING_KEY = "missing_key"
    """A name that the text does not have."""
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
