"""The numbers of KGDS as plain JSON: tables, report and plots are made from this alone, so that they agree.

Values are percentages rounded to two digits, each with an interval over samples; None is undefined, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from perse.kgds.benchmark import Paradigm, Pattern
from perse.kgds.outcomes import ErrorType
from perse.results.result import Estimate, Interval

Metric = Literal["recall", "precision", "f1", "cao", "op", "retrieved"]
"""recall, precision, f1: of supporting paragraphs (BSP) in ebs-aos, of key facts (KBSAF) in abs-aos. cao: recall of clear opinions.
op: overall performance, the geometric mean of f1 and cao. retrieved: extracted paragraphs of all (ebs-aos alone)."""

METRICS: tuple[Metric, ...] = ("recall", "precision", "f1", "cao", "op")
"""The columns of table 1 under each pattern."""

ALL_METRICS: tuple[Metric, ...] = (*METRICS, "retrieved")


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class SampleScores(_Result):
    """One sample's values as fractions, 0 to 1; what was not asked is left out."""

    sample: int
    values: dict[Metric, float]
    failed: str | None = None


class Errors(_Result):
    """Of the opinions not covered: how many were classified, the share of each type in percent (they sum to 100), and the same by the
    judge's probabilities where they are known. No shares without such opinions."""

    classified: int
    uncovered: int
    shares: dict[ErrorType, float] | None
    intervals: dict[ErrorType, Interval] | None = None
    """Of the shares, in percent, exact (Clopper and Pearson's), of fewer opinions where those of one sample go together."""
    probable: dict[ErrorType, float] | None = None


class Scores(_Result):
    """One model under one pattern and paradigm."""

    model: str
    pattern: Pattern
    paradigm: Paradigm
    values: dict[Metric, Estimate]
    errors: Errors | None = None
    """None if errors were not asked about."""
    verified_by: str | None = None
    facts_asked: str | None = None
    """As in `Outcomes`, both."""
    failed: int
    """Summaries that could not be read; they score 0."""
    unanswered: int
    """Questions that the judge did not answer; they count as not covered."""
    strange: int
    """Citations of paragraphs that do not exist."""
    odd: int = 0
    """Extracted tags that name no paragraph at all."""
    samples: tuple[SampleScores, ...]


def comparable(rows: Iterable[Scores], metric: Metric) -> bool:
    """Whether a metric of these rows can be set beside one another: one judge verified them all, asked in one way, or the metric needs none.

    What a model extracts is held against the experts' selection, without a judge; opinions are asked about in one way.
    """
    judged = [one for one in rows if metric in ("cao", "op") or one.pattern == "abs-aos"]
    ways = {one.facts_asked for one in judged if metric != "cao" and one.pattern == "abs-aos"}
    return len({one.verified_by for one in judged}) <= 1 and len(ways) <= 1


class Delta(_Result):
    """Reflection minus structured, in points of percent, on the same samples: of the metrics, and of the errors' shares."""

    model: str
    pattern: Pattern
    values: dict[Metric, Estimate]
    errors: dict[ErrorType, float] | None = None
    error_intervals: dict[ErrorType, Interval] | None = None
    """As of independent opinions, since those that were not covered before and after are not the same."""


class Across(_Result):
    """Overall performance of one model over both patterns: ebs-aos minus abs-aos, and their mean."""

    model: str
    paradigm: Paradigm
    gap: Estimate
    mean: Estimate


class Difference(_Result):
    """One model minus another, in points of percent, on the same samples."""

    model: str
    minus: str
    pattern: Pattern
    paradigm: Paradigm
    values: dict[Metric, Estimate]


class Average(_Result):
    """Means over models of one pattern and paradigm, as the paper's "R avg": each model weighs the same."""

    pattern: Pattern
    paradigm: Paradigm
    models: int
    values: dict[Metric, Estimate]


class WinRate(_Result):
    """How often the experts' selection of paragraphs is preferred to a model's own, in percent (figure 3)."""

    model: str
    judge: str
    second_turn: bool
    """Whether asked in the conversation in which the model made its selection, as the paper does."""
    differs: int
    """Selections that differ from the experts'."""
    answered: int
    share: Estimate
    order_gap: float | None = None
    """How far the two orders' answers are apart, 0 to 1: near 1 the judge goes by the place, and the share says little."""


class MeanWinRate(_Result):
    """Over two or more models that were asked in the same way."""

    second_turn: bool
    models: int
    share: Estimate


class Cost(_Result):
    """Questions of one kind about a model's summaries, and their tokens."""

    model: str
    pattern: Pattern
    paradigm: Paradigm
    what: str
    """"summaries", "facts", "opinions", "errors" or "feedback"."""
    asked: str
    """Who was asked."""
    questions: int
    prompt: int
    cached: int
    generated: int
    cost: float | None = None
    """In the currency of the prices given; None without."""


class Refused(_Result):
    """A model under one pattern and paradigm whose files cannot be read."""

    model: str
    pattern: Pattern
    paradigm: Paradigm
    why: str


class Correlation(_Result):
    """Background's F1 with opinions' recall, across models (figures 4 and 5)."""

    pattern: Pattern
    paradigm: Paradigm
    models: int
    pearson: Estimate
    spearman: Estimate


class Results(_Result):
    """All models on the same samples."""

    benchmark: str
    """sha256 of the benchmark's file."""
    samples: tuple[int, ...]
    """The samples that every model has: all means are over these."""
    left_out: dict[str, tuple[int, ...]]
    """Samples of the benchmark that are not compared, by the first model without them ("" if none has them)."""
    supporting_share: float
    """Supporting paragraphs of all, in percent, averaged over the compared samples: what a right `retrieved` is near to."""
    scores: tuple[Scores, ...]
    deltas: tuple[Delta, ...]
    across: tuple[Across, ...]
    correlations: tuple[Correlation, ...]
    own: tuple[Scores, ...] = ()
    """Rows on all samples that they have themselves, as the authors score, where these are more than `samples`."""
    differences: tuple[Difference, ...] = ()
    averages: tuple[Average, ...] = ()
    win_rates: tuple[WinRate, ...] = ()
    mean_win_rates: tuple[MeanWinRate, ...] = ()
    costs: tuple[Cost, ...] = ()
    refused: tuple[Refused, ...] = ()
    as_published: bool = False
    """Whether extracted tags that name no paragraph of the article count as wrong ones."""
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()
