"""Did a judge name the right work? Titles are compared as people write them, strictly where works of one series differ.

Case, punctuation, accents, a leading article, what stands in brackets, and an edition or year behind the title do not count;
a typing error does not either. Numbers do, and a final s: "Rocky II" is not "Rocky III", "Alien" not "Aliens". A series' name
alone is no title of one of its parts, and a work called "Unknown" is never recognized: recognition is rather undercounted
than overcounted.
"""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher

NEAR = 0.9
"""Least similarity (difflib's ratio) of two titles that differ by a typing error; two letters swapped in 12 have 0.917."""

_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_YEAR = re.compile(r"\s*,\s*(?:1[89]|20)\d\d$")  # without a comma it may be the title's: "Blade Runner 2049"
_EDITION = re.compile(
    r"[\s,:-]+(?:the\s+)?(?:director'?s cut|extended (?:cut|edition)|special edition|collector'?s edition|unrated|remastered"
    r"|uncut|theatrical cut|final cut|tv movie|the movie)$"
)
_ARTICLE_BEHIND = re.compile(r"^(.*\S)\s*,\s*(the|a|an)$")
_ARTICLE = re.compile(r"^(?:the|a|an)\s+(?=\S)")
_NUMBER = re.compile(r"\d+|(?<=\s)[ivx]+\b")
_NO_TITLE = frozenset(
    {"", "n a", "na", "none", "unknown", "not known", "unsure", "i do not know", "untitled", "no title", "null"}
)


def plain_title(title: str) -> str:
    """A title without what may differ between two spellings of it; empty if nothing is left."""
    plain = unicodedata.normalize("NFKD", title).casefold()
    plain = "".join(char for char in plain if not unicodedata.combining(char)).replace("\u2019", "'").strip(" \t\n\"'*_.`")
    plain = _BRACKETS.sub(" ", plain).strip() or plain
    for _ in range(2):  # "Alien (1979) Director's Cut", "Alien, Director's Cut 1979"
        plain = _EDITION.sub("", _YEAR.sub("", plain.strip()))
    plain = _ARTICLE_BEHIND.sub(r"\1", plain)
    words = re.sub(r"[^\w]+", " ", plain.replace("&", " and ").replace("'", "")).replace("_", " ").split()
    return _ARTICLE.sub("", " ".join(words))


def recognized(written: str, title: str) -> bool:
    """Whether what a judge wrote is the work's `title`, by the rules above."""
    one, other = plain_title(written), plain_title(title)
    if one in _NO_TITLE or other in _NO_TITLE:
        return False
    if one == other:
        return True
    if _numbers(one) != _numbers(other) or one.rstrip("s") == other.rstrip("s"):
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= NEAR


def _numbers(plain: str) -> list[str]:
    return _NUMBER.findall(plain)
