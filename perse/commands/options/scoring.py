"""Groups of options of `perse score` and its commands: what is asked of whom, and how a run in shards is worked on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from perse.commands import options
from perse.commands.options.judging import Answering, Loading, ShownProfiles, StackedBy
from perse.data.profiles.views import View
from perse.data.sources.faults import OnError
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
            max=1_000_000,
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
class FromReviews:
    """A table of reviews and one of texts, in the place of examples."""

    reviews: Annotated[
        Path | None,
        typer.Option(
            help="With --texts, in the place of --examples: a table of past reviews (CSV, TSV, JSON lines, Parquet), one a row. Every reader is asked "
            "about every text that they have not reviewed.",
            show_default=False,
        ),
    ] = None
    scale: Annotated[
        str,
        typer.Option(
            "--scale",
            metavar="LOW-HIGH",
            help="With --reviews: lowest and highest score of the readers' own scale; answers are told on it, too.",
        ),
    ] = "1-10"
    columns: options.Map = None
    on_error: Annotated[
        OnError,
        typer.Option("--on-error", help="With --reviews: at a bad row of either table stop, or skip it and count it."),
    ] = "stop"

    def check(self, asked: Question, driver: Driver | None) -> None:
        """
        Raises:
            BadInput: what does not go with reviews, or needs them.
        """
        if self.reviews is None:
            if self.columns or self.scale != "1-10" or self.on_error != "stop":
                raise BadInput(
                    "--scale, --map and --on-error are of --reviews; examples have their scores on 1 to 10, and fields of their own"
                )
            return
        if asked.examples or asked.readers or asked.adapters:
            raise BadInput(
                "--reviews and --texts stand in the place of --examples, --readers and --adapters; give one or the other"
            )
        if not asked.texts:
            raise BadInput("--reviews and --texts belong together; give the texts to judge, too")
        if driver is not None:
            raise BadInput(
                "--reviews are judged in this process; leave --driver out, or give --readers (rows with reviewer_id and profile)"
            )
        if asked.fold is not None:
            raise BadInput("--fold is of data set folders; leave it out with --reviews")
        if asked.shown.view() != View(k=asked.shown.k):
            raise BadInput(
                "--order-seed, --no-review-text and --profile-aspects are of data set folders; leave them out with --reviews"
            )


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
            help="With --reviews, or with --readers where these have no candidates of their own: rows with reviewer_id and item_id, the pairs to judge.",
            show_default="all pairs",
        ),
    ] = None
    texts: Annotated[
        str | None,
        typer.Option(
            help="With --reviews or --readers: rows with item_id and text; of --reviews' texts the ids may be missing.",
            show_default=False,
        ),
    ] = None
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
            raise BadInput(
                "--readers and --texts belong together, or --reviews and --texts, in the place of --examples; give both, or --examples alone"
            )
        if self.adapters:
            raise BadInput(
                "--adapters is for --examples, each of which names its own; judge the pairs of each adapter into a folder of their own"
            )
        if self.limit is not None:
            raise BadInput("--limit draws from --examples; of --readers and --texts give fewer, or candidates")
        return self.readers, self.texts

    def asked_judge(self) -> str:
        """The judge, where examples are no question.

        Raises:
            BadInput: it is missing.
        """
        if not self.judge:
            raise BadInput("missing option '--judge' (see perse score --help)")
        return self.judge

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
