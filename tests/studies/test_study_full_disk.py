"""A study on a disk that fills up anywhere goes on to the same result."""

from __future__ import annotations

from pathlib import Path

import pytest
from full_disks import hit_every_write
from judging_builders import asking, last, scripted

from perse.studies.frame.running import read_study
from perse.studies.order import order


@pytest.mark.integration
def test_a_study_that_meets_a_full_disk_goes_on_to_the_same_result(readers: Path, tmp_path: Path) -> None:
    def work(folder: Path) -> None:
        order(asking(readers, limit=6, resamples=100), folder / "run", orders=2, ks=[2], load=scripted(last))

    assert hit_every_write(work, tmp_path, sizes=5) > 10
    assert read_study(tmp_path / "sync-0" / "run") == read_study(tmp_path / "whole" / "run")


def test_a_table_that_was_edited_is_kept_when_the_study_is_asked_for_again(readers: Path, tmp_path: Path) -> None:
    def work() -> None:
        order(asking(readers, limit=6, resamples=100), tmp_path, orders=2, ks=[2], load=scripted(last))

    work()
    (tmp_path / "table.md").write_text("my remarks")
    (tmp_path / "notes.md").write_text("mine")
    work()
    assert (tmp_path / "table.kept-1.md").read_text() == "my remarks" and (tmp_path / "notes.md").read_text() == "mine"
    assert (tmp_path / "table.md").read_text() != "my remarks"
