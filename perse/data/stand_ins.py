"""What stands in the place of a reader's own profile, by name: how judges that do not know the reader enter a table."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from perse.data.counterfactual import dealt_anew, with_another_profile, without_profile
from perse.data.load import LoadedExamples, load_examples
from perse.data.shots import with_shots
from perse.errors import BadInput
from perse.records import PairwiseExample, PointwiseExample


class ProfileShown(StrEnum):
    """What a judge is shown before the query."""

    OWN = "own"
    EMPTY = "empty"
    """Nothing: an unpersonalized judge."""
    SHOTS = "shots"
    """Answers of other readers, the same for every query: an unpersonalized few-shot judge."""
    ANOTHER = "another"
    """Another reader's profile."""
    SHUFFLED = "shuffled"
    """The reader's own reviews and scores behind the wrong texts."""


def stand_in(loaded: LoadedExamples, shown: ProfileShown, *, shots: int = 3, seed: int = 0) -> LoadedExamples:
    """The examples with what is `shown`; those for which there is none (see `data.counterfactual`) are left out.

    Raises:
        BadInput: examples without profiles (prompts, summaries), or shots of a file that has no training side.
    """
    if shown is ProfileShown.OWN:
        return loaded
    loaded = replace(loaded, profile=str(shown))
    pointwise = [example for example in loaded.examples if isinstance(example, PointwiseExample)]
    pairwise = [example for example in loaded.examples if isinstance(example, PairwiseExample)]
    if len(pointwise) + len(pairwise) < len(loaded.examples):
        raise BadInput(f"--profile {shown} needs texts or pairs with profiles; prompts and summaries are judged as they are")
    if shown is ProfileShown.EMPTY:
        return replace(loaded, examples=[*map(without_profile, pointwise), *map(without_profile, pairwise)])
    if shown is ProfileShown.SHUFFLED:
        return replace(loaded, examples=[*dealt_anew(pointwise, seed=seed), *dealt_anew(pairwise, seed=seed)])
    if shown is ProfileShown.ANOTHER:
        return replace(
            loaded,
            examples=[
                *(with_another_profile(pointwise, pointwise, seed=seed) if pointwise else ()),
                *(with_another_profile(pairwise, pairwise, seed=seed) if pairwise else ()),
            ],
        )
    if loaded.folder is None:
        raise BadInput(
            "--profile shots takes its shots from the training side; give the data set folder, not a file of examples"
        )
    train = load_examples(loaded.folder, split="train", fold=loaded.fold).examples
    points = with_shots(pointwise, [e for e in train if isinstance(e, PointwiseExample)], shots=shots, seed=seed)
    pairs = with_shots(pairwise, [e for e in train if isinstance(e, PairwiseExample)], shots=shots, seed=seed)
    return replace(loaded, examples=[*points, *pairs])
