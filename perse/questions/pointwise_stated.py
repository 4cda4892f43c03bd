"""Both pointwise questions with the scores of the shown reviews stated in numbers: how many, mean, lowest, highest, spread.

How strict a reader is, and how far their scores reach, is most of what a profile tells (the profile average is a strong
baseline). A small model reads it badly off numbers that stand far apart, so here code says it, in some 35 tokens that all
queries of a reader share. The price: a judge that only repeats the mean looks able. A named option, not in PerSE; what it
gains is to be measured against the profile average.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, pstdev

from perse.prompts import macros
from perse.questions.pointwise import POINTWISE, POINTWISE_SCORE
from perse.records import ProfileReview


def score_summary(profile: Sequence[ProfileReview]) -> str:
    """One line on the scores of `profile`, which is not empty; newline included.

    Mean and spread have one decimal. The spread is the population standard deviation; one review has none.
    """
    scores = [past.score for past in profile]
    spread = pstdev(scores) if len(scores) > 1 else None
    wording = macros("pointwise.jinja")
    return str(wording.score_summary(len(scores), fmean(scores), min(scores), max(scores), spread))


STATED = "the prompt also states mean and spread of the profile's scores"

POINTWISE_STATED = replace(
    POINTWISE, name="pointwise_stated", statement=score_summary, served=f"{POINTWISE.served}; {STATED}", usual=False
)
"""The review on one line, then the score."""

POINTWISE_SCORE_STATED = replace(
    POINTWISE_SCORE, name="pointwise_score_stated", statement=score_summary, served=f"{POINTWISE_SCORE.served}; {STATED}"
)
"""The score alone."""
