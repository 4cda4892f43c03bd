"""A Result as Markdown, CSV and JSON: the same cells in each, texts of files without any meaning."""

from __future__ import annotations

import csv as reader
import io
import json

import pytest

from perse.results.markdown import markdown
from perse.results.result import VERSION, Estimate, Interval, Result, Table
from perse.results.spreadsheet import HEADER, csv
from perse.results.words import footnotes, shown, telling_apart

VALUE = Estimate(value=0.25, interval=Interval(low=-0.5, high=0.75), items=7)
CHANGE = VALUE.model_copy(update={"difference": True})
NONE = Estimate(value=None, interval=Interval(reason="undefined (one reviewer)"), items=1)


def result(*rows: tuple[Estimate | str | None, ...]) -> Result:
    table = Table(title="T", header=("who", "k", "value"), rows=rows, digits=2)
    return Result(name="n", asks="Why?", answer="So.", tables=(table,), notes=("a note",))


def test_a_number_does_not_look_like_the_bound_that_it_is_above() -> None:
    assert telling_apart(0.0152, 0.0148) == 4  # both are 0.015 in three decimals
    assert telling_apart(0.02, 0.01) == 3 and telling_apart(0.02, 0.02) == 3
    assert telling_apart(0.01000001, 0.01) == 5  # no more than an interval may have


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (VALUE, "0.25 [-0.50, 0.75]"),
        (CHANGE, "+0.25 [-0.50, 0.75]"),
        (NONE, "undefined (one reviewer)"),
        (None, "-"),
        ("as it is", "as it is"),
        (Estimate(value=-0.001, interval=Interval(reason="undefined (few)"), items=1), "0.00 [undefined (few)]"),
    ],
)
def test_a_cell_is_said_the_same_everywhere(cell: Estimate | str | None, said: str) -> None:
    assert shown(cell, digits=2) == said
    assert f"| {said} |" in markdown(result(("a", "1", cell))).replace("\\", "")


def test_an_interval_of_fewer_resamples_is_marked_in_tables_which_say_what_that_means_and_not_in_sentences() -> None:
    fewer = Estimate(value=1.0, interval=Interval(low=0.5, high=1.0, undefined_resamples=3), items=1)
    assert shown(fewer, digits=2) == "1.00 [0.50, 1.00]"
    table = markdown(result(("a", "1", fewer)))
    assert "| 1.00 [0.50, 1.00]* |" in table and "undefined in some resamples (at most 3)" in table


def test_markdown_has_the_question_the_answer_the_tables_and_the_notes() -> None:
    assert markdown(result(("a", "1", VALUE))) == (
        "# n\n\nWhy?\n\n**So.**\n\n## T\n\n| who | k | value |\n|---|---:|---:|\n| a | 1 | 0.25 [-0.50, 0.75] |\n\n"
        "## Notes\n\n- a note\n"
    )


def test_markdown_gives_texts_of_files_no_meaning() -> None:
    text = markdown(result(("<script>|`x`|*b*[a](http://e)\n# h", "1", None)))
    row = text.splitlines()[10]
    assert row == "| &lt;script>\\|\\`x\\`\\|\\*b\\*\\[a\\](http://e) # h | 1 | - |"


def test_csv_has_a_line_for_each_cell_and_computes_nothing() -> None:
    lines = [*reader.reader(io.StringIO(csv(result(("=1+1", "3", VALUE), ("b", "5", NONE)))))]
    assert tuple(lines[0]) == HEADER
    assert lines[1] == ["T", "'=1+1", "k", "3", "", "", "", "", ""]
    assert lines[2] == ["T", "'=1+1", "value", "", "0.25", "-0.5", "0.75", "", "7"]
    assert lines[4] == ["T", "b", "value", "", "", "", "", "undefined (one reviewer)", "1"]


def test_json_has_a_version_and_comes_back_as_it_was() -> None:
    given = result(("a", "1", VALUE), ("b", "2", NONE))
    text = given.model_dump_json()
    assert json.loads(text)["version"] == VERSION and Result.model_validate_json(text) == given
    with pytest.raises(ValueError, match="version"):
        Result.model_validate_json(text.replace(f'"version":{VERSION}', '"version":99'))


def test_footnotes_say_each_reason_once_and_what_an_asterisk_means() -> None:
    marked = Estimate(value=1.0, interval=Interval(low=1.0, high=1.0, undefined_resamples=3), items=1)
    few = Estimate(value=1.0, interval=Interval(reason="undefined (few)"), items=1)
    table = Table(title="T", header=("a",) * 4, rows=((NONE, few, few, marked),), notes=("first",))
    assert footnotes(table) == (
        "first",
        "some values are undefined (one reviewer)",
        "some intervals are undefined (few)",
        "*: the value is undefined in some resamples (at most 3); the interval is that of the others",
    )


def test_what_a_terminal_would_obey_is_an_escape_in_csv() -> None:
    assert "\x1b" not in csv(result(("flu\x1b[2Jency", "k", VALUE))) and "flu\\x1b[2Jency" in csv(
        result(("flu\x1b[2Jency", "k", VALUE))
    )
