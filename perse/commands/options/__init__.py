"""Each option that commands of several rooms take, said once: its type, with its choices and bounds, and what a person reads of it.

A command gives the default: `seed: options.Seed = 0`. Options that are always taken together are groups (`judging`, `building`); those
of one room stand in a file of their own here (`training`, `kgds`).
"""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import Annotated, Literal

import typer

from perse.addresses import is_address
from perse.errors import BadInput
from perse.files.path_names import place_named, without_detours
from perse.judging.loading import judge_help
from perse.questions import QUESTIONS
from perse.records import Split

# What every command that tells something takes.

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]

# Where things are read and written.


def here(path: Path | None) -> Path | None:
    """Callback of each option that says where to write. An address would become folders, of which one has the password for a name; a shell leaves
    the `~` of `--out=~/x` as it is, and a folder of that name is one that people remove their home for.

    Raises:
        BadInput: it is an address, of which none is repeated; the home of nobody; `-`, which elsewhere means standard output; or holds a control
            character.
    """
    if path is None:
        return None
    if is_address(path):
        raise BadInput("the place to write is an address, expected a path on this machine; give a file or a folder here")
    if str(path) == "-":
        raise BadInput("the place to write is '-', and nothing is written to standard output; give a file or a folder")
    if any(unicodedata.category(each) == "Cc" for each in str(path)):  # commands and lists of files repeat it, a line each
        raise BadInput(
            f"the place to write is {str(path)!r}, with a line break or another control character; give a name without"
        )
    place = place_named(path)
    if place.parts[:1] and place.parts[0].startswith("~"):
        raise BadInput(f"the place to write is {path}, and there is no home {place.parts[0]}; give the whole path, from /")
    found = without_detours(place)
    if not os.path.realpath(found).strip("/"):  # links that lead in a circle stay as they are
        raise BadInput(f"the place to write is {found}, the root of the disk; give a folder in it")
    return found


Out = Annotated[Path, typer.Option("--out", callback=here, help="The folder to write, or to continue.", show_default=False)]
MaybeRun = Annotated[
    Path | None, typer.Option("--out", callback=here, help="Needed. The folder to write, or to continue.", show_default=False)
]
NewFolder = Annotated[Path, typer.Option("--out", callback=here, help="The folder to write.", show_default=False)]
MaybeOut = Annotated[
    Path | None, typer.Option("--out", callback=here, help="A folder for study.json, table.md and figures.", show_default=False)
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what perse wrote there before.")]
OverwriteFile = Annotated[bool, typer.Option("--overwrite", help="Replace the file at --out, if it is one of this kind.")]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="Which column holds a field, where perse does not find it; may be repeated. Join columns with +: "
        "[bold]--map text_a=story_a+ending_a[/bold]. For the items file: [bold]--map items.item_id=id[/bold].",
        show_default=False,
    ),
]
ScoreRange = Annotated[
    str, typer.Option("--scale", metavar="LOW-HIGH", help="Lowest and highest score of the file; rescaled to 1-10.")
]
NAMED = "NAME=PATH"
"""How an option that names what it gives is written."""

# Examples and what is asked of them.

Examples = Annotated[
    Path, typer.Option(help="A data set folder, or a file of exported JSON lines or of Parquet.", show_default=False)
]
SplitOption = Annotated[Split, typer.Option("--split", help="Which side of a data set folder.")]
Fold = Annotated[
    int | None, typer.Option(min=0, help="Of a cross-fitted data set: the fold that validates.", show_default=False)
]
Sample = Annotated[int | None, typer.Option("--limit", min=1, help="Ask about a seeded sample of so many.", show_default=False)]
QuestionName = Annotated[
    str | None,
    typer.Option(
        "--question",
        help=f"{', '.join(QUESTIONS)}; by default the judge's own (what its stacking was fitted on, else what it was trained on), else after the "
        "data, as of a judge on a server.",
        show_default=False,
    ),
]
MaybePointwise = Annotated[
    str | None,
    typer.Option(
        "--question",
        help="As of one text: pointwise, pointwise_score (the score alone), either with _stated.",
        show_default="what the judge's stacking was fitted on, else what it was trained on, else pointwise",
    ),
]

# Who judges.

JudgeName = Annotated[
    str,
    typer.Option(
        "--judge",
        help=judge_help(),
    ),
]
DtypeName = Literal["bfloat16", "float16", "float32"]
Dtype = Annotated[
    DtypeName,
    typer.Option("--dtype", help="Of a model in this process; float32 takes twice the memory, and is exact within 1e-5."),
]
Context = Annotated[
    int | None,
    typer.Option("--context", min=64, help="Tokens to use; by default what the model was made for.", show_default=False),
]
Tokenizer = Annotated[
    str | None,
    typer.Option("--tokenizer", help="Of a served model whose folder is not on this machine.", show_default=False),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "--concurrency", min=1, max=1_000, help="Requests that are under way at a judge's server at once.", show_default="32"
    ),
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Run code that the model brings; without it none is run, and a model that needs it is refused.",
    ),
]
Temperature = Annotated[float, typer.Option(min=0.0, max=2.0, help="0 is greedy; PerSE's paper has 0.8, KGDS's 0.")]
MaxNewTokens = Annotated[int, typer.Option(min=1, help="Longest answer, in tokens.")]
Tries = Annotated[int, typer.Option(min=1, help="At most so many answers for each text, until one can be used.")]

# What is counted.

Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice: the same seed and input give the same result.")]
Everything = Annotated[bool, typer.Option("--all", help="Print the finer tables, too.")]
Resamples = Annotated[int, typer.Option(min=100, max=100_000, help="Bootstrap resamples.")]
ResampleOption = Annotated[
    Literal["auto", "reviewers", "two-way"],  # the library's `Resample`, whose module takes a second to import
    typer.Option("--resample", help="reviewers; two-way: reviewers and texts; auto: two-way where readers share texts."),
]
ScoredRuns = Annotated[
    list[Path], typer.Argument(help="Folders that `perse score` wrote, of the same data set.", show_default=False)
]
TrainData = Annotated[
    Path | None,
    typer.Option(help="Data set folder for the baselines; by default the one that was scored.", show_default=False),
]
BertScoreModel = Annotated[Path | None, typer.Option(help="Folder of an encoder, for BERTScore.", show_default=False)]
BartScoreModel = Annotated[Path | None, typer.Option(help="Folder of a BART, for BARTScore.", show_default=False)]
EmbeddingModel = Annotated[
    str | None,
    typer.Option(
        help="Of sentence embeddings: a folder, or a hub name that is on this machine.",
        show_default="sentence-transformers/all-MiniLM-L6-v2",
    ),
]
Title = Annotated[str | None, typer.Option(help="Of the page; by default after what it shows.", show_default=False)]
