"""A data set on a full disk: one sentence, the old set as it was or none at all, and with room the same bytes as without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from full_disks import contents, files_of_at_most
from places import SAMPLES

from perse.data.build import PointwiseOptions, build_pointwise
from perse.errors import PerseError


@pytest.mark.slow
def test_a_data_set_that_does_not_fit_leaves_what_was_there_and_is_built_later_to_the_same_bytes(tmp_path: Path) -> None:
    options = PointwiseOptions(
        reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=tmp_path / "data", valid=0.34
    )
    other = replace(options, out=tmp_path / "whole", valid=0.5)
    build_pointwise(other)
    sizes = sorted(path.stat().st_size for path in (tmp_path / "whole").iterdir())
    for limit in (0, 10, *(size - 1 for size in sizes[:-1]), sizes[-1] // 2):
        with pytest.raises(PerseError, match="written") as said, files_of_at_most(limit):
            build_pointwise(replace(other, out=tmp_path / "data"))
        assert "\n" not in str(said.value) and not (tmp_path / "data").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["whole"]
    build_pointwise(options)
    (tmp_path / "data" / "notes.txt").write_text("mine")
    before = contents(tmp_path / "data")
    for limit in (0, sizes[-1] // 2):
        with pytest.raises(PerseError, match="written"), files_of_at_most(limit):
            build_pointwise(replace(other, out=tmp_path / "data", overwrite=True))
        assert contents(tmp_path / "data") == before
    (tmp_path / "data" / "notes.txt").unlink()
    build_pointwise(replace(other, out=tmp_path / "data", overwrite=True))
    assert contents(tmp_path / "data") == contents(tmp_path / "whole")
