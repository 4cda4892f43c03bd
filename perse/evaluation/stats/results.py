"""Evaluation: what a judge was found to be worth, as plain JSON. Every number stands with its interval and its reasons.

Tables and reports are made from this alone, so that they cannot tell different things.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from perse.judgement import Prices, Status
from perse.results.result import Estimate

Drawn = Literal["reviewers", "two-way"]
"""Whose draws the intervals stand on: reviewers with all their items, or reviewers and items both."""
Resample = Literal["auto", Drawn]
"""What is asked for; auto: both where several readers judged the same texts (`alignment.to_draw`)."""


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Row(_Result):
    """One judge or baseline. All rows of a table stand on the same items."""

    name: str
    judge: str | None
    """The judge's name; None for a baseline."""
    unavailable: str | None = None
    """Why there are no values."""
    asked: int
    ok: int
    columns: dict[str, Estimate] = {}
    """By metric (`perse.evaluation.metrics`); order gap and consistency only in a judge's likeliest row."""
    imputed: dict[str, Estimate] | None = None
    """The same over all items, failures replaced by their fold's training mean; None if nothing failed or there is no mean."""
    epsilons: tuple[float | None, ...] | None = None
    """Largest difference of two predictions that counts as a tie, behind `pair_accuracy`: one of each half of the reviewers
    (each used on the other half; None: it has no pairs), or the one of a validation run."""
    p_values: dict[str, float | None] = {}
    """Of the pooled correlations by name, where they were asked for (`perse.evaluation.stats.p_values`)."""
    text: dict[str, Estimate] = {}
    """By metric, of the written review; in a judge's label row, and in the row of the baseline that has a text."""
    aspects: dict[str, Estimate] = {}
    """Pairs: accuracy of each aspect."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    """Pairs: aspect -> true answer -> given answer (A, B or `agreement.NOT_ANSWERED`) -> how often."""


class Spent(_Result):
    """What a judge's run took: of all its judgements, also those without reference."""

    judgements: int
    prompt: int
    """Prompt tokens, cached ones among them."""
    cached: int
    generated: int
    k_effective: float | None = None
    """Mean number of profile reviews in the prompts that were read; None where none was."""
    prices: Prices | None = None
    cost: float | None = None
    """In the currency of `prices`; None where they are not known."""
    seconds: float | None = None
    """Wall time of the run; None where it was not kept."""

    @property
    def tokens_per_second(self) -> float | None:
        """Prompt and generated tokens together."""
        return (self.prompt + self.generated) / self.seconds if self.seconds else None


class JudgeSummary(_Result):
    """What became of the questions put to one judge, counted over the items of the table; `spent` is of its whole run."""

    models: tuple[str, ...]
    adapters: tuple[str, ...]
    statuses: dict[Status, int]
    questions: tuple[str, ...] = ()
    spent: Spent | None = None

    @property
    def asked(self) -> int:
        """All items of the table."""
        return sum(self.statuses.values())

    @property
    def ok(self) -> int:
        """Items answered."""
        return self.statuses[Status.OK]


class Difference(_Result):
    """A judge's value minus a baseline's, with an interval from the same resamples for both."""

    judge: str
    row: str
    """Name of the judge's row that is compared."""
    baseline: str
    column: str
    estimate: Estimate


Standing = Literal["better", "unclear", "worse", "undefined", "silent"]


class Conclusion(_Result):
    """What the numbers of one judge come to (`perse.evaluation.verdict`)."""

    judge: str
    standing: Standing
    """Better than every rule that needs no judge, worse than one, or neither; undefined where too little is known, silent where it
    answered nothing."""
    against: str | None = None
    """The rule that decides: one that it is not better than, or of a better one the baseline of the paper."""
    taste: bool | None = None
    """Whether it is shown to order a reader's texts, and better than the unpersonalized row does; None where that cannot be told."""
    farther_off: bool = False
    """Of a better one, whether its errors are shown to be larger than those of the baseline of the paper."""
    words: str
    """At most two sentences, the first beginning with the judge's name; without the last full stop."""


class Evaluation(_Result):
    """Judges and baselines on the same items."""

    kind: Literal["pointwise", "pairwise"]
    """Summaries that were graded are pointwise, too."""
    labels: tuple[str, ...] = ()
    """The scale: 1 to 10, A and B, or that of a question about summaries."""
    examples: int
    """Examples given."""
    without_reference: int
    """Of these, left out because the reviewer's true answer is not known."""
    items: int
    """Items in the table: with a reference and judged by all judges."""
    ok_items: int
    """Items that every judge answered that answered any: the correlations and errors of every row are of these."""
    reviewers: int
    judges: dict[str, JudgeSummary]
    rows: tuple[Row, ...]
    conclusions: tuple[Conclusion, ...] = ()
    """What it comes to, one a judge, in their order."""
    differences: tuple[Difference, ...] = ()
    """What the conclusions stand on: of each judge, from every rule that it must beat, of errors from the paper's, and of taste."""
    own_scores: bool = True
    """Whether the scores in the profiles that baselines read are the readers' own."""
    training_means: tuple[float | None, ...] = ()
    """Scores: the mean that a fold's failures are imputed by, one a fold; one if there are no folds. None: no training data."""
    text_skipped: dict[str, str] = {}
    """Metrics of texts that were not computed, and why."""
    resample: Drawn = "reviewers"
    resamples: int
    seed: int
    notes: tuple[str, ...] = ()
    """What a reader of the numbers must know, one sentence each."""

    @property
    def verdict(self) -> tuple[str, ...]:
        """The conclusions in words."""
        return tuple(one.words for one in self.conclusions)
