"""`perse data evidence`: adds to a data set folder what its training side says of each text (`perse.data.evidence`).

One file more, `evidence.parquet`, with a row for each review and fold, sealed by its digest in the manifest, which also names the reviews and
examples that it was made of. Every epoch's examples, exports and runs are made of it, so that training and asking show the same. The data set's
own digest changes with it, as its prompts do.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.data.dataset.folder import EVIDENCE, evidence_of, load_folder, new_texts, training_readers
from perse.data.dataset.parquet import parquet_bytes
from perse.data.evidence.guard import check_evidence
from perse.data.evidence.making import Penalties, evidence_rows
from perse.data.evidence.table import EvidenceRow
from perse.data.works import works
from perse.errors import BadInput
from perse.files.belongings import MANIFEST, resolved
from perse.files.locking import locked
from perse.files.replacing import manifest_text, settle, update_files
from perse.models.vectors import KeptVectors
from perse.progress import OnProgress, unseen


@dataclass(frozen=True)
class Added:
    """What was written."""

    folder: Path
    rows: tuple[EvidenceRow, ...]
    penalties: tuple[Penalties, ...]
    """Of each fold: of the weights, and of readers' offsets."""


def add_evidence(folder: Path, vectors: KeptVectors, *, seed: int = 0, on_progress: OnProgress = unseen) -> Added:
    """Write the evidence of a data set of reviews into its folder; what is there is replaced.

    Args:
        vectors: the embeddings of texts.
        seed: of the parts of readers and texts that are left out in turn.
        on_progress: told how many models are fitted, of each fold anew.
    Raises:
        BadInput: no data set of reviews, no embedding model, or the folder cannot be written.
        RunMismatch: another process writes it.
    """
    settle(folder)
    with locked(resolved(folder)):
        data = load_folder(folder, evidence=False)
        if data.kind != "pointwise":
            raise BadInput(f"{folder} holds comparisons of two texts, and evidence is of one; give a data set of reviews")
        reviews = list(data.reviews.values())
        about = works(reviews)
        rows: list[EvidenceRow] = []
        penalties: list[Penalties] = []
        for fold in [None] if data.folds is None else range(data.folds):
            readers = training_readers(data.rows, fold)
            examples: list[Any] = data.examples("train", fold)
            made, pair = evidence_rows(
                *(reviews, readers, examples, about, vectors),
                fold=fold,
                new_texts=new_texts(data.manifest),
                seed=seed,
                on_progress=on_progress,
            )
            check_evidence(made, data.reviews, readers, new_texts=new_texts(data.manifest))
            rows += made
            penalties.append(pair)
        content = parquet_bytes(EVIDENCE, rows)
        digest = hashlib.sha256(content).hexdigest()
        said = {
            "sha256": digest,
            "made_of": evidence_of(folder),
            "model": vectors.model,
            "model_sha256": vectors.digest,
            "seed": seed,
            "penalties": [list(pair) for pair in penalties],
        }
        files = {**data.manifest.get("files", {}), EVIDENCE: digest}
        manifest = {**data.manifest, "evidence": said, "files": files}
        update_files(folder, {EVIDENCE: content, MANIFEST: manifest_text(manifest).encode()})
    return Added(folder, tuple(rows), tuple(penalties))
