"""Dropping the oldest reviews by arithmetic gives the very prompts that rendering anew after each dropped review gave."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest
from builders import KINDS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perse.errors import TooLong
from perse.questions import QUESTIONS
from perse.records import Pair, PairwiseExample, PointwiseExample, ProfileComparison, ProfileReview, SummaryExample
from perse.rendering.prompt import Message, Rendered, Renderer, Segment, TextRenderer, label_room

TEXTS = st.text(max_size=30) | st.lists(
    st.sampled_from(
        ["a", "10", "100", "quiet harbour", "\n", "\u2028", " ", "[Plot 3]", "]", "é", "词", "<|im_end|>", "99", ""]
    ),
    max_size=40,
).map(" ".join)
"""Of very different lengths, with what a renderer neutralises, and line breaks."""

ANSWER = 20


def slowly(renderer: Any, question: Any, example: Any) -> Any:
    """What `render` gives, or why it does not, by rendering every profile anew: without its oldest entry, and so on to none."""
    exact = isinstance(renderer, Renderer)
    clean = question.clean(
        example, renderer.clean if exact else lambda text, lines=False: renderer.neutralise(text, lines=lines) or "(empty)"
    )
    free = ANSWER if question.layout.text_prefix is not None else 0
    room = renderer.context - label_room(question) - free if exact else 0
    limit = renderer.max_words if example.limited else sys.maxsize
    for start in range(len(clean.profile) + 1):
        asks = question.asks(clean, list(clean.profile[start:]))
        words = max(len(ask.text.split()) for ask in asks)
        shown: Any = tuple((whole(renderer, ask) if exact else Message(ask.text, len(ask.profile))) for ask in asks)
        tokens = max(len(each.ids) for each in shown) if exact else 0
        if words <= limit and tokens <= room:
            return shown
    return {"words": words, "word_budget": limit, **({"tokens": tokens, "token_budget": room} if exact else {})}


def whole(renderer: Renderer, ask: Any) -> Rendered:
    """A prompt with every segment tokenized in one piece."""
    texts = [
        ("instruction", ask.instruction),
        *(("profile", text) for text in ask.profile),
        ("query", ask.query),
        ("ask", ask.ask),
    ]
    texts[-1] = ("ask", ask.ask + renderer.frame.middle)
    first = renderer.tokenizer.encode(renderer.frame.head + ask.instruction, add_special_tokens=False)
    others = (Segment(name, renderer.encode(text)) for name, text in texts[1:])
    return Rendered((Segment("instruction", tuple(first)), *others), len(ask.profile), len(ask.text.split()))


def quickly(renderer: Any, question: Any, example: Any) -> Any:
    more = {"answer_tokens": ANSWER} if isinstance(renderer, Renderer) else {}
    try:
        return renderer.render(question, example, **more)
    except TooLong as error:
        return error.numbers


def reader(name: str, texts: list[str], query: str) -> Any:
    """An example of the question `name` with an entry for each text."""
    query = query or "a"
    if name.startswith("pointwise"):
        profile = tuple(
            ProfileReview(text=text, review=text[::-1], score=1 + n % 10)
            for n, text in enumerate(text if text.strip() else "a" for text in texts)
        )
        return PointwiseExample(id="e", reviewer_id="r", item_id="i", profile=profile, query=query)
    if name == "pairwise":
        pairs = tuple(
            ProfileComparison(text_a=text or "a", text_b="b", premise=text or None, preference={"Ending": "A"})
            for text in texts
        )
        return PairwiseExample(
            id="e", reviewer_id="r", aspect="Ending", profile=pairs, query=Pair(text_a=query, text_b="a longer text than that")
        )
    return SummaryExample(id="e", reviewer_id="r", reviews=tuple(text or "a" for text in texts), summary=query)


QUESTION = ("pointwise", "pointwise_score", "pointwise_stated", "pairwise", "coverage", "sentiment_100")


@pytest.fixture(scope="module")
def renderers(tokenizers: dict[str, Any]) -> dict[str, Any]:
    """Their budgets are each test's own to set."""
    return {"words": TextRenderer(), **{kind: Renderer(tokenizers[kind], 4096) for kind in KINDS}}


@pytest.mark.parametrize("kind", [*KINDS, "words"])
@pytest.mark.parametrize("name", QUESTION)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=8),
    times=st.integers(1, 4),
    query=TEXTS,
    tokens=st.integers(150, 900),
    words=st.integers(100, 500),
)
def test_a_profile_is_shortened_to_the_same_ids_as_by_rendering_anew_each_time(
    renderers: dict[str, Any], kind: str, name: str, texts: list[str], times: int, query: str, tokens: int, words: int
) -> None:
    renderer = renderers[kind]
    renderer.max_words = words
    if kind != "words":
        renderer.context = tokens
    example = reader(name, texts * times, query)
    assert quickly(renderer, QUESTIONS[name], example) == slowly(renderer, QUESTIONS[name], example)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["pointwise_stated", "coverage"])
def test_numbers_with_fewer_digits_leave_room_for_one_review_more(renderers: dict[str, Any], kind: str, name: str) -> None:
    renderer, example = renderers[kind], reader(name, ["a"] * 104, "a query")
    renderer.max_words = 100_000
    for kept in (9, 10, 99, 100):  # the budget of exactly so many
        renderer.context = 100_000
        length = len(renderer.render(QUESTIONS[name], reader(name, ["a"] * kept, "a query"), answer_tokens=ANSWER)[0].ids)
        free = ANSWER if QUESTIONS[name].layout.text_prefix is not None else 0
        renderer.context = length + label_room(QUESTIONS[name]) + free
        found = quickly(renderer, QUESTIONS[name], example)
        assert abs(found[0].k_effective - kept) <= 1  # the newest reviews have other scores than those counted
        assert found == slowly(renderer, QUESTIONS[name], example)


def test_each_review_is_tokenized_once_however_many_have_to_go(tokenizers: dict[str, Any]) -> None:
    renderer = Renderer(tokenizers["chatml"], 2000, max_words=100_000)
    texts = [f"the story number {n} of many" for n in range(400)]
    seen: Counter[str] = Counter()
    encode = renderer.tokenizer.encode

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizers["chatml"], name)

        def encode(self, text: str, **options: Any) -> Any:
            seen.update(one for one in texts if f"{one}\n" in text)
            return encode(text, **options)

    renderer.tokenizer = Counting()
    [prompt] = renderer.render(QUESTIONS["pointwise"], reader("pointwise", texts, "a query"))
    assert 10 < prompt.k_effective < 100
    assert set(seen) == set(texts) and set(seen.values()) == {1}


def test_reviews_beyond_the_limit_in_words_are_not_tokenized_at_all(tokenizers: dict[str, Any]) -> None:
    renderer = Renderer(tokenizers["chatml"], 8192, max_words=300)
    pieces: list[str] = []
    encode = renderer.tokenizer.encode

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizers["chatml"], name)

        def encode(self, text: str, **options: Any) -> Any:
            pieces.append(text)
            return encode(text, **options)

    renderer.tokenizer = Counting()
    [prompt] = renderer.render(QUESTIONS["pointwise"], reader("pointwise", [f"story {n}" for n in range(3000)], "a query"))
    assert prompt.k_effective > 10 and sum(map(len, pieces)) < 10_000
