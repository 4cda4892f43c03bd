"""The wording of every question: one Jinja file each, one macro per segment.

Texts are autoescape-free plain text; what comes from a file has been neutralised before (rendering), and templates run
in Jinja's sandbox with undefined names refused.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import FunctionLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

DELIMITERS = ("Plot", "Answer", "Article", "Discussion", "Example", "Paragraph", "What must change")
"""What stands in brackets in the prompts that ask for a text, and so are no question's (`perse.rendering.neutralising`)."""


def source(name: str) -> str:
    """The text of the packaged template `name`."""
    return (files("perse.prompts") / name).read_text(encoding="utf-8")


@cache
def macros(name: str) -> Any:
    """The macros of the template `name`, callable as attributes."""
    environment = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(source),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(name).module
