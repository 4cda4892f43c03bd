"""How close a written review is to the reviewer's own in the eyes of a model: BERTScore and BARTScore (PerSE, table 3).

Models are folders on this machine; nothing is fetched. Where one is absent, or the package, the metric is skipped with a
reason: two runs can be compared without it, and a table that failed for it would be worse than one that says so. A score
depends on the model, so `setting` names it: numbers of different models do not compare.

Batches go by length and are cut alike in every run, so that a second run gives the same bytes. Texts longer than the model's
context are cut at its end, as these metrics' authors do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray
from perse.installing import install
from perse.models.model_files import model_config
from perse.models.opening import check_for_others, one_sentence, sequence_to_sequence

_NO_LIMIT = 1_000_000
"""Tokenizers that know no longest text say a huge number."""


@dataclass(frozen=True)
class TextScores:
    """One value a review, (n,), in float32 precision; or None and why."""

    values: FloatArray | None
    setting: str = ""
    """Model and layer, for the table's footnote."""
    skipped: str | None = None


def bert_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    model: Path | None,
    num_layers: int | None = None,
    batch_size: int = 64,
    device: str | None = None,
) -> TextScores:
    """BERTScore F1 of each review (Zhang et al., 2019), not rescaled, without idf: usually 0.8 to 0.95, 1 is the same words.

    The bert-score package's embedding and matching. An empty text scores 0, as it does there.

    Args:
        model: folder of an encoder.
        num_layers: whose layer's vectors are compared; by default the one that bert-score recommends for a folder of that
            name (`roberta-large`: 17), else the last.
    """
    if why := _no_model(model):
        return TextScores(None, skipped=f"BERTScore: {why}")
    assert model is not None
    try:
        from bert_score.utils import get_bert_embedding, get_model, get_tokenizer, greedy_cos_idf, model2layers
    except ModuleNotFoundError as error:
        return TextScores(None, skipped=f"BERTScore: {error.name} is not installed: {install('report')}")
    path = str(model.absolute())  # what is no path the package fetches from elsewhere
    try:
        check_for_others(model)
        config = model_config(model)
        if "t5" in path and config["model_type"] not in ("t5", "mt5", "umt5"):  # the package looks at the path alone
            return TextScores(
                None, skipped=f"BERTScore: bert-score takes {model} for a T5 model by its path; rename the folder"
            )
        layers = num_layers or model2layers.get(model.name) or model2layers.get(config.get("_name_or_path", ""))
        layers = int(layers or config.get("num_hidden_layers") or config.get("n_layers") or 0)
        _no_progress_bars()
        with one_sentence(f"the model {model}"):
            tokenizer, encoder = get_tokenizer(path, use_fast=True), get_model(path, layers)
    except BadInput as error:
        return TextScores(None, skipped=f"BERTScore: {model} is not usable: {_first_line(error)}")
    if tokenizer.model_max_length > _NO_LIMIT:
        tokenizer.model_max_length = config.get("max_position_embeddings", 514) - 2  # RoBERTa's count from 2
    device = device or _device()
    encoder.to(device)
    weights: defaultdict[int, float] = defaultdict(lambda: 1.0)  # no idf: every token counts 1, the special ones 0
    weights |= {tokenizer.sep_token_id: 0.0, tokenizer.cls_token_id: 0.0}

    def score(cut: list[int]) -> list[float]:
        sides = [[texts[at] for at in cut] for texts in (references, hypotheses)]
        embedded: list[Any] = []
        for side in sides:
            embedded += get_bert_embedding(side, encoder, tokenizer, weights, device=device)
        return greedy_cos_idf(*embedded)[2].tolist()  # type: ignore[no-any-return]

    values = _batched(score, hypotheses, references, batch_size=batch_size, empty=0.0)
    return TextScores(values, setting=f"{model.name}, layer {layers}")


def bart_scores(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    model: Path | None,
    batch_size: int = 16,
    device: str | None = None,
) -> TextScores:
    """BARTScore of each review (Yuan et al., 2021): (1 / m) sum over t of log P(y_t | y_<t, x), natural logarithm, below 0.

    x is the written review and y the reviewer's own, of m tokens, special ones included: how well the written review lets a
    model foresee the real one. That is the direction "hypothesis to reference" (recall). In it the tokens that are scored are
    the same for every judge; the other way round, a judge that writes short and common phrases would score high whatever the
    reader said. PerSE does not say which direction its table 3 has.
    """
    if why := _no_model(model):
        return TextScores(None, skipped=f"BARTScore: {why}")
    assert model is not None
    try:
        import torch
        from transformers import AutoModelForSeq2SeqLM  # noqa: F401  # whether it is there
    except ModuleNotFoundError as error:
        return TextScores(None, skipped=f"BARTScore: {error.name} is not installed: {install('serve')}")
    _no_progress_bars()
    try:
        tokenizer, bart = sequence_to_sequence(model, dtype=torch.float32)
    except BadInput as error:
        return TextScores(None, skipped=f"BARTScore: {model} is not usable: {_first_line(error)}")
    device = device or _device()
    bart.eval().to(device)
    longest = min(tokenizer.model_max_length, getattr(bart.config, "max_position_embeddings", _NO_LIMIT))

    def encoded(texts: Sequence[str], cut: list[int]) -> Any:
        chosen = [texts[at] for at in cut]
        return tokenizer(chosen, max_length=longest, truncation=True, padding=True, return_tensors="pt").to(device)

    def score(cut: list[int]) -> list[float]:
        source, target = encoded(hypotheses, cut), encoded(references, cut)
        with torch.no_grad():
            logits = bart(
                input_ids=source["input_ids"], attention_mask=source["attention_mask"], labels=target["input_ids"]
            ).logits  # (B, m, vocabulary)
        logs = logits.log_softmax(dim=-1).gather(2, target["input_ids"][..., None])[..., 0]  # (B, m)
        mask = target["attention_mask"]
        return ((logs * mask).sum(dim=1) / mask.sum(dim=1)).tolist()  # type: ignore[no-any-return]

    values = _batched(score, hypotheses, references, batch_size=batch_size)
    return TextScores(values, setting=f"{model.name}, hypothesis to reference")


def _no_model(model: Path | None) -> str | None:
    if model is None:
        return "no model given"
    if not (model / "config.json").is_file():
        return f"no model at {model} (a folder with config.json)"
    return None


def _batched(
    score: Callable[[list[int]], list[float]],
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    batch_size: int,
    empty: float | None = None,
) -> FloatArray:
    """`score` of the rows of each batch, in the order of the rows; `empty`, if given, is the score of an empty text's row."""
    values = np.zeros(len(hypotheses))
    both = list(zip(hypotheses, references, strict=True))
    rows = [at for at, texts in enumerate(both) if empty is None or all(text.strip() for text in texts)]
    if empty is not None:
        values[:] = empty
    rows.sort(key=lambda at: (sum(map(len, both[at])), at))
    for cut in _cuts(rows, batch_size):
        values[cut] = score(cut)
    return values


def _cuts(rows: list[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _no_progress_bars() -> None:
    """Loading takes a second; transformers' own bars for it only get in the way of a table."""
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
