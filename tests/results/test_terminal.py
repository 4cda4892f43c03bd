"""A Result on a terminal: whatever the table and the width, every cell is there, whole, and no line is too long."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from perse.results.result import Cell, Estimate, Interval, Result, Table
from perse.results.terminal import hidden, print_result, print_table

WORDS = st.text("abcdefgh", min_size=1, max_size=12)
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


def estimate(
    value: float | None, *, low: float | None = None, high: float | None = None, reason: str | None = None
) -> Estimate:
    return Estimate(value=value, interval=Interval(low=low, high=high, reason=reason), items=9)


@st.composite
def estimates(draw: st.DrawFn) -> Estimate:
    value = draw(st.floats(-1000, 1000) | st.none())
    if value is None or draw(st.booleans()):
        return estimate(value, reason="undefined (few reviewers)")
    return estimate(value, low=value - 1, high=value + 1)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    columns = draw(st.integers(1, 9))
    cells = [TEXTS] + [draw(st.sampled_from([TEXTS, estimates(), st.integers(0, 10**6).map(str)])) for _ in range(columns)]
    rows = draw(st.lists(st.tuples(*(cell | st.none() if at else cell for at, cell in enumerate(cells))), max_size=5))
    header = ("", *(draw(TEXTS) for _ in range(columns)))
    return Table(title=draw(TEXTS), header=header, rows=tuple(rows), breaks=(1,))


def printed(table: Table, *, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    print_table(table, console)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def words_of(cell: Cell) -> list[str]:
    """What of a cell must stand in one piece: words of texts, values, and intervals with the blank inside."""
    if isinstance(cell, str):
        return cell.split()
    if cell is None or cell.value is None:
        return []
    low, high = cell.interval.low, cell.interval.high
    interval = "[undefined]" if low is None or high is None else f"[{low:z.3f}, {high:z.3f}]"
    return [f"{cell.value:z.3f}", interval]


@given(tables(), st.integers(50, 200))
def test_no_line_is_too_long_and_no_word_or_number_is_broken(table: Table, width: int) -> None:
    lines = printed(table, width=width)
    assert max(map(len, lines), default=0) <= width
    text = "\n".join(lines)
    for row in table.rows:
        for cell in row:
            assert all(word in text for word in words_of(cell)), cell
    assert all(word in text for name in table.header for word in name.split())


def test_a_wide_table_is_cut_between_columns_and_each_part_names_its_rows() -> None:
    row = ("a judge", *(estimate(n / 10, low=0.0, high=1.0) for n in range(9)))
    table = Table(title="wide", header=("", *(f"column {n}" for n in range(9))), rows=(row,))
    lines = printed(table, width=60)
    assert sum(line.startswith("a judge") for line in lines) > 1
    assert sum(line.startswith("a judge") for line in printed(table, width=250)) == 1


def test_parts_of_a_table_whose_rows_two_columns_name_repeat_both_however_long_what_else_is_text() -> None:
    rows = tuple(("a judge", str(k), "all of the entries", "60 of 60", *(estimate(0.1, low=0, high=1),) * 6) for k in (1, 3))
    lines = printed(Table(title="t", header=("who", "k", "entries", "answered", *"uvwxyz"), rows=rows), width=60)
    heads = [line.split()[:2] for line in lines if line.startswith("who")]
    assert len(heads) > 1 and all(head == ["who", "k"] for head in heads)


def test_an_interval_stands_beside_its_value_where_there_is_room_and_else_below() -> None:
    table = Table(title="t", header=("", "m", "n"), rows=(("a", *[estimate(0.5, low=0.25, high=0.75)] * 2),))
    assert any(line.count("0.500 [0.250, 0.750]") == 2 for line in printed(table, width=80))
    narrow = printed(table, width=34)
    at = next(n for n, line in enumerate(narrow) if "0.500" in line)
    assert narrow[at].split() == ["a", "0.500", "0.500"]
    assert narrow[at + 1].split() == ["[0.250,", "0.750]", "[0.250,", "0.750]"]


def test_why_there_is_no_interval_is_said_once_below_the_table() -> None:
    table = Table(title="t", header=("", "m"), rows=tuple((f"r{n}", estimate(0.5, reason="undefined (few)")) for n in range(3)))
    text = "\n".join(printed(table, width=80))
    assert text.count("0.500 [undefined]") == 3 and text.count("some intervals are undefined (few)") == 1


def test_details_are_left_out_and_named() -> None:
    tables = tuple(
        Table(title=f"{name}: more", header=("",), rows=(("x",),), detail=name == "Fine") for name in ("Coarse", "Fine")
    )
    result = Result(name="n", asks="?", answer="!", tables=tables)
    shown, whole = (Console(width=80, file=io.StringIO()) for _ in range(2))
    print_result(result, shown)
    print_result(result, whole, everything=True)
    assert "Fine" not in shown.file.getvalue() and "Fine: more" in whole.file.getvalue()  # type: ignore[attr-defined]
    assert hidden(result) == ["Fine"]


def test_texts_of_files_are_no_markup_and_move_no_cursor() -> None:
    text = "\n".join(printed(Table(title="[bold]t", header=("[red]h",), rows=(("[link=x]\x1b[2J",),)), width=80))
    assert "[bold]t" in text and "[red]h" in text and "[link=x][2J" in text


def test_a_terminal_that_says_it_has_one_column_is_given_lines_that_can_be_read() -> None:
    table = Table(title="Agreement with readers", header=("", "judges"), rows=(("movies", "12"),), breaks=())
    written = io.StringIO()
    result = Result(name="x", asks="How far?", answer="The judge agrees with readers.", tables=(table,))
    print_result(result, Console(file=written, width=1))
    assert "The judge agrees with readers." in written.getvalue() and "Agreement with readers" in written.getvalue()
