"""What is said of a judge that answers one question alone, or that graded summaries of one product alone."""

from __future__ import annotations

from perse.rehearsal.leniency.asking import Asked
from perse.rehearsal.leniency.measuring import leniency
from perse.rehearsal.leniency.telling import finding, leniency_result


def summaries(products: int, *, sentiment: float | None) -> list[Asked]:
    """Two of each product, the first with the next one's reviews, too, where there is a next one."""
    own = [
        Asked(p, (p, n), {"coverage": 50.0, "sentiment": 50.0}, {"coverage": 80.0 + n + p % 3, "sentiment": sentiment})
        for p in range(products)
        for n in range(2)
    ]
    others = [
        Asked(p, ((p + 1) % products, 0), None, {"coverage": 40.0 + p % 3, "sentiment": sentiment})
        for p in range(products)
        if products > 1
    ]
    return [*own, *others]


def test_what_it_says_of_the_one_question_is_not_said_of_no_summary() -> None:
    found = leniency(summaries(12, sentiment=None), judge="J", resamples=200, seed=0)
    told = finding(found)
    assert "and gave no score for sentiment consistency, over 24 summaries of 12 products" in told and "undefined" not in told
    assert "for sentiment" not in told.partition("another product's reviews")[2]
    assert [row[1] for row in leniency_result(found).tables[0].rows] == ["50.0", "-"]


def test_of_one_product_no_other_reviews_were_shown() -> None:
    told = finding(leniency(summaries(1, sentiment=70.0), judge="J", resamples=200, seed=0))
    assert "over 2 summaries of 1 product that people graded." in told and "another product" not in told


def test_questions_that_were_answered_of_different_summaries_have_a_number_each() -> None:
    asked = [
        Asked(one.product, one.summary, one.people, one.judge | ({"sentiment": None} if one.summary[1] else {}))
        for one in summaries(12, sentiment=70.0)
    ]
    told = finding(leniency(asked, judge="J", resamples=200, seed=0))
    assert "over 24 summaries for aspect coverage and 12 of 24 for sentiment consistency, of 12 products" in told
