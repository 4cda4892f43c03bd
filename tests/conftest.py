"""Tokenizers of three kinds, tiny random models, and a few examples: what most tests stand on."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Tests run side by side; more threads than one each only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from perse.records import (
    ChoiceReference,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileComparison,
    ProfileReview,
    ReviewReference,
)

KINDS = ("chatml", "llama2", "whole_numbers")

CHATML = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


@pytest.fixture(scope="session")
def embedded() -> Path:
    """The embedded model's folder; `make setup` pulls it."""
    from perse.models import pull

    return pull("smollm2-135m")


@pytest.fixture(scope="session")
def tokenizers(embedded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """ChatML with split digits (SmolLM2), LLaMA-2-style SentencePiece, and a byte-level BPE that knows " 10" as one token."""
    import mistral_common
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("llama2")
    shutil.copy(Path(mistral_common.__file__).parent / "data" / "tokenizer.model.v1", folder / "tokenizer.model")
    return {
        "chatml": AutoTokenizer.from_pretrained(embedded),
        "llama2": AutoTokenizer.from_pretrained(folder),
        "whole_numbers": _whole_number_tokenizer(),
    }


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tokenizers: dict[str, Any]) -> Any:
    return tokenizers[request.param]


def _whole_number_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([f"[Score] {n}\n[Review] the plot is {n} of 10, Plot A, Plot B" for n in range(1, 11)] * 20, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.chat_template = CHATML
    return fast


def tiny_llama(tokenizer: Any, *, seed: int = 0, context: int = 2048) -> Any:
    """A random two-layer Llama for this tokenizer, float32, with logits spread enough to tell tokens apart."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=0.3,
    )
    return LlamaForCausalLM(config).eval()


@pytest.fixture(scope="session")
def tiny_model_folder(tokenizers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with the ChatML tokenizer, saved as any model is."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    tiny_llama(tokenizers["whole_numbers"]).save_pretrained(folder)
    tokenizers["whole_numbers"].save_pretrained(folder)
    return folder


WORDS = "a quiet harbour town loses its ferry and gains a ghost who sells tickets for 10 coins until winter ends".split()


def words(n: int, seed: object) -> str:
    return " ".join(random.Random(str(seed)).choices(WORDS, k=n))


def pointwise_examples(readers: int = 3, each: int = 4, *, k: int = 3) -> list[PointwiseExample]:
    """Readers whose queries share a profile."""
    examples = []
    for reader in range(readers):
        profile = tuple(
            ProfileReview(text=words(20, (reader, n, "t")), review=words(8, (reader, n, "r")), score=1 + (reader * 3 + n) % 10) for n in range(k)
        )
        for n in range(each):
            examples.append(
                PointwiseExample(
                    id=f"r{reader}-{n}",
                    reviewer_id=f"r{reader}",
                    item_id=f"i{n}",
                    profile=profile,
                    query=words(15 + 3 * n, (reader, n, "q")),
                    reference=ReviewReference(review=words(6, (reader, n, "a")), score=1 + (reader + 3 * n) % 10),
                )
            )
    return examples


def pairwise_examples(readers: int = 3) -> list[PairwiseExample]:
    return [
        PairwiseExample(
            id=f"r{reader}-{aspect}",
            reviewer_id=f"r{reader}",
            aspect=aspect,
            profile=(ProfileComparison(text_a=words(9, (reader, 1)), text_b=words(9, (reader, 2)), preference={"Ending": "A", "Surprise": "B"}),),
            query=Pair(text_a=words(9, (reader, 3)), text_b=words(11, (reader, 4)), premise="A ferry is lost."),
            reference=ChoiceReference(preference="A" if reader % 2 else "B"),
        )
        for reader in range(readers)
        for aspect in ("Ending", "Surprise")
    ]
