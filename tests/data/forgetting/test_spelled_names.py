"""A person who was forgotten is found under their name however a file spells it, and nobody else is."""

from __future__ import annotations

import html
import json
import unicodedata
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perse.data.forgetting.remaining import _finder, remaining
from perse.formats.csv_cells import csv_text
from perse.reporting.page import embedded

SPELLINGS = {
    "as it is": lambda name: name,
    "decomposed": lambda name: unicodedata.normalize("NFD", name),
    "composed": lambda name: unicodedata.normalize("NFC", name),
    "JSON": lambda name: json.dumps(name, ensure_ascii=False),
    "JSON in ASCII": json.dumps,
    "in capitals": lambda name: json.dumps(name).replace("\\u00e", "\\u00E"),
    "HTML": html.escape,
    "numbered": lambda name: "".join(one if one.isalnum() else f"&#{ord(one)};" for one in name),
    "in hex": lambda name: "".join(one if one.isascii() and one.isalnum() else f"&#x{ord(one):X};" for one in name),
    "an address": quote,
    "an address without slashes": lambda name: quote(name, safe=""),
    "a form": quote_plus,
    "after a line's end": lambda name: json.dumps("so said\n" + name),
    "after a space in an address": lambda name: quote("by " + name),
    "a table": lambda name: csv_text(["reader", "said"], [[name, "x"]]),
    "a report's data": lambda name: str(embedded({"reader": name})),
}
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=3, max_size=12).filter(
    lambda one: one[0].isalnum() and one[-1].isalnum()
)


@pytest.mark.parametrize("spelled", SPELLINGS.values(), ids=SPELLINGS)
@given(name=NAMES)
@example("Smith & Jones")
@example("Änna Ö'Brien/Ž")
@example("O'Brien & <b>x")
@example("a😀b")
def test_a_name_is_found_however_it_is_escaped(tmp_path_factory: pytest.TempPathFactory, spelled: object, name: str) -> None:
    assert _finder([name])(f"[x, {spelled(name)}, y]".encode())  # type: ignore[operator]


@given(name=NAMES, more=st.sampled_from("abz09_"))
def test_a_longer_name_is_another_one(name: str, more: str) -> None:
    assert not _finder([name])(f'"{name}{more}"'.encode())


@pytest.mark.parametrize("name", ["..", "-x", "é", "ab", "=", "7b"])
def test_a_name_of_one_or_two_characters_is_found_where_it_is_a_value_of_its_own(name: str) -> None:
    named = _finder([name])
    for spelled in (
        json.dumps({"r": name}),
        json.dumps([name], ensure_ascii=False),
        csv_text(["n", "reader"], [[1, name], [2, "other"]]),
    ):
        assert named(spelled.encode()), spelled
    assert not named(f"so x{name}y said, and a {name} b".encode())


@pytest.mark.parametrize("name", ["7", "10", "A"])
def test_a_cell_with_a_score_or_a_choice_names_no_reader_who_is_called_so(name: str) -> None:
    assert not _finder([name])(f"reader,said\nu1,{name}\n".encode())
    assert _finder([name])(json.dumps({"reader_id": name}).encode())


def test_what_remains_in_a_page_is_named_and_the_page_of_another_is_not(tmp_path: Path) -> None:
    for who, name in {"theirs": "Smith & Jones", "another": "Smith & Jonesson"}.items():
        (tmp_path / f"{who}.html").write_text(f"<script>{embedded({'reader': name})}</script>", encoding="utf-8")
    assert remaining(["Smith & Jones"], [tmp_path]).places == (tmp_path / "theirs.html",)
