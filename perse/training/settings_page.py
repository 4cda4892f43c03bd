"""Every training setting with its default and its meaning, as a page: what `perse train --settings` prints, and the docs.

The meanings are the lines below the fields of `TrainConfig`; nothing is written twice.
"""

from __future__ import annotations

from perse.formats.templates import templates
from perse.settings.config import described
from perse.settings.training import TrainConfig

COMMAND = "perse train --settings > docs/training-settings.md"
"""Rewrites the page of the docs."""


def settings_page() -> str:
    """The page as Markdown: a table for each section, settings in the order of the code."""
    page = templates("perse.training").get_template("settings_page.md.jinja")
    return page.render(command=COMMAND, settings=described(TrainConfig))
