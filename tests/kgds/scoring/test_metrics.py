from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from kgds_builders import benchmark, bits

from perse.errors import BadInput
from perse.evaluation.stats.correlation import FloatArray, pearson, spearman
from perse.evaluation.stats.intervals import bootstrap_interval, expanded_levels
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.kgds.benchmark import PARADIGMS, PATTERNS, Benchmark, Paradigm, Pattern
from perse.kgds.outcomes import ErrorType, Outcome, Outcomes
from perse.kgds.reporting.tables import table_1
from perse.kgds.reporting.telling import kgds_result
from perse.kgds.scoring.across_models import CONSTANT, FEW_MODELS, JUDGES
from perse.kgds.scoring.metrics import results
from perse.kgds.scoring.results import SampleScores, Scores
from perse.kgds.scoring.sides import Side, difference, percent
from perse.kgds.scoring.words import named
from perse.results.result import Estimate, Interval

ALL_RIGHT = {1: Outcome(cited=frozenset({1, 3}), opinions=bits("111")), 2: Outcome(cited=frozenset({2}), opinions=bits("11"))}


def of(
    model: str, samples: Mapping[int, Outcome], *, pattern: Pattern = "ebs-aos", paradigm: Paradigm = "structured"
) -> Outcomes:
    return Outcomes(model, pattern, paradigm, samples, f"runs/{model}-{pattern}-{paradigm}")


def drawn(model: str, known: Benchmark, *, pattern: Pattern, paradigm: Paradigm, skill: float) -> Outcomes:
    """Each right thing is there with `skill`, each wrong one with what is left."""
    chance = random.Random(f"{model}{pattern}{paradigm}")
    samples = {}
    for number, one in known.samples.items():
        supporting = one.supporting_indices
        cited = (p.index for p in one.article if chance.random() < (skill if p.index in supporting else 1 - skill))
        facts = (chance.random() < (skill if fact.type == 1 else 1 - skill) for fact in one.facts)
        opinions = tuple(chance.random() < skill for _ in one.opinions)
        background = {"cited": frozenset(cited)} if pattern == "ebs-aos" else {"facts": tuple(facts)}
        samples[number] = Outcome(**background, opinions=opinions)  # type: ignore[arg-type]
    return of(model, samples, pattern=pattern, paradigm=paradigm)


SKILLS = {"a": 0.9, "b": 0.75, "c": 0.6, "d": 0.5}
TWELVE = benchmark(12)
EVERYTHING = [
    drawn(model, TWELVE, pattern=pattern, paradigm=paradigm, skill=skill)
    for model, skill in SKILLS.items()
    for pattern in PATTERNS
    for paradigm in PARADIGMS
]


def ends(estimate: Estimate) -> tuple[float | None, float | None]:
    return estimate.interval.low, estimate.interval.high


def test_everything_right_is_100_percent() -> None:
    scores = results(benchmark(), [of("a", ALL_RIGHT)]).scores[0]
    # Extracted: 2 of 4 and 1 of 2 paragraphs, which is all that support.
    assert {metric: estimate.value for metric, estimate in scores.values.items()} == {
        "recall": 100, "precision": 100, "f1": 100, "cao": 100, "op": 100, "retrieved": 50,
    }  # fmt: skip
    assert [one.values["op"] for one in scores.samples] == [1, 1]


def test_samples_weigh_the_same_whatever_their_length() -> None:
    # 1 of 3 opinions and 2 of 2: (1/3 + 1) / 2, not 3 of 5.
    uneven = {**ALL_RIGHT, 1: Outcome(cited=frozenset({1, 3}), opinions=bits("100"))}
    assert results(benchmark(), [of("a", uneven)]).scores[0].values["cao"].value == 66.67


def test_overall_performance_is_averaged_over_samples_and_not_made_of_averages() -> None:
    # F1 1 and 0, CAO 0 and 1: each sample has OP 0, though both means are 50.
    crossed = {1: Outcome(cited=frozenset({1, 3}), opinions=bits("000")), 2: Outcome(cited=frozenset(), opinions=bits("11"))}
    values = results(benchmark(), [of("a", crossed)]).scores[0].values
    assert (values["f1"].value, values["cao"].value, values["op"].value) == (50, 50, 0)


def test_models_are_compared_on_the_samples_that_all_have() -> None:
    known = benchmark(5)
    every = {number: ALL_RIGHT[2 - number % 2] for number in range(1, 6)}
    some = {number: every[number] for number in (1, 2, 4)}
    fewer = {number: every[number] for number in (1, 3, 4)}
    del every[5]
    found = results(known, [of("a", every), of("b", some), of("c", fewer)])
    assert found.samples == (1, 4)
    assert found.left_out == {"c": (2,), "b": (3,), "": (5,)}
    assert found.notes[0] == (
        "3 of 5 samples are left out: c lacks a summary, or a verification, of sample 2; b lacks a summary, or a verification, of "
        "sample 3; nobody has a summary, or no verification, of sample 5"
    )
    assert {len(scores.samples) for scores in found.scores} == {2}


def test_a_sample_that_one_model_has_not_verified_is_not_compared() -> None:
    half = {**ALL_RIGHT, 2: Outcome(cited=frozenset({2}))}
    found = results(benchmark(), [of("a", ALL_RIGHT), of("b", half)])
    assert (found.samples, found.left_out) == ((1,), {"b": (2,)})


def test_a_model_without_any_verification_keeps_its_samples_and_lacks_the_metric() -> None:
    unverified = {number: Outcome(cited=outcome.cited) for number, outcome in ALL_RIGHT.items()}
    found = results(benchmark(), [of("a", ALL_RIGHT), of("b", unverified)])
    assert found.samples == (1, 2)
    assert list(found.scores[1].values) == ["recall", "precision", "f1", "retrieved"]
    assert found.notes == ("b, ebs-aos, structured: opinions are not known",)
    assert found.correlations[0].models == 1


def test_abstractive_summaries_without_verification_have_no_metric_at_all() -> None:
    found = results(benchmark(), [of("a", {1: Outcome(), 2: Outcome()}, pattern="abs-aos")])
    assert found.scores[0].values == {} and found.across == ()
    assert [note.split(": ")[1] for note in found.notes] == ["key facts are not known", "opinions are not known"]


def test_nothing_in_common_nothing_at_all_and_strange_samples_are_refused() -> None:
    first, second = {1: ALL_RIGHT[1]}, {2: ALL_RIGHT[2]}
    with pytest.raises(BadInput, match="no sample is in all of runs/a-ebs-aos-structured, runs/b-ebs-aos-structured, and"):
        results(benchmark(), [of("a", first), of("b", second)])
    with pytest.raises(BadInput, match="there are no summaries to measure"):
        results(benchmark(), [])
    with pytest.raises(BadInput, match="runs/a-ebs-aos-structured holds sample 3, which KGDS.json with its 2 samples does not"):
        results(benchmark(), [of("a", {**ALL_RIGHT, 3: ALL_RIGHT[1]})])
    with pytest.raises(BadInput, match="50 resamples say little"):
        results(benchmark(), [of("a", ALL_RIGHT)], resamples=50)


def test_the_same_model_twice_names_both_sources() -> None:
    other = Outcomes("a", "ebs-aos", "structured", ALL_RIGHT, "elsewhere/a")
    with pytest.raises(BadInput, match="runs/a-ebs-aos-structured and elsewhere/a both hold 'a' with ebs-aos and structured"):
        results(benchmark(), [of("a", ALL_RIGHT), other])


def test_one_fact_too_few_names_source_sample_and_fact() -> None:
    short = {1: Outcome(facts=bits("101 101 10 0"), opinions=bits("111"))}
    with pytest.raises(
        BadInput, match="runs/a-abs-aos-structured: sample 1: 9 facts are verified of 10; .* of paragraph 4, 'The"
    ):
        results(benchmark(), [of("a", short, pattern="abs-aos")])


def test_a_failed_summary_scores_0_is_counted_and_covers_no_opinion() -> None:
    failed = Outcome(cited=frozenset(), opinions=bits("000"), errors=(), failed="the answer is not JSON")
    wrong = Outcome(cited=frozenset({2, 7}), opinions=bits("01"), errors=(ErrorType.OSD,), unanswered=1)
    scores = results(benchmark(), [of("a", {1: failed, 2: wrong})]).scores[0]
    assert {metric: estimate.value for metric, estimate in scores.values.items()} == {
        "recall": 50, "precision": 50, "f1": 50, "cao": 25, "op": 35.36, "retrieved": 25,
    }  # fmt: skip
    assert (scores.failed, scores.unanswered, scores.strange) == (1, 1, 1)
    assert scores.samples[0].failed == "the answer is not JSON"
    # Three opinions of the failed summary and one of the other.
    assert scores.errors is not None and (scores.errors.classified, scores.errors.uncovered) == (1, 4)


def with_errors(shares: tuple[Mapping[ErrorType, float] | None, ...]) -> dict[int, Outcome]:
    kinds = ((ErrorType.IRU, ErrorType.IRU), (ErrorType.OM,))
    return {
        1: Outcome(cited=frozenset({1}), opinions=bits("100"), errors=kinds[0], error_shares=shares[0]),
        2: Outcome(cited=frozenset({2}), opinions=bits("10"), errors=kinds[1], error_shares=shares[1]),
    }


def test_errors_are_counted_over_samples_and_also_by_probability() -> None:
    # Sums of probabilities: IRU 1.5, IRIC 0.75, OM 0.75 of 3.
    shares = ({ErrorType.IRU: 1.25, ErrorType.IRIC: 0.75}, {ErrorType.IRU: 0.25, ErrorType.OM: 0.75})
    errors = results(benchmark(), [of("a", with_errors(shares))]).scores[0].errors
    assert errors is not None and (errors.classified, errors.uncovered) == (3, 3)
    assert errors.shares is not None and list(errors.shares.values()) == [0, 0, 66.67, 0, 33.33]
    assert errors.probable is not None and list(errors.probable.values()) == [0, 0, 50, 25, 25]


def test_probabilities_of_some_errors_only_are_not_told() -> None:
    errors = results(benchmark(), [of("a", with_errors(({ErrorType.IRU: 2.0}, None)))]).scores[0].errors
    assert errors is not None and errors.probable is None


def test_what_reflection_changes_of_the_errors_shares_is_shown_only_where_it_does() -> None:
    known = benchmark(30)
    drawn_by = np.random.default_rng(6)

    def outcomes(paradigm: Paradigm, chances: list[float]) -> Outcomes:
        """Each sample has an error of its own that comes again, as those of one text do."""
        samples = {}
        for number, one in known.samples.items():
            own = list(ErrorType)[drawn_by.choice(5, p=chances)]
            each = [list(ErrorType)[n] for n in drawn_by.choice(5, size=len(one.opinions), p=chances)]
            errors = tuple(own if drawn_by.random() < 0.5 else other for other in each)
            samples[number] = Outcome(cited=frozenset(), opinions=(False,) * len(errors), errors=errors)
        return of("a", samples, paradigm=paradigm)

    even, other = [0.2] * 5, [0.05, 0.05, 0.05, 0.05, 0.8]
    missed = 0
    for _ in range(20):
        [one] = results(known, [outcomes("structured", even), outcomes("reflection", even)], resamples=100).deltas
        assert one.error_intervals and one.errors
        missed += sum(
            end.low is None or end.high is None or not end.low <= 0 <= end.high for end in one.error_intervals.values()
        )
    assert missed <= 10, "of 100 intervals of nothing 5 are meant; 11 would be rare"
    [one] = results(known, [outcomes("structured", even), outcomes("reflection", other)], resamples=100).deltas
    assert (
        one.errors
        and one.error_intervals
        and (one.error_intervals[ErrorType.OM].low or 0) > 0
        and one.errors[ErrorType.OM] > 30
    )
    table = next(
        table
        for table in kgds_result(results(known, [outcomes("structured", even), outcomes("reflection", even)])).tables
        if table.title.endswith("of those classified")
    )
    assert all(isinstance(cell, Estimate) and cell.interval.low is not None for row in table.rows for cell in row[2:7])


def test_errors_that_nobody_asked_about_are_none_and_none_found_have_no_shares() -> None:
    assert results(benchmark(), [of("a", ALL_RIGHT)]).scores[0].errors is None
    asked = {
        number: Outcome(cited=outcome.cited, opinions=outcome.opinions, errors=()) for number, outcome in ALL_RIGHT.items()
    }
    errors = results(benchmark(), [of("a", asked)]).scores[0].errors
    assert errors is not None and (errors.classified, errors.uncovered, errors.shares) == (0, 0, None)


def of_difference(one: FloatArray, other: FloatArray, resampled: FloatArray) -> tuple[object, ...]:
    """The ends of a difference where none of 12 failed, in percent."""
    if np.ptp(resampled) < 1e-12:
        return None, None
    # Wilson's end of 0 of 12 is z^2 / (12 + z^2) = 24.2%, either way, of what the better of the two has (root of the mean square).
    middle = (one - other).mean()
    unseen = 3.841459 / 15.841459 * max(np.sqrt((side**2).mean()) for side in (one, other))
    low, high = (np.hypot(end - middle, unseen) for end in np.nanquantile(resampled, expanded_levels(12)))
    told = max(-100, 100 * (middle - low)), min(100, 100 * (middle + high))
    return tuple(pytest.approx(end, abs=0.0051) for end in told)


def test_intervals_are_those_of_resamples_built_one_by_one() -> None:
    found = results(TWELVE, EVERYTHING, resamples=200, seed=3)
    times = times_drawn(12, resamples=200, seed=3).astype(int)  # (12, 200)
    rows = [np.repeat(np.arange(12), times[:, resample]) for resample in range(200)]
    by_key = {(one.model, one.pattern, one.paradigm): one for one in found.scores}

    def means(model: str, pattern: str, paradigm: str, metric: str) -> np.ndarray:
        values = np.array([one.values[metric] for one in by_key[model, pattern, paradigm].samples])  # type: ignore[index]
        return np.array([values[row].mean() for row in rows])

    def interval(resampled: np.ndarray) -> tuple[float, ...]:
        return tuple(float(end) for end in np.nanquantile(resampled, expanded_levels(12)))

    def percent(resampled: np.ndarray) -> tuple[object, ...]:
        if np.ptp(resampled) < 1e-12:
            return None, None
        return tuple(pytest.approx(100 * end, abs=0.0051) for end in interval(resampled))

    for key, one in by_key.items():
        for metric, estimate in one.values.items():
            assert ends(estimate) == percent(means(*key, metric))

    def apart(one: tuple[str, ...], other: tuple[str, ...], metric: str) -> tuple[object, ...]:
        values = [np.array([sample.values[metric] for sample in by_key[key].samples]) for key in (one, other)]  # type: ignore[index]
        return of_difference(values[0], values[1], means(*one, metric) - means(*other, metric))

    for delta in found.deltas:
        for metric, estimate in delta.values.items():
            keys = [(delta.model, delta.pattern, paradigm) for paradigm in ("reflection", "structured")]
            assert ends(estimate) == apart(keys[0], keys[1], metric)
    for across in found.across:
        keys = [(across.model, pattern, across.paradigm) for pattern in PATTERNS]
        assert ends(across.gap) == apart(keys[0], keys[1], "op")
        extracting, writing = (means(across.model, pattern, across.paradigm, "op") for pattern in PATTERNS)
        assert ends(across.mean) == percent((extracting + writing) / 2)
    for one in found.correlations:
        both = [[means(model, one.pattern, one.paradigm, metric) for model in SKILLS] for metric in ("f1", "cao")]
        for coefficient, estimate in ((pearson, one.pearson), (spearman, one.spearman)):
            plain = [coefficient(*(np.array([model[at] for model in side]).round(12) for side in both)) for at in range(200)]
            resampled = np.array([np.nan if value is None else value for value in plain])
            assert ends(estimate) == tuple(pytest.approx(end) for end in interval(resampled))


def test_differences_are_those_of_the_rounded_values() -> None:
    found = results(TWELVE, EVERYTHING, resamples=100)
    value = {
        (one.model, one.pattern, one.paradigm, metric): e.value for one in found.scores for metric, e in one.values.items()
    }
    assert len(found.deltas) == 8 and len(found.across) == 8 and len(found.correlations) == 4
    for delta in found.deltas:
        for metric, estimate in delta.values.items():
            before = value[delta.model, delta.pattern, "structured", metric]
            after = value[delta.model, delta.pattern, "reflection", metric]
            assert before is not None and after is not None and estimate.value == round(after - before, 2)
    for across in found.across:
        one, other = (value[across.model, pattern, across.paradigm, "op"] for pattern in PATTERNS)
        assert one is not None and other is not None
        assert across.gap.value == round(one - other, 2)
        assert across.mean.value == pytest.approx((one + other) / 2, abs=0.0051)


def test_reflection_without_structured_has_no_delta() -> None:
    found = results(benchmark(), [of("a", ALL_RIGHT, paradigm="reflection")])
    assert found.deltas == () and len(found.scores) == 1


def test_few_samples_are_called_samples() -> None:
    assert results(benchmark(), [of("a", ALL_RIGHT)]).scores[0].values["f1"].interval.reason == "undefined (few samples)"
    alone = results(benchmark(), [of("a", {1: ALL_RIGHT[1]})])
    assert alone.scores[0].values["f1"].interval.reason == "undefined (one sample)"


def test_correlation_needs_three_models_that_differ() -> None:
    known = TWELVE
    right = {number: ALL_RIGHT[2 - number % 2] for number in known.samples}
    wrong = {number: Outcome(cited=frozenset(), opinions=(False,) * len(one.opinions)) for number, one in known.samples.items()}
    mixed = {number: (right if number <= 6 else wrong)[number] for number in known.samples}
    two = results(known, [of("a", right), of("b", wrong)], resamples=100).correlations[0]
    assert (two.models, two.pearson.value, two.pearson.interval.reason) == (2, None, FEW_MODELS)
    same = results(known, [of(model, right) for model in "abc"], resamples=100).correlations[0]
    assert (same.models, same.spearman.value, same.spearman.interval.reason) == (3, None, CONSTANT)
    # F1 and CAO are the same in each: on one line, whatever is drawn.
    line = results(known, [of("a", right), of("b", wrong), of("c", mixed)], resamples=100).correlations[0]
    assert line.pearson.value == pytest.approx(1) and ends(line.pearson) == (pytest.approx(1), pytest.approx(1))
    assert line.spearman.value == pytest.approx(1)


@pytest.mark.slow
def test_the_same_again_gives_the_same_bytes_and_another_seed_other_intervals() -> None:
    once = results(TWELVE, EVERYTHING, resamples=100, seed=1)
    assert results(TWELVE, EVERYTHING, resamples=100, seed=1).model_dump_json() == once.model_dump_json()
    other = results(TWELVE, EVERYTHING, resamples=100, seed=2)
    assert other.scores[0].values["f1"].value == once.scores[0].values["f1"].value
    assert other.model_dump_json(exclude={"seed"}) != once.model_dump_json(exclude={"seed"})


def test_samples_are_named_in_runs() -> None:
    assert named([3]) == "sample 3"
    assert named([1, 2]) == "samples 1, 2"
    assert named([1, 3, 5, 6, 7, 9]) == "samples 1, 3, 5 to 7, 9"


def test_differences_between_models_are_paired_on_the_same_resamples() -> None:
    found = results(TWELVE, EVERYTHING, resamples=200, seed=3)
    assert len(found.differences) == 6 * 4, "four models make six pairs, under two patterns and two paradigms"
    by_key = {(one.model, one.pattern, one.paradigm): one for one in found.scores}
    times = times_drawn(12, resamples=200, seed=3)
    for one in found.differences:
        for metric, estimate in one.values.items():
            sides = [by_key[model, one.pattern, one.paradigm] for model in (one.model, one.minus)]
            values = [np.array([sample.values[metric] for sample in side.samples]) for side in sides]
            resampled = (values[0] - values[1]) @ times / 12
            assert estimate.difference and ends(estimate) == of_difference(values[0], values[1], resampled)
            assert estimate.value == round((sides[0].values[metric].value or 0) - (sides[1].values[metric].value or 0), 2)


def test_a_model_that_differs_from_itself_by_nothing_has_a_difference_of_nothing() -> None:
    [difference] = results(TWELVE, [EVERYTHING[0], replace(EVERYTHING[0], model="twin")], resamples=100).differences
    found = {(estimate.value, estimate.interval.reason) for estimate in difference.values.values()}
    assert found == {(0, "undefined (the same in every resample)")}


def test_averages_over_models_weigh_each_model_the_same() -> None:
    found = results(TWELVE, EVERYTHING, resamples=100)
    assert [(one.pattern, one.paradigm, one.models) for one in found.averages] == [
        (p, q, 4) for p in PATTERNS for q in PARADIGMS
    ]
    for average in found.averages:
        rows = [one for one in found.scores if (one.pattern, one.paradigm) == (average.pattern, average.paradigm)]
        for metric, estimate in average.values.items():
            assert estimate.value == pytest.approx(np.mean([row.values[metric].value for row in rows]), abs=0.0051)
    alone = results(TWELVE, EVERYTHING[:4], resamples=100)
    assert alone.averages == (), "of one model there is no mean"


@pytest.mark.slow
def test_what_different_judges_verified_is_neither_ranked_nor_subtracted_nor_averaged() -> None:
    """The same summaries before a judge that says yes to all and before a coin: overall performance "differed" by 54 points, of the judges."""
    judges = {"a": "yes", "b": "coin", "c": "yes", "d": "yes"}
    by_two = [replace(one, verified_by=judges[one.model]) for one in EVERYTHING]
    found, alone = (results(TWELVE, outcomes, resamples=100) for outcomes in (by_two, EVERYTHING))
    needs_none = {"recall", "precision", "f1", "retrieved"}
    for one in found.differences:
        theirs = next(
            each for each in alone.differences if each.model_dump(exclude={"values"}) == one.model_dump(exclude={"values"})
        )
        same = judges[one.model] == judges[one.minus]
        wanted = set(theirs.values) if same else needs_none if one.pattern == "ebs-aos" else set()
        assert {name: theirs.values[name] for name in wanted} == one.values
    assert {average.pattern: set(average.values) for average in found.averages} == {"ebs-aos": needs_none}
    assert {one.pearson.interval.reason for one in found.correlations} == {JUDGES}
    assert found.across == alone.across and found.deltas == alone.deltas, "of one model, by one judge"
    told = kgds_result(found).answer
    assert (
        told.count("is called the highest under") == 2
        and "different judges, or one asked in different ways, verified the models" in told
        and "minus" not in told
    )
    assert not any(cell.best for one in table_1(found).rows for cell in one[1][3:5] if cell)
    unverified = [
        replace(one, verified_by=None, samples={n: replace(each, opinions=None) for n, each in one.samples.items()})
        for one in EVERYTHING
        if one.model == "d" and one.pattern == "ebs-aos"
    ]
    five = [replace(one, verified_by="yes", model=one.model.replace("d", "e")) for one in EVERYTHING]
    known = table_1(results(TWELVE, [*five, *unverified], resamples=100))
    assert sum(row[1][4].best for row in known.rows if row[1][4]) == 3, "who was not verified keeps nobody from being ranked"
    after = [replace(one, verified_by=f"{one.paradigm}, {one.pattern}") for one in EVERYTHING]
    apart = results(TWELVE, after, resamples=100)
    assert not apart.across and {frozenset(one.values) for one in apart.deltas} == {frozenset(needs_none), frozenset()}


def test_the_highest_is_said_with_what_was_not_answered_of_each_and_whose_is_not_known() -> None:
    some = [replace(one, samples={n: replace(each, unanswered=2) for n, each in one.samples.items()}) for one in EVERYTHING]
    mixed = [one if kept.model == "a" else kept for one, kept in zip(some, EVERYTHING, strict=True)]
    told = kgds_result(results(TWELVE, mixed, resamples=100)).answer
    assert told.count("Not answered, and counted as not covered, were 24 questions about a.") == 2
    silent = [
        replace(one, samples={n: replace(each, opinions=None, facts=None) for n, each in one.samples.items()})
        if one.model == "d"
        else one
        for one in EVERYTHING
    ]
    assert kgds_result(results(TWELVE, silent, resamples=100)).answer.count("; that of d is not known") == 2


def test_a_row_without_a_sample_takes_none_from_the_others() -> None:
    found = results(benchmark(), [of("a", ALL_RIGHT), of("b", {})])
    assert found.samples == (1, 2) and [(one.model, one.why) for one in found.refused] == [
        ("b", "runs/b-ebs-aos-structured has no sample that is summarized and verified")
    ]


def sides(one: FloatArray, other: FloatArray) -> tuple[Side, Side]:
    """Two models with these recalls of opinions, (S,)."""
    draws = Resamples(np.arange(len(one)), times_drawn(len(one), resamples=400, seed=0))

    def side(name: str, values: FloatArray) -> Side:
        scores = Scores(
            model=name,
            pattern="ebs-aos",
            paradigm="structured",
            values={"cao": Estimate(value=percent(float(values.mean())), interval=Interval(), items=len(values))},
            errors=None,
            verified_by=None,
            failed=int((values == 0).sum()),
            unanswered=0,
            odd=0,
            strange=0,
            samples=tuple(
                SampleScores(sample=n, values={"cao": value}, failed=None if value else "unparsed")
                for n, value in enumerate(values.tolist())
            ),
        )
        return Side(scores, {"cao": draws.sums(values[None])[0] / len(values)}, draws)

    return side("a", one), side("b", other)


def failing(values: FloatArray, *samples: int) -> FloatArray:
    return np.where(np.isin(np.arange(len(values)), samples), 0.0, values)


def test_a_few_failures_of_one_model_alone_show_no_difference() -> None:
    # The same but for five samples of 100 that one failed at: by the sign test p = 2 / 32, and a bootstrap alone is above 0.
    same = np.linspace(0.4, 0.9, 100)
    one, other = sides(same, failing(same, 3, 20, 41, 60, 83))
    alone = bootstrap_interval(one.resampled["cao"] - other.resampled["cao"], reviewers=100, of="sample")
    assert alone.low is not None and alone.low > 0
    found = difference(one, other, "cao")
    assert found.value is not None and found.value > 0 and not found.above_zero and found.interval.low is not None
    turned = difference(other, one, "cao")
    assert (turned.interval.low, turned.interval.high) == (-(found.interval.high or 0), -found.interval.low)


def test_a_difference_reaches_as_far_as_failures_that_no_sample_shows() -> None:
    # 100 samples without a failure leave up to 3.7% of others (Wilson), each of which loses about 67 points: 2.5 points.
    same = np.linspace(0.4, 0.9, 100)
    one, other = sides(same + 0.01 + 0.001 * np.sin(np.arange(100)), same)
    alone = bootstrap_interval(one.resampled["cao"] - other.resampled["cao"], reviewers=100, of="sample")
    assert alone.low is not None and alone.low > 0.009
    found = difference(one, other, "cao").interval
    assert found.low is not None and found.high is not None
    assert -1.6 < found.low < -1.4 and 3.4 < found.high < 3.6


def test_many_failures_of_one_model_alone_are_a_difference() -> None:
    same = np.linspace(0.4, 0.9, 100)
    one, other = sides(same, failing(same, 3, 20, 30, 41, 60, 83, 90))
    assert difference(one, other, "cao").above_zero


def test_a_difference_that_the_other_samples_show_too_needs_no_failures() -> None:
    same = np.linspace(0.4, 0.9, 100)
    better = same + 0.08 + 0.03 * np.sin(np.arange(100))
    one, other = sides(better, failing(same, 3))
    assert difference(one, other, "cao").above_zero
