"""The pages of the site, in one folder: docs/ as it is, a reference made of `--help` and docstrings, and the files of the repository that pages link to.

    python scripts/docs_site.py work/docs && mkdocs build     # make site

A page links to `../deploy/compose.yaml` as it lies in the repository; on the site a copy of it stands under `files/`, so that all of it can be
read from a disk. The folder is made anew each time, whole or not at all; what somebody put there or changed there is never removed.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from made_folder import put, stage
from typer.testing import CliRunner

from perse.commands.app import app
from perse.errors import PerseError
from perse.formats.plain_files import own_text

ROOT = Path(__file__).resolve().parent.parent
BESIDE = "files"
"""The folder of copies on the site."""
_COLUMNS = "110"
_LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")
PYTHON = {
    "The judge": ("perse.judging.judge.Judge", "perse.judging.judge.JudgeSettings"),
    "What goes in": (
        "perse.records.ProfileReview",
        "perse.records.PointwiseExample",
        "perse.records.PairwiseExample",
        "perse.records.parse_example",
    ),
    "What comes out": ("perse.judgement.Judgement", "perse.judgement.Status", "perse.judging.judged.Judgements"),
    "Asking a judge server": ("perse.serving.client.JudgeClient", "perse.serving.client.AsyncJudgeClient"),
    "When something is wrong": ("perse.errors",),
}
"""What other programs import, by heading."""


def write_pages(out: Path) -> None:
    """All pages into `out`, which is made, or made anew.

    Raises:
        BadInput: something else than earlier pages lies there.
    """
    fresh = stage(out)
    _write(fresh)
    put(fresh, out)


def _write(out: Path) -> None:
    for file in sorted(one for one in (ROOT / "docs").rglob("*") if one.is_file()):
        _copy(file, out / file.relative_to(ROOT / "docs"))
    for page in sorted(out.rglob("*.md")):
        name, text = page.relative_to(out).as_posix(), own_text(page)
        for file in outside(name, text):
            _copy(ROOT / file, out / BESIDE / file)
        page.write_text(with_copies(name, text), encoding="utf-8")
    (out / "reference").mkdir()
    (out / "reference" / "commands.md").write_text(commands_page(), encoding="utf-8")
    (out / "reference" / "python.md").write_text(python_page(), encoding="utf-8")


def _copy(file: Path, copy: Path) -> None:
    """Without its rights: those of a checkout that may only be read would keep the page from being written."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, copy)


def outside(page: str, text: str) -> Iterator[str]:
    """The files of the repository, outside docs/, that a page links to."""
    for found in _LINK.finditer(text):
        if (name := _in_repository(page, found[1])) is not None:
            yield name


def with_copies(page: str, text: str) -> str:
    """A page's text, its links to files of the repository leading to their copies."""

    def copied(found: re.Match[str]) -> str:
        name = _in_repository(page, found[1])
        if name is None:
            return found[0]
        return f"]({posixpath.relpath(f'{BESIDE}/{name}', posixpath.dirname(page) or '.')}{found[2] or ''})"

    return _LINK.sub(copied, text)


def _in_repository(page: str, link: str) -> str | None:
    """The path from the repository's root; None of what lies within docs/ or is no file."""
    name = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if name.startswith(("docs/", "..")) or not (ROOT / name).is_file() else name


def commands_page() -> str:
    """Every command with its help, as the program itself tells it."""
    return "\n".join(["# Commands", "", *_told(typer.main.get_command(app), [])])


def _told(command: Any, path: list[str]) -> Iterator[str]:
    plain = {"COLUMNS": _COLUMNS, "TERMINAL_WIDTH": _COLUMNS, "NO_COLOR": "1"}
    shown = CliRunner().invoke(app, [*path, "--help"], env=plain, prog_name="perse")
    text = "\n".join(line.rstrip() for line in shown.output.strip().splitlines())
    yield from (f"{'##' if len(path) < 2 else '###'} {' '.join(['perse', *path])}", "", "```text", text, "```", "")
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _told(inner, [*path, name])


def python_page() -> str:
    """The names that programs use, from their docstrings."""
    said = ["# Python", "", "What other programs import. Everything else may change without notice.", ""]
    for title, names in PYTHON.items():
        said += [f"## {title}", "", *(line for name in names for line in (f"::: {name}", ""))]
    return "\n".join(said)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("give the folder of the pages: python scripts/docs_site.py work/docs")
    try:
        write_pages(Path(sys.argv[1]))
    except (PerseError, OSError) as error:
        sys.exit(f"docs_site: {error}")
