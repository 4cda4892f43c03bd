"""Packages of others that add to perse's registries, and cannot be used: told in a line, in the way of nobody; one that fails while it
is used is named, and no bug of perse."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest

from perse import registry
from perse.registry import Registry

KEY = "sk-planted-0123456789abcdef"
HARMS = {
    "leaves": "raise SystemExit(7)",
    "tells": f"raise ValueError('\\x1b[2J {KEY}')",
    "says_nothing": "class Odd(Exception):\n    def __str__(self):\n        raise RuntimeError('no words')\nraise Odd",
    "beyond": "class Beyond(BaseException): pass\nraise Beyond('beyond')",
}


@pytest.mark.parametrize("name", HARMS)
def test_a_package_that_cannot_be_imported_is_left_out_with_a_warning(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / f"outside_{name}.py").write_text(HARMS[name])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    point = EntryPoint(name, f"outside_{name}:THING", "perse.toys")
    monkeypatch.setattr(registry, "entry_points", lambda group: (point,))
    with caplog.at_level(logging.WARNING):
        assert [*Registry("perse.toys", [SimpleNamespace(name="own")])] == ["own"]
    [said] = caplog.messages
    assert f"'{name}'" in said and "is left out" in said and KEY not in said and "\x1b" not in said


ADDED = """
import sys
import typer
from perse.commands.consumer import Consumer
from perse.data.sources.source import Source
from perse.engines.base import Capabilities
from perse.engines.kind import EngineKind, Identity, Loaded
from perse.questions.pointwise import POINTWISE, Pointwise
from perse.rendering.prompt import TextRenderer


def does(what):
    if what == "raises":
        raise KeyError("colour")
    if what == "lacks":
        import no_such_module
    if what == "recurses":
        does(what)
    if what == "leaves":
        sys.exit(0)


class Odd(Pointwise):
    def asks(self, example, profile):
        return does(self.name.removeprefix("odd_"))


def odd(what):
    return Odd("odd_" + what, POINTWISE.layout, POINTWISE.ask)


class Sulking:
    capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False)
    settings = {"engine": "sulking"}

    def chat(self, messages, sampling, *, seeds):
        return does("gives_nothing")


def kind(what, load):
    return EngineKind(what, what + ":NAME", "sulks", load)


def source(what):
    return Source(name="read_" + what, title="odd", recognise=lambda head: False, kind="pointwise", files=("odd",),
                  read=lambda wanted, faults: does(what))


for what in ("raises", "lacks", "recurses", "leaves", "gives_nothing"):
    globals()["read_" + what], globals()["odd_" + what] = source(what), odd(what)
    globals()["load_" + what] = kind("load_" + what, lambda parts, options, what=what: does(what))
sulking = kind("sulking", lambda parts, options: Loaded(Sulking(), TextRenderer(), Identity(parts.model)))
choir = typer.Typer()
sing = choir.command("sing")(lambda: sys.exit(3))
hum = choir.command("hum")(lambda: does("raises"))
tell = choir.command("tell")(lambda: sys.exit("sk-planted-0123456789abcdef"))
CHOIR = Consumer("choir", choir)
DATA = Consumer("data", typer.Typer())


class Deaf:
    name, app = "deaf", "not an application"
"""
WAYS = ("raises", "lacks", "recurses", "leaves", "gives_nothing")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where a package is installed of which each thing fails in its own way when it is used."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "added.py").write_text(ADDED)
    info = folder / "added-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: added-things\nVersion: 1.0\n")
    points = {"sources": "read", "engines": "load", "questions": "odd"}
    listed = [
        f"[perse.{of}]\n" + "".join(f"{word}_{way} = added:{word}_{way}\n" for way in WAYS) for of, word in points.items()
    ]
    listed += ["[perse.consumers]\nchoir = added:CHOIR\ndata = added:DATA\ndeaf = added:Deaf\n"]
    (info / "entry_points.txt").write_text(
        "".join(listed).replace("[perse.engines]\n", "[perse.engines]\nsulking = added:sulking\n")
    )
    example = {"id": "a", "reviewer_id": "r", "item_id": "i", "profile": [], "query": "A plot."}
    (folder / "examples.jsonl").write_text(json.dumps({**example, "reference": {"review": "Fine.", "score": 7}}) + "\n")
    return folder


def used(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", str(Path.cwd()))])
    wide = {**os.environ, "PYTHONPATH": path, "COLUMNS": "400"}
    return subprocess.run(
        [sys.executable, "-m", "perse", *command], cwd=site, env=wide, capture_output=True, text=True, check=False
    )


BUILD = ("data", "pointwise", "--reviews", "examples.jsonl", "--out", "built", "--source")
SCORE = ("score", "--examples", "examples.jsonl", "--out", "run", "--judge")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        *((*BUILD, f"read_{way}") for way in WAYS),
        (*SCORE, "load_gives_nothing:x"),
        (*SCORE, "sulking:x", "--question", "odd_raises"),
        (*SCORE, "sulking:x", "--question", "odd_leaves"),
        (*SCORE, "sulking:x", "--question", "odd_gives_nothing"),
        (*SCORE, "sulking:x"),
        ("choir", "hum"),
    ],
    ids=lambda command: command[-1].partition(":")[0],
)
def test_a_package_that_fails_while_it_is_used_is_named(site: Path, command: tuple[str, ...]) -> None:
    done = used(site, *command)
    assert done.returncode == 2, done.stderr
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith("perse: the package added-things, which adds to perse, "), done.stderr
    assert "Traceback" not in done.stderr and "bug of perse" not in done.stderr


@pytest.mark.slow
def test_a_command_of_another_package_ends_as_it_says(site: Path) -> None:
    assert used(site, "choir", "sing").returncode == 3
    told = used(site, "choir", "tell")
    assert told.returncode == 1 and KEY not in told.stderr


@pytest.mark.slow
def test_a_consumer_takes_no_command_of_perse_and_breaks_none(site: Path) -> None:
    done = used(site, "data", "samples", "--help")
    assert done.returncode == 0
    assert "'data' of the package added-things is left out: the name is taken" in done.stderr
    assert "'deaf' of the package added-things is left out: added:Deaf is no Consumer" in done.stderr
