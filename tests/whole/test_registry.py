"""Packages of others that add to perse's registries, and cannot be used: told in a line, in the way of nobody."""

from __future__ import annotations

import logging
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
