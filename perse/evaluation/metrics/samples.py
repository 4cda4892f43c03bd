"""What a metric is computed of: the items that count, what is true of each, what one row of a table says, and the resamples.

Items without an answer are not among them, so nothing here is NaN; the resamples are those of all rows, cut to these items.

Notation: n items, C reviewers, L labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from perse.evaluation.stats.correlation import FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.ordinal import on_scale, point_masses
from perse.evaluation.stats.ties import TiePairs, calibrated_pairs
from perse.evaluation.text.overlap import rouge_values
from perse.judgement import Judgement
from perse.results.result import Estimate
from perse.scale import Scale

AnyArray = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What all kinds share."""

    bootstrap: Bootstrap
    """The resamples of the n items."""

    def __post_init__(self) -> None:
        """All metrics are given the same arrays, so none may change them."""
        for name, given in list(vars(self).items()):
            if isinstance(given, np.ndarray):
                kept = given.view()
                kept.flags.writeable = False
                object.__setattr__(self, name, kept)

    @property
    def reviewer(self) -> IntArray:
        """(n,) whose item it is, 0 to C - 1."""
        return self.bootstrap.reviewer

    @property
    def both(self) -> tuple[AnyArray, AnyArray]:
        """What is true and what was said, (n,) each."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Scored(Sample):
    """Scores, `gold` and `predicted` (n,)."""

    gold: FloatArray
    predicted: FloatArray
    scale: Scale
    half: IntArray
    """(C,) 0 or 1: ties of one half of the reviewers are calibrated on the other."""
    distributions: FloatArray | None = None
    """(n, L), rows of NaN where there is none; None: nobody gave any."""
    epsilon: float | None = None
    """Fitted on a validation run: ties are then calibrated by it."""

    @property
    def both(self) -> tuple[AnyArray, AnyArray]:
        return self.gold, self.predicted

    @cached_property
    def on_scale(self) -> bool:
        """Whether every true score is a label."""
        return on_scale(self.gold, scale=self.scale)

    @cached_property
    def masses(self) -> FloatArray:
        """(n, L) probabilities of the labels; whoever gave none is sure of the label nearest to the prediction."""
        sure = point_masses(self.predicted, scale=self.scale)
        return sure if self.distributions is None else np.where(np.isnan(self.distributions), sure, self.distributions)

    @cached_property
    def correlations(self) -> dict[str, Estimate]:
        """All of `perse.evaluation.stats.estimates.SCORE_COLUMNS`, at once: ranks are taken once for all."""
        return self.bootstrap.scores(self.gold, self.predicted)

    @cached_property
    def ties(self) -> TiePairs:
        """Pairs of one reviewer's items, right and all."""
        return calibrated_pairs(self.gold, self.predicted, self.reviewer, fold_of_reviewer=self.half, epsilon=self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Chosen(Sample):
    """Choices between two texts. All pairs are here: one without an answer is a wrong one."""

    gold: Sequence[str]
    answers: Sequence[str | None]
    hits: FloatArray
    """(n,) 1 where right, 0 where wrong or not answered, 1/2 where a judge found both exactly as likely."""
    judgements: Sequence[Judgement] | None = None
    """What stands behind a judge's likeliest choices; None in all other rows."""
    aspects: Sequence[str] = ()
    """(n,) what was asked about."""

    @property
    def both(self) -> tuple[AnyArray, AnyArray]:
        return np.array(self.gold, dtype=object), np.array(self.answers, dtype=object)


@dataclass(frozen=True, kw_only=True)
class Written(Sample):
    """Written reviews (`hypotheses`, "" where not answered) and the readers' own (`references`)."""

    hypotheses: Sequence[str]
    references: Sequence[str]
    models: Mapping[str, Path | None] = field(default_factory=dict)
    """Folders of the models that were given, by metric."""
    settings: dict[str, str] = field(default_factory=dict)
    """What a metric was computed with, by its name, for the notes: it may write it here."""

    @property
    def both(self) -> tuple[AnyArray, AnyArray]:
        return np.array(self.references, dtype=object), np.array(self.hypotheses, dtype=object)

    @cached_property
    def rouge(self) -> dict[str, FloatArray]:
        """ROUGE-1, ROUGE-2 and ROUGE-L of each item, (n,) each."""
        return rouge_values(self.hypotheses, self.references)
