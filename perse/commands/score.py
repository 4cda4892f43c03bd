"""`perse score`: judge every example of a data set into a run folder."""

from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Answering, Loading, ShownProfiles
from perse.commands.terminal import err, say
from perse.data.variants.profile_variants import ProfileShown, stand_in
from perse.progress import shown_on
from perse.records import PairwiseExample

if TYPE_CHECKING:
    from perse.data.load import LoadedExamples
    from perse.data.profiles.views import ProfileAspects
    from perse.judgement import Prices


@grouped
def score(
    *,
    examples: options.Examples,
    judge: options.JudgeName,
    out: options.Out,
    split: options.SplitOption = "valid",
    fold: options.Fold = None,
    question: options.QuestionName = None,
    limit: options.Sample = None,
    shown: ShownProfiles,
    profile: Annotated[
        ProfileShown,
        typer.Option(
            help="own; empty or shots (answers of other readers, the same for every query) for an unpersonalized judge to "
            "compare with; another (reader's) or shuffled (own reviews behind the wrong texts) to see what the profile is worth."
        ),
    ] = ProfileShown.OWN,
    shots: Annotated[int, typer.Option(min=1, help="With --profile shots: how many.")] = 3,
    answering: Answering,
    loading: Loading,
    trust_remote_code: options.TrustRemoteCode = False,
    prices: Annotated[
        str | None,
        typer.Option(
            help="Of a paid server, per million tokens: INPUT,OUTPUT or INPUT,OUTPUT,CACHED; shows the cost, and is kept with the run."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Judge every example; the same command continues a run that was stopped.

    Example:  perse score --examples work/data --judge runs/first --out runs/first-valid

    Server:   perse score --examples work/data --judge openai:http://127.0.0.1:8000/v1#first --out runs/served

    Nobody:   perse score --examples work/data --judge smollm2-135m --profile shots --shots 3 --out runs/few-shot
    """
    from perse.batch.local import check_out, check_unseen, sample, trained_aspects
    from perse.batch.local import score as scored
    from perse.data.dataset.folder import is_data_folder
    from perse.data.load import load_examples
    from perse.judgement import Prices
    from perse.questions import question_for, why_no_truth

    costs = Prices.parse(prices) if prices else None
    trained = trained_aspects(judge)
    view = shown.view(trained if is_data_folder(examples) else None)  # a file shows profiles as they were exported
    whole = load_examples(examples, split=split, fold=fold, view=view)
    _tell_view(whole, trained, asked=shown.profile_aspects)
    loaded = stand_in(sample(whole, limit, seed=answering.seed), profile, among=whole, shots=shots, seed=answering.seed)
    asked = question_for(loaded.examples, question)
    if split == "valid":
        check_unseen(judge, loaded)
    check_out(out, asked, loaded, answering.settings())
    loaded_judge = loading.load(judge, trust_remote_code=trust_remote_code)
    with shown_on(err) as on_part:
        scored(
            loaded_judge, asked, loaded, out,
            settings=answering.settings(), prices=costs, on_progress=partial(on_part, "judging"),
        )  # fmt: skip
    comparable = why_no_truth(asked.name, type(loaded.examples[0])) is None
    _show(out, costs, comparable=comparable, as_json=as_json)


def _tell_view(loaded: LoadedExamples, trained: ProfileAspects | None, *, asked: ProfileAspects | None) -> None:
    """Where the profiles of pairs may not be as those that the judge was trained on, it answers prompts of a kind that it never saw."""
    pairs = [one for one in loaded.examples if isinstance(one, PairwiseExample)]
    if not pairs:
        return
    others = any(past.preference.keys() - {one.aspect} for one in pairs for past in one.profile)
    shows = asked or ("all" if others else "asked")
    if trained is None and others and asked is None:
        say(
            "note: profiles show all preferences; a judge that was trained with data.profile_aspects=asked needs --profile-aspects asked"
        )
    elif trained is not None and trained != shows and (others or asked is not None):
        say(f"note: the judge was trained with profile_aspects={trained} and is asked with {shows}")


def _show(out: Path, prices: Prices | None, *, comparable: bool, as_json: bool) -> None:
    """How many were answered and what it took; exit code 1 where the engine failed at everything."""
    from perse.batch.local import read_run
    from perse.evaluation.costs import spent
    from perse.judgement import Status
    from perse.judging.loop import JUDGEMENTS

    run = read_run(out)
    statuses = Counter(str(judgement.status) for judgement in run.judgements)
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    then = f"next: perse evaluate {escape(str(out))}" if comparable else f"answers: {escape(str(out / JUDGEMENTS))}"
    err.print(f"judged: [bold]{escape(str(out))}[/bold]  ({counts})  {then}")
    if run.caution:
        say(f"note: {run.caution}")
    if prices:
        err.print(prices.bill(run.judgements), highlight=False, markup=False)
    if as_json:
        took = spent(run.judgements, prices=prices, seconds=run.seconds)
        typer.echo(json.dumps({"run": str(out), "statuses": dict(statuses), "spent": took.model_dump()}, indent=2))
    if run.judgements and statuses[Status.ENGINE_ERROR] == len(run.judgements):
        err.print(
            f"perse: the engine failed at every example: {run.judgements[0].error}",
            style="bold red", markup=False, soft_wrap=True,
        )  # fmt: skip
        raise typer.Exit(1)
