"""Sentence embeddings kept on disk by text, so that a second look at the same texts needs no model.

One SQLite file for each model, under `$PERSE_HOME/embeddings`, named by the digest of the model's files: other weights have another
file. It holds no text, only what it was digested to. Where it cannot be written the vectors are computed again, which is slow, not wrong.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perse.errors import BadInput
from perse.files.path_names import place_named
from perse.files.runlog import file_digest
from perse.files.sqlite_files import refuse_foreign_leftovers
from perse.installing import install
from perse.models.embeddings import EMBEDDING_MODEL, unit_vectors
from perse.models.finding import cache_folder
from perse.progress import OnProgress, unseen

Vectors = Callable[[Sequence[str]], NDArray[np.float64]]
"""The vectors of texts, (n, d), each of length 1. Raises BadInput where there is no model."""

NO_LIBRARY = "sentence embeddings need sentence_transformers, which is not installed; run {}"

_AT_ONCE = 64
_SOME = 500
"""Keys looked up in one query; SQLite binds at most 999 in old versions."""

log = logging.getLogger(__name__)


class KeptVectors:
    """The vectors of one model, loaded when the first text is not known.

    Args:
        model: a folder, or a hub name whose files are on this machine: nothing is fetched. None: the usual one, which is looked for
            when it is needed.
        on_progress: told how many of the new texts are done.
    Raises:
        BadInput: the model that is named is not here.
    """

    def __init__(self, model: str | None = None, *, on_progress: OnProgress = unseen) -> None:
        self.model = model or EMBEDDING_MODEL
        self._on_progress = on_progress
        self._known: dict[str, Any] = {}
        self._digest = ""
        if model is not None:  # what was asked for is there, or it is said before anything is computed
            _ = self.folder

    @property
    def folder(self) -> Path:
        """Where the model lies.

        Raises:
            BadInput: it is not here.
        """
        path = place_named(self.model)
        if path.is_dir():
            if not any(
                (path / name).is_file() for name in ("modules.json", "config.json")
            ):  # else all that lies below is digested
                raise BadInput(
                    f"{path} is no embedding model (it has no modules.json and no config.json); give --embedding-model FOLDER"
                )
            return path
        if find_spec("sentence_transformers") is None:
            raise BadInput(NO_LIBRARY.format(install("data")))
        missing = f"the embedding model {self.model} is not on this machine; give --embedding-model FOLDER, or fetch it once (hf download {self.model})"
        from huggingface_hub import snapshot_download

        try:
            return Path(snapshot_download(self.model, local_files_only=True))
        except (OSError, ValueError):
            raise BadInput(missing) from None

    @property
    def digest(self) -> str:
        """sha256 over the model's files that say what it computes, by name."""
        if not self._digest:
            folder, found = self.folder, hashlib.sha256()
            for file in sorted(one for one in folder.rglob("*") if one.suffix in (".json", ".safetensors", ".txt")):
                found.update(f"{file.relative_to(folder)} {file_digest(file)}\n".encode("utf-8", "surrogateescape"))
            self._digest = found.hexdigest()
        return self._digest

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """The vectors of `texts`, (n, d), each of length 1.

        Raises:
            BadInput: the extra or the model is not here, or it cannot be used.
        """
        keys = {text: hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in dict.fromkeys(texts)}
        missing = [text for text, key in keys.items() if key not in self._known]
        if missing:
            place = cache_folder().parent / "embeddings" / f"{self.digest[:32]}.sqlite"
            self._known |= _read(place, [keys[text] for text in missing])
            self._compute(place, {keys[text]: text for text in missing if keys[text] not in self._known})
            if len({vector.shape for vector in self._known.values()}) > 1:
                log.warning("%s: kept embeddings are of several lengths, and all are computed again", place)
                self._known = {}
                self._compute(place, {key: text for text, key in keys.items()})
        return np.stack([self._known[keys[text]] for text in texts]).astype(np.float64)

    def _compute(self, place: Path, new: dict[str, str]) -> None:
        if not new:
            return
        if find_spec("sentence_transformers") is None:
            raise BadInput(NO_LIBRARY.format(install("data")))
        from perse.models.opening import sentence_embeddings

        model = sentence_embeddings(str(self.folder))
        keys = sorted(new, key=lambda key: -len(new[key]))  # alike long ones together: a batch is as slow as its longest
        for start in range(0, len(keys), _AT_ONCE):
            self._on_progress(start, len(keys))
            some = keys[start : start + _AT_ONCE]
            made = unit_vectors(model, self.model, [new[key] for key in some])
            found = {key: np.asarray(row, dtype=np.float32) for key, row in zip(some, made, strict=True)}
            self._known |= found
            _write(place, found)
        self._on_progress(len(keys), len(keys))


def _read(place: Path, keys: Sequence[str]) -> dict[str, Any]:
    if not place.is_file():
        return {}
    found: dict[str, Any] = {}
    try:
        refuse_foreign_leftovers(place)
        with closing(sqlite3.connect(place, timeout=60)) as file:
            for start in range(0, len(keys), _SOME):
                some = keys[start : start + _SOME]
                query = f"SELECT key, vector FROM vectors WHERE key IN ({','.join('?' * len(some))})"
                rows = file.execute(
                    query, some
                ).fetchall()  # one left in the midst would hold the file, and its traceback the query
                found |= {key: _finite(kept) for key, kept in rows}
    except (OSError, sqlite3.Error, ValueError, TypeError) as error:
        log.warning("%s: kept embeddings cannot be read (%s), and are computed again", place, error)
        return {}
    return found


def _finite(kept: Any) -> Any:
    """A vector of its bytes.

    Raises:
        ValueError, TypeError: they are none.
    """
    vector = np.frombuffer(kept, dtype="<f4")
    if not np.isfinite(vector).all():
        raise ValueError("one is no number")
    return vector


def _write(place: Path, vectors: dict[str, Any]) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        refuse_foreign_leftovers(place)
        with closing(sqlite3.connect(place, timeout=60)) as file, file:
            file.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID")
            rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
            file.executemany("INSERT OR REPLACE INTO vectors (key, vector) VALUES (?, ?)", rows)
    except (OSError, sqlite3.Error) as error:
        log.warning("%s: embeddings cannot be kept (%s)", place, error)
