"""`perse data anonymize | summarize`: rewrite the texts of a table of items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from perse.commands.data.options import Map, OnErrorOption, Overwrite, Seed, read_columns
from perse.commands.data.paper import Cache, Dtype, Ner, Tokenizer, Tries, Words, WriterOption, step_in, steps
from perse.data.rewriting.plots import RewriteOptions
from perse.data.rewriting.tables import AUDIT, TableOptions, answers_file, rewrite_table, work_folder

Items = Annotated[Path, typer.Option(help="Table of items: id, text[, title].", show_default=False)]
OutFile = Annotated[Path, typer.Option("--out", help="The JSON lines file to write: item_id, text.", show_default=False)]


def anonymize(
    items: Items,
    out: OutFile,
    writer: WriterOption = "rules",
    ner: Ner = "rules",
    tries: Tries = 3,
    cache: Cache = None,
    dtype: Dtype = "bfloat16",
    tokenizer: Tokenizer = None,
    columns: Map = None,
    seed: Seed = 0,
    on_error: OnErrorOption = "stop",
    overwrite: Overwrite = False,
) -> None:
    """Give the people and places of texts new names: a model (or rules) says which becomes which, code replaces.

    Texts that still hold their title or an original name are left out. OUT.work keeps the original names: keep it apart.

    Example: [bold]perse data anonymize --items plots.csv --writer openai:http://127.0.0.1:8000/v1#llama --out anonymous.jsonl[/bold]
    """
    how = RewriteOptions(
        writer=writer,
        ner=ner,
        steps=("anonymize",),
        tries=tries,
        cache=answers_file(out, cache),
        dtype=dtype,
        tokenizer=tokenizer,
    )
    table = TableOptions(
        items=items, out=out, columns=read_columns(columns), rewriting=how, seed=seed, on_error=on_error, overwrite=overwrite
    )
    _rewrite(table)


def summarize(
    items: Items,
    out: OutFile,
    writer: WriterOption = "rules",
    words: Words = 300,
    tries: Tries = 3,
    cache: Cache = None,
    dtype: Dtype = "bfloat16",
    tokenizer: Tokenizer = None,
    columns: Map = None,
    seed: Seed = 0,
    on_error: OnErrorOption = "stop",
    overwrite: Overwrite = False,
) -> None:
    """Summarize texts, best after `anonymize`: a model retells them; rules take their most central sentences.

    What `anonymize` kept in ITEMS.work is used, so that no title and no original name comes back.

    Example: [bold]perse data summarize --items anonymous.jsonl --writer vllm:MODEL --words 200 --out items.jsonl[/bold]
    """
    how = RewriteOptions(
        writer=writer,
        steps=("summarize",),
        words=words,
        tries=tries,
        cache=answers_file(out, cache),
        dtype=dtype,
        tokenizer=tokenizer,
    )
    table = TableOptions(
        items=items, out=out, columns=read_columns(columns), rewriting=how, seed=seed, on_error=on_error, overwrite=overwrite
    )
    _rewrite(table)


def _rewrite(options: TableOptions) -> None:
    with steps() as progress:
        done, faults = rewrite_table(options, step=step_in(progress))
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    (what,) = options.rewriting.steps
    tries = ", ".join(f"{count:,} {kind}" for kind, count in done.manifest["tries"][what].items())
    console.print(f"{len(done.texts):,} of {len(done.lines):,} texts came through; tries: {tries}", markup=False)
    for reason, count in (*sorted(faults.counts.items()), *done.manifest["failed"].items()):
        console.print(f"left out: {count:,} {reason}", markup=False)
    audit = f"{work_folder(options.out)}/{AUDIT}"
    if what == "anonymize" and (left := done.manifest["with_survivors"]):
        console.print(f"in {left:,} texts names are left that were not replaced; {audit} lists them", markup=False)
    if whole := done.manifest["left_whole"]:
        console.print(f"{whole:,} texts were short enough to stay as they are", markup=False)
    console.print(f"written: {options.out}", markup=False)
