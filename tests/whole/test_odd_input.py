"""Half characters, control characters, numbers that are none, cells that are formulas: refused in a sentence, or made harmless."""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from builders import pairwise_examples, pointwise_examples
from command_line import perse
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st

from perse import Judge, __main__
from perse.answering.base import JudgeSettings
from perse.batch.sharded.catalogue_inputs import read_readers
from perse.commands import app as cli
from perse.data.examples_file import read_examples, read_profile
from perse.data.load import load_examples
from perse.data.sources.faults import BadRow
from perse.data.sources.table import Faults
from perse.data.sources.table import read_reviews as read_table
from perse.engines.base import Reply
from perse.engines.replies import reply_of
from perse.errors import LONGEST, BadInput
from perse.formats.csv_cells import csv_text, guarded, plain
from perse.judgement import parse_judgement
from perse.records import ProfileReview, example_lines, parse_example
from perse.records.scores import number_in
from perse.rendering.prompt import TextRenderer
from perse.serving.embedded import embedded_app, embedded_models

HALF = "\ud800"
NO_NUMBERS = [
    True,
    False,
    "9",
    "\uff19",
    "1_0",
    None,
    float("nan"),
    float("inf"),
    10**400,
    -(10**5000),
    7.5,
    [7],
    {"n": 7},
    b"7",
]


def fields(kind: str = "pointwise") -> dict[str, Any]:
    example = pairwise_examples()[0] if kind == "pairwise" else pointwise_examples(1, 1, k=2)[0]
    return json.loads(next(example_lines([example])))  # type: ignore[no-any-return]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*path, key))


def with_value(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = with_value(value[path[0]], path[1:], new)
    return value


ANY_TEXT = st.text(st.characters() | st.sampled_from(["\ud800", "\udfff", "\0", "\x1b", "\u2028", "="]), max_size=6)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.sampled_from([1e400, 10**400, "9", 7]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=4,
)
SHAPES = [fields(), fields("pairwise"), {"id": "v", "prompt": "x", "reference": {"review": "r", "score": 3}}]
SHAPES.append({"id": "s", "reviewer_id": "r", "reviews": ["one", "two"], "summary": "x", "reference": {"score": 4.5}})
PLACES = [(shape, path) for shape in SHAPES for path in places(shape)]


@pytest.mark.slow
@settings(max_examples=400)
@given(st.sampled_from(PLACES), ANY_JSON)
def test_any_json_value_in_any_field_of_an_example_gives_a_record_that_can_be_written_or_one_sentence(
    place: tuple[Any, tuple[Any, ...]], value: Any
) -> None:
    try:
        example = parse_example(with_value(*place, value))
    except BadInput as error:
        str(error).encode()
        return
    [line] = example_lines([example])
    assert parse_example(json.loads(line.encode())) == example


@pytest.mark.parametrize("kind", ["pointwise", "pairwise"])
def test_half_a_character_is_refused_wherever_it_stands_with_the_field(kind: str) -> None:
    whole = fields(kind)
    for path in places(whole):
        if isinstance(_at(whole, path), str):
            with pytest.raises(
                BadInput, match=rf"field '{'.'.join(map(str, path))}.*': found half of a surrogate pair|field '.*"
            ):
                parse_example(with_value(whole, path, f"a{HALF}b"))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    return _at(value[path[0]], path[1:]) if path else value


@pytest.mark.parametrize("field", ["id", "reviewer_id", "item_id"])
@pytest.mark.parametrize("odd", ["\0", "\x1b[2J", "\x7f", "\x9b", "\r"])
def test_a_name_with_a_control_character_is_refused_and_a_text_with_one_is_not(field: str, odd: str) -> None:
    with pytest.raises(BadInput, match=f"field '{field}': found the control character U\\+.*, expected a name without"):
        parse_example({**fields(), field: f"a{odd}"})
    assert parse_example({**fields(), "query": f"a{odd}b"}).query == f"a{odd}b"  # type: ignore[union-attr]


@pytest.mark.parametrize("field", ["text", "review"])
@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_past_review_that_is_blank_is_refused_at_every_edge_and_not_shown_as_something_written(
    field: str, blank: str, tmp_path: Path
) -> None:
    whole = fields()
    whole["profile"][0][field] = blank
    with pytest.raises(BadInput, match=rf"field 'profile.0.{field}': found a blank text; give "):
        parse_example(whole)
    (tmp_path / "r.jsonl").write_text(json.dumps({"reviewer_id": "r", "profile": whole["profile"]}) + "\n")
    with pytest.raises(BadInput, match=rf"r.jsonl, line 1: field 'profile', field '0.{field}': found a blank text"):
        [*read_readers(str(tmp_path / "r.jsonl"))]


@pytest.mark.parametrize("score", NO_NUMBERS, ids=lambda score: str(type(score).__name__))
def test_a_score_that_is_no_number_is_refused_at_every_edge(score: Any, tmp_path: Path) -> None:
    whole = fields()
    whole["profile"][0]["score"] = score
    with pytest.raises(BadInput, match=r"field 'profile.0.score': "):
        parse_example(whole)
    with pytest.raises(BadInput, match=r"past review 1, field 'score': "):
        Judge.ask_one(None, reviews=[("a", "b", score)], text="c")  # type: ignore[arg-type]
    if isinstance(score, bytes) or (isinstance(score, int) and abs(score) > 10**1000):
        return  # no JSON
    (tmp_path / "mine.jsonl").write_text(json.dumps({"text": "a", "review": "b", "score": score}) + "\n")
    with pytest.raises(BadInput, match=r"mine.jsonl, line 1"):
        read_profile(tmp_path / "mine.jsonl")
    (tmp_path / "examples.jsonl").write_text(json.dumps(whole) + "\n")
    with pytest.raises(BadInput, match=r"examples.jsonl, line 1"):
        read_examples(tmp_path / "examples.jsonl")


def test_numbers_of_numpy_and_whole_floats_are_scores() -> None:
    for score in (np.int64(7), np.int8(7), np.float32(7), np.float64(7), 7.0, 7):
        assert ProfileReview(text="a", review="b", score=score).score == 7  # type: ignore[arg-type]


@pytest.mark.parametrize("written", ["\uff19", "1_0", "inf", "nan", "1e400", "0x7", "\u0667", "\u00b2", ""])
def test_a_cell_of_a_table_that_only_looks_like_a_number_is_none(written: str) -> None:
    assert number_in(written) is None


def test_cells_of_a_table_are_text_and_still_scores(tmp_path: Path) -> None:
    table = tmp_path / "reviews.csv"
    table.write_text("reviewer_id,text,review,score\nana,a plot,good, 7 \nben,a plot,bad,3.0\n", encoding="utf-8")
    assert [review.score for review in read_table(table, None, Faults(), columns={}, scale=(1, 10))] == [7, 3]


def test_a_control_character_in_a_name_of_a_table_is_a_bad_row_with_file_line_and_field(tmp_path: Path) -> None:
    table = tmp_path / "reviews.csv"
    table.write_text("reviewer_id,text,review,score\nana,a plot,go\x1aod,7\nb\0n,a plot,bad,3\n", encoding="utf-8")
    with pytest.raises(BadRow, match=r"reviews.csv, line 3: field 'reviewer_id': found the control character U\+0000"):
        read_table(table, None, Faults(), columns={}, scale=(1, 10))
    faults = Faults("skip")
    [kept] = read_table(table, None, faults, columns={}, scale=(1, 10))
    assert kept.review == "go\x1aod" and faults.counts == {"a control character in a name": 1}


@pytest.mark.parametrize(("field", "row"), [("review", "ana,a plot,go\0od,7"), ("text", "ana,a\0plot,good,7")])
def test_a_nul_character_in_a_text_of_a_table_is_a_bad_row(tmp_path: Path, field: str, row: str) -> None:
    table = tmp_path / "reviews.csv"
    table.write_text(f"reviewer_id,text,review,score\n{row}\nben,a plot,bad,3\n", encoding="utf-8")
    with pytest.raises(
        BadRow, match=rf"reviews.csv, line 2: field '{field}': found a NUL character \(U\+0000\), expected a text"
    ):
        read_table(table, None, Faults(), columns={}, scale=(1, 10))
    faults = Faults("skip")
    assert len(read_table(table, None, faults, columns={}, scale=(1, 10))) == 1
    assert faults.counts == {"a NUL character": 1}


def test_a_judgement_in_a_file_has_numbers_and_whole_characters() -> None:
    good = {"id": "a", "question": "pointwise", "status": "ok", "label": "7", "expected": 7.0, "k_effective": 1, "model": "m"}
    good["tokens"] = {"prompt": 1, "cached": 0, "generated": 1}
    assert parse_judgement(good, "x").expected == 7
    for odd in ({"expected": "7"}, {"expected": True}, {"k_effective": True}, {"text": HALF}, {"mass": float("inf")}):
        with pytest.raises(BadInput, match="x: judgement, field"):
            parse_judgement({**good, **odd}, "x")


def test_half_a_character_of_a_server_is_one_unreadable_character_of_its_text() -> None:
    class Choice:
        class message:
            content = f"good {HALF}"

        finish_reason = "stop"

    reply = reply_of(SimpleNamespace(choices=[Choice]), 1000)
    assert isinstance(reply, Reply) and reply.text == "good ?"


# The server


@pytest.fixture(scope="module")
def server(tiny_model_folder: Path) -> Iterator[TestClient]:
    models = embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=512)
    app = embedded_app(models, JudgeSettings(temperature=0, max_new_tokens=4))
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("field", ["text", "review"])
def test_a_past_review_that_is_blank_is_refused_by_the_server_and_other_items_are_answered(
    server: TestClient, field: str
) -> None:
    good = {"profile": fields()["profile"], "query": "A new text."}
    bad = {**good, "profile": [{**good["profile"][0], field: " "}]}
    one, other = post(server, {"input": [bad, good], "question": "pointwise_score"}).json()["results"]
    assert (
        f"profile.0.{field}" in one["error"]["message"]
        and "blank" in one["error"]["message"]
        and other["question"] == "pointwise_score"
    )


def post(server: TestClient, body: Any, route: str = "pointwise") -> Any:
    return server.post(f"/v1/judge/{route}", content=json.dumps(body), headers={"Content-Type": "application/json"})


def short(**more: Any) -> dict[str, Any]:
    return {"profile": [{"text": "a plot", "review": "fine", "score": 7}], "query": "a new plot"} | more


def test_half_a_character_fails_its_item_alone(server: TestClient) -> None:
    bad = [short(id=f"x{HALF}"), short(query=HALF), short(reviewer_id=HALF), short(**{HALF: 1}), short(id="a\0b"), HALF]
    bad += [short(profile=[{"text": "a", "review": "b", "score": score}]) for score in (True, "9", 1e400)]
    results = post(server, {"input": [short(id="first"), *bad, short(id="last")], "question": "pointwise_score"}).json()[
        "results"
    ]
    assert results[0]["id"] == "first" and results[-1]["id"] == "last" and results[-1]["distribution"]
    for number, result in enumerate(results[1:-1], start=1):
        assert result["error"]["code"] == 400 and result["error"]["param"] == f"input.{number}", result
    for one in bad:
        answer = post(server, {"input": one, "question": "pointwise_score"})
        assert answer.status_code == 400 and answer.json()["error"]["message"]


@pytest.mark.parametrize("setting", ["temperature", "max_new_tokens", "seed"])
@pytest.mark.parametrize("value", [True, "1", float("nan"), float("inf")])
def test_a_setting_of_a_request_is_a_number(server: TestClient, setting: str, value: Any) -> None:
    answer = post(server, {"input": short(), setting: value})
    assert answer.status_code == 400 and f"field '{setting}': found " in answer.json()["error"]["message"]


BODY: dict[str, Any] = {
    "input": [short(id="a")],
    "question": "pointwise_score",
    "temperature": 0,
    "max_new_tokens": 2,
    "seed": 1,
}
BODY_PLACES = list(places(BODY))


@pytest.mark.slow
@settings(max_examples=120)
@given(st.sampled_from(BODY_PLACES), ANY_JSON)
def test_no_body_is_a_failure_of_the_server(server: TestClient, place: tuple[Any, ...], value: Any) -> None:
    answer = post(server, with_value(BODY, place, value))
    assert answer.status_code < 500, (place, value, answer.text)
    for result in answer.json().get("results", []):
        failed = result.get("status") == "engine_error" if "question" in result else result["error"]["code"] >= 500
        assert not failed, (place, value, result)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 10**30])
def test_a_seed_of_any_size_draws(server: TestClient, seed: int) -> None:
    answer = post(server, {"input": short(), "seed": seed, "temperature": 1, "max_new_tokens": 2})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "body", [b"\xff\xfe", b"[" * 100_000, b'{"input": ' + b"9" * 5000 + b"}", b"", b"null", b"NaN", b'"\\ud800"']
)
def test_a_body_that_is_no_request_is_answered_with_400(server: TestClient, body: bytes) -> None:
    answer = server.post("/v1/judge/pointwise", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400 and answer.json()["error"]["message"]


def test_the_client_sends_half_a_character_as_it_is_and_hears_which_item_holds_it(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perse.serving.client import JudgeClient, Problem

    client = JudgeClient("http://127.0.0.1")
    client._http.close()
    client._http = server  # type: ignore[assignment]
    first, second = client.pointwise_many([short(query=HALF), short()], question="pointwise_score")
    assert isinstance(first, Problem) and "half of a surrogate pair" in first.message and not isinstance(second, Problem)
    with pytest.raises(BadInput, match="cannot be sent as JSON"):
        client.pointwise(short(query={1, 2}))


# Command lines and terminals


def test_an_argument_that_is_not_utf_8_is_refused_by_number(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["perse", "ask", "--text", "caf\udce9"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    said = capfd.readouterr().err
    assert left.value.code == 2 and "argument 3, 'caf\\udce9', is not UTF-8" in said and "Traceback" not in said


@pytest.mark.slow
def test_closed_streams_are_no_failure_and_no_file_takes_their_place(tmp_path: Path) -> None:
    samples = Path(__main__.__file__).parent / "samples"
    given = ["data", "pointwise", "--reviews", samples / "reviews.jsonl", "--items", samples / "items.jsonl", "--k", "1"]
    command = shlex.join(map(str, [sys.executable, "-m", "perse", *given, "--out", tmp_path / "set"]))
    done = subprocess.run(["sh", "-c", f"{command} <&- >&- 2>&-"], check=False)
    assert done.returncode == 0 and load_examples(tmp_path / "set", split=None).examples


def test_a_working_folder_that_was_removed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    done = perse("doctor")
    assert done.returncode == 2 and done.stderr.startswith("perse: the folder that you are in was removed"), done.stderr


@pytest.mark.parametrize(("columns", "left"), [("0", None), ("", None), ("20", "20")])
def test_a_terminal_of_no_width_is_taken_for_one_that_says_none(
    columns: str, left: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(cli, "main", lambda: None)
    __main__.main()
    assert os.environ.get("COLUMNS") == left


def test_a_message_shows_control_characters_and_does_not_send_them() -> None:
    assert str(BadInput(f"found 'a\x1b[2J\x9bb{HALF}é\n'")) == "found 'a\\x1b[2J\\x9bb\\ud800é\n'"


def test_a_text_with_control_characters_is_kept_whole_and_stays_out_of_prompts(tmp_path: Path) -> None:
    from perse.writing.cache import AnswerCache
    from perse.writing.writer import Written

    text = "a\0b\x1bc\x85d"
    with AnswerCache(tmp_path / "answers.sqlite") as kept:
        kept.keep({"key": Written(text, "stop")})
        assert kept.known(["key"])["key"].text == text
    table = pa.table({"text": [text]})
    pq.write_table(table, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").equals(table)
    assert TextRenderer().neutralise(text) == "a b c d"


# Spreadsheets


FORMULAS = [
    '=HYPERLINK("http://x","y")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1",
    "\n=1",
    " =1+1",
    "\uff1d1+1",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_a_spreadsheet_would_compute_is_guarded_and_comes_back(text: str) -> None:
    from perse.drawing.figure import Figure

    figure = Figure("f", "t", "a", "", b"", ("reader", "value", text), ((text, -0.5, "-0.26"), (f"'{text}", None, "plain")))
    header, first, second = csv.reader(io.StringIO(figure.csv, newline=""))
    assert header == ["reader", "value", guarded(text)] and first == [guarded(text), "-0.5", "-0.26"]
    assert str(guarded(text)).startswith("'") and str(guarded(text)).replace("'", "") == text.replace("'", "")
    assert [plain(cell) for cell in first] == [text, "-0.5", "-0.26"] and plain(second[0]) == f"'{text}"


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("begin", ["fine;", "fine\t", "fine\n", "fine;\n ", 'fine;"', 'fine\t" "', 'fine\n"'])
def test_a_text_that_is_taken_apart_at_semicolons_or_tabs_has_no_formula_in_it(begin: str, text: str) -> None:
    """As spreadsheets do whose decimal mark is the comma: a quote within a line is a letter to them, and a line break ends the row."""
    written = csv_text(["id", "text"], [["7", f"{begin}{text};end"], ["8", "sad;-) but fine"]])
    lines = re.split("[\r\n]", written)
    cells = [cell for line in lines for cell in re.split("[;\t]", line)]
    cells += [cell for line in lines for mark in ";\t" for row in csv.reader([line], delimiter=mark) for cell in row]
    assert not [cell for cell in cells if re.match(r"\s*[=+\-@\uff1d][^)]", cell)], cells
    rows = [*csv.reader(io.StringIO(written, newline=""))]
    assert plain(rows[1][1]) == f"{begin}{text};end" and rows[2][1] == "sad;-) but fine"


@given(st.text(st.characters() | st.sampled_from("='+-@\t\r\n 12.e;)\""), max_size=12))
def test_every_text_comes_back_from_a_cell(text: str) -> None:
    cell = guarded(text)
    assert isinstance(cell, str) and plain(cell) == text


def test_a_figures_numbers_are_never_guarded() -> None:
    assert csv_text(["n"], [[-1], [-0.5], [1e-9], [float("-inf")], [None]]).split() == [
        "n",
        "-1",
        "-0.5",
        "1e-09",
        "-inf",
        '""',
    ]


def test_every_seed_of_the_command_line_is_refused_below_zero_before_anything_is_asked() -> None:
    """numpy draws from none that is negative, and a study would find that out after its judge has been asked everything."""

    def seeds(command: Any, path: str) -> Iterator[tuple[str, int | None]]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from seeds(inner, f"{path} {name}")
        yield from ((f"{path} {option.name}", option.min) for option in command.params if option.name.endswith("seed"))

    found = dict(seeds(typer.main.get_command(cli.app), "perse"))
    assert len(found) > 20 and not [name for name, least in found.items() if least != 0]


@pytest.mark.slow
def test_a_stdout_that_cannot_write_our_characters_gets_them_escaped(tmp_path: Path) -> None:
    table = tmp_path / "reviews.jsonl"
    table.write_text(
        "".join(
            json.dumps({"reviewer_id": f"é{n % 3}", "item_id": f"i{n}", "text": "a text", "review": "good", "score": 1 + n % 9})
            + "\n"
            for n in range(30)
        )
    )
    command = [sys.executable, "-m", "perse", "data", "describe", str(table)]
    done = subprocess.run(command, capture_output=True, check=False, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and b"\\u" in done.stdout and b"Traceback" not in done.stderr, done.stderr


def test_a_message_leaves_out_the_middle_of_what_a_file_says_at_length_and_not_its_remedy() -> None:
    said = str(BadInput(f"found '{'x' * 70_000}', expected a name; give another"))
    assert len(said) < LONGEST + 100 and "characters left out" in said
    assert said.startswith("found 'xxx") and said.endswith("xxx', expected a name; give another")
    assert str(BadInput("short")) == "short"
