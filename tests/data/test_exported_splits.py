"""Both sides of a data set, exported into one folder, are a data set with splits for `datasets`, without perse and without a network."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import perse
from places import ROOT

from perse.data.load import load_examples


@pytest.mark.slow
def test_a_folder_of_exported_sides_is_loaded_with_its_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    samples = ROOT / "perse" / "samples"
    built = perse(
        "data", "pointwise", "--reviews", samples / "reviews.jsonl", "--items", samples / "items.jsonl", "--valid", "0.34", "--out", tmp_path / "data"
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    folder = tmp_path / "hub"
    folder.mkdir()
    for split in ("train", "valid"):
        done = perse("data", "export", tmp_path / "data", "--split", split, "--out", folder / f"{split}.jsonl")
        assert done.returncode == 0, done.stderr
    found = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert set(found) == {"train", "validation"}
    for split, name in (("train", "train"), ("valid", "validation")):
        examples = load_examples(tmp_path / "data", split=split).examples  # type: ignore[arg-type]
        assert [row["id"] for row in found[name]] == [example.id for example in examples]
        assert found[name][0]["profile"][0]["review"] == examples[0].profile[0].review  # type: ignore[union-attr]
