"""From a judge's name to what the judge is made of: which engine, which model, which adapter.

    PATH               the embedded engine, in this process
    vllm:PATH          vLLM, in this process
    openai:URL#MODEL   a server that speaks the OpenAI API: vLLM's, perse's own, or a paid one

PATH is whatever `models.find` knows, and PATH+ADAPTER adds a LoRA adapter.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perse.addresses import plain_address
from perse.answering.base import Identity, Loaded
from perse.errors import BadInput
from perse.installing import install

KEYS = "into the environment variable OPENAI_API_KEY"
"""Where the key of a server belongs."""


@dataclass(frozen=True)
class JudgeName:
    """A judge's name, taken apart. `url` is set for servers only, `adapter` for local models only."""

    engine: Literal["transformers", "vllm", "openai"]
    model: str
    adapter: str | None = None
    url: str | None = None

    @property
    def folders(self) -> list[Path]:
        """The training runs or models on this machine that the judge is made of."""
        return [] if self.url else [Path(part).expanduser() for part in (self.model, self.adapter) if part]


def parse_judge(name: str) -> JudgeName:
    """The parts of a judge's name.

    Raises:
        BadInput: a server without an address, an address without `openai:`, or no name at all.
    """
    if name.startswith("openai:"):
        address = name.removeprefix("openai:")
        if not address.lower().startswith(("http://", "https://")):
            raise BadInput("what follows 'openai:' has no address; write openai:http://HOST:PORT/v1#MODEL")
        url, model = _server(address)
        return JudgeName("openai", model, url=url)
    found = re.search(r"https?://.*", name, re.IGNORECASE)
    if found and not Path(name).expanduser().exists():
        url, _ = _server(found[0])
        raise BadInput(f"{url} is an address; write openai:{url}#MODEL")
    if re.match(r"[^/]*:[^/]*@", name) and not Path(name).expanduser().exists():
        raise BadInput(
            f"the judge's name holds a user name and a password; write openai:http://HOST:PORT/v1#MODEL, and put a key {KEYS}"
        )
    engine: Literal["transformers", "vllm"] = "vllm" if name.startswith("vllm:") else "transformers"
    model = name.removeprefix("vllm:")
    if not model.strip("+ "):
        raise BadInput(f"'{name}' names no judge; give a training run, a model folder, an embedded model or a hub name")
    from perse.models.finding import is_folder

    if is_folder(Path(model).expanduser()):  # a folder may have a + in its name
        return JudgeName(engine, model)
    model, _, adapter = model.rpartition("+") if "+" in model else (model, "", "")
    return JudgeName(engine, model, adapter or None)


def _server(address: str) -> tuple[str, str]:
    """URL and MODEL of URL#MODEL."""
    url, _, model = address.partition("#")
    if "@" in model and "/" not in url.partition("://")[2]:  # the # of a password, and no model's
        url = address
    return plain_address(url, of="the judge's address", keys=KEYS), model


def load_judge(name: str, *, dtype: str, context: int | None, tokenizer: str | None, trust_remote_code: bool = False) -> Loaded:
    """See `Judge.load`."""
    parts = parse_judge(name)
    if parts.url is not None:
        from perse.judging.connecting import connect

        return connect(parts.url, parts.model, tokenizer=tokenizer, context=context, trust_remote_code=trust_remote_code)
    if parts.engine == "vllm":
        require_vllm()
    import torch  # noqa: F401  # where it is missing, the extra with it is named, and not transformers' own

    from perse.models.finding import find, find_adapter

    path = find(parts.model, trust_remote_code=trust_remote_code)
    adapter = find_adapter(parts.adapter, path) if parts.adapter else None
    return load_local(parts, path, adapter, dtype=dtype, context=context, trust_remote_code=trust_remote_code)


def load_local(
    parts: JudgeName,
    path: Path,
    adapter: Path | None,
    *,
    dtype: str,
    context: int | None,
    trust_remote_code: bool = False,
) -> Loaded:
    """A judge in this process, of the model folder `path` and perhaps an adapter's."""
    from perse.engines.base import Engine
    from perse.models.finding import context_length, judge_digest
    from perse.models.opening import check_adapter, check_model, tokenizer
    from perse.rendering.prompt import Renderer

    check_model(path, trust_remote_code=trust_remote_code)
    if adapter is not None:
        check_adapter(adapter, base=path, trust_remote_code=trust_remote_code)
    longest = context_length(path)
    renderer = Renderer(tokenizer(path, trust_remote_code=trust_remote_code), min(context or longest, longest))
    engine: Engine
    if parts.engine == "vllm":
        from perse.engines.vllm import VLLMEngine

        engine = VLLMEngine.load(
            path, adapter=adapter, dtype=dtype, context=renderer.context, trust_remote_code=trust_remote_code
        )
    else:
        from perse.engines.transformers import TransformersEngine

        engine = TransformersEngine.load(path, adapter=adapter, dtype=dtype, trust_remote_code=trust_remote_code)
    return Loaded(engine, renderer, Identity(parts.model, parts.adapter, judge_digest(path, adapter)))


def require_vllm() -> None:
    """Raises:
    BadInput: vLLM is not installed; says how it is.
    """
    if not vllm_installed():
        raise BadInput(
            f"vLLM is not installed; on a GPU machine: {install('vllm')}; on a CPU: see docs/serving.md, or leave "
            "'vllm:' out to use the embedded engine"
        )


def vllm_installed() -> bool:
    """Whether vLLM can be imported."""
    return importlib.util.find_spec("vllm") is not None
