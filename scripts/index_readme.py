"""The README as a package index shows it: links into the repository lead to PERSE_PAGES_URL, or are the names of what they lead to.

A package index has no files beside the README, so a link such as docs/data.md would lead nowhere there. Set PERSE_PAGES_URL, when building, to the address below
which the repository's files are shown (https://HOST/OWNER/perse/blob/v0.1.0); without it no link is left that cannot work.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s]+)\)")


def on_an_index(text: str, pages: str = "") -> str:
    """The README with links that work anywhere.

    Args:
        pages: the address below which the repository's files are; empty where they are nowhere.
    """

    def link(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if pages:
            where = f"{pages.rstrip('/')}/{target}"
            return f"{picture}[{words}]({where})"
        return words if picture or words == target else f"{words} ({target})"

    return LINK.sub(link, text)


class Readme(MetadataHookInterface):
    """What hatchling asks for the README."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        pages = os.environ.get("PERSE_PAGES_URL", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": on_an_index(text, pages)}
