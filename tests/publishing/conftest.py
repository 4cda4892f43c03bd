"""A small judge, trained and scored once for all tests of the room."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from publishing_builders import Published, published


@pytest.fixture(scope="session")
def trained_once(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Published:
    return published(tiny_model_folder, tmp_path_factory.mktemp("published"))


@pytest.fixture
def judge(trained_once: Published, tmp_path: Path) -> Published:
    """A copy that a test may change."""
    run, scored = tmp_path / "runs" / "first", tmp_path / "runs" / "first-valid"
    shutil.copytree(trained_once.run, run)
    shutil.copytree(trained_once.scored, scored)
    return Published(trained_once.base, run, scored)
