"""How many words a written review shares with the reviewer's own: BLEU and ROUGE (PerSE, table 3).

BLEU is sacrebleu's (default settings: tokens "13a", exponential smoothing). It is of a corpus, not a mean, so what is kept of a
review are its sufficient statistics: a resample of reviewers needs their sums and nothing else. ROUGE is counted in
`perse.data.overlap`, which needs no library. Reviews without Latin letters or digits have no ROUGE tokens and score 0.

Notation: n reviews, R resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from perse.data.overlap import rouge, unstemmed
from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.installing import install

BLEU_ORDER = 4
BLEU_COLUMNS = 2 + 2 * BLEU_ORDER
"""Length of hypothesis and reference, n-grams in common (n = 1 to 4), n-grams of the hypothesis (n = 1 to 4)."""

ROUGE = ("rouge1", "rouge2", "rougeL")


def bleu_statistics(hypotheses: Sequence[str], references: Sequence[str]) -> IntArray:
    """The sufficient statistics of each review, (n, 10), in the order of `BLEU_COLUMNS`: their sum determines BLEU.

    Raises:
        BadInput: sacrebleu is not installed.
    """
    metric = _bleu()()
    scores = [metric.corpus_score([written], [[own]]) for written, own in zip(hypotheses, references, strict=True)]
    rows = [[score.sys_len, score.ref_len, *score.counts, *score.totals] for score in scores]
    return np.array(rows, dtype=np.int64).reshape(-1, BLEU_COLUMNS)


def bleu_of(sums: FloatArray | IntArray) -> FloatArray:
    """BLEU, 0 to 100, of each sum of statistics, (R, 10): (R,). As sacrebleu's corpus BLEU: 0 where nothing is in common.

    Raises:
        BadInput: sacrebleu is not installed.
    """
    compute, order = _bleu().compute_bleu, 2 + BLEU_ORDER
    rows = np.rint(sums).astype(np.int64).tolist()
    return np.array(
        [compute(row[2:order], row[order:], row[0], row[1], smooth_method="exp").score for row in rows], dtype=np.float64
    )


def rouge_values(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, FloatArray]:
    """F1 of ROUGE-1, ROUGE-2 and ROUGE-L of each review, (n,) each, 0 to 1. The paper's ROUGE is ROUGE-1."""
    pairs = zip(hypotheses, references, strict=True)
    values = np.array([rouge(unstemmed(written), unstemmed(own)) for written, own in pairs], dtype=np.float64)
    return dict(zip(ROUGE, values.reshape(-1, len(ROUGE)).T, strict=True))


def _bleu() -> Any:
    """sacrebleu's BLEU."""
    try:
        from sacrebleu.metrics import BLEU
    except ModuleNotFoundError:
        raise BadInput(f"sacrebleu is not installed; it computes BLEU: {install('report')}") from None
    return BLEU
