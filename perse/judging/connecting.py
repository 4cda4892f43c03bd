"""A judge at an address: exact where vLLM serves it, in words everywhere else.

Silent differences of a vLLM server are checked first: another tokenizer, processed log-probabilities.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from openai import APIConnectionError, APIError, APIStatusError
from pydantic import BaseModel

from perse.engines.http import (
    FIRST_TIMEOUT,
    Entry,
    OddList,
    api_client,
    cause,
    key_refused,
    listed,
    run,
    safe,
    said,
    served_models,
    tries,
)
from perse.engines.kind import Identity, Loaded
from perse.engines.openai import CONCURRENCY, ChatCompletionsEngine, CompletionsEngine
from perse.errors import BadInput, ModelNotFound
from perse.formats.json_text import shortened
from perse.installing import install
from perse.judging.trying import FIRST_RETRIES, likeliest_told, why_unknown
from perse.models.incoming import Unfit
from perse.rendering.prompt import Renderer, TextRenderer

LONGEST_VERSION = 200
"""Most characters of a server's self-description, which manifests keep."""

AWAY = (408, 429, 502, 503, 504)
"""What a server answers that is starting, full or behind a gateway that does not reach it: later it may say that it is vLLM."""

DIGEST = re.compile("[0-9a-f]{1,128}")


class Version(BaseModel):
    """What vLLM says at /version; perse's own server adds its own version and digests of the weights."""

    version: str = ""
    perse: str | None = None
    models: dict[str, dict[str, Any]] = {}


def connect(
    url: str,
    model: str,
    *,
    tokenizer: str | None,
    context: int | None,
    trust_remote_code: bool = False,
    concurrency: int | None = None,
) -> Loaded:
    """The judge at an address: exact where vLLM serves it, else in words.

    Args:
        model: its name there, also one that the server does not list; empty for the only one.
        tokenizer: a folder or a hub name, where the one that the server names is not on this machine.
        context: tokens to use, at most what the server allows.
        trust_remote_code: run the code that `tokenizer` brings.
        concurrency: most requests under way at once; by default `CONCURRENCY`.
    Raises:
        BadInput: nothing answers, key or model are unknown there, or a vLLM server cannot be asked exactly.
    """
    concurrency = concurrency or CONCURRENCY
    entries, lacking = run(_first_contact(url, named=bool(model)))
    if lacking:
        run(_check_address(url, model))
    name = _chosen(entries, model, url)
    entry = entries.get(name, Entry(id=name))
    base = entries.get(entry.parent or "", entry)  # an adapter has its base model's tokenizer and context
    base_name, adapter = (entry.parent, name) if entry.parent else (name, None)
    if entry.owned_by != "vllm" or base.max_model_len is None:
        engine = ChatCompletionsEngine(url, name, concurrency=concurrency, likeliest=run(likeliest_told(url, name)))
        unlisted = lacking or (f"answers to {safe(name)} and does not list it" if entries else "lists no models, as vLLM does")
        why = _not_vllm(url, name, entries.get(name), unlisted)
        return Loaded(engine, TextRenderer(), Identity(base_name, adapter), why)
    if base.max_model_len < 1:
        raise BadInput(f"{url} says that {name} takes {base.max_model_len} tokens (max_model_len); look after the server")
    longest = min(context or base.max_model_len, base.max_model_len)
    renderer = Renderer(
        _tokenizer(tokenizer or base.root or base.id, given=tokenizer is not None, url=url, trust=trust_remote_code), longest
    )
    # Turns, digits, white space and accents: where tokenizers differ.
    text = f"{renderer.frame.head}In 2024,\n10 of 137 plots\n\n[Score] 7/10  déjà vu{renderer.frame.tail}"
    ids = tuple(renderer.tokenizer.encode(text, add_special_tokens=False))
    if _their_ids(url, name, text) not in (None, list(ids)):
        raise BadInput(
            f"the tokenizer at '{renderer.tokenizer.name_or_path}' is not that of {name}, as {url} tokenizes; give the right one "
            "with --tokenizer FOLDER"
        )
    version = _version(url)
    exact = CompletionsEngine(
        url, name, server=f"vllm {safe(version.version)[:LONGEST_VERSION]}".strip(), concurrency=concurrency
    )
    exact.check_raw(ids)
    told = version.models.get(name, {}).get("sha256") if version.perse else None
    digest = told if isinstance(told, str) and DIGEST.fullmatch(told) else ""
    return Loaded(exact, renderer, Identity(base_name, adapter, digest))


def _not_vllm(url: str, name: str, entry: Entry | None, lacking: str) -> str:
    """Why a server is not asked as vLLM is. A proxy before vLLM lists models as its own, so its judge would lose its distributions."""
    if entry is None:
        reason = f"{url} {lacking}"
    elif entry.owned_by == "perse":
        return f"{url} is perse's server on the embedded engine; perse.serving.client asks it for distributions, by routes of its own"
    elif entry.owned_by == "vllm":
        reason = f"{url} does not say how many tokens {safe(name)} takes (max_model_len), as vLLM does"
    else:
        owner = f"owned by '{safe(entry.owned_by)}'" if entry.owned_by else "nobody's"
        reason = f"{url} lists {safe(name)} as {owner}, and vLLM as owned by 'vllm'"
    return f"{reason}; if vLLM runs behind it, give the address of vLLM itself"


async def _first_contact(url: str, *, named: bool) -> tuple[dict[str, Entry], str]:
    """The server's models by name, and why there are none where it lists none; `named`: it can be asked without a list."""
    try:
        async with api_client(url, FIRST_RETRIES) as client:
            return await served_models(client), ""
    except APIConnectionError as error:
        raise BadInput(f"nothing answers at {url} ({cause(error)}); start the server, or correct the address") from None
    except APIStatusError as error:
        if error.status_code == 401 or (error.status_code == 403 and not named):
            raise key_refused(url, error) from None
        if error.status_code in (404, 405):
            return {}, "lists no models, as vLLM does"
        if error.status_code in AWAY or not named:
            raise BadInput(f"{url}/models answered {error.status_code} ({said(error)}); look after the server") from None
        return {}, f"does not list its models, as vLLM does ({error.status_code}: {said(error)})"
    except OddList as error:
        if named:
            return {}, f"does not list its models as vLLM does ({error})"
        raise BadInput(f"what answers at {url} is no OpenAI API; such an address usually ends in /v1") from None
    except Unfit as error:
        raise BadInput(f"{url}/models cannot be read: {error}; look after the server") from None
    except (APIError, ValueError):
        raise BadInput(f"what answers at {url} is no OpenAI API; such an address usually ends in /v1") from None


async def _check_address(url: str, model: str) -> None:
    """For a server that lists no models: suggest another address or way to ask."""
    if await _tried(f"{url}/v1", "/models") is not None:
        raise BadInput(f"{url} lists no models, but {url}/v1 does; did you mean openai:{url}/v1#{model or 'MODEL'}?")
    version = await _tried(url.removesuffix("/v1"), "/version")
    if isinstance(version, dict) and "perse" in version:
        raise BadInput(
            f"the server at {url} runs the embedded engine of an older perse, which speaks the judge's routes only; ask it with "
            "perse.serving.client, or serve the model with this perse"
        )


def _chosen(entries: Mapping[str, Entry], model: str, url: str) -> str:
    if model:
        if entries and model not in entries and (reason := run(why_unknown(url, model, entries))) is not None:
            raise BadInput(f"{url} has no model '{model}'{reason}; {listed(entries, model)}")
        return model
    if not entries:
        raise BadInput(f"{url} lists no models; does the address end in /v1? If it is right, name one: openai:{url}#MODEL")
    if len(entries) > 1:
        raise BadInput(f"{url} has several models, name one: openai:{url}#MODEL; {listed(entries, model)}")
    return next(iter(entries))


def _tokenizer(name: str, *, given: bool = True, url: str = "", trust: bool = False) -> Any:
    """The tokenizer of this name.

    Args:
        given: by the user; else the server at `url` says so, and nothing is fetched on a server's word.
    """
    try:
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise BadInput(
            f"exact distributions need the model's tokenizer, and {error.name} is not installed; run: {install('remote')}"
        ) from None
    from perse.models.finding import find_tokenizer
    from perse.models.opening import tokenizer

    try:
        return tokenizer(find_tokenizer(name, local=not given), trust_remote_code=trust and given)
    except (BadInput, ModelNotFound) as error:
        like = "FOLDER" if given else f"FOLDER (or {safe(name)}, if you trust what {url} names)"
        raise BadInput(
            f"exact distributions need the tokenizer, and '{safe(name)}' does not give one on this machine ({safe(str(error))}); give "
            f"it with --tokenizer {like}"
        ) from None


def _their_ids(url: str, model: str, text: str) -> object:
    """How the server tokenizes `text`; None where it does not tell."""
    body = {"model": model, "prompt": text, "add_special_tokens": False}
    try:
        said: Any = run(_ask(url.removesuffix("/v1"), "/tokenize", body))
    except (APIError, ValueError) as error:
        raise BadInput(f"{url} did not say how it tokenizes a text ({type(error).__name__}: {safe(str(error))})") from None
    ids = said.get("tokens") if isinstance(said, dict) else None
    if said is not None and not isinstance(ids, list):
        raise BadInput(
            f"{url} did not say how it tokenizes a text: its /tokenize answered {safe(shortened(said))}, expected an object with a list of "
            "'tokens' as vLLM's; give the address of the vLLM server itself, or look after what stands before it"
        )
    return ids


def _version(url: str) -> Version:
    """The server's self-description; empty without such a route.

    Raises:
        BadInput: the route does not answer; a run is identified by its digest.
    """
    address = url.removesuffix("/v1")
    try:
        return Version.model_validate(run(_ask(address, "/version")) or {})
    except APIError as error:
        raise BadInput(
            f"{address}/version did not say which model runs there, after {tries(error)} ({cause(error)}), and a run is known "
            "by it; look after the server, then give the same command"
        ) from None
    except ValueError:
        return Version()


async def _tried(address: str, route: str) -> object:
    """A route's answer, or None on any failure."""
    try:
        return await _ask(address, route)
    except (APIError, ValueError, BadInput):
        return None


async def _ask(address: str, route: str, body: dict[str, Any] | None = None) -> object:
    """A route's answer to GET, or to POST with a body; None without such a route."""
    async with api_client(address, FIRST_RETRIES) as client:
        try:
            if body:
                return await client.post(route, body=body, cast_to=object, options={"timeout": FIRST_TIMEOUT})
            return await client.get(route, cast_to=object, options={"timeout": FIRST_TIMEOUT})
        except APIStatusError as error:
            if error.status_code in (404, 405):
                return None
            raise
