"""What `perse doctor` says of an installation, and when it says that something is broken."""

from __future__ import annotations

import json
import sys
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement
from typer.testing import CliRunner

from perse import installation
from perse.commands.app import app
from perse.models import machine
from perse.models.machine import model_cache

FINE = {"writable": True, "folder": "models"}


def said(**requirements: list[str]) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        wanted = {extra.replace("core", ""): list(map(Requirement, lines)) for extra, lines in requirements.items()}
        patch.setattr(installation, "requirements", lambda: wanted)
        return installation.problems(installation.parts(), [], {}, FINE)


def test_every_requirement_has_a_tested_version_inside_its_range() -> None:
    tested = installation.tested_versions()
    for extra, wanted in installation.requirements().items():
        for one in wanted:
            assert one.specifier.contains(tested[installation._normal(one.name)]), (extra, str(one))


def test_an_extra_that_is_not_there_is_no_fault_and_a_broken_one_is() -> None:
    assert said(core=["numpy>=2"], serve=["no-such-package>=1"]) == []
    assert said(core=[], vllm=["numpy<1", "no-such-package"]) == [], "its range binds those who use it"
    [outside] = said(core=[], serve=["numpy<1"])
    assert "numpy" in outside and "<1 is needed; pip install" in outside and "[serve]'" in outside
    [missing] = said(core=["no-such-package>=1"])
    assert missing.startswith("no-such-package is not installed, and everything needs it; pip install")


def test_a_package_that_two_extras_ask_for_is_listed_once_with_both_ranges() -> None:
    [one] = installation._joined(map(Requirement, ["transformers<5.20", "transformers>=5.16.1,<6", "perse-judge[serve]"]))
    assert one.specifier.contains("5.19.0") and not one.specifier.contains("5.23.0") and not one.specifier.contains("5.0.0")


def test_a_folder_for_models_that_is_a_file_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PERSE_HOME", str(tmp_path / "file"))
    [sentence] = installation.problems([], [], {}, model_cache())
    assert sentence.startswith("models cannot be written to") and "set PERSE_HOME" in sentence


def test_another_project_in_the_same_folder_is_named_with_the_cure() -> None:
    def distribution(name: str, *files: str) -> Any:
        return SimpleNamespace(metadata={"Name": name}, version="0.1.9", files=[PurePosixPath(file) for file in files])

    ours = distribution("perse_judge", "perse/__init__.py")
    theirs, other = distribution("perse", "perse/__init__.py"), distribution("rich", "rich/__init__.py")
    assert installation.shared_by([ours, other]) == []
    assert installation.shared_by([ours, theirs, other]) == ["perse 0.1.9"]
    [sentence] = installation.problems([], ["perse 0.1.9"], {}, FINE)
    assert "shared with perse 0.1.9" in sentence and "pip uninstall perse perse-judge, then pip install" in sentence


@pytest.mark.slow
def test_json_holds_what_is_installed_and_the_exit_code_says_whether_it_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PERSE_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "models" / "mine" / "config.json").write_text("{}")
    done = CliRunner().invoke(app, ["doctor", "--json"])
    report = json.loads(done.stdout)
    assert done.exit_code == (1 if report["problems"] else 0) and "sk-secret" not in done.stdout
    assert list(report["cache"]["models_gb"]) == ["mine"] and report["machine"]["cores"] >= 1
    assert {part["extra"] for part in report["parts"]} == {"", *installation.ENABLES}
    monkeypatch.setattr(installation, "shared_by", lambda: ["perse 0.1.9"])
    broken = CliRunner().invoke(app, ["doctor"])
    assert broken.exit_code == 1 and "the folder perse is shared with perse 0.1.9" in broken.stdout


def test_a_torch_that_cannot_be_imported_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(machine, "find_spec", lambda _: object())
    devices = machine.gpus()
    [sentence] = installation.problems([], [], devices, FINE)
    assert sentence.startswith("torch cannot be imported: ")
