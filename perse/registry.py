"""What can be added to: things by name, those of this package first, then those that installed packages bring.

Each kind of thing (questions, example types, engines, sources, metrics, consumers) has one registry, which is the only list of it. Inside this
package an addition is one file and one line in that list; another package names its additions under the registry's group of
entry points, and has them wherever it is installed (docs/contributing.md):

    [project.entry-points."perse.questions"]
    irony = "my_package.irony:IRONY"

Other packages are looked at when somebody first asks for a name, not at import. One that cannot be used is left out with a
warning: a broken package must not keep the others from working. Of one that fails later, while it is used, `fault_of_addition`
says which package it was.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, distributions, entry_points
from types import FrameType, FunctionType, MappingProxyType, MethodType
from typing import TypeVar

from perse.bounded import first_line
from perse.errors import BadInput
from perse.secrets import printable, redact

log = logging.getLogger(__name__)

Thing = TypeVar("Thing", covariant=True)


class Registry(Mapping[str, Thing]):
    """Things by name, in order; it cannot be changed.

    Args:
        group: of the entry points of other packages, such as "perse.questions".
        own: this package's things.
        key: the attribute that holds a thing's name.
        needs: attributes without which a thing of another package is left out.
        kind: the class that a thing of another package must be of, if any will not do.
        reserved: names that no other package may take, beside those of `own`.
    """

    def __init__(
        self,
        group: str,
        own: Iterable[Thing],
        *,
        key: str = "name",
        needs: Iterable[str] = (),
        kind: type | None = None,
        reserved: Iterable[str] = (),
    ) -> None:
        self.group = group
        self.own: Mapping[str, Thing] = MappingProxyType({str(getattr(thing, key)): thing for thing in own})
        self._key = key
        self._needs = (key, *needs)
        self._kind = kind
        self._reserved = frozenset(reserved)

    def __getitem__(self, name: str) -> Thing:
        return self.own[name] if name in self.own else self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def package(self, name: str) -> str:
        """Who brought the thing called `name`, in words."""
        brought = (_package(point) for point in entry_points(group=self.group) if point.name == name)
        return "perse" if name in self.own else next(brought, "nobody")

    @cached_property
    def _all(self) -> dict[str, Thing]:
        found = dict(self.own)
        for point in sorted(entry_points(group=self.group), key=lambda point: (point.name, point.value)):
            try:
                thing = self._loaded(point, taken=found)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  # whatever happens when a stranger's module is imported, an exit too
                told = printable(redact(error_words(error)))  # here: no handler of perse's may be there yet
                log.warning("%s '%s' of %s is left out: %s", self.group, point.name, _package(point), told)
            else:
                found[point.name] = thing
        return found

    def _loaded(self, point: EntryPoint, *, taken: Mapping[str, object]) -> Thing:
        if point.name in taken or point.name in self._reserved:
            raise ValueError("the name is taken; rename it")
        thing: Thing = point.load()
        if self._kind is not None and not isinstance(thing, self._kind):
            raise TypeError(f"{point.value} is no {self._kind.__name__}; see docs/contributing.md")
        missing = [name for name in self._needs if not hasattr(thing, name)]
        if missing:
            raise ValueError(f"{point.value} lacks {', '.join(missing)}; see docs/contributing.md")
        if getattr(thing, self._key) != point.name:
            raise ValueError(f"{point.value} calls itself '{getattr(thing, self._key)}'; name the entry point so")
        return thing


def error_words(error: BaseException) -> str:
    """What an error says, also one that cannot be asked."""
    if isinstance(error, SystemExit):
        return f"it wanted to end perse (exit code {error.code})"
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001
        return type(error).__name__


def _words(error: BaseException) -> str:
    try:
        return redact(first_line(error))
    except Exception:  # noqa: BLE001
        return type(error).__name__


def _package(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist else point.value


def fault_of_addition(error: BaseException) -> BadInput | None:
    """What another package did that ended in `error`, by its name; None where none that adds to perse was at work.

    It was at work where its code was called last, or where perse was at something of its making, which it cannot use. An exit from
    a command that the package itself brings is that command's own end.
    """
    points = (point for package in distributions() for point in package.entry_points if point.group.startswith("perse."))
    added = {_home(point.module): point for point in points}
    added.pop(_home(__name__), None)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)] if added else []
    for at in reversed(range(len(frames))):
        here = _home(frames[at].f_globals.get("__name__", ""))
        if here in added:
            package = _package(added[here])
            if not isinstance(error, SystemExit):
                return BadInput(f"{package}, which adds to perse, failed in {_line(frames[at])}: {_words(error)}; {_REMEDY}")
            if _called_by_perse(frames[:at]):
                return BadInput(f"{package}, which adds to perse, wanted to end it, in {_line(frames[at])}; {_REMEDY}")
            return None
        if here == _home(__name__) and not isinstance(error, SystemExit) and (made := _makers(frames[at]) & added.keys()):
            package = _package(added[min(made)])
            return BadInput(
                f"{package}, which adds to perse, gave something that {_line(frames[at])}, cannot use: {_words(error)}; {_REMEDY}"
            )
    return None


_REMEDY = "what was finished is kept: report it to its authors, or uninstall it"
_NO_CALLERS = ("perse.__main__", "perse.commands.app", "perse.commands.terminal")
"""They run whole commands, also those of other packages."""


def _called_by_perse(frames: Iterable[FrameType]) -> bool:
    names = [str(frame.f_globals.get("__name__", "")) for frame in frames]
    return any(_home(name) == _home(__name__) and name not in _NO_CALLERS for name in names)


def _makers(frame: FrameType) -> set[str]:
    """The packages of what a function has at hand, and of what that is made of."""
    held = [*frame.f_locals.values()]
    held += [part for one in held for part in getattr(one, "__dict__", {}).values()]
    return {
        _home(one.__module__ if isinstance(one, type | FunctionType | MethodType) else type(one).__module__) for one in held
    }


def _home(module: str | None) -> str:
    return (module or "").partition(".")[0]


def _line(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__')}, line {frame.f_lineno}"
