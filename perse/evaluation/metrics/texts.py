"""The metrics of written reviews: BLEU and ROUGE and, with a model at hand, two learned scores.

One that cannot be had (its package or its model is missing) raises BadInput: the column is left out, and a note says why.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from perse.errors import BadInput
from perse.evaluation.metrics.metric import TEXTS, Metric
from perse.evaluation.metrics.samples import Written
from perse.evaluation.metrics.shapes import Resampled, mean_of
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.text.models import TextScores, bart_scores, bert_scores
from perse.evaluation.text.overlap import bleu_of, bleu_statistics
from perse.results.result import Estimate


def _bleu(written: Written) -> Estimate:
    """BLEU is of a corpus: of the sums of its statistics, of which each resample has its own."""
    statistics, resamples = bleu_statistics(written.hypotheses, written.references), written.bootstrap.resamples
    value = float(bleu_of(statistics.sum(axis=0, keepdims=True))[0])
    resampled = bleu_of(resamples.sums(statistics.T.astype(np.float64)).T)
    interval = written.bootstrap.interval(value, resampled, reviewers=len(np.unique(written.reviewer)))
    return Estimate(value=value, interval=interval, items=len(statistics))


def _rouge(name: str) -> Resampled:
    return mean_of(lambda written: written.rouge[name])


def _learned(name: str, scores: Callable[..., TextScores]) -> Resampled:
    def per_item(written: Written) -> FloatArray:
        model = written.models.get(name)
        found = scores(written.hypotheses, written.references, model=model)
        if found.values is None:
            raise BadInput((found.skipped or name) + ("" if model else f" (--{name}-model FOLDER)"))
        written.settings[name] = found.setting
        return found.values.astype(np.float64)

    return mean_of(per_item)


_SHARED = "F1 of {} in common with the reader's own review, 0 to 1"

REVIEWS = (
    Metric(
        "bleu",
        "BLEU",
        "higher",
        "n-grams in common with the readers' own reviews, 0 to 100, of all texts together",
        TEXTS,
        _bleu,
    ),
    Metric("rouge1", "ROUGE-1", "higher", _SHARED.format("words"), TEXTS, _rouge("rouge1")),
    Metric("rouge2", "ROUGE-2", "higher", _SHARED.format("pairs of words"), TEXTS, _rouge("rouge2")),
    Metric("rougeL", "ROUGE-L", "higher", _SHARED.format("the longest sequence of words"), TEXTS, _rouge("rougeL")),
    Metric(
        "bertscore",
        "BERTScore",
        "higher",
        "likeness of words in the eyes of an encoder",
        TEXTS,
        _learned("bertscore", bert_scores),
    ),
    Metric(
        "bartscore",
        "BARTScore",
        "higher",
        "mean log probability of the reader's own review given the written one",
        TEXTS,
        _learned("bartscore", bart_scores),
    ),
)
