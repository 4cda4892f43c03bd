"""The files of a model's or an adapter's folder, looked at before a library opens them.

A folder may come from anyone, be half copied or made to do harm: a file may be a pipe that never ends, a header may promise more
than its file holds, an index may point out of the folder. What can be known from names, sizes and headers is said here in one
sentence, within milliseconds, whatever the size of the weights. What needs the model's code is for `opening`.
"""

from __future__ import annotations

import math
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.formats import json_text

CONFIG = "config.json"
STACKING = "stacking.json"
"""What `perse fit` wrote beside a model or adapter: made of its answers, and no part of it."""
ADAPTER_CONFIG = "adapter_config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"

_READ = {".json", ".safetensors", ".model", ".jinja", ".txt", ".bin", ".pt", ".py"}
"""Kinds of files that are read by us or by the libraries."""
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
LONGEST_TEXT = 100 << 20
"""Bytes of a file that is read whole; the largest tokenizers have 35 MB."""
LONGEST_HEADER = 100 << 20
"""Bytes; the format's own limit."""
_BITS = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
    "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}  # fmt: skip

Shapes = dict[str, tuple[int, ...]]
"""Of tensors by name."""


@dataclass(frozen=True)
class Stamp:
    """The state of a folder: findings about it hold while its stamp is the same."""

    folder: Path
    files: tuple[tuple[str, int, int], ...]


def stamp(folder: Path) -> Stamp:
    """Names, sizes and times of the files in `folder` that are read.

    Raises:
        BadInput: one is not a file, cannot be read, or is too large to be what it is called.
    """
    try:
        names = sorted(part.name for part in folder.iterdir())
    except OSError as error:
        raise BadInput(f"{folder} cannot be read ({error.strerror}); give a folder that you may read") from None
    found = ((name, _status(folder / name)) for name in names)
    return Stamp(folder, tuple((name, status.st_size, status.st_mtime_ns) for name, status in found if status is not None))


def read_object(path: Path, *, remedy: str) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        BadInput: it is not there, cannot be read, or holds something else.
    """
    _status(path)
    return json_text.read_object(path, remedy=remedy)


def model_config(folder: Path) -> dict[str, Any]:
    """A model's config.json.

    Raises:
        BadInput: it is no JSON object, does not say what kind of model it is, or an adapter stands beside it.
    """
    remedy = "fetch or copy the model again"
    config = read_object(folder / CONFIG, remedy=remedy)
    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise BadInput(f"{folder / CONFIG} has model_type {kind!r}, expected the name of an architecture; {remedy}")
    if "transformers_weights" in config:
        raise BadInput(
            f"{folder / CONFIG} has transformers_weights {_short(config['transformers_weights'])}, other weights than those in "
            f"{WEIGHTS} or {INDEX}, which alone are read; remove that line"
        )
    if (folder / ADAPTER_CONFIG).exists():
        raise BadInput(
            f"{folder} holds a model and an adapter ({CONFIG} and {ADAPTER_CONFIG}), which would be mixed; put the adapter in a folder "
            "of its own and give BASE+ADAPTER"
        )
    return config


def positive(config: dict[str, Any], key: str, *, where: Path) -> int | None:
    """A count in a configuration; None where it is not given.

    Raises:
        BadInput: it is no whole number above 0.
    """
    value = config.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"{where} has {key} {_short(value)}, expected a whole number above 0; fetch or copy the model again")
    return value


def model_tensors(folder: Path) -> Shapes:
    """The tensors of a model, by the headers of its safetensors files.

    Raises:
        BadInput: it has none, a file is missing or damaged, or lies outside of the folder.
    """
    if (folder / WEIGHTS).exists():
        return tensors(folder / WEIGHTS)
    if not (folder / INDEX).exists():
        raise BadInput(_no_weights(folder, f"{WEIGHTS} or {INDEX}"))
    remedy = "fetch or copy the model again"
    listed = read_object(folder / INDEX, remedy=remedy).get("weight_map")
    if not isinstance(listed, dict) or not all(isinstance(name, str) for name in listed.values()) or not listed:
        raise BadInput(f"{folder / INDEX} has no weight_map from tensors to files; {remedy}")
    named = sorted(set(listed.values()))
    for name in named:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise BadInput(
                f"{folder / INDEX} points to '{_plain(name)}', expected safetensors files in the same folder; {remedy}"
            )
    missing = [name for name in named if not (folder / name).exists()]
    if missing:
        raise BadInput(f"{folder} lacks {len(missing)} of its {len(named)} files of weights ({missing[0]}); {remedy}")
    shapes: Shapes = {}
    for name in named:
        shapes |= tensors(folder / name)
    lacking = sorted(listed.keys() - shapes.keys())
    if lacking:
        raise BadInput(f"{folder / INDEX} lists {_plain(lacking[0])}, which is in none of its files; {remedy}")
    return shapes


def adapter_config(folder: Path) -> dict[str, Any]:
    """A LoRA adapter's adapter_config.json.

    Raises:
        BadInput: it is no JSON object, is not of a LoRA adapter, has a number that is not finite, is an activated LoRA, or names code to be imported.
    """
    remedy = "give a LoRA adapter that peft wrote"
    place = folder / ADAPTER_CONFIG
    config = read_object(place, remedy=remedy)
    if config.get("peft_type") != "LORA":
        raise BadInput(f"{place} has peft_type {_short(config.get('peft_type'))}, expected 'LORA'; {remedy}")
    if name := _not_finite(config):
        raise BadInput(f"{place} has {name}, expected a finite number; {remedy}")
    if config.get("megatron_config") is not None:
        raise BadInput(f"{place} asks for Megatron's own layers, whose module it names and which are not loaded; {remedy}")
    if config.get("alora_invocation_tokens"):
        raise BadInput(
            f"{place} is of an activated LoRA (alora_invocation_tokens): what it computes of a profile depends on what else the prompt says, "
            f"so nothing could be shared; {remedy}, without that setting"
        )
    ranks = config.get("rank_pattern") or {}
    if not isinstance(ranks, dict):
        raise BadInput(f"{place} has rank_pattern {_short(ranks)}, expected ranks by module; {remedy}")
    for name in ranks:
        positive(ranks, name, where=place)
    if positive(config, "r", where=place) is None:
        raise BadInput(f"{place} has no rank r; {remedy}")
    return config


def _not_finite(value: object, name: str = "") -> str | None:
    """The first number of a configuration that is NaN, infinite, or a whole one beyond all floats, with its name: `lora_alpha NaN`."""
    if isinstance(value, int | float):
        return None if abs(value) <= sys.float_info.max else f"{name} {json_text.shortened(value)}"
    inner: list[tuple[object, object]] = []
    if isinstance(value, dict | list):
        inner = list(value.items() if isinstance(value, dict) else enumerate(value))
    found = (_not_finite(one, f"{name}.{_plain(str(key))}".removeprefix(".")) for key, one in inner)
    return next(filter(None, found), None)


def adapter_tensors(folder: Path) -> Shapes:
    """The tensors of an adapter, by the header of its safetensors file.

    Raises:
        BadInput: it is missing or damaged.
    """
    if not (folder / ADAPTER_WEIGHTS).exists():
        raise BadInput(_no_weights(folder, ADAPTER_WEIGHTS))
    return tensors(folder / ADAPTER_WEIGHTS)


def tensors(path: Path) -> Shapes:
    """The tensors of a safetensors file, whose header must describe exactly the bytes that are there.

    Raises:
        BadInput: it does not.
    """
    status = _status(path)
    size = status.st_size if status is not None else 0

    def damaged(why: str) -> BadInput:
        return BadInput(f"{path} is damaged or no safetensors file: {why}; fetch or copy it again")

    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, LONGEST_HEADER):
                raise damaged(f"its header would have {length:,} bytes, and the file has {size:,}")
            header = json_text.parsed(file.read(length))
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}); give a model that you may read") from None
    except ValueError:
        raise damaged("its header is no JSON") from None
    if not isinstance(header, dict):
        raise damaged("its header is no JSON object")
    shapes: Shapes = {}
    places: list[tuple[int, int]] = []
    for name, told in header.items():
        if name == "__metadata__":
            continue
        try:
            kind, shape, (begin, end) = told["dtype"], tuple(told["shape"]), told["data_offsets"]
            counts = (*shape, begin, end)
            bits = _BITS[kind] * math.prod(shape)
        except (KeyError, TypeError, ValueError):
            raise damaged(f"tensor {_plain(name)} has no type, shape and place in its header") from None
        if not all(type(count) is int and count >= 0 for count in counts) or (end - begin) * 8 != bits:
            raise damaged(f"tensor {_plain(name)} has another size than its shape {_short(list(shape))} needs")
        shapes[name] = shape
        places.append((begin, end))
    at = 0
    for begin, end in sorted(places):
        if begin != at:
            raise damaged("its tensors overlap, or leave gaps")
        at = end
    if at != size - 8 - length:
        raise damaged(f"its tensors take {at:,} bytes, and {size - 8 - length:,} are there")
    return shapes


def _status(path: Path) -> os.stat_result | None:
    """Of a file that is read whole or holds weights; None for files that are not read.

    Raises:
        BadInput: it is something else.
    """
    try:
        found = path.stat()
    except OSError as error:
        if path.suffix not in _READ:
            return None
        raise BadInput(f"{path} cannot be read ({error.strerror}); fetch or copy it again") from None
    if stat.S_ISDIR(found.st_mode) and path.suffix not in _READ:
        return None
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, a device or a socket"
        raise BadInput(f"{path} is {kind}, expected a file; fetch or copy it again")
    if path.suffix in (".json", ".jinja", ".txt", ".model") and found.st_size > LONGEST_TEXT:
        raise BadInput(f"{path} has {found.st_size:,} bytes, expected at most {LONGEST_TEXT:,}; fetch or copy it again")
    if path.suffix in _READ and not os.access(path, os.R_OK):
        raise BadInput(f"{path} cannot be read (Permission denied); give a model that you may read")
    return found


def _no_weights(folder: Path, expected: str) -> str:
    pickles = sorted(path.name for kind in _PICKLES for path in folder.glob(kind))
    if pickles:
        return (
            f"{folder} holds its weights as {pickles[0]}, a pickle, which can run code when it is opened and is never read; expected "
            f"{expected}: convert it where you trust it, or take a version in safetensors files"
        )
    return f"{folder} holds no weights in safetensors files ({expected}); fetch or copy it again"


def _plain(text: str) -> str:
    """A name from a stranger's file, for a message."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:80])


def _short(value: object) -> str:
    return _plain(repr(value))
