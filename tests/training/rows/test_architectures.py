"""The table of architectures in docs/training.md is what its script finds: equal to separate rows, or refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from places import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.numeric]


def test_every_architecture_of_the_page_is_equal_to_separate_rows_or_refused_with_a_sentence() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "architectures.py", "--json"],
        capture_output=True, text=True, check=True, timeout=900,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert not [each for each in found if each["outcome"] in ("differs", "fails")]
    settled = {each["kind"] for each in found if each["outcome"] in ("equal", "refused")}
    page = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (?:equal|refused)[^|]* \((\d+)\) \| ([^|]+) \|", page, re.MULTILINE)
    shown = {kind for _, kinds in lines for kind in kinds.split(", ")}
    assert shown == settled and len(settled) >= 40
    assert sum(int(number) for number, _ in lines) == len(settled)
