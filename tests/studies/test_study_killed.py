"""A study that is killed after every few answers goes on to the same result, and asks nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging_builders import asking, last, scripted
from kills import Script, check_nothing_lost

from perse.studies.order import order


@pytest.mark.slow
def test_a_study_that_is_killed_loses_no_answer(readers: Path, tmp_path: Path) -> None:
    def ask(folder: Path, script: Script) -> None:
        order(asking(readers, limit=6, resamples=100), folder / "run", orders=2, ks=[2], load=scripted(script))

    check_nothing_lost(ask, last, tmp_path, after=3)
