"""Judging a model while it is trained: validation loss, parse rate, Kendall or accuracy, of readers it is not trained on.

The validation loss is computed over the same packed rows as training's. The judgements come from the ordinary judge around
the live weights: same renderer, same reading of labels, the LM head in float32, greedy. `sample` chooses what is judged.
The trade-off is noise: Kendall of n unrelated pairs of numbers strays by about 0.67 / sqrt(n) from 0, which is 0.08 for 64.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from peft.utils import ModulesToSaveWrapper

from perse.answering.base import JudgeSettings
from perse.engines.base import Capabilities, Engine, Failure, Generation, LabelDistribution, Sampling
from perse.engines.transformers import TransformersEngine
from perse.evaluation.stats.correlation import kendall
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge
from perse.questions import Question
from perse.records import Example
from perse.rendering.prompt import Ids, LabelTokens, Renderer
from perse.settings.training import Attention
from perse.training.model.looking import only_looking
from perse.training.rows.attention import plain_attention
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.trie import PackedRow
from perse.training.watch.sample import Watched

log = logging.getLogger(__name__)

CACHE = 1024**3
"""Bytes of keys and values kept while judging: one prompt of LLaMA-2 7B, fifty of the embedded model."""


def judged_now(
    model: Any,
    what: Watched,
    renderer: Renderer,
    *,
    attention: Attention,
    take: Callable[[Sequence[Example], Sequence[Judgement]], None] | None = None,
) -> dict[str, float | None]:
    """Every number of one judging of `model` as it is now, which is left as it was: mode, gradients, random state.

    Args:
        take: is given what was judged, and the judgements.
    Returns:
        `loss` per learned token, and what `metrics` says; None where a number is undefined.
    """
    with only_looking(model):
        loss = _loss(model, what.rows, attention)
        if not what.judged:
            return {"loss": loss if math.isfinite(loss) else None}
        with plain_attention(model), _exact_head(model):
            engine = _Brief(TransformersEngine(model, cache_bytes=CACHE), what.new_tokens)
            judge = Judge(engine, renderer, name="in training")
            # The room kept for the answer decides which profile is shown, so it is what it is in training.
            settings = JudgeSettings(temperature=0, max_new_tokens=what.answer_tokens)
            judgements = judge.ask(what.question, what.judged, settings)
    if take is not None:
        take(what.judged, judgements)
    return {"loss": loss if math.isfinite(loss) else None, **metrics(what.question, what.judged, judgements)}


def metrics(question: Question, examples: Sequence[Example], judgements: Sequence[Judgement]) -> dict[str, float | None]:
    """`asked`; `parse_rate`: ok / asked; `accuracy` of the label, and of scores `within_one` label, what is not ok being
    wrong; of scores `kendall` (tau-b) between expected and true score of those that are ok, and `kendall_imputed` of all, the
    mean of the true scores standing for what is not ok; None where undefined."""
    scale, asked = question.scale, len(examples)
    true = [scale.labels.index(question.answer(one)[0]) for one in examples]
    off = [
        abs(scale.labels.index(one.label) - label) if one.status is Status.OK and one.label is not None else None
        for one, label in zip(judgements, true, strict=True)
    ]
    found: dict[str, float | None] = {
        "asked": float(asked),
        "parse_rate": sum(one.status is Status.OK for one in judgements) / asked,
        "accuracy": sum(distance == 0 for distance in off) / asked,
    }
    if scale.values is not None:
        found["within_one"] = sum(distance is not None and distance <= 1 for distance in off) / asked
        gold = np.array([scale.values[label] for label in true], dtype=np.float64)
        told = [one.expected if one.status is Status.OK else None for one in judgements]
        expected = np.array(told, dtype=np.float64)  # None becomes NaN
        ok = ~np.isnan(expected)
        found["kendall"] = kendall(gold[ok], expected[ok])
        found["kendall_imputed"] = kendall(gold, np.where(ok, expected, gold.mean()))
    return found


@torch.no_grad()
def _loss(model: Any, rows: Sequence[PackedRow], attention: Attention) -> float:
    """Negative log-likelihood per learned token."""
    total = 0.0
    for row in rows:
        batch = {key: _on(model, value) for key, value in collate([row], attention=attention).items()}
        labels = batch.pop("labels")
        total += float(answer_loss(model(**batch), labels, 1))
    return total / sum(len(row.targets) for row in rows)


def _on(model: Any, value: Any) -> Any:
    return value.to(model.device) if isinstance(value, torch.Tensor) else value


@contextmanager
def _exact_head(model: Any) -> Iterator[None]:
    """Logits in float32, as the engine has them that judges afterwards; for V x width x 4 bytes meanwhile.

    A hook computes them once more from the hidden states: nothing of the model is replaced, so tied weights stay tied. A head
    with an adapter stays as it is, as it does in the engine, and so does one that is sharded, which is not whole here. Of one that is
    trained whole beside an adapter it is the copy that computes.
    """
    head = model.get_output_embeddings()
    if isinstance(head, ModulesToSaveWrapper):
        head = head.modules_to_save[head.active_adapters[0]]
    whole = type(head) is torch.nn.Linear and type(head.weight) is torch.nn.Parameter and head.weight.numel() > 0
    if not whole:
        yield
        return
    weight = head.weight.detach().float()
    bias = None if head.bias is None else head.bias.detach().float()

    def again(_: Any, given: tuple[torch.Tensor, ...], logits: torch.Tensor) -> torch.Tensor:
        with torch.autocast(logits.device.type, enabled=False):  # train.precision=bf16 would round them again
            return torch.nn.functional.linear(given[0].float(), weight, bias)

    hook = head.register_forward_hook(again)
    try:
        yield
    finally:
        hook.remove()


class _Brief:
    """An engine that writes at most `most` tokens, whatever it is asked for."""

    def __init__(self, engine: Engine, most: int) -> None:
        self.engine = engine
        self.most = most

    @property
    def capabilities(self) -> Capabilities:
        return self.engine.capabilities

    @property
    def settings(self) -> dict[str, str]:
        return self.engine.settings

    def generate(self, prompts: Sequence[Ids], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation | Failure]:
        brief = replace(sampling, max_new_tokens=min(sampling.max_new_tokens, self.most))
        return self.engine.generate(prompts, brief, seeds=seeds)

    def label_distributions(self, prefixes: Sequence[Ids], support: LabelTokens) -> list[LabelDistribution | Failure]:
        return self.engine.label_distributions(prefixes, support)
