"""Sentence embeddings: each text once, of unit length, by a sentence-transformers model on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from perse.errors import BadInput, ModelNotFound

EMBEDDING_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PLAIN = "A ferryman waits ten years for a letter."
_OTHER = "Two sisters build a tower on a hill that nobody wants."
_ONE = 1e-6
"""By which numbers of one vector differ where texts are embedded beside others."""
_ANOTHER = "give another --embedding-model"


class Embeddings:
    """The vectors of a model, named by folder or hub name; a text's vector is computed once.

    Raises:
        BadInput: the model cannot be used.
    """

    def __init__(self, model: str) -> None:
        from perse.models.opening import sentence_embeddings

        self._name = model
        self._model = sentence_embeddings(_place(model))
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
        """The vectors of these texts, (n, d), each of length 1.

        Raises:
            BadInput: the model gives none.
        """
        import numpy as np

        new = sorted({*texts} - self._vectors.keys())
        if new:
            made = unit_vectors(self._model, self._name, new)
            self._vectors.update(zip(new, made, strict=True))
        return np.stack([self._vectors[text] for text in texts])


def _place(model: str) -> str:
    """The folder of a model of the hub, which is asked once: the library asks it for each file, minute after minute where there is no network."""
    from perse.models.finding import HUB_NAME, from_hub

    if Path(model).is_dir() or not HUB_NAME.fullmatch(model):
        return model
    try:
        return str(from_hub(model))
    except ModelNotFound as error:
        raise BadInput(f"the embedding model cannot be used: {error}; or give --embedding-model FOLDER") from None


def unit_vectors(model: Any, name: str, texts: Sequence[str]) -> Any:
    """What an opened model makes of texts, (n, d), each of length 1 but where the model knows nothing of a text.

    Args:
        name: as the user gave it.
    Raises:
        BadInput: it fails, as one that is of another kind does here and not where it is opened; or what it gives are no vectors.
    """
    import numpy as np

    from perse.models.opening import one_sentence

    def encoded(some: Sequence[str]) -> Any:
        with one_sentence(f"the embedding model '{name}'", remedy=_ANOTHER):
            return np.asarray(model.encode(some, normalize_embeddings=True, show_progress_bar=False))

    made = encoded(texts)
    if made.ndim != 2 or len(made) != len(texts) or not np.isfinite(made).all():
        raise BadInput(f"the embedding model {name} gives vectors that are no numbers; {_ANOTHER}")
    if not made.any() and not encoded([_PLAIN]).any():  # of these texts it may know no word, and still be a model
        raise BadInput(f"the embedding model {name} gives vectors of length 0; {_ANOTHER}")
    if _all_one(made) and _all_one(np.concatenate([made[:1], encoded([_PLAIN, _OTHER])])):  # these texts may be alike
        raise BadInput(f"the embedding model {name} gives every text the same vector; {_ANOTHER}")
    return made


def _all_one(vectors: Any) -> bool:
    """Whether all are the same, and none is of length 0, which says that a text has no known word."""
    return bool(vectors.any() and (abs(vectors - vectors[0]) < _ONE).all())
