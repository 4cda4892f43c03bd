"""How much of a review stands in others: what the library computes, and copies are known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from persum_worlds import text

from perse.data.overlap import Tokenizer, best_overlap, common_subsequence, is_copy, mean_overlap, overlap, together

WORDS = st.lists(st.sampled_from(["run", "running", "the", "a", "cable", "cables", "x", "10"]), max_size=12).map(" ".join)


@given(a=WORDS, b=WORDS)
def test_overlap_is_what_the_library_computes(a: str, b: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    library = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True).score(a, b)
    tokens = Tokenizer()
    assert overlap(tokens(a), tokens(b)) == sum(one.fmeasure for one in library.values())


@given(own=WORDS, others=st.lists(WORDS.filter(str.strip), min_size=1, max_size=6))
def test_the_overlap_with_a_whole_set_is_that_with_its_reviews_as_one_text(own: str, others: list[str]) -> None:
    tokens = Tokenizer()
    prepared = [tokens(other) for other in others]
    assert overlap(tokens(own), together(prepared)) == overlap(tokens(own), tokens(" ".join(others)))
    assert mean_overlap(tokens(own), prepared) == pytest.approx(
        sum(overlap(tokens(own), one) for one in prepared) / len(others)
    )


@given(own=WORDS, others=st.lists(WORDS, max_size=6))
def test_the_best_overlap_is_the_largest_of_all(own: str, others: list[str]) -> None:
    tokens = Tokenizer()
    prepared = [tokens(other) for other in others]
    assert best_overlap(tokens(own), prepared) == max((overlap(tokens(own), one) for one in prepared), default=0.0)


@given(a=st.lists(st.sampled_from("abc"), max_size=80), b=st.lists(st.sampled_from("abcd"), max_size=80))
def test_the_common_subsequence_equals_the_table(a: list[str], b: list[str]) -> None:
    row = [0] * (len(b) + 1)
    for x in a:
        before = row[:]
        for at, y in enumerate(b, start=1):
            row[at] = before[at - 1] + 1 if x == y else max(before[at], row[at - 1])
    assert common_subsequence(a, b) == row[-1]


def test_an_overlap_by_hand() -> None:
    """ "the cat sat" and "the cat ran": 2 of 3 words, 1 of 2 pairs, subsequence of 2: 2/3 + 1/2 + 2/3."""
    tokens = Tokenizer()
    assert overlap(tokens("the cat sat"), tokens("The cat ran!")) == pytest.approx(2 / 3 + 1 / 2 + 2 / 3)
    assert overlap(tokens("好琴"), tokens("好琴")) == 0, "no Latin letters, no tokens"


def test_a_copy_is_known_when_it_is_equal_edited_or_contained() -> None:
    tokens = Tokenizer()
    whole = tokens(text("u", "i", "555"))
    for other in (
        whole.text.upper() + "!",
        whole.text.replace("solid", "flimsy"),
        "UPDATE after a year. " + whole.text + " Still.",
    ):
        assert is_copy(whole, tokens(other)) and is_copy(tokens(other), whole)
    assert is_copy(tokens("好琴"), tokens("好琴")) and not is_copy(tokens("好琴"), tokens("坏琴"))
    assert not is_copy(whole, tokens(text("u", "j", "555")))
    assert not is_copy(tokens("Works great, would buy"), tokens("Works great, would buy it again")), "short reviews are alike"
