"""Judges trained for a study: one recipe, run once for each thing that the study varies, in OUT/trained/NAME.

Each is an ordinary training run: the same command continues it after a kill, and a finished one is not trained again. All
settings are read before anything is trained, so that a mistake in them costs no hours. One process trains; for many devices
train the judges with train.py and compare their runs with `perse compare`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.questions import Question
from perse.settings.training import TrainConfig, load_config
from perse.studies.frame.running import Asking

TRAINED = "trained"


@dataclass(frozen=True)
class Recipe:
    """A training recipe, as `perse train --config CONFIG key=value ...` takes it."""

    config: str
    overrides: tuple[str, ...] = ()


def configs(
    recipe: Recipe, varied: Mapping[str, Mapping[str, Any]], *, asking: Asking, question: Question, out: Path
) -> dict[str, TrainConfig]:
    """The settings of each judge by its name.

    Args:
        varied: name -> the settings of section `data` that are this judge's own, such as {"k": 3}.
    Raises:
        BadInput: a setting that is wrong, or one given that is the study's to set.
    """
    own = {"output", *(f"data.{field}" for fields in varied.values() for field in fields)}
    for override in recipe.overrides:
        key = override.partition("=")[0]
        if key in own:
            raise BadInput(f"'{override}': {key} is set by the study itself; leave it out")
    given = [f"data.path={asking.examples}", f"data.question={question.name}", *recipe.overrides]
    if asking.fold is not None:
        given.append(f"data.fold={asking.fold}")
    made = {}
    for name, fields in varied.items():
        config = load_config(recipe.config, given)
        values = config.data.model_dump() | dict(fields)
        changed = {"data": type(config.data).model_validate(values), "output": str(out / TRAINED / name)}
        made[name] = config.model_copy(update=changed)
    return made


def identity(made: Mapping[str, TrainConfig]) -> dict[str, Any]:
    """What makes two studies train the same judges: all settings but where they lie."""
    return {name: config.model_dump(mode="json", exclude={"output": True, "data": {"path"}}) for name, config in made.items()}


def trained(made: Mapping[str, TrainConfig]) -> dict[str, str]:
    """Train what is not trained yet; each judge's name on the command line by its name here.

    Raises:
        BadInput, ModelNotFound: data or model that cannot be used.
    """
    if not made:
        return {}
    import os

    from perse.training.trainer import train

    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return {name: str(train(config)) for name, config in made.items()}


ONE_TRAINING = "each judge of its own was trained once, with one seed: intervals know nothing of trainings, and another seed may move a value by more than they say"
"""The note of whatever compares judges that a study trained."""


def kinds_of_judge(judge: str | None, recipe: Recipe | None) -> Sequence[str]:
    """Which kinds of judge a study has: "as given", "retrained" or both.

    Raises:
        BadInput: neither.
    """
    kinds = [*(["as given"] if judge is not None else []), *(["retrained"] if recipe is not None else [])]
    if not kinds:
        raise BadInput("the study has no judge; name one with --judge, or train its own with --retrain CONFIG")
    return kinds
