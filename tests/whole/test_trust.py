"""What is said to those who look at the project from outside: how to cite it, and what it promises of security."""

from __future__ import annotations

import yaml
from places import ROOT

from perse.version import __version__


def test_the_citation_is_of_this_version_and_has_what_the_format_needs() -> None:
    """Citation File Format 1.2.0: these fields are required of every file; `type` is software or dataset."""
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert found["cff-version"] == "1.2.0" and found["type"] == "software" and found["license"] == "Apache-2.0"
    assert found["title"] and found["message"] and all(author["name"] for author in found["authors"])
    assert found["version"] == __version__
