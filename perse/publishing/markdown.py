"""Text from files as Markdown shows it, letter for letter: names and settings are untrusted, and folders are private."""

from __future__ import annotations

import html
import re

_MEANS_SOMETHING = re.compile(r"([\\`*_\[\]{}|#~$!>+])")
_FOLDER = re.compile(r"(?<![\w.:/~])(?:~|/[\w.+@-]+|[A-Za-z]:\\[\w.+@ -]+)(?:[/\\][\w.+@-]+)+")


def plain(text: object) -> str:
    """One line without any meaning to Markdown or HTML; of folders only the last part is shown."""
    kept = "".join(letter if letter.isprintable() else " " for letter in str(text))
    told = _FOLDER.sub(lambda found: re.split(r"[/\\]", found[0])[-1], " ".join(kept.split()))
    return _MEANS_SOMETHING.sub(r"\\\1", html.escape(told, quote=False).replace("&gt;", ">"))


def word(text: str) -> str:
    """A name as an argument of a command line that is shown in a block of code; anything unusual in it is an underscore."""
    return re.sub(r"[^\w.@/:+-]", "_", text) or "_"
