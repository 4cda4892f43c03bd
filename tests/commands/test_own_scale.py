"""A reader's own scale, in and out: what was given on 1-5 or in percent is told on it, by ask, score, exported lines and the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import perse
from fastapi.testclient import TestClient

from perse import Judge
from perse.answering.base import JudgeSettings
from perse.errors import BadInput
from perse.judgement import Judgement
from perse.scale import check_own, expected_on_own_scale, on_own_scale, rescale, stands_as
from perse.serving.embedded import embedded_app, embedded_models

ASKED = ("--question", "pointwise_score", "--dtype", "float32", "--temperature", 0)


SCALES = [(1, 5), (0, 5), (1, 3), (1, 7), (-3, 3), (1, 10), (0, 1), (0, 9), (0, 100), (1, 100), (0.5, 5)]


@pytest.mark.parametrize("scale", SCALES)
def test_a_label_told_on_ones_own_scale_stands_as_that_label(scale: tuple[float, float]) -> None:
    low, high = scale
    told = [on_own_scale(label, scale) for label in range(1, 11)]
    assert told == sorted(set(told)) and (told[0], told[-1]) == scale
    assert [rescale(score, low, high) for score in told] == list(range(1, 11))


@pytest.mark.parametrize("scale", SCALES)
def test_what_goes_in_comes_out_as_far_as_ten_labels_tell_it(scale: tuple[float, float]) -> None:
    low, high = scale
    steps = [low + n for n in range(int(high - low) + 1)]
    off = [abs(on_own_scale(rescale(score, low, high), scale) - score) for score in steps]
    assert max(off) == 0 if len(steps) <= 10 and steps[-1] == high else max(off) <= (high - low) / 18 + 1e-6


def test_three_stars_stay_three_and_what_is_between_is_between() -> None:
    assert on_own_scale(6, (1, 5)) == 3 and on_own_scale(7, (1, 5)) == 3.5 and on_own_scale(5.5, (1, 5)) == 2.833333
    assert on_own_scale(5.5, (0, 100)) == 50


def test_the_mean_in_stars_is_that_of_the_stars_that_the_labels_are() -> None:
    # Half of it three stars, which stand as 6, and half five, as 10: four stars on average, though the expected label is 8 both ways.
    assert expected_on_own_scale({"6": 0.5, "10": 0.5}, (1, 5)) == 4
    # One star (1) and three (6): two stars. The expected label, 3.5, would be 2.17.
    assert expected_on_own_scale({"1": 0.5, "6": 0.5}, (1, 5)) == 2 and on_own_scale(3.5, (1, 5)) > 2.1


@pytest.mark.parametrize(
    ("scale", "told"),
    [
        ((1, 10), None),
        (
            (1, 5),
            "scores of 1 to 5 stand here as 1 to 10: 1 as 1, 2 as 3, 3 as 6, 4 as 8, 5 as 10; a step here is 0.44 of theirs",
        ),
        ((0.5, 5), "scores of 0.5 to 5 stand here as 1 to 10; a step here is 0.5 of theirs"),
        ((0, 100), "scores of 0 to 100 stand here as 1 to 10; a step here is 11 of theirs"),
    ],
)
def test_how_a_scale_stands_on_ours_is_told(scale: tuple[float, float], told: str | None) -> None:
    assert stands_as(scale) == told


@pytest.mark.slow
def test_an_evaluation_and_a_report_say_how_the_data_sets_stars_stand(answering_model: Path, tmp_path: Path) -> None:
    rows = [f"r{reader},t{item},{1 + (reader + item) % 5},fine as tide {item}" for reader in range(8) for item in range(6)]
    (tmp_path / "stars.csv").write_text("\n".join(["reviewer,item,score,review", *rows]), "utf-8")
    (tmp_path / "texts.csv").write_text("item,text\n" + "".join(f"t{n},Story {n} of a ferry\n" for n in range(6)), "utf-8")
    files = (
        "--reviews",
        tmp_path / "stars.csv",
        "--items",
        tmp_path / "texts.csv",
        "--scale",
        "1-5",
        "--k",
        2,
        "--valid",
        0.5,
        "--keep-repeats",
    )
    steps = (
        ("data", "pointwise", *files, "--out", tmp_path / "set"),
        ("score", "--examples", tmp_path / "set", "--judge", answering_model, *ASKED, "--out", tmp_path / "run"),
        ("report", tmp_path / "run", "--resamples", 100, "--out", tmp_path / "page"),
        ("evaluate", tmp_path / "run", "--resamples", 100, "--json"),
    )
    for step in steps:
        done = perse(*step)
        assert done.returncode == 0, done.stderr
    assert stands_as((1, 5)) in json.loads(done.stdout)["tables"][0]["notes"]
    assert "2 as 3, 3 as 6" in (tmp_path / "page" / "report.html").read_text("utf-8")


@pytest.mark.parametrize("scale", [(5.0, 1.0), (1.0, 1.0), (1.0, float("inf"))])
def test_a_scale_has_a_lowest_and_a_highest_score(scale: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="expected the lowest score and a higher one"):
        check_own(scale)


@pytest.fixture
def percent(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jsonl"
    path.write_text(
        '{"text": "A story", "review": "Nice", "score": 80}\n{"text": "Two", "review": "No", "score": 15}\n', "utf-8"
    )
    return path


def test_ask_reads_and_tells_percent(answering_model: Path, percent: Path) -> None:
    asked = ("ask", "--judge", answering_model, "--reviews", percent, "--text", "A new story", *ASKED)
    done = perse(*asked, "--scale", "0-100")
    assert done.returncode == 0, done.stderr
    told = Judgement.model_validate_json(perse(*asked, "--scale", "0-100", "--json").stdout)
    own = told.own_scale
    assert own is not None and (own.low, own.high) == (0, 100) and told.expected is not None and told.label is not None
    assert own.expected == pytest.approx((told.expected - 1) / 9 * 100, abs=1e-5) and own.stacked is None
    assert own.label == pytest.approx((int(told.label) - 1) / 9 * 100, abs=1e-5)
    likeliest = max(told.distribution or {}, key=(told.distribution or {}).__getitem__)
    assert f"on 0 to 100: expected {own.expected:.3g}, likeliest {on_own_scale(float(likeliest), (0, 100)):.3g}" in done.stdout


def test_a_score_off_the_scale_is_named_by_line(answering_model: Path, percent: Path) -> None:
    for scale, said in (
        ("1-5", "line 1: score 80 is off the scale 1-5"),
        ("5-1", "expected the lowest score and a higher one"),
    ):
        done = perse("ask", "--judge", answering_model, "--reviews", percent, "--text", "A", *ASKED, "--scale", scale)
        assert done.returncode == 2 and said in " ".join(done.stderr.split())


def test_the_library_takes_and_tells_it(answering_model: Path) -> None:
    judge = Judge.load(answering_model, dtype="float32")
    settings = JudgeSettings(temperature=0)
    stars = judge.ask_one(reviews=[("A", "r", 4)], text="B", question="pointwise_score", settings=settings, scale=(1, 5))
    tens = judge.ask_one(reviews=[("A", "r", 8)], text="B", question="pointwise_score", settings=settings)
    assert stars.distribution == pytest.approx(tens.distribution, abs=1e-4) and tens.own_scale is None
    assert stars.own_scale is not None and stars.own_scale.high == 5
    with pytest.raises(BadInput, match="past review 1: score 7 is off the scale 1-5"):
        judge.ask_one(reviews=[("A", "r", 7)], text="B", scale=(1, 5))


@pytest.mark.slow
def test_a_data_set_of_stars_is_scored_in_stars_and_exported_with_its_scale(answering_model: Path, tmp_path: Path) -> None:
    rows = [
        {
            "reviewer_id": f"r{reader}",
            "item_id": f"t{text}",
            "text": f"In story number {text} somebody goes to the sea and meets {text} strangers",
            "review": f"reader {reader} says of story {text} what must be said of it",
            "score": 1 + (reader + text) % 5,
        }
        for reader in range(12)
        for text in range(8)
    ]
    file = tmp_path / "stars.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    data, out = tmp_path / "data", tmp_path / "run"
    assert perse("data", "pointwise", "--reviews", file, "--scale", "1-5", "--k", 1, "--out", data).returncode == 0
    exported = tmp_path / "valid.jsonl"
    assert perse("data", "export", data, "--split", "valid", "--out", exported).returncode == 0
    lines = [json.loads(line) for line in exported.read_text("utf-8").splitlines()]
    assert all(line["own_scale"] == [1, 5] for line in lines)
    for examples, run in ((data, out), (exported, tmp_path / "again")):
        done = perse("score", "--examples", examples, "--judge", answering_model, "--out", run, *ASKED)
        assert done.returncode == 0, done.stderr
        for line in (run / "judgements.jsonl").read_text("utf-8").splitlines():
            told = Judgement.model_validate_json(line)
            assert told.own_scale is not None and (told.own_scale.low, told.own_scale.high) == (1, 5)
            assert told.own_scale.expected == pytest.approx(expected_on_own_scale(told.distribution or {}, (1, 5)), abs=1e-5)


def test_the_server_takes_and_tells_it(answering_model: Path) -> None:
    app = embedded_app(
        embedded_models("tiny", answering_model, {}, dtype="float32", context=2048), JudgeSettings(temperature=0)
    )
    with TestClient(app, base_url="http://127.0.0.1") as client:

        def asked(**changes: Any) -> Any:
            item = {"profile": [{"text": "A", "review": "r", "score": 4}], "query": "B"}
            return client.post("/v1/judge/pointwise", json={"input": item | changes, "question": "pointwise_score"})

        stars, tens = asked(scale=[1, 5]).json(), asked(profile=[{"text": "A", "review": "r", "score": 8}]).json()
        assert stars["distribution"] == pytest.approx(tens["distribution"], abs=1e-4) and tens["own_scale"] is None
        assert stars["own_scale"]["high"] == 5
        rescaled = asked(profile=[{"text": "A", "review": "r", "score": 8}], own_scale=[1, 5]).json()
        assert rescaled["own_scale"] == pytest.approx(stars["own_scale"], abs=1e-3)
        for changes, said in (
            ({"scale": [5, 1]}, "expected the lowest score and a higher one"),
            ({"scale": "1-5"}, "such as [1, 5]"),
            ({"scale": [1, 3]}, "score 4 is off the scale 1-3"),
            ({"scale": [1, 5], "own_scale": [1, 5]}, "both scale and own_scale"),
        ):
            refused = asked(**changes)
            assert refused.status_code == 400 and said in refused.json()["error"]["message"], refused.text
