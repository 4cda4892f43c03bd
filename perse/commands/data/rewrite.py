"""`perse data anonymize | summarize`: rewrite the texts of a table of items."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.building import Cache, ErrorAt, Ner, Words, WriterName
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.reading import read_columns
from perse.commands.terminal import err, say
from perse.data.rewriting.plots import RewriteOptions
from perse.data.rewriting.tables import AUDIT, TableOptions, answers_file, rewrite_table, work_folder
from perse.progress import shown_on


@dataclass(frozen=True, kw_only=True)
class Table:
    """The table to read and the one to write."""

    items: Annotated[Path, typer.Option(help="Table of items: id, text[, title].", show_default=False)]
    out: Annotated[
        Path,
        typer.Option("--out", callback=options.here, help="The JSON lines file to write: item_id, text.", show_default=False),
    ]
    columns: options.Map = None
    seed: options.Seed = 0
    on_error: ErrorAt = "stop"
    overwrite: options.OverwriteFile = False

    def options(self, rewriting: RewriteOptions) -> TableOptions:
        return TableOptions(**vars(self) | {"columns": read_columns(self.columns), "rewriting": rewriting})


@grouped
def anonymize(
    *,
    table: Table,
    writer: WriterName = "rules",
    ner: Ner = "rules",
    tries: options.Tries = 3,
    cache: Cache = None,
    loading: Loading,
    as_json: options.AsJson = False,
) -> None:
    """Give the people and places of texts new names: a model (or rules) says which becomes which, code replaces.

    Texts that still hold their title or an original name are left out. OUT.work keeps the original names: keep it apart.

    Example: [bold]perse data anonymize --items plots.csv --writer openai:http://127.0.0.1:8000/v1#llama --out anonymous.jsonl[/bold]
    """
    answers = answers_file(table.out, cache)
    how = RewriteOptions(writer=writer, ner=ner, steps=("anonymize",), tries=tries, cache=answers, **vars(loading))
    _rewrite(table.options(how), as_json=as_json)


@grouped
def summarize(
    *,
    table: Table,
    writer: WriterName = "rules",
    words: Words = 300,
    tries: options.Tries = 3,
    cache: Cache = None,
    loading: Loading,
    as_json: options.AsJson = False,
) -> None:
    """Summarize texts, best after `anonymize`: a model retells them; rules take their most central sentences.

    What `anonymize` kept in ITEMS.work is used, so that no title and no original name comes back.

    Example: [bold]perse data summarize --items anonymous.jsonl --writer vllm:MODEL --words 200 --out items.jsonl[/bold]
    """
    answers = answers_file(table.out, cache)
    how = RewriteOptions(writer=writer, steps=("summarize",), words=words, tries=tries, cache=answers, **vars(loading))
    _rewrite(table.options(how), as_json=as_json)


def _rewrite(options: TableOptions, *, as_json: bool) -> None:
    with shown_on(err) as on_part:
        done, faults = rewrite_table(options, on_progress=on_part)
    (what,) = options.rewriting.steps
    tries = ", ".join(f"{count:,} {kind}" for kind, count in done.manifest["tries"][what].items())
    say(f"{len(done.texts):,} of {len(done.lines):,} texts came through; tries: {tries}")
    for reason, count in (*sorted(faults.counts.items()), *done.manifest["failed"].items()):
        say(f"left out: {count:,} {reason}")
    audit = f"{work_folder(options.out)}/{AUDIT}"
    if what == "anonymize" and (left := done.manifest["with_survivors"]):
        say(f"in {left:,} texts names are left that were not replaced; {audit} lists them")
    if whole := done.manifest["left_whole"]:
        say(f"{whole:,} texts were short enough to stay as they are")
    say(f"written: {options.out}")
    if as_json:
        told = {"out": str(options.out), "texts": len(done.texts), "of": len(done.lines), "rows": dict(faults.counts)}
        typer.echo(json.dumps(told | {"rewriting": dict(done.manifest)}, indent=2))
