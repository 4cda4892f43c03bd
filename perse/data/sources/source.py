"""A source of data: one raw format, how it is recognised, which columns hold what, and how it is read.

A new one is a file with a `Source` and a line in the registry (`perse.data.sources`), or an entry point of another package.
It needs a name, a title, `recognise` and, if data sets are built from it, `read`; the description of `perse data describe`
and the command that it shows then follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

from perse.data.sources.facts import Facts, record_facts
from perse.data.sources.faults import Faults
from perse.data.sources.lines import column_names, first_fields, holds_records, is_csv, read_records, suffix
from perse.data.sources.rows import Row
from perse.records import Comparison, Kind, Review
from perse.records.columns import Header, Role, plain_name

LOOKED_AT = 20
"""Records that are read to recognise a file."""


@dataclass(frozen=True)
class Head:
    """The beginning of a file, by which it is recognised. Each part is read when a source first asks for it.

    Raises (of each part but `path` and `suffix`):
        BadInput: the file is absent, empty or damaged.
    """

    path: Path

    @property
    def suffix(self) -> str:
        """The end of its name in lower case, such as ".jsonl"; `.gz` does not count."""
        return suffix(self.path)

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The first line of a CSV or TSV file, which may be its header or not; nothing for other files."""
        return tuple(first_fields(self.path)) if not self.path.is_dir() and is_csv(self.path) else ()

    @cached_property
    def records(self) -> tuple[Mapping[str, object], ...]:
        """column -> value of the first records that can be read; none where the name says no format that has records."""
        if self.path.is_dir() or (self.path.exists() and not holds_records(self.path)):
            return ()
        records = read_records(self.path, Faults("skip", keep=1), literals=True)
        return tuple(values for _, values in islice(records, LOOKED_AT))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of these records."""
        return tuple(dict.fromkeys(name for values in self.records for name in values))

    @cached_property
    def plain_names(self) -> frozenset[str]:
        """The columns without case, spaces and punctuation (`columns.plain_name`)."""
        return frozenset(map(plain_name, self.names))

    def has(self, role: Role, *fields: str, columns: Mapping[str, str] | None = None) -> bool:
        """Whether each of these fields of `role` has a column; `columns` is the user's mapping."""
        header = Header(self.names, columns or {}, role=role)
        return all(header.columns_for(field) is not None for field in fields)


@dataclass(frozen=True)
class Columns:
    """The columns of a file, and which of them are taken for which field (several joined by +)."""

    names: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """The findings of a description, for the command that it shows last."""

    file: str
    """Quoted for a shell."""
    fields: Mapping[str, str]
    """As in `Columns`."""
    scores: Mapping[str, int]
    """score as in the file -> how many."""
    stops: bool = False
    """Whether there are rows at which a build stops unless it may skip them."""
    shared_count: int | None = None
    """The most usable rows that each of two reviewers have, without whom nothing can be split; None where not all rows were read."""
    repeats: bool = False
    """Whether so many reviews of a reader say the same that a build may find no profile without one that says what is asked for."""
    crossed: bool = False
    """Whether readers compare so much the same pairs that training is left with nothing where both sides may share none."""
    reviews: str = "REVIEWS"
    items: str = "ITEMS"
    meta: str = "META"
    """The files that lie beside this one and belong to it, quoted for a shell; what is not known stands in capitals, to be filled in."""
    judge: str = "JUDGE"
    out: str = "OUT"

    @property
    def needed(self) -> str:
        """The options without which a build of these rows stops, or finds no reader: defaults as in PerSE (6 reviews, k = 3)."""
        skip = self.skip + (" --keep-repeats" if self.repeats else "")
        if self.shared_count is None or not 2 <= self.shared_count < 6:
            return skip
        fewer = f" --k {self.shared_count - 1}" if self.shared_count <= 3 else ""
        return f"{fewer} --min-reviews {self.shared_count}{skip}"

    @property
    def skip(self) -> str:
        """The option without which a build stops at the rows that cannot be used."""
        return " --on-error skip" if self.stops else ""

    @property
    def split(self) -> str:
        """The option without which a build of these comparisons finds nothing for training."""
        return " --split reviewer" if self.crossed else ""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The request of a build to a source."""

    file: Path
    items: Path | None = None
    """The second file, with the texts by item id, where the source has one."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our field -> the user's column (`perse.records.columns`), binding."""
    scale: tuple[float, float] = (1, 10)
    """Lowest and highest score of the raw data; `perse.scale.rescale` takes scores to 1-10."""
    limit: int | None = None
    """Read at most so many rows."""


def first_columns(path: Path) -> Columns:
    """The columns of the first record, none of which is taken for a field."""
    return Columns(tuple(column_names(path)))


def table_columns(rows: Iterator[Row], role: Role) -> Columns:
    """The columns of the first of `rows`, and which of them are taken for the fields of `role`."""
    row = next(rows, None)
    if row is None:
        return Columns()
    found = {name: row.header.columns_for(name) for name in role.fields}
    return Columns(row.header.names, {name: "+".join(columns) for name, columns in found.items() if columns})


@dataclass(frozen=True, kw_only=True)
class Source:
    """One raw format. All functions take a path of it; bad rows go to the faults, a bad file raises `BadInput`."""

    name: str
    """What `--source` calls it."""
    title: str
    """The name of the format for people."""
    recognise: Callable[[Head], bool]
    """Whether a file is one. The sources are asked in the order of the registry; the first that says yes has it."""
    columns: Callable[[Path], Columns] = first_columns
    kind: Kind | None = None
    """Of which kind the records are that `read` gives; None where nothing is built from such files alone."""
    read: Callable[[Wanted, Faults], Sequence[Review] | Sequence[Comparison]] | None = None
    """The records, in the order of the file, under the names that the reviewers have there; a build gives them their ids."""
    files: tuple[str, ...] = ()
    """What the manifest calls the files that `read` takes; the second, where there is one, is `Wanted.items`."""
    scale: tuple[float, float] | None = None
    """Lowest and highest score, if the format fixes them."""
    facts: Callable[[Path, Faults], Iterable[Facts]] | None = None
    """The facts for a description; by default those of the records of `read`."""
    once: Literal["item", "review"] | None = None
    """What may stand in a file only once: an item, or a reviewer's review of an item; more are counted as problems."""
    next: Callable[[Seen], str] | None = None
    """The command that builds from a file; by default that of `read`. Words in capitals are to be filled in."""
    note: Callable[[Seen], str | None] | None = None
    """What must be known before that command is typed, if anything."""

    def facts_of(self, path: Path, faults: Faults) -> Iterable[Facts]:
        """The facts of each record."""
        if self.facts is not None:
            return self.facts(path, faults)
        records = self.read(Wanted(file=path), faults) if self.read else ()
        return (record_facts(asdict(record)) for record in records)

    def next_command(self, seen: Seen) -> str:
        """The next command to type."""
        if self.next is not None:
            return self.next(seen)
        if self.kind is None:
            return "nothing: no data set is built from such a file"
        main = "--reviews" if self.kind == "pointwise" else "--pairs"
        items = f" --items {seen.items}" if len(self.files) > 1 else ""
        return f"perse data {self.kind} --source {self.name} {main} {seen.file}{items} --out {seen.out}"
