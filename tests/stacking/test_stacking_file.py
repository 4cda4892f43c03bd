"""`stacking.json`: what it must say, what it is refused for, and what is never replaced."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from builders import pointwise_examples
from command_line import perse

from perse.batch.local import score
from perse.batch.scored import read_run
from perse.data.load import LoadedExamples
from perse.engines.kind import portable
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput
from perse.identity import reader_key, text_key
from perse.judgement import Judgement, Status, Tokens
from perse.judging.judge import Judge, JudgeSettings
from perse.models.finding import weights_digest
from perse.questions import QUESTIONS
from perse.records import Evidence, PointwiseExample, ProfileReview
from perse.rendering.prompt import TextRenderer
from perse.scale import SCORES
from perse.serving.service import stacking_served
from perse.stacking.applying import with_stacked
from perse.stacking.beside import stacking_of
from perse.stacking.file import (
    OrdinalModel,
    StackedData,
    StackedJudge,
    Stacking,
    check_place,
    home,
    read_stacking,
    write_stacking,
)
from perse.stacking.sources import Known, features, present

KNOWN = Known(mean=6, item_penalty=1, reader_penalty=10, texts={}, readers=())
CUTS = tuple(float(n) for n in range(-4, 5))


def model(*sources: str, weight: float = 0.5) -> OrdinalModel:
    from perse.stacking.sources import SOURCES

    names = [name for source in sources for name in SOURCES[source]]
    return OrdinalModel(sources=sources, cuts=CUTS, weights=dict.fromkeys(names, weight))


def stacking(**changes: Any) -> Stacking:
    fields: dict[str, Any] = {
        "question": "pointwise",
        "scale": SCORES.labels,
        "judge": StackedJudge(model="m", sha256="ab"),
        "data": StackedData(sha256="d"),
        "examples": 10,
        "readers": ("0123456789ab",),
        "known": KNOWN,
        "models": (model("judge", "bias", "content"), model("judge", "bias"), model("bias")),
    }
    return Stacking(**(fields | changes))


def example(**changes: Any) -> PointwiseExample:
    past = (ProfileReview(text="old", review="r", score=8, estimate=6.0),)
    return PointwiseExample(id="e", reviewer_id="r", item_id="t", profile=past, query="new").model_copy(update=changes)


def judgement(**changes: Any) -> Judgement:
    shares = dict.fromkeys(SCORES.labels, 0.1)
    fields: dict[str, Any] = {"id": "e", "question": "pointwise", "status": Status.OK, "label": "5", "expected": 5.5}
    fields |= {"distribution": shares, "mass": 1.0, "k_effective": 1, "model": "m"}
    return Judgement(**(fields | {"tokens": Tokens(prompt=1, cached=0, generated=0)} | changes))


EVIDENCE = Evidence(others=0, estimate=7.0, shrinkage=5.0)


def test_what_is_there_is_used_and_what_is_absent_is_said() -> None:
    whole = with_stacked(stacking(), example(evidence=EVIDENCE), judgement()).stacked
    assert whole is not None and whole.without == ()
    lacking = with_stacked(stacking(), example(), judgement()).stacked
    assert lacking is not None and lacking.without == ("content",)
    bare = with_stacked(stacking(), example(), judgement(distribution=None, expected=None)).stacked
    assert bare is not None and bare.without == ("judge", "content")
    read = with_stacked(stacking(), example(), judgement(exact=False)).stacked
    assert read == bare, "read from the likeliest tokens alone"
    assert sum(whole.distribution.values()) == pytest.approx(1) and whole.expected != lacking.expected


def test_texts_shown_without_estimates_leave_their_words_out() -> None:
    past = (ProfileReview(text="old", review="r", score=8),)
    found = features(example(profile=past, evidence=EVIDENCE), judgement(), KNOWN)
    assert present(found) == {"judge", "reader", "bias"}
    assert "content" in present(features(example(profile=(), evidence=EVIDENCE), judgement(), KNOWN))


def test_the_expected_score_is_that_of_the_distribution() -> None:
    one = with_stacked(stacking(), example(), judgement()).stacked
    assert one is not None and one.expected == pytest.approx(sum(int(k) * p for k, p in one.distribution.items()))


@pytest.mark.parametrize(
    "changes",
    [{"question": "pointwise_score"}, {"status": Status.UNPARSED, "label": None, "distribution": None, "expected": None}],
)
def test_other_questions_and_failures_stay_as_they_are(changes: dict[str, Any]) -> None:
    one = judgement(**changes)
    assert with_stacked(stacking(), example(), one) is one


def test_a_reader_of_the_training_side_has_nothing_stacked_and_it_is_said() -> None:
    """Their own score of the text would be among those of others."""
    texts = {text_key("new"): (30.0, 4)}
    known = Known(mean=6, item_penalty=1, reader_penalty=10, texts=texts, readers=(reader_key("r"),))
    told = with_stacked(stacking(known=known), example(), judgement())
    assert told.stacked is None and told.not_stacked is not None and "training side" in told.not_stacked
    other = with_stacked(stacking(known=known), example(reviewer_id="another"), judgement())
    assert other.stacked is not None and other.not_stacked is None


def test_the_file_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_stacking(tmp_path / "stacking.json", stacking())
    assert read_stacking(tmp_path / "stacking.json") == stacking()
    assert read_stacking(tmp_path / "stacking.json").digest == stacking().digest


@pytest.mark.parametrize(
    "change, said",
    [
        ({"kind": "judge"}, "is no stacking"),
        ({"models": []}, "at least 1 entry"),
        ({"scale": ["1", "2"]}, "9 cuts of 2 labels"),
        ({"models": [model("judge").model_dump()]}, "no model of bias alone"),
        ({"models": [model("bias").model_dump() | {"cuts": [*CUTS[1:], -9.0]}]}, "the cuts fall"),
        ({"models": [model("bias").model_dump() | {"weights": {"words": 1}}]}, "found weights of words"),
        ({"models": [model("bias").model_dump() | {"sources": ["words"]}]}, "found the source 'words'"),
        ({"known": KNOWN.model_dump() | {"item_penalty": 0}}, "known.item_penalty"),
        ({"known": KNOWN.model_dump() | {"mean": "NaN"}}, "known.mean"),
    ],
)
def test_a_damaged_file_is_refused_by_field(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "stacking.json"
    path.write_text(json.dumps(stacking().model_dump(mode="json") | change), "utf-8")
    with pytest.raises(BadInput, match="perse fit") as caught:
        read_stacking(path)
    assert said in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"models": [model("bias").model_dump() | {"weights": {"bias": 1.7e308}}]}, "models.0.weights.bias"),
        ({"models": [model("bias").model_dump() | {"cuts": [-1.7e308] * 9}]}, "models.0.cuts.0"),
        ({"known": KNOWN.model_dump() | {"texts": {"0123456789ab": [1.7e308, 10**308]}}}, "known.texts.0123456789ab.1"),
        ({"known": KNOWN.model_dump() | {"texts": {"0123456789ab": [5, 10**400]}}}, "known.texts.0123456789ab.1"),
    ],
)
def test_numbers_whose_sums_no_float_holds_are_refused_by_field(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "stacking.json"
    sound = stacking(models=(model("bias"),)).model_dump(mode="json")
    path.write_text(json.dumps(sound | change), "utf-8")
    with pytest.raises(BadInput, match="perse fit") as caught:
        read_stacking(path)
    assert said in str(caught.value) and len(str(caught.value)) < 500


def test_estimates_of_an_example_that_no_model_makes_are_refused() -> None:
    for changes in ({"estimate": 1.7e308}, {"estimate": -1e300}, {"spread": 1e308}):
        with pytest.raises(ValueError, match=next(iter(changes))):
            Evidence(**({"others": 0, "estimate": 7.0, "shrinkage": 5.0} | changes))
    with pytest.raises(ValueError, match="estimate"):
        ProfileReview(text="old", review="r", score=8, estimate=-1.7e308)


def test_another_judge_another_data_set_another_fold_and_another_scale_are_refused() -> None:
    one = stacking()
    one.refuse_others("f", judge=StackedJudge(model="renamed", sha256="ab"))
    with pytest.raises(BadInput, match="fitted on the answers of another judge, m \\(ab\\)"):
        one.refuse_others("f", judge=StackedJudge(model="m", sha256="cd"))
    with pytest.raises(BadInput, match="another judge"):
        stacking(judge=StackedJudge(model="m")).refuse_others("f", judge=StackedJudge(model="n"))
    narrow = stacking(scale=("1", "2"), models=(OrdinalModel(sources=(), cuts=(0.0,), weights={}),))
    with pytest.raises(BadInput, match="is of the scale 1, 2"):
        narrow.refuse_others("f", judge=one.judge)
    one.data.refuse_other("f", sha256="d", fold=None)
    with pytest.raises(BadInput, match="another data set .*--no-stacking"):
        one.data.refuse_other("f", sha256="e", fold=None)
    with pytest.raises(BadInput, match="another fold"):
        one.data.refuse_other("f", sha256="d", fold=1)


def test_what_perse_did_not_write_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "stacking.json"
    check_place(path, overwrite=False)
    path.write_text('{"mine": 1}', "utf-8")
    for overwrite in (False, True):
        with pytest.raises(BadInput, match="is no stacking that perse wrote"):
            check_place(path, overwrite=overwrite)
    path.unlink()
    write_stacking(path, stacking())
    with pytest.raises(BadInput, match="--overwrite"):
        check_place(path, overwrite=False)
    check_place(path, overwrite=True)
    with pytest.raises(BadInput, match="there is no folder"):
        check_place(tmp_path / "nowhere" / "s.json", overwrite=False)
    (tmp_path / "link.json").symlink_to(path)
    with pytest.raises(BadInput, match="is a link"):
        check_place(tmp_path / "link.json", overwrite=True)


def test_it_lies_in_the_run_of_what_a_run_left(tmp_path: Path) -> None:
    for name in ("merged", "adapter"):
        assert home(tmp_path / "run" / name) == tmp_path / "run"
    assert home(tmp_path / "run") == tmp_path / "run"


def test_it_lies_in_the_run_also_for_whoever_stands_in_what_the_run_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run" / "adapter").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "run" / "adapter")
    assert home(Path()) == tmp_path / "run"


def test_a_stacking_is_no_part_of_the_weights(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", "utf-8")
    before = weights_digest(tmp_path)
    write_stacking(tmp_path / "stacking.json", stacking())
    assert weights_digest(tmp_path) == before


def test_the_one_beside_the_judge_is_found_and_that_of_another_is_as_good_as_absent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A run's merged model and its adapter lie in one folder and are two judges."""
    who, other = StackedIdentity(), StackedIdentity(digest="cd")
    assert stacking_of(who, [tmp_path], True) is None and stacking_of(who, [], True) is None
    write_stacking(tmp_path / "stacking.json", stacking())
    assert stacking_of(who, [tmp_path], True) == stacking() and stacking_of(who, [tmp_path], False) is None
    assert not caplog.messages
    assert stacking_of(other, [tmp_path], True) is None
    assert [
        one
        for one in caplog.messages
        if "stacking.json is left out: it was fitted on the answers of another judge, m (ab)" in one
    ]
    with pytest.raises(BadInput, match="another judge"):
        stacking_of(other, [], tmp_path / "stacking.json")


def test_a_server_of_a_run_s_adapter_starts_though_the_merged_model_has_a_stacking(tmp_path: Path) -> None:
    run = tmp_path / "first"
    for name in ("merged", "adapter"):
        (run / name).mkdir(parents=True)
    place = home(run / "merged") / "stacking.json"
    write_stacking(place, stacking())
    assert stacking_served(run / "merged", None, "ab", True) == stacking()
    assert stacking_served(tmp_path, run / "adapter", "cd", True) is None
    assert stacking_served(tmp_path, None, "ab", place) == stacking()
    assert stacking_served(tmp_path, run / "adapter", "ab", place) == stacking(), "of an adapter, the one beside it"
    for adapter in (None, run / "adapter"):
        assert stacking_served(run / "merged", adapter, "ab", False) is None
    with pytest.raises(BadInput, match="another judge"):
        stacking_served(tmp_path, None, "cd", place)


def test_without_a_digest_a_served_judge_is_known_by_the_name_that_its_judgements_have(tmp_path: Path) -> None:
    (tmp_path / "first" / "merged").mkdir(parents=True)
    named = portable(str(tmp_path / "first" / "merged"))
    write_stacking(tmp_path / "s.json", stacking(judge=StackedJudge(model=named)))
    assert stacking_served(tmp_path / "first" / "merged", None, "ab", tmp_path / "s.json") is not None


class StackedIdentity:
    def __init__(self, digest: str = "ab") -> None:
        self.model, self.adapter, self.digest = "m", None, digest


@pytest.mark.slow
@pytest.mark.parametrize("beside", [True, False])
def test_a_damaged_stacking_is_refused_before_a_model_is_loaded(tiny_model_folder: Path, tmp_path: Path, beside: bool) -> None:
    judge = tmp_path / "judge"
    shutil.copytree(tiny_model_folder, judge)
    place = (judge if beside else tmp_path) / "stacking.json"
    place.write_text(stacking().text[:400])
    given = [] if beside else [f"stacking={place}"]
    done = perse("serve", "--config", "embedded", f"model={judge}", "engine=transformers", "port=0", *given)
    assert done.returncode == 2 and f"{place} is not JSON" in done.stderr and "serving" not in done.stderr
    with (
        mock.patch("perse.judging.judge.load_judge", side_effect=AssertionError("loaded")),
        pytest.raises(BadInput, match="is not JSON"),
    ):
        Judge.load(judge, stacking=beside or place)


@pytest.mark.parametrize(("asked", "told"), [("pointwise_score", 6), ("pointwise", 0)])
def test_readers_whom_a_stacking_was_fitted_on_are_told_of_where_something_is_stacked(
    tmp_path: Path, asked: str, told: int
) -> None:
    some = pointwise_examples(3, 2)
    readers = tuple(sorted({reader_key(one.reviewer_id) for one in some}))
    engine = ScriptedEngine(lambda *_: "[Review] Fine.\n[Score] 7", name="x")
    judge = Judge(engine, TextRenderer(), name="m", stacking=stacking(question="pointwise_score", readers=readers))
    score(judge, QUESTIONS[asked], LoadedExamples(some, "d" * 64, None, None), tmp_path / "run", settings=JudgeSettings())
    run = read_run(tmp_path / "run")
    assert run.stacked_on == told and ("the stacking was fitted" in (run.caution or "")) == bool(told)
    assert all((one.stacked is not None) == bool(told) for one in run.judgements)
