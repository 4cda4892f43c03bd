"""What a chat server can do, found out by a request of a few tokens before anything is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from openai import APIError, APIStatusError, BadRequestError, UnprocessableEntityError

from perse.engines.http import FIRST_TIMEOUT, Entry, api_client, safe, said
from perse.engines.length import NAMES, refused
from perse.engines.replies import first_choice, told_of
from perse.errors import BadInput

FIRST_RETRIES = 2
"""Of the first contact, so that a wrong address is reported soon."""

LIST_ALL = ("vllm", "perse", "sglang", "llamacpp", "me")
"""Owners, in a list of models, by which servers are known that list all they have: vLLM, perse, SGLang, and llama.cpp's and llama-cpp-python's, which
answer under any name."""

MOST_LIKELY = (20, 5)
"""How many of the likeliest tokens are asked for: the most that OpenAI tells, and what some others do."""

HELLO: Any = [{"role": "user", "content": "Say yes."}]
FEW_TOKENS = 16
"""Of such an answer: some APIs take no smaller number."""


async def why_unknown(url: str, model: str, entries: Mapping[str, Entry]) -> str | None:
    """Whether a model that the server does not list is unknown there, and what it says of it; None where it answers all the same.

    `transformers serve` has folders that it does not list, and routers take names with endings (`:free`).
    """
    if any(entry.owned_by in LIST_ALL for entry in entries.values()):
        return ""
    try:
        await _hello(url, model)
    except APIStatusError as error:
        return "" if error.status_code == 404 else f" ({error.status_code}: {said(error)})"
    except (APIError, ValueError) as error:
        return f" ({safe(str(error))})"
    return None


async def likeliest_told(url: str, model: str) -> int:
    """How many of the likeliest tokens the server tells in the place of each that it writes; 0 where it tells none, or nothing at all now."""
    for most in MOST_LIKELY:
        try:
            answer = await _hello(url, model, logprobs=True, top_logprobs=most)
            return most if any(len(step.likeliest) > 1 for step in told_of(first_choice(answer))) else 0
        except (BadRequestError, UnprocessableEntityError):
            continue
        except (APIError, ValueError, BadInput, AttributeError, TypeError):  # what is wrong with it is said when it is asked
            return 0
    return 0


async def _hello(url: str, model: str, **more: Any) -> Any:
    async with api_client(url, FIRST_RETRIES) as client:
        asked = {"model": model, "messages": HELLO, "temperature": 0, "timeout": FIRST_TIMEOUT, NAMES[0]: FEW_TOKENS, **more}
        while True:
            try:
                return await client.chat.completions.create(**asked)
            except (BadRequestError, UnprocessableEntityError) as error:
                if NAMES[0] in asked and refused(NAMES[0], str(error)):
                    asked[NAMES[1]] = asked.pop(NAMES[0])
                elif "temperature" in asked and "temperature" in str(error):  # some take their own alone, and are there
                    del asked["temperature"]
                else:
                    raise
