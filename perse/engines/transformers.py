"""The embedded engine: a Hugging Face causal LM in this process, on CPU or one GPU.

Every prompt is computed as one unpadded row, beyond the beginning that the prefix cache knows: on a CPU this is more than
twice as fast as padded batches, and a distribution does not depend on its neighbours. Only writing is done in batches,
because there the weights are read once for all rows. Shapes: N rows, T tokens, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from perse import models
from perse.engines.base import Capabilities, Failure, Generation, LabelDistribution, Sampling
from perse.engines.labels import label_probabilities
from perse.engines.prefix_cache import BUDGET, PrefixCache, parts
from perse.rendering import Ids, LabelSupport


class TransformersEngine:
    """Exact judging with one model in this process.

    Args:
        model: a causal LM in evaluation mode.
        max_rows: most prompts written to at the same time.
        cache_bytes: keys and values kept for prompts that begin alike; 0 computes every prompt whole.
    """

    capabilities = Capabilities(accepts_token_ids=True, exact_distribution=True)

    def __init__(self, model: Any, *, max_rows: int = 16, cache_bytes: int = BUDGET) -> None:
        self.model = model
        self.max_rows = max_rows
        self._prefixes = PrefixCache(cache_bytes)

    @classmethod
    def load(cls, path: Path, *, adapter: Path | None = None, dtype: str = "bfloat16") -> TransformersEngine:
        """The model at `path`, with a LoRA adapter where one is given, on the GPU if there is one, else the CPU; `dtype` is
        "bfloat16", "float16" or "float32"."""
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return cls(_with_exact_head(models.load(path, dtype=dtype, adapter=adapter)).to(device).eval())

    @property
    def settings(self) -> dict[str, str]:
        return {
            "engine": "transformers",
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "head_dtype": str(self.model.get_output_embeddings().weight.dtype).removeprefix("torch."),
            "device": self.model.device.type,
        }

    @torch.inference_mode()
    def label_distributions(self, prefixes: Sequence[Ids], support: LabelSupport) -> list[LabelDistribution | Failure]:
        # Labels are paths in a tree of tokens. Going down a chain of inner nodes predicts after each of them, so one
        # forward pass a chain gives every token's probability; for 1-10 with split digits the only chain is "1".
        inner = {label[:n] for label in support.labels for n in range(1, len(label))}
        chains = sorted(node for node in inner if not any(other[: len(node)] == node for other in inner if other != node)) or [
            ()
        ]
        return [self._read(prefix + support.stem, chains, support) for prefix in prefixes]

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Ids], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation | Failure]:
        found: list[Generation | Failure] = []
        for start in range(0, len(prompts), self.max_rows):
            some = slice(start, start + self.max_rows)
            found += self._write(prompts[some], sampling, seeds[some])
        return found

    def _read(self, prefix: Ids, chains: Sequence[Ids], support: LabelSupport) -> LabelDistribution | Failure:
        after: dict[Ids, Tensor] = {}  # node -> next-token log-probabilities (V,)
        cached = None
        for chain in chains:
            logprobs, _, known = self._prefill(prefix + chain, last=len(chain) + 1)
            cached = known if cached is None else cached  # later chains find what the first one computed
            for n in range(len(chain) + 1):
                after[chain[:n]] = logprobs[n]
        whole = [sum(float(after[label[:n]][token]) for n, token in enumerate(label)) for label in support.labels]
        if not all(math.isfinite(logprob) for logprob in whole):
            return Failure(f"the model's probabilities are not finite ({whole}); with float16, take bfloat16 or float32")
        return label_probabilities(torch.tensor(whole, dtype=torch.float64).exp().tolist(), support, cached=cached or 0)

    def _prefill(self, ids: Ids, *, last: int) -> tuple[Tensor, DynamicCache, int]:
        """Next-token log-probabilities (last, V) after the last positions of `ids`, keys and values, and how many tokens
        were known before."""
        # The last positions must be computed to be predicted from, so the known beginning ends before them.
        cache, known = self._prefixes.longest(ids[: len(ids) - last + 1])
        rest = torch.tensor([ids[known:]], device=self.model.device)  # (1, T)
        out = self.model(input_ids=rest, past_key_values=cache, use_cache=True, logits_to_keep=last)
        self._prefixes.keep(ids, cache)
        return torch.log_softmax(out.logits[0].float(), dim=-1), cache, known

    def _write(self, prompts: Sequence[Ids], sampling: Sampling, seeds: Sequence[int]) -> list[Generation | Failure]:
        begun = [self._prefill(prompt, last=1) for prompt in prompts]
        writing = [_Writing(torch.Generator().manual_seed(seed)) for seed in seeds]
        rows = _Rows(self.model, [cache for _, cache, _ in begun], torch.cat([logprobs for logprobs, _, _ in begun]))
        still = writing
        while True:
            tokens = _choose(rows.logprobs, sampling.temperature, [one.generator for one in still])
            for row, (one, token) in enumerate(zip(still, tokens, strict=True)):
                one.logprob += float(rows.logprobs[row, token])
                one.ids.append(token)
            going = [
                row
                for row, one in enumerate(still)
                if one.ids[-1] not in sampling.stop_ids and len(one.ids) < sampling.max_new_tokens
            ]
            if not going:
                break
            if len(going) < len(still):  # a row that has ended costs nothing from here
                rows.keep(going)
                still = [still[row] for row in going]
            rows.step([one.ids[-1] for one in still])
        return [
            Generation(
                ids=tuple(one.ids),
                finish_reason="stop" if one.ids[-1] in sampling.stop_ids else "length",
                mean_logprob=one.logprob / len(one.ids),
                cached=known,
            )
            for one, (_, _, known) in zip(writing, begun, strict=True)
        ]


class _Float32Head(torch.nn.Module):
    """An LM head that computes in float32, whatever the rest does."""

    def __init__(self, head: torch.nn.Linear) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(head.weight.detach().float(), requires_grad=False)
        self.bias = None if head.bias is None else torch.nn.Parameter(head.bias.detach().float(), requires_grad=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.nn.functional.linear(hidden.float(), self.weight, self.bias)


def _with_exact_head(model: Any) -> Any:
    """Logits in float32: near 16, bfloat16 has steps of 1/8, which halves or doubles a small label's share. Expected scores of the
    embedded model are then within 0.1 of float32's instead of 0.14, for V x width x 4 bytes (113 MB; LLaMA-2 7B: 524 MB)."""
    head = model.get_output_embeddings()
    if type(head) is torch.nn.Linear and head.weight.dtype != torch.float32:  # an adapter on the head stays as it is
        model.set_output_embeddings(_Float32Head(head))
    return model


@dataclass
class _Writing:
    """What has been written after one prompt so far, and the sum of its log-probabilities."""

    generator: torch.Generator
    ids: list[int] = field(default_factory=list)
    logprob: float = 0.0


class _Rows:
    """Prompts side by side, padded on the left, and the next-token log-probabilities (N, V) of each."""

    def __init__(self, model: Any, caches: Sequence[DynamicCache], logprobs: Tensor) -> None:
        self.model = model
        self.logprobs = logprobs
        lengths = [cache.get_seq_length() for cache in caches]
        longest = max(lengths)
        self.ends = torch.tensor(lengths, device=logprobs.device)  # (N,) position of the next token
        self.mask = (torch.arange(longest, device=logprobs.device) >= longest - self.ends[:, None]).long()  # (N, T)
        self.cache = DynamicCache()
        for at, layer in enumerate(zip(*map(parts, caches), strict=True)):  # layer: (keys, values) of every prompt
            keys, values = (torch.cat([_padded(part, longest) for part in side]) for side in zip(*layer, strict=True))
            self.cache.update(keys, values, at)

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows only."""
        chosen = torch.tensor(rows, device=self.mask.device)
        self.cache.batch_select_indices(chosen)
        self.mask, self.ends = self.mask[chosen], self.ends[chosen]

    def step(self, tokens: Sequence[int]) -> None:
        """One token further in every row."""
        self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], dim=1)
        out = self.model(
            input_ids=torch.tensor(tokens, device=self.mask.device)[:, None],
            attention_mask=self.mask,
            position_ids=self.ends[:, None],
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self.ends = self.ends + 1
        self.logprobs = torch.log_softmax(out.logits[:, -1].float(), dim=-1)


def _padded(part: Tensor, length: int) -> Tensor:
    """Keys or values (1, heads, T, width) with zeros in front, up to `length` positions."""
    return torch.nn.functional.pad(part, (0, 0, length - part.shape[2], 0))


def _choose(logprobs: Tensor, temperature: float, generators: Sequence[torch.Generator]) -> list[int]:
    """One token a row: the likeliest at temperature 0, else drawn by the row's own generator (Gumbel-max).

    The noise is drawn on the CPU row by row, so that a row's text depends on its seed and not on its neighbours.
    """
    if temperature == 0:
        return [int(token) for token in logprobs.argmax(-1)]
    noise = torch.stack(
        [torch.empty(logprobs.shape[-1]).exponential_(generator=generator).log().neg() for generator in generators]
    )
    return [int(token) for token in (logprobs / temperature + noise.to(logprobs.device)).argmax(-1)]
