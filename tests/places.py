"""Where the repository, its sample corpus and the data beside it stand: said once, so that a test can move."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "perse" / "samples"
SHARED = ROOT.parent / "shared" / "data"
"""Published corpora, which are not part of the repository; tests that read them are skipped without."""


def importing(*folders: Path) -> str:
    """`PYTHONPATH` for a process that imports the tests' helpers, and test modules of `folders`."""
    return os.pathsep.join(map(str, (*folders, ROOT / "tests", ROOT)))
