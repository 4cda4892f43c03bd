"""Facts of a training run, read from its folder without torch; missing ones are None, so that a card cannot fail a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perse.errors import BadInput
from perse.files.runlog import read_lines, read_manifest, what_it_is
from perse.formats.json_text import parsed
from perse.formats.plain_files import own_bytes, refuse_endless
from perse.settings.config import Section
from perse.settings.training import Data, Lora, Model, Train, TrainConfig
from perse.settings.watching import Watch

LOG = "log.jsonl"
ROWS = ".rows"
"""The training rows, as `training.rows` keeps them."""
MERGED = "merged"
ADAPTER = "adapter"
_SECTIONS: Mapping[str, type[Section]] = {"model": Model, "data": Data, "lora": Lora, "train": Train, "watch": Watch}


@dataclass(frozen=True)
class Trained:
    """The training data, as far as known."""

    examples: int | None = None
    reviewers: int | None = None
    too_long: int | None = None


@dataclass(frozen=True)
class RunFacts:
    """One training run. `run`, `context` and `environment` are the manifest's parts."""

    folder: Path
    run: Mapping[str, Any]
    context: Mapping[str, Any]
    environment: Mapping[str, Any]
    trained: Trained
    lines: tuple[Mapping[str, Any], ...] | None
    """Of log.jsonl; None if it cannot be read."""

    def setting(self, section: str, name: str) -> Any:
        return _part(_part(self.run, "config"), section).get(name)

    @property
    def model(self) -> str:
        """What `model.path` named; a folder so that no other reader takes it for a name on the hub."""
        path = str(self.setting("model", "path"))
        return f"./{path}" if self.context.get("model_is_folder") and not Path(path).is_absolute() else path

    @property
    def mixed(self) -> list[tuple[str, Any, str | None]]:
        """Path, weight and digest of each data set beside the first (`data.mix`)."""
        sets = self.setting("data", "mix")
        digests = str(self.run.get("mixed_digests") or "").split()
        known = [one for one in sets if isinstance(one, Mapping)] if isinstance(sets, list) else []
        told = digests if len(digests) == len(known) else [None] * len(known)
        return [(str(one.get("path")), one.get("weight"), digest) for one, digest in zip(known, told, strict=True)]

    @property
    def question(self) -> str:
        return str(self.run.get("question") or "unknown")

    @property
    def has_adapter(self) -> bool:
        return bool(_part(self.run, "config").get("lora"))

    @property
    def steps(self) -> int | None:
        return max((int(line["step"]) for line in self.lines or () if "loss" in line), default=None)

    @property
    def passes(self) -> str | None:
        """How often the kept weights have seen the training data: less than one of a run that ended before."""
        kept = self.kept_step if self.kept_step is not None else self.steps
        seen = [
            line["epoch"]
            for line in self.lines or ()
            if "loss" in line and "epoch" in line and int(line["step"]) <= (kept or 0)
        ]
        return f"{max(seen):.3g}" if seen else None

    @property
    def judgings(self) -> list[Mapping[str, Any]]:
        """The lines of judging while training, in order."""
        return [line for line in self.lines or () if "eval_seconds" in line]

    @property
    def kept_step(self) -> int | None:
        """The step whose weights were kept for being judged best, be it the only one judged; None if the last were kept."""
        return next((int(line["step"]) for line in reversed(self.lines or ()) if "best" in line), None)

    @property
    def chosen(self) -> bool:
        """Whether the kept step is one of several judged, the untrained model aside, and not the only one."""
        return self.kept_step is not None and sum(int(line["step"]) > 0 for line in self.judgings) > 1

    def changed(self) -> dict[str, Any]:
        """Every setting that is not the default, by its dotted name; a section that was left out is None."""
        found: dict[str, Any] = {}
        for section, values in _part(self.run, "config").items():
            if not isinstance(values, Mapping):
                if values != _default(TrainConfig, section) or section == "lora":
                    found[section] = values
                continue
            kind = _SECTIONS.get(section)
            for name, value in values.items():
                if kind is None or name not in kind.model_fields or value != _default(kind, name):
                    found[f"{section}.{name}"] = value
        return found


def read_facts(folder: Path) -> RunFacts:
    """What the training run in `folder` tells.

    Raises:
        BadInput: there is no manifest, or it is that of another kind of run.
    """
    manifest = read_manifest(folder)
    run = _part(manifest, "run")
    if run.get("kind") != "train":
        raise BadInput(f"{folder} holds {what_it_is(manifest)}, not of perse train; give a training run")
    try:
        lines: tuple[Mapping[str, Any], ...] | None = tuple(read_lines(folder / LOG)) or None
        if any(type(line.get("step")) is not int for line in lines or ()):
            lines = None
    except BadInput:  # damaged since; the card says that it is unknown
        lines = None
    trained = _trained(folder / ROWS, digest=run.get("rows_sha256"))
    return RunFacts(folder, run, _part(manifest, "context"), _part(manifest, "environment"), trained, lines)


def _trained(rows: Path, *, digest: Any) -> Trained:
    """Counts of the rows that were trained on; unknown if other rows are there now."""
    try:
        about = parsed(own_bytes(rows / "about.json"))
        if about["digest"] != digest:
            return Trained()
        examples = about.get("examples")  # rows of earlier versions do not say it
        if type(examples) is not int:
            refuse_endless(rows / "ids.npy")
            examples = np.unique(np.load(rows / "ids.npy", mmap_mode="r", allow_pickle=False)).size
        return Trained(examples, len(about["reviewers"]), len(set(about["too_long"])))
    except (OSError, ValueError, KeyError, TypeError):
        return Trained()


def _default(kind: type[Section], name: str) -> Any:
    """As JSON; for a field without a default an object that equals nothing."""
    field = kind.model_fields.get(name)
    if field is None or field.is_required():
        return object()
    value = field.get_default(call_default_factory=True)
    return list(value) if isinstance(value, tuple) else value


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = whole.get(name)
    return found if isinstance(found, Mapping) else {}
