"""What the page says of a judge in words: what it is better at, and what is said of one that says nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from perse.evaluation.alignment import Fold, align
from perse.evaluation.evaluate import evaluate_many
from perse.evaluation.verdict import CHANCE
from perse.judgement import Judgement, Status, Tokens
from perse.records import (
    ChoiceReference,
    Example,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileComparison,
    ProfileReview,
    ReviewReference,
    SummaryExample,
    SummaryReference,
)
from perse.reporting.page import Verdict
from perse.reporting.report_data import report_data
from perse.reporting.reviewer_figures import reviewers, within
from perse.reporting.score_figures import calibration, distributions
from perse.reporting.summary import cautions, sections, verdicts

READERS, TEXTS = 24, 5


def reader_mean(reader: int) -> int:
    return 3 + reader % 6


def texts(gold: Callable[[int, int], int]) -> list[Example]:
    """Of each reader a past score that says little of them, and five texts."""
    return [
        PointwiseExample(
            id=f"{reader}-{text}",
            reviewer_id=f"r{reader}",
            item_id=f"{reader}-{text}",
            profile=(ProfileReview(text="t", review="r", score=1 + reader * 7 % 10),),
            query=f"q {reader} {text}",
            reference=ReviewReference(review="r", score=gold(reader, text)),
        )
        for reader in range(READERS)
        for text in range(TEXTS)
    ]


def varied(reader: int, text: int) -> int:
    """Around the reader's mean, from -2 to 2."""
    return reader_mean(reader) + text - 2


def pairs() -> list[Example]:
    past = (ProfileComparison(text_a="a", text_b="b", preference={"Ending": "A"}),)
    query = Pair(text_a="x", text_b="y")
    reference = ChoiceReference(preference="A")
    return [
        PairwiseExample(id=f"p{n}", reviewer_id=f"r{n}", aspect="Ending", profile=past, query=query, reference=reference)
        for n in range(READERS)
    ]


def answer(example: Example, label: str | None) -> Judgement:
    return Judgement(
        id=example.id,
        question="q",
        status=Status.UNPARSED if label is None else Status.OK,
        label=label,
        k_effective=1,
        tokens=Tokens(prompt=10, cached=0, generated=1),
        model="m",
    )


def verdict(examples: list[Example], labels: list[str | None]) -> Verdict:
    judged = {"ours": [answer(example, label) for example, label in zip(examples, labels, strict=True)]}
    parts = [Fold(examples, None)]
    (found,) = verdicts(evaluate_many(judged, parts, resamples=100), report_data(align(parts, judged)))
    return found


def test_a_judge_that_orders_a_readers_texts_is_ahead_of_the_rules_that_it_is_said_to_be_better_than() -> None:
    found = verdict(texts(varied), [str(varied(r, t)) for r in range(READERS) for t in range(TEXTS)])
    assert (found.standing, found.headline) == ("better", "better than the reader's own average")
    assert "Within each reader 1.00 [" in found.sentences[0]
    assert found.sentences[1].startswith("So it is ahead of the rules that it is said to be better than;")


def test_a_judge_that_knows_readers_and_orders_their_texts_the_wrong_way_round_is_said_to() -> None:
    found = verdict(texts(varied), [str(reader_mean(r) - (t == 4)) for r in range(READERS) for t in range(TEXTS)])
    assert found.headline == "better than the reader's own average, and orders one reader's texts the wrong way round"
    assert "Within each reader -0." in found.sentences[0] and "which texts a reader likes" not in found.sentences[0]
    assert "Do not order one reader's texts by it" in found.sentences[1] and "most people like" not in found.sentences[1]


@pytest.mark.parametrize("own", [True, False])
def test_a_heading_does_not_hide_that_the_scores_of_a_judge_of_the_right_order_are_far_off(own: bool) -> None:
    examples = texts(varied)
    given = {"ours": [answer(one, str(one.truth)) for one in examples]}
    parts = [Fold(examples, None)]
    found = evaluate_many(given, parts, resamples=100)
    off = found.conclusions[0].model_copy(update={"farther_off": True})
    told = found.model_copy(update={"conclusions": (off,), "own_scores": own})
    [one] = verdicts(told, report_data(align(parts, given)))
    average = "the reader's own average" if own else "the average of profiles that are not the reader's own"
    assert one.headline == f"better than {average}, by order; its scores are farther off"
    assert f"its scores are farther off than {average}: order texts by them" in one.sentences[1]
    assert "So it is ahead, by order, of the rules" in one.sentences[1] and "do not take them for the score" in one.sentences[1]


@pytest.mark.parametrize("wobble", [0, 1], ids=["constant for a reader", "no relation within a reader"])
def test_a_judge_that_knows_only_who_is_lenient_is_not_said_to_know_texts(wobble: int) -> None:
    # the wobble goes 0, 1, 0, 1, 0 over texts that the reader likes ever more: tau 0
    found = verdict(texts(varied), [str(reader_mean(r) + wobble * (t % 2)) for r in range(READERS) for t in range(TEXTS)])
    assert found.standing == "better"
    assert found.headline == "better than the reader's own average, not shown to know what a reader likes"
    assert "Within each reader" in found.sentences[0]
    assert "That may be knowing who is a lenient reader, or which texts most people like: it is not shown" in found.sentences[1]
    assert "in a better order than the rules that it is said to be better than." in found.sentences[1]
    assert "learned something" not in " ".join(found.sentences)


@pytest.mark.parametrize(
    ("against", "own", "why"),
    [
        (CHANCE, True, "wrong about who is lenient"),
        ("profile average", True, "since it knows who is lenient"),
        ("profile average", False, "a rule which does not read the text may do as well or better. Within"),
    ],
)
def test_only_a_rule_that_knows_who_is_lenient_is_said_to(against: str, own: bool, why: str) -> None:
    examples = texts(varied)
    given = {"ours": [answer(one, str(one.truth)) for one in examples]}
    parts = [Fold(examples, None)]
    found = evaluate_many(given, parts, resamples=100)
    unclear = found.conclusions[0].model_copy(update={"standing": "unclear", "against": against, "taste": True})
    told = found.model_copy(update={"conclusions": (unclear,), "own_scores": own})
    [one] = verdicts(told, report_data(align(parts, given)))
    assert why in one.sentences[1] and "Within one reader's texts the judge is ahead" in one.sentences[1]
    assert ("since it knows" in one.sentences[1]) == (own and against != CHANCE)


@pytest.mark.parametrize("standing", ["unclear", "worse"])
def test_who_orders_one_readers_texts_is_not_to_be_thrown_away_for_misjudging_who_is_lenient(standing: str) -> None:
    examples = texts(varied)
    given = {"ours": [answer(one, str(one.truth)) for one in examples]}
    parts = [Fold(examples, None)]
    found = evaluate_many(given, parts, resamples=100)
    assert found.conclusions[0].taste is None
    behind = found.conclusions[0].model_copy(update={"standing": standing, "against": "profile average"})
    [one] = verdicts(found.model_copy(update={"conclusions": (behind,)}), report_data(align(parts, given)))
    assert "One reader's texts the judge is shown to put in that reader's order" in one.sentences[1]
    assert "Do not use" not in one.sentences[1] and "do not compare readers by it" in one.sentences[1]


@pytest.mark.parametrize("against", [CHANCE, "constant"])
def test_nobody_is_lenient_in_summaries_that_people_graded(against: str) -> None:
    examples = [
        SummaryExample(id=f"{n}", reviewer_id=f"p{n // 5}", reviews=("r",), summary=f"s{n}", reference=SummaryReference(score=1 + n % 5))
        for n in range(READERS * 5)
    ]  # fmt: skip
    given = {
        "ours": [answer(one, str(1 + n % 5)).model_copy(update={"question": "coverage"}) for n, one in enumerate(examples)]
    }
    parts = [Fold(examples, None)]
    found = evaluate_many(given, parts, resamples=100)
    behind = found.conclusions[0].model_copy(update={"standing": "unclear", "against": against})
    [one] = verdicts(found.model_copy(update={"conclusions": (behind,)}), report_data(align(parts, given)))
    assert "lenient" not in one.sentences[1] and "reader" not in one.sentences[1]
    assert "Those of the same reviews the judge is shown to put in people's order" in one.sentences[1]


def test_one_answer_to_everything_is_no_lack_of_items() -> None:
    found = verdict(texts(varied), ["7"] * READERS * TEXTS)
    assert (found.standing, found.headline) == ("collapsed", "gives the same answer to everything")
    assert "Do not use it" in found.sentences[1] and "more items" not in " ".join(found.sentences)


@pytest.mark.parametrize("answers", [2, 9 * TEXTS], ids=["two answers", "nine readers"])
def test_a_few_equal_answers_are_no_sign_that_a_judge_cannot_tell_texts_apart(answers: int) -> None:
    examples = texts(varied)
    found = verdict(examples, ["7" if n < answers else None for n in range(len(examples))])
    assert (found.standing, found.headline) == ("undefined", "too little is known for a verdict")
    assert "It cannot tell texts apart" not in " ".join(found.sentences)


def test_the_headline_says_that_it_speaks_of_these_texts_alone() -> None:
    examples = [one.model_copy(update={"item_id": (one.item_id or "").split("-")[1]}) for one in texts(varied)]
    said = [str(varied(r, t)) for r in range(READERS) for t in range(TEXTS)]
    found = verdict(examples, said)
    assert found.headline == "better than the reader's own average, on these texts alone"
    assert ", on these texts alone: Kendall" in found.sentences[0]


def spread(examples: list[Example], given: list[Judgement]) -> str:
    parts = [Fold(examples, None)]
    (found,) = verdicts(evaluate_many({"ours": given}, parts, resamples=100), report_data(align(parts, {"ours": given})))
    return next(sentence for sentence in found.sentences if "most often finds likeliest" in sentence)


def mostly_ten(reader: int, text: int) -> int:
    return 1 + reader % 9 if text == 0 else 10


def test_a_judge_that_is_right_of_readers_who_mostly_say_one_thing_is_not_collapsed() -> None:
    examples = texts(mostly_ten)
    said = spread(examples, [answer(one, str(one.truth)) for one in examples])
    assert said == "The answer that it most often finds likeliest, 10, is so in 80%; the readers gave it in 80%."
    choices = [
        one.model_copy(update={"reference": ChoiceReference(preference="A" if n else "B")}) for n, one in enumerate(pairs())
    ]
    said = spread(choices, [answer(one, str(one.truth)) for one in choices])
    assert said == "The answer that it most often finds likeliest, A, is so in 96%; the readers gave it in 96%."


def test_what_a_judge_finds_likeliest_is_held_against_what_the_readers_gave_of_that() -> None:
    """A judge that is right wherever it answers, and refuses nine in ten of the 10s."""
    examples = texts(mostly_ten)
    refused = [one.truth == 10 and n % 10 != 1 for n, one in enumerate(examples)]
    given = [answer(one, None if no else str(one.truth)) for one, no in zip(examples, refused, strict=True)]
    said = spread(examples, given)
    told = re.search(r"likeliest, (\d+), is so in (\d+)%; the readers gave it in (\d+)% of what it answered\.", said)
    assert told and told[2] == told[3], said
    caption = distributions(report_data(align([Fold(examples, None)], {"ours": given}))).alt
    assert f"The commonest true score of what ours answered is {told[1]}, {told[2]}% of the time" in caption
    whole = {"all": [answer(one, str(one.truth)) for one in examples], "ours": given}
    caption = distributions(report_data(align([Fold(examples, None)], whole))).alt
    assert "The commonest true score of what all answered is 10, 80% of the time" in caption
    assert f"The commonest true score of what ours answered is {told[1]}, {told[2]}% of the time" in caption


@pytest.mark.parametrize("silent", [False, True])
def test_a_judge_without_verdict_for_another_that_answered_little_is_advised_a_report_of_its_own(silent: bool) -> None:
    examples = texts(varied)
    given = {
        "all": [answer(one, str(one.truth)) for one in examples],
        "few": [answer(one, str(one.truth) if one.reviewer_id in ("r0", "r1") else None) for one in examples],
    }
    given |= {"mute": [answer(one, None) for one in examples]} if silent else {}
    everyone = "every judge but mute" if silent else "every judge"
    parts = [Fold(examples, None)]
    evaluation, runs = evaluate_many(given, parts, resamples=100), report_data(align(parts, given))
    found, *_ = verdicts(evaluation, runs)
    told = f"10 are compared, which {everyone} answered: a report of it alone has more"
    assert found.standing == "undefined" and any(told in said for said in found.sentences), found
    drawn = f" are of the 10 items that {everyone} answered."
    assert reviewers(runs, evaluation).alt.startswith("Mean scores of 2 to 24 reviewers: ")
    assert all(figure(runs, evaluation).alt.endswith(drawn) for figure in (reviewers, within, calibration))


def test_a_score_that_is_as_common_as_another_is_not_the_only_one_that_is_named() -> None:
    examples = texts(lambda reader, text: 3 if reader % 2 else 7)
    given = [answer(one, "37"[n // 2 % 2]) for n, one in enumerate(examples)]
    assert spread(examples, given).startswith("The answer that it most often finds likeliest, 3 (7 as often), is so in 50%;")
    said = distributions(report_data(align([Fold(examples, None)], {"ours": given}))).alt
    assert "The commonest true score is 3 (7 as often), 50% of the time" in said
    assert (
        "ours gives 3 (7 as often) most often, 50% of the time (1.0 bits), and most often finds 3 (7 as often) likeliest"
        in said
    )


def test_a_judge_that_is_not_asked_for_a_collapse_is_not_said_to_have_passed_one() -> None:
    said = spread(texts(varied), [answer(one, str(one.truth)) for one in texts(varied)])
    assert said.startswith("The answer that it most often finds likeliest, ") and "ollapsed" not in said


def test_a_judge_whose_expected_scores_order_texts_is_not_collapsed_though_one_answer_is_always_likeliest() -> None:
    examples = texts(varied)

    def leaning(one: Example) -> Judgement:
        return answer(one, "7").model_copy(
            update={"distribution": {**dict.fromkeys(map(str, range(1, 11)), 0.0), str(one.truth): 0.4, "7": 0.6}}
        )

    said = spread([one for one in examples if one.truth != 7], [leaning(one) for one in examples if one.truth != 7])
    assert said == "The answer that it most often finds likeliest, 7, is so in 100%; the readers gave it in 0%."


def test_a_judge_that_says_one_thing_much_more_often_than_the_readers_and_orders_nothing_is_collapsed() -> None:
    said = spread(texts(varied), [answer(one, "5" if n % 25 == 2 else "7") for n, one in enumerate(texts(varied))])
    assert said.startswith(
        "Collapsed: nearly one answer for everything: the answer that it most often finds likeliest, 7, is so in 96%;"
    )
    examples = [one.model_copy(update={"reference": ChoiceReference(preference="AB"[n % 2])}) for n, one in enumerate(pairs())]
    assert spread(examples, [answer(one, "A") for one in examples]).startswith("Collapsed: ")


@pytest.mark.parametrize("even", [READERS, READERS // 2])
def test_pairs_of_which_both_texts_are_exactly_as_likely_are_told_and_are_no_choice_of_the_first(even: int) -> None:
    examples = [one.model_copy(update={"reference": ChoiceReference(preference="AB"[n % 2])}) for n, one in enumerate(pairs())]
    given = [
        answer(one, "A").model_copy(update={"distribution": {"A": 0.5, "B": 0.5} if n < even else {"A": 0.2, "B": 0.8}})
        for n, one in enumerate(examples)
    ]
    parts = [Fold(examples, None)]
    (found,) = verdicts(evaluate_many({"ours": given}, parts, resamples=100), report_data(align(parts, {"ours": given})))
    (said,) = [sentence for sentence in found.sentences if "neither text likelier" in sentence]
    assert said.startswith(f"Of {100 * even / READERS:.1f}% of the pairs it finds neither text likelier.")
    assert ("the answer that it most often finds likeliest, B, is so in 100%" in said) is (even < READERS), said
    assert "likeliest, A" not in said


def test_a_judge_without_probabilities_that_always_takes_the_first_place_finds_neither_text_likelier() -> None:
    examples = [one.model_copy(update={"reference": ChoiceReference(preference="AB"[n % 2])}) for n, one in enumerate(pairs())]
    drawn = [answer(one, "AB"[n % 3 == 0]).model_copy(update={"order_gap": 1.0}) for n, one in enumerate(examples)]
    (found,) = verdicts(
        evaluate_many({"first": drawn}, [Fold(examples, None)], resamples=100),
        report_data(align([Fold(examples, None)], {"first": drawn})),
    )
    assert any(said == "Of 100.0% of the pairs it finds neither text likelier." for said in found.sentences), found.sentences
    assert not any("most often finds likeliest" in said for said in found.sentences)
    half = [one if n % 2 else answer(examples[n], None) for n, one in enumerate(drawn)]
    half[1] = half[1].model_copy(update={"order_gap": 0.0})
    (found,) = verdicts(
        evaluate_many({"first": half}, [Fold(examples, None)], resamples=100),
        report_data(align([Fold(examples, None)], {"first": half})),
    )
    [said] = [said for said in found.sentences if "neither text likelier" in said]
    assert said.startswith("Of 91.7% of the pairs that it answered it finds neither text likelier. Of the others the answer ")
    assert said.endswith("% of them.")


def test_of_fewer_than_ten_readers_no_judge_is_called_collapsed() -> None:
    examples = [one for one in texts(varied) if int((one.reviewer_id or "r0")[1:]) < 9]
    said = spread(examples, [answer(one, "5" if n % 25 == 2 else "7") for n, one in enumerate(examples)])
    assert said.startswith("The answer that it most often finds likeliest, 7, is so in 96%;")


def test_readers_who_all_say_the_same_are_a_lack_of_items() -> None:
    found = verdict(texts(lambda reader, text: 7), ["7"] * READERS * TEXTS)
    assert (found.standing, found.sentences[1]) == ("undefined", "Judge more items of more readers, whose answers differ.")


@pytest.mark.parametrize("examples", [texts(varied), pairs()], ids=["scores", "pairs"])
def test_a_judge_that_answered_nothing_is_compared_with_nothing(examples: list[Example]) -> None:
    found = verdict(examples, [None] * len(examples))
    assert (found.standing, found.headline) == ("silent", "answered nothing")
    assert found.sentences[0].startswith("Nothing can be said of it. The failures below say what went wrong")
    assert found.sentences[1] == f"It answered 0 of {len(examples)} questions (0.0%)."


def test_pairs_that_were_answered_have_no_value_within_readers() -> None:
    found = verdict(pairs(), ["A"] * READERS)
    assert found.headline == "not shown to be better than the best constant answer"
    assert "within" not in found.sentences[0]


def test_what_the_cautions_say_is_not_said_again_under_a_table() -> None:
    unknown = texts(varied)[0].model_copy(update={"id": "x", "reference": None})
    examples = [*texts(varied), unknown]
    judged = {"ours": [answer(example, "7") for example in examples]}
    evaluation = evaluate_many(judged, [Fold(examples, None)], resamples=100, notes=["the moon was full"])
    notes = [note for part in sections(evaluation, []) for table in (*part.tables, *part.finer) for note in table.notes]
    said = cautions(evaluation, contamination=False)
    assert "when it was made; this page did not test that." in said[-1]
    assert "of the model that it asked, the study" in cautions(evaluation, contamination=True)[-1], "which may be another"
    assert "The moon was full." in said and "1 of 121 samples are not in the numbers" in " ".join(said)
    assert "intervals: 95%" in " ".join(notes)
    assert "moon" not in " ".join(notes) and "no reference" not in " ".join(notes)
