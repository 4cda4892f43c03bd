"""Adapters for vLLM: which it refuses, and the folder of one that it loads.

vLLM adds B A x to W x and can do nothing else, so what changes an adapter's meaning beyond that is served merged only.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perse.files.runlog import write_whole
from perse.formats.json_text import read_object

SETTINGS = "adapter_config.json"
_PLAIN_STARTS = ("gaussian", "eva", "orthogonal", "mica", "lora_ga")
"""Initializations of an adapter that leave the base unchanged."""


def refused_by_vllm(settings: Mapping[str, Any]) -> str | None:
    """Why vLLM does not serve an adapter of these settings (adapter_config.json), or None if it does.

    The list is vLLM's own (`PEFTHelper`): what changes the adapter's meaning and is not implemented there.
    """
    begun = settings.get("init_lora_weights", True)
    reasons = {
        "it is a DoRA adapter": settings.get("use_dora"),
        "it trains whole modules (modules_to_save)": settings.get("modules_to_save"),
        "it trains single tokens (trainable_token_indices)": settings.get("trainable_token_indices"),
        "it trains biases": settings.get("bias", "none") != "none" or settings.get("lora_bias"),
        f"it began by changing the base (init_lora_weights={begun})": isinstance(begun, str)
        and begun.lower() not in _PLAIN_STARTS,
        "it is an activated LoRA": settings.get("alora_invocation_tokens"),
        "it repeats layers": settings.get("layer_replication"),
        "its matrices are block-diagonal": settings.get("use_bdlora"),
        "it is a QALoRA adapter": settings.get("use_qalora"),
        "it is no LoRA adapter": settings.get("peft_type", "LORA") != "LORA",
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    return reason and f"vLLM would refuse the adapter ({reason}), so none is left beside the merged model: serve that"


def adapter_settings(adapter: Path) -> dict[str, Any]:
    """The contents of an adapter's adapter_config.json.

    Raises:
        BadInput: it cannot be read.
    """
    place = adapter / SETTINGS
    return read_object(place, remedy="give an adapter that peft wrote")


def ship_adapter(adapter: Path, into: Path, settings: Mapping[str, Any], *, base: str) -> None:
    """Weights, settings that vLLM reads and that name no folder of this machine, and the tokenizer of the merged model above.

    Args:
        into: made here, in the merged model's folder.
        base: what the settings call the base model.
    """
    into.mkdir()
    for weights in adapter.glob("*.safetensors"):
        shutil.copy(weights, into)
    plain = {"base_model_name_or_path": base, "init_lora_weights": True, "modules_to_save": None, "inference_mode": True}
    write_whole(into / SETTINGS, json.dumps({**settings, **plain}, indent=2, sort_keys=True) + "\n")
    for part in ("tokenizer*", "special_tokens_map.json", "chat_template.jinja"):
        for file in into.parent.glob(part):
            shutil.copy(file, into)
