"""Replacements of a reader's own profile, by name: unpersonalized judges for a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import cast

from perse.data.load import LoadedExamples, load_examples
from perse.data.variants.counterfactual import dealt_anew, with_another_profile, without_profile
from perse.data.variants.shots import with_shots
from perse.errors import BadInput
from perse.records import Example, PersonalExample


class ProfileShown(StrEnum):
    """The profile that a judge is shown."""

    OWN = "own"
    EMPTY = "empty"
    """None: an unpersonalized judge."""
    SHOTS = "shots"
    """Answers of other readers, the same for every query: an unpersonalized few-shot judge."""
    ANOTHER = "another"
    """Another reader's profile."""
    SHUFFLED = "shuffled"
    """The reader's own reviews and scores, attached to the wrong texts."""


def stand_in(
    loaded: LoadedExamples, shown: ProfileShown, *, among: LoadedExamples | None = None, shots: int = 3, seed: int = 0
) -> LoadedExamples:
    """The examples with the `shown` profile; those without one (see `data.counterfactual`) are left out.

    Args:
        among: whose profiles are given to others, such as the whole of which `loaded` is a sample.
    Raises:
        BadInput: examples without profiles (prompts, summaries), or shots from a file, which has no training side.
    """
    if shown is ProfileShown.OWN:
        return loaded
    loaded = replace(loaded, profile=str(shown))
    examples, donors = personal(loaded.examples), personal((among or loaded).examples)
    if len(examples) < len(loaded.examples):
        raise BadInput(f"--profile {shown} needs texts or pairs with profiles; prompts and summaries are judged as they are")
    if shown is ProfileShown.EMPTY:
        return replace(loaded, examples=[*map(without_profile, examples)])
    if shown is ProfileShown.SHUFFLED:
        return replace(loaded, examples=[*dealt_anew(examples, seed=seed)])
    if shown is ProfileShown.ANOTHER:
        return replace(loaded, examples=[*with_another_profile(examples, donors, seed=seed)])
    if loaded.folder is None:
        raise BadInput(
            "--profile shots takes its shots from the training side; give the data set folder, not a file of examples"
        )
    train = personal(load_examples(loaded.folder, split="train", fold=loaded.fold).examples)
    return replace(loaded, examples=[*with_shots(examples, train, shots=shots, seed=seed)])


def personal(examples: Sequence[Example]) -> list[PersonalExample]:
    """Those whose profile is a reader's own."""
    return [cast(PersonalExample, example) for example in examples if example.verdict]
