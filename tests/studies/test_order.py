"""Order: a judge that ignores it does not move, one that goes by it moves by as much as can be counted by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from judging_builders import asking, average, last, point, scripted
from reading_builders import answered, pair, scored

from perse.answering.base import JudgeSettings
from perse.data.profiles.views import View
from perse.errors import BadInput, RunMismatch
from perse.evaluation.shared_texts import OF_THESE_TEXTS, both_drawn, crossed, several_readers
from perse.evaluation.stats.unseen import none_of
from perse.evaluation.verdict import ON_THESE_TEXTS
from perse.records import Example, Pair, ProfileReview
from perse.results.result import Estimate, Result
from perse.studies.frame.measuring import Condition
from perse.studies.frame.running import Asking, opened, read_study
from perse.studies.frame.summarizing import crossed_note
from perse.studies.order import Asked, _moves, _result, _sampled, order


def _in_order(example: Example, number: int) -> Example:
    profile = View(order_seed=0, order=number).shown(example.profile, k=3, example_id=example.id)
    return example.model_copy(update={"profile": tuple(profile)})


def test_what_the_judge_was_trained_on_is_asked_and_the_study_goes_on_by_its_name_when_that_is_not_known_any_more(
    readers: Path, tmp_path: Path
) -> None:
    judge = tmp_path / "judge"
    judge.mkdir()
    (judge / "manifest.json").write_text(json.dumps({"run": {"kind": "train", "question": "pointwise_score"}}))
    one = asking(readers, judge=str(judge), limit=4)
    result = order(one, tmp_path / "out", orders=2, load=scripted(average))
    arms = [json.loads(line)["question"] for line in (tmp_path / "out" / "arms.jsonl").read_text().splitlines()]
    assert arms == ["pointwise_score"] * 2
    (judge / "manifest.json").unlink()
    with pytest.raises(RunMismatch, match="question"):
        order(one, tmp_path / "out", orders=2, load=scripted(average))
    named = replace(one, question="pointwise_score")
    assert order(named, tmp_path / "out", orders=2, load=scripted(average)) == result


def test_a_judge_that_ignores_the_order_has_no_spread_and_does_not_move(readers: Path, tmp_path: Path) -> None:
    result = order(asking(readers), tmp_path, orders=3, load=scripted(average))
    assert point(result, "script", "3").spread == 0
    assert point(result, "script", "3", "moved").estimate.value == 0
    assert "standard deviation 0.000" in result.answer


def test_a_drawn_label_is_no_movement_of_the_order() -> None:
    """One distribution, whatever is shown, and labels that are drawn from it anew."""
    flat = {str(score): 0.09 + 0.1 * (score == 7) for score in range(1, 11)}
    profile = tuple(ProfileReview(text=f"past {n}", review="r", score=n + 1) for n in range(2))
    examples = [scored(f"{n}", f"r{n}", 5, profile=profile) for n in range(12)]
    turned = [one.model_copy(update={"profile": profile[::-1]}) for one in examples]
    drawn = [{one.id: answered(one.id, label, distribution=flat) for one in examples} for label in ("2", "9")]
    in_words = [{one.id: answered(one.id, label) for one in examples} for label in ("2", "9")]
    mixed = [{**drawn[0], "11": in_words[0]["11"]}, drawn[1]]
    settings = JudgeSettings(temperature=0.8)
    for passes, changes, said in (
        (drawn, 0.0, ""),
        (
            mixed,
            1 / 12,
            " At a temperature of 0.8 1 of its 24 answers, which told no probabilities, may be apart from others by sampling: no order is asked twice.",
        ),
        (in_words, 1.0, " At a temperature of 0.8 whatever moves may do so by sampling alone: no order is asked twice."),
    ):
        asked = Asked(Condition("j", "2", tuple(passes), examples), (examples, turned))
        asks = Asking(examples=Path("x"), judge="j", resamples=50, settings=settings)
        assert _moves(asks, asked)[1].value == pytest.approx(changes)
        assert _sampled(asks, asked, writes=False) == said
        assert _sampled(asks, asked, writes=True).startswith(" At a temperature of 0.8 whatever moves")
        table = _result(asks, [asked], writes=False).tables[1]
        assert table.header[-1] == ("label changes" if passes is in_words else "likeliest label changes")
        assert ("1 of 24 answers told no probabilities" in table.notes[-1]) == (passes is mixed)


def test_labels_that_never_change_may_change_in_other_texts_and_the_note_says_how_that_is_known(
    readers: Path, tmp_path: Path
) -> None:
    result = order(asking(readers), tmp_path, orders=3, load=scripted(average))
    (row,) = result.tables[1].rows
    changes = row[3]
    assert row[1] == "60", "how many items stand behind it"
    assert isinstance(changes, Estimate) and (changes.value, changes.interval.low) == (0, 0)
    assert changes.interval.high is not None and 0.01 < changes.interval.high < 0.4
    assert sum("are not resampled but exact" in note for note in result.notes) == 1


def test_how_far_answers_move_is_the_mean_difference_over_pairs_of_orders(readers: Path, tmp_path: Path) -> None:
    one = asking(readers)
    result = order(one, tmp_path, orders=3, load=scripted(last))
    # The judge says the last score shown: so does this, from the examples themselves.
    views = [View(k=3, order_seed=0, order=n) for n in range(3)]
    said = [[example.profile[-1].score for example in one.open().shown(view).examples] for view in views]  # type: ignore[union-attr]
    pairs = list(combinations(np.array(said), 2))
    moved = np.mean([abs(left - right).mean() for left, right in pairs])
    flipped = np.mean([(left != right).mean() for left, right in pairs])
    told = point(result, "script", "3", "moved").estimate
    assert moved > 0 and told.value == pytest.approx(moved, abs=1e-12)
    reach = max(map(max, said)) - min(map(min, said))
    assert told.interval.high is not None and told.interval.high >= moved + none_of(60) * (reach - moved) - 1e-9, (
        "other items may move as far as answers can, so seldom that none here does"
    )
    (row,) = result.tables[1].rows
    assert getattr(row[3], "value", None) == pytest.approx(flipped, abs=1e-12)
    assert (point(result, "script", "3").spread or 0) > 0


def test_all_orders_of_two_entries_are_asked_and_the_answer_moves_by_their_difference(readers: Path, tmp_path: Path) -> None:
    """Shuffles of two are the same in half of the pairs, which halved what was told of two orders."""
    one = asking(readers)
    result = order(one, tmp_path, orders=3, ks=[2], load=scripted(last))
    profiles = [[past.score for past in example.profile] for example in one.open().shown(View(k=2)).examples]  # type: ignore[union-attr]
    apart = np.mean([abs(first - second) for first, second in profiles])
    assert point(result, "script", "2", "moved").estimate.value == pytest.approx(apart, abs=1e-12)
    assert "on average over 2 orders, standard deviation" in result.answer and "two different orders" in result.answer
    assert [row[2] for row in result.tables[0].rows] == ["2"]


def test_six_orders_of_three_entries_are_all_that_there_are(readers: Path, tmp_path: Path) -> None:
    one = asking(readers)
    result = order(one, tmp_path, orders=9, ks=[3], load=scripted(last))
    profiles = [[past.score for past in example.profile] for example in one.open().shown(View(k=3)).examples]  # type: ignore[union-attr]
    ends = [[profile[-1] for profile in permutations(scores)] for scores in profiles]
    every = np.mean([np.mean([abs(a - b) for a, b in combinations(end, 2)]) for end in ends])
    assert point(result, "script", "3", "moved").estimate.value == pytest.approx(every, abs=1e-12)
    assert "over 6 orders" in result.answer and len(list((tmp_path / "arms").iterdir())) == 6


def test_a_short_profile_among_long_ones_is_compared_in_different_orders_alone(readers: Path, tmp_path: Path) -> None:
    examples = [*asking(readers, limit=4).open().shown(View(k=3)).examples]
    short = [one.model_copy(update={"profile": one.profile[:n]}) for n, one in enumerate(examples[:3])]
    shown = [[_in_order(one, n) for one in short] for n in range(3)]
    passes = [{one.id: answered(one.id, str(n + 1)) for one in short} for n in range(3)]
    asked = Asked(Condition("script", "3", tuple(passes), short), tuple(shown))
    moved, changed = _moves(asking(readers), asked)
    # Answers 1, 2, 3 in three passes: profiles of none and of one entry have one order; of two the first and the third pass show the same one.
    assert moved.items == 1 and moved.value == pytest.approx(1.0) and changed.value == 1.0


def test_a_profile_of_one_has_one_order_and_is_asked_once(readers: Path, tmp_path: Path) -> None:
    result = order(asking(readers, limit=8), tmp_path, orders=3, ks=[1, 2], load=scripted(last))
    assert sorted(folder.name for folder in (tmp_path / "arms").iterdir()) == ["k1-order0", "k2-order0", "k2-order1"]
    assert point(result, "script", "1").spread is None
    assert point(result, "script", "1", "moved").estimate.interval.reason == "undefined (one order)"
    alone = order(asking(readers, limit=8), tmp_path / "alone", orders=3, ks=[1], load=scripted(last))
    assert alone.answer.startswith("At k = 1, Kendall tau-b is ") and alone.answer.endswith("; a profile has one order there.")


def test_a_study_of_orders_that_could_be_the_same_is_not_continued(readers: Path, tmp_path: Path) -> None:
    """Of an older perse: its result is still read, and its answers to other prompts are not taken for these."""
    one = asking(readers, limit=8)
    with opened(tmp_path, "order", one, source=one.open(), options={"orders": 3, "ks": [3]}) as study:
        old = study.finish(Result(name="order", asks="?", answer="as it was", tables=()))
    with pytest.raises(RunMismatch, match="options"):
        order(one, tmp_path, orders=3, load=scripted(last))
    assert read_study(tmp_path) == old


def test_one_order_is_no_study(readers: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="found 1 orders; two or more can differ"):
        order(asking(readers), tmp_path, orders=1, load=scripted(last))


@pytest.mark.parametrize(
    ("answer", "note", "told"),
    [
        ("It is 0.2 higher.", f"{OF_THESE_TEXTS}: 3 texts", "It is 0.2 higher. Intervals are of these texts alone."),
        (f"It is higher{ON_THESE_TEXTS}.", f"{OF_THESE_TEXTS}: 3 texts", f"It is higher{ON_THESE_TEXTS}."),
        ("It is 0.2 higher.", "two-way: readers and texts are both resampled", "It is 0.2 higher."),
    ],
)
def test_where_intervals_are_of_these_texts_alone_the_answer_of_a_study_says_so_itself(
    answer: str, note: str, told: str, readers: Path, tmp_path: Path
) -> None:
    one = asking(readers, limit=8)
    with opened(tmp_path, "order", one, source=one.open(), options={}) as study:
        found = study.finish(Result(name="order", asks="?", answer=answer, tables=(), notes=(note,)))
    assert found.answer == read_study(tmp_path).answer == told


def test_readers_of_the_same_texts_are_noted(readers: Path, tmp_path: Path) -> None:
    result = order(asking(readers), tmp_path, load=scripted(average))
    examples = asking(readers).open().shown().examples
    said = several_readers(examples)
    notes = [note for note in result.notes if "judged by several readers" in note]
    assert said and notes == [both_drawn(examples)], "and the texts are resampled, too"
    assert notes[0].endswith("(at most 4)") and "between" not in notes[0], "no study has a column between readers"
    assert crossed_note([*examples, examples[0].model_copy(update={"reviewer_id": "another"})])


def test_texts_that_stand_in_several_pairs_of_one_reader_do_not_make_intervals_those_of_these_texts() -> None:
    """A new reader of such pairs brings new texts; `perse evaluate` says the same of them."""
    pairs = [
        pair(f"p{reader}-{n}", f"r{reader}", "A").model_copy(
            update={"query": Pair(text_a=f"text {n // 2} of {reader}", text_b=f"other {n} of {reader}")}
        )
        for reader in range(12)
        for n in range(4)
    ]
    said = "24 of 72 texts stand in several pairs (at most 2): too few between readers to matter to an interval"
    assert crossed_note(pairs) == [said] and crossed(pairs, two_way=False)[0].startswith(said)


def test_pairs_judged_in_words_have_labels_that_change_and_no_probability_that_moves(couples: Path, tmp_path: Path) -> None:
    result = order(asking(couples), tmp_path, ks=[2], load=scripted(lambda message, seed: "Plot " + "AB"[len(message) % 2]))
    (row,) = result.tables[1].rows
    moved, changed = row[2], row[3]
    assert isinstance(moved, Estimate) and isinstance(changed, Estimate)
    assert moved.interval.reason == "undefined (no probabilities were told)"
    assert row[1] == str(changed.items) != "0"
    assert "between two different orders one item's label changes in " in result.answer and "undefined" not in result.answer


def test_of_a_score_that_is_read_exactly_nothing_is_said_to_be_sampled() -> None:
    profile = tuple(ProfileReview(text=f"past {n}", review="r", score=n + 1) for n in range(2))
    examples = [scored(f"{n}", f"r{n}", 5, profile=profile) for n in range(12)]
    turned = [one.model_copy(update={"profile": profile[::-1]}) for one in examples]
    exact = tuple({one.id: answered(one.id, "5", distribution={"5": 0.8, "6": 0.2}) for one in examples} for _ in range(2))
    asks = Asking(examples=Path("x"), judge="j", resamples=50, settings=JudgeSettings(temperature=0.8))
    two = Asked(Condition("j", "2", exact, examples), (examples, turned))
    for writes in (False, True):
        result = _result(asks, [two], writes=writes)
        assert any("the sampling's" in note for note in result.notes) is ("by sampling" in result.answer) is writes
    one = Asked(Condition("j", "1", exact[:1], examples), (examples,))
    assert not any("the sampling's" in note for note in _result(asks, [one], writes=True).notes), "one order, nothing moves"
