"""The examples of a file, a folder, a glob or an object store, one by one, each with the place where it stands.

Formats are those of `perse.data.sources.lines` (JSON lines, CSV, Parquet, each but the last also as .gz). A column that an example nests (`profile`,
`query`, `reference`, ...) holds JSON where the format has no nesting. What is in an object store (any URL of fsspec, `s3://bucket/examples/*.jsonl.gz`) is
fetched file by file.
"""

from __future__ import annotations

import glob
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from perse.data.examples_file import shown_query
from perse.data.sources.lines import holds_records, is_csv, read_records, suffix
from perse.data.sources.whole import without_nulls
from perse.errors import BadInput
from perse.files.runlog import MANIFEST, file_digest
from perse.formats.json_text import parsed
from perse.formats.plain_files import refuse_endless
from perse.installing import install
from perse.records import Example, parse_example

NESTED = ("[", "{")
"""How the cell of a CSV file begins that holds a list or an object."""
SPARED = 2**30
"""Bytes of the disk that a file which is fetched leaves free."""


@dataclass(frozen=True)
class Row:
    """An example and where it stands."""

    example: Example
    file: str
    line: int
    adapter: str = ""
    """The name of the adapter that judges it; empty for the judge as it is."""


def read_inputs(place: str) -> Iterator[Row]:
    """The examples of all files at `place`, in the order of their names. All are of one kind.

    Raises:
        BadInput: nothing is there, or file, line and field of the first problem.
    """
    known, first = "", ""
    for path, name in files_at(place):
        for line, fields in read_records(path):
            where = f"{name}, line {line}"
            adapter = fields.pop("adapter", None) or ""
            if not isinstance(adapter, str):
                raise BadInput(f"{where}: field 'adapter' is no name")
            try:
                example = parse_example(nested(fields) if is_csv(path) or suffix(path) == ".parquet" else fields)
            except BadInput as error:
                raise BadInput(f"{where}: {error}") from None
            if shown_query(example):
                raise BadInput(f"{where}: the query stands in its own profile; the judge would only have to copy the answer")
            kind = example.in_one_file
            if not (kind.startswith(known) or known.startswith(kind)):
                raise BadInput(
                    f"{where}: {kind} examples, where {first} has {known} ones; a run asks one question: put them in two"
                )
            known, first = max(known, kind, key=len), first or where
            yield Row(example, name, line, adapter)


def digest_of_inputs(place: str) -> str:
    """One digest of all files at `place`, whatever they are called.

    Raises:
        BadInput: as `read_inputs`.
    """
    return together(digests_of(place))


def digests_of(place: str) -> list[str]:
    """The digest of each file at `place`, as `digest_of_inputs` gives it of that file alone.

    Raises:
        BadInput: as `read_inputs`.
    """
    digests = []
    for path, name in files_at(place):
        if not path.exists():
            raise BadInput(f"{name}: no such file")
        refuse_endless(path)
        digests.append(file_digest(path))
    return digests


def together(digests: Sequence[str]) -> str:
    """One digest of several, whatever their order."""
    return sha256("\n".join(sorted(digests)).encode()).hexdigest()


def nested(fields: dict[str, Any]) -> dict[str, Any]:
    """A row of a table as an example's fields: empty cells are left out, and cells that hold JSON are read.

    Raises:
        BadInput: what begins as JSON is none.
    """
    told: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None or value == "":
            continue
        if (
            name in ("profile", "reference", "query", "claims", "candidates")
            and isinstance(value, str)
            and value.lstrip().startswith(NESTED)
        ):
            try:
                value = parsed(value)
            except ValueError as error:
                if name == "query":  # a text may begin with a bracket
                    told[name] = value
                    continue
                raise BadInput(f"column '{name}' holds no JSON ({error})") from None
        told[name] = without_nulls(value)
    return told


def files_at(place: str) -> Iterator[tuple[Path, str]]:
    """Every file at `place` with the name that messages give it, one after the other.

    Raises:
        BadInput: there is none.
    """
    if "://" in place:
        yield from _fetched(place)
        return
    path = Path(place)
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if one.is_file() and holds_records(one) and one.name != MANIFEST)
        if not found:
            raise BadInput(f"{path}: the folder has no file of examples; expected .jsonl, .csv or .parquet files")
    elif path.exists() or not glob.has_magic(place):
        found = [path]
    else:
        found = sorted(Path(one) for one in glob.glob(place, recursive=True))  # noqa: PTH207  # an absolute pattern, too
        if not found:
            raise BadInput(f"{place}: no file has such a name")
    yield from ((one, str(one)) for one in found)


def files_here(place: str) -> list[Path]:
    """The files at `place` that lie on this machine; none of an object store.

    Raises:
        BadInput: there is none.
    """
    return [] if "://" in place else [path for path, _ in files_at(place)]


def for_shards_alone(place: str) -> bool:
    """Whether only runs in shards read what is at `place`: several files, CSV, or an object store."""
    path = Path(place)
    if path.is_dir():
        return not (path / MANIFEST).exists() and any(one.is_file() and holds_records(one) for one in path.iterdir())
    if path.exists():
        return is_csv(path)
    return "://" in place or glob.has_magic(place) or is_csv(path) or suffix(path) == ".parquet"


def _fetched(url: str) -> Iterator[tuple[Path, str]]:
    try:
        import fsspec
    except ImportError:
        raise BadInput(f"to read {_shown(url)}, install fsspec: {install('batch')}") from None
    try:
        files, paths = fsspec.core.url_to_fs(url)
        found = sorted(files.glob(paths)) if glob.has_magic(paths) else [paths]
        named = holds_records(Path(urlsplit(found[0]).path)) if len(found) == 1 else True
        if not named and files.isdir(found[0]):  # over HTTP all of a file is read to see whether it is a folder
            found = sorted(one for one in files.ls(found[0], detail=False) if holds_records(Path(one)))
    except Exception as error:  # noqa: BLE001  # each store has errors of its own, whose words may hold a key
        raise BadInput(f"{_shown(url)} cannot be looked at ({type(error).__name__})") from None
    if not found:
        raise BadInput(f"{_shown(url)}: no file has such a name")
    for one in found:
        with _ended_as_by_ctrl_c(), tempfile.TemporaryDirectory(prefix="perse-") as folder:
            # Of a signed address the name ends before its parameters; what they hold is a key, and goes into no file.
            here, name = Path(folder) / PurePosixPath(urlsplit(one).path).name, _shown(str(files.unstrip_protocol(one)))
            try:
                files.get_file(one, str(here), callback=_room(folder))
            except _NoRoom:
                raise BadInput(
                    f"{name} is larger than the disk of {tempfile.gettempdir()} has room for; set TMPDIR to a larger one"
                ) from None
            except Exception as error:  # noqa: BLE001  # as above
                raise BadInput(f"{name} cannot be read ({type(error).__name__})") from None
            yield here, name


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """SIGTERM takes what was fetched away, as Ctrl-C does; where it is another's to handle, it stays theirs."""
    begins = signal.getsignal(signal.SIGTERM)
    if begins is not signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, begins)


class _NoRoom(Exception):
    """A file that is fetched takes what the disk should keep."""


def _room(folder: str) -> Any:
    """Looks at the disk at each part of a file that is fetched: a server may send without end."""
    from fsspec.callbacks import Callback

    class Room(Callback):  # type: ignore[misc]
        def call(self, *_: object, **__: object) -> None:
            if shutil.disk_usage(folder).free < SPARED:
                raise _NoRoom

    return Room()


def _shown(address: str) -> str:
    """An address without names, passwords and parameters."""
    begin, kind, rest = address.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{begin}{kind}{host.rpartition('@')[2]}{slash}{path.partition('?')[0].partition('#')[0]}"
