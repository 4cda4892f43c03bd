"""Does a text feel about things as these reviews do? From 1 to 5, or from 0 to 100 in steps of 20.

The second question that compares a text with reviews; all but its ask is the first one's (`perse.questions.coverage`).
"""

from __future__ import annotations

from perse.questions.coverage import AgainstReviews
from perse.scale import GRADES, HUNDREDS

SENTIMENT = AgainstReviews(
    "sentiment", GRADES, "sentiment.jinja", served="how well the text's sentiment is that of the reviews"
)
SENTIMENT_100 = AgainstReviews("sentiment_100", HUNDREDS, "sentiment.jinja", served=f"{SENTIMENT.served}, from 0 to 100")
