"""Settings of a training run: typed, read from YAML, changed by `key=value`, refused in plain words.

A recipe is a YAML file of configs/train (packaged with perse); overrides are dotted keys, as in `train.learning_rate=3e-4`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from perse.errors import BadInput
from perse.rendering import ANSWER_TOKENS, MAX_WORDS


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Model(_Section):
    path: str
    """Folder, embedded name or hub name of the model to start from."""
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    """Type the weights are held in. Full fine-tuning wants float32 here and `train.precision: bf16`."""
    context: int | None = Field(default=None, ge=64)
    """Longest prompt and answer in tokens; by default what the model was made for."""


class Data(_Section):
    path: str = Field(min_length=1)
    """A data set folder, or a file of exported JSON lines."""
    split: Literal["train", "valid"] = "train"
    fold: int | None = Field(default=None, ge=0)
    """Of a cross-fitted data set: train on all folds but this one."""
    question: str | None = None
    """What to learn to answer; by default `pointwise` or `pairwise` after the data."""
    max_examples: int | None = Field(default=None, ge=1)
    """Train on a seeded sample of this many examples."""
    answer_tokens: int = Field(default=ANSWER_TOKENS, ge=1)
    """Room kept for the answer, so that a prompt has the same profile here as when judging (PerSE, section 4.2)."""
    max_words: int = Field(default=MAX_WORDS, ge=1)
    """Longest prompt in words (PerSE, section 4.1)."""


class Lora(_Section):
    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: str | tuple[str, ...] = "all-linear"
    """Modules that get an adapter, as peft names them."""


class Train(_Section):
    epochs: float = Field(default=1.0, gt=0)
    steps: int | None = Field(default=None, ge=1)
    """Optimizer steps; when given, `epochs` does not count."""
    batch_size: int = Field(default=4, ge=1)
    """Examples per device and forward pass."""
    accumulation: int = Field(default=1, ge=1)
    """Forward passes per optimizer step."""
    learning_rate: float = Field(gt=0)
    scheduler: Literal["constant", "constant_with_warmup", "linear", "cosine"] = "cosine"
    warmup: float = Field(default=0.03, ge=0, lt=1)
    """Share of the steps in which the learning rate rises."""
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    precision: Literal["as_loaded", "bf16"] = "as_loaded"
    """`bf16` computes in bfloat16 over weights held in `model.dtype`."""
    gradient_checkpointing: bool = False
    seed: int = 0
    save_every: int = Field(default=50, ge=1)
    """Steps between checkpoints: the most that a kill can lose."""
    keep_checkpoints: int = Field(default=2, ge=1)
    log_every: int = Field(default=5, ge=1)


class TrainConfig(_Section):
    model: Model
    data: Data
    lora: Lora | None = None
    """None trains all weights."""
    train: Train
    output: str = Field(min_length=1)
    """The run folder. The same command continues what it finds there."""

    @model_validator(mode="after")
    def _full_training_needs_float32(self) -> Self:
        if self.lora is None and self.model.dtype != "float32":
            raise ValueError(
                f"full fine-tuning of {self.model.dtype} weights loses small updates; set model.dtype=float32 and "
                "train.precision=bf16, or give a lora section"
            )
        return self


_SECTIONS: Mapping[str, type[_Section]] = {"model": Model, "data": Data, "lora": Lora, "train": Train}


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """The recipe at `path` (or a packaged recipe's name) with `key=value` overrides.

    Raises:
        BadInput: every problem at once: unknown keys with the nearest right name, wrong values, missing keys.
    """
    file = _recipe(path)
    try:
        settings = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(settings, dict):
        raise BadInput(f"{file} holds no settings; expected sections such as model, data and train")
    for override in overrides:
        _override(settings, override)
    problems = [_unknown(key) for key in _dotted(settings) if key not in known_keys()]
    if problems:
        raise BadInput("; ".join(problems))
    for section in ("model", "data", "train"):  # so that what is missing is named to the end
        settings.setdefault(section, {})
    try:
        return TrainConfig.model_validate(settings)
    except ValidationError as error:
        raise BadInput(f"{file}: " + "; ".join(_problem(e) for e in error.errors(include_url=False))) from None


def known_keys() -> tuple[str, ...]:
    """Every setting's dotted name, sections included."""
    names: list[str] = []
    for section in TrainConfig.model_fields:
        names.append(section)
        kind = _SECTIONS.get(section)
        names += [f"{section}.{name}" for name in kind.model_fields] if kind else []
    return tuple(names)


def _recipe(path: str | Path) -> Path:
    given = Path(path)
    if given.is_file():
        return given
    packaged = recipes()
    name = given.name.removesuffix(".yaml")
    if name in packaged and (len(given.parts) == 1 or given.parts[:2] == ("configs", "train")):
        return packaged[name]
    raise BadInput(f"there is no config file {given}; packaged recipes are {', '.join(sorted(packaged))}")


def recipes() -> dict[str, Path]:
    """Packaged training recipes by name: inside an installed perse, or beside it in a checkout."""
    inside = Path(str(files("perse"))) / "configs" / "train"
    beside = Path(str(files("perse"))).parent / "configs" / "train"
    folder = inside if inside.is_dir() else beside
    return {file.stem: file for file in sorted(folder.glob("*.yaml"))}


def _override(settings: dict[str, Any], override: str) -> None:
    key, equals, value = override.partition("=")
    if not equals:
        raise BadInput(f"'{override}' is no setting; write key=value, as in train.learning_rate=3e-4")
    if key not in known_keys():
        raise BadInput(_unknown(key))
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError:
        parsed = value
    section, _, name = key.partition(".")
    if not name:
        settings[section] = parsed
        return
    inner = settings.get(section)
    settings[section] = {**(inner if isinstance(inner, dict) else {}), name: parsed}


def _dotted(settings: dict[str, Any]) -> Iterator[str]:
    for section, inner in settings.items():
        yield str(section)
        if isinstance(inner, dict):
            yield from (f"{section}.{name}" for name in inner)


def _unknown(key: str) -> str:
    near = difflib.get_close_matches(key, known_keys(), n=1, cutoff=0.5) or [
        known for known in known_keys() if known.rpartition(".")[2] == key.rpartition(".")[2]
    ]
    hint = f"did you mean '{near[0]}'?" if near else f"settings are {', '.join(known_keys())}"
    return f"there is no setting '{key}'; {hint}"


def _problem(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "missing":
        return f"setting '{where}' is missing; give {where}=..."
    message = error["msg"].removeprefix("Value error, ")
    return f"{where}: {message[0].lower()}{message[1:]}, found {error['input']!r}" if where else message
