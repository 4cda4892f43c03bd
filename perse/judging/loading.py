"""From a judge's name to its parts: engine, model and adapter.

    PATH               the embedded engine, in this process
    vllm:PATH          vLLM, in this process
    openai:URL#MODEL   a server that speaks the OpenAI API: vLLM's, perse's own, or a paid one

PATH is whatever `models.find` knows, and PATH+ADAPTER adds a LoRA adapter. `ENGINES` is the list of what can stand before the
colon; a new engine is one file and one line there.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from perse.addresses import plain_address
from perse.engines.kind import EngineKind, Identity, JudgeName, Loaded, LoadOptions, portable
from perse.errors import BadInput
from perse.files.path_names import place_named
from perse.installing import install
from perse.registry import Registry

KEYS = "into the environment variable OPENAI_API_KEY"
"""The hint where a server's key belongs."""


def parse_judge(name: str) -> JudgeName:
    """The parts of a judge's name.

    Raises:
        BadInput: a server without an address, an address without `openai:`, or no name at all.
    """
    kind, rest = _kind(name)
    if not kind.local:
        return kind.read(rest) if kind.read else JudgeName(kind.name, rest)
    found = re.search(r"https?://.*", name, re.IGNORECASE)
    if found and not place_named(name).exists():
        url, _ = _server(found[0])
        raise BadInput(f"{url} is an address; write openai:{url}#MODEL")
    if re.match(r"[^/]*:[^/]*@", name) and not place_named(name).exists():
        raise BadInput(
            f"the judge's name holds a user name and a password; write openai:http://HOST:PORT/v1#MODEL, and put a key {KEYS}"
        )
    if not rest.strip("+ "):
        raise BadInput(f"'{name}' names no judge; give a training run, a model folder, an embedded model or a hub name")
    from perse.models.finding import is_folder

    if is_folder(place_named(rest)):  # a folder may have a + in its name
        return JudgeName(kind.name, rest, local=True)
    model, _, adapter = rest.rpartition("+") if "+" in rest else (rest, "", "")
    return JudgeName(kind.name, model, adapter or None, local=True)


def short_name(judge: str) -> str:
    """A judge's name as a plot has room for: of a folder the last part, of a server the model."""
    kind, rest = _kind(judge)
    name = rest if kind.local else rest.rpartition("#")[2]
    return Path(name).name or name


def portable_name(judge: str) -> str:
    """A judge's name that is the same however the paths in it are written; see `Identity.portable`."""
    parts = parse_judge(judge)
    if not parts.local:
        return judge
    engine = "" if parts.engine == EMBEDDED.name else f"{parts.engine}:"
    return engine + "+".join(portable(part) for part in (parts.model, parts.adapter) if part)


def weights_digest(judge: str) -> str:
    """The digest of the weights of a judge on this machine, its adapter's included; "" for any other.

    Raises:
        ModelNotFound: they are not here.
    """
    parts = parse_judge(judge)
    if not parts.local:
        return ""
    from perse.models.finding import find, find_adapter, judge_digest

    path = find(parts.model)
    return judge_digest(path, find_adapter(parts.adapter, path) if parts.adapter else None)


def judge_forms() -> str:
    """The forms of a judge's name, in a few words."""
    *forms, last = (kind.form for kind in ENGINES.values())
    return f"{', '.join(forms)} or {last}"


def judge_help() -> str:
    """The forms of a judge's name, for the help of a command."""
    local = " or ".join(kind.form for kind in ENGINES.values() if kind.local)
    others = [f"{kind.form} ({kind.says})" for kind in ENGINES.values() if not kind.local]
    return (
        f"{local} (a training run, a model folder, an embedded model or a hub name; PATH+ADAPTER adds a LoRA adapter), "
        f"or {', or '.join(others)}."
    )


def _kind(name: str) -> tuple[EngineKind, str]:
    """The engine of a judge's name, and the rest of the name. The embedded engine has none."""
    prefix, colon, rest = name.partition(":")
    kind = ENGINES.get(prefix) if colon and prefix != EMBEDDED.name else None
    return (EMBEDDED, name) if kind is None else (kind, rest)


def _read_server(address: str) -> JudgeName:
    if not address.lower().startswith(("http://", "https://")):
        raise BadInput("what follows 'openai:' has no address; write openai:http://HOST:PORT/v1#MODEL")
    url, model = _server(address)
    return JudgeName("openai", model, url=url)


def _server(address: str) -> tuple[str, str]:
    """URL and MODEL of URL#MODEL."""
    url, _, model = address.partition("#")
    if "@" in model and "/" not in url.partition("://")[2]:  # the # of a password, not of a model
        url = address
    if "?" in model:
        raise BadInput(
            f"the model's name holds a '?', behind which a key may stand; write openai:http://HOST:PORT/v1#MODEL, and put a key {KEYS}"
        )
    return plain_address(url, of="the judge's address", keys=KEYS), model


def load_judge(name: str, options: LoadOptions) -> Loaded:
    """See `Judge.load`."""
    parts = parse_judge(name)
    kind = ENGINES[parts.engine]
    loaded = kind.load(parts, options)
    if not isinstance(loaded, Loaded):  # of another package
        raise TypeError(f"the engine '{kind.name}' gave {type(loaded).__name__}, expected Loaded")
    return loaded


def _load_server(parts: JudgeName, options: LoadOptions) -> Loaded:
    from perse.judging.connecting import connect

    return connect(
        parts.url or "",
        parts.model,
        tokenizer=options.tokenizer,
        context=options.context,
        trust_remote_code=options.trust_remote_code,
        concurrency=options.hardware.concurrency,
    )


def _load_vllm(parts: JudgeName, options: LoadOptions) -> Loaded:
    require_vllm()
    return _find_and_load(parts, options)


def _find_and_load(parts: JudgeName, options: LoadOptions) -> Loaded:
    import torch  # noqa: F401  # where it is missing, the extra with it is named, and not transformers' own

    from perse.models.finding import find, find_adapter

    path = find(parts.model, trust_remote_code=options.trust_remote_code)
    adapter = find_adapter(parts.adapter, path) if parts.adapter else None
    return load_local(parts, path, adapter, options)


def load_local(
    parts: JudgeName,
    path: Path,
    adapter: Path | None,
    options: LoadOptions,
) -> Loaded:
    """A judge in this process, of the model folder `path` and perhaps an adapter's."""
    from perse.engines.base import Engine
    from perse.models.finding import context_length, judge_digest
    from perse.models.opening import check_adapter, check_model, tokenizer
    from perse.rendering.prompt import Renderer

    dtype, context, trust_remote_code = options.dtype, options.context, options.trust_remote_code
    hardware = options.hardware
    if parts.engine != "vllm" and hardware.tensor_parallel > 1:
        raise BadInput(
            f"the embedded engine is on one GPU; to split a model over {hardware.tensor_parallel}, name it vllm:{parts.model}"
        )
    check_model(path, trust_remote_code=trust_remote_code)
    if adapter is not None:
        check_adapter(adapter, base=path, trust_remote_code=trust_remote_code)
    longest = context_length(path)
    renderer = Renderer(tokenizer(path, trust_remote_code=trust_remote_code), min(context or longest, longest))
    engine: Engine
    if parts.engine == "vllm":
        from perse.engines.vllm import VLLMEngine

        engine = VLLMEngine.load(
            path,
            adapter=adapter,
            dtype=dtype,
            context=renderer.context,
            memory_gb=hardware.memory_gb,
            tensor_parallel=hardware.tensor_parallel,
            others=options.adapters,
            trust_remote_code=trust_remote_code,
        )
    else:
        from perse.engines.prefix_cache import BUDGET
        from perse.engines.transformers import TransformersEngine

        cache_bytes = BUDGET if hardware.memory_gb is None else int(hardware.memory_gb * 1024**3)
        engine = TransformersEngine.load(
            path, adapter=adapter, dtype=dtype, cache_bytes=cache_bytes, trust_remote_code=trust_remote_code
        )
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


EMBEDDED = EngineKind("transformers", "PATH", "the embedded engine, in this process", _find_and_load, local=True)
VLLM = EngineKind("vllm", "vllm:PATH", "vLLM, in this process", _load_vllm, local=True)
SERVER = EngineKind("openai", "openai:URL#MODEL", "a server", _load_server, read=_read_server)

ENGINES: Registry[EngineKind] = Registry(
    "perse.engines", (EMBEDDED, VLLM, SERVER), needs=("form", "says", "load", "local", "read")
)
"""By the prefix of a judge's name."""
