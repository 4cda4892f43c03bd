"""Does the judge know when it does not know? Keep only the answers that it is surest of, and see whether the error falls.

Answers are ordered by how sure the judge was: by the entropy of the label distribution, by the largest probability, and for
pairs by the order gap. Risk, its area and how equally sure answers are treated: `perse.evaluation.calibration.risk_coverage`.
Nothing is judged. The trade-off: the risk of small shares is that of few answers; the area is the number to go by.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.errors import BadInput
from perse.evaluation.calibration.risk_coverage import SHARES, area, by_what_is_said, curve, entropy, equally_sure, kept
from perse.evaluation.predictions import expected_value
from perse.evaluation.stats.accuracy import likeliest_correct
from perse.evaluation.stats.correlation import FloatArray
from perse.evaluation.stats.departures import ENOUGH, departing
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import FEWEST_REVIEWERS
from perse.evaluation.stats.shares import share_note
from perse.evaluation.stats.unseen import joined, none_among, of_mean
from perse.judgement import Judgement, Status
from perse.records import ChoiceReference, Example
from perse.results.result import Estimate, Interval, Point, Result, Table
from perse.studies.frame.resampling import estimates
from perse.studies.frame.summarizing import SharedResamples, crossed_note, with_reach, words

NAMES = {"entropy": "entropy", "largest": "largest probability", "order_gap": "order gap"}
RANDOM, ORACLE = "random order", "oracle order"
HARDLY_MORE = 0.1
"""Of what sureness gains: what the scores said do not tell of it is less than that by chance, since the answers next to one say another score."""
_NO_MORE = ", which is not shown to be more than the scores that it says tell"
BY_SAID = "by its scores minus judge's"
_OF_SAID = (
    f"{BY_SAID}: the area in the order of how sure it is on average where it says about such a score, minus the judge's; near an end of the scale any judge is surer, "
    f"and right more often where most scores lie there; less than {HARDLY_MORE:.0%} of what its own gains is no more than chance, wherever the interval lies"
)
_OF_SHARES = f"the area in {RANDOM} is the share of wrong choices of all, with its exact interval; intervals of the other areas are resampled"
ALIKE = 0.25
"""Of their standard deviation. Of values that spread evenly (normal, exponential) a fifth to a quarter lie so near to the middle one; more than half do only
where a few others, far off, make nearly all of the variance. Expected scores never repeat, so that none of their errors is the same as another."""
FEW_OTHERS = "of most answers the error is nearly the same"
FEW_UNSURE = "of most answers it is equally sure"
"""Why no order of sureness is held against chance: by those of 16 answers of 320 a bootstrap is above 0 in 11 of 100 worlds in which sureness
says nothing (docs/results.md, benchmarks/rare_answers.py); by few that are less sure than the rest, of errors that are skewed, in up to 14."""

EQUALLY_SURE = "undefined (it is equally sure of all its answers)"


@dataclass(frozen=True)
class Answers:
    """What one judge answered: its error at each item, and how sure it was, by several measures (greater is surer)."""

    ids: tuple[str, ...]
    risk: FloatArray
    sureness: Mapping[str, FloatArray]
    """By the keys of `NAMES`; a measure that some answer lacks is left out."""
    asked: int
    """Items with a reference, answered or not."""
    metric: str
    """What the risk is: "mae" (of the expected score, else of the label), or "error" (share of wrong choices)."""
    examples: tuple[Example, ...]
    """What was asked, item by item: whose it is, and which texts readers share."""
    said: FloatArray | None = None
    """(n,) the expected scores; None of choices."""
    worst: FloatArray | None = None
    """(n,) the error that each item could have had with the lowest or the highest of all true and predicted scores; None of choices."""

    def only(self, ids: Sequence[str]) -> Answers:
        """The answers to `ids`, in that order."""
        place = {one: n for n, one in enumerate(self.ids)}
        rows = np.array([place[one] for one in ids], dtype=np.int64)
        sureness = {name: values[rows] for name, values in self.sureness.items()}
        examples = tuple(self.examples[n] for n in rows)
        said, worst = (None if values is None else values[rows] for values in (self.said, self.worst))
        return Answers(tuple(ids), self.risk[rows], sureness, self.asked, self.metric, examples, said, worst)


def answers_of(examples: Sequence[Example], judgements: Sequence[Judgement]) -> Answers:
    """Errors and sureness of the answered items that have a reference."""
    given = {judgement.id: judgement for judgement in judgements}
    referenced = [example for example in examples if example.reference is not None and example.id in given]
    answered = [(example, given[example.id]) for example in referenced if given[example.id].status is Status.OK]
    chosen = any(isinstance(example.reference, ChoiceReference) for example in referenced)
    said = worst = None
    if chosen:
        right = likeliest_correct([_choice(example) for example, _ in answered], [judgement for _, judgement in answered])
        risk = 1 - right
    else:
        true = np.array([_score(example) for example, _ in answered], dtype=np.float64)
        said = np.array([expected_value(judgement) for _, judgement in answered], dtype=np.float64)
        risk, every = np.abs(true - said), np.concatenate([true, said])
        worst = np.maximum(true - every.min(), every.max() - true) if len(every) else risk
    told = [judgement for _, judgement in answered]
    sureness: dict[str, FloatArray] = {}
    if told and all(judgement.distribution for judgement in told):
        spread = _spread(told)
        sureness["entropy"] = -entropy(spread)
        if not chosen:  # of two labels, both measures give one order
            sureness["largest"] = spread.max(axis=1)
    if told and all(judgement.order_gap is not None for judgement in told):
        sureness["order_gap"] = np.array([-(judgement.order_gap or 0.0) for judgement in told])
    kept = tuple(example for example, _ in answered)
    return Answers(
        tuple(one.id for one in kept), risk, sureness, len(referenced), "error" if chosen else "mae", kept, said, worst
    )


def _spread(judgements: Sequence[Judgement]) -> FloatArray:
    """(n, L) the distributions, over all labels that any of them names."""
    labels = sorted({label for judgement in judgements for label in judgement.distribution or ()})
    return np.array([[(judgement.distribution or {}).get(label, 0.0) for label in labels] for judgement in judgements])


def _choice(example: Example) -> str:
    assert isinstance(example.reference, ChoiceReference), example.id
    return example.reference.preference


def _score(example: Example) -> float:
    assert example.reference is not None and not isinstance(example.reference, ChoiceReference), example.id
    return float(example.reference.score)


def risk_coverage(judges: Mapping[str, Answers], *, seed: int = 0, resamples: int = 1000, notes: Sequence[str] = ()) -> Result:
    """The study: curves and areas of every judge, on the items that all of them answered.

    Args:
        notes: what is known of the runs and must stand beside the numbers.
    Raises:
        BadInput: no judge, scores and choices together, no item that all answered, or answers that do not tell how sure.
    """
    judges, left_out = _common(judges)
    first = next(iter(judges.values()))
    bootstrap = SharedResamples.over(first.examples, resamples=resamples, seed=seed).bootstrap
    error = "share of wrong choices" if first.metric == "error" else "mean absolute error"
    points: list[Point] = []
    rows: list[tuple[Estimate | str | None, ...]] = []
    shares: list[Table] = []
    said: list[str] = []
    for name, answers in judges.items():
        orders = {NAMES[key]: values for key, values in answers.sureness.items()}
        before = len(points)
        for place, (order, values) in enumerate(orders.items()):
            points += _points(f"{name}, {order}", answers, values, bootstrap)
            areas = _areas(answers, values, bootstrap)
            rows.append((name, order, *areas))
            if place == 0:
                said.append(_sentence(name, order, answers, values, *areas[3:]))
        points += _points(f"{name}, {RANDOM}", answers, np.zeros_like(answers.risk), bootstrap, baseline=True)
        points += _points(f"{name}, {ORACLE}", answers, -answers.risk, bootstrap, baseline=True)
        shares.append(_share_table(name, points[before:], error))
    header = (
        "judge",
        "surest first by",
        "area (AURC)",
        RANDOM,
        ORACLE,
        "random minus judge's",
        *([BY_SAID] if first.said is not None else []),
    )
    area_notes = (
        f"the area: {error} among the answers at least as sure as one drawn at random, averaged; lower is better",
        *([_OF_SAID] if first.said is not None else []),
        *([_OF_SHARES] if first.metric == "error" else []),
    )
    found = Result(
        name="risk-coverage",
        asks="Does the judge know when it does not know: is its error smaller among the answers that it is surest of?",
        answer=" ".join(said),
        plot="lines",
        x_label="share of the answers that is kept, surest first",
        points=tuple(points),
        tables=(Table(title="Area under risk-coverage", header=header, rows=tuple(rows), notes=area_notes), *shares),
        notes=(*notes, *left_out, *crossed_note(first.examples)),
    )
    return with_reach(found)


def _common(judges: Mapping[str, Answers]) -> tuple[dict[str, Answers], tuple[str, ...]]:
    """Every judge's answers to the items that all of them answered, and what that leaves out."""
    if not judges:
        raise BadInput("no run to look at; give at least one folder that `perse score` wrote")
    if len({answers.metric for answers in judges.values()}) > 1:
        raise BadInput("some runs are of scores and some of pairs; look at them apart")
    for name, answers in judges.items():
        if not answers.ids:
            raise BadInput(
                f"{name} has answered none of its {answers.asked} items with a reference; there is no risk to speak of"
            )
        if not answers.sureness:
            raise BadInput(
                f"{name} does not tell how sure it was of each answer: some or all have no label distribution; score with an "
                "engine that gives one (the embedded engine, vLLM, or a server asked with --tokenizer)"
            )
    sets = [set(answers.ids) for answers in judges.values()]
    shared = set.intersection(*sets)
    if not shared:
        raise BadInput(f"no item was answered by all of {', '.join(judges)}; give runs of the same examples")
    first = next(iter(judges.values()))
    ids = [one for one in first.ids if one in shared]
    notes = [
        f"{name}: {len(answers.ids)} of {answers.asked} items answered; what was not answered is in no curve"
        for name, answers in judges.items()
        if len(answers.ids) < answers.asked
    ]
    if len(judges) > 1:
        notes.append(f"all curves are of the {len(ids)} items that every judge answered")
    if first.metric == "error":
        notes += ["of two labels, entropy and largest probability give one order", share_note()]
    return {name: answers.only(ids) for name, answers in judges.items()}, tuple(notes)


def _areas(answers: Answers, sureness: FloatArray, bootstrap: Bootstrap) -> list[Estimate]:
    """The areas by sureness, in random and in the oracle's order; by how much the first is below the second and, of scores, below that by what was
    said alone."""
    nothing = np.zeros_like(answers.risk)
    told = nothing if answers.said is None else by_what_is_said(answers.said, sureness)

    def of(weights: FloatArray) -> FloatArray:
        ours, chance, best, number = (
            area(answers.risk, order, weights=weights) for order in (sureness, nothing, -answers.risk, told)
        )
        return np.stack([ours, chance, best, chance - ours, number - ours], axis=1)

    *areas, apart, more = estimates(of, bootstrap, items=(len(answers.ids),) * 5)
    areas = [_with_unseen(one, answers, bootstrap) for one in areas]
    if answers.metric == "error":
        areas[1] = bootstrap.share(answers.risk, np.ones(len(answers.ids)))  # in random order the area is the share itself
    gains = [apart] if answers.said is None else [apart, more]
    if equally_sure(sureness):
        none = Estimate(value=None, interval=Interval(reason=EQUALLY_SURE), items=len(answers.ids), difference=True)
        return [*areas, *(none for _ in gains)]
    few = [_unless_few(one.interval, answers.risk, sureness, bootstrap) for one in gains]
    return [*areas, *(one.model_copy(update={"interval": interval}) for one, interval in zip(gains, few, strict=True))]


def _unless_few(interval: Interval, risk: FloatArray, sureness: FloatArray, bootstrap: Bootstrap) -> Interval:
    """The interval, or none where nearly all errors are alike, or nearly all answers equally sure, and fewer than `ENOUGH` others, or those of
    fewer than 10 readers, decide it."""
    if interval.low is None:
        return interval
    for others, reason in ((departing(risk, near=ALIKE * float(risk.std())), FEW_OTHERS), (departing(sureness), FEW_UNSURE)):
        if others is None:
            continue
        number, readers = int(others.sum()), len(np.unique(bootstrap.reviewer[others]))
        if number < ENOUGH:
            few = "1 other is" if number == 1 else f"{number} others are"
        elif readers < FEWEST_REVIEWERS:
            few = f"the others are of {'1 reader' if readers == 1 else f'{readers} readers'}, who are"
        else:
            continue
        return Interval(reason=f"undefined ({reason}, and {few} too few)", resamples=interval.resamples)
    return interval


def _with_unseen(found: Estimate, answers: Answers, bootstrap: Bootstrap) -> Estimate:
    """An error whose interval knows of answers so far off, and so rare, that there is none among these, as that of all answers does."""
    if answers.metric == "error" and found.value is not None:
        interval = joined(found.value, found.interval, up=none_among(bootstrap.clusters) * (1 - found.value))
        return found.model_copy(update={"interval": interval})
    return found if answers.worst is None else of_mean(found, answers.worst)


def _points(
    series: str, answers: Answers, sureness: FloatArray, bootstrap: Bootstrap, *, baseline: bool = False
) -> list[Point]:
    if answers.metric == "error":  # a share, of whose interval resamples know nothing where few or none are wrong
        found = [bootstrap.share(answers.risk, kept(sureness, share)) for share in SHARES]
    else:
        items = [math.ceil(share * len(answers.ids)) for share in SHARES]
        found = estimates(lambda weights: curve(answers.risk, sureness, weights=weights), bootstrap, items=items)
        found = [_with_unseen(one, answers, bootstrap) for one in found]
    return [
        Point(series=series, x=f"{share:.0%}", metric=answers.metric, estimate=estimate, baseline=baseline)
        for share, estimate in zip(SHARES, found, strict=True)
    ]


def _share_table(name: str, points: Sequence[Point], error: str) -> Table:
    """Shares down, orders across."""
    of_series: dict[str, list[Estimate]] = {}
    for point in points:
        of_series.setdefault(point.series.removeprefix(f"{name}, "), []).append(point.estimate)
    rows = tuple((f"{share:.0%}", *estimates) for share, *estimates in zip(SHARES, *of_series.values(), strict=True))
    return Table(title=f"{name}: {error} of the share that is kept", header=("kept", *of_series), rows=rows)


def _sentence(
    name: str, order: str, answers: Answers, sureness: FloatArray, gain: Estimate, more: Estimate | None = None
) -> str:
    """`more`: of scores, than what was said tells of it."""
    whole, half = curve(answers.risk, sureness, shares=(1.0, 0.5))[0]
    if gain.interval.reason == EQUALLY_SURE:
        return f"{name}: the error is {whole:.3f} of all {len(answers.ids)} answers; it is equally sure of all of them by {order}, so none are surer than others."
    if gain.interval.low is None:
        verdict = f"whether that is more than chance: {gain.interval.reason}"
    else:
        verdict = (
            f"{_known(gain, more)}: random order's area minus its own is {words(gain.model_copy(update={'difference': False}))}"
        )
        if more is not None and (gain.above_zero or gain.below_zero):
            verdict += f", that by the scores alone minus its own {words(more.model_copy(update={'difference': False}))}"
    errors = f"{whole:.3f} of all {len(answers.ids)} answers and {half:.3f} of the surest half by {order}"
    return f"{name}: the error is {errors}; {verdict}."


def _known(gain: Estimate, more: Estimate | None) -> str:
    """What its sureness is shown to be: knowing, the contrary, or no more than the scores that it says tell."""
    alone = more is not None and abs(more.value or 0.0) < HARDLY_MORE * abs(gain.value or 0.0)
    if gain.above_zero:
        if more is None or (more.above_zero and not alone):
            return "it knows when it does not know"
        return f"it is surer where it is right{_NO_MORE}"
    if gain.below_zero:
        by_scores = more is not None and (alone or not more.below_zero)
        return "it is surest where it is wrong" + (_NO_MORE if by_scores else "")
    return "it is not shown to know when it does not know"
