"""The embedded engine: a Hugging Face causal LM in this process, on CPU or one GPU.

Prompts are sorted, neighbours that begin alike form a batch, and the common beginning is computed once for all its rows;
between batches the key-value cache of the last common beginning is kept, so instruction and profile are paid for once per
reviewer. Rows are padded between the common beginning and what differs, never at the end, so the last position is always
the one that predicts. Shapes: N rows, P shared tokens, L own tokens (padded), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from perse import models
from perse.engines.base import Capabilities, Generation, LabelDistribution, Sampling, label_probabilities
from perse.rendering import Ids, LabelSupport


@dataclass(frozen=True)
class Batch:
    """Rows `members` (indices of prompts) that begin with the same `shared` tokens."""

    members: tuple[int, ...]
    shared: int


def common(a: Ids, b: Ids) -> int:
    """Number of leading tokens that `a` and `b` share."""
    for at, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return at
    return min(len(a), len(b))


def plan(prompts: Sequence[Ids], max_rows: int) -> list[Batch]:
    """Cut the sorted prompts into batches; a prompt joins the batch before it when that computes fewer tokens.

    Computed tokens of a batch: the shared beginning once, plus rows times the longest rest (padding included). One token
    of every row is left out of the shared part, because a forward pass needs something to predict from.
    """
    order = sorted(range(len(prompts)), key=lambda i: prompts[i])
    batches: list[Batch] = []
    longest = 0
    for i in order:
        alone = len(prompts[i]) - 1
        if batches:
            last = batches[-1]
            shared = min(last.shared, common(prompts[last.members[0]], prompts[i]), alone)
            longest_joined = max(longest, len(prompts[i]))
            rows = len(last.members)
            joined = shared + (rows + 1) * (longest_joined - shared)
            # What is shared with the batch before is reused by the next batch too, so apart costs only the rest.
            apart = last.shared + rows * (longest - last.shared) + len(prompts[i]) - shared
            if rows < max_rows and joined <= 1.1 * apart:
                batches[-1] = Batch((*last.members, i), shared)
                longest = longest_joined
                continue
        batches.append(Batch((i,), alone))
        longest = len(prompts[i])
    return batches


class TransformersEngine:
    """Exact judging with one model in this process.

    Args:
        model: a causal LM in evaluation mode.
        max_rows: most prompts computed together.
        reuse: compute shared beginnings once. Off, every prompt is computed alone: the slow twin of the tests.
    """

    capabilities = Capabilities(accepts_token_ids=True, exact_distribution=True)

    def __init__(self, model: Any, *, max_rows: int = 16, reuse: bool = True) -> None:
        self.model = model
        self.max_rows = max_rows
        self.reuse = reuse
        self._path: Ids = ()
        self._cache: DynamicCache | None = None

    @classmethod
    def load(cls, path: Path, *, dtype: str = "bfloat16", max_rows: int = 16) -> TransformersEngine:
        """The model at `path` on the GPU if there is one, else the CPU; `dtype` is "bfloat16", "float16" or "float32"."""
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return cls(models.load(path, dtype=dtype).to(device).eval(), max_rows=max_rows)

    @property
    def settings(self) -> dict[str, str]:
        return {"engine": "transformers", "dtype": str(self.model.dtype).removeprefix("torch."), "device": self.model.device.type}

    @torch.inference_mode()
    def label_distributions(self, prefixes: Sequence[Ids], support: LabelSupport) -> list[LabelDistribution]:
        prompts = [prefix + support.stem for prefix in prefixes]
        found: dict[int, LabelDistribution] = {}
        # Every label is a path in a tree of tokens; one forward pass per inner node of the tree.
        nodes = sorted({label[:n] for label in support.labels for n in range(len(label))}, key=lambda node: (len(node), node))
        for batch in self._plan(prompts):
            rows = _Rows(self, prompts, batch)
            logprobs = {node: rows.peek(node) for node in nodes}  # node -> (N, V)
            whole = torch.stack(
                [
                    torch.stack([logprobs[label[:n]][:, token] for n, token in enumerate(label)]).sum(0)
                    for label in support.labels
                ],
                dim=1,
            ).exp()  # (N, labels)
            for row, i in enumerate(batch.members):
                found[i] = replace(label_probabilities(whole[row].tolist(), support), cached=rows.cached[row])
        return [found[i] for i in range(len(prompts))]

    @torch.inference_mode()
    def generate(self, prompts: Sequence[Ids], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation]:
        found: dict[int, Generation] = {}
        for batch in self._plan(prompts):
            rows = _Rows(self, prompts, batch)
            writing = [_Writing(i, torch.Generator().manual_seed(seeds[i])) for i in batch.members]
            still = writing
            while True:
                tokens = _choose(rows.logprobs, sampling.temperature, [one.generator for one in still])
                for row, (one, token) in enumerate(zip(still, tokens, strict=True)):
                    one.logprob += float(rows.logprobs[row, token])
                    one.ids.append(token)
                going = [row for row, one in enumerate(still) if not _ended(one, sampling)]
                if not going:
                    break
                if len(going) < len(still):  # a row that has ended costs nothing from here
                    rows.keep(going)
                    still = [still[row] for row in going]
                rows.step([one.ids[-1] for one in still])
            for one, cached in zip(writing, rows.cached, strict=True):
                ended = one.ids[-1] in sampling.stop_ids
                mean = one.logprob / len(one.ids)
                found[one.prompt] = Generation(tuple(one.ids), "stop" if ended else "length", mean, cached)
        return [found[i] for i in range(len(prompts))]

    def _plan(self, prompts: Sequence[Ids]) -> list[Batch]:
        if self.reuse:
            return plan(prompts, self.max_rows)
        return [Batch((i,), 0) for i in range(len(prompts))]

    def shared_cache(self, path: Ids) -> tuple[DynamicCache, int]:
        """Keys and values of `path`, one row, and how many of its tokens came from the path before."""
        kept = common(self._path, path) if self._cache is not None else 0
        cache = _beginning(self._cache, kept, 1) if kept and self._cache is not None else DynamicCache()
        if kept < len(path):
            ids = torch.tensor([path[kept:]], device=self.model.device)
            self.model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        self._path, self._cache = path, cache
        return cache, kept


@dataclass
class _Writing:
    """What one prompt's generation has written so far."""

    prompt: int
    generator: torch.Generator
    ids: list[int] = field(default_factory=list)
    logprob: float = 0.0


def _ended(one: _Writing, sampling: Sampling) -> bool:
    return one.ids[-1] in sampling.stop_ids or len(one.ids) >= sampling.max_new_tokens


class _Rows:
    """The rows of one batch after their prompts: next-token log-probabilities, and a way to go on."""

    def __init__(self, engine: TransformersEngine, prompts: Sequence[Ids], batch: Batch) -> None:
        self.model = engine.model
        n, shared = len(batch.members), batch.shared
        rest = [prompts[i][shared:] for i in batch.members]
        length = max(map(len, rest))
        device = self.model.device
        if shared:
            cache, kept = engine.shared_cache(prompts[batch.members[0]][:shared])
            self.cache = _beginning(cache, shared, n)
            self.cached = [kept] + [shared] * (n - 1)  # the first row pays for what the others share
        else:
            self.cache, self.cached = DynamicCache(), [0] * n
        ids = torch.zeros((n, length), dtype=torch.long)
        own = torch.zeros((n, length), dtype=torch.long)
        for row, tokens in enumerate(rest):
            ids[row, length - len(tokens) :] = torch.tensor(tokens)
            own[row, length - len(tokens) :] = 1
        self.mask = torch.cat([torch.ones((n, shared), dtype=torch.long), own], dim=1).to(device)  # (N, P + L)
        self.ends = self.mask.sum(1)  # (N,) true length, the position of the next token
        self.logprobs = self._forward(ids.to(device), own.to(device).cumsum(1).sub(1).clamp(min=0) + shared)  # (N, V)

    def keep(self, rows: Sequence[int]) -> None:
        """Go on with these rows only."""
        chosen = torch.tensor(rows, device=self.mask.device)
        self.cache.batch_select_indices(chosen)
        self.mask, self.ends, self.logprobs = self.mask[chosen], self.ends[chosen], self.logprobs[chosen]

    def step(self, tokens: Sequence[int]) -> None:
        """One token further in every row."""
        self.logprobs = self._append(torch.tensor(tokens, device=self.mask.device)[:, None])
        self.ends = self.ends + 1

    def peek(self, path: Ids) -> Tensor:
        """Next-token log-probabilities (N, V) after `path`, the rows left as they were."""
        if not path:
            return self.logprobs
        mask, kept = self.mask, self.mask.shape[1]
        cache = self.cache
        self.cache = _beginning(cache, kept, self.mask.shape[0])
        try:
            return self._append(torch.tensor(path, device=mask.device).expand(mask.shape[0], -1))
        finally:
            self.mask, self.cache = mask, cache

    def _append(self, ids: Tensor) -> Tensor:
        more = torch.ones_like(ids)
        self.mask = torch.cat([self.mask, more], dim=1)
        return self._forward(ids, self.ends[:, None] + more.cumsum(1) - 1)

    def _forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        out = self.model(
            input_ids=ids,
            attention_mask=self.mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return torch.log_softmax(out.logits[:, -1].float(), dim=-1)


def _beginning(cache: DynamicCache, length: int, rows: int) -> DynamicCache:
    """A new cache with the first `length` positions of `cache`, its one row (or its `rows` rows) as `rows` rows."""
    copy = DynamicCache()
    for at, layer in enumerate(cache.layers):
        keys, values = layer.keys[:, :, :length], layer.values[:, :, :length]
        copy.update(keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1), at)
    return copy


def _choose(logprobs: Tensor, temperature: float, generators: Sequence[torch.Generator]) -> list[int]:
    """One token a row: the likeliest at temperature 0, else drawn by the row's own generator (Gumbel-max).

    The noise is drawn on the CPU row by row, so that a row's text depends on its seed and not on its neighbours.
    """
    if temperature == 0:
        return [int(token) for token in logprobs.argmax(-1)]
    noise = torch.stack([torch.empty(logprobs.shape[-1]).exponential_(generator=generator).log().neg() for generator in generators])
    return [int(token) for token in (logprobs / temperature + noise.to(logprobs.device)).argmax(-1)]
