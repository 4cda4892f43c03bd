"""The pictures are those that the scripts draw now; every room and picture has its page, and what the pages name is there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from places import ROOT

PAGES = ROOT / "docs" / "rooms"
ROOMS = sorted(folder.parent.name for folder in (ROOT / "perse").glob("*/__init__.py"))
DOTTED = re.compile(r"`(perse(?:\.\w+)+)")
PATH = re.compile(r"`((?:perse|tests|docs|configs|scripts)/[^`\s]*)`")
HEADING = re.compile(r"^##+ .*$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


@pytest.mark.parametrize("script", ["draw_floors", "draw_judgement"])
@pytest.mark.usefixtures("scripts")
def test_a_committed_picture_is_the_one_its_script_draws(script: str) -> None:
    module = importlib.import_module(script)
    assert module.PICTURE.read_text(encoding="utf-8") == module.drawing(), f"run: python scripts/{script}.py"


@pytest.mark.usefixtures("scripts")
def test_the_picture_of_one_judgement_shows_a_whole_distribution() -> None:
    said = importlib.import_module("draw_judgement").judgement()
    assert list(said.probabilities) == [str(label) for label in range(1, 11)] and said.review
    assert abs(sum(said.probabilities.values()) - 1) < 0.05


def test_every_room_has_a_page_and_every_page_a_room() -> None:
    assert sorted(page.stem for page in PAGES.glob("*.md")) == ROOMS


def test_the_architecture_links_every_room() -> None:
    linked = LINK.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert sorted(Path(link).stem for link in linked if link.startswith("rooms/")) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_a_page_of_a_room_names_what_exists(room: str) -> None:
    page = (PAGES / f"{room}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# `{room}`: ")
    gone = [name for name in DOTTED.findall(page) if not exists(name)]
    gone += [path for path in PATH.findall(page) if not (ROOT / path).exists()]
    gone += [link for link in LINK.findall(page) if not (PAGES / link).exists()]
    gone += [f"ROOM={part}" for part in re.findall(r"make test ROOM=(\S+)", page) if not (ROOT / "tests" / part).is_dir()]
    assert not gone


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.usefixtures("scripts")
def test_a_page_of_a_room_says_what_the_contract_lets_it_use(room: str) -> None:
    floors = importlib.import_module("draw_floors").floors()
    below = floors[next(at for at, floor in enumerate(floors) if room in [each.name for each in floor]) + 1]
    line = re.search(r"^\*\*May use\*\* the floors from (.*) down\.$", (PAGES / f"{room}.md").read_text(encoding="utf-8"), re.M)
    assert line and re.findall(r"`(\w+)`", line[1]) == [each.name for each in below if not each.to_come]


@pytest.mark.parametrize("name", ["perse.judging.judge.Jude", "perse.judging.juge", "perse.nowhere", "perse.records.Revue"])
def test_a_name_that_moved_is_noticed(name: str) -> None:
    assert not exists(name)


@pytest.mark.parametrize("page", ["README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))])
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [link for link in LINK.findall(text) if not ((ROOT / page).parent / link).exists()] == []


def test_what_was_measured_begins_with_a_table_whose_rows_have_a_date_and_a_section() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    title, table, _ = page.split("\n\n", 2)
    header, _, *rows = table.splitlines()
    assert title.startswith("# ") and header == "| what | figure | of | section |" and rows
    assert [row for row in rows if row.count(" | ") != 3 or not re.search(r"\| 20\d\d-\d\d-\d\d[^|]*\| \[[^|]+\|$", row)] == []
    headings = {re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") for line in HEADING.findall(page)}
    linked = re.findall(r"\]\(#([^)]*)\)", table)
    assert len(linked) >= len(rows) and [link for link in linked if link not in headings] == []


def test_the_gallery_shows_every_picture_of_the_docs() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
    pictures = [path for kind in ("png", "svg") for path in (ROOT / "docs").rglob(f"*.{kind}")]
    assert sorted(shown) == sorted(str(path.relative_to(ROOT / "docs")) for path in pictures)


def test_the_index_names_every_page_but_those_of_rooms() -> None:
    docs = ROOT / "docs"
    named = set(LINK.findall((docs / "index.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(docs)) for page in (*docs.glob("*.md"), *docs.glob("tutorials/*.md"))}
    assert pages - named == {"index.md"}


def test_the_readme_has_two_screens_and_its_picture_on_the_first() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
    assert [at < 50 for at, line in enumerate(lines) if line.startswith("![")] == [True]


def exists(name: str) -> bool:
    """Whether a module of that name is there, or a module that defines or imports its last part; nothing is imported for it."""
    place = ROOT / Path(*name.split("."))
    if (place / "__init__.py").is_file() or place.with_suffix(".py").is_file():
        return True
    package = place.parent / "__init__.py"
    module = package if package.is_file() else place.parent.with_suffix(".py")
    return module.is_file() and place.name in set(_names(ast.parse(module.read_text(encoding="utf-8"))))


def _names(module: ast.Module) -> list[str]:
    found = []
    for part in module.body:
        match part:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.append(part.name)
            case ast.ImportFrom() | ast.Import():
                found += [alias.asname or alias.name for alias in part.names]
            case ast.Assign():
                found += [target.id for target in part.targets if isinstance(target, ast.Name)]
            case ast.AnnAssign():
                found += [part.target.id] if isinstance(part.target, ast.Name) else []
    return found


TABLE = re.compile(r"\|[\s:|-]+\|$")


def broken_tables(page: str) -> list[str]:
    """Headers of tables without a row, and lines that a table takes for a row of its own since no empty line stands between."""
    blocks = re.split(r"^```.*?^```$", page, flags=re.MULTILINE | re.DOTALL)
    lines = [line.strip() for line in "\n\n".join(blocks).split("\n")]
    followed = [*zip(lines, [*lines[1:], ""], ["", *lines[:-1]], strict=True)]
    empty = [before for line, after, before in followed if TABLE.match(line) and not after.startswith("|")]
    return empty + [after for line, after, _ in followed if line.startswith("|") and after and not after.startswith("|")]


def test_a_table_has_rows_and_ends_before_the_next_sentence() -> None:
    assert broken_tables("| a |\n|---:|\n\nText") == ["| a |"]
    assert broken_tables("| a |\n|---:|\n| 1 |\nText") == ["Text"]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert {page.name: found for page in pages if (found := broken_tables(page.read_text(encoding="utf-8")))} == {}
