"""What tests build: a tokenizer that knows whole numbers, tiny random models, examples."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from perse.questions import Question
from perse.records import (
    Asked,
    ChoiceReference,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileComparison,
    ProfileReview,
    ReviewReference,
)
from perse.rendering.prompt import Message, TextRenderer

KINDS = ("chatml", "llama2", "whole_numbers")

CHATML = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"


def whole_number_tokenizer() -> Any:
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
    tokenizer.train_from_iterator(
        [f"[Score] {n}\n[Review] the plot is {n} of 10, Plot A, Plot B" for n in range(1, 11)] * 20, trainer
    )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.chat_template = CHATML
    return fast


def joining_tokenizer(pair: str) -> Any:
    """A tokenizer of single bytes but for one token, `pair`."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    [(shown, _)] = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(pair)
    grown = [shown[:n] for n in range(2, len(shown) + 1)]
    vocab = {token: n for n, token in enumerate(["<|im_start|>", "<|im_end|>", *bytes_, *grown])}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[(whole[:-1], whole[-1]) for whole in grown]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>")
    fast.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    fast.chat_template = CHATML
    return fast


def tiny_llama(tokenizer: Any, *, seed: int = 0, context: int = 2048, width: int = 32) -> Any:
    """A random two-layer Llama for this tokenizer, float32, with logits spread enough to tell tokens apart; vLLM's attention
    wants heads of 32, so `width` 128."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
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


def save_answering_llama(tokenizer: Any, folder: Path, *, width: int = 32) -> Path:
    """A tiny random Llama that gives scores: one dimension is the same for all tokens, and the tokens of scores look at it."""
    import torch

    model = tiny_llama(tokenizer, context=8192, width=width)
    likes = [token for token in range(len(tokenizer)) if tokenizer.decode([token]) in {f" {n}" for n in range(1, 11)}]
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] = 12.0
        model.lm_head.weight[likes, 0] += 10.0 * width / 32
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def adapter_on(base: Path, folder: Path, **settings: Any) -> Path:
    """A LoRA adapter of random numbers for the model in `base`, as peft saves it."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_pretrained(base)
    kinds = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "init_lora_weights": False, "task_type": "CAUSAL_LM"}
    get_peft_model(model, LoraConfig(**{**kinds, **settings})).save_pretrained(folder)
    return folder


WORDS = [
    "a",
    "quiet",
    "harbour",
    "town",
    "loses",
    "its",
    "ferry",
    "and",
    "gains",
    "a",
    "ghost",
    "who",
    "sells",
    "tickets",
    "for",
    "10",
    "coins",
    "until",
    "winter",
    "ends",
]


def words(n: int, seed: object) -> str:
    return " ".join(random.Random(str(seed)).choices(WORDS, k=n))


def pointwise_examples(readers: int = 3, each: int = 4, *, k: int = 3) -> list[PointwiseExample]:
    """Readers whose queries share a profile."""
    examples = []
    for reader in range(readers):
        profile = tuple(
            ProfileReview(text=words(20, (reader, n, "t")), review=words(8, (reader, n, "r")), score=1 + (reader * 3 + n) % 10)
            for n in range(k)
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
            profile=(
                ProfileComparison(
                    text_a=words(9, (reader, 1)), text_b=words(9, (reader, 2)), preference={"Ending": "A", "Surprise": "B"}
                ),
            ),
            query=Pair(text_a=words(9, (reader, 3)), text_b=words(11, (reader, 4)), premise="A ferry is lost."),
            reference=ChoiceReference(preference="A" if reader % 2 else "B"),
        )
        for reader in range(readers)
        for aspect in ("Ending", "Surprise")
    ]


class Reworded(TextRenderer):
    """Asks the same in other words, as another version of a template would."""

    def render(self, question: Question, example: Asked) -> tuple[Message, ...]:
        return tuple(replace(message, text=f"{message.text}\nThink first.") for message in super().render(question, example))


def state_of(step: int) -> dict[str, Any]:
    return {"global_step": step, "log_history": [], "stateful_callbacks": {"TrainerControl": {}}}
