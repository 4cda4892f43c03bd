"""One judge for all aspects, or one for each? Pairs, accuracy aspect by aspect (PerSE, figure 5).

The judges of single aspects are trained here, each on the examples of its aspect; the unified one is given, or trained by the
same recipe on all. Each single judge is asked about its own aspect. For the same epochs the unified one sees more data and takes more
steps, which is the paper's point; fix `train.steps` in the recipe to give all the same number of steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from perse.data.load import LoadedExamples
from perse.data.profiles.views import ProfileAspects
from perse.errors import BadInput
from perse.evaluation.predictions import only
from perse.evaluation.stats.correlation import FloatArray
from perse.files.path_names import path_name_of
from perse.judgement import Status
from perse.progress import OnPart, unseen_part
from perse.questions import Question
from perse.questions.pairwise import PairwiseOnce
from perse.records import PairwiseExample
from perse.results.result import Cell, Estimate, Point, Result, Table
from perse.studies.frame.arms import Arm, LoadJudge
from perse.studies.frame.measuring import READINGS, paired
from perse.studies.frame.retraining import ONE_TRAINING, Recipe, configs, identity, trained
from perse.studies.frame.running import Asking, opened
from perse.studies.frame.summarizing import (
    NOTHING,
    PAIRWISE,
    SharedResamples,
    Terms,
    arithmetic,
    crossed_note,
    mean_of,
    minus,
    note_of_shares,
    readings,
    shown_apart,
    undefined,
    verdict,
    words,
)
from perse.studies.frame.unanswered import coverage

ASKS = "Is one judge of all aspects better than a judge for each?"

UNIFIED, SINGLE = "unified", "one for each"
ALL = "all aspects"


def aspects(
    asking: Asking,
    out: Path,
    *,
    recipe: Recipe,
    profile_aspects: ProfileAspects | None = None,
    load: LoadJudge | None = None,
    on_progress: OnPart = unseen_part,
) -> Result:
    """Accuracy of the unified judge (`asking.judge`, or trained here) and of the single ones, aspect by aspect.

    Args:
        profile_aspects: what profile entries show the judges that are trained here, in training and when asked: all preferences, or
            as in the paper the asked aspect's alone; by default as the recipe says. A judge that is given is asked as it was trained.
    Raises:
        BadInput: single texts, or pairs of one aspect.
        RunMismatch: `out` holds another study.
    """
    source = asking.open()
    if source.kind != "pairwise":
        raise BadInput(f"{asking.examples} holds single texts, which have no aspects; give pairs")
    loaded = source.shown()
    question = asking.ask(source)
    pairs = only(PairwiseExample, loaded.examples)
    names = sorted({example.aspect for example in pairs})
    if len(names) < 2:
        raise BadInput(f"{asking.examples} holds one aspect, '{names[0]}'; unified and single are the same; give two or more")
    slugs = {aspect: f"aspect{n}-{path_name_of(aspect)}" for n, aspect in enumerate(names, start=1)}
    varied: dict[str, dict[str, str | None]] = {slugs[aspect]: {"aspect": aspect} for aspect in names}
    if asking.judge is None:
        varied = {UNIFIED: {"aspect": None}, **varied}
    if profile_aspects is not None:
        varied = {name: fields | {"profile_aspects": profile_aspects} for name, fields in varied.items()}
    to_train = configs(recipe, varied, asking=asking, question=question, out=out)
    own_view = next(iter(to_train.values())).data.profile_aspects
    seen = source.seen(own_view).shown()
    own_pairs = only(PairwiseExample, seen.examples)
    with opened(
        out,
        "aspects",
        asking,
        source=source,
        question=question,
        options={"training": identity(to_train)},
        load=load,
        on_progress=on_progress,
    ) as study:
        judges = trained(to_train)
        arms = [
            Arm(
                name=UNIFIED,
                loaded=loaded if asking.judge else seen,
                judge=asking.judge or judges[UNIFIED],
                question=question,
                settings=asking.settings,
            )
        ]
        for aspect in names:
            own = LoadedExamples([one for one in own_pairs if one.aspect == aspect], loaded.digest, loaded.folder, loaded.fold)
            arms.append(
                Arm(name=slugs[aspect], loaded=own, judge=judges[slugs[aspect]], question=question, settings=asking.settings)
            )
        answers = study.ask(arms)
        single = {key: given for aspect in names for key, given in answers[slugs[aspect]].items()}
        hits: dict[str, tuple[FloatArray, ...]] = {}
        for name, given in ((UNIFIED, answers[UNIFIED]), (SINGLE, single)):
            hits |= readings(name, pairs, [given])
        silent = [name for name in names if not any(one.status is Status.OK for one in answers[slugs[name]].values())]
        of_given = source.profile_aspects if asking.judge else None
        result = _result(asking, question, pairs, names, hits, silent=silent, view=own_view, given=of_given)
        return study.finish(result.model_copy(update={"notes": (*result.notes, *coverage(answers))}))


def _result(
    asking: Asking,
    question: Question,
    pairs: Sequence[PairwiseExample],
    names: Sequence[str],
    hits: Mapping[str, tuple[FloatArray, ...]],
    *,
    silent: Sequence[str],
    view: ProfileAspects,
    given: ProfileAspects | None,
) -> Result:
    """`silent`: the aspects whose single judge answered nothing."""
    shared = SharedResamples.over(pairs, resamples=asking.resamples, seed=asking.settings.seed)
    asked = np.array([example.aspect for example in pairs], dtype=object)
    places = {name: asked == name for name in names}

    def accuracy(x: str, terms: Terms, *, single: bool) -> Estimate:
        lost = [name for name in silent if single and x in (name, ALL)]
        if not terms or lost:
            return undefined(f"{NOTHING} of {lost[0]}" if terms else NOTHING)
        return shared.macro(terms, list(places.values())) if x == ALL else shared.value("accuracy", terms, chosen=places[x])

    everything = {name: (passes, False) for name, passes in hits.items()}
    everything |= {name: ((values,), True) for name, values in arithmetic(pairs, seed=asking.settings.seed).items()}
    found: list[Point] = []
    for series, (passes, baseline) in everything.items():
        for x in (*places, ALL):
            estimate = accuracy(x, mean_of(passes) if passes else (), single=series.startswith(SINGLE))
            found.append(Point(series=series, x=x, metric="accuracy", estimate=estimate, baseline=baseline))
    both = minus(mean_of(hits[UNIFIED]), mean_of(hits[SINGLE])) if hits[UNIFIED] and hits[SINGLE] else ()
    differences = {x: accuracy(x, both, single=True) for x in (*places, ALL)}
    of = {(point.series, point.x): point.estimate for point in found}
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (x, *(of[series, x] for series in everything), differences[x]) for x in (*places, ALL)
    )
    return Result(
        name="aspects",
        asks=ASKS,
        answer=(
            f"In the mean of the aspects the unified judge is right in {words(of[UNIFIED, ALL])} of the pairs, judges of single aspects in "
            f"{words(of[SINGLE, ALL])}; difference {verdict(differences[ALL])}. {_by_aspect({name: differences[name] for name in names})}"
        ),
        plot="bars",
        x_label="aspect",
        points=tuple(found),
        tables=(
            Table(
                title="Accuracy",
                header=("aspect", *everything, f"{UNIFIED} minus {SINGLE}"),
                rows=rows,
                notes=(paired(PAIRWISE),),
            ),
        ),
        notes=(
            READINGS,
            "a pair that was not answered is a wrong one; a judge that answered nothing has no value, nor has the mean of aspects of "
            "which one has none",
            *note_of_shares(pairs),
            *crossed_note(pairs),
            f"{ALL}: the mean of the aspects, which count alike (PerSE, table 4)",
            _shown(view, given),
            ONE_TRAINING,
            "each judge of a single aspect was trained on the examples of its aspect and asked about that one",
            *_orders(question),
        ),
    )


def _by_aspect(differences: Mapping[str, Estimate]) -> str:
    """Which aspects' intervals leave out 0, of those that have one."""
    known = [name for name, one in differences.items() if one.interval.low is not None]
    if not known:
        return "No aspect by itself has an interval."
    apart = [f"{name} {words(differences[name], signed=True)}" for name in known if shown_apart(differences[name])]
    said = (
        "none leaves"
        if not apart
        else f"that of {apart[0]} leaves"
        if len(apart) == 1
        else f"those of {', '.join(apart)} leave"
    )
    chance = "; the more aspects are looked at, the likelier one does by chance" if apart and len(known) > 1 else ""
    many = f"{len(known)} aspects" if len(known) > 1 else "1 aspect"
    return f"Of the intervals of {many}, each looked at by itself, {said} out 0{chance}."


def _orders(question: Question) -> tuple[str, ...]:
    """How pairs are asked where that is not figure 5's way."""
    if isinstance(question, PairwiseOnce):
        return ()
    return ("differs from PerSE, figure 5: both orders of a pair are asked and averaged (--question pairwise_once asks one)",)


def _shown(view: ProfileAspects, given: ProfileAspects | None) -> str:
    """What the profiles show the judges."""
    words = {"all": "all preferences on its pair", "asked": "the asked aspect alone, as in the paper"}
    said = f"a profile entry shows the judges that were trained here {words[view]}, in training and when asked"
    if view == "all":
        said += ", those of single aspects too: the paper's are with --profile-aspects asked"
    return said if given in (None, view) else f"{said}; the judge that was given {words[given]}"
