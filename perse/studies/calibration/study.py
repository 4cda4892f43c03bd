"""Can a judge be put right by what it says of a reader's past, and do its probabilities mean what they say?

Two studies of one scoring run. *Reliability* needs the run alone (`perse.studies.calibration.reliability`). *Correction* asks the judge of
each reader's past reviews, once per profile and left-out review, and corrects its scores by how far it is off there
(`perse.studies.calibration.correction`); before and after stand on the same items, with paired intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perse.answering.base import JudgeSettings
from perse.batch.comparing import OWN, shown_in
from perse.batch.judged_by import answers_digest, judged_by, weights_of
from perse.batch.scored import ScoredRun
from perse.data.load import LoadedExamples
from perse.errors import BadInput
from perse.evaluation.calibration.reliability import promised
from perse.evaluation.differences import labels_alone
from perse.evaluation.predictions import expected_value, only
from perse.evaluation.shared_texts import of_these_texts
from perse.evaluation.stats.correlation import FloatArray
from perse.files.runlog import MANIFEST, run_of
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge
from perse.progress import OnPart, unseen_part
from perse.questions import QUESTIONS, question_for, shows_evidence
from perse.records import PointwiseExample
from perse.results.result import Estimate, Point, Result, Table
from perse.studies.calibration.correction import Corrected, Past, PastScore, correct, past_examples, past_scores
from perse.studies.calibration.reliability import Reliability, reliability
from perse.studies.frame.arms import Arm, LoadJudge, Source
from perse.studies.frame.reading_runs import read_runs
from perse.studies.frame.running import Asking, opened
from perse.studies.frame.summarizing import POINTWISE, SharedResamples, crossed_note, heading, minus, shown_apart, words
from perse.studies.frame.unanswered import coverage

PAST = "past"
BEFORE, OTHERS, AFTER, AVERAGE = (
    "as judged",
    "corrected by others' past reviews",
    "corrected by past reviews",
    "profile average",
)
_MAE = POINTWISE.index("mae")
_UNCORRECTED = "leave --judge out to see how reliable its probabilities are"


@dataclass(frozen=True, kw_only=True)
class Judging:
    """The judge that answered the run, to be asked of the past."""

    name: str
    """As on the command line."""
    dtype: str = "bfloat16"
    context: int | None = None
    tokenizer: str | None = None
    concurrency: int | None = None


def calibration(
    run: Path,
    out: Path,
    *,
    judging: Judging | None = None,
    slope: bool = False,
    seed: int = 0,
    resamples: int = 1000,
    load: LoadJudge | None = None,
    on_progress: OnPart = unseen_part,
) -> Result:
    """Reliability of a run, and with a judge its scores before and after correction.

    Args:
        run: a folder that `perse score` wrote.
        judging: the run's judge; None: nothing is asked, and nothing corrected.
        slope: also correct how far scores are spread, not only where they lie.
    Raises:
        BadInput: no run, or one that `perse evaluate` refuses, too; nothing answered, another judge than the run's, or a
            correction of what are no scores by a reader.
        RunMismatch: `out` holds another study.
    """
    read = read_runs([run])
    [[scored]] = read.gathered.runs.values()
    manifest, who = run_of(run), judged_by(run)
    unsaid = BadInput(f"{run / MANIFEST} does not say how was judged (settings, question, judge); score again")
    if not who:
        raise unsaid
    try:
        settings, question = JudgeSettings(**manifest["settings"]), str(manifest["question"])
    except (BadInput, KeyError, TypeError):
        raise unsaid from None
    asking = Asking(
        examples=run,
        judge=judging.name if judging else None,
        fold=scored.fold,
        question=question,
        settings=settings,
        resamples=resamples,
    )
    if judging:
        loading = {name: value for name, value in vars(judging).items() if name != "name"}
        asking = replace(asking, **loading)
    if judging and shows_evidence(QUESTIONS.get(question)):
        raise BadInput(
            f"{run} was asked '{question}', which shows evidence, and none is known of the texts in a profile: there is no correction by them; "
            f"{_UNCORRECTED}"
        )
    if judging and (shown := shown_in(run)) != OWN:
        raise BadInput(
            f"{run} was not shown the readers' own profiles ('{shown}'), and without their own past there is no correction by it; {_UNCORRECTED}"
        )
    digest = answers_digest(run)
    source = Source(run, "valid", scored.fold, None, seed, None, digest)
    examples = _correctable(scored, run) if judging else []
    given = promised(scored.examples, scored.judgements, scale=read.scale)
    if given is None and judging is None:
        raise BadInput(
            f"{run} holds no answer with a label distribution and a true label (a true score between labels, as the mean of several people, is none); there is nothing to calibrate"
        )
    past = past_examples(examples)
    if judging and not past.examples:
        raise BadInput(f"{run}: no profile holds a review, so there is no past to correct by; score with k of 1 or more")
    alone = of_these_texts(scored.examples, two_way=given is not None and given.text is not None)
    checked = reliability(run.name, given, of_these_texts=alone, seed=seed, resamples=resamples) if given else None
    known = [*read.notes, *crossed_note(examples or scored.examples)]
    options = {"slope": slope, "seed": seed}
    if judging is None:
        with opened(out, "calibration", asking, source=source, options=options, on_progress=on_progress) as study:
            return study.finish(_result(checked, None, notes=known))
    judge = (load or asking.load)(judging.name)
    _same_judge(judge, who, run)  # before the folder is begun: a wrong judge must not take its name
    with opened(
        out, "calibration", asking, source=source, options=options, load=lambda _: judge, on_progress=on_progress
    ) as study:
        asked = LoadedExamples(list(past.examples), scored.data_digest, None, scored.fold)
        arm = Arm(
            name=PAST,
            loaded=asked,
            judge=judging.name,
            question=question_for(past.examples, asking.question),
            settings=settings,
        )
        answers = study.ask([arm])
        own = {judgement.id: judgement for judgement in scored.judgements if judgement.status is Status.OK}
        compared = _compare(examples, own, past, answers[PAST], slope=slope, seed=seed, resamples=resamples)
        return study.finish(_result(checked, compared, notes=[*coverage(answers), *known]))


def _correctable(scored: ScoredRun, run: Path) -> list[PointwiseExample]:
    """The answered examples with a reference."""
    done = {judgement.id for judgement in scored.judgements if judgement.status is Status.OK}
    pointwise = only(PointwiseExample, scored.examples)
    if not pointwise:
        raise BadInput(f"{run} is not of single texts with profiles; {_UNCORRECTED}")
    kept = [example for example in pointwise if example.reference is not None and example.id in done]
    if not kept:
        raise BadInput(f"{run} holds no answered example with a reference; there is nothing to compare with")
    return kept


def _same_judge(judge: Judge, asked: Mapping[str, object], run: Path) -> None:
    known = weights_of(asked)
    if known and judge.identity.digest and known != judge.identity.digest:
        raise BadInput(
            f"{judge.identity.model} is not the judge that answered {run} (other weights); a judge is corrected by its own "
            "errors: give the run's judge"
        )


@dataclass(frozen=True)
class _Compared:
    points: tuple[Point, ...]
    tables: tuple[Table, ...]
    sentence: str
    notes: tuple[str, ...]


def _compare(
    examples: Sequence[PointwiseExample],
    own: Mapping[str, Judgement],
    past: Past,
    answers: Mapping[str, Judgement],
    *,
    slope: bool,
    seed: int,
    resamples: int,
) -> _Compared:
    before = {example.id: expected_value(own[example.id]) for example in examples}
    scores = past_scores(past, answers)
    corrected = correct(
        before, scores, reviewer={example.id: example.reviewer_id for example in examples}, seed=seed, slope=slope
    )
    shared = SharedResamples.over(examples, resamples=resamples, seed=seed)
    series: dict[str, FloatArray] = {
        BEFORE: np.array([before[example.id] for example in examples]),
        OTHERS: np.array([corrected.by_others[example.id] for example in examples]),
        AFTER: np.array([corrected.predictions[example.id] for example in examples]),
    }
    if all(example.profile for example in examples):
        averages = [sum(past.score for past in example.profile) / len(example.profile) for example in examples]
        series[AVERAGE] = np.array(averages)
    values = {name: [shared.value(metric, [(1.0, given)]) for metric in POINTWISE] for name, given in series.items()}
    points = tuple(
        Point(series=name, x="all", metric=metric, estimate=estimate, baseline=name == AVERAGE)
        for name, estimates in values.items()
        for metric, estimate in zip(POINTWISE, estimates, strict=True)
    )
    change = minus([(1.0, series[AFTER])], [(1.0, series[BEFORE])])
    own_part = minus([(1.0, series[AFTER])], [(1.0, series[OTHERS])])
    gains, of_own = ({metric: shared.value(metric, one) for metric in POINTWISE} for one in (change, own_part))
    rows: list[tuple[Estimate | str | None, ...]] = [(name, *estimates) for name, estimates in values.items()]
    rows.append((f"{AFTER}, minus {BEFORE}", *gains.values()))
    rows.append((f"{AFTER}, minus {OTHERS}", *of_own.values()))
    table = Table(
        title=f"Before and after correction: {len(examples)} items",
        header=("", *map(heading, POINTWISE)),
        rows=tuple(rows),
        notes=("the last two lines are paired: the same items and resamples on both sides; a lower MAE is better",),
    )
    before_all, mae = words(values[BEFORE][_MAE]), gains["mae"]
    if corrected.fitted:
        told = shared.told("kendall", change) + _by_itself(series[BEFORE], gains["kendall"])
        said = (
            f"Corrected by how the judge misjudges past reviews, its mean absolute error goes from {before_all} to {words(values[AFTER][_MAE])}, "
            f"a change of {words(mae, signed=True)}{_shown(mae)}; {_whose(scores, corrected, of_own['mae'])}. Kendall changes by {told}"
        )
    else:
        said = f"Nothing is corrected, since no past review of other readers was scored to fit a correction on; the mean absolute error is {before_all}"
    sentence = f"{said}{_elsewhere(gains['within_kendall'], values)}."
    return _Compared(points, (table,), sentence, _notes(past, scores, corrected))


def _by_itself(before: FloatArray, kendall: Estimate) -> str:
    """Of a judge that is only told apart where the correction breaks its ties."""
    if not kendall.value or not labels_alone(before):
        return ""
    return ", some of which it may do by itself: its scores are whole ones, and whatever is added breaks their ties"


def _whose(scores: Mapping[str, Sequence[PastScore]], corrected: Corrected, beyond: Estimate) -> str:
    """What a reader's own past reviews do beside those of others, or why these do it alone."""
    if any(np.isfinite(correction.penalty) for correction in corrected.corrections):
        return f"what a reader's own past reviews change beyond a correction by other readers' is {words(beyond, signed=True)}{_shown(beyond)}"
    if any(len(own) > 1 for own in scores.values()):
        why = "past reviews were told no better by one of each reader's own"
    else:
        why = "no profile has two reviews that were scored, to fit one of each reader's own on"
    return f"the correction is by other readers' past reviews alone, since {why}"


def _elsewhere(within: Estimate, values: Mapping[str, Sequence[Estimate]]) -> str:
    """What the two numbers would hide: who is put right on average may order one reader's texts worse, and still be farther off than what needs no judge."""
    said = f"; within each reader it changes by {words(within, signed=True)}" if shown_apart(within) else ""
    after, average = (values[name][_MAE].value if name in values else None for name in (AFTER, AVERAGE))
    if after is not None and average is not None and average < after:
        said += f"; the {AVERAGE}, which needs no judge, is off by {words(values[AVERAGE][_MAE])}"
    return said


def _shown(difference: Estimate) -> str:
    return "" if shown_apart(difference) else " (not shown to change)"


def _notes(past: Past, scores: Mapping[str, Sequence[PastScore]], corrected: Corrected) -> tuple[str, ...]:
    notes = _fitted(scores, corrected) if corrected.fitted else []
    if past.left_out:
        notes.append(f"{past.left_out} past reviews were not asked: nearly the same text stands in the rest of their profile")
    return tuple(notes)


def _fitted(scores: Mapping[str, Sequence[PastScore]], corrected: Corrected) -> list[str]:
    """On what, and what came out."""
    penalties = sorted({correction.penalty for correction in corrected.corrections})
    offsets = sorted(correction.offset for correction in corrected.corrections)
    shown = ", ".join(f"{penalty:g}" for penalty in penalties).replace("inf", "infinite (no correction of one's own)")
    notes = [
        "fitted on the profiles shown, never on the answer to the query that is corrected, and what is common on those of other readers; "
        "profiles of the most recent reviews are earlier than their query, of profiles drawn at random some may be later",
        f"offset {offsets[0]:+.2f} to {offsets[-1]:+.2f} over folds of readers, each fitted on the other folds; penalty, in reviews: {shown}",
    ]
    bare = sum(not own for own in scores.values())
    if bare:
        notes.append(
            f"{bare} items have no past review that the judge could score; they are corrected by others' past reviews alone"
        )
    return notes


def _result(checked: Reliability | None, compared: _Compared | None, *, notes: Sequence[str] = ()) -> Result:
    parts = [part for part in (compared, checked) if part is not None]
    missing = [] if checked else ["reliability: undefined (no answer with a label distribution and a true label)"]
    return Result(
        name="calibration",
        asks="Can the judge be put right by what it says of a reader's past reviews, and are its probabilities right?",
        answer=" ".join(part.sentence for part in parts),
        plot="bars",
        x_label="",
        points=tuple(point for part in parts for point in part.points),
        tables=tuple(table for part in parts for table in part.tables),
        notes=(*(compared.notes if compared else ()), *notes, *missing),
    )
