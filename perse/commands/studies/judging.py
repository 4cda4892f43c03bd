"""`perse study k-curve | order | aspects | review-text | counterfactual | decoding`: ask a judge in several ways.

All six share the options of `_asked`; each adds its own and says which study they make. The numbers are written before anything
is drawn, so a missing plotting library costs no answers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from perse.commands.showing import show_result

if TYPE_CHECKING:
    from perse.results.result import Result
    from perse.studies.frame.arms import Watch
    from perse.studies.frame.retraining import Recipe
    from perse.studies.frame.running import Asking

err = Console(stderr=True)

Run = Callable[..., "Result"]
"""A study's function with its own options filled in: run(asking, out, watch=...)."""

Examples = Annotated[
    Path, typer.Option(help="A data set folder (or, where no other view is needed, a file of examples).", show_default=False)
]
JudgeName = Annotated[
    str,
    typer.Option(
        help="PATH or vllm:PATH (a training run, a model folder, an embedded model or a hub name), or openai:URL#MODEL.",
        show_default=False,
    ),
]
MaybeJudge = Annotated[
    str | None,
    typer.Option("--judge", help="As for perse score; asked as it is, beside what --retrain trains.", show_default=False),
]
Out = Annotated[Path, typer.Option(help="The study's folder, to write or to continue.", show_default=False)]
SplitOption = Annotated[str, typer.Option(help="Of a data set folder: valid or train.")]
Fold = Annotated[int | None, typer.Option(min=0, help="Of a cross-fitted data set: ask about this fold.", show_default=False)]
QuestionName = Annotated[
    str | None,
    typer.Option(
        help="By default the usual one after the data: pointwise (a review, then a score) or pairwise, as in the paper; "
        "pointwise_score asks for the score alone, which is many times cheaper.",
        show_default=False,
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Ask a seeded sample of so many examples.", show_default=False)]
Temperature = Annotated[float, typer.Option(min=0.0, max=2.0, help="0 is greedy; 0.8 is the paper's.")]
MaxNew = Annotated[int, typer.Option(min=1, help="Longest review, in tokens.")]
Dtype = Annotated[str, typer.Option(help="bfloat16, float16 or float32.")]
Context = Annotated[
    int | None, typer.Option(min=64, help="Tokens to use; by default what the model was made for.", show_default=False)
]
Tokenizer = Annotated[
    str | None, typer.Option(help="Of a served model whose folder is not on this machine.", show_default=False)
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every draw: answers, sample, shuffles, resamples.")]
Resamples = Annotated[int, typer.Option(min=100, help="Bootstrap resamples of the reviewers.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout.")]
AsMarkdown = Annotated[bool, typer.Option("--markdown", help="Print the result as Markdown on stdout.")]
Retrain = Annotated[
    str | None,
    typer.Option(
        help="A training recipe (YAML file, or a packaged recipe's name): train the judges of this study by it.",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KEY=VALUE]...", help="With --retrain: settings that differ from the recipe's.", show_default=False
    ),
]
Ks = Annotated[str | None, typer.Option(help="Profile sizes, as in 0,1,3.", show_default=False)]

Unified = Annotated[
    str | None,
    typer.Option("--unified", help="The judge of all aspects, as for perse score; else it is trained too.", show_default=False),
]

GOES_ON = "The same command continues a study that was stopped; finished arms are not asked again."


def register(app: typer.Typer) -> None:
    """Add these commands to `app`."""
    _add(app, "k-curve", _k_curve, judge=MaybeJudge)
    _add(app, "order", _order, judge=JudgeName)
    _add(app, "aspects", _aspects, judge=Unified)
    _add(app, "review-text", _review_text, judge=MaybeJudge)
    _add(app, "counterfactual", _counterfactual, judge=JudgeName)
    _add(app, "decoding", _decoding, judge=JudgeName)


def _k_curve(retrain: Retrain = None, overrides: Overrides = None, ks: Ks = None) -> Run:
    """How much of a reader's past does the judge need? k = 0, 1, ... on the same queries (PerSE, figure 3).

    Example:  perse study k-curve --examples work/data --judge runs/first --ks 0,1,3 --out studies/k

    Retrained per k:  perse study k-curve --examples work/data --retrain embedded_lora train.steps=200 --out studies/k-retrained
    """
    from perse.studies.k_curve import k_curve

    return partial(k_curve, ks=_numbers(ks), recipe=_recipe(retrain, overrides))


def _order(
    orders: Annotated[int, typer.Option(min=2, help="How many seeded orders of each profile.")] = 3, ks: Ks = None
) -> Run:
    """Do answers depend on the order in which the reader's past is shown? (PerSE, figure 4)

    Example:  perse study order --examples work/data --judge runs/first --orders 3 --ks 3,5 --out studies/order
    """
    from perse.studies.order import order

    return partial(order, orders=orders, ks=_numbers(ks))


def _aspects(
    retrain: Annotated[
        str, typer.Option(help="The recipe of the judges of single aspects, and of the unified one if none is given.")
    ],
    overrides: Overrides = None,
) -> Run:
    """One judge of all aspects against a judge for each, on pairs (PerSE, figure 5).

    Example:  perse study aspects --examples work/pairs --retrain embedded_lora --unified runs/pairs --out studies/aspects
    """
    from perse.studies.aspects import aspects
    from perse.studies.frame.retraining import Recipe

    return partial(aspects, recipe=Recipe(retrain, tuple(overrides or ())))


def _review_text(
    retrain: Retrain = None,
    overrides: Overrides = None,
    repeats: Annotated[int, typer.Option(min=1, help="Passes whose mean is shown; the paper has three.")] = 3,
) -> Run:
    """Profiles with and without the reader's words (PerSE, table 5, which retrains; without --retrain the judge is only asked).

    Example:  perse study review-text --examples work/data --judge runs/first --out studies/review-text

    Retrained:  perse study review-text --examples work/data --retrain embedded_lora train.steps=200 --out studies/table5
    """
    from perse.studies.review_text import review_text

    return partial(review_text, repeats=repeats, recipe=_recipe(retrain, overrides))


def _counterfactual(
    k: Annotated[int | None, typer.Option(min=1, help="Entries of the own profile.", show_default="the folder's own")] = None,
) -> Run:
    """Does the judge go by this reader? Profiles that are empty, another reader's, or dealt to the wrong texts.

    Example:  perse study counterfactual --examples work/data --judge runs/first --question pointwise_score --out studies/whose
    """
    from perse.studies.counterfactual import counterfactual

    return partial(counterfactual, k=k)


def _decoding(
    passes: Annotated[int, typer.Option(min=2, help="Sampled passes: their mean and spread, and the mean of all.")] = 3,
) -> Run:
    """Greedy, sampled, self-consistent, or the score alone: which reading of the answer agrees best, and what it costs.

    Example:  perse study decoding --examples work/data --judge runs/first --passes 3 --out studies/decoding
    """
    from perse.studies.decoding import decoding

    return partial(decoding, passes=passes)


def _asked(
    examples: Examples,
    judge: MaybeJudge = None,
    split: SplitOption = "valid",
    fold: Fold = None,
    question: QuestionName = None,
    limit: Limit = None,
    temperature: Temperature = 0.8,
    max_new_tokens: MaxNew = 600,
    dtype: Dtype = "bfloat16",
    context: Context = None,
    tokenizer: Tokenizer = None,
    seed: Seed = 0,
    resamples: Resamples = 1000,
) -> Asking:
    """The options that all studies share."""
    from perse.errors import BadInput
    from perse.judging.judge import JudgeSettings
    from perse.studies.frame.running import Asking

    if split not in ("train", "valid"):
        raise BadInput(f"--split is '{split}'; choose train or valid")
    if dtype not in ("bfloat16", "float16", "float32"):
        raise BadInput(f"--dtype is '{dtype}'; choose bfloat16, float16 or float32")
    return Asking(
        examples=examples,
        judge=judge,
        split="train" if split == "train" else "valid",
        fold=fold,
        question=question,
        limit=limit,
        settings=JudgeSettings(temperature=temperature, max_new_tokens=max_new_tokens, seed=seed),
        dtype=dtype,
        context=context,
        tokenizer=tokenizer,
        resamples=resamples,
    )


def _shown(out: Out, as_json: AsJson = False, markdown: AsMarkdown = False) -> None:
    """The options of what is written."""


def _add(app: typer.Typer, name: str, study: Callable[..., Run], *, judge: Any) -> None:
    """`study` as a command with its own options and the shared ones, of which `judge` has a name and help of its own."""
    asked, own, shown = (_options(one) for one in (_asked, study, _shown))
    needed = [asked.pop("examples"), asked.pop("judge").replace(annotation=judge), shown["out"]]
    if judge is JudgeName:
        needed[1] = needed[1].replace(default=inspect.Parameter.empty)
    options = {option.name: option for option in (*needed, *own.values(), *asked.values(), *shown.values())}

    def command(**given: Any) -> None:
        run = study(**{key: given[key] for key in own})
        asking = _asked(given["examples"], given["judge"], **{key: given[key] for key in asked})
        with watched() as watch:
            result = run(asking, given["out"], watch=watch)
        show(result, given["out"], as_json=given["as_json"], markdown=given["markdown"])

    # What typer reads a command's options from.
    command.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in options.values()}
    command.__doc__ = study.__doc__
    app.command(name, epilog=GOES_ON)(command)


def _options(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """The parameters of a function, which are a command's options, by name."""
    known = {key: value for key, value in globals().items() if not key.startswith("_")} | {"Asking": object}
    hints = inspect.signature(function, globals=known, eval_str=True).parameters
    return {name: option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, option in hints.items()}


def show(result: Result, out: Path, *, as_json: bool, markdown: bool) -> None:
    """Print a finished study, and draw its plots into OUT/figures."""
    from perse.errors import BadInput

    try:
        _draw(result, out / "figures")
    except BadInput as error:
        err.print(f"not drawn: {error}", markup=False, soft_wrap=True)
    show_result(result, as_json=as_json, markdown=markdown)
    err.print(f"study: [bold]{escape(str(out))}[/bold]  (study.json, table.md, figures)", soft_wrap=True)


def _draw(result: Result, folder: Path) -> None:
    from perse.drawing.figure import save_figure
    from perse.reporting.study_figures import study_figures

    for figure in study_figures(result):
        save_figure(figure, folder)


@contextmanager
def watched() -> Iterator[Watch]:
    """A bar for each arm, from the first arm on: what is trained before shows its own."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    progress = Progress(*columns, console=err)
    tasks: dict[str, Any] = {}

    def watch(arm: str, done: int, total: int) -> None:
        progress.start()
        if arm not in tasks:
            tasks[arm] = progress.add_task(escape(arm), total=total)
        progress.update(tasks[arm], completed=done)

    try:
        yield watch
    finally:
        progress.stop()


def _recipe(retrain: str | None, overrides: list[str] | None) -> Recipe | None:
    from perse.errors import BadInput
    from perse.studies.frame.retraining import Recipe

    if retrain is None and overrides:
        raise BadInput(f"'{overrides[0]}' is a setting of a training recipe; name one with --retrain, or leave it out")
    return None if retrain is None else Recipe(retrain, tuple(overrides or ()))


def _numbers(ks: str | None) -> list[int] | None:
    """From "0,1,3"."""
    from perse.errors import BadInput

    if ks is None:
        return None
    try:
        return [int(part) for part in ks.split(",")]
    except ValueError:
        raise BadInput(f"--ks is '{ks}'; write numbers with commas, as in 0,1,3") from None
