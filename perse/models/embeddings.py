"""Sentence embeddings: each text once, of unit length, by a sentence-transformers model on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

EMBEDDING_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


class Embeddings:
    """The vectors of a model, named by folder or hub name; a text's vector is computed once.

    Raises:
        BadInput: the model cannot be used.
    """

    def __init__(self, model: str) -> None:
        from perse.models.opening import sentence_embeddings

        self._model = sentence_embeddings(model)
        self._vectors: dict[str, Any] = {}

    @property
    def digest(self) -> str:
        """sha256 over the weights by name."""
        found = hashlib.sha256()
        for name, tensor in sorted(self._model.state_dict().items()):
            found.update(name.encode())
            found.update(tensor.cpu().numpy().tobytes())
        return found.hexdigest()

    def __call__(self, texts: Sequence[str]) -> Any:
        """The vectors of these texts, (n, d), each of length 1."""
        import numpy as np

        new = sorted({*texts} - self._vectors.keys())
        if new:
            made = self._model.encode(new, normalize_embeddings=True, show_progress_bar=False)
            self._vectors.update(zip(new, made, strict=True))
        return np.stack([self._vectors[text] for text in texts])
