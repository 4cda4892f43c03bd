"""How should an answer be read? Greedy, sampled, the mean of several samples, the score alone, or its exact expectation.

A written review is one of many that the judge might write, and the score behind it follows from it. So the ways differ in what
is written, and in whether a score is a label or the expectation of its distribution: self-consistency is the mean over several
sampled reviews of either. Beside each stands what it costs in tokens. The paper samples once at 0.8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perse.errors import BadInput
from perse.evaluation.predictions import only
from perse.evaluation.stats.correlation import FloatArray
from perse.judging.loading import short_name
from perse.progress import OnPart, unseen_part
from perse.questions import QUESTIONS
from perse.questions.pointwise import Pointwise
from perse.records import Example, PointwiseExample
from perse.results.result import Cell, Result, Table
from perse.studies.frame.arms import Answers, Arm, LoadJudge
from perse.studies.frame.measuring import READINGS, paired
from perse.studies.frame.running import Asking, opened
from perse.studies.frame.summarizing import (
    NOTHING,
    POINTWISE,
    Reading,
    SharedResamples,
    answered_by_all,
    arithmetic,
    crossed_note,
    heading,
    headline,
    mean_of,
    minus,
    points,
    predictions,
    undefined,
    words,
)
from perse.studies.frame.unanswered import coverage

ASKS = "Which way to read the judge's answer agrees best with the readers, and what does it cost?"

GREEDY, SCORE = "greedy", "score-only"

TIES = (
    "labels tie and expected scores do not, and Kendall tau-b leaves ties out of what it divides by: a label may be some hundredths ahead of the very score that it "
    "was rounded from"
)


@dataclass(frozen=True)
class Way:
    """One way to read answers: predictions of each pass (several have a spread), and the arms that it needs."""

    name: str
    passes: tuple[FloatArray, ...]
    arms: tuple[Answers, ...]
    alternatives: int = 1
    """How many of the arms would do by themselves: the way costs as much as they do on average."""


def decoding(
    asking: Asking,
    out: Path,
    *,
    passes: int = 3,
    load: LoadJudge | None = None,
    on_progress: OnPart = unseen_part,
) -> Result:
    """Every metric of each way to read the answer, with tokens per item, and all differences.

    Args:
        passes: sampled passes at the asking's temperature; their seeds count up from its own.
    Raises:
        BadInput: pairs, about which nothing is written; fewer than two passes; temperature 0; or another question.
        RunMismatch: `out` holds another study.
    """
    if passes < 2:
        raise BadInput(f"found {passes} passes; self-consistency needs two or more")
    if asking.settings.temperature == 0:
        raise BadInput("temperature 0 samples nothing; give the one of the sampled passes, such as 0.8")
    source, judge = asking.open(), asking.judge_name()
    if source.kind == "pairwise":
        raise BadInput(f"{asking.examples} holds pairs, which are answered without writing first; give single texts")
    written, alone = _both(asking.question or "pointwise")
    loaded = source.shown()
    still = replace(asking.settings, temperature=0.0)
    sampled = [f"sampled{n + 1}" for n in range(passes)]
    seeds = [replace(asking.settings, seed=asking.settings.seed + n) for n in range(passes)]
    arms = [
        Arm(name=GREEDY, loaded=loaded, judge=judge, question=written, settings=still),
        Arm(name=SCORE, loaded=loaded, judge=judge, question=alone, settings=still),
        *(
            Arm(name=name, loaded=loaded, judge=judge, question=written, settings=own)
            for name, own in zip(sampled, seeds, strict=True)
        ),
    ]
    with opened(
        out, "decoding", asking, source=source, question=written, options={"passes": passes}, load=load, on_progress=on_progress
    ) as study:
        answers = study.ask(arms)
        return study.finish(_result(asking, short_name(judge), loaded.examples, answers, sampled, alone=alone.name))


def _both(name: str) -> tuple[Pointwise, Pointwise]:
    """The question `name`, which has a review written, and the one that shows the same prompt and asks for the score alone."""
    scoring = [question for question in QUESTIONS.values() if isinstance(question, Pointwise)]
    known = {
        written.name: (written, alone)
        for written in scoring
        for alone in scoring
        if written.layout.text_prefix is not None
        and alone.layout.text_prefix is None
        and (written.statement, written.evidence, written.arranged) == (alone.statement, alone.evidence, alone.arranged)
    }
    if name not in known:
        raise BadInput(
            f"found question '{name}'; this study asks {' or '.join(known)}, and the same for the score alone; leave it out"
        )
    return known[name]


def _result(
    asking: Asking,
    judge: str,
    examples: Sequence[Example],
    answers: Mapping[str, Answers],
    sampled: Sequence[str],
    *,
    alone: str,
) -> Result:
    asked = only(PointwiseExample, examples)
    kept = answered_by_all(asked, answers)
    shared = SharedResamples.over(kept or asked, resamples=asking.resamples, seed=asking.settings.seed)
    main = headline(asked)

    def read(name: str, reading: Reading) -> FloatArray | None:
        return predictions(kept, answers[name], reading) if kept else None

    ways = []
    for name, title in ((GREEDY, "greedy"), (SCORE, "score alone")):
        for reading, kind in _kinds([answers[name]]).items():
            found = read(name, reading)
            ways.append(Way(f"{title}, {kind}", () if found is None else (found,), (answers[name],)))
    arms = tuple(answers[name] for name in sampled)
    for reading, kind in _kinds(arms).items():
        each = [given for name in sampled if (given := read(name, reading)) is not None]
        whole = tuple(each) if len(each) == len(sampled) else ()
        ways.append(Way(f"one sample, {kind}", whole, arms, alternatives=len(arms)))
        ways.append(Way(f"mean of {len(sampled)} samples, {kind}", (np.mean(whole, axis=0),) if whole else (), arms))
    made = [point for way in ways for point in points(shared, judge, way.name, metrics=POINTWISE, passes=way.passes)]
    for name, values in (arithmetic(kept, seed=asking.settings.seed) if kept else {}).items():
        made += [p for way in ways for p in points(shared, name, way.name, metrics=POINTWISE, passes=[values], baseline=True)]
    rows: list[tuple[Cell, ...]] = []
    for way in ways:
        here = [point for point in made if (point.series, point.x) == (judge, way.name)]
        deviation = next((f"{p.spread:.3f}" for p in here if p.metric == main and p.spread is not None), None)
        rows.append((way.name, *_tokens(way), *(point.estimate for point in here), deviation))

    def apart(left: Way, right: Way) -> Cell:
        if left is right:
            return None
        if not left.passes or not right.passes:
            return undefined(NOTHING)
        return shared.value(main, minus(mean_of(left.passes), mean_of(right.passes)))

    square: tuple[tuple[Cell, ...], ...] = tuple((left.name, *(apart(left, right) for right in ways)) for left in ways)
    return Result(
        name="decoding",
        asks=ASKS,
        answer=_answer(shared, ways, main),
        plot="bars",
        x_label="how the answer is read",
        points=tuple(made),
        tables=(
            Table(
                title="Each way to read the answer",
                header=(
                    "way",
                    "prompt tokens",
                    "written",
                    *map(heading, POINTWISE),
                    f"sd of {heading(main)}",
                ),
                rows=tuple(rows),
                notes=("tokens: mean per item, of all passes that the way needs; of one sample the mean over the passes",),
            ),
            Table(
                title=f"Differences in {heading(main)}: row minus column",
                header=("way", *(way.name for way in ways)),
                rows=square,
                notes=(paired(POINTWISE),),
            ),
        ),
        notes=(
            f"{len(kept)} of {len(asked)} items stand behind each value: those that have an answer in every pass that has any",
            *coverage(answers),
            *crossed_note(kept),
            f"sampled at temperature {asking.settings.temperature:g}; one sample is the mean over {len(sampled)} passes of what the paper "
            "does once at 0.8, and sd their standard deviation",
            f"score alone: the question {alone}, without a review",
            "the highest of several ways is chosen after looking, so its value is a little too high",
            *((TIES,) if main == "kendall" and any(way.name.endswith("expected") for way in ways) else ()),
            READINGS,
        ),
    )


def _kinds(arms: Sequence[Answers]) -> dict[Reading, str]:
    """How answers can be read; without any distribution there is the label alone, and nothing is a way of its own twice."""
    distributions = any(judgement.distribution for arm in arms for judgement in arm.values())
    return {"label": "label", "expected": "expected"} if distributions else {"label": "label"}


def _tokens(way: Way) -> tuple[str, str]:
    """Mean prompt and written tokens of an item, summed over the arms, or their mean where each would do.

    Cached tokens are ignored: they depend on which arm came first.
    """
    items = max((len(arm) for arm in way.arms), default=0)
    given = [judgement.tokens for arm in way.arms for judgement in arm.values()]
    sums = (sum(t.prompt for t in given) / way.alternatives, sum(t.generated for t in given) / way.alternatives)
    prompt, generated = (f"{total / items:.1f}" if items else "-" for total in sums)
    return prompt, generated


def _answer(shared: SharedResamples, ways: Sequence[Way], metric: str) -> str:
    known = [
        (value, way) for way in ways if way.passes and (value := shared.value(metric, mean_of(way.passes))).value is not None
    ]
    if not known:
        return "No way to read the answer has a value: nothing was answered, or all answers are the same, or all of the readers' scores."
    best_value, best = max(known, key=lambda one: one[0].value or 0.0)
    as_high = [way for value, way in known if value.value == best_value.value]
    said = f"Highest {heading(metric)}: {' and '.join(way.name for way in as_high)}, {words(best_value)}."
    paper = next(way for way in ways if way.name == "one sample, label")
    if not paper.passes or len(known) == 1 or (len(as_high) > 1 and paper in as_high):
        return said
    if paper is best:
        _, second = max((one for one in known if one[1] is not best), key=lambda one: one[0].value or 0.0)
        ahead = shared.told(metric, minus(mean_of(best.passes), mean_of(second.passes)))
        return f"{said} Minus the next, {second.name}, and flattered by the choice of the highest of {len(known)}: {ahead}."
    ahead = shared.told(metric, minus(mean_of(best.passes), mean_of(paper.passes)))
    return f"{said} Minus one sampled label, as the paper reads it (which samples at 0.8), and flattered by the choice of the highest of {len(known)}: {ahead}."
