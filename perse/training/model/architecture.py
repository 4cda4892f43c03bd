"""What would be trained, without its weights: the model on the meta device, adapter included, and a tokenizer to count with.

Planning needs a model's configuration and tokenizer only, so nothing else is fetched. For the models of the packaged recipes
even these may be absent (LLaMA-2 is behind a licence): their published configurations are written here, and tokens are then
counted with the embedded model's tokenizer, which is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.errors import ModelNotFound
from perse.files.path_names import place_named
from perse.models import finding as models
from perse.settings.training import TrainConfig
from perse.training.model.adapting import adapted
from perse.training.model.quantized import mark_packed

# As published: the config.json of each, of which only what shapes the model is here; the rest is the class's default.
# LLaMA-2: Touvron et al. 2023.
_LLAMA2: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
_7B: dict[str, Any] = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    **_LLAMA2,
}
_13B: dict[str, Any] = {
    "hidden_size": 5120,
    "intermediate_size": 13824,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    **_LLAMA2,
}
# Qwen3 4B, the instruct model of July 2025: answers at once, without a part for thinking.
_QWEN3_4B: dict[str, Any] = {
    "model_type": "qwen3",
    "vocab_size": 151936,
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 262144,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}
# Olmo 3 7B: three layers of four look back 4,096 tokens.
_OLMO3_7B: dict[str, Any] = {
    "model_type": "olmo3",
    "vocab_size": 100278,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 65536,
    "sliding_window": 4096,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
}
KNOWN = {
    "meta-llama/Llama-2-7b-hf": _7B,
    "meta-llama/Llama-2-7b-chat-hf": _7B,
    "meta-llama/Llama-2-13b-hf": _13B,
    "meta-llama/Llama-2-13b-chat-hf": _13B,
    "Qwen/Qwen3-4B-Instruct-2507": _QWEN3_4B,
    "allenai/Olmo-3-7B-Instruct": _OLMO3_7B,
}
"""Configurations by hub name. LLaMA-2 7B has 6,738,415,616 parameters, Qwen3 4B 4,022,468,096, Olmo 3 7B 7,298,011,136."""

STAND_IN = "smollm2-135m"
"""The model whose tokenizer counts for models that have none here."""


@dataclass(frozen=True)
class Architecture:
    """A model's configuration, the folder of a tokenizer, the longest context, and notes for the reader of a plan."""

    config: Any
    tokenizer: Path
    context: int
    notes: tuple[str, ...]


def architecture(name: str, *, trust_remote_code: bool = False) -> Architecture:
    """Of the model that `model.path` names; without its weights where they are not here.

    Raises:
        ModelNotFound: neither here, nor on the hub, nor among the known ones.
        BadInput: its configuration cannot be used.
    """
    from transformers import AutoConfig

    from perse.models.opening import buildable

    try:
        folder = _described(name)
    except ModelNotFound as error:
        if name not in KNOWN:
            raise ModelNotFound(f"{error}; known without it are {', '.join(KNOWN)}") from None
        stand_in, known = models.find(STAND_IN), KNOWN[name]
        # 1.09 times as many were counted on film reviews and plots by LLaMA-2's tokenizer; the others' were not at hand.
        off = ", about a tenth too few on film reviews and plots" if known["model_type"] == "llama" else ""
        note = (
            f"{name} is not here: its published configuration is used, and tokens are counted with {STAND_IN}'s tokenizer{off}; put "
            "its config.json and tokenizer files in a folder for exact counts"
        )
        return Architecture(AutoConfig.for_model(**known), stand_in, known["max_position_embeddings"], (note,))
    return Architecture(buildable(folder, trust_remote_code=trust_remote_code), folder, models.context_length(folder), ())


def _described(name: str) -> Path:
    """The folder with a model's configuration and tokenizer; of a model on the hub these files alone are fetched."""
    if place_named(name).is_dir() or name in models.EMBEDDED:
        return models.find(name)
    folder = models.find_tokenizer(name)
    if not (folder / "config.json").exists():
        raise ModelNotFound(f"'{name}' on the Hugging Face hub has no config.json; give a causal language model")
    return folder


def meta_model(config: TrainConfig, described: Architecture, *, checkpointing: bool) -> Any:
    """`drawn_model` on the meta device: shapes and types, no weights."""
    return drawn_model(config, described, checkpointing=checkpointing, place="meta")


def drawn_model(config: TrainConfig, described: Architecture, *, checkpointing: bool, place: str) -> Any:
    """The model that training would have, adapter included, with weights drawn at random.

    Weights that will be held in 4 bits are whole here, for the model's code to compute with, and marked with what they will
    take. A dropout of the adapter counts where it is applied, which is where branches share nothing.

    Args:
        place: the device on which it is made.
    Raises:
        BadInput: nothing of it would be trained.
    """
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device(place):
        make: Any = AutoModelForCausalLM.from_config
        model = make(described.config, dtype=getattr(torch, config.model.dtype))
        model.config.use_cache = False
        if config.model.quantize is not None:
            mark_packed(model)
        lora = config.lora
        if lora is not None and config.train.max_shared_examples > 1:
            lora = lora.model_copy(update={"dropout": 0.0})
        return adapted(model, lora, checkpointing=checkpointing)
