"""Aspects as tables write them, in any case, are asked about in the words written for them."""

import pytest

from perse.prompts import macros

WORDS = {
    "Interestingness": "hold this reader's interest",
    "Adaptability": "a longer work built on it",
    "Surprise": "more unexpected turns",
    "Character Development": "closer to the characters",
    "Ending": "Whose ending",
}


@pytest.mark.parametrize("aspect", WORDS)
def test_an_aspect_has_its_wording_in_any_case(aspect: str) -> None:
    for spelled in (aspect, aspect.lower(), aspect.upper()):
        asked = str(macros("pairwise.jinja").ask(spelled))
        assert WORDS[aspect] in asked
        assert asked.startswith(f"[Aspect] {spelled}: ")  # the name stays as the data has it, as in the profile


def test_another_aspect_is_asked_about_in_general_words() -> None:
    assert "prefer in this respect?" in str(macros("pairwise.jinja").ask("prose"))
