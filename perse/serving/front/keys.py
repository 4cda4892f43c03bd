"""API keys: who asks, and what they may do.

Keys stand in the environment (PERSE_API_KEY, PERSE_ADMIN_KEY) or, any number of them, in a file that holds their SHA-256 only: a
key has 256 random bits, so its digest gives nothing away. The file is read again when it changes, so that keys come and go
without a restart. A line of it:

    NAME SCOPE[,SCOPE] DATE SHA256

Two lines of one name are two keys of one caller, whose readers are the same: so a key is replaced by adding the new one, changing
the clients, and removing the old one.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from perse.errors import BadInput, SaveFailed
from perse.files.disk import refuse_link, write_bytes
from perse.files.locking import locked
from perse.formats.plain_files import own_bytes, refuse_larger
from perse.secrets import without_keys
from perse.settings.serving import ADMIN_KEY, KEY

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""Seconds between looks at the file of keys."""

_LARGEST = 1 << 24
"""Bytes of a file of keys, of which a line has some hundred: a running server reads it between two requests."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""With their ends. Other characters that Python takes for ends of lines may stand in a comment."""
_LINE = re.compile(rf"({_NAME.pattern}) ([a-z,]+) (\d{{4}}-\d\d-\d\d) ([0-9a-f]{{64}})")


class Scope(StrEnum):
    """What a key lets its bearer do."""

    JUDGE = "judge"
    """Ask the judge, and the routes of OpenAI's API."""
    READERS = "readers"
    """Keep, read and delete readers: the bearer's own."""
    ADMIN = "admin"
    """All of it, and what changes the server: adapters, and vLLM's other routes."""


@dataclass(frozen=True)
class Caller:
    """Who asks; `name` is whose readers they see."""

    name: str
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


@dataclass(frozen=True)
class StoredKey:
    """A line of the file of keys."""

    caller: Caller
    since: str
    digest: str

    def __str__(self) -> str:
        return f"{self.caller.name} {','.join(sorted(self.caller.scopes))} {self.since} {self.digest}"


OWNER = "default"
"""The name of whoever has the key of the environment, or asks from this machine where there is none."""

_OWNERS = f"'{OWNER}' is the caller of PERSE_API_KEY, whose readers such a key would see"

ANYONE_HERE = Caller(OWNER, frozenset({Scope.JUDGE, Scope.READERS}))


class Keys:
    """The keys of one server.

    Args:
        usual: the key in PERSE_API_KEY: judge and readers.
        admin: the key in PERSE_ADMIN_KEY: everything.
        file: further keys.
    Raises:
        BadInput: the file cannot be read, or a line of it not; or a key of it is in the environment, too.
    """

    def __init__(
        self, usual: str | None, admin: str | None, file: Path | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        given = [(usual, ANYONE_HERE), (admin, Caller(OWNER, frozenset(Scope)))]
        self._fixed = [StoredKey(caller, "", digest_of(key)) for key, caller in given if key]
        self._file = file
        self._clock = clock
        self._stored = read_keys(file) if file else []
        self._looked, self._state = clock(), _state(file)
        for variable, key in ((KEY, usual), (ADMIN_KEY, admin)):
            for stored in self._stored if key else ():
                if key and hmac.compare_digest(stored.digest, digest_of(key)):
                    raise BadInput(
                        f"{variable} holds the key of '{stored.caller.name}' in {file}, which would be let in after it was removed there; "
                        f"start the server without it (unset {variable}), or with another key in it"
                    )

    @property
    def wanted(self) -> bool:
        """Whether a caller needs one."""
        return bool(self._fixed or self._file)

    def caller(self, key: str) -> Caller | None:
        """Whose key this is; it takes as long for a wrong one."""
        self._look()
        asked = digest_of(key)
        found = None
        for stored in (*self._fixed, *self._stored):
            if hmac.compare_digest(stored.digest, asked):
                found = stored.caller
        return found

    def _look(self) -> None:
        """Read the file again if it has changed. One that cannot be read changes nothing."""
        if self._file is None or self._clock() - self._looked < LOOK_EVERY:
            return
        self._looked = self._clock()
        state = _state(self._file)
        if state == self._state:
            return
        self._state = state
        try:
            self._stored = read_keys(self._file)
            log.info("%s was read again: %d keys", self._file, len(self._stored))
        except BadInput as error:
            log.error("%s; the keys stay as they were", error)


def _check_place(file: Path) -> None:
    """Raises:
    BadInput: keys cannot be written there; a link would become a file of its own, and the keys where it leads stay as they were.
    """
    if not file.name or file.is_dir():
        raise BadInput(f"{file} is a folder; name a file of keys")
    refuse_link(file)


def digest_of(key: str) -> str:
    """SHA-256 of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(file: Path) -> list[StoredKey]:
    """The keys in a file.

    Raises:
        BadInput: no such file, a line that is no key, or one of the environment's caller; the message has the line's number.
    """
    return [one for one in _lines(file) if isinstance(one, StoredKey)]


def _lines(file: Path) -> list[StoredKey | str]:
    """The lines of a file: keys, and what is written between them, with its ends of lines."""
    found: list[StoredKey | str] = []
    try:
        refuse_larger(file, file.stat().st_size, most=_LARGEST, remedy="name the file of keys that 'perse keys add' writes")
        lines = _LINES.findall(own_bytes(file).decode())  # as they are: no end of a line is another
    except FileNotFoundError:
        raise BadInput(f"there is no file of keys at {file}; 'perse keys add {file} NAME' makes one") from None
    except UnicodeDecodeError:
        raise BadInput(f"{file} is not UTF-8; save it as UTF-8, or move it away") from None
    except OSError as error:
        raise BadInput(
            f"{file}: cannot be read ({error.strerror or error}); look after its disk, or name another file"
        ) from None
    for number, line in enumerate(lines, start=1):
        said = line.removeprefix("\ufeff") if number == 1 else line  # some editors put a mark before the first
        if not said.strip() or said.startswith("#"):
            found.append(line if line.endswith(("\r", "\n")) else f"{line}\n")
            continue
        match = _LINE.fullmatch(said.strip())
        if match is None:
            raise BadInput(f"{file}:{number}: found no key; expected 'NAME SCOPES DATE SHA256', as 'perse keys add' writes it")
        name, scopes, since, digest = match.groups()
        if name == OWNER:
            raise BadInput(f"{file}:{number}: {_OWNERS}; give the key another name there, or remove the line")
        found.append(StoredKey(Caller(name, scopes_of(scopes.split(","))), since, digest))
    return found


def add_key(file: Path, name: str, scopes: Iterable[str]) -> str:
    """A new key, of which the file keeps the digest; this is the only time that it is seen.

    Raises:
        BadInput: a name that cannot be one, an unknown scope, or a file that cannot be read.
    """
    if not _NAME.fullmatch(name):
        raise BadInput(f"'{name}' cannot name a key; give up to 64 letters, digits, '.', '_' or '-'")
    if without_keys(name) != name:
        raise BadInput("the name holds a key that is known here, and would stand in the file; give another")
    key, caller = f"perse_{secrets.token_urlsafe(32)}", Caller(name, scopes_of(scopes))
    if name == OWNER:
        raise BadInput(f"{_OWNERS}; give another name")
    if _swapped(file, name):
        raise BadInput(
            f"found no file {file}, and {name} in the place of a name; the file comes first: perse keys add {name} {file}"
        )
    new = StoredKey(caller, datetime.now(UTC).date().isoformat(), digest_of(key))
    _check_place(file)
    with locked(file):
        there = file.exists()
        lines = _lines(file) if there else [f"{ABOUT}\n"]
        file.touch(mode=0o600)
        try:
            _write(file, [*lines, new])
        except SaveFailed:
            if not there:  # an empty file of keys would be one that lets nobody in
                file.unlink()
            raise
    return key


def _swapped(file: Path, name: str) -> bool:
    """Whether the name of a file stands where a caller's name is expected, and the other way round."""
    return not file.suffix and not file.exists() and (Path(name).suffix in _FILES or Path(name).is_file())


def remove_keys(file: Path, name: str, *, digest: str = "") -> int:
    """Remove the keys of `name`, or of these the one whose digest begins so; how many there were.

    Raises:
        BadInput: there is none.
    """
    _check_place(file)
    with locked(file):
        lines = _lines(file)
        theirs = [
            one for one in lines if isinstance(one, StoredKey) and one.caller.name == name and one.digest.startswith(digest)
        ]
        if not theirs:
            names = sorted({one.caller.name for one in lines if isinstance(one, StoredKey)})
            raise BadInput(f"{file} holds no such key of '{name}'; there are keys of {', '.join(names) or 'nobody'}")
        _write(file, [one for one in lines if one not in theirs])
    return len(theirs)


def scopes_of(names: Iterable[str]) -> frozenset[Scope]:
    """The scopes by their names.

    Raises:
        BadInput: an unknown one, or none.
    """
    given = list(names)
    unknown = [name for name in given if name not in set(Scope)]
    if unknown or not given:
        raise BadInput(f"found the scopes '{','.join(given)}'; expected some of {', '.join(Scope)}")
    return frozenset(map(Scope, given))


_FILES = (".txt", ".keys", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".csv", ".conf")

ABOUT = "# Keys of a perse server: digests only. Change it with 'perse keys add' and 'perse keys remove'."


def _write(file: Path, lines: Iterable[StoredKey | str]) -> None:
    """Keeps the file's mode; and its words as they are, of which none is a key."""
    write_bytes(file, "".join(one if isinstance(one, str) else f"{one}\n" for one in lines).encode())


def _state(file: Path | None) -> tuple[int, int, int] | None:
    try:
        found = file.stat() if file else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None
