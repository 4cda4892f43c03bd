"""Memory that a step no longer needs is given back to the system: training on a CPU, where rows of many lengths would make the heap grow without it.

glibc keeps freed blocks of up to 32 MB in a heap that ends at its highest block in use. What a row of another length leaves there rarely fits the next one,
so that a process that needs 4 GB between two steps comes to hold 17 (docs/results.md); `malloc_trim` gives back whole pages that are free, also in its midst.
"""

from __future__ import annotations

import ctypes


def give_back() -> bool:
    """Give free memory of this process back; whether the C library can (glibc's alone does)."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):  # macOS, musl, Windows
        return False
    trim(0)
    return True
