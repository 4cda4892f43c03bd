"""How an engine is named and loaded. A new engine is one file, with its `EngineKind`, and one line in `perse.judging.loading.ENGINES`.

Loading any judge gives the same three: its engine, its renderer and its identity.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perse.files.path_names import place_named, run_around

if TYPE_CHECKING:
    from perse.engines.base import ChatEngine, Engine
    from perse.rendering.prompt import Renderer, TextRenderer


@dataclass(frozen=True)
class JudgeName:
    """A judge's name, taken apart. `url` is set for servers only, `adapter` and `local` for models of this machine only."""

    engine: str
    """The name of its `EngineKind`."""
    model: str
    adapter: str | None = None
    url: str | None = None
    local: bool = False

    @property
    def folders(self) -> list[Path]:
        """The training runs or models on this machine that the judge is made of."""
        return [place_named(part) for part in (self.model, self.adapter) if part] if self.local else []


@dataclass(frozen=True)
class Hardware:
    """What an engine takes of the machine that it is on, and of a server. Answers depend on it by rounding alone, so workers of one run may differ in it."""

    memory_gb: float | None = None
    """GiB for the keys and values of prompts; by default as the engine chooses."""
    tensor_parallel: int = 1
    """GPUs over which vLLM splits the model."""
    concurrency: int | None = None
    """Requests that are under way at a server at once; by default 32."""


USUAL = Hardware()
"""What engines take by themselves."""


@dataclass(frozen=True)
class LoadOptions:
    """How a judge is loaded; an engine ignores options that do not concern it."""

    dtype: str = "bfloat16"
    context: int | None = None
    """Tokens to use, at most what the model was made for."""
    tokenizer: str | None = None
    """Of a served model whose folder is not on this machine."""
    trust_remote_code: bool = False
    hardware: Hardware = USUAL
    adapters: tuple[Path, ...] = ()
    """Adapters that the engine will be asked for once it is loaded (`with_adapter`), where it can hold several."""

    @property
    def identity(self) -> dict[str, Any]:
        """What answers depend on."""
        return {name: value for name, value in vars(self).items() if name not in ("hardware", "adapters")}


def portable(name: str) -> str:
    """Of a folder on this machine its name, however its path is written; any other name as it is. What a training run left in its
    folder is named with the run, or all judges would be called `merged`."""
    if not place_named(name).is_dir():
        return name
    folder = Path(os.path.realpath(place_named(name)))
    run = run_around(folder)
    return f"{run.name}/{folder.name}" if run else folder.name


@dataclass(frozen=True)
class Identity:
    """Who judges, as every judgement names it; `digest` is over all weights, where they are at hand."""

    model: str
    adapter: str | None = None
    digest: str = ""

    @property
    def portable(self) -> Identity:
        """The same without paths: of a folder only its name, as the weights have a digest."""
        return replace(self, model=portable(self.model), adapter=self.adapter and portable(self.adapter))


@dataclass(frozen=True)
class Loaded:
    """The parts of a judge: engine, renderer and identity. An engine of words goes with a `TextRenderer`."""

    engine: Engine | ChatEngine
    renderer: Renderer | TextRenderer
    identity: Identity
    in_words: str = ""
    """Why the judge is asked in words, if that is not plain from its name: nobody should find out from what the answers lack."""


@dataclass(frozen=True)
class EngineKind:
    """One way to compute a judge's answers: what its judges are called, and how they are loaded."""

    name: str
    """The prefix of a judge's name."""
    form: str
    """The form of a whole name, such as "openai:URL#MODEL"."""
    says: str
    """Help in a few words."""
    load: Callable[[JudgeName, LoadOptions], Loaded]
    local: bool = False
    """Whether its judges are models of this machine or the hub: PATH, or PATH+ADAPTER."""
    read: Callable[[str], JudgeName] | None = None
    """Parses the rest of the name; by default all of it is the model."""
