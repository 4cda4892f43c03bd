"""Variables of the environment that libraries read when they are imported, looked at before any is.

What they say to a wrong one ("invalid literal for int()") names neither the variable nor the remedy. A value of nothing is taken
as none, and those that only harm are removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from urllib.parse import urlsplit

from perse.errors import BadInput
from perse.secrets import redact

_NUMBERS = (
    *("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"),
    *("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"),
)
_WORDS = {
    "ACCELERATE_MIXED_PRECISION": ("no", "fp16", "bf16", "fp8"),
    "ACCELERATE_LOG_LEVEL": ("debug", "info", "warning", "error", "critical"),
}
_COUNTS = ("WORLD_SIZE", "LOCAL_WORLD_SIZE")
_ADDRESSES = ("HF_ENDPOINT",)
_DEVICES = ("ACCELERATE_TORCH_DEVICE",)
_REMOVED = ("MPLBACKEND", "SOURCE_DATE_EPOCH")
"""Figures are drawn without a backend and without a date, whatever these say."""
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""How the threads of OpenMP wait for each other, which its libraries read when they are loaded."""


def clean(environment: MutableMapping[str, str]) -> None:
    """Make the environment one that libraries can read.

    Raises:
        BadInput: a variable holds what none of them can; the message names it.
    """
    for name in _REMOVED:
        environment.pop(name, None)
    for name in (*_NUMBERS, *_WORDS, *_ADDRESSES, *_DEVICES):
        if not environment.get(name, "").strip():
            environment.pop(name, None)
    for name in _NUMBERS:
        if not re.fullmatch(r"\s*-?[0-9]{1,9}\s*", environment.get(name, "0")):
            raise wrong(name, environment[name], "a whole number")
    for name in _COUNTS:
        if int(environment.get(name, "1")) < 1:
            raise wrong(name, environment[name], "1 or more")
    for name, words in _WORDS.items():
        if environment.get(name, words[0]).lower() not in words:
            raise wrong(name, environment[name], f"one of {', '.join(words)}")
    for name in _ADDRESSES:
        if not _is_address(environment.get(name, "https://host")):
            raise wrong(name, environment[name], "an address that begins with https:// or http://")


def yield_threads(environment: MutableMapping[str, str]) -> None:
    """Have OpenMP's threads sleep soon while they wait for each other, unless somebody has said how they wait.

    By default they spin for milliseconds, which takes the CPU from the very thread that is waited for where other work runs beside. So many
    rounds are some microseconds: most waits within an operation end in them (docs/results.md, benchmarks/threads.py). Of libgomp, which
    torch has on Linux.
    """
    if not any(name in environment for name in _WAITING):
        environment["GOMP_SPINCOUNT"] = "1000"


def _is_address(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # [::1 without its end, or a port that is no number
        return False


def named_in(error: BaseException, environment: Iterable[str]) -> BadInput | None:
    """What a library says of a variable of the environment, by whose name it calls it, as TORCH_LOGS; None where it names none."""
    said = set(re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b", str(error)))
    name = min(said & set(environment), default=None)
    if name is None:
        return None
    what = redact(" ".join(str(error).split()))[:200]  # cut afterwards: half a key is not known as one
    return BadInput(f"{name} in the environment cannot be used ({what}); correct it, or unset it")


def wrong(name: str, found: str, expected: str) -> BadInput:
    """What is said of a variable that holds what it cannot."""
    return BadInput(f"{name} in the environment is '{redact(found)[:100]}', expected {expected}; correct it, or unset it")
