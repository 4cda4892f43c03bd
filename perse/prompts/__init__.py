"""The wording of every question: one Jinja file each, one macro per segment.

Prompts are plain text, without escapes; what comes from a file has been neutralised before (rendering).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from perse.formats.templates import templates

DELIMITERS = (
    "Plot", "Answer", "Article", "Discussion", "Example", "Paragraph", "What must change",
    "Summary", "Response", "Recommendations", "Suggestions", "Task", "User", "Notes", "Steps", "Criteria",
)  # fmt: skip
"""What stands in brackets in the prompts that ask for a text, and so are no question's (`perse.rendering.neutralising`)."""


def source(name: str) -> str:
    """The text of the packaged template `name`."""
    return (files("perse.prompts") / name).read_text(encoding="utf-8")


@cache
def macros(name: str) -> Any:
    """The macros of the template `name`, callable as attributes."""
    return templates("perse.prompts").get_template(name).module
