"""The README on a package index, where none of the repository's files are beside it."""

from __future__ import annotations

import importlib.util
import re
import sys
import types
from typing import Any

import pytest
from places import ROOT


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The hook as hatchling loads it; hatchling itself is only there while something is built."""
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin", "hatchling.metadata.plugin.interface"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setattr(sys.modules["hatchling.metadata.plugin.interface"], "MetadataHookInterface", object, raising=False)
    spec = importlib.util.spec_from_file_location("index_readme", ROOT / "scripts" / "index_readme.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = re.compile(r"\]\(([^)\s]+)\)")


def test_no_link_of_the_readme_leads_nowhere_on_a_package_index(hook: Any) -> None:
    assert "docs/data.md" in LINKS.findall(README), "or nothing is tested"
    assert [link for link in LINKS.findall(hook.on_an_index(README)) if "://" not in link] == []
    assert "docs/data.md" in hook.on_an_index(README)


def test_links_lead_to_the_address_of_the_repositorys_files(hook: Any) -> None:
    pages = "https://host.example/perse/blob/v1"
    links = LINKS.findall(hook.on_an_index(README, pages + "/"))
    assert set(links) == {link if "://" in link else f"{pages}/{link}" for link in LINKS.findall(README)}


def test_other_text_and_links_stay_as_they_are(hook: Any) -> None:
    text = "See [this](https://host.example/x), [below](#below) and ![a picture](docs/a.svg) [docs/a.md](docs/a.md)."
    assert hook.on_an_index(text) == "See [this](https://host.example/x), [below](#below) and a picture docs/a.md."
