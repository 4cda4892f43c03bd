"""What is said of models that were verified, asked or known in different ways."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kgds_builders import benchmark
from results_builders import results, scores

from perse.kgds.outcomes import Outcome, Outcomes
from perse.kgds.released.summaries import Extracted, odd_notes
from perse.kgds.reporting.finer import count_tables
from perse.kgds.reporting.report import _lead
from perse.kgds.reporting.tables import highest, table_1
from perse.kgds.reporting.telling import kgds_result
from perse.kgds.scoring.metrics import results as measured
from perse.kgds.scoring.results import Average, Results

TWELVE = benchmark(12)


def outcomes(model: str, way: str, *, pattern: str = "ebs-aos", covers: int = 1) -> Outcomes:
    """By one judge, which was asked about facts in this way; covers the first opinions, and extracts one paragraph more."""
    found = {
        number: Outcome(
            cited=frozenset({1, 2}) if pattern == "ebs-aos" else None,
            facts=None if pattern == "ebs-aos" else tuple(n % 2 == covers % 2 for n, _ in enumerate(one.facts)),
            opinions=tuple(n < covers for n, _ in enumerate(one.opinions)),
        )
        for number, one in TWELVE.samples.items()
    }
    asked = None if pattern == "ebs-aos" else way
    return Outcomes(model, pattern, "structured", found, model, verified_by="J", facts_asked=asked)  # type: ignore[arg-type]


def test_how_a_judge_was_asked_about_facts_matters_only_where_it_was_asked_about_facts() -> None:
    """One judge verified both, facts one by one in the one run and in lists in the other."""
    both = [outcomes(model, way, covers=n) for n, (model, way) in enumerate((("a", "one by one"), ("b", "in lists")), start=1)]
    extracted = measured(TWELVE, both, resamples=100)
    assert "op" in extracted.differences[0].values and "No overall" not in kgds_result(extracted).answer
    assert "verified by J" in extracted.notes
    written = [outcomes(model, way, pattern="abs-aos") for model, way in (("a", "one by one"), ("b", "in lists"))]
    apart = measured(TWELVE, [*both, *written], resamples=100)
    assert [set(one.values) for one in apart.differences if one.pattern == "abs-aos"] == [{"cao"}]
    assert "different judges, or one asked in different ways, verified the models" in kgds_result(apart).answer
    assert (
        "values that different judges made, or ways of asking, cannot be compared: J (facts one by one) verified a; J (facts in lists) verified b"
        in apart.notes
    )


def test_questions_of_a_kind_that_was_never_answered_are_said_not_to_be_among_those_that_are_counted() -> None:
    [counts] = count_tables(results(scores("a", "abs-aos", unanswered=2)))
    assert "Questions not answered are counted where the judge answered any of their kind, and" in counts.notes[0]


@pytest.mark.parametrize("pattern", ["ebs-aos", "abs-aos"])
def test_nobody_is_said_to_have_verified_what_was_not_verified(pattern: str) -> None:
    nobody = outcomes("b", "in lists", pattern=pattern)
    unasked = {number: replace(one, facts=None, opinions=None) for number, one in nobody.samples.items()}
    unasked[1] = replace(nobody.samples[1], failed="no summary")  # which covers nothing without a judge
    nobody = replace(nobody, samples=unasked, verified_by=None, facts_asked=None)
    notes = measured(TWELVE, [outcomes("a", "one by one", pattern=pattern), nobody], resamples=100).notes
    assert "cannot be compared" not in " ".join(notes)
    assert ("verified by J" if pattern == "ebs-aos" else "verified by J (facts one by one)") in notes
    assert "verified" not in " ".join(measured(TWELVE, [nobody], resamples=100).notes)


def test_of_three_models_that_cannot_be_compared_it_is_not_said_that_three_are_needed() -> None:
    three = [
        outcomes(model, way, pattern="abs-aos")
        for model, way in zip("abc", ("one by one", "in lists", "in lists"), strict=True)
    ]
    notes = " ".join(kgds_result(measured(TWELVE, three, resamples=100)).notes)
    assert "the correlation across models is undefined (different judges" in notes and "needs three" not in notes
    two = " ".join(kgds_result(measured(TWELVE, three[1:], resamples=100)).notes)
    assert "needs three or more of which F1 and CAO R are known" in two


@pytest.mark.parametrize(
    ("numbers", "name"), [((2, 2), "mean of 2 models"), ((3, 2), "mean of models (3 under EBS-AOS, 2 under ABS-AOS)")]
)
def test_a_mean_of_fewer_models_under_one_pattern_says_so(numbers: tuple[int, int], name: str) -> None:
    means = tuple(
        Average(pattern=pattern, paradigm="structured", models=number, values={})
        for pattern, number in zip(("ebs-aos", "abs-aos"), numbers, strict=True)
    )
    table = table_1(results(scores("a"), scores("a", "abs-aos"), scores("b"), scores("b", "abs-aos"), averages=means))
    assert [row[0] for row in table.rows] == ["a", "b", name]


def test_each_sample_of_which_a_summary_cannot_be_read_is_told_with_its_own_fault() -> None:
    read = {
        n: Extracted(frozenset(), fault=fault)
        for n, fault in ((3, "it is not JSON"), (5, "it has no list"), (7, "it is not JSON"))
    }
    notes = odd_notes(read, {number: Outcome(opinions=(True,)) for number in read})
    assert notes == [
        "of samples 3, 7 what was verified stands, though it is not JSON: nothing is extracted",
        "of sample 5 what was verified stands, though it has no list: nothing is extracted",
    ]


def test_the_best_are_set_apart_only_where_more_than_three_can_be_compared() -> None:
    """By two judges: what is extracted can be compared, opinions cannot."""
    table = table_1(
        results(*(scores(name, start=80 - n, verified_by=by) for n, (name, by) in enumerate(zip("abcd", "JJKK", strict=True))))
    )
    best = [tuple(cell.best for cell in cells if cell) for _, cells in table.rows]
    assert best == [(False, False, True, False, False)] * 3 + [(False,) * 5]
    assert (
        "Set apart: the best 3 of F1, CAO R and OP where more can be compared, those that tie with them included."
        in table.notes
    )


def of_both(*, paradigm: str = "structured", unanswered: int = 0) -> Results:
    return results(scores("a", "ebs-aos", paradigm, start=90), scores("b", start=80, unanswered=unanswered))  # type: ignore[arg-type]


def test_a_model_that_was_asked_by_reflection_alone_is_said_to_be_beside_others() -> None:
    assert "; a was asked by reflection alone; none of" in highest(of_both(paradigm="reflection"), "ebs-aos")[0]
    assert "reflection" not in highest(of_both(), "ebs-aos")[0]
    lead = " ".join(_lead(of_both(paradigm="reflection")))
    assert "asked both ways" not in lead and "tables of differences" not in lead, "there is neither"


def test_one_question_that_was_not_answered_is_one() -> None:
    assert highest(of_both(unanswered=1), "ebs-aos")[0].endswith(
        " Not answered, and counted as not covered, was 1 question about b."
    )


def test_where_no_overall_performance_is_known_it_is_not_said_that_nothing_was_verified() -> None:
    """A judge that answered nothing, and facts without opinions: both were verified."""
    assert kgds_result(results(scores("a", values={}))).answer == "No overall performance (OP) is known of a."
