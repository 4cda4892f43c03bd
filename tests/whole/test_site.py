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
from kills import killed_at
from places import ROOT

from perse.errors import BadInput


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("docs_site")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(site: ModuleType, tmp_path: Path) -> None:
    """Strict: a page left out of the navigation, a link to nothing and an anchor that is not there are warnings."""
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "made_folder.py", tmp_path / "scripts")
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
    with pytest.raises(
        BadInput, match=r"is made anew, and mine.md in it was not made by this script; move it, or the folder, elsewhere"
    ):
        site.write_pages(tmp_path)
    assert (tmp_path / "mine.md").read_text() == "mine"


@pytest.fixture
def small(site: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one page that links to a file outside docs/, in a folder with a space in its name."""
    root = tmp_path / "a checkout"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "index.md").write_text("# Ünder [it](../deploy.yaml)\n", encoding="utf-8")
    (root / "docs" / ".#index.md").symlink_to("somebody@a-machine.4711")  # an editor's, of a page that is being changed
    (root / "deploy.yaml").write_text("a: 1\n")
    for file in root.rglob("*"):
        file.chmod(0o500 if file.is_dir() else 0o400, follow_symlinks=False) if not file.is_symlink() else None
    monkeypatch.setattr(site, "ROOT", root)
    monkeypatch.setattr(site, "commands_page", lambda: "commands")
    monkeypatch.setattr(site, "python_page", lambda: "python")
    return tmp_path / "work" / "docs"


def everything(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_pages_are_made_anew_from_a_checkout_that_may_only_be_read(site: ModuleType, small: Path) -> None:
    site.write_pages(small)
    first = everything(small)
    assert first.keys() == {".made.json", "index.md", "files/deploy.yaml", "reference/commands.md", "reference/python.md"}
    assert all(file.stat().st_mode & 0o200 for file in [small, *small.rglob("*")])
    site.write_pages(small)
    assert everything(small) == first and [one.name for one in small.parent.iterdir()] == ["docs"]


def test_what_somebody_put_or_changed_among_the_pages_is_not_removed_when_they_are_made_anew(
    site: ModuleType, small: Path
) -> None:
    site.write_pages(small)
    (small / "files" / "notes").mkdir()
    mine = small / "files" / "notes" / "thesis.txt"
    mine.write_text("mine")
    with pytest.raises(
        BadInput, match=r"files/notes/thesis.txt in it was not made by this script; move it, or the folder, elsewhere"
    ):
        site.write_pages(small)
    assert mine.read_text() == "mine"
    shutil.rmtree(small / "files" / "notes")
    (small / "index.md").write_text("# Mine\n")
    with pytest.raises(BadInput, match=r"index.md in it was changed since made by this script"):
        site.write_pages(small)
    assert (small / "index.md").read_text() == "# Mine\n"


def test_what_somebody_puts_there_while_pages_are_written_is_not_removed(
    site: ModuleType, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.write_pages(small)
    write = site._write
    monkeypatch.setattr(site, "_write", lambda out: (write(out), (small / "mine.txt").write_text("mine")))
    with pytest.raises(BadInput, match="mine.txt in it was not made by this script"):
        site.write_pages(small)
    assert (small / "mine.txt").read_text() == "mine"


def test_pages_are_not_written_through_a_link(site: ModuleType, small: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    small.parent.mkdir()
    small.symlink_to(tmp_path / "mine")
    with pytest.raises(BadInput, match="is a link, and is not made anew; move it away"):
        site.write_pages(small)
    assert small.is_symlink() and not [*(tmp_path / "mine").iterdir()]


@pytest.mark.slow
def test_pages_that_a_kill_interrupted_are_made_by_the_same_command(site: ModuleType, small: Path) -> None:
    site.write_pages(small)
    whole, event = everything(small), 0
    while killed_at(event, lambda: site.write_pages(small), small.parent):
        assert not small.exists() or everything(small) == whole
        site.write_pages(small)
        assert everything(small) == whole and [one.name for one in small.parent.iterdir()] == ["docs"]
        event += 3
    assert event > 10


@pytest.mark.slow
def test_a_site_is_made_anew_after_a_kill_and_not_where_somebody_put_a_file(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Page\n")

    def build(after: str = "") -> subprocess.CompletedProcess[str]:
        (tmp_path / "docs" / "hook.py").write_text(f"import os\ndef on_post_page(output, **_):\n    {after or 'pass'}\n")
        (tmp_path / "mkdocs.yml").write_text(
            f"site_name: s\nhooks: [{ROOT / 'scripts' / 'made_folder.py'}, docs/hook.py]\nexclude_docs: hook.py\n"
        )
        around = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": f"{ROOT}:{ROOT / 'scripts'}"}
        command = [sys.executable, "-m", "mkdocs", "build"]
        return subprocess.run(command, cwd=tmp_path, env=around, capture_output=True, text=True)

    assert build("os._exit(9)").returncode == 9 and not (tmp_path / "site").exists()
    assert (done := build()).returncode == 0, done.stderr
    pages = everything(tmp_path / "site")
    assert build("os._exit(9)").returncode == 9 and everything(tmp_path / "site") == pages
    assert build().returncode == 0 and everything(tmp_path / "site").keys() == pages.keys()
    assert {one.name for one in tmp_path.iterdir()} == {"docs", "mkdocs.yml", "site"}
    (tmp_path / "site" / "thesis.txt").write_text("mine")
    done = build()
    assert done.returncode != 0 and "thesis.txt in it was not made by this script" in done.stdout + done.stderr
    assert (tmp_path / "site" / "thesis.txt").read_text() == "mine"
    assert "hooks: [scripts/made_folder.py]" in (ROOT / "mkdocs.yml").read_text()
