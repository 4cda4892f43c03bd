"""A table of items -> the same table with rewritten texts: what `perse data anonymize` and `perse data summarize` do.

For data that is not Per-MPST: the result is an items file for `perse data pointwise --items`. OUT.work, next to it, holds
the rest: the writer's answers, and for each item its title, original names and what was done. `summarize`
finds it beside the table that `anonymize` wrote, so that no title and no original name comes back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

import perse
from perse.data.rewriting.plots import NONE, RewriteOptions, Rewritten, json_lines, rewrite
from perse.data.sources.faults import Faults, OnError, skipped_lines
from perse.data.sources.mpst import read_mpst
from perse.errors import BadInput
from perse.files.belongings import LIST, MANIFEST, check_file, manifest_of, target_of
from perse.files.exports import Fields
from perse.files.locking import locked
from perse.files.own_files import write_own
from perse.files.runlog import file_digest, name_and_digest, read_lines, write_whole
from perse.formats.plain_files import unchanged_while_read
from perse.progress import OnPart, unseen_part
from perse.records import explain
from perse.secrets import without_keys
from perse.strict import Strict

AUDIT = "rewriting.jsonl"
SKIPPED = "skipped.jsonl"
TABLE = "table_sha256"
"""The manifest's key that links the work folder to its table."""
_TABLE = Fields(needed=("item_id", "text"), known=("item_id", "text"))
"""What the table's lines have."""


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The table to read and the one to write. Raises BadInput for invalid settings."""

    items: Path
    out: Path
    """A JSON lines file."""
    columns: Mapping[str, str]
    """The user's mapping: `items.item_id`, `items.text`."""
    rewriting: RewriteOptions
    seed: int = 0
    on_error: OnError = "stop"
    overwrite: bool = False

    def __post_init__(self) -> None:
        wrong = {
            f"{self.out}: the result is JSON lines; give a name that ends in .jsonl": self.out.suffix != ".jsonl",
            f"{self.out}: is the table itself; give another --out": self.out.resolve() == self.items.resolve(),
            f"{self.out}: already there; give another --out, or --overwrite to replace it": self.out.exists()
            and not (self.overwrite and self.out.is_file()),
            "writer none leaves the texts as they are: there is nothing to do": self.rewriting.writer == NONE,
        }
        if problems := [message for message, holds in wrong.items() if holds]:
            raise BadInput(problems[0])
        check_file(self.out, alike=[_TABLE], overwrite=self.overwrite, inputs=(self.items, self.rewriting.cache))


def work_folder(out: Path) -> Path:
    """The work folder of a build.

    Raises:
        BadInput: there is no place beside it.
    """
    named = out if out.name not in ("", "..") else target_of(out)
    if not named.name:
        raise BadInput(f"--out {out}: nothing can stand beside it; give a name within a folder")
    return named.with_name(named.name + ".work")


def check_work(out: Path, names: Iterable[str], *, inputs: Iterable[Path]) -> None:
    """That a build can write its work folder, before any text is rewritten.

    Args:
        names: of the files to write there.
        inputs: what is read, and must not lie there.
    Raises:
        BadInput: something is in the way.
    """
    work = work_folder(out)
    if inside := next((path for path in inputs if path.resolve().is_relative_to(work.resolve())), None):
        raise BadInput(f"{inside}: lies in {work}, where this build writes; move it away, or give another --out")
    if os.path.lexists(work) and not work.is_dir():
        found = f"a link to {work.readlink()}, which is no folder" if work.is_symlink() else "no folder"
        raise BadInput(f"{work}: is {found}, and the original names are to be kept there; move it away, or give another --out")
    for name in names:
        if (work / name).is_dir():
            raise BadInput(f"{work / name}: is a folder, where a file is to be written; move it away, or give another --out")


def answers_file(out: Path, given: Path | None) -> Path:
    """Where the writer's answers are kept: the file that was given, or one in the work folder.

    Raises:
        BadInput: it lies among the files that a build replaces, which would lose the answers.
    """
    own = work_folder(out) / "answers.sqlite"
    if given is None or target_of(given) == target_of(own):
        return own
    for place in (out, work_folder(out)):
        if target_of(given).is_relative_to(target_of(place)):
            raise BadInput(
                f"--cache {given} is among the files that a build of {place} replaces; leave it out, or choose another place"
            )
    return given


def rewrite_table(options: TableOptions, *, on_progress: OnPart = unseen_part) -> tuple[Rewritten, Faults]:
    """Rewrites the texts of a table (id, text and perhaps title); also gives the rows that could not be read.

    Raises:
        BadInput: a file that cannot be read, a writer that cannot be asked, or nothing came through.
        EngineLost: the writer failed at everything; the same command continues.
    """
    with locked(target_of(options.out)):
        return _rewrite(options, on_progress)


class _Before(Strict):
    """What the next rewriting needs of an earlier one of a text."""

    item_id: str
    title: str | None = None
    names: dict[str, str]


def _anonymized_before(path: Path) -> dict[str, _Before]:
    """By item id; empty without such a file.

    Raises:
        BadInput: a line that no rewriting wrote.
    """
    found = {}
    for number, line in enumerate(read_lines(path), start=1):
        try:
            one = _Before.model_validate(line)
        except ValidationError as error:
            raise BadInput(f"{path}, line {number}: {explain(error)}; move the file away, and names are read again") from None
        found[one.item_id] = one
    return found


def _rewrite(options: TableOptions, on_progress: OnPart) -> tuple[Rewritten, Faults]:
    check_work(options.out, (AUDIT, SKIPPED, MANIFEST, LIST), inputs=(options.items,))
    faults = Faults(options.on_error)
    with unchanged_while_read(options.items):
        plots = read_mpst(options.items, faults, columns=options.columns)
        source = name_and_digest(options.items)
    before = _anonymized_before(work_folder(options.items) / AUDIT)
    titles = {item: plot.title or (before[item].title if item in before else None) or "" for item, plot in plots.items()}
    done = rewrite(
        {item: plot.text for item, plot in plots.items()},
        options.rewriting,
        titles=titles,
        names={item: before[item].names for item in plots if item in before},
        seed=options.seed,
        on_progress=on_progress,
    )
    work = work_folder(options.out)
    table = without_keys(json_lines({"item_id": item, "text": text} for item, text in done.texts.items()))
    manifest = {
        TABLE: sha256(table.encode()).hexdigest() if done.texts else None,
        "perse": perse.__version__,
        "sources": {"items": source},
        "seed": options.seed,
        "rows": dict(sorted(faults.counts.items())),
        "rewriting": done.manifest,
    }
    audit = [
        {
            **line,
            "title": titles[item],
            "names": done.mappings.get(item) or (before[item].names if item in before else {}),
            "survivors": done.survivors.get(item, ()),
            "faults": done.reasons[item],
        }
        for line in done.lines
        if (item := str(line["item_id"]))
    ]
    work.mkdir(parents=True, exist_ok=True)
    files = {
        AUDIT: json_lines(audit),
        SKIPPED: skipped_lines(faults.rows),
        MANIFEST: json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n",
    }
    theirs = (manifest_of(work) or {}).get(TABLE, "none") != (file_digest(options.out) if options.out.exists() else None)
    for name, text in files.items():
        write_own(work / name, text, ours=None if theirs else "")  # not those of a table that was moved away
    if not done.texts:
        raise BadInput(f"none of {len(plots)} texts could be rewritten; {work}/{AUDIT} says why for each")
    check_file(options.out, alike=[_TABLE], overwrite=options.overwrite)  # somebody may have put a file there in the meantime
    write_whole(options.out, table)
    return done, faults
