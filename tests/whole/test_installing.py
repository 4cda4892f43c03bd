"""What is missing is named with the extra that brings it and a command that works where this copy came from."""

from __future__ import annotations

import json
import re
import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from places import ROOT

from perse import installing
from perse.commands import app as cli
from perse.commands import terminal
from perse.errors import BadInput
from perse.judging import connecting

MODULES = {"protobuf": "google", "scikit-learn": "sklearn", "liger-kernel": "liger_kernel", "bert-score": "bert_score"}


def extras() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return found


def brought(extra: str) -> set[str]:
    """The modules of an extra and of those it includes."""
    modules: set[str] = set()
    for requirement in extras()[extra]:
        if own := re.match(r"perse-judge\[(.*)\]", requirement):
            modules |= brought(own[1])
        else:
            name = re.split(r"[<>=~!\[ ]", requirement)[0]
            modules.add(MODULES.get(name, name.replace("-", "_")))
    return modules


def test_every_requirement_of_an_extra_has_a_hint_that_brings_it() -> None:
    for extra in installing.EXTRAS:
        for module in brought(extra):
            assert module in brought(str(installing.extra_for(module))), module


def test_every_extra_of_the_table_can_be_installed() -> None:
    assert installing.EXTRAS.keys() == extras().keys() - {"dev"}


class Installed:
    version = "0.1.0"

    def __init__(self, told: dict[str, Any] | None) -> None:
        self._told = told

    def read_text(self, _: str) -> str | None:
        return json.dumps(self._told) if self._told else None


def test_a_hint_fits_how_this_copy_was_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert installing.install("serve") == f"pip install -e '{ROOT}[serve]'"
    monkeypatch.chdir(ROOT)
    assert installing.install("serve") == "pip install -e '.[serve]'"
    monkeypatch.setattr(installing, "checkout", lambda: None)
    wheel = tmp_path / "perse_judge-0.1.0-py3-none-any.whl"
    wheel.touch()
    gone = "perse_judge-0.1.0-py3-none-any.whl[serve]"
    for told, hint in (
        ({"url": wheel.as_uri(), "archive_info": {}}, f"{wheel}[serve]"),
        ({"url": "file:///gone/perse.whl", "archive_info": {}}, gone),
        (None, gone),
        (
            {"url": "https://me:secret@host/perse.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "perse-judge[serve] @ git+https://host/perse.git@abc",
        ),
    ):
        monkeypatch.setattr(installing.metadata, "distribution", lambda _, told=told: Installed(told))
        assert installing.install("serve") == f"pip install '{hint}'"


def test_no_message_or_page_names_a_package_that_is_not_published() -> None:
    places = [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "configs").rglob("*.yaml"),
        *(ROOT / "perse").rglob("*.py"),
    ]
    assert not [place for place in places if "pip install 'perse-judge" in place.read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    ("module", "extra"), [("torch", "serve"), ("accelerate.utils", "train"), ("google.protobuf", "remote")]
)
def test_the_command_line_names_the_extra_of_a_missing_module(
    module: str, extra: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer()

    @app.command()
    def needs() -> None:
        raise ModuleNotFoundError(f"No module named '{module}'", name=module)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as left:
        patch.setattr(sys, "argv", ["perse"])
        terminal.run_app(app)
    assert left.value.code == 2
    assert f"[{extra}]'" in capsys.readouterr().err


def test_training_asks_for_its_own_extra_whatever_is_missing() -> None:
    with pytest.raises(BadInput, match=r"this needs torch, .*\[train\]'"), installing.needing("train"):
        raise ModuleNotFoundError(name="torch")
    with pytest.raises(ModuleNotFoundError), installing.needing("train"):
        raise ModuleNotFoundError(name="perse.nowhere")


def test_asking_a_vllm_server_without_transformers_names_the_extra_remote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BadInput, match=r"need the model's tokenizer, and transformers is not installed; run: .*\[remote\]'"):
        connecting._tokenizer("anything")


def test_python_dash_m_perse_is_perse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["perse", "--version"])
    monkeypatch.delitem(sys.modules, "perse.__main__", raising=False)
    with pytest.raises(SystemExit) as left:
        runpy.run_module("perse", run_name="__main__")
    assert not left.value.code and capsys.readouterr().out.strip() == cli.__version__
