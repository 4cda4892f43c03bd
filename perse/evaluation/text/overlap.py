"""How many words a written review shares with the reviewer's own: BLEU and ROUGE (PerSE, table 3).

The numbers are those of sacrebleu (default settings: tokens "13a", exponential smoothing) and rouge-score (no stemmer), which
the tests check; the counting is done here. sacrebleu's tokenizer is used. That makes 100,000 reviews a matter of
seconds in one process, and gives BLEU's sufficient statistics of each review: BLEU is of a corpus, not a mean, so a resample
of reviewers needs the sums of their statistics and nothing else. Reviews without Latin letters or digits have no ROUGE
tokens and score 0.

Notation: n reviews, R resamples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from perse.data.overlap import common_subsequence
from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.installing import install

BLEU_ORDER = 4
BLEU_COLUMNS = 2 + 2 * BLEU_ORDER
"""Length of hypothesis and reference, n-grams in common (n = 1 to 4), n-grams of the hypothesis (n = 1 to 4)."""

ROUGE = ("rouge1", "rouge2", "rougeL")

_ROUGE_TOKEN = re.compile(r"[a-z0-9]+")


def bleu_statistics(hypotheses: Sequence[str], references: Sequence[str]) -> IntArray:
    """The sufficient statistics of each review, (n, 10), in the order of `BLEU_COLUMNS`: their sum determines BLEU.

    Raises:
        BadInput: sacrebleu is not installed.
    """
    tokens = _BleuTokens()
    rows = [
        _bleu_row(tokens(hypothesis), tokens(reference)) for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, BLEU_COLUMNS)


def bleu_of(sums: FloatArray | IntArray) -> FloatArray:
    """BLEU, 0 to 100, of each sum of statistics, (R, 10): (R,). As sacrebleu's corpus BLEU: 0 where nothing is in common.

    The geometric mean of the four shares of n-grams in common, times exp(1 - reference length / length) for a hypothesis that
    is too short. An n without n-grams in common counts as 1/2, 1/4, ... of one, in the order of their n.
    """
    hypothesis, reference = sums[:, 0].astype(np.float64), sums[:, 1].astype(np.float64)
    common, total = sums[:, 2 : 2 + BLEU_ORDER], sums[:, 2 + BLEU_ORDER :]
    halvings = np.cumsum((common == 0) & (total > 0), axis=1)
    counted = np.where(common > 0, common, 0.5**halvings)
    with np.errstate(divide="ignore", invalid="ignore"):  # a share of nothing is discarded below
        logs = np.log(100 * counted / total)
        brevity = np.exp(np.minimum(0, 1 - reference / hypothesis))
        scores = brevity * np.exp(logs.mean(axis=1))
    defined = (common > 0).any(axis=1) & (total > 0).all(axis=1)
    result: FloatArray = np.where(defined, scores, 0.0)
    return result


def rouge_values(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, FloatArray]:
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L of each review, (n,) each, 0 to 1. The paper's ROUGE is ROUGE-1."""
    counts = [
        _rouge_row(_ROUGE_TOKEN.findall(hypothesis.lower()), _ROUGE_TOKEN.findall(reference.lower()))
        for hypothesis, reference in zip(hypotheses, references, strict=True)
    ]
    table = np.array(counts, dtype=np.float64).reshape(-1, 5)
    reference_words, words = table[:, 3], table[:, 4]
    return {
        name: _f1(table[:, at], words - (name == "rouge2"), reference_words - (name == "rouge2"))
        for at, name in enumerate(ROUGE)
    }


class _BleuTokens:
    """sacrebleu's tokens. Its rules look no further than the next space, so each distinct word is taken apart once."""

    def __init__(self) -> None:
        try:
            from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
        except ModuleNotFoundError:
            raise BadInput(f"sacrebleu is not installed; it computes BLEU: {install('report')}") from None
        self._tokenize = Tokenizer13a()
        self._known: dict[str, list[str]] = {}

    def __call__(self, text: str) -> list[str]:
        tokens: list[str] = []
        for word in text.rstrip().replace("<skipped>", "").replace("-\n", "").split():  # its two rules that may join words
            if (parts := self._known.get(word)) is None:
                parts = self._known[word] = self._tokenize(word).split()
            tokens += parts
        return tokens


def _bleu_row(hypothesis: list[str], reference: list[str]) -> list[int]:
    common: list[int] = []
    for n in range(1, BLEU_ORDER + 1):
        if common and not common[-1]:  # no n-gram in common, so no longer one
            common.append(0)
        else:
            common.append(_shared(_ngrams(hypothesis, n), _ngrams(reference, n)))
    totals = [max(len(hypothesis) - n, 0) for n in range(BLEU_ORDER)]
    return [len(hypothesis), len(reference), *common, *totals]


def _ngrams(words: list[str], n: int) -> Sequence[Any]:
    return words if n == 1 else list(zip(*(words[start:] for start in range(n)), strict=False))


def _rouge_row(hypothesis: list[str], reference: list[str]) -> tuple[int, int, int, int, int]:
    singles = _shared(hypothesis, reference)
    pairs = _shared(list(pairwise(hypothesis)), list(pairwise(reference))) if singles > 1 else 0
    return singles, pairs, common_subsequence(reference, hypothesis) if singles else 0, len(reference), len(hypothesis)


def _shared(a: Sequence[Any], b: Sequence[Any]) -> int:
    """How many there are in common, each as often as it is in both."""
    if not (both := set(a).intersection(b)):
        return 0
    if len(both) < 4:  # most n-grams are met once; counting all of a text for them costs more
        return sum(min(a.count(one), b.count(one)) for one in both)
    in_a, in_b = Counter(a), Counter(b)
    return sum(min(in_a[one], in_b[one]) for one in both)


def _f1(shared: FloatArray, hypothesis: FloatArray, reference: FloatArray) -> FloatArray:
    """Written as rouge-score writes it, so that the last bits agree."""
    some = shared > 0
    precision = np.divide(shared, hypothesis, out=np.zeros_like(shared), where=some)
    recall = np.divide(shared, reference, out=np.zeros_like(shared), where=some)
    score: FloatArray = np.divide(2 * precision * recall, precision + recall, out=np.zeros_like(shared), where=some)
    return score
