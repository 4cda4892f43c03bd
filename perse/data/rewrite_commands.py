"""`perse data anonymize | summarize`: rewrite the texts of a table of items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from perse.data.command_options import OnErrorOption, Overwrite, Seed
from perse.data.paper_commands import Cache, Dtype, Ner, Tokenizer, Tries, Words, WriterOption, step_in, steps

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
    seed: Seed = 0,
    on_error: OnErrorOption = "stop",
    overwrite: Overwrite = False,
) -> None:
    """Give the people and places of texts new names: a model (or rules) says which becomes which, code replaces.

    Texts that still hold their title or an original name are left out. OUT.work keeps the original names: keep it apart.

    Example: [bold]perse data anonymize --items plots.csv --writer openai:http://127.0.0.1:8000/v1#llama --out anonymous.jsonl[/bold]
    """
    _rewrite("anonymize", items, out, writer, ner, 300, tries, cache, dtype, tokenizer, seed, on_error, overwrite)


def summarize(
    items: Items,
    out: OutFile,
    writer: WriterOption = "rules",
    words: Words = 300,
    tries: Tries = 3,
    cache: Cache = None,
    dtype: Dtype = "bfloat16",
    tokenizer: Tokenizer = None,
    seed: Seed = 0,
    on_error: OnErrorOption = "stop",
    overwrite: Overwrite = False,
) -> None:
    """Summarize texts, best after `anonymize`: a model retells them; rules take their most central sentences.

    Example: [bold]perse data summarize --items anonymous.jsonl --writer vllm:MODEL --words 200 --out items.jsonl[/bold]
    """
    _rewrite("summarize", items, out, writer, "rules", words, tries, cache, dtype, tokenizer, seed, on_error, overwrite)


def _rewrite(
    what: Literal["anonymize", "summarize"],
    items: Path,
    out: Path,
    writer: str,
    ner: str,
    words: int,
    tries: int,
    cache: Path | None,
    dtype: str,
    tokenizer: str | None,
    seed: int,
    on_error: OnErrorOption,
    overwrite: bool,
) -> None:
    from perse.data.rewriting.plots import RewriteOptions
    from perse.data.rewriting.tables import rewrite_table

    options = RewriteOptions(
        writer=writer,
        ner=ner,
        steps=(what,),
        words=words,
        tries=tries,
        cache=cache or out.with_name(out.name + ".work") / "answers.sqlite",
        dtype=dtype,
        tokenizer=tokenizer,
    )
    with steps() as progress:
        done = rewrite_table(items, out, options, seed=seed, on_error=on_error, overwrite=overwrite, step=step_in(progress))
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    tries_made = ", ".join(f"{count:,} {kind}" for kind, count in done.manifest["tries"][what].items())
    console.print(f"{len(done.texts):,} of {len(done.lines):,} texts came through; tries: {tries_made}", markup=False)
    for reason, count in done.manifest["failed"].items():
        console.print(f"left out: {count:,} {reason}", markup=False)
    if what == "anonymize" and (left := done.manifest["with_survivors"]):
        console.print(
            f"in {left:,} texts names are left that were not replaced; {out}.work/rewriting.jsonl lists them", markup=False
        )
    console.print(f"written: {out}", markup=False)
