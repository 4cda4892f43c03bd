"""Floating-point operations of training: what the planner turns into hours and the log into model FLOPs utilisation.

A multiplication and an addition are two. A weight that a token passes costs 2 forward, 2 for the gradient of what came in and
2 for its own gradient, which frozen weights are spared: 6 N when all weights are trained, 4 N and 6 per adapter weight with
LoRA. Attention costs by the pairs of tokens that see each other, the LM head by the places where a token is learned. What is
left out (norms, softmax, the optimizer) is less than a hundredth of a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from perse.training.model.heads import head_widths
from perse.training.model.quantized import count_weights


@dataclass(frozen=True)
class Passed:
    """The weights of a model, by how tokens use them.

    `frozen`, `trained`: weights of the layers that each token passes, adapters being trained ones. `head`, `head_trained`:
    those of the LM head, which the places before a learned token pass. `attention`: width of the attention summed over
    layers (layers x query heads x width of a head).
    """

    frozen: int
    trained: int
    head: int
    head_trained: bool
    attention: int


def passed(model: Any) -> Passed | None:
    """What a token of `model` passes; the embedding is looked up and costs nothing. Weights on the meta device will do.

    None for a mixture of experts: a token passes some of them, and how many each model's configuration says in its own way.
    """
    if any("Experts" in type(module).__name__ for module in model.modules()):  # what transformers calls them in every model
        return None
    inputs, outputs = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    # What is trained whole beside an adapter is computed with, and what it was copied from is not.
    used = [each for name, each in model.named_parameters() if ".original_module." not in name]
    layers = [each for each in used if each is not inputs and each is not outputs]
    return Passed(
        frozen=sum(count_weights(each) for each in layers if not each.requires_grad),
        trained=sum(each.numel() for each in layers if each.requires_grad),
        head=outputs.numel(),
        head_trained=outputs.requires_grad,
        attention=model.config.get_text_config().num_attention_heads * sum(head_widths(model)),
    )


def training_flops(weights: Passed, *, tokens: int, pairs: int, learned: int, recomputed: bool = False) -> float:
    """Operations of forward and backward over rows of `tokens` tokens in all.

    Args:
        pairs: query-key pairs that attend (`Tree.pairs`, summed over rows).
        learned: places at which the LM head is computed.
        recomputed: gradient checkpointing, which computes the layers forward a second time: a third more for full
            fine-tuning, half more with LoRA. Leave it out for utilisation: what is computed twice trains no more.
    """
    # A pair: scores and weighted values, 2 a unit of width each; their gradients are four products of the same size.
    forward = 2.0 * (weights.frozen + weights.trained) * tokens + 4.0 * weights.attention * pairs
    backward = 2.0 * weights.frozen * tokens + 4.0 * weights.trained * tokens + 8.0 * weights.attention * pairs
    head = (6.0 if weights.head_trained else 4.0) * weights.head * learned
    return forward * (2 if recomputed else 1) + backward + head
