"""A judge at an address: exact where vLLM serves it, in words everywhere else.

What a vLLM server could do differently without an error is looked at first: another tokenizer, processed log-probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
from openai import APIConnectionError, APIError, APIStatusError
from pydantic import BaseModel, ValidationError

from perse.engines.http import Entry, api_client, api_key, cause, key_refused, listed, run, safe, said, served_models
from perse.engines.openai import ChatCompletionsEngine, CompletionsEngine
from perse.errors import BadInput, ModelNotFound
from perse.judge import Judge
from perse.rendering import Renderer, TextRenderer

FIRST_RETRIES = 2
"""Of the first contact: a wrong address should not take half a minute to be called so."""


class Version(BaseModel):
    """What vLLM says at /version; perse's own server adds its own version and digests of the weights."""

    version: str = ""
    perse: str | None = None
    models: dict[str, dict[str, Any]] = {}


def connect(url: str, model: str, *, tokenizer: str | None, context: int | None) -> Judge:
    """The judge at an address: exact where vLLM serves it, else in words.

    Args:
        model: its name there; empty for the only one.
        tokenizer: a folder or a hub name, where the one that the server names is not to be had here.
        context: tokens to use, at most what the server allows.
    Raises:
        BadInput: nothing answers, key or model are unknown there, or a vLLM server cannot be asked exactly.
    """
    entries = run(_first_contact(url))
    name = _chosen(entries, model, url)
    entry = entries.get(name, Entry(id=name))
    base = entries.get(entry.parent or "", entry)  # an adapter has its base model's tokenizer and context
    if entry.owned_by != "vllm" or not base.max_model_len:
        return Judge(ChatCompletionsEngine(url, name), TextRenderer(), name=name)
    renderer = Renderer(_tokenizer(tokenizer or base.root or base.id), min(context or base.max_model_len, base.max_model_len))
    # Turns, digits, white space and accents: where tokenizers differ.
    text = f"{renderer.frame.head}In 2024,\n10 of 137 plots\n\n[Score] 7/10  déjà vu{renderer.frame.tail}"
    ids = tuple(renderer.tokenizer.encode(text, add_special_tokens=False))
    if _their_ids(url, name, text) not in (None, list(ids)):
        raise BadInput(
            f"the tokenizer at '{renderer.tokenizer.name_or_path}' is not that of {name}, as {url} tokenizes; give the right one "
            "with --tokenizer FOLDER"
        )
    version = _version(url)
    engine = CompletionsEngine(url, name, server=f"vllm {version.version}".strip())
    engine.check_raw(ids)
    digest = version.models.get(name, {}).get("sha256", "") if version.perse else ""
    return Judge(engine, renderer, name=name, digest=digest)


async def _first_contact(url: str) -> dict[str, Entry]:
    """The server's models by name; empty where it does not list them."""
    try:
        async with api_client(url, FIRST_RETRIES) as client:
            return await served_models(client)
    except APIConnectionError as error:
        raise BadInput(f"nothing answers at {url} ({cause(error)}); start the server, or correct the address") from None
    except APIStatusError as error:
        if error.status_code in (401, 403):
            raise key_refused(url, error) from None
        if error.status_code in (404, 405):
            return {}
        raise BadInput(f"{url}/models answered {error.status_code} ({said(error)}); look after the server") from None
    except (APIError, ValidationError):
        raise BadInput(f"what answers at {url} is no OpenAI API; such an address usually ends in /v1") from None


def _chosen(entries: Mapping[str, Entry], model: str, url: str) -> str:
    if model and (model in entries or not entries):
        return model
    if model:
        raise BadInput(f"{url} has no model '{model}'; {listed(entries, model)}")
    if not entries:
        raise BadInput(f"{url} lists no models; does the address end in /v1? If it is right, name one: openai:{url}#MODEL")
    if len(entries) > 1:
        raise BadInput(f"{url} has several models, name one: openai:{url}#MODEL; {listed(entries, model)}")
    return next(iter(entries))


def _tokenizer(name: str) -> Any:
    from transformers import AutoTokenizer

    from perse.models import EMBEDDED, find

    path = Path(name).expanduser()
    ours = name in EMBEDDED or (path / "merged").is_dir()  # `find` would fetch all of a hub model, weights too
    try:
        return AutoTokenizer.from_pretrained(str(find(name) if ours else path if path.is_dir() else name))
    except (OSError, ValueError, ModelNotFound) as error:
        raise BadInput(
            f"exact distributions need the tokenizer, and '{name}' does not give one on this machine ({safe(str(error))}); give it "
            "with --tokenizer FOLDER"
        ) from None


def _their_ids(url: str, model: str, text: str) -> object:
    """How the server tokenizes `text`; None where it does not tell."""
    try:
        said = _beside(url, "/tokenize", {"model": model, "prompt": text, "add_special_tokens": False})
        return None if said.status_code in (404, 405) else said.raise_for_status().json()["tokens"]
    except (httpx2.HTTPError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{url} did not say how it tokenizes a text ({type(error).__name__}: {safe(str(error))})") from None


def _version(url: str) -> Version:
    try:
        return Version.model_validate(_beside(url, "/version").raise_for_status().json())
    except (httpx2.HTTPError, ValueError):  # it is for the record only
        return Version()


def _beside(url: str, route: str, body: dict[str, Any] | None = None) -> httpx2.Response:
    """The answer of a route that vLLM has beside /v1."""
    address, key = url.removesuffix("/v1") + route, {"Authorization": f"Bearer {api_key()}"}
    return httpx2.request("POST" if body else "GET", address, json=body, headers=key, timeout=30)
