"""Is it the reader's words or their scores? Profiles with and without review texts (PerSE, table 5).

With a recipe one judge is trained with the texts and one without, each asked in its own way, which is what table 5 shows of
PerSE; without one, a given judge is asked both ways as it is, which is another study and says so. Each is asked in several
passes and their mean is shown. Differs from the paper: its three replicates are not described; here training is one, and the
passes sample the answers again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from perse.studies.frame.summarizing import heading, words

ASKS = "Does the judge do better with the reader's own words than with their scores alone?"

WITH, WITHOUT = "with review text", "scores alone"
RETRAINED = "retrained"
ASKED_ONLY = "a judge that is only asked meets profiles unlike those it knows, so what it loses without words may be surprise"


def review_text(
    asking: Asking,
    out: Path,
    *,
    repeats: int = 3,
    recipe: Recipe | None = None,
    load: LoadJudge | None = None,
    on_progress: OnPart = unseen_part,
) -> Result:
    """Every metric with and without review texts, as the mean of `repeats` passes, and the paired difference.

    Args:
        repeats: passes; their seeds count up from the asking's. Greedy answers are the same in each, so one is enough.
        recipe: trains a judge for each way, in OUT/trained.
    Raises:
        BadInput: pairs, whose profiles hold no review; or no judge and no recipe.
        RunMismatch: `out` holds another study.
    """
    kinds = kinds_of_judge(asking.judge, recipe)
    if repeats < 1:
        raise BadInput(f"found {repeats} repeats; give at least 1")
    source = asking.open()
    if source.kind == "pairwise":
        raise BadInput(f"{asking.examples} holds pairs, whose profiles have no review texts; give single texts")
    source.folder("profiles without review texts")
    question = asking.ask(source)
    ways = {WITH: True, WITHOUT: False}
    short_names = {WITH: "with-text", WITHOUT: "without-text"}
    to_train = {} if recipe is None else configs(
        recipe, {short_names[way]: {"review_text": shows} for way, shows in ways.items()}, asking=asking, question=question, out=out
    )  # fmt: skip
    passes = range(repeats if asking.settings.temperature > 0 else 1)
    options = {"repeats": repeats, "training": identity(to_train)}
    with opened(
        out, "review-text", asking, source=source, question=question, options=options, load=load, on_progress=on_progress
    ) as study:
        judges = trained(to_train)
        arms = {
            (kind, way, n): Arm(
                name=f"{'retrained-' if kind == RETRAINED else ''}{short_names[way]}-pass{n + 1}",
                loaded=source.shown(View(review_text=shows)),
                judge=judges[short_names[way]] if kind == RETRAINED else asking.judge_name(),
                question=question,
                settings=replace(asking.settings, seed=asking.settings.seed + n),
            )
            for kind in kinds
            for way, shows in ways.items()
            for n in passes
        }
        answers = study.ask(list(arms.values()))
        conditions = [
            Condition(
                "retrained each way" if kind == RETRAINED else short_name(asking.judge_name()),
                way,
                tuple(answers[arms[kind, way, n].name] for n in passes),
                arms[kind, way, 0].loaded.examples,
            )
            for kind in kinds
            for way in ways
        ]
        return study.finish(_result(asking, conditions, repeats=len(passes), retrained=recipe is not None))


def _result(asking: Asking, conditions: Sequence[Condition], *, repeats: int, retrained: bool) -> Result:
    found = measure(conditions, resamples=asking.resamples, seed=asking.settings.seed)
    judges = list(dict.fromkeys(one.judge for one in conditions))
    series = [name for name, x in found.values if x == WITH and any(name.startswith(judge) for judge in judges)]
    rows: list[tuple[Cell, ...]] = []
    for name in series:
        for way in (WITH, WITHOUT):
            here = [point for point in found.points if (point.series, point.x) == (name, way)]
            spreads = [
                f"{point.spread:.3f}" if point.spread is not None else None for point in here if point.metric == found.main
            ]
            rows.append((name, way, *(point.estimate for point in here), *spreads))
        rows.append((name, "difference", *found.differences((name, WITH), (name, WITHOUT)), None))
    asked_only = (
        ""
        if asking.judge is None
        else f" (asked only: {short_name(asking.judge)} was not trained again, as in the paper's table it was)"
    )
    return Result(
        name="review-text",
        asks=ASKS,
        answer=" ".join(_answer(found, judge) for judge in judges),
        plot="bars",
        x_label="what a profile shows",
        points=found.points,
        tables=(
            Table(
                title=(f"Mean of {repeats} passes" if repeats > 1 else "One pass") + asked_only,
                header=("who", "profile", *found.headings, f"sd of {heading(found.main)}"),
                rows=tuple(rows),
                notes=(paired(found.metrics),),
            ),
            found.table("All rows", "profile"),
        ),
        notes=(
            *found.notes,
            *([ONE_TRAINING] if retrained else []),
            *([ASKED_ONLY + ("" if retrained else ": --retrain trains one each way")] if asking.judge is not None else []),
            "whose words they are was not varied",
            "differs from PerSE, table 5: the paper does not say what its three replicates replicate; here "
            + ("every pass asks the same judges again, with a seed of its own" if repeats > 1 else "there is one pass"),
        ),
    )


def _answer(found: Measured, judge: str) -> str:
    return (
        f"{judge}: {heading(found.main)} {words(found.value(judge, WITH, found.main))} with the reader's words and "
        f"{words(found.value(judge, WITHOUT, found.main))} with scores alone; difference "
        f"{found.told((judge, WITH), (judge, WITHOUT))}."
    )
