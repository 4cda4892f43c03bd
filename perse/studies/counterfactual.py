"""Does the judge use the reader's past? The same queries with profiles that are not this reader's (`data.counterfactual`).

The personalization gain is the value with the reader's own profile minus that with another: over an empty one, what any
profile gives; over another reader's, what this reader's gives; over their own verdicts on the wrong texts, what verdicts tell
because they belong to their texts: the reader's taste, or no more than that the profile makes sense. This study is not in the paper, which compares with the empty profile alone (k = 0, figure 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from perse.data.load import LoadedExamples
from perse.data.profiles.views import View
from perse.data.variants.counterfactual import dealt_anew, with_another_profile, without_profile
from perse.data.variants.profile_variants import ProfileShown, personal
from perse.errors import BadInput
from perse.judging.loading import short_name
from perse.progress import OnPart, unseen_part
from perse.results.result import Cell, Result, Table
from perse.studies.frame.arms import Arm, LoadJudge, Source
from perse.studies.frame.measuring import Condition, Measured, measure, paired
from perse.studies.frame.running import Asking, opened
from perse.studies.frame.summarizing import heading, words

ASKS = "Does the judge go by this reader's past, or would any other do as well?"

OWN, EMPTY, ANOTHER, SHUFFLED = "own", "empty", "another reader's", "own, re-drawn"
_SHOWN = {
    OWN: ProfileShown.OWN,
    EMPTY: ProfileShown.EMPTY,
    ANOTHER: ProfileShown.ANOTHER,
    SHUFFLED: ProfileShown.SHUFFLED,
}
"""As an arm's manifest tells it: tables of arms read the readers' own averages."""
REDRAWN = (
    "re-drawn: the reader's reviews and scores are attached to the wrong texts, so how lenient they are can still be read, and what they like "
    "only where scores are the same; but a judge may also be worse for texts and reviews that do not fit together: where a gain over it is taste, there is "
    "one within readers over another reader's profile, too"
)
REDRAWN_OF_PAIRS = (
    "re-drawn: the reader's preferences are attached to the wrong pairs, so what they like can be read only where these are the same; but a "
    "judge may also be worse for preferences that do not fit their pairs: where a gain over it is taste, there is one over another reader's "
    "profile, too"
)
SAID = {
    EMPTY: "no profile",
    ANOTHER: "another reader's profile",
    SHUFFLED: "the reader's own verdicts on the wrong texts",
}


def counterfactual(
    asking: Asking,
    out: Path,
    *,
    k: int | None = None,
    load: LoadJudge | None = None,
    on_progress: OnPart = unseen_part,
) -> Result:
    """Every metric with each profile, and what the reader's own one gains over each.

    Args:
        k: entries of the own profile; by default the folder's own.
    Raises:
        BadInput: the data holds one reader, or profiles without an entry.
        RunMismatch: `out` holds another study.
    """
    source, judge = asking.open(), asking.judge_name()
    question = asking.ask(source)
    shown, missing = _profiles(source, View(k=k), seed=asking.settings.seed)
    arms = {
        name: Arm(name=name.replace("'", "").replace(",", "").replace(" ", "-"), loaded=loaded, judge=judge, question=question,
                  settings=asking.settings)
        for name, loaded in shown.items()
    }  # fmt: skip
    with opened(
        out, "counterfactual", asking, source=source, question=question, options={"k": k}, load=load, on_progress=on_progress
    ) as study:
        answers = study.ask(list(arms.values()))
        conditions = [
            Condition(short_name(judge), name, (answers[arm.name],), arm.loaded.examples) for name, arm in arms.items()
        ]
        return study.finish(_result(asking, conditions, missing))


def _profiles(source: Source, view: View, *, seed: int) -> tuple[dict[str, LoadedExamples], list[str]]:
    """The examples of each arm, and why some are missing."""
    loaded, everybody = source.shown(view), source.whole(view)
    own = [example for example in personal(loaded.examples) if example.profile]
    donors = personal(everybody.examples)
    missing = []
    if not own:
        raise BadInput(f"no profile in {source.path} has an entry; nothing can be taken away (give --k 1 or more)")
    if len(own) < len(loaded.examples):
        missing.append(f"{len(loaded.examples) - len(own)} examples with an empty profile are left out")
    made = {
        OWN: own,
        EMPTY: [without_profile(example) for example in own],
        ANOTHER: with_another_profile(own, donors, seed=seed),
        SHUFFLED: dealt_anew(own, seed=seed),
    }
    for name, examples in made.items():
        if len(examples) < len(own):
            why = "their profile has one entry" if name == SHUFFLED else "the other reader's profile shows their query"
            missing.append(f"{name}: {len(own) - len(examples)} of {len(own)} examples have none, since {why}")
    before = {example.id: example.profile for example in own}
    if same := sum(example.profile == before[example.id] for example in made[SHUFFLED]):
        alike = f"{same} of {len(made[SHUFFLED])} examples show the own profile again, since verdicts that changed places are the same"
        missing.append(f"{SHUFFLED}: {alike}")
    kept = {name: examples for name, examples in made.items() if examples}
    return {
        name: LoadedExamples([*examples], loaded.digest, loaded.folder, loaded.fold, profile=str(_SHOWN[name]))
        for name, examples in kept.items()
    }, missing


def _result(asking: Asking, conditions: Sequence[Condition], missing: Sequence[str]) -> Result:
    found = measure(conditions, resamples=asking.resamples, seed=asking.settings.seed)
    judge = conditions[0].judge
    others = [one.x for one in conditions[1:]]
    series = [name for name in dict.fromkeys(name for name, _ in found.values) if name != "random"]
    gains: tuple[tuple[Cell, ...], ...] = tuple(
        (name, x, *found.differences((name, OWN), (name, x))) for name in series for x in others if (name, x) in found.values
    )
    return Result(
        name="counterfactual",
        asks=ASKS,
        answer=_answer(found, judge, others, seed=asking.settings.seed),
        plot="bars",
        x_label="whose profile is shown",
        points=found.points,
        tables=(
            Table(
                title="Personalization gain: own profile minus another",
                header=("who", "own minus", *found.headings),
                rows=gains,
                notes=(paired(found.metrics),),
            ),
            found.table("Each profile", "profile"),
        ),
        notes=(
            *found.notes,
            *missing,
            "p by Holm: answers exchanged reader by reader, adjusted over the gains of the answer; a gain is shown where it is at most 0.05 and the interval leaves out 0"
            + (" (of Kendall tau-b where ties count for neither, too)" if "kendall" in found.metrics else ""),
            *([REDRAWN if "kendall" in found.metrics else REDRAWN_OF_PAIRS] if SHUFFLED in others else []),
            *(
                ["the profile average is that of the profile shown; an empty one has none"]
                if "kendall" in found.metrics
                else []
            ),
        ),
    )


def _answer(found: Measured, judge: str, others: Sequence[str], *, seed: int) -> str:
    told = found.told_together((judge, OWN), [(judge, x) for x in others], seed=seed)
    gains = [f"over {SAID[x]} {gain}" for x, gain in zip(others, told, strict=True)]
    value = words(found.value(judge, OWN, found.main))
    return f"{judge}: {heading(found.main)} {value} with the reader's own profile; gain " + "; ".join(gains) + "."
