"""`perse study k-curve | order | aspects | review-text | counterfactual | decoding`: ask a judge in several ways.

Each takes the options of `Study` and its own. The numbers are written before anything is drawn, so a missing plotting library costs
no answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Answering, Loading
from perse.commands.options.medium import Medium
from perse.commands.options.reading import read_numbers
from perse.commands.options.training import Overrides
from perse.commands.showing import show_result
from perse.commands.terminal import err
from perse.data.profiles.views import ProfileAspects
from perse.progress import shown_on

if TYPE_CHECKING:
    from perse.results.result import Result
    from perse.studies.frame.retraining import Recipe

MaybeJudge = Annotated[
    str | None,
    typer.Option("--judge", help="As for perse score; asked as it is, beside what --retrain trains.", show_default=False),
]
Retrain = Annotated[
    str | None,
    typer.Option(
        help="A training recipe (YAML file, or a packaged recipe's name): train the judges of this study by it.",
        show_default=False,
    ),
]
Ks = Annotated[str | None, typer.Option(help="Profile sizes, as in 0,1,3.", show_default=False)]

GOES_ON = "The same command continues a study that was stopped; finished arms are not asked again."


@dataclass(frozen=True, kw_only=True)
class Study:
    """What every study takes: which examples it asks about and how, where it is written, and how it is shown."""

    examples: options.Examples
    out: options.Out
    split: options.SplitOption = "valid"
    fold: options.Fold = None
    question: options.QuestionName = None
    limit: options.Sample = None
    answering: Answering
    loading: Loading
    resamples: options.Resamples = 1000
    medium: Medium

    def run(self, judge: str | None, study: Callable[..., Result]) -> None:
        """Make `study`, whose own options are filled in, of `judge`'s answers, and show it."""
        from perse.studies.frame.running import Asking

        asking = Asking(
            examples=self.examples, judge=judge, split=self.split, fold=self.fold, question=self.question, limit=self.limit,
            settings=self.answering.settings(), resamples=self.resamples, **vars(self.loading),
        )  # fmt: skip
        with shown_on(err) as on_part:
            result = study(asking, self.out, on_progress=on_part)
        show(result, self.out, self.medium)


@grouped
def k_curve(
    *,
    judge: MaybeJudge = None,
    retrain: Retrain = None,
    overrides: Overrides = None,
    ks: Ks = None,
    study: Study,
) -> None:
    """How much of a reader's past does the judge need? k = 0, 1, ... on the same queries (PerSE, figure 3).

    Example:  perse study k-curve --examples work/data --judge runs/first --ks 0,1,3 --out studies/k

    Retrained per k:  perse study k-curve --examples work/data --retrain embedded_lora train.steps=200 --out studies/k-retrained
    """
    from perse.studies.k_curve import k_curve as made

    study.run(judge, partial(made, ks=read_numbers(ks, "--ks"), recipe=_recipe(retrain, overrides)))


@grouped
def order(
    *,
    judge: options.JudgeName,
    orders: Annotated[int, typer.Option(min=2, max=1_000, help="How many seeded orders of each profile.")] = 3,
    ks: Ks = None,
    study: Study,
) -> None:
    """Do answers depend on the order in which the reader's past is shown? (PerSE, figure 4)

    Example:  perse study order --examples work/data --judge runs/first --orders 3 --ks 3,5 --out studies/order
    """
    from perse.studies.order import order as made

    study.run(judge, partial(made, orders=orders, ks=read_numbers(ks, "--ks")))


@grouped
def aspects(
    *,
    unified: Annotated[
        str | None,
        typer.Option(help="The judge of all aspects, as for perse score; else it is trained too.", show_default=False),
    ] = None,
    retrain: Annotated[
        str, typer.Option(help="The recipe of the judges of single aspects, and of the unified one if none is given.")
    ],
    overrides: Overrides = None,
    profile_aspects: Annotated[
        ProfileAspects | None,
        typer.Option(
            help="What a profile entry shows judges that are trained here, then and when asked: all preferences, or as in the paper the asked "
            "aspect's alone.",
            show_default="as the recipe says",
        ),
    ] = None,
    study: Study,
) -> None:
    """One judge of all aspects against a judge for each, on pairs (PerSE, figure 5).

    Example:  perse study aspects --examples work/pairs --retrain embedded_lora --unified runs/pairs --out studies/aspects
    """
    from perse.studies.aspects import aspects as made
    from perse.studies.frame.retraining import Recipe

    study.run(unified, partial(made, recipe=Recipe(retrain, tuple(overrides or ())), profile_aspects=profile_aspects))


@grouped
def review_text(
    *,
    judge: MaybeJudge = None,
    retrain: Retrain = None,
    overrides: Overrides = None,
    repeats: Annotated[int, typer.Option(min=1, max=1_000, help="Passes whose mean is shown; the paper has three.")] = 3,
    study: Study,
) -> None:
    """Profiles with and without the reader's words (PerSE, table 5, which retrains; without --retrain the judge is only asked).

    Example:  perse study review-text --examples work/data --judge runs/first --out studies/review-text

    Retrained:  perse study review-text --examples work/data --retrain embedded_lora train.steps=200 --out studies/table5
    """
    from perse.studies.review_text import review_text as made

    study.run(judge, partial(made, repeats=repeats, recipe=_recipe(retrain, overrides)))


@grouped
def counterfactual(
    *,
    judge: options.JudgeName,
    k: Annotated[int | None, typer.Option(min=1, help="Entries of the own profile.", show_default="the folder's own")] = None,
    study: Study,
) -> None:
    """Does the judge go by this reader? Profiles that are empty, another reader's, or dealt to the wrong texts.

    Example:  perse study counterfactual --examples work/data --judge runs/first --question pointwise_score --out studies/whose
    """
    from perse.studies.counterfactual import counterfactual as made

    study.run(judge, partial(made, k=k))


@grouped
def decoding(
    *,
    judge: options.JudgeName,
    passes: Annotated[
        int, typer.Option(min=2, max=1_000, help="Sampled passes: their mean and spread, and the mean of all.")
    ] = 3,
    study: Study,
) -> None:
    """Greedy, sampled, self-consistent, or the score alone: which reading of the answer agrees best, and what it costs.

    Example:  perse study decoding --examples work/data --judge runs/first --passes 3 --out studies/decoding
    """
    from perse.studies.decoding import decoding as made

    study.run(judge, partial(made, passes=passes))


def show(result: Result, out: Path, medium: Medium) -> None:
    """Print a finished study, and draw its plots into OUT/figures."""
    from perse.errors import BadInput

    try:
        _draw(result, out / "figures")
    except BadInput as error:
        err.print(f"not drawn: {error}", markup=False, soft_wrap=True)
    show_result(result, medium)
    figures = ", figures" if (out / "figures").is_dir() else ""
    err.print(f"study: [bold]{escape(str(out))}[/bold]  (study.json, table.md{figures})", soft_wrap=True)


def _draw(result: Result, folder: Path) -> None:
    from perse.drawing.figure import save_figure
    from perse.reporting.study_figures import study_figures

    for figure in study_figures(result):
        save_figure(figure, folder)


def _recipe(retrain: str | None, overrides: list[str] | None) -> Recipe | None:
    from perse.errors import BadInput
    from perse.studies.frame.retraining import Recipe

    if retrain is None and overrides:
        raise BadInput(f"'{overrides[0]}' is a setting of a training recipe; name one with --retrain, or leave it out")
    return None if retrain is None else Recipe(retrain, tuple(overrides or ()))
