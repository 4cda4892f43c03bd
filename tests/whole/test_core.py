"""The core works without torch, records and scales hold their promises, the sample corpus is what it says."""

from __future__ import annotations

import copy
import dataclasses
import json
import subprocess
import sys
from collections import Counter, defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from builders import pairwise_examples, pointwise_examples
from hypothesis import given
from hypothesis import strategies as st
from places import SAMPLES
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from perse.answering.base import JudgeSettings
from perse.data.examples_file import read_examples
from perse.data.profiles.profiles import Drawing, ExampleRow
from perse.engines.base import Failure, Generation, LabelDistribution, Sampling
from perse.engines.kind import Identity
from perse.errors import BadInput
from perse.evaluation.stats.significance import Permutation
from perse.judgement import Judgement, Prices, Status, Tokens
from perse.records import ASPECTS, Evidence, SummaryExample, SummaryReference, example_lines, explain
from perse.records.pointwise import ProfileReview, from_own_scale
from perse.rendering.prompt import ChatFrame, LabelTokens, Message, Rendered, Segment
from perse.results.result import Estimate, Interval
from perse.scale import CHOICES, ERRORS, GRADES, HUNDREDS, SCORES, YES_NO, Scale, rescale


def rows(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (SAMPLES / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_the_core_needs_no_torch() -> None:
    """Everything that needs no model is importable, and the command line helps, where torch and transformers are absent."""
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('torch', 'transformers', 'peft', 'accelerate'): raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import perse, perse.commands.app, perse.batch.local, perse.evaluation.evaluate, perse.data.build, perse.settings.training, perse.models.finding\n"
        "sys.argv = ['perse', 'score', '--help']\n"
        "perse.commands.app.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Judge every example" in done.stdout


def test_the_names_of_the_library_are_listed_without_importing_what_they_need() -> None:
    code = (
        "import sys, perse\n"
        "assert {'Judge', 'JudgeSettings', 'Judgement', 'Judgements', 'Status', 'BadInput', '__version__'} <= set(dir(perse))\n"
        "assert {*perse.__all__} <= set(dir(perse))\n"
        "heavy = {'torch', 'transformers', 'pandas', 'pyarrow', 'numpy', 'perse.judging'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "for name in perse.__all__: getattr(perse, name)\n"
        "assert 'torch' not in sys.modules and not hasattr(perse, 'Juge')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_while_the_command_line_is_being_read_is_no_traceback() -> None:
    code = (
        "import runpy, sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'perse.commands.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "runpy.run_module('perse', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


def test_choices_have_labels_and_no_values() -> None:
    assert CHOICES.labels == ("A", "B") and CHOICES.expected((0.5, 0.5)) is None
    with pytest.raises(BadInput, match="repeats a label"):
        Scale("x", ("A", "A"))


@pytest.mark.parametrize(("stars", "score"), [(1, 1), (2, 3), (3, 6), (4, 8), (5, 10)])
def test_stars_become_scores_halves_up(stars: float, score: int) -> None:
    """1 + 9 (s - 1) / 4 = 1, 3.25, 5.5, 7.75, 10."""
    assert rescale(stars, 1, 5) == score


@given(st.floats(0, 100))
def test_any_score_on_a_scale_has_a_label(score: float) -> None:
    assert 1 <= rescale(score, 0, 100) <= 10


@pytest.mark.parametrize("score", [0.99, 5.01, float("nan"), float("inf"), 10**400])
def test_a_score_off_its_scale_is_refused(score: float) -> None:
    with pytest.raises(BadInput, match="is off the scale 1-5"):
        rescale(score, 1, 5)


TOKENS = Tokens(prompt=1, cached=0, generated=0)
KEPT = [
    *pointwise_examples(1, 1),
    *pairwise_examples(1)[:1],
    SummaryExample(id="s", reviewer_id="r", reviews=("r",), summary="s", reference=SummaryReference(score=0.5)),
    TOKENS,
    Prices(input=1, output=2, cached=0.5),
    Judgement(id="j", question="q", status=Status.OK, k_effective=0, tokens=TOKENS, model="m", mass=0.5),
    Interval(low=0.0, high=1.0),
    Estimate(value=0.5, interval=Interval(low=0.0, high=1.0), items=3),
]


@pytest.mark.parametrize("kept", KEPT, ids=lambda one: type(one).__name__)
def test_what_is_kept_in_files_stays_as_it_was_made_and_holds_no_field_of_its_own(kept: BaseModel) -> None:
    """Caches, digests and tables rely on it; and a misspelt field is a mistake, not something to drop silently."""
    fields = kept.model_dump(exclude_none=True)
    for name in type(kept).model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(kept, name, fields.get(name))
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        type(kept).model_validate({**fields, "surprise": 1})
    for name, value in fields.items():
        if isinstance(value, float) and not isinstance(kept, SummaryReference):
            for bad in (float("nan"), float("inf")):
                with pytest.raises(ValidationError, match="finite number"):
                    type(kept).model_validate({**fields, name: bad})


VALUES = [
    SCORES,
    JudgeSettings(),
    Identity("m"),
    Sampling(),
    Tokens(prompt=1, cached=0, generated=0),
    Segment("query", (1, 2)),
    Rendered((Segment("query", (1, 2)),), 0, 1),
    LabelTokens((1,), ((2,), (3,))),
    ChatFrame("<", "|", "", ">"),
    Message("text", 1),
    Generation((1, 2), "stop", -1.0, 0),
    LabelDistribution((0.5, 0.5), 1.0, 0),
    Failure("lost"),
    Drawing(k=3),
    ExampleRow("e", "r", "q", ("p",)),
    Permutation(p=0.5),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda one: type(one).__name__)
def test_values_that_are_handed_round_cannot_be_changed_on_the_way_and_are_equal_where_their_fields_are(value: Any) -> None:
    """Prompts, settings and answers are shared by threads, kept in caches and taken for keys."""
    assert copy.deepcopy(value) == value and hash(copy.deepcopy(value)) == hash(value)
    fields = type(value).model_fields if isinstance(value, BaseModel) else [field.name for field in dataclasses.fields(value)]
    for name in fields:
        with pytest.raises((ValidationError, dataclasses.FrozenInstanceError)):
            setattr(value, name, getattr(value, name))


def test_examples_survive_a_file(tmp_path: Path) -> None:
    for number, examples in enumerate((pointwise_examples(), pairwise_examples())):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(example_lines(examples)), encoding="utf-8")
        assert read_examples(path) == examples


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "a"}', "line 2: pointwise example, field 'reviewer_id': field required"),
        ('{"prompt": "x"}', "line 2: verbatim example, field 'id': field required"),
        ("[]", "line 2: expected a JSON object, found a list"),
        (
            '{"id": "x", "reviewer_id": "r", "item_id": "i", "profile": [{"text": "A  q", "review": "x", "score": 1}], "query": "a Q"}',
            "line 2: the query stands in its own profile",
        ),
        (
            '{"id": "r0-0", "reviewer_id": "r", "item_id": "i", "profile": [], "query": "q"}',
            "line 2: id 'r0-0' was already used on line 1",
        ),
        (
            '{"id": "p", "reviewer_id": "r", "aspect": "Ending", "profile": [], "query": {"text_a": "a", "text_b": "b"}}',
            "line 2: pointwise and pairwise examples in one file",
        ),
    ],
)
def test_a_bad_example_is_named_by_line_and_field(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(next(iter(example_lines(pointwise_examples(1, 1)))) + line + "\n")
    with pytest.raises(BadInput) as raised:
        read_examples(path)
    assert message in str(raised.value)


def test_the_sample_corpus_has_the_sizes_it_promises() -> None:
    items, reviews, pairs, reviewers = (
        rows(name) for name in ("items.jsonl", "reviews.jsonl", "pairs.jsonl", "reviewers.jsonl")
    )
    assert len(items) == 48 and len({item["plot"] for item in items}) == 48
    assert all(60 <= len(str(item["plot"]).split()) <= 150 for item in items)
    assert len(reviewers) >= 32 and len(pairs) >= 150
    each = Counter(str(review["reviewer_id"]) for review in reviews)
    assert set(each) == {row["reviewer_id"] for row in reviewers} and min(each.values()) >= 8
    assert len({review["review"] for review in reviews}) == len(reviews)
    assert {review["score"] for review in reviews} == set(range(1, 11))
    assert {pair["aspect"] for pair in pairs} <= set(ASPECTS)
    known = {item["item_id"] for item in items}
    assert {review["item_id"] for review in reviews} <= known
    assert {pair[side] for pair in pairs for side in ("item_a", "item_b")} <= known


def test_sample_reviewers_use_the_scale_and_disagree() -> None:
    by_reader, by_item = defaultdict(list), defaultdict(list)
    for review in rows("reviews.jsonl"):
        by_reader[review["reviewer_id"]].append(int(str(review["score"])))
        by_item[review["item_id"]].append(int(str(review["score"])))
    assert all(max(scores) - min(scores) >= 4 for scores in by_reader.values())
    assert sum(max(scores) - min(scores) >= 4 for scores in by_item.values()) >= 40


def test_a_scale_is_shown_as_a_range_where_it_is_one_and_label_by_label_else() -> None:
    assert (SCORES.shown, CHOICES.shown, HUNDREDS.shown) == ("1 to 10", "A, B", "0, 20, 40, 60, 80, 100")
    assert Scale("s", ("2", "3", "4")).shown == "2 to 4" and Scale("s", ("1", "2")).shown == "1, 2"
    assert Scale("s", ("1", "3", "4")).shown == "1, 3, 4" and Scale("s", ("1", "2", "4")).shown == "1, 2, 4"


def test_the_scales_have_the_values_of_the_papers() -> None:
    assert SCORES.labels == ("1", "2", "3", "4", "5", "6", "7", "8", "9", "10") and GRADES.labels == ERRORS.labels == tuple(
        "12345"
    )
    for scale in (SCORES, GRADES, HUNDREDS):
        assert scale.values == tuple(map(float, scale.labels))
    assert HUNDREDS.labels == ("0", "20", "40", "60", "80", "100") and YES_NO.labels == ("yes", "no")
    assert CHOICES.values is YES_NO.values is ERRORS.values is None


def test_an_expected_score_is_the_sum_of_values_by_their_probabilities() -> None:
    assert Scale("s", ("1", "2"), (1.0, 2.0)).expected((0.25, 0.75)) == 1.75
    assert GRADES.expected((0.5, 0.0, 0.0, 0.0, 0.5)) == 3.0 and CHOICES.expected((0.5, 0.5)) is None


def _no_aspect(given: str) -> str:
    raise ValueError(f"{given} is no aspect")


class Listed(BaseModel):
    """Records that a file may hold."""

    some: list[int] = Field(min_length=1)
    more: tuple[int, ...] = Field(default=(1, 2), min_length=2)
    name: Literal["short"] = "short"
    aspect: Annotated[str, AfterValidator(_no_aspect)] = ""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"some": []}, "field 'some': found an empty list, expected at least 1 entry"),
        ({"some": [1], "more": [1]}, "field 'more': found 1 entries, expected at least 2 entries"),
        ({"some": None}, "field 'some': found null, expected a list"),
        ({"some": {"a": 1}}, "field 'some': found an object, expected a list"),
        ({"some": ["x"]}, "field 'some.0': input should be a valid integer, unable to parse string as an integer"),
        ({"some": [1], "name": "long"}, "field 'name': input should be 'short'"),
        ({"some": [1], "aspect": "Aroma"}, "field 'aspect': Aroma is no aspect"),
        ({"some": [1], "aspect": "taste"}, "field 'aspect': taste is no aspect"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_by_its_field_and_in_full(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Listed.model_validate(given)
    assert explain(refused.value) == told


def test_an_answered_example_becomes_an_entry_of_a_profile() -> None:
    single, pair = pointwise_examples(1, 1)[0], pairwise_examples()[0]
    assert single.reference is not None and pair.reference is not None
    evidence = Evidence(others=0, estimate=6.5, shrinkage=4.0)
    entry = single.model_copy(update={"evidence": evidence}).as_entry()
    assert (entry.text, entry.review, entry.score) == (single.query, single.reference.review, single.reference.score)
    assert entry.estimate == 6.5 and single.as_entry().estimate is None
    past = pair.as_entry()
    assert past.preference == {pair.aspect: pair.reference.preference}
    assert (past.premise, past.text_a, past.text_b) == (pair.query.premise, pair.query.text_a, pair.query.text_b)


def test_a_profile_that_shows_the_text_asked_about_gives_it_away() -> None:
    def same(one: str, other: str) -> bool:
        return one == other

    single, pair = pointwise_examples(1, 1)[0], pairwise_examples()[0]
    assert single.profile and pair.profile and not single.gives_away(same) and not pair.gives_away(same)
    shown = single.profile[-1]
    for change in ({"text": single.query}, {"item_id": single.item_id}):
        assert single.model_copy(update={"profile": (*single.profile, shown.model_copy(update=change))}).gives_away(same)
    assert not single.model_copy(update={"profile": ()}).gives_away(same)
    for side in ("text_a", "text_b"):
        for asked in (pair.query.text_a, pair.query.text_b):
            past = pair.profile[0].model_copy(update={side: asked})
            assert pair.model_copy(update={"profile": (*pair.profile, past)}).gives_away(same), (side, asked)


def test_what_a_reader_of_a_report_sees_of_an_example() -> None:
    pair = pairwise_examples()[0]
    query = pair.query
    assert pair.shown_query == (("Premise", query.premise), ("Text A", query.text_a), ("Text B", query.text_b))
    [first, *_] = pair.shown_profile
    past = pair.profile[0]
    assert first[0] == ", ".join(f"{aspect}: {answer}" for aspect, answer in past.preference.items())
    assert first[1] == (("Premise", past.premise), ("Text A", past.text_a), ("Text B", past.text_b))
    single = pointwise_examples(1, 1)[0]
    dated = single.profile[0].model_copy(update={"time": "2024-05-01", "score": 7})
    [(said, parts)] = single.model_copy(update={"profile": (dated,)}).shown_profile
    assert said == "scored 7, 2024-05-01" and parts == (("Text", dated.text), ("Review", dated.review))
    [(said, _)] = single.model_copy(update={"profile": (dated.model_copy(update={"time": None}),)}).shown_profile
    assert said == "scored 7" and single.shown_query == (("New text", single.query),)


def test_a_scale_has_each_label_once_and_a_value_for_each() -> None:
    with pytest.raises(BadInput, match="scale s repeats a label: a, b, a; labels must differ"):
        Scale("s", ("a", "b", "a"))
    with pytest.raises(BadInput, match="scale s has 2 labels and 1 values; give one value a label"):
        Scale("s", ("a", "b"), (1.0,))
    assert Scale("s", ("a", "b"), (2.0, 4.0)).expected((0.25, 0.75)) == 3.5


@pytest.mark.parametrize(
    ("score", "low", "high", "label"),
    [
        (1, 1, 5, 1),
        (5, 1, 5, 10),
        (3, 1, 5, 6),
        (0, 0, 100, 1),
        (50, 0, 100, 6),
        (5, 0, 100, 1),
        (6, 0, 100, 2),
        (-3, -3, 3, 1),
        (7, 1, 10, 7),
    ],
)
def test_a_score_is_rescaled_to_the_nearest_label_halves_up(score: float, low: float, high: float, label: int) -> None:
    assert rescale(score, low, high) == label


@pytest.mark.parametrize("score", [4, 4.0, Decimal(4), Fraction(4), np.int64(4), np.float32(4)])
def test_a_score_of_any_kind_of_number_is_moved_from_the_readers_own_scale(score: Any) -> None:
    assert from_own_scale({"score": score, "text": "t"}, (1, 5)) == {"score": 8, "text": "t"}
    assert from_own_scale({"score": score}, None) == {"score": score}


@pytest.mark.parametrize("score", [True, "4", None, [4]])
def test_what_is_no_number_is_left_for_the_record_to_refuse(score: Any) -> None:
    assert from_own_scale({"score": score}, (1, 5)) == {"score": score} and from_own_scale({}, (1, 5)) == {}


def test_a_blank_text_or_review_is_refused_and_none_is_not() -> None:
    told = {"text": "a plot", "review": "fine", "score": 3}
    assert ProfileReview.model_validate(told | {"review": None}).review is None
    for field in ("text", "review"):
        with pytest.raises(ValidationError, match="found a blank text"):
            ProfileReview.model_validate(told | {field: " \n"})


def test_an_estimate_may_lie_beside_the_scale_and_not_out_of_all_bounds() -> None:
    for estimate in (-1e6, 1e6, 12.5):
        assert ProfileReview(text="t", score=1, estimate=estimate).estimate == estimate
    for odd in ({"estimate": 1.1e6}, {"estimate": -1.1e6}, {"score": 0}, {"score": 11}):
        with pytest.raises(ValidationError):
            ProfileReview(**{"text": "t", "score": 1} | odd)
    for odd in ({"others": -1}, {"mean": 0.9}, {"mean": 10.1}, {"spread": -0.1}, {"spread": 1.1e6}, {"shrinkage": 0.0}):
        with pytest.raises(ValidationError):
            Evidence(**{"others": 0, "estimate": 5.0, "shrinkage": 1.0} | odd)
    assert Evidence(others=0, mean=1, spread=0, estimate=5.0, shrinkage=0.1).mean == 1
