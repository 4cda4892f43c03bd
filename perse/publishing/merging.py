"""Base + adapter as one ordinary model that any engine loads, and beside it the adapter as vLLM takes it.

W + BA is computed in float32 and rounded once, to the stored type; how far that moves the logits is measured, not assumed.
The trade-off is memory: float32 takes 4 bytes a parameter, 28 GB for 7B, on the CPU. What was written is opened again and
compared with what was in memory before its folder gets its name, so there is a whole model or none.
"""

from __future__ import annotations

import math
import os
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.errors import BadInput, ModelNotFound, PerseError, SaveFailed
from perse.files.belongings import resolved
from perse.files.disk import aside, staged, write_failed
from perse.files.own_files import one_writer
from perse.files.path_names import place_named
from perse.files.runlog import MANIFEST, read_manifest, what_it_is, write_whole
from perse.formats.plain_files import own_text
from perse.licences import carry_terms
from perse.models import finding as models
from perse.models.opening import causal_lm, check_adapter, check_model, with_adapter
from perse.models.opening import tokenizer as opened_tokenizer
from perse.prompts import source
from perse.publishing.base_model import public_name
from perse.publishing.card import CARD, for_weights
from perse.publishing.facts import ADAPTER
from perse.publishing.for_vllm import SETTINGS, adapter_settings, refused_by_vllm, ship_adapter
from perse.publishing.sample_prompts import sample_prompts

DTYPES = ("bfloat16", "float16", "float32")
KEPT = 64
"""Positions of each prompt whose logits are compared: the last, where the judge answers."""
ALIKE = 1e-3
"""Share of the largest logit by which merging in float32 may move one; rounding moves it by 1e-5 or so."""


@dataclass(frozen=True)
class Difference:
    """How far logits are from those of base + adapter, unmerged, in float32."""

    stored: float
    """Largest absolute difference of the model as it was stored, opened from disk, computed in float32."""
    in_float32: float
    """The same before it was rounded to the stored type, which storing in float32 would give."""
    largest_logit: float
    prompts: int
    positions: int
    """Over all prompts; all of the vocabulary at each."""


@dataclass(frozen=True)
class Merged:
    """A merged model's folder, and how true to base + adapter it is."""

    folder: Path
    dtype: str
    difference: Difference
    adapter: Path | None
    """For vLLM; None where it would refuse the adapter."""
    refused: str | None
    """Why, in one sentence."""


def merge_adapter(
    named: str, out: Path, *, base: str | None = None, dtype: str = "bfloat16", trust_remote_code: bool = False
) -> Merged:
    """Merge a training run's adapter, or an adapter's folder, into its base and write both to `out`.

    Args:
        base: path or name of the base model; by default the one that the run or the adapter names.
        dtype: what the merged weights are stored as.
        trust_remote_code: run code that the base brings.
    Raises:
        BadInput: `out` is there already, the adapter belongs to another base, or the base is not here.
        ModelNotFound: there is no adapter.
        SaveFailed: the disk does not hold what was written.
    """
    if dtype not in DTYPES:
        raise BadInput(f"dtype is '{dtype}'; choose {', '.join(DTYPES)}")
    _refuse_existing(out)
    found, named_base = _adapter_and_base(place_named(named))
    try:
        folder = models.find(base, trust_remote_code=trust_remote_code) if base else models.find(named_base, local=True)
    except ModelNotFound as error:
        raise BadInput(f"the base model of {named} is not here ({error}); name its folder with --base") from None
    adapter = models.find_adapter(str(found), folder)
    for read in (folder, adapter):
        if resolved(out).is_relative_to(resolved(read)):
            raise BadInput(f"{out} lies in {read}, which is read; choose another folder")
    with _one_sentence(out), made_whole(out) as making:
        difference = write_merged(folder, adapter, making, dtype=dtype, compared=True, trust_remote_code=trust_remote_code)
        assert difference is not None
        settings = adapter_settings(adapter)
        refused = refused_by_vllm(settings)
        if refused is None:
            ship_adapter(adapter, making / ADAPTER, settings, base=public_name(base or named_base))
        _ship_card(found, making, shipped=refused is None)
    return Merged(out, dtype, difference, None if refused else out / ADAPTER, refused)


def write_merged(
    base: Path, adapter: Path, folder: Path, *, dtype: str, compared: bool, trust_remote_code: bool = False
) -> Difference | None:
    """Merge in float32 and write model, tokenizer and chat template to `folder`; check what was written.

    A base that is stored quantized is opened to float32 first.

    Returns:
        how far its logits are from the unmerged ones, where `compared`.
    Raises:
        BadInput: the adapter does not fit the base, or cannot be merged into it.
        SaveFailed: the files do not hold what was in memory.
    """
    import torch

    adapted = _adapted(base, adapter, trust_remote_code=trust_remote_code)
    prompts = sample_prompts(base, trust_remote_code=trust_remote_code) if compared else []
    before = _logits(adapted, prompts)
    merged = _merge(adapted)
    in_float32 = _apart(before, _logits(merged, prompts))
    largest = max((float(each.abs().max()) for each in before), default=0.0)
    if not in_float32 <= ALIKE * largest:  # NaN neither
        raise BadInput(
            f"merged into {base}, the adapter {adapter} gives logits that differ by {in_float32:.3g} of up to {largest:.3g} even in "
            "float32; it cannot be merged, only judged with unmerged (BASE+ADAPTER)"
        )
    merged.to(getattr(torch, dtype)).save_pretrained(folder)
    ship_tokenizer(base, folder, trust_remote_code=trust_remote_code)
    _check_stored(merged, folder, dtype=dtype, trust_remote_code=trust_remote_code)
    if not compared:
        return None
    del adapted, merged  # the weights are in memory once at a time
    again = models.load(folder, dtype="float32", trust_remote_code=trust_remote_code)
    stored = _apart(before, _logits(again, prompts))
    if not math.isfinite(stored):
        raise BadInput(f"stored as {dtype}, the merged model gives logits that are no numbers; store it as bfloat16 or float32")
    return Difference(stored, in_float32, largest, len(prompts), sum(each.shape[0] for each in before))


@contextmanager
def made_whole(out: Path) -> Iterator[Path]:
    """A folder to write in, which becomes `out` on success and is removed otherwise.

    Raises:
        BadInput: there is something at `out` already.
        RunMismatch: another process writes it.
    """
    _refuse_existing(out)
    making = aside(out)
    with one_writer(making, out), staged(making, out):
        try:
            yield making
            _refuse_existing(out)  # including files that appeared meanwhile
            making.rename(out)
        finally:
            shutil.rmtree(making, ignore_errors=True)


@contextmanager
def _one_sentence(out: Path) -> Iterator[None]:
    """Full disks and missing permissions as BadInput."""
    from safetensors import SafetensorError

    try:
        yield
    except PerseError:
        raise
    except Exception as error:  # tokenizers has none of its own
        if not (isinstance(error, (OSError, SafetensorError)) or write_failed(error)):
            raise
        raise SaveFailed(
            f"{out} could not be written ({error}), and nothing is left of it; make room there, or choose another folder"
        ) from None


def ship_tokenizer(base: Path, folder: Path, *, trust_remote_code: bool = False) -> None:
    """The tokenizer of `base` beside the weights in `folder`, with the chat template that judging uses: ours for LLaMA-2, whose
    tokenizer may have none (`rendering.chat_frame`). The terms of `base` come with it."""
    tokenizer = opened_tokenizer(base, trust_remote_code=trust_remote_code)
    if tokenizer.chat_template is None and (tokenizer.bos_token, tokenizer.eos_token) == ("<s>", "</s>"):
        tokenizer.chat_template = source("llama2_chat.jinja")
    tokenizer.save_pretrained(folder)
    carry_terms(
        base, folder, changes="Modified: these weights were trained on from that model, or had an adapter merged into them."
    )


def _adapter_and_base(path: Path) -> tuple[Path, str]:
    """The folder that was named, and what its run or its settings call the base model."""
    if (path / MANIFEST).exists():
        manifest = read_manifest(path)
        run = manifest.get("run", {})
        if run.get("kind") != "train":
            raise BadInput(f"{path} holds {what_it_is(manifest)}, not of perse train; give a training run")
        config = run.get("config", {})
        if config.get("lora") is None:
            raise BadInput(f"{path} was trained without an adapter; {path / 'merged'} is the whole model already")
        return path, str(config.get("model", {}).get("path"))
    place = next((each for each in (path, path / ADAPTER) if (each / SETTINGS).exists()), None)
    if place is None:
        raise ModelNotFound(f"there is no adapter {path}: neither {SETTINGS} nor {ADAPTER}/{SETTINGS} is there")
    return place, str(adapter_settings(place).get("base_model_name_or_path") or "unknown")


def _ship_card(run: Path, making: Path, *, shipped: bool) -> None:
    """The card of the training run that made the adapter, if it did, for the model and for the adapter beside it."""
    owner = next((each for each in (run, run.parent) if (each / MANIFEST).exists()), None)
    if owner is None or not (owner / CARD).exists():
        return
    text = own_text(owner / CARD)
    write_whole(making / CARD, for_weights(text, adapter=False))
    if shipped:
        write_whole(making / ADAPTER / CARD, for_weights(text, adapter=True))


def _adapted(base: Path, adapter: Path, *, trust_remote_code: bool) -> Any:
    """The base in float32, opened if it is stored quantized (an adapter merged into 4 bits would be rounded away), with the adapter."""
    check_model(base, trust_remote_code=trust_remote_code)
    check_adapter(adapter, base=base, trust_remote_code=trust_remote_code)
    model = models.load(base, dtype="float32", trust_remote_code=trust_remote_code)
    if getattr(model, "hf_quantizer", None) is not None:
        model = _opened(model)
    with warnings.catch_warnings(action="ignore"):  # of tied embeddings, which `_merge` unties
        return with_adapter(model, adapter, base=base, trust_remote_code=trust_remote_code)


def _opened(quantized: Any) -> Any:
    """A plain model of float32 weights, without traces of quantization."""
    opened = quantized.dequantize().float()
    plain = type(opened)(opened.config)
    plain.load_state_dict(opened.state_dict())
    return plain


def _merge(adapted: Any) -> Any:
    """W + BA in the place of W. Tied embeddings of which one has an adapter are two matrices afterwards."""
    import torch

    model = adapted.get_base_model()
    ends = [model.get_input_embeddings(), model.get_output_embeddings()]
    first, last = (getattr(end, "base_layer", end) for end in ends)
    if first.weight is last.weight and (first is not ends[0] or last is not ends[1]):
        last.weight = torch.nn.Parameter(last.weight.detach().clone())
    with warnings.catch_warnings(action="ignore"):
        merged = adapted.merge_and_unload()
    if merged.get_input_embeddings().weight is not merged.get_output_embeddings().weight:
        merged.config.get_text_config().tie_word_embeddings = False
        merged.config.tie_word_embeddings = False
    return merged.eval()


def _logits(model: Any, prompts: Sequence[Sequence[int]]) -> list[Any]:
    """Of the last `KEPT` positions of each prompt: (KEPT, V) in float32."""
    import torch

    model.eval()
    with torch.inference_mode():
        return [model(torch.tensor([[*ids]]), logits_to_keep=KEPT).logits[0].float() for ids in prompts]


def _apart(some: Sequence[Any], others: Sequence[Any]) -> float:
    apart = [float((one - other).abs().max()) for one, other in zip(some, others, strict=True)]
    return math.nan if any(map(math.isnan, apart)) else max(apart, default=0.0)


def _check_stored(model: Any, folder: Path, *, dtype: str, trust_remote_code: bool) -> None:
    """Open what was written as anyone would, and compare every tensor with the one in memory.

    Raises:
        SaveFailed: the configuration asks for tensors that are not there or have another shape, one is empty, or numbers differ.
    """
    import torch

    opened: Any
    told: Any
    try:
        opened, told = causal_lm(
            folder, trust_remote_code=trust_remote_code, dtype=getattr(torch, dtype), output_loading_info=True
        )
    except BadInput as error:
        raise SaveFailed(f"the merged model in {folder} cannot be opened again ({error}); check the disk") from None
    odd = {kind: sorted(map(str, names)) for kind, names in told.items() if names and kind != "error_msgs"}
    if odd:
        raise SaveFailed(f"the merged model in {folder} is not what its configuration says: {odd}; check the disk")
    written, known = opened.state_dict(), model.state_dict()
    for name in {*written, *known}:
        both = name in written and name in known
        if not both or written[name].numel() == 0 or not _equal(written[name], known[name]):
            raise SaveFailed(f"{folder} holds another {name} than was in memory; check the disk")


def _equal(written: Any, known: Any) -> bool:
    return written.shape == known.shape and bool((written == known).all())


def _refuse_existing(out: Path) -> None:
    if os.path.lexists(out):
        raise BadInput(f"{out} is there already; choose another folder, or remove it first")


def merge(base: Path, adapter: Path, out: Path, *, dtype: str, trust_remote_code: bool = False) -> None:
    """Write base + adapter as an ordinary model folder, whole or not at all; see `write_merged`."""
    with made_whole(out) as making:
        write_merged(base, adapter, making, dtype=dtype, compared=False, trust_remote_code=trust_remote_code)
