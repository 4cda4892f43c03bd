"""A cache of answers for every test of rewriting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perse.writing.cache import AnswerCache


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[AnswerCache]:
    with AnswerCache(tmp_path / "answers.sqlite") as cache:
        yield cache
