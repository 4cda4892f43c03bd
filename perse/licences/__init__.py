"""Licence texts that travel with weights: an embedded model's own, and what a base model's folder holds.

Licences such as Apache-2.0 ask that whoever passes the weights on passes on the text and the notices too. The names here
have no ending, so that a folder's digest, which is over its `.txt` files too, stays that of the weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from perse.files.runlog import write_whole

LICENCE, NOTICE = "LICENSE", "NOTICE"

_TERMS = re.compile(r"(LICEN[SC]E|NOTICE|COPYING|USE_POLICY)(\.(txt|md|rst))?", re.IGNORECASE)
"""What publishers call the files of their terms."""


def ship_terms(folder: Path, *, licence: str, notice: str) -> None:
    """Put the text of `licence` and a notice into a model's folder, where it has none of that name yet."""
    text = (files("perse.licences") / f"{licence}.txt").read_text(encoding="utf-8")
    for name, content in ((LICENCE, text), (NOTICE, notice)):
        if not (folder / name).exists():
            write_whole(folder / name, content)


def carry_terms(base: Path, folder: Path, *, changes: str) -> None:
    """Copy a base model's terms beside weights that were made from it; its notice then says what was changed."""
    terms = {_named(file.name): file.read_bytes() for file in sorted(base.iterdir()) if is_terms(file.name) and file.is_file()}
    if not terms:
        return
    said = terms.get(NOTICE, b"").decode("utf-8", "replace")
    terms[NOTICE] = f"{said.rstrip()}\n\n{changes}\n".lstrip().encode()
    for name, content in terms.items():
        (folder / name).write_bytes(content)


def is_terms(name: str) -> bool:
    """Whether a file of this name holds terms."""
    return _TERMS.fullmatch(name) is not None


def terms_in(names: Iterable[str]) -> list[str]:
    """The names of files that hold terms, in order."""
    return sorted(filter(is_terms, names))


def _named(name: str) -> str:
    """The name that a copy gets: without `.txt`, which would be taken for a part of the tokenizer."""
    return name.removesuffix(".txt")
