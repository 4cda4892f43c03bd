"""The store of readers: one row a reader, in SQLite or any database that SQLAlchemy reaches.

A reader belongs to the caller who put it (`owner`), and no other caller's request reaches it. A write is one transaction, on disk
before it is acknowledged. Whoever is deleted is also gone from SQLite's file, not only from its tables.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from pydantic import ConfigDict, ValidationError
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from perse.errors import BadInput
from perse.records import ProfileComparison, ProfileReview, explain
from perse.secrets import without_keys
from perse.serving.problems import StoreFailed
from perse.serving.readers.file import BUSY_SECONDS, check_file
from perse.strict import Strict

VERSION = 1
"""Of the tables."""
MOST_ENTRIES, MOST_TEXT = 2000, 2 * 2**20
"""Reviews and comparisons of one reader, and the bytes of JSON that they make."""

_TABLES = sql.MetaData()
_META = sql.Table("perse_meta", _TABLES, sql.Column("version", sql.Integer, primary_key=True))
_READERS = sql.Table(
    "perse_readers",
    _TABLES,
    sql.Column("owner", sql.String(64), primary_key=True),
    sql.Column("reader", sql.String(200), primary_key=True),
    sql.Column("record", sql.Text, nullable=False),
    sql.Column("updated", sql.Float, nullable=False),
)


class Reader(Strict):
    """What is kept of a reader: past reviews and comparisons, oldest first."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reviews: tuple[ProfileReview, ...] = ()
    comparisons: tuple[ProfileComparison, ...] = ()


@dataclass(frozen=True)
class Kept:
    """A reader as it is kept, and when it was put, in seconds since 1970."""

    record: Reader
    updated: float


class Readers:
    """See the module. Made by `open`; used by several threads at once."""

    def __init__(self, engine: sql.Engine, *, name: str) -> None:
        self.name = name
        self._engine = engine
        self._sqlite = engine.dialect.name == "sqlite"
        self._file = _identity(engine.url) if self._sqlite else None

    @classmethod
    def open(cls, where: str) -> Readers:
        """The store at a file's path (SQLite, made if it is not there), or at an SQLAlchemy URL.

        Raises:
            BadInput: a file that is none of ours, tables of a newer perse, an address that cannot be used. No message has its password.
            StoreFailed: it cannot be reached.
        """
        given = "give a file's path, or an SQLAlchemy URL (postgresql+psycopg://USER:PASSWORD@HOST/NAME)"
        if _may_be_an_address(where):
            raise BadInput(f"the place of the readers looks like an address without its '://'; {given}")
        try:
            url = sql.make_url(where) if "://" in where else _sqlite_url(Path(where))
            # A query may hold a password, too.
            name = url.set(query={}).render_as_string(hide_password=True) if "://" in where else where
            if url.get_backend_name() == "sqlite":
                check_file(Path(url.database or ":memory:"))
            elif "@" in f"{url.host}{url.database}":  # some of the password is taken for these, which messages repeat
                raise BadInput(
                    f"the address of the readers' database has an '@' too many; write one in a password as %40; {given}"
                )
            engine = sql.create_engine(url, **_options(url))
        except ImportError as error:
            driver = error.name or "of the address"
            raise BadInput(
                f"the readers' database needs the driver {driver}, which is not installed; run: pip install {driver}"
            ) from None
        except (SQLAlchemyError, ValueError, TypeError) as error:  # their messages repeat parts of the address
            raise BadInput(f"the address of the readers' database cannot be read ({type(error).__name__}); {given}") from None
        store = cls(engine, name=name)
        store._make()
        return store

    def put(self, owner: str, reader: str, record: Reader) -> bool:
        """Keep this, and nothing else, of a reader; whether the reader is new.

        Raises:
            BadInput: too much of it, or a key that this process knows stands in it.
            StoreFailed: it is not kept, and what was before is.
        """
        entries, text = len(record.reviews) + len(record.comparisons), record.model_dump_json(exclude_defaults=True)
        if entries > MOST_ENTRIES or len(text.encode()) > MOST_TEXT:
            raise BadInput(
                f"found {entries:,} reviews and comparisons of {len(text.encode()):,} bytes; of one reader at most {MOST_ENTRIES:,} "
                f"are kept, of {MOST_TEXT:,} bytes; leave out the oldest"
            )
        told = f"{reader}\n{text}"
        if without_keys(told) != told:
            raise BadInput(
                "found a key of this server in the reader's name or reviews, where it would be kept in a file; take it out"
            )
        row = {"owner": owner, "reader": reader, "record": text, "updated": time.time()}
        with self._writing() as connection:
            here = _row(owner, reader)
            known = connection.execute(sql.delete(_READERS).where(here)).rowcount
            connection.execute(sql.insert(_READERS).values(row))
        return known == 0

    def get(self, owner: str, reader: str) -> Kept | None:
        """What is kept of a reader; None where there is none.

        Raises:
            StoreFailed: it cannot be read.
        """
        with self._failing(), self._engine.connect() as connection:
            found = connection.execute(sql.select(_READERS.c.record, _READERS.c.updated).where(_row(owner, reader))).first()
        if found is None:
            return None
        try:
            return Kept(Reader.model_validate(json.loads(found.record)), found.updated)
        except (ValidationError, ValueError) as error:
            why = explain(error) if isinstance(error, ValidationError) else "no JSON"
            raise StoreFailed(f"what {self.name} keeps of this reader is damaged ({why}); put the reader again") from None

    def delete(self, owner: str, reader: str) -> bool:
        """Remove a reader, from SQLite's file too; whether there was one.

        Raises:
            StoreFailed: the reader may still be there.
        """
        with self._writing() as connection:
            gone = connection.execute(sql.delete(_READERS).where(_row(owner, reader))).rowcount
        self._wipe()
        return bool(gone)

    def delete_everywhere(self, reader: str) -> int:
        """Remove whoever is called so, whoever put them; how many there were."""
        with self._writing() as connection:
            gone = connection.execute(sql.delete(_READERS).where(_READERS.c.reader == reader)).rowcount
        self._wipe()
        return int(gone)

    def names(self, owner: str, *, after: str = "", count: int = 1000) -> list[str]:
        """Names of an owner's readers in their order, at most `count`, those beyond `after`."""
        chosen = sql.select(_READERS.c.reader).where(_READERS.c.owner == owner, _READERS.c.reader > after)
        with self._failing(), self._engine.connect() as connection:
            return list(connection.scalars(chosen.order_by(_READERS.c.reader).limit(count)))

    def count(self) -> int:
        """Readers kept, of all owners."""
        with self._failing(), self._engine.connect() as connection:
            return int(connection.scalar(sql.select(sql.func.count()).select_from(_READERS)) or 0)

    def close(self) -> None:
        self._engine.dispose()

    def _make(self) -> None:
        with self._writing() as connection:
            _TABLES.create_all(connection)
            version = connection.scalar(sql.select(sql.func.max(_META.c.version)))
            if version is None:
                connection.execute(sql.insert(_META).values(version=VERSION))
            elif version > VERSION:
                raise BadInput(
                    f"{self.name} was made by a newer perse (its tables are of version {version}, {VERSION} is known here)"
                )

    def _wipe(self) -> None:
        """Have what was deleted leave the write-ahead log too.

        SQLite refuses a checkpoint at once while another runs, and does not wait as it does for a lock. The other may have begun
        before our deletion, so ours is tried again.
        """
        if not self._sqlite:
            return
        until = time.monotonic() + BUSY_SECONDS
        with self._failing(), self._engine.connect() as connection:
            while connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar():
                if time.monotonic() > until:
                    raise StoreFailed(f"{self.name} is being read; what was deleted is still in its log; delete it again")
                time.sleep(0.01)

    @contextmanager
    def _writing(self) -> Iterator[sql.Connection]:
        if self._sqlite and _identity(self._engine.url) != self._file:  # SQLite would write on into what has no name any more
            raise StoreFailed(
                f"{self.name} was moved, removed or replaced under this server; put it back, or start the server again"
            )
        with self._failing(), self._engine.begin() as connection:
            if self._sqlite:  # from the start, so that two writers wait for each other instead of failing halfway
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:  # its own message holds the statement, with texts
            raise StoreFailed(f"{self.name} cannot be used now ({error.orig}); look after it, and ask again") from None
        except SQLAlchemyError as error:
            raise StoreFailed(
                f"{self.name} cannot be used now ({type(error).__name__}); look after it, and ask again"
            ) from None


def _row(owner: str, reader: str) -> Any:
    return (_READERS.c.owner == owner) & (_READERS.c.reader == reader)


def _may_be_an_address(where: str) -> bool:
    """Whether this is rather an address with a slip of the pen than a file's path; its password would become a file's name. A path
    from the root is one, whatever it holds."""
    from_root = where.startswith("/") and not where.startswith("//")
    return "://" not in where and not from_root and ("@" in where or "//" in where)


def _sqlite_url(path: Path) -> sql.URL:
    return sql.URL.create("sqlite", database=str(path))


def _identity(url: sql.URL) -> tuple[int, int] | None:
    """Which file is at the place of a database; None where there is none."""
    try:
        found = Path(str(url.database)).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _options(url: sql.URL) -> dict[str, Any]:
    if url.get_backend_name() != "sqlite":
        return {"pool_pre_ping": True}

    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(str(url.database), timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        for pragma in ("secure_delete = ON", "journal_mode = WAL", "synchronous = FULL"):
            made.execute(f"PRAGMA {pragma}")
        return made

    return {"creator": connect}
