"""Every setting of a server with its default and its meaning, as a page: what `perse serve --settings` prints, and the docs.

The meanings are the lines below the fields of `ServeConfig`; nothing is written twice.
"""

from __future__ import annotations

from perse.formats.templates import templates
from perse.settings.config import described
from perse.settings.serving import ServeConfig

COMMAND = "perse serve --settings > docs/serving-settings.md"
"""Rewrites the page of the docs."""


def settings_page() -> str:
    """The page as Markdown: one table, settings in the order of the code."""
    page = templates("perse.serving").get_template("settings_page.md.jinja")
    return page.render(command=COMMAND, settings=[each for each in described(ServeConfig) if each.takes != "a section"])
