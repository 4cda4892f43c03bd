"""The documentation as a site: built without a warning, read from a disk, and asking nobody."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from places import ROOT


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("docs_site")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(site: ModuleType, tmp_path: Path) -> None:
    """Strict: a page left out of the navigation, a link to nothing and an anchor that is not there are warnings."""
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    site.write_pages(tmp_path / "work" / "docs")
    around = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    built = subprocess.run([sys.executable, "-m", "mkdocs", "build"], cwd=tmp_path, env=around, capture_output=True, text=True)
    assert built.returncode == 0 and "WARNING" not in built.stderr, built.stderr
    pages = [page.read_text() for page in (tmp_path / "work" / "site").rglob("*.html")]
    assert len(pages) > 60
    loaded = re.compile(r'<(?:script|img|link rel="(?:stylesheet|preload|preconnect)")[^>]*(?:src|href)="(?:https?:)?//')
    assert not [found[0] for page in pages if (found := loaded.search(page))]


@pytest.mark.slow
def test_every_command_stands_in_the_reference_with_the_help_that_it_prints(site: ModuleType) -> None:
    page = site.commands_page()
    for command in ("perse train", "perse score", "perse data pointwise", "perse kgds report", "perse study calibration"):
        assert re.search(rf"^#+ {command}$", page, re.MULTILINE) and f"Usage: {command} " in page
    assert "--examples" in page and "\x1b" not in page


def test_every_name_that_programs_import_is_there_and_says_what_it_is(site: ModuleType) -> None:
    for name in (name for names in site.PYTHON.values() for name in names):
        module, _, last = name.rpartition(".")
        found = getattr(importlib.import_module(module), last)
        assert found.__doc__, name


def test_a_link_to_a_file_of_the_repository_leads_to_its_copy(site: ModuleType) -> None:
    text = "[a](../deploy/compose.yaml) [b](../deploy/nothing.yaml) [c](../containers/README.md#x) [d](data.md)"
    assert list(site.outside("operating.md", text)) == ["deploy/compose.yaml", "containers/README.md"]
    assert site.with_copies("operating.md", text) == (
        "[a](files/deploy/compose.yaml) [b](../deploy/nothing.yaml) [c](files/containers/README.md#x) [d](data.md)"
    )
    assert site.with_copies("rooms/data.md", "[a](../../deploy/compose.yaml)") == "[a](../files/deploy/compose.yaml)"


def test_a_folder_of_something_else_is_not_made_anew(site: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")
    with pytest.raises(SystemExit, match="holds something else than the pages of the site"):
        site.write_pages(tmp_path)
    assert (tmp_path / "mine.md").read_text() == "mine"
