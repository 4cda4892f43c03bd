"""Which of two summaries a reader would rather have: both orders, the form that judges were trained on, and nothing forged."""

from __future__ import annotations

from typing import Any

import pytest
from builders import tiny_llama, words
from tolerances import share

from perse import Judge
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput, TooLong
from perse.judging.judge import JudgeSettings
from perse.questions import QUESTIONS
from perse.records import Pair, PastReview, SummaryPairExample
from perse.rendering.prompt import Renderer, TextRenderer

QUESTION = QUESTIONS["summary_pair"]
GREEDY = JudgeSettings(temperature=0)


def pair(
    before: str = "It is loud.", after: str = "It is loud, and it lasts.", *, reviews: int = 3, long: int = 12
) -> SummaryPairExample:
    profile = tuple(PastReview(review=words(long, ("past", n)), score=n % 10 + 1) for n in range(reviews))
    return SummaryPairExample(id="p", reviewer_id="r", profile=profile, query=Pair(text_a=before, text_b=after))


def test_the_segments_of_both_orders_equal_the_whole_encoded(tokenizer: Any) -> None:
    renderer = Renderer(tokenizer, 2048)
    asks = QUESTION.asks(pair(), pair().profile)
    for ask, rendered in zip(asks, renderer.render(QUESTION, pair()), strict=True):
        framed = renderer.frame.head + ask.text + renderer.frame.middle
        assert rendered.ids == tuple(tokenizer.encode(framed, add_special_tokens=False))
    first, second = (rendered.segments for rendered in renderer.render(QUESTION, pair()))
    assert first[:4] == second[:4] and first[4] != second[4] and first[5] == second[5], "only the query differs"


def test_swapping_the_summaries_turns_the_preference_around(tokenizer: Any) -> None:
    """P(B) of (x, y) is the mean of P(B | x y) and P(A | y x); of (y, x) it is that of the other two: 1 less the first."""
    model = tiny_llama(tokenizer)
    judge = Judge(TransformersEngine(model), Renderer(tokenizer, 2048), name="tiny")
    [one] = judge.ask(QUESTION, [pair("It is loud.", "It lasts.")], GREEDY)
    [other] = judge.ask(QUESTION, [pair("It lasts.", "It is loud.")], GREEDY)
    assert one.distribution is not None and other.distribution is not None
    assert one.distribution["B"] == pytest.approx(1 - other.distribution["B"], abs=share(model, 1000))
    assert one.order_gap == pytest.approx(other.order_gap, abs=share(model, 1000))


def test_reviews_have_the_lines_that_end_one_in_pointwise_and_the_pair_is_a_new_one() -> None:
    [message, swapped] = TextRenderer().render(QUESTION, pair(reviews=1, long=3))
    [review] = pair(reviews=1, long=3).profile
    assert (
        f"\n[Review 1] {review.review}\n[Score] 1\n[New pair]\n[Summary A]\nIt is loud.\n[Summary B]\nIt is loud, and it lasts.\n"
        in message.text
    )
    assert "[Summary A]\nIt is loud, and it lasts.\n[Summary B]\nIt is loud.\n" in swapped.text
    assert QUESTION.layout.completion("B") == ("Summary B",)


def test_the_oldest_reviews_leave_a_prompt_of_more_than_2500_words_and_the_summaries_never() -> None:
    [message, _] = TextRenderer().render(QUESTION, pair(reviews=40, long=100))
    assert 20 <= message.k_effective < 25 and len(message.text.split()) <= 2500
    assert words(100, ("past", 39)) in message.text and words(100, ("past", 0)) not in message.text
    with pytest.raises(TooLong, match="the budget is 2500 words"):
        TextRenderer().render(QUESTION, pair(after=words(2600, "long")))


def test_nobody_is_trained_on_it() -> None:
    with pytest.raises(BadInput, match="'summary_pair' has no examples to be trained on"):
        QUESTION.answer(pair())
