"""Templates refuse what they are not given, and escape HTML where it is asked for."""

import pytest
from jinja2 import UndefinedError

from perse.formats.templates import table, templates


def test_a_card_with_a_missing_value_is_refused() -> None:
    card = templates("perse.data", counted=str).get_template("release.md.jinja")
    with pytest.raises(UndefinedError, match="counts"):
        card.render(header="")


def test_html_is_escaped_and_markdown_left_to_who_fills_it() -> None:
    shown = "{{ name }}"
    assert templates("perse.reporting", "page", html=True).from_string(shown).render(name="<b>") == "&lt;b&gt;"
    assert templates("perse.data").from_string(shown).render(name="<b>") == "<b>"


def test_a_table_has_one_rule_for_each_column() -> None:
    assert table(["", "n"], [["a", 1]]) == "| | n |\n|---|---|\n| a | 1 |"
