"""Several judges in one table: on common items, and one that fails takes nothing from the others."""

import pytest
from evaluation_builders import EXAMPLES, JUDGEMENTS, TRAIN, answered, failed, row, value

from perse.errors import BadInput
from perse.evaluation.evaluate import Fold, evaluate, evaluate_many
from perse.evaluation.metrics import metrics_of
from perse.judgement import Status


def test_several_judges_stand_on_the_items_common_to_all() -> None:
    # Untrained has not judged item 0 and fails on item 1: every row is of items 2 and 3.
    trained = [*JUDGEMENTS[:3], answered("3", "9")]
    untrained = [failed("1"), answered("2", "5"), answered("3", "6")]
    found = evaluate_many({"trained": trained, "untrained": untrained}, [Fold(EXAMPLES, TRAIN)])
    assert (found.items, found.ok_items) == (3, 2)
    assert "untrained has judged 3 of 4 examples; all rows are of the common ones" in found.notes
    assert value(found, "trained (label)", "mae") == pytest.approx((2 + 1) / 2)  # items 2 and 3: 8 for 6, 9 for 10
    assert value(found, "untrained (label)", "mae") == pytest.approx((1 + 4) / 2)
    assert {row.asked for row in found.rows} == {3}
    assert {name: summary.ok for name, summary in found.judges.items()} == {"trained": 3, "untrained": 2}
    trained_imputed = row(found, "trained (label)").imputed
    assert trained_imputed is not None and trained_imputed["mae"].value == pytest.approx((0 + 2 + 1) / 3)


def test_of_several_judges_a_note_says_that_their_number_is_not_adjusted_for() -> None:
    parts = [Fold(EXAMPLES, TRAIN)]
    two = evaluate_many({"one": JUDGEMENTS, "two": JUDGEMENTS}, parts, resamples=100)
    assert two.notes[-1].startswith(
        "2 judges are each held against chance and the baselines, and nothing is adjusted for their number"
    )
    one = evaluate_many({"one": JUDGEMENTS}, parts, resamples=100)
    assert not any("adjusted" in note for note in one.notes)


def test_judges_without_a_common_item_are_refused() -> None:
    with pytest.raises(BadInput, match="judged by all of one, two; score the same examples with each"):
        evaluate_many({"one": JUDGEMENTS[:2], "two": JUDGEMENTS[2:]}, [Fold(EXAMPLES, None)])
    with pytest.raises(BadInput, match="judged by all of one, two; two has judged nothing yet; go on with the command"):
        evaluate_many({"one": JUDGEMENTS[:2], "two": []}, [Fold(EXAMPLES, None)])


def test_evaluate_is_evaluate_many_of_one_judge_and_one_part() -> None:
    assert evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN) == evaluate_many({"judge": JUDGEMENTS}, [Fold(EXAMPLES, TRAIN)])


def test_a_judge_that_answered_nothing_has_reasons_instead_of_values() -> None:
    found = evaluate(EXAMPLES, [failed(example.id) for example in EXAMPLES], train=TRAIN)
    judge = row(found, "judge (expected)").columns
    assert set(judge) == {metric.name for metric in metrics_of("scores")}
    assert {(one.value, one.interval.reason) for one in judge.values()} == {(None, "undefined (nothing was answered)")}
    assert found.verdict == ("judge: answered none of 4; nothing can be said of it",)


def test_statuses_are_counted() -> None:
    statuses = (Status.UNPARSED, Status.TOO_LONG, Status.REFUSED, Status.ENGINE_ERROR)
    judgements = [failed(str(n), status) for n, status in enumerate(statuses)]
    found = evaluate(EXAMPLES, judgements, train=TRAIN)
    assert found.judges["judge"].statuses == {Status.OK: 0, **dict.fromkeys(statuses, 1)}
    assert (found.judges["judge"].ok, found.judges["judge"].asked) == (0, 4)
    assert row(found, "judge (label)").columns["mae"].value is None


@pytest.mark.slow
def test_a_judge_that_answered_nothing_takes_no_item_from_the_others() -> None:
    silent = [failed(example.id) for example in EXAMPLES]
    alone = evaluate(EXAMPLES, JUDGEMENTS, train=TRAIN)
    found = evaluate_many({"silent": silent, "judge": JUDGEMENTS}, [Fold(EXAMPLES, TRAIN)])
    assert found.ok_items == alone.ok_items == 3
    for name in ("judge (expected)", "judge (label)", "profile average", "random"):
        assert row(found, name) == row(alone, name)
    assert {one.interval.reason for one in row(found, "silent (label)").columns.values()} == {
        "undefined (nothing was answered)"
    }
    assert "silent answered nothing; the other rows are of the items that the other judges answered" in found.notes
    assert not any("answered nothing" in note for note in alone.notes)


def test_the_failures_of_a_judge_that_answered_nothing_are_imputed_even_where_the_others_failed_at_none() -> None:
    answers = [*JUDGEMENTS[:3], answered("3", "9")]
    found = evaluate_many({"silent": [failed(example.id) for example in EXAMPLES], "judge": answers}, [Fold(EXAMPLES, TRAIN)])
    imputed = row(found, "silent (label)").imputed
    # The training mean 7 for 2, 4, 6 and 10.
    assert imputed is not None and imputed["mae"].value == pytest.approx((5 + 3 + 1 + 3) / 4)
    none = evaluate_many({"silent": [failed(example.id) for example in EXAMPLES], "judge": answers}, [Fold(EXAMPLES, None)])
    assert "failures are not imputed: no training data at hand" in none.notes
