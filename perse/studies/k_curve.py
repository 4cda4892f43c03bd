"""How much of a reader's past does a judge need? The same queries with nested profiles of k = 0 .. K (PerSE, figure 3).

A given judge is asked with every k as it is (inference only); with a recipe, one judge is trained for each k and asked with
that k, which is what figure 3 shows of PerSE. Differs from the paper: its data sets of different k hold different examples,
here the queries are the same and the first k of one profile are shown; beside the written label stands the expected score.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perse.data.profiles.views import View
from perse.errors import BadInput
from perse.judging.loading import short_name
from perse.progress import OnPart, unseen_part
from perse.results.result import Cell, Result, Table
from perse.studies.frame.arms import Arm, LoadJudge
from perse.studies.frame.measuring import Condition, Measured, measure, paired
from perse.studies.frame.retraining import ONE_TRAINING, Recipe, configs, identity, kinds_of_judge, trained
from perse.studies.frame.running import Asking, opened
from perse.studies.frame.summarizing import heading, verdict, words

ASKS = "Does the judge do better with more of a reader's past?"


def k_curve(
    asking: Asking,
    out: Path,
    *,
    ks: Sequence[int] | None = None,
    recipe: Recipe | None = None,
    load: LoadJudge | None = None,
    on_progress: OnPart = unseen_part,
) -> Result:
    """Every metric at each k, with intervals, beside the average of the same profiles and a random score.

    Args:
        ks: by default 0 to the most that the data set folder keeps.
        recipe: trains a judge for each k, in OUT/trained.
    Raises:
        BadInput: a k that the folder does not keep, or no judge and no recipe.
        RunMismatch: `out` holds another study.
    """
    kinds = kinds_of_judge(asking.judge, recipe)
    source = asking.open()
    most = source.folder("a curve over k").max_k
    chosen = sorted(set(range(most + 1) if ks is None else ks))
    if len(chosen) < 2:
        raise BadInput(f"a curve needs two or more k, found {', '.join(map(str, chosen)) or 'none'}; give --ks 0,1,3")
    loaded = {k: source.shown(View(k=k)) for k in chosen}
    question = asking.ask(source)
    to_train = {} if recipe is None else configs(
        recipe, {f"k{k}": {"k": k} for k in chosen}, asking=asking, question=question, out=out
    )  # fmt: skip
    retrained = {k: source.seen(to_train[f"k{k}"].data.profile_aspects).shown(View(k=k)) for k in chosen} if to_train else {}
    options = {"ks": chosen, "training": identity(to_train)}
    with opened(
        out, "k-curve", asking, source=source, question=question, options=options, load=load, on_progress=on_progress
    ) as study:
        judges = trained(to_train)
        arms = {
            (kind, k): Arm(
                name=f"k{k}" if kind == "as given" else f"retrained-k{k}",
                loaded=loaded[k] if kind == "as given" else retrained[k],
                judge=asking.judge_name() if kind == "as given" else judges[f"k{k}"],
                question=question,
                settings=asking.settings,
            )
            for kind in kinds
            for k in chosen
        }
        answers = study.ask(list(arms.values()))
        series = {"as given": short_name(asking.judge or ""), "retrained": "retrained per k"}
        conditions = [
            Condition(series[kind], str(k), (answers[arm.name],), arm.loaded.examples) for (kind, k), arm in arms.items()
        ]
        return study.finish(_result(asking, conditions, chosen, retrained=recipe is not None))


def _of_profiles(found: Measured) -> str:
    """The baseline that needs a profile."""
    return "the profile average" if "kendall" in found.metrics else "copying the example"


def _result(asking: Asking, conditions: Sequence[Condition], ks: Sequence[int], *, retrained: bool) -> Result:
    found = measure(conditions, resamples=asking.resamples, seed=asking.settings.seed)
    low, high = str(ks[0]), str(ks[-1])
    series = [name for name, k in found.values if k == low and name != "random"]
    gains: tuple[tuple[Cell, ...], ...] = tuple(
        (name, str(k), *found.differences((name, str(k)), (name, low))) for name in series for k in ks[1:]
    )
    return Result(
        name="k-curve",
        asks=ASKS,
        answer=" ".join(_answer(found, judge, low, high) for judge in dict.fromkeys(one.judge for one in conditions)),
        plot="lines",
        x_label="k: how many of the reader's past reviews are shown",
        points=found.points,
        tables=(
            found.table("Each k", "k"),
            Table(
                title=f"Gain over k = {low}", header=("who", "k", *found.headings), rows=gains, notes=(paired(found.metrics),)
            ),
        ),
        notes=(
            *found.notes,
            *([ONE_TRAINING] if retrained else []),
            *(
                [
                    f"{_of_profiles(found)} begins at k = {ks[1]}: at k = 0 the paper's baseline is a random answer, here 'random'"
                ]
                if ks[0] == 0
                else []
            ),
            "whose past it is was not varied: whether another reader's would do as well, perse study counterfactual shows",
            "differs from PerSE, figure 3: the same queries at every k and nested profiles, where the paper has a data set for each k"
            + (
                ""
                if asking.judge is None
                else "; a judge that is given is asked at every k as it is, where the paper trains one for each"
            ),
        ),
    )


def _answer(found: Measured, judge: str, low: str, high: str) -> str:
    value = words(found.value(judge, high, found.main))
    gain = found.told((judge, high), (judge, low))
    said = f"{judge}: {heading(found.main)} {value} at k = {high}; gain over k = {low}: {gain}."
    simple = found.simple(high)
    if simple is None:
        return said
    if (rounded := found.over_rounded(judge, simple, high)) is not None:
        # Labels have more ties than an average, and ties alone put the one before the other: that decides nothing.
        ahead = found.difference((judge, high), (simple, high), found.main)
        return f"{said} Minus '{simple}' at k = {high}, told as coarsely as its answers are: {verdict(rounded)} (as it is, where ties differ, {words(ahead, signed=True)})."
    return f"{said} Minus '{simple}' at k = {high}: {found.told((judge, high), (simple, high))}."
