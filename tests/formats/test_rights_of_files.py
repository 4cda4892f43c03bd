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
from perse.files.disk import write_first, write_whole
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


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_that_is_written_anew_is_as_private_as_it_was(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "run.json"
    path.write_text("old", "utf-8")
    path.chmod(mode)
    write_whole(path, "new")
    assert (path.read_text("utf-8"), path.stat().st_mode & 0o777) == ("new", mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("owner", [(65534, 65533), (0, 65533), (65534, 0), (0, 0)])
def test_what_root_writes_anew_stays_its_owners(tmp_path: Path, owner: tuple[int, int]) -> None:
    path = tmp_path / "run.json"
    path.write_text("old", "utf-8")
    os.chown(path, *owner)
    write_whole(path, "new")
    assert (path.read_text("utf-8"), path.stat().st_uid, path.stat().st_gid) == ("new", *owner)


def test_of_several_who_make_a_file_the_first_is_the_one_that_made_it(tmp_path: Path) -> None:
    assert write_first(tmp_path / "salt", "one") and not write_first(tmp_path / "salt", "two")
    assert [(path.name, path.read_text("utf-8")) for path in tmp_path.iterdir()] == [("salt", "one")], (
        "nothing is left beside it"
    )
