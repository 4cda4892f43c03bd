"""Comparing judges: on the same items, with p values adjusted over all that is shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from comparing_worlds import WORLD, compared, judges, labelled
from evaluation_builders import answered, failed, noisy_judge, pair, scored, world

from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.comparing.results import Comparison
from perse.evaluation.comparing.telling import comparison_result
from perse.evaluation.evaluate import evaluate_many
from perse.evaluation.stats.correlation import kendall
from perse.judgement import Judgement, Status
from perse.records import SummaryExample, SummaryReference
from perse.results.markdown import markdown
from perse.results.terminal import print_result


def comparison_markdown(found: Comparison) -> str:
    return markdown(comparison_result(found))


def test_each_later_judge_is_compared_with_each_earlier_one_and_all_with_the_readers_average() -> None:
    result = compared(judges(one=2, two=2, three=2), metrics=["mae"])
    assert [(each.one, each.other) for each in result.pairings] == [
        ("two", "one"),
        ("three", "one"),
        ("three", "two"),
        *((name, "profile average") for name in ("one", "two", "three")),
    ]
    assert [each.baseline for each in result.pairings] == [False] * 3 + [True] * 3
    assert result.family == 6


def test_against_one_judge_the_others_are_not_compared_with_each_other() -> None:
    result = compared(judges(one=2, two=2, three=2), metrics=["mae"], against="two")
    assert [(each.one, each.other) for each in result.pairings if not each.baseline] == [("one", "two"), ("three", "two")]


def test_values_are_those_of_the_items_that_both_answered() -> None:
    before = noisy_judge(WORLD, noise=2, seed=1, failures=0.2)
    after = noisy_judge(WORLD, noise=1, seed=2, failures=0.2)
    pairing = compared({"before": before, "after": after}).pairings[0]
    gold = [example.reference.score for example in WORLD if example.reference]
    kept = [place for place in range(len(WORLD)) if before[place].label and after[place].label]
    assert 0 < len(kept) < len(WORLD) and (pairing.items, pairing.answered) == (len(WORLD), len(kept))

    def value(judgements: Sequence[Judgement]) -> float:
        found = kendall(np.array([gold[n] for n in kept], float), np.array([judgements[n].expected for n in kept], float))
        assert found is not None
        return found

    first = pairing.contrasts[0]
    assert first.metric == "kendall" and pairing.reading == "expected"
    assert (first.one, first.other) == (pytest.approx(value(after)), pytest.approx(value(before)))
    assert first.difference == pytest.approx(value(after) - value(before))


def test_a_comparison_of_scores_says_of_how_many_items_it_is_where_one_of_the_two_failed() -> None:
    whole, all_of_them = noisy_judge(WORLD, noise=4, seed=1), noisy_judge(WORLD, noise=0.5, seed=2)
    gaps = [failed(one.id) if n % 4 == 0 else one for n, one in enumerate(all_of_them)]
    told = f" (of the 90 of {len(WORLD)} items that both answered)"
    for metrics in (["kendall"], ["mae"]):
        found = compared({"whole": whole, "gaps": gaps}, metrics=metrics)
        verdicts = {(each.one, each.other): each.verdict for each in found.pairings}
        assert verdicts["gaps", "whole"].startswith("gaps is better than whole") and verdicts["gaps", "whole"].endswith(told)
        assert verdicts["gaps", "profile average"].endswith(told)
        assert "both answered" not in verdicts["whole", "profile average"]


def test_a_better_judge_is_better_in_all_metrics_and_less_error_is_better() -> None:
    pairing = compared(judges(noise=4, ear=0.5), permutations=999).pairings[0]
    assert [each.better for each in pairing.contrasts] == [True] * 5
    mae = pairing.contrasts[-1]
    assert mae.metric == "mae" and mae.difference is not None and mae.difference < 0
    assert pairing.verdict.startswith("ear is better than noise: Kendall tau-b +0.")
    assert pairing.verdict.endswith("also in Spearman, Pearson, Kendall tau-b within reviewer, MAE")


@pytest.mark.slow
def test_equally_good_judges_are_not_shown_to_differ() -> None:
    pairing = compared(judges(one=2, two=2)).pairings[0]
    assert pairing.verdict.startswith("two and one are not shown to differ: Kendall tau-b ")


def test_better_than_the_readers_own_average_has_a_p() -> None:
    result = compared(judges(noise=8, ear=0.5), metrics=["mae"])
    bad, good = (each for each in result.pairings if each.baseline)
    assert good.contrasts[0].p == 1 / 200 and good.verdict.startswith(
        "ear is better than profile average for these 20 readers: MAE -"
    )
    assert bad.verdict.startswith("noise is worse than profile average: MAE +")


def test_judges_are_compared_on_what_both_judged_and_it_is_told_what_was_dropped() -> None:
    both = judges(one=2, two=2)
    result = compared({"one": both["one"][:100], "two": both["two"][8:]})
    assert result.items == 92
    one, two = result.judges["one"], result.judges["two"]
    assert (one.judged, one.common, one.dropped) == (100, 92, 8) and (two.judged, two.dropped) == (len(WORLD) - 8, 20)
    assert one.dropped_ids == tuple(example.id for example in WORLD[:5])
    assert any("has judged 100 of 120" in note for note in result.notes)


def test_labels_are_compared_where_a_judge_has_no_distributions() -> None:
    both = judges(one=2)
    result = compared({**both, "api": labelled([5, 6, 7, 8] * 30)}, metrics=["kendall"])
    assert [each.reading for each in result.pairings] == ["label", "expected", "label"]
    assert any(
        note.startswith("compared by label, which at a temperature above 0 is one random draw, ") and "api and one" in note
        for note in result.notes
    )


@pytest.mark.slow
def test_offset_and_spread_of_a_judge_do_not_change_the_p_of_correlations() -> None:
    generator = np.random.default_rng(0)
    low = generator.integers(1, 4, len(WORLD))
    other = noisy_judge(WORLD, noise=2, seed=1)
    metrics = ["pearson", "spearman", "kendall", "within_kendall"]
    one = compared({"other": other, "judge": labelled(low)}, metrics=metrics).pairings[0]
    moved = compared({"other": other, "judge": labelled(3 * low + 1)}, metrics=metrics).pairings[0]
    assert [each.p for each in one.contrasts] == [each.p for each in moved.contrasts]


def test_accuracy_counts_what_was_not_answered_as_wrong() -> None:
    examples = [pair(f"p{n}", f"r{n // 2}", "A", profile=({"Ending": "B"},)) for n in range(24)]
    right = [answered(example.id, "A", distribution={"A": 0.9, "B": 0.1}) for example in examples]
    half = [failed(example.id) if n % 2 else right[n] for n, example in enumerate(examples)]
    result = compare({"half": half, "right": right}, [Fold(examples, None)], resamples=100, permutations=500)
    first, *baselines = result.pairings
    assert (first.contrasts[0].one, first.contrasts[0].other, first.answered) == (1.0, 0.5, 12)
    # 12 readers, each half right: exchanged differences are as large in 2 of 2^12 exchanges, of which 500 were drawn.
    assert first.contrasts[0].p is not None and first.contrasts[0].p <= 3 / 501
    assert first.verdict.startswith("right is better than half: accuracy +0.500")
    assert {(each.other, each.contrasts[0].other) for each in baselines} == {("copy the example", 0.0)}


def test_a_comparison_of_pairs_says_how_many_each_side_refused_or_left_unparsed() -> None:
    examples = [pair(f"p{n}", f"r{n // 2}", "A", profile=({"Ending": "B"},)) for n in range(24)]
    right = [answered(example.id, "A") for example in examples]
    gaps = [
        right[n] if n % 2 else failed(one.id, Status.REFUSED if n % 4 else Status.UNPARSED) for n, one in enumerate(examples)
    ]
    found = compare({"shy": gaps, "right": right}, [Fold(examples, None)], resamples=100, permutations=199)
    told = " (not answered, and so wrong: shy 12 of 24: 6 unparsed, 6 refused)"
    assert found.pairings[0].verdict.startswith("right is better than shy: accuracy") and found.pairings[0].verdict.endswith(
        told
    )
    by_pair = {(one.one, one.other): one.verdict for one in found.pairings}
    assert by_pair["shy", "copy the example"].endswith(told)
    assert "not answered" not in by_pair["right", "copy the example"]
    assert found.judges["shy"].failed == {Status.UNPARSED: 6, Status.REFUSED: 6} and found.judges["right"].failed == {}


def test_summaries_are_compared_with_the_training_mean() -> None:
    def summary(n: int) -> SummaryExample:
        reference = SummaryReference(score=1 + n % 4 + 0.5)
        return SummaryExample(id=f"s{n}", reviewer_id=f"p{n // 3}", reviews=("r",), summary="s", reference=reference)

    examples = [summary(n) for n in range(36)]

    def judge(shift: int, question: str = "coverage") -> list[Judgement]:
        given = (answered(example.id, str(1 + (n + shift) % 4)) for n, example in enumerate(examples))
        return [one.model_copy(update={"question": question}) for one in given]

    result = compare({"off": judge(2), "near": judge(0)}, [Fold(examples, examples)], resamples=100, permutations=199)
    assert result.pairings[0].verdict.startswith("near is better than off")
    assert result.pairings[1].other == "training mean" and result.pairings[1].contrasts[0].one is not None
    with pytest.raises(BadInput, match="different questions"):
        compare({"off": judge(2), "near": judge(0, "sentiment")}, [Fold(examples, None)])


def test_one_reader_gives_no_p_and_no_interval_but_reasons() -> None:
    examples = [scored(f"e{n}", "r", 1 + n % 9, profile=(("i", 3),)) for n in range(9)]
    result = compared({"one": labelled(range(1, 10), examples), "two": labelled(range(9, 0, -1), examples)}, examples)
    first = result.pairings[0].contrasts[0]
    assert first.difference == -2.0 and first.interval.reason == "undefined (one reviewer)"
    assert (first.p, first.p_reason, first.p_holm) == (None, "undefined (one reviewer)", None)
    assert result.pairings[0].verdict.endswith("p undefined (one reviewer)") and result.family == 0


def test_readers_whom_a_judge_gives_one_score_stand_behind_no_interval_within_readers() -> None:
    """Of 12 readers one judge orders the texts of 9: nine values make that difference, and nine are too few for an interval."""
    examples = [scored(f"e{n}", f"r{n // 4}", 1 + n % 4, profile=(("i", 3),)) for n in range(48)]
    ordering = labelled([5 - n % 4 for n in range(48)], examples)
    mute = labelled([5 if n < 12 else 2 + n % 4 for n in range(48)], examples)
    within, mae = (
        compared({"mute": mute, "ordering": ordering}, examples, metrics=["within_kendall", "mae"]).pairings[0].contrasts
    )
    assert (within.difference, within.reviewers, within.interval.reason) == (-2.0, 9, "undefined (few reviewers)")
    assert mae.reviewers == 12 and mae.interval.low is not None


def test_equal_scores_are_undefined_and_said_to_be() -> None:
    examples = [scored(f"e{n}", f"r{n}", 5, profile=(("i", 3),)) for n in range(12)]
    result = compared({"one": labelled([4] * 12, examples), "two": labelled([5] * 12, examples)}, examples)
    first, *_, mae = result.pairings[0].contrasts
    assert (first.one, first.difference, first.p) == (None, None, None) and first.interval.reason
    assert mae.difference == -1.0 and mae.p is not None
    assert "NaN" not in result.model_dump_json()


def test_judges_that_answered_nothing_in_common_cannot_be_compared() -> None:
    given = noisy_judge(WORLD, noise=2, seed=0)
    one = [failed(each.id) if n % 2 else each for n, each in enumerate(given)]
    two = [each if n % 2 else failed(each.id) for n, each in enumerate(given)]
    pairing = compared({"one": one, "two": two}).pairings[0]
    assert pairing.answered == 0
    assert pairing.verdict.startswith("two and one cannot be compared by Kendall tau-b: undefined (no item answered by both)")


def test_without_a_profile_and_training_data_the_baseline_is_said_to_be_missing() -> None:
    bare = [example.model_copy(update={"profile": ()}) for example in WORLD]
    result = compared(judges(one=2, two=2), bare, metrics=["mae"])
    assert len(result.pairings) == 1
    assert any(
        "profile average is not compared with: no training data at hand for the 120 examples with an empty profile" in note
        for note in result.notes
    )


@pytest.mark.slow
def test_the_values_of_all_baselines_stand_beside_the_judges() -> None:
    train = world(10, seed=5)
    both = judges(one=2, two=2)
    result = compare(both, [Fold(WORLD, train)], resamples=100, permutations=199)
    evaluated = evaluate_many(both, [Fold(WORLD, train)], resamples=100)
    theirs = {row.name: row.columns for row in evaluated.rows if not row.judge}
    assert [one.name for one in result.baselines if one.values] == [name for name, columns in theirs.items() if columns]
    assert {one.name for one in result.baselines} == theirs.keys()
    for one in (one for one in result.baselines if one.values):
        assert one.values == {metric: theirs[one.name][metric] for metric in result.metrics}
    assert "## Without a judge, all 120 items" in comparison_markdown(result) and "| random | " in comparison_markdown(result)
    untrained = compared(both)
    assert {one.name: one.unavailable for one in untrained.baselines}["majority"] == "no training data at hand"
    assert "training median, majority: no training data at hand" in comparison_markdown(untrained)


def test_texts_of_several_readers_are_noted_and_two_way_intervals_are_others() -> None:
    both = judges(one=2, two=1)
    plain, two_way = (compared(both, metrics=["mae"], resamples=500, resample=how) for how in ("reviewers", "two-way"))
    assert any("texts were judged by several readers" in note and "--resample two-way" in note for note in plain.notes)
    assert any(note.startswith("two-way: reviewers and ") for note in two_way.notes)
    assert any(note.startswith("p values exchange answers reviewer by reviewer also") for note in two_way.notes)
    one, other = (result.pairings[0].contrasts[0] for result in (plain, two_way))
    assert one.interval.low is not None and one.interval.high is not None
    assert other.interval.low is not None and other.interval.high is not None
    assert one.interval != other.interval
    assert (one.difference, one.p) == (other.difference, other.p)
    assert "bootstrap over the reviewers and the texts" in comparison_markdown(two_way)


def test_a_judge_that_says_something_else_of_few_texts_alone_has_no_interval_that_holds_for_other_texts() -> None:
    examples = [scored(f"{r}-{t}", f"u{r}", 1 + (3 * r + 5 * t) % 10, item=f"t{t}") for r in range(20) for t in range(12)]
    other = labelled([1 + (7 * n) % 10 for n in range(240)], examples)
    few = labelled([(1 + n % 12 if n % 12 < 4 else 6) for n in range(240)], examples)
    both = compared({"few": few, "other": other}, examples, metrics=["kendall"], resample="two-way")
    found = next(one for one in both.pairings if not one.baseline).contrasts[0]
    assert found.difference is not None and (found.reviewers, found.texts) == (20, 4)
    assert found.interval.reason == "undefined (rests on few texts)" and found.better is None
    by_readers = compared({"few": few, "other": other}, examples, metrics=["kendall"], resample="reviewers")
    assert by_readers.pairings[0].contrasts[0].interval.low is not None


@pytest.mark.slow
def test_too_few_permutations_for_so_many_differences_are_told() -> None:
    result = compared(judges(a=2, b=2, c=2, d=2), permutations=500)
    assert result.family == 46  # 10 pairings of 5 metrics; the average of a reader orders none of their texts
    told = comparison_result(result).answer
    assert told.startswith("500 permutations are too few to show any of 46 differences; give 920 or more.\n")


@pytest.mark.slow
def test_the_same_command_gives_the_same_bytes_and_tells_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    both = judges(one=2, two=1)
    first = compared(both, on_progress=lambda done, total: told.append((done, total)))
    assert first.model_dump_json() == compared(both).model_dump_json()
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert compared(both, seed=1).model_dump_json() != first.model_dump_json()


@pytest.mark.slow
def test_table_and_markdown_show_the_sentences_and_escape_names() -> None:
    from rich.console import Console

    both = judges(one=3, two=1)
    result = compared({"[red]a|b": both["one"], "two": both["two"]}, permutations=999)
    console = Console(width=120)
    with console.capture() as shown:
        print_result(comparison_result(result), console)
    text = shown.get()
    assert "two is better than [red]a|b: Kendall tau-b" in " ".join(text.split()) and "nan" not in text.lower()
    assert "| two | " in comparison_markdown(result) and "\\[red\\]a\\|b" in comparison_markdown(result)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["accuracy"]}, "no metric 'accuracy' to compare scores by; choose from pearson, "),
        ({"against": "three"}, "no judge is named 'three'; choose from one, two"),
        ({"permutations": 10}, "10 permutations are too few"),
        ({"resamples": 10}, "10 resamples are too few"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        compared(judges(one=2, two=2), **options)


def test_one_judge_and_answers_to_another_question_are_refused() -> None:
    with pytest.raises(BadInput, match="1 judge to compare; give two"):
        compared(judges(one=2))
    with pytest.raises(BadInput, match="is ok with label 'A'"):
        compared({**judges(one=2), "two": [answered(example.id, "A") for example in WORLD]})


def test_within_readers_both_sides_are_of_the_same_readers_and_those_left_out_are_counted() -> None:
    who = sorted({example.reviewer_id for example in WORLD})
    some = set(who[:3])
    varied = noisy_judge(WORLD, noise=2, seed=1)
    flat = [
        one if example.reviewer_id in some else answered(example.id, "5")
        for one, example in zip(noisy_judge(WORLD, noise=2, seed=2), WORLD, strict=True)
    ]
    pairing = compared({"varied": varied, "flat": flat}, metrics=["within_kendall", "kendall"], against="flat").pairings[0]
    within, pooled = pairing.contrasts
    assert within.reviewers == len(some) == 3 and within.constant_on_one == len(who) - 3
    assert pooled.items == len(WORLD) and pooled.constant_on_one == 0
    mine = [example for example in WORLD if example.reviewer_id in some]
    values = {
        one: kendall(
            np.array([e.reference.score for e in mine if e.reviewer_id == one], dtype=float),  # type: ignore[union-attr]
            np.array([float(j.label or 0) for j, e in zip(varied, WORLD, strict=True) if e.reviewer_id == one]),
        )
        for one in some
    }
    assert within.one == pytest.approx(np.mean([value for value in values.values() if value is not None]))
    notes = comparison_result(compared({"varied": varied, "flat": flat}, metrics=["within_kendall"])).tables[2].notes
    assert any(f"of the 3 reviewers who vary on both sides; {len(who) - 3} to whom only one side" in note for note in notes)
