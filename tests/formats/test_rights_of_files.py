"""A file that somebody may not read has nothing wrong with it: nobody is told to make it again."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from perse.data.dataset.parquet import read_parquet
from perse.errors import BadInput
from perse.files.runlog import read_manifest


def _refused(*_: Any, **__: Any) -> Any:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def test_a_manifest_that_may_not_be_read_is_not_to_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "manifest.json").write_text("{}", "utf-8")
    monkeypatch.setattr(Path, "read_bytes", _refused)
    with pytest.raises(BadInput, match=r"manifest.json: Permission denied; have its owner") as caught:
        read_manifest(tmp_path)
    assert "made again" not in str(caught.value)


def test_a_table_of_a_data_set_that_may_not_be_read_is_not_to_be_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pq, "read_schema", _refused)
    with pytest.raises(BadInput, match=r"examples.parquet: cannot be read \(Permission denied\); have its owner") as caught:
        list(read_parquet(tmp_path / "examples.parquet"))
    assert "again" not in str(caught.value)
