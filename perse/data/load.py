"""Loads examples from a data set folder or a file of exported JSON lines."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from perse.data.dataset.folder import DEFAULT_VIEW, is_data_folder, load_folder
from perse.data.examples_file import read_examples
from perse.data.profiles.views import View
from perse.errors import BadInput
from perse.files.runlog import MANIFEST, file_digest
from perse.formats.json_text import read_object
from perse.formats.plain_files import unchanged_while_read
from perse.records import Example, Split


@dataclass(frozen=True)
class LoadedExamples:
    """Examples of one side of a data set, the digest of what they came from, and where the training side is."""

    examples: list[Example]
    digest: str
    folder: Path | None
    fold: int | None
    redrawn: bool = False
    """Whether every epoch of training has examples of its own."""
    profile: str = "own"
    """Whose profiles are shown (`data.variants.profile_variants.ProfileShown`): a table's baselines must read the readers' own."""


def load_examples(
    path: str | Path,
    *,
    split: Split,
    fold: int | None = None,
    view: View = DEFAULT_VIEW,
    epoch: int = 0,
    without: Collection[str] = (),
) -> LoadedExamples:
    """The `split` side of a data set folder, or all examples of a JSON lines file.

    Args:
        view: how the profiles of a folder are shown.
        epoch: of a folder drawn per reviewer and epoch: which draw; ignored for other data.
        without: reviewers to leave out; of a folder as in `DataSet.examples`.
    Raises:
        BadInput: neither a folder nor a file, no example in it, or a fold or a view of data without them.
    """
    place = Path(path)
    if is_data_folder(place):
        data = load_folder(place)
        drawn = epoch if data.redrawn else 0
        examples: list[Example] = list(data.examples(split, fold, view=view, epoch=drawn, without=without))
        loaded = LoadedExamples(examples, data.digest, place, fold, data.redrawn)
    elif place.is_dir():
        if (place / MANIFEST).is_file():
            read_object(place / MANIFEST, remedy="build the data set again")
        raise BadInput(
            f"{place} is no data set folder (it has no manifest.json of `perse data`); build one, or give a .jsonl file"
        )
    elif fold is not None:
        raise BadInput(f"{place} is a file of examples and has no folds; leave the fold out")
    elif view != DEFAULT_VIEW:
        raise BadInput(
            f"{place} is a file of examples and shows them as they were exported; give the data set folder, or export it so"
        )
    else:
        with unchanged_while_read(place):
            examples = [one for one in read_examples(place) if one.reviewer_id not in without]
            loaded = LoadedExamples(examples, file_digest(place), None, None)
    if not loaded.examples:
        raise BadInput(f"{place} holds no {split} examples; build it with more data, or choose the other split")
    return loaded
