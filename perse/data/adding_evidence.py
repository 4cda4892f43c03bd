"""`perse data evidence`: adds to a data set folder what its training side says of each text (`perse.data.evidence`).

One file more, `evidence.parquet`, with a row for each review and fold, sealed by its digest in the manifest, which also names the reviews and
examples that it was made of. Every epoch's examples, exports and runs are made of it, so that training and asking show the same. The data set's
own digest changes with it, as its prompts do.

Examples of a file, whose readers or texts the data set may not have, are told what its evidence would be of them (`evidence_for`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.data.dataset.folder import EVIDENCE, DataSet, evidence_of, load_folder, new_texts, training_readers
from perse.data.dataset.parquet import parquet_bytes
from perse.data.evidence.guard import check_evidence
from perse.data.evidence.making import Penalties, evidence_rows, with_evidence
from perse.data.evidence.table import EvidenceMade, EvidenceRow
from perse.data.pseudonyms import pseudonym, salt_from_seed
from perse.data.works import works
from perse.errors import BadInput
from perse.files.belongings import MANIFEST, resolved
from perse.files.locking import locked
from perse.files.replacing import manifest_text, settle, update_files, written_there
from perse.models.vectors import KeptVectors
from perse.progress import OnProgress, unseen
from perse.records import Example, PointwiseExample


@dataclass(frozen=True)
class Added:
    """What was written."""

    folder: Path
    rows: tuple[EvidenceRow, ...]
    penalties: tuple[Penalties, ...]
    """Of each fold: of the weights, and of readers' offsets."""


def add_evidence(folder: Path, vectors: KeptVectors, *, seed: int = 0, on_progress: OnProgress = unseen) -> Added:
    """Write the evidence of a data set of reviews into its folder. That which was there is replaced; a file that is not as perse wrote it is kept
    under another name.

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
        said = EvidenceMade(
            sha256=digest,
            made_of=evidence_of(folder),
            model=vectors.model,
            model_sha256=vectors.digest,
            seed=seed,
            penalties=tuple(penalties),
        )
        files = {**data.manifest.get("files", {}), EVIDENCE: digest}
        manifest = {**data.manifest, "evidence": said.model_dump(mode="json"), "files": files}
        contents = {EVIDENCE: content, MANIFEST: manifest_text(manifest).encode()}
        update_files(folder, contents, ours=written_there(folder, [EVIDENCE]))
    return Added(folder, tuple(rows), tuple(penalties))


def evidence_for(
    folder: Path,
    examples: Sequence[Example],
    vectors: KeptVectors,
    *,
    fold: int | None = None,
    on_progress: OnProgress = unseen,
) -> list[PointwiseExample]:
    """The examples with what the training side of a data set says of their texts; evidence that they have is replaced.

    A reader who stands in the data set under a pseudonym of the usual salt is known by it; one whom it has under another name still is a stranger.

    Args:
        folder: a data set that has evidence.
        vectors: of the model that its evidence was made with.
        fold: of a data set with folds: whose training side.
        on_progress: told how many models are fitted, where an example is of a training reader.
    Raises:
        BadInput: the data set has no evidence, or it is of another embedding model; no such fold; or examples that are no reviews.
    """
    data = load_folder(folder)
    if not data.evidence:
        raise BadInput(f"{folder} has no evidence; make it first: perse data evidence {folder}")
    said = EvidenceMade.model_validate(data.manifest["evidence"])
    if said.model_sha256 != vectors.digest:
        raise BadInput(
            f"the evidence of {folder} was made with the embedding model {said.model} (sha256 {said.model_sha256[:12]}), and this is {vectors.model} "
            f"({vectors.digest[:12]}); give that one with --embedding-model"
        )
    data.examples("valid", fold)  # refuses a fold that is not there
    kept = [example for example in examples if isinstance(example, PointwiseExample)]
    if len(kept) < len(examples):
        raise BadInput("evidence is of single texts, and these examples are of another kind; give examples of reviews")
    reviews = list(data.reviews.values())
    new = new_texts(data.manifest)
    return with_evidence(
        kept,
        reviews,
        training_readers(data.rows, fold),
        works(reviews) if new else {},
        vectors,
        penalties=said.penalties[fold or 0],
        names=_names_there(data, kept),
        new_texts=new,
        seed=said.seed,
        on_progress=on_progress,
    )


def strangers(folder: Path, examples: Sequence[PointwiseExample], *, fold: int | None = None) -> list[PointwiseExample]:
    """Of the examples those whose readers the training side holds neither by name nor under the pseudonym of the usual salt: told as strangers.

    Raises:
        BadInput: as `load_folder`.
    """
    data = load_folder(folder)
    names, trained = _names_there(data, examples), training_readers(data.rows, fold)
    return [one for one in examples if names.get(one.reviewer_id, one.reviewer_id) not in trained]


def _names_there(data: DataSet, examples: Sequence[PointwiseExample]) -> dict[str, str]:
    """The pseudonyms in the data set of readers who stand in `examples` by their names."""
    options = data.manifest["options"]
    if options["keep_names"] or options["salt"] != "from seed":
        return {}
    there = {row.reviewer_id for row in data.rows}
    hidden = {
        name: pseudonym(name, salt=salt_from_seed(options["seed"])) for name in {one.reviewer_id for one in examples} - there
    }
    return {name: known for name, known in hidden.items() if known in there}
