"""One more adapter on the served model, without a restart: for administrators, and from one folder of the server's alone.

A request names a folder inside `adapters_from`; no path comes from outside. A name is given once in a server's life, and nothing is
unloaded: engines keep what they computed by an adapter's name, which so is never another's.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from pydantic import AfterValidator, ConfigDict, Field

from perse.errors import BadInput
from perse.models.finding import find_adapter
from perse.models.opening import check_adapter
from perse.serving.described import OF_BODIES, keyed_router
from perse.serving.problems import NotThere, brief
from perse.serving.schemas import ErrorBody, ServedModel
from perse.serving.service import Model
from perse.strict import Name, Strict

_PART = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_NAME = re.compile(rf"{_PART}(/{_PART})*")


def _plain(name: str) -> str:
    """It stands in lists of models, in logs and in what clients type."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"'{brief(name)}' cannot name an adapter; expected letters, digits, '.', '_' and '-', the first a letter or digit, and '/' "
            "between such parts"
        )
    return name


class Wanted(Strict):
    """An adapter to be served."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[Name, AfterValidator(_plain)] = Field(
        min_length=1, max_length=100, description="What clients ask for as `model`."
    )
    folder: Name = Field(
        min_length=1, description="A folder inside the server's `adapters_from`: an adapter, or a training run."
    )


@dataclass(frozen=True)
class More:
    """Where further adapters come from, and how they are made into models; `added` is told once one is served."""

    folder: Path
    base: Path
    model: Callable[[str, Path], Model]
    trust_remote_code: bool = False
    added: Callable[[str], None] = lambda name: None
    loading: set[str] = field(default_factory=set)
    """Names that are taken by a request on its way."""

    def load(self, wanted: Wanted) -> Model:
        """The model of a wanted adapter.

        Raises:
            NotThere: no such folder, or what they are in is gone.
            BadInput: it holds no adapter of this model.
        """
        try:
            entries = [*self.folder.iterdir()]
        except OSError as error:
            raise NotThere(f"adapters_from={self.folder} cannot be read any more ({error.strerror}); put it back") from None
        inside = {entry.name: entry for entry in entries if entry.is_dir() and not entry.name.startswith(".")}
        if wanted.folder not in inside:
            listed = ", ".join(sorted(inside)[:20]) or "nothing"
            raise NotThere(f"adapters_from has no folder '{wanted.folder[:200]}'; there are {listed}")
        adapter = find_adapter(str(inside[wanted.folder]), self.base).resolve()
        check_adapter(adapter, base=self.base, trust_remote_code=self.trust_remote_code)
        return self.model(wanted.name, adapter)


_ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "A name that is taken, or a folder without an adapter of this model."},
    404: {"model": ErrorBody, "description": "No such folder, or a server that takes no further adapters."},
}


def adapter_router() -> APIRouter:
    """The route that loads one more; what to load with is at `app.state.more_adapters`."""
    router = keyed_router("administration", _ERRORS)

    @router.post("/v1/adapters", responses=OF_BODIES)
    async def load_adapter(
        request: Request, wanted: Annotated[Wanted, Body(examples=[{"name": "second", "folder": "second-run"}])]
    ) -> ServedModel:
        """Serve one more adapter, under a name that is not taken; for administrators."""
        more: More | None = request.app.state.more_adapters
        if more is None:
            raise NotThere("this server takes no further adapters; start it with adapters_from=FOLDER")
        models = request.app.state.judge.models
        if wanted.name in models or wanted.name in more.loading:
            raise BadInput(f"'{wanted.name}' is served already; give another name")
        more.loading.add(wanted.name)
        try:
            model = await asyncio.to_thread(more.load, wanted)
            models[wanted.name] = model
            more.added(wanted.name)
        finally:
            more.loading.discard(wanted.name)
        return model.told

    return router
