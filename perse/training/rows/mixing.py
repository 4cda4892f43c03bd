"""Examples of more data sets than one (`data.mix`), each set by its weight.

A set's examples are dealt like cards, pack after pack, each pack shuffled anew: a pass over `data.path` takes as many as the set's size times
its weight, and goes on where the pass before stopped. So after any number of passes no example has come twice more than another, and
what a small weight leaves over is carried on.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from perse.data.dataset.folder import is_data_folder
from perse.data.load import LoadedExamples, load_examples
from perse.errors import BadInput
from perse.records import EXAMPLES, Example
from perse.settings.training import Data


def refuse_twice(data: Data) -> None:
    """
    Raises:
        BadInput: a set is named twice.
    """
    seen = {os.path.realpath(data.path)}
    for mixed in data.mix:
        place = os.path.realpath(mixed.path)
        if place in seen:
            raise BadInput(
                f"data.mix names {mixed.path}, which is named already; give each set once, with its whole weight (that of data.path is 1)"
            )
        seen.add(place)


def mixed_in(
    data: Data, first: list[Example], load: Callable[[str], LoadedExamples], *, epoch: int, seed: int
) -> tuple[list[Example], list[str], bool]:
    """The examples of a pass, those of `data.path` first; digests of the other sets; and whether another pass has others.

    Args:
        first: the examples of `data.path`.
        load: the training examples of a set by its path.
    Raises:
        BadInput: a set that cannot be read, of another kind, or with validation readers of `data.path`.
    """
    refuse_twice(data)
    examples, digests, redrawn = list(first), [], False
    unseen = _validation_readers(data) if data.mix else frozenset()
    for at, mixed in enumerate(data.mix):
        try:
            other = load(mixed.path)
        except BadInput as error:
            raise BadInput(f"data.mix names {mixed.path}: {error}") from None
        if type(other.examples[0]) is not type(first[0]):
            raise BadInput(
                f"data.mix names {mixed.path}, whose examples are {_kind(other.examples[0])}, and data.path has {_kind(first[0])}; give "
                "data sets of one kind"
            )
        if known := sorted({one.reviewer_id for one in other.examples if one.reviewer_id is not None} & unseen):
            raise BadInput(
                f"data.mix names {mixed.path}, which has {len(known)} of the validation readers of {data.path}, such as {known[0]}; what is "
                "scored on them later would say nothing. Build the sets with one seed, or leave these readers out"
            )
        examples += dealt(other.examples, mixed.weight, epoch=epoch, seed=f"{seed} {at}")
        digests.append(other.digest)
        redrawn = redrawn or other.redrawn or not mixed.weight.is_integer()
    return examples, digests, redrawn


def dealt(examples: list[Example], weight: float, *, epoch: int, seed: str) -> list[Example]:
    """The examples of pass `epoch`, counted from 0, each about `weight` times."""
    begin, end = (round(passes * weight * len(examples)) for passes in (epoch, epoch + 1))
    packs: dict[int, list[Example]] = {}
    found = []
    for place in range(begin, end):
        pack, card = divmod(place, len(examples))
        if pack not in packs:
            packs[pack] = random.Random(f"{seed} {pack}").sample(examples, len(examples))
        found.append(packs[pack][card])
    return found


def _validation_readers(data: Data) -> frozenset[str]:
    """Of `data.path`, where it is a data set folder that has such a side."""
    if not is_data_folder(Path(data.path)) or data.split != "train":
        return frozenset()
    try:
        held = load_examples(data.path, split="valid", fold=data.fold)
    except BadInput:  # it has none
        return frozenset()
    return frozenset(one.reviewer_id for one in held.examples if one.reviewer_id is not None)


def _kind(example: Example) -> str:
    return next((name for name, kind in EXAMPLES.items() if kind is type(example)), type(example).__name__)
