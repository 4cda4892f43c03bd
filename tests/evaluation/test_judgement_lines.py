import json
import re

import pytest
from evaluation_builders import answered, failed
from pydantic import ValidationError

from perse.errors import BadInput
from perse.judgement import Judgement, Status, judgement_line, parse_judgement


@pytest.mark.parametrize("judgement", [answered("a", "10", distribution={"10": 0.9, "1": 0.1}), failed("b", Status.REFUSED)])
def test_a_judgement_survives_its_line_of_json(judgement: Judgement) -> None:
    line = judgement_line(judgement)
    assert line.endswith("\n") and line.count("\n") == 1
    assert parse_judgement(json.loads(line), "f") == judgement


def test_text_with_line_ends_stays_on_one_line() -> None:
    judgement = failed("a").model_copy(update={"text": "one\ntwo\u2028three\r"})
    assert judgement_line(judgement).count("\n") == 1
    assert parse_judgement(json.loads(judgement_line(judgement)), "f").text == judgement.text


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_json_cannot_hold_is_refused(number: float) -> None:
    with pytest.raises(ValidationError):
        Judgement.model_validate(failed("a").model_dump() | {"mass": number})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "fine"}, "judgements.jsonl, line 3: judgement, field 'status'"),
        ({"surprise": 1}, "judgements.jsonl, line 3: judgement, field 'surprise'"),
        ({"label": "7"}, "status unparsed has label '7'; only an ok answer has a label"),
    ],
)
def test_a_line_that_is_no_judgement_is_named_with_its_place_and_field(change: dict, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_judgement(failed("a").model_dump(mode="json") | change, "judgements.jsonl, line 3")
    assert message in str(error.value)


def test_a_line_that_is_no_object_is_named_with_its_place() -> None:
    with pytest.raises(BadInput, match="f, line 1: expected a JSON object, found a list"):
        parse_judgement([], "f, line 1")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"expected": 1e308}, "expected"),
        ({"distribution": {"1": 1e308}}, "distribution"),
        ({"distribution": {"1": 0.5, "2": 0.4}}, "sums to 0.9, expected 1"),
        ({"k_effective": 10**400}, "k_effective"),
        ({"tokens": {"prompt": 10**400, "cached": 0, "generated": 1}}, "tokens.prompt"),
    ],
)
def test_numbers_that_no_judge_gives_are_refused_with_their_field(change: dict[str, object], field: str) -> None:
    line = {"id": "a", "question": "pointwise", "status": "ok", "label": "1", "k_effective": 1, "model": "m"}
    line |= {"tokens": {"prompt": 1, "cached": 0, "generated": 1}}
    with pytest.raises(BadInput, match=re.escape(field)):
        parse_judgement(line | change, "judgements.jsonl, line 1")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"stacked": {"expected": 5.0, "distribution": {"1": 0.5, "10": 0.4}}},
            "the stacked distribution sums to 0.9, expected 1",
        ),
        ({"stacked": {"expected": 5.0, "distribution": {"1": 0.5, "10": 0.502}}}, "the stacked distribution sums to 1.002"),
        ({"error": "broken"}, "status ok has an error; an ok answer has none"),
        ({"distribution": {"1": 0.5, "10": 0.502}}, "the distribution sums to 1.002, expected 1"),
    ],
)
def test_an_answer_that_contradicts_itself_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse_judgement(answered("a", "10").model_dump(mode="json") | change, "f, line 1")


def test_numbers_that_were_rounded_to_four_digits_are_taken() -> None:
    found = answered("a", "10", distribution={"1": 0.2, "10": 0.8}).model_dump(mode="json")
    found |= {"distribution": {"1": 0.1995, "10": 0.8}, "stacked": {"expected": 5.0, "distribution": {"1": 0.2, "10": 0.8005}}}
    assert parse_judgement(found, "f").likeliest == "10"


def test_the_row_of_a_judgement_has_all_of_it_flat() -> None:
    one = answered("a", "10", distribution={"10": 0.9, "1": 0.1})
    row = one.row()
    assert (row["id"], row["status"], row["label"], row["likeliest"], row["p_10"], row["p_1"]) == (
        "a",
        "ok",
        "10",
        "10",
        0.9,
        0.1,
    )
    assert row["stacked"] is None and "not_stacked" not in row and not any(name.startswith("own_") for name in row)
    said = one.model_copy(update={"not_stacked": "a reader of the training side"}).row()
    assert said["not_stacked"] == "a reader of the training side"
    without = failed("b", Status.REFUSED).row()
    assert (
        without["likeliest"] is None and without["status"] == "refused" and not any(name.startswith("p_") for name in without)
    )
    shown = one._repr_html_()
    assert "not_stacked" not in shown and "p_10" in shown and "stacked" not in shown, "what there is, a line each"
