"""Adapters that rows name: each shard is judged with one, and a run with as many as its rows name.

A name is that of a folder in one folder, `--adapters`: a LoRA adapter, or the training run that made it. Rows without a name are judged by the judge
as it is. The run keeps the weights' digest of each adapter that a row names; a worker that finds others there stops.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perse.engines.base import ChatEngine, Engine
from perse.engines.kind import Loaded
from perse.errors import BadInput, RunMismatch
from perse.judging.judge import Judge
from perse.judging.loading import parse_judge
from perse.models.finding import find, find_adapter, weights_digest
from perse.rendering.prompt import Renderer, TextRenderer


@dataclass(frozen=True)
class Adapter:
    """An adapter as a run keeps it."""

    folder: str
    weights: str


@dataclass
class Named:
    """The adapters in a folder, for a judge; each is looked at when it is first asked for.

    Raises:
        BadInput: the judge is no model of this machine, has an adapter of its own, or there is no such folder.
    """

    folder: Path
    judge: str
    used: dict[str, Adapter] = field(default_factory=dict)
    """Those that were asked for."""

    def __post_init__(self) -> None:
        parts = parse_judge(self.judge)
        if not parts.local or parts.adapter:
            raise BadInput("--adapters puts adapters on the judge's own model; give a model of this machine without an adapter")
        if not self.folder.is_dir():
            raise BadInput(f"{self.folder}: no such folder; --adapters is a folder of adapters")
        self._base = find(parts.model)

    def weights(self, name: str) -> str:
        """The digest of an adapter's weights; empty for no adapter.

        Raises:
            BadInput: there is none of this name, or it does not fit the model.
        """
        if name and name not in self.used:
            from perse.models.opening import check_adapter

            there = sorted(one.name for one in self.folder.iterdir() if one.is_dir() and not one.name.startswith("."))
            if name not in there:
                raise BadInput(f"{self.folder} has no adapter '{name}'; there are {', '.join(there[:20]) or 'none'}")
            place = find_adapter(str(self.folder / name), self._base).resolve()
            check_adapter(place, base=self._base)
            self.used[name] = Adapter(str(place), weights_digest(place))
        return self.used[name].weights if name else ""


class Adapted:
    """The judge with each adapter, loaded when a shard names it; an engine that holds one model at a time keeps the last alone.

    Args:
        judge: without an adapter.
        load: its parts anew, with the adapter in a folder or, for None, without; for such an engine.
    """

    def __init__(self, judge: Judge, adapters: Mapping[str, Adapter], load: Callable[[Path | None], Loaded]) -> None:
        self._adapters, self._load = adapters, load
        self._model = judge.identity.model
        self._known = {"": judge}
        self._lock = threading.Lock()

    def judge(self, name: str) -> Judge:
        """The judge with this adapter; without one for an empty name.

        Raises:
            RunMismatch: the adapter has other weights than when the run was begun.
            BadInput, ModelNotFound: it cannot be loaded.
        """
        with self._lock:
            if name not in self._known:
                engine, renderer = self._asked_with(self._checked(name) if name else None)
                weights = self._adapters[name].weights if name else ""
                self._known[name] = Judge(engine, renderer, name=self._model, adapter=name or None, digest=weights)
            return self._known[name]

    def _asked_with(self, adapter: Path | None) -> tuple[Engine | ChatEngine, Renderer | TextRenderer]:
        base = self._known.get("")
        if base is not None and adapter is not None and (several := getattr(base.engine, "with_adapter", None)):
            return several(adapter), base.renderer
        del base
        self._known.clear()  # its memory is needed
        loaded = self._load(adapter)
        return loaded.engine, loaded.renderer

    def _checked(self, name: str) -> Path:
        kept = self._adapters[name]
        folder = Path(kept.folder)
        if not folder.is_dir() or weights_digest(folder) != kept.weights:
            raise RunMismatch(
                f"the adapter '{name}' in {folder} is not the one that the run was begun with; score into another folder"
            )
        return folder
