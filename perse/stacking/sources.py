"""What is known of one text for one reader, as numbers: the features that a stacking combines, by the source that they come from.

    judge      the exact distribution of the judge (`Judgement.exact`): its mean, and its log-odds, the mean over k of logit P(score > k)
    reader     how the scores shown of the reader differ from the training mean, shrunk:   b_u = sum_j (r_j - mu) / (reader_penalty + n)
    others     how training readers' scores of the text do:                               b_i = sum (r - mu) / (item_penalty + their number)
    bias       user+item bias (Koren, 2010):  mu + b_i + sum_j (r_j - mu - b_i(j)) / (reader_penalty + n), on the scale
    content    what the words of the text make likely, for this reader (`perse.records.Evidence`)

A source is there or absent as a whole: no exact distribution; nothing shown of the reader; a text that training does not know; an example
without evidence. One function computes them when a stacking is fitted and when it is applied, from the same table (`Known`), so that the
two cannot differ. The table holds scores of training readers, so that their own would be among the features if they were asked about: they
are known by key (`Known.holds`), no stacking is fitted on them, and none is applied to them. Who asks without a name is taken for a new reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import fsum, log
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from perse.identity import reader_key, text_key
from perse.judgement import Judgement, Status
from perse.records import PointwiseExample, ProfileReview
from perse.scale import SCORES
from perse.strict import Strict

JUDGE, READER, OTHERS, BIAS, CONTENT = "judge", "reader", "others", "bias", "content"
SOURCES: Mapping[str, tuple[str, ...]] = {
    JUDGE: ("judge_mean", "judge_log_odds"),
    READER: ("reader",),
    OTHERS: ("others",),
    BIAS: ("bias",),
    CONTENT: ("content",),
}
"""Source -> its features. `bias` is always there."""
IN_WORDS = {
    JUDGE: "the language model",
    READER: "the reader's own scores",
    OTHERS: "other readers' scores of the text",
    BIAS: "user+item bias",
    CONTENT: "the words of the text",
}
SUREST = 0.001
"""Probabilities nearer to 0 or 1 count as this near: a log-odds has no end."""

MOST_SCORES = 10**15
"""Of one text; any number up to here is exact as a float."""

Features = dict[str, float]
"""By name, of the sources that are there."""


class Known(Strict):
    """What training readers gave: all that is needed of the training side when a stacking is applied."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    mean: float = Field(ge=1, le=10)
    """mu, of all training scores."""
    item_penalty: float = Field(gt=0)
    reader_penalty: float = Field(gt=0)
    texts: dict[str, tuple[float, Annotated[int, Field(ge=1, le=MOST_SCORES)]]]
    """`text_key` of a text -> sum and number of its training scores."""
    readers: tuple[str, ...]
    """`reader_key` of those who gave them."""

    @model_validator(mode="after")
    def _possible(self) -> Known:
        lowest, *_, highest = SCORES.values or ()
        for key, (total, number) in self.texts.items():
            if not lowest * number <= total <= highest * number:
                raise ValueError(f"text {key} has {number} scores that sum to {total:g}, expected scores from 1 to 10")
        return self

    def holds(self, reader: str) -> bool:
        """Whether scores of this reader are among those of the texts."""
        return reader_key(reader) in self._keys

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(self.readers)

    def of_text(self, key: str) -> float:
        """b_i of a text by its key; 0 of one that training does not know."""
        total, number = self.texts.get(key, (0.0, 0))
        return (total - number * self.mean) / (self.item_penalty + number)


def present(features: Mapping[str, float]) -> frozenset[str]:
    """The sources that are there."""
    return frozenset(source for source, names in SOURCES.items() if all(name in features for name in names))


def features(example: PointwiseExample, judgement: Judgement | None, known: Known) -> Features:
    """The features of one example; `judgement` None: no judge was asked."""
    found: Features = {}
    if judgement is not None and judgement.status is Status.OK and judgement.distribution and judgement.exact is not False:
        found |= _of_judge(judgement.distribution)
    if example.profile:
        found["reader"] = _shrunk([past.score - known.mean for past in example.profile], known)
    key = text_key(example.query)
    if key in known.texts:
        found["others"] = known.of_text(key)
    found["bias"] = _bias(example, key, known)
    if (content := _content(example)) is not None:
        found["content"] = content
    return found


def _of_judge(distribution: Mapping[str, float]) -> Features:
    probabilities = [distribution.get(label, 0.0) for label in SCORES.labels]
    total = fsum(probabilities) or 1.0
    above = [min(max(fsum(probabilities[k:]) / total, SUREST), 1 - SUREST) for k in range(1, len(probabilities))]
    mean = fsum(value * p for value, p in zip(SCORES.values or (), probabilities, strict=True)) / total
    return {"judge_mean": mean, "judge_log_odds": fsum(log(p / (1 - p)) for p in above) / len(above)}


def _shrunk(residuals: list[float], known: Known) -> float:
    return fsum(residuals) / (known.reader_penalty + len(residuals))


def _bias(example: PointwiseExample, key: str, known: Known) -> float:
    lowest, *_, highest = SCORES.values or ()
    residuals = [past.score - known.mean - known.of_text(_key(past)) for past in example.profile]
    return min(max(known.mean + known.of_text(key) + _shrunk(residuals, known), lowest), highest)


def _key(past: ProfileReview) -> str:
    return text_key(past.text)


def _content(example: PointwiseExample) -> float | None:
    """None without evidence, or where the texts shown have no estimates: the reader's leniency would be missing in it."""
    if example.evidence is None or (example.profile and all(past.estimate is None for past in example.profile)):
        return None
    return example.evidence.for_reader(example.profile)
