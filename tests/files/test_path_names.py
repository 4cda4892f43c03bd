"""A name from outside is one part of a path: it never leaves the folder that it is meant for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_line import perse
from hypothesis import given
from hypothesis import strategies as st

from perse.errors import BadInput
from perse.files.path_names import LONGEST, PathName, path_name_of, place_named, run_around

HOSTILE = [
    *("", ".", "..", "../x", "../../x", "a/b", "a/../../b", "/etc/x", "C:\\x", "a\\b", "~", "~root", "-rf", "--out", ".hidden"),
    *("a\0b", "a\nb", "a b", "a:b", "x" * (LONGEST + 1), "ü", "\u202egpj", "\ud800", "name.", "%2e%2e", "$HOME", "*", "a;b"),
]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_name_is_refused_in_one_printable_line(name: str) -> None:
    with pytest.raises(BadInput, match="--name is .*give a name and no path") as said:
        PathName(name, what="--name")
    assert str(said.value).isprintable() and str(said.value).isascii()


@given(st.one_of(st.text(), st.text("./\\~ab", max_size=8), st.sampled_from(HOSTILE)), st.booleans())
def test_no_name_leaves_its_folder(words: str, typed: bool) -> None:
    """Whatever is typed is refused or stays; whatever words there are, what is made of them stays."""
    top = Path("/work/top")
    try:
        name = PathName(words) if typed else path_name_of(words)
    except BadInput:
        assert typed
        return
    place = Path(os.path.normpath(top / name))
    assert place.parent == top and place != top and len(os.fsencode(name)) <= LONGEST


@given(st.text(min_size=1), st.text(min_size=1))
def test_words_of_other_alphabets_do_not_become_one_name(one: str, other: str) -> None:
    if any(letter.isalnum() and not letter.isascii() for letter in one.lower()) and one != other:
        assert path_name_of(one) != path_name_of(other)


def test_reserved_names_are_refused_in_any_case() -> None:
    assert PathName("gpt-4o_2.1", reserved=("errors",)) == "gpt-4o_2.1"
    with pytest.raises(BadInput, match="'Errors', which stands for something else there"):
        PathName("Errors", reserved=("errors",))


def test_a_home_that_nobody_has_is_a_name_like_others() -> None:
    assert place_named("~nobody-has-this/x") == Path("~nobody-has-this/x")
    assert place_named("~/x") == Path.home() / "x" and place_named(Path("a/~")) == Path("a/~")


@pytest.mark.parametrize(
    "typed",
    [
        ("score", "--examples", "x", "--judge", "~nobody-has-this/x", "--out", "out"),
        ("ask", "--judge", "~nobody-has-this/x"),
        ("serve", "model=~nobody-has-this/x"),
        ("plan", "--config", "embedded_lora", "model.path=~nobody-has-this/x", "data.path=x"),
        ("models", "merge", "~nobody-has-this/x", "--out", "out"),
        ("evaluate", "x", "--embedding-model", "~nobody-has-this/x"),
    ],
)
def test_a_model_in_a_home_that_nobody_has_is_one_sentence(typed: tuple[str, ...]) -> None:
    said = perse(*typed)
    assert said.returncode == 2 and "a bug of perse" not in said.stderr


def test_a_judge_named_by_a_link_that_leads_in_a_circle_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "judge").symlink_to("judge")
    done = perse("ask", "--judge", tmp_path / "judge", "--text", "t", "--reviews", "r.jsonl")
    assert done.returncode == 2 and "bug of perse" not in done.stderr, done.stderr
    assert run_around(tmp_path / "judge") is None
