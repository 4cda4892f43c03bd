"""`stacking.json`: an ordinal model beside its judge, with all that it needs to be applied, and what it may be applied to.

    P(score > k) = 1 / (1 + exp(cut_k - sum_f weight_f x_f))          proportional odds (McCullagh, 1980)

It holds one such model for every set of sources that was there often enough (`perse.stacking.sources`), each fitted on the examples that have
these: what was absent is not guessed (reduced models: Saar-Tsechansky and Provost, 2007, "Handling missing values when applying classification
models"). Texts stand in it as digests; readers, by key: those whose answers it was fitted on, and those of the training side.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from perse.errors import BadInput
from perse.files.disk import write_whole
from perse.files.path_names import run_around
from perse.formats.json_text import read_object
from perse.models.model_files import STACKING as STACKING
from perse.records import explain
from perse.scale import SCORES
from perse.stacking.sources import BIAS, SOURCES, Known
from perse.strict import Strict

_KIND: Literal["stacking"] = "stacking"
LEAVE_OUT = "leave it out with --no-stacking"
"""What can be done about one that does not belong here, by whoever asks the judge."""
_FIT_AGAIN = "fit it again with perse fit, or move it"


_LARGEST = 1e100
"""Of a weight or a cut, either way: far beyond what is ever fitted, and sums of products with features stay within what a float holds."""
_Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST)]


class _Part(Strict):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class StackedJudge(_Part):
    """Whose answers are combined. Two judges are one where their weights have one digest; without digests, where they have one name."""

    model: str
    adapter: str | None = None
    sha256: str = ""

    def differs(self, other: StackedJudge) -> bool:
        if self.sha256 and other.sha256:
            return self.sha256 != other.sha256
        return (self.model, self.adapter) != (other.model, other.adapter)

    def __str__(self) -> str:
        named = f"{self.model}+{self.adapter}" if self.adapter else self.model
        return f"{named} ({self.sha256[:12]})" if self.sha256 else named


class StackedData(_Part):
    """The data set whose training side the numbers are of."""

    sha256: str
    fold: int | None = None

    def refuse_other(self, where: object, *, sha256: str, fold: int | None, leave_out: str = LEAVE_OUT) -> None:
        """That this is the data set that is asked about.

        Args:
            where: what has these numbers; is named.
            leave_out: what else can be done about it.
        Raises:
            BadInput: it is another, or another fold: its training readers may be the very ones asked about.
        """
        asked = StackedData(sha256=sha256, fold=fold)
        if self != asked:
            mine = "another fold" if self.sha256 == sha256 else "another data set"
            raise BadInput(
                f"{where}: has the numbers of the training side of {mine} ({self}), and asked about is {asked}; fit it again with perse fit, "
                f"or {leave_out}"
            )

    def __str__(self) -> str:
        return self.sha256[:12] + ("" if self.fold is None else f", fold {self.fold}")


class OrdinalModel(_Part):
    """Proportional odds of the sources named."""

    sources: tuple[str, ...]
    cuts: tuple[_Number, ...]
    """One between each two labels, rising."""
    weights: dict[str, _Number]
    """By feature, as they are: nothing is standardised when the model is applied."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if unknown := [source for source in self.sources if source not in SOURCES]:
            raise ValueError(f"found the source '{unknown[0]}', expected some of {', '.join(SOURCES)}")
        if self.weights.keys() != {name for source in self.sources for name in SOURCES[source]}:
            raise ValueError(f"found weights of {', '.join(self.weights)}, expected those of {', '.join(self.sources)}")
        if any(low > high for low, high in pairwise(self.cuts)):
            raise ValueError("the cuts fall, expected them to rise")
        return self


class Stacking(_Part):
    """The contents of the file."""

    kind: Literal["stacking"] = _KIND
    version: Literal[1] = 1
    question: str
    scale: tuple[str, ...]
    """The labels of the answers."""
    judge: StackedJudge
    data: StackedData
    examples: int = Field(ge=1)
    readers: tuple[str, ...]
    """`reader_key` of those whose true answers it was fitted on: it looks better than it is on them."""
    known: Known
    models: tuple[OrdinalModel, ...] = Field(min_length=1)
    """The one with most sources first."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for model in self.models:
            if len(model.cuts) != len(self.scale) - 1:
                raise ValueError(f"found {len(model.cuts)} cuts of {len(self.scale)} labels, expected one between each two")
        if not any(set(model.sources) <= {BIAS} for model in self.models):
            raise ValueError(f"found no model of {BIAS} alone, which is asked where nothing else is there")
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """Those that it knows at best."""
        return self.models[0].sources

    @property
    def digest(self) -> str:
        """sha256 of what it says."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def text(self) -> str:
        """The file's text."""
        return self.model_dump_json(indent=1) + "\n"

    def refuse_others(self, where: object, *, judge: StackedJudge) -> None:
        """That it is of this judge, and on the scale of scores.

        Raises:
            BadInput: it is not; `where` it was found is named.
        """
        if self.scale != SCORES.labels:
            raise BadInput(f"{where}: is of the scale {', '.join(self.scale)}, expected {SCORES.shown}; {_FIT_AGAIN}")
        if self.judge.differs(judge):
            raise BadInput(
                f"{where}: was fitted on the answers of another judge, {self.judge}, and this one is {judge}; {_FIT_AGAIN}"
            )


def home(folder: Path) -> Path:
    """Where the stacking of a judge lies: in its folder or, of what a training run left in its own, in the run's."""
    return run_around(folder) or folder


def read_stacking(path: Path) -> Stacking:
    """Raises:
    BadInput: it is none; the message says which field.
    """
    fields = read_object(path, remedy=_FIT_AGAIN)
    if fields.get("kind") != _KIND:
        raise BadInput(f"{path}: is no stacking (it has no kind '{_KIND}'); {_FIT_AGAIN}")
    try:
        return Stacking.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"{path}: stacking, {explain(error)}; {_FIT_AGAIN}") from None


def check_place(path: Path, *, overwrite: bool) -> None:
    """That a stacking may be written at `path`.

    Raises:
        BadInput: there is no folder, something else than a stacking lies there, or one that may not be replaced.
    """
    if path.is_symlink():
        raise BadInput(f"{path}: is a link to {path.readlink()}, and is not written through; name the file itself")
    if not path.parent.is_dir():
        raise BadInput(f"{path}: there is no folder {path.parent}; make it, or give another --out")
    if not path.exists():
        return
    try:
        read_stacking(path)
    except BadInput:
        raise BadInput(
            f"{path}: is no stacking that perse wrote, and is not replaced; move it, or give another --out"
        ) from None
    if not overwrite:
        raise BadInput(f"{path}: already holds a stacking; give another --out, or --overwrite to replace it")


def write_stacking(path: Path, stacking: Stacking) -> None:
    """Whole or not at all."""
    write_whole(path, stacking.text)


def for_manifest(stacking: Stacking | None) -> dict[str, Any]:
    """What a judge's answers depend on besides the judge; nothing without a stacking, so that older runs go on."""
    return {"stacking": stacking.digest} if stacking else {}
