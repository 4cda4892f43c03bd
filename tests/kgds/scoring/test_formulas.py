from __future__ import annotations

import pytest
from kgds_builders import bits, sample

from perse.errors import BadInput
from perse.kgds.outcomes import Outcome
from perse.kgds.scoring.formulas import Background, bsp, cao, kbsaf, overall, retrieved, sample_values, strange

ONE = sample(1)
"""Paragraphs 1 and 3 of 4 support; types of facts, paragraph by paragraph: 1 1 2 | 1 1 3 | 0 0 | 0 4; 3 opinions."""


@pytest.mark.parametrize(
    ("cited", "recall", "precision", "f1"),
    [
        ({1, 3}, 1, 1, 1),
        # One of two, and one that does not support: R = 1/2, P = 1/2, F1 = 2 * 1/4 / 1.
        ({1, 2}, 1 / 2, 1 / 2, 1 / 2),
        # All four: R = 2/2, P = 2/4, F1 = 2 * 1/2 / (3/2).
        ({1, 2, 3, 4}, 1, 1 / 2, 2 / 3),
        # An empty extraction, and one of only wrong paragraphs.
        (set(), 0, 0, 0),
        ({2, 4}, 0, 0, 0),
        # Paragraphs that do not exist count in nothing: as {1}.
        ({1, 9, 0}, 1 / 2, 1, 2 / 3),
        ({9}, 0, 0, 0),
    ],
)
def test_supporting_paragraphs(cited: set[int], recall: float, precision: float, f1: float) -> None:
    assert bsp(cited, ONE) == Background(recall, precision, pytest.approx(f1))


@pytest.mark.parametrize(
    ("covered", "recall", "precision", "f1"),
    [
        # Key: 2 of 4; nonsupporting: 1. R = 1/2, P = 2/3, F1 = 2 * 1/3 / (7/6) = 4/7.
        ("100 100 10 00", 1 / 2, 2 / 3, 4 / 7),
        # The same with types 2, 3 and 4 covered: these count in nothing.
        ("101 101 10 01", 1 / 2, 2 / 3, 4 / 7),
        ("110 110 00 00", 1, 1, 1),
        # No covered fact gives precision 0, and F1 0 as both are.
        ("000 000 00 00", 0, 0, 0),
        ("001 001 00 01", 0, 0, 0),
        # Only nonsupporting facts.
        ("000 000 11 10", 0, 0, 0),
    ],
)
def test_key_facts(covered: str, recall: float, precision: float, f1: float) -> None:
    assert kbsaf(bits(covered), ONE) == Background(recall, precision, pytest.approx(f1))


def test_f1_is_the_harmonic_mean_of_the_papers_formula() -> None:
    for cited in ({1}, {1, 2}, {3, 2, 4}, {1, 2, 3}, {1, 2, 3, 4}):
        found = bsp(cited, ONE)
        harmonic = 2 * found.precision * found.recall / (found.precision + found.recall)
        assert found.f1 == pytest.approx(harmonic, rel=1e-15)


def test_one_fact_too_few_names_the_sample_and_the_fact() -> None:
    with pytest.raises(
        BadInput, match="sample 1: 9 facts are verified of 10; .* fact 2 of paragraph 4, 'The council pays for the"
    ):
        kbsaf(bits("101 101 10 0"), ONE)
    with pytest.raises(BadInput, match="sample 1: 11 facts are verified, but the benchmark has 10"):
        kbsaf(bits("101 101 10 01 1"), ONE)


def test_opinions() -> None:
    assert cao(bits("101"), ONE) == 2 / 3
    assert cao(bits("000"), ONE) == 0
    with pytest.raises(BadInput, match="sample 1: 2 opinions are verified of 3; .* is 'Person2 thinks that longer evenings"):
        cao(bits("10"), ONE)
    with pytest.raises(BadInput, match="sample 1: 4 opinions are verified, but the benchmark has 3"):
        cao(bits("1011"), ONE)


def test_overall_is_the_geometric_mean_and_0_when_either_is() -> None:
    assert overall(0.25, 1) == 0.5
    assert overall(0, 1) == overall(1, 0) == overall(0, 0) == 0


def test_what_is_retrieved_and_what_does_not_exist() -> None:
    assert (retrieved({1, 2, 9}, ONE), strange({1, 2, 9}, ONE)) == (2 / 4, 1)
    assert (retrieved(set(), ONE), strange(set(), ONE)) == (0, 0)
    assert (retrieved({0, 5}, ONE), strange({0, 5}, ONE)) == (0, 2)


def test_a_failed_summary_scores_0_in_all() -> None:
    failed = Outcome(cited=frozenset(), failed="not JSON")
    zeros = {"recall": 0, "precision": 0, "f1": 0, "cao": 0, "op": 0}
    assert sample_values(failed, ONE, pattern="ebs-aos") == {**zeros, "retrieved": 0}
    assert sample_values(Outcome(failed="not JSON"), ONE, pattern="abs-aos") == zeros


def test_what_was_not_verified_is_left_out_and_not_0() -> None:
    cited = frozenset({1, 2})
    assert list(sample_values(Outcome(cited=cited), ONE, pattern="ebs-aos")) == ["retrieved", "recall", "precision", "f1"]
    assert sample_values(Outcome(opinions=bits("110")), ONE, pattern="abs-aos") == {"cao": 2 / 3}
    assert sample_values(Outcome(), ONE, pattern="abs-aos") == {}
    both = sample_values(Outcome(cited=cited, opinions=bits("110")), ONE, pattern="ebs-aos")
    assert both["op"] == pytest.approx((1 / 2 * 2 / 3) ** 0.5)
