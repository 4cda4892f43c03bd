"""The embedded engine: a Hugging Face causal LM in this process, on CPU or one GPU.

Every prompt is computed as one unpadded row, beyond the beginning that the prefix cache knows: on a CPU this is more than
twice as fast as padded batches, and a distribution does not depend on its neighbours. Only writing is done in batches,
because there the weights are read once for all rows. Shapes: N rows, T tokens, V vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import DynamicCache

from perse.engines.base import Capabilities, Failure, Generation, LabelDistribution, Sampling
from perse.engines.labels import label_probabilities
from perse.engines.prefix_cache import BUDGET, PrefixCache, parts
from perse.engines.sixteen_bit import warn_if_slow
from perse.errors import BadInput
from perse.models import finding as models
from perse.rendering.prompt import Ids, LabelTokens

if TYPE_CHECKING:
    from perse.engines.grammar import Grammars, Guide


class TransformersEngine:
    """Exact judging with one model in this process.

    Args:
        model: a causal LM in evaluation mode.
        tokenizer: the folder of its tokenizer, read when a schema is first asked for; without it no schema is obeyed.
        max_rows: most prompts written to at the same time.
        trust_remote_code: whether code that came with the model was run, or may be.
        cache_bytes: keys and values kept for prompts that begin alike; 0 computes every prompt whole.
    """

    def __init__(
        self,
        model: Any,
        *,
        tokenizer: Path | None = None,
        max_rows: int = 16,
        cache_bytes: int = BUDGET,
        trust_remote_code: bool = False,
    ) -> None:
        self.model = model
        self.capabilities = Capabilities(
            accepts_token_ids=True, exact_distribution=True, json_schema=tokenizer is not None, batch=max_rows
        )
        self._trust = trust_remote_code
        self.max_rows = max_rows
        self._tokenizer = tokenizer
        self._grammars: Grammars | None = None
        self._prefixes = PrefixCache(cache_bytes)

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        adapter: Path | None = None,
        dtype: str = "bfloat16",
        cache_bytes: int = BUDGET,
        trust_remote_code: bool = False,
    ) -> TransformersEngine:
        """The model at `path`, with a LoRA adapter where one is given, on the GPU if there is one, else the CPU; `dtype` is
        "bfloat16", "float16" or "float32".

        Raises:
            BadInput: it cannot be used, or computes no numbers.
        """
        device = "cuda" if torch.cuda.is_available() else "cpu"
        opened = models.load(path, dtype=dtype, adapter=adapter, trust_remote_code=trust_remote_code)
        model = _with_exact_head(opened).to(device).eval()
        warn_if_slow(model, setting="dtype float32 (--dtype float32)")
        _check_computes(model, f"the model {path}" + (f" with the adapter {adapter}" if adapter else ""), dtype)
        return cls(model, tokenizer=path, cache_bytes=cache_bytes, trust_remote_code=trust_remote_code)

    @property
    def settings(self) -> dict[str, str]:
        return {
            "engine": "transformers",
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "head_dtype": str(self.model.get_output_embeddings().weight.dtype).removeprefix("torch."),
            "device": self.model.device.type,
            **({"trust_remote_code": "true"} if self._trust else {}),
        }

    @torch.inference_mode()
    def label_distributions(self, prefixes: Sequence[Ids], support: LabelTokens) -> list[LabelDistribution | Failure]:
        # Labels are paths in a tree of tokens. Going down a chain of inner nodes predicts after each of them, so one
        # forward pass a chain gives every token's probability; for 1-10 with split digits the only chain is "1".
        inner = {label[:n] for label in support.labels for n in range(1, len(label))}
        chains = sorted(node for node in inner if not any(other[: len(node)] == node for other in inner if other != node)) or [
            ()
        ]
        return [self._read(prefix + support.stem, chains, support) for prefix in prefixes]

    @torch.inference_mode()
    def generate(
        self,
        prompts: Sequence[Ids],
        sampling: Sampling,
        *,
        seeds: Sequence[int],
        wanted: Callable[[], None] = lambda: None,
    ) -> list[Generation | Failure]:
        """See `Engine`. `wanted` is called before each prompt and each token; what it raises ends the writing."""
        guides = self._guides(sampling, len(prompts))
        found: list[Generation | Failure] = []
        for start in range(0, len(prompts), self.max_rows):
            some = slice(start, start + self.max_rows)
            writing = [
                _Writing(torch.Generator().manual_seed(n), guide) for n, guide in zip(seeds[some], guides[some], strict=True)
            ]
            found += self._write(prompts[some], sampling, writing, wanted)
        return found

    def forget(self) -> None:
        """Drop the keys and values of all prompts."""
        self._prefixes.clear()

    def _guides(self, sampling: Sampling, count: int) -> Sequence[Guide | None]:
        if sampling.schema is None:
            return [None] * count
        if self._grammars is None:
            if self._tokenizer is None:
                raise BadInput(
                    "this TransformersEngine was made without a tokenizer, so it cannot follow a JSON schema; "
                    "make it with tokenizer=FOLDER or by TransformersEngine.load"
                )
            from perse.engines.grammar import Grammars
            from perse.models.opening import tokenizer

            self._grammars = Grammars(tokenizer(self._tokenizer, trust_remote_code=self._trust))
        return self._grammars.guides(sampling.schema, sampling.stop_ids, count=count)

    def _read(self, prefix: Ids, chains: Sequence[Ids], support: LabelTokens) -> LabelDistribution | Failure:
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

    def _write(
        self, prompts: Sequence[Ids], sampling: Sampling, writing: Sequence[_Writing], wanted: Callable[[], None]
    ) -> list[Generation | Failure]:
        begun = []
        for prompt in prompts:
            wanted()
            begun.append(self._prefill(prompt, last=1))
        rows = _Rows(self.model, [cache for _, cache, _ in begun], torch.cat([logprobs for logprobs, _, _ in begun]))
        still = list(writing)
        while True:
            wanted()
            tokens = _choose(rows.logprobs, sampling.temperature, still)
            for row, (one, token) in enumerate(zip(still, tokens, strict=True)):
                one.add(token, float(rows.logprobs[row, token]))
            going = [
                row
                for row, one in enumerate(still)
                if one.ids[-1] not in sampling.stop_ids and len(one.ids) < sampling.max_new_tokens and not one.problem
            ]
            if not going:
                break
            if len(going) < len(still):  # a row that has ended costs nothing from here
                rows.keep(going)
                still = [still[row] for row in going]
            rows.step([one.ids[-1] for one in still])
        return [
            Failure(f"the text cannot go on as the JSON schema says: {one.problem}")
            if one.problem
            else Generation(
                ids=tuple(one.ids),
                finish_reason="stop" if one.ids[-1] in sampling.stop_ids else "length",
                mean_logprob=one.logprob / len(one.ids),
                cached=known,
            )
            for one, (_, _, known) in zip(writing, begun, strict=True)
        ]


@torch.inference_mode()
def _check_computes(model: Any, what: str, dtype: str) -> None:
    """Check the first tokens for wrong settings that no shape shows, and for weights that are NaN.

    Raises:
        BadInput: it does.
    """
    from perse.models.opening import one_sentence

    for name, held in (*model.named_parameters(), *model.named_buffers()):  # attention can pass over what is not a number
        if held.is_floating_point() and not bool(held.isfinite().all()):
            raise BadInput(f"{what} has weights that are not finite ({name}); fetch or copy its weights again")
    with one_sentence(what):
        count = min(8, model.get_input_embeddings().weight.shape[0])
        logits = model(input_ids=torch.arange(count, device=model.device)[None]).logits  # (1, T, V)
    if not bool(logits.isfinite().all()):
        other = "take bfloat16 or float32" if dtype == "float16" else "fetch or copy its weights again"
        raise BadInput(f"{what} computes logits that are not finite in {dtype}; {other}")


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
    """What has been written after one prompt so far, and the sum of its log-probabilities, whatever else was allowed."""

    generator: torch.Generator
    guide: Guide | None  # where there is a schema
    ids: list[int] = field(default_factory=list)
    logprob: float = 0.0

    def add(self, token: int, logprob: float) -> None:
        self.ids.append(token)
        self.logprob += logprob
        if self.guide:
            self.guide.advance(token)

    @property
    def problem(self) -> str | None:
        """Why its schema lets no token follow, or None."""
        return self.guide.problem if self.guide else None


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
        """Keep these rows only."""
        chosen = torch.tensor(rows, device=self.mask.device)
        self.cache.batch_select_indices(chosen)
        self.mask, self.ends = self.mask[chosen], self.ends[chosen]

    def step(self, tokens: Sequence[int]) -> None:
        """Append one token to every row."""
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


def _choose(logprobs: Tensor, temperature: float, writing: Sequence[_Writing]) -> list[int]:
    """One token a row: the likeliest at temperature 0, else drawn by the row's own generator (Gumbel-max); of those that its
    schema allows, where it has one.

    The noise is drawn on the CPU row by row, so that a row's text depends on its seed and not on its neighbours. Every token
    gets its noise, allowed or not, so that a schema changes no text that would have followed it anyway.
    """
    scores = logprobs
    if temperature != 0:
        noise = torch.stack(
            [torch.empty(logprobs.shape[-1]).exponential_(generator=one.generator).log().neg() for one in writing]
        )
        scores = logprobs / temperature + noise.to(logprobs.device)
    guides = [one.guide for one in writing if one.guide]  # of all rows or of none
    if guides:
        from perse.engines.grammar import allowed

        scores = scores.masked_fill(~allowed(guides, logprobs), -torch.inf)
    return [int(token) for token in scores.argmax(-1)]
