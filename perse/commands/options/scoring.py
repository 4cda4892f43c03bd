"""Groups of options of `perse score` and its commands: what is asked of whom, and how a run in shards is worked on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from perse.commands import options
from perse.commands.options.judging import Answering, Loading, ShownProfiles, StackedBy
from perse.engines.kind import Hardware
from perse.errors import BadInput
from perse.judging.loading import judge_help

Driver = Literal["local", "ray", "http"]
ShardRows = Annotated[int, typer.Option(min=1, max=100_000, help="In shards: most examples of one.")]

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run in shards.", show_default=False)]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, max=10_000, help="Worker processes, each with a judge of its own.", show_default="one for each GPU, or one"
    ),
]


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What each judge takes of the machine that it is on."""

    memory_gb: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="GiB that a judge in a process here keeps for the keys and values of prompts.",
            show_default="2; for vLLM 4 on a CPU, and what is left on a GPU",
        ),
    ] = None
    tensor_parallel: Annotated[
        int, typer.Option(min=1, max=64, help="GPUs of one machine over which vLLM splits each judge.")
    ] = 1

    @property
    def hardware(self) -> Hardware:
        return Hardware(**vars(self))


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of whom, about which examples. The first two are needed; of a command with commands below it none can be required."""

    examples: Annotated[
        str | None,
        typer.Option(
            help="Needed. A data set folder, or a file of exported JSON lines or of Parquet; in shards also CSV, a folder, a glob or a URL of "
            "an object store.",
            show_default=False,
        ),
    ] = None
    readers: Annotated[
        str | None,
        typer.Option(
            help="In shards, with --texts, in the place of --examples: rows with reviewer_id, profile and, for fewer than all texts, "
            "candidates (ids of texts). Every reader is asked about every text.",
            show_default=False,
        ),
    ] = None
    candidates: Annotated[
        str | None,
        typer.Option(
            help="With --readers, where these have no candidates of their own: rows with reviewer_id and item_id, the pairs to judge.",
            show_default="all pairs",
        ),
    ] = None
    texts: Annotated[str | None, typer.Option(help="With --readers: rows with item_id and text.", show_default=False)] = None
    judge: Annotated[str | None, typer.Option(help=f"Needed. {judge_help()}", show_default=False)] = None
    adapters: Annotated[
        Path | None,
        typer.Option(
            help="In shards: the folder of the LoRA adapters, or training runs, that examples name in a field `adapter` beside the others; "
            "each example is judged by the judge's model with the adapter that it names.",
            show_default=False,
        ),
    ] = None
    split: options.SplitOption = "valid"
    fold: options.Fold = None
    question: options.QuestionName = None
    limit: options.Sample = None
    shown: ShownProfiles
    answering: Answering
    loading: Loading
    stacked_by: StackedBy
    trust_remote_code: options.TrustRemoteCode = False

    @property
    def catalogue(self) -> tuple[str, str] | None:
        """Readers and texts, where these are given; `candidates` may go with them.

        Raises:
            BadInput: one alone, or examples beside them, or a sample of pairs.
        """
        if not (self.readers or self.texts or self.candidates):
            return None
        if not (self.readers and self.texts) or self.examples:
            raise BadInput("--readers and --texts belong together, in the place of --examples; give both, or --examples alone")
        if self.adapters:
            raise BadInput(
                "--adapters is for --examples, each of which names its own; judge the pairs of each adapter into a folder of their own"
            )
        if self.limit is not None:
            raise BadInput("--limit draws from --examples; of --readers and --texts give fewer, or candidates")
        return self.readers, self.texts

    def given(self) -> tuple[str, str]:
        """The examples (of a catalogue, nothing) and the judge.

        Raises:
            BadInput: one of them is missing.
        """
        needed = [("--examples", self.examples or self.catalogue), ("--judge", self.judge)]
        missing = [name for name, value in needed if not value]
        if missing:
            options = " and ".join(f"'{name}'" for name in missing)
            raise BadInput(f"missing option {options} (see perse score --help)")
        return self.examples or "", str(self.judge)
