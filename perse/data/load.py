"""Examples from wherever they are kept: a data set folder or a file of exported JSON lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perse.data.folder import is_data_folder, load_folder
from perse.errors import BadInput
from perse.records import Example, Split, read_examples
from perse.runlog import file_digest


@dataclass(frozen=True)
class LoadedExamples:
    """Examples of one side of a data set, the digest of what they came from, and where the training side is."""

    examples: list[Example]
    digest: str
    folder: Path | None
    fold: int | None


def load_examples(path: str | Path, *, split: Split, fold: int | None = None) -> LoadedExamples:
    """The `split` side of a data set folder, or all examples of a JSON lines file.

    Raises:
        BadInput: neither a folder nor a file, no example in it, or a fold asked of what has none.
    """
    place = Path(path)
    if is_data_folder(place):
        data = load_folder(place)
        loaded = LoadedExamples(list(data.examples(split, fold=fold)), data.digest, place, fold)
    elif place.is_dir():
        raise BadInput(
            f"{place} is no data set folder (it has no manifest.json of `perse data`); build one, or give a .jsonl file"
        )
    elif fold is not None:
        raise BadInput(f"{place} is a file of examples and has no folds; leave the fold out")
    else:
        loaded = LoadedExamples(read_examples(place), file_digest(place) if place.exists() else "", None, None)
    if not loaded.examples:
        raise BadInput(f"{place} holds no {split} examples; build it with more data, or choose the other split")
    return loaded
