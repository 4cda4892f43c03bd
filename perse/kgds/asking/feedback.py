"""Whose selection of paragraphs is the better background, the experts' or the model's own? (KGDS, section 6.1 and figure 3).

Asked about every sample in which the two differ, in both orders, because judges like one place better than the other. The paper asks the
model that made the selection. A win rate is the mean over samples of the probability that the experts' is better, and, beside it, how
often it is the likelier one; what was not answered is neither won nor lost, and counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from perse.errors import BadInput
from perse.files.own_files import write_own
from perse.files.runlog import RunLog
from perse.formats.json_text import read_object
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.loop import answer_all
from perse.kgds.benchmark import Benchmark, Sample
from perse.kgds.folder import FEEDBACK as FEEDBACK_FOLDER
from perse.kgds.folder import JUDGEMENTS, Summary, identity_of, read_judgements, summaries_of
from perse.progress import OnProgress, unseen
from perse.prompts import source
from perse.questions.feedback import FEEDBACK
from perse.records import Pair, PairwiseExample, explain
from perse.results.result import Estimate

NUMBERS = "feedback.json"

Difference = Literal["failed", "empty", "same", "differs"]
"""The model's selection beside the experts'; only the last is asked about."""


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Preference(_Result):
    """One sample that was asked about."""

    sample: int
    experts: tuple[int, ...]
    own: tuple[int, ...]
    status: Status
    probability: float | None = None
    """Of the experts' selection; None without a distribution or an answer."""
    won: float | None = None
    """1 where the experts' is preferred, 0 where the other is, 0.5 where neither."""
    order_gap: float | None = None


class FeedbackResult(_Result):
    """The experts' win rates, in percent, with intervals over samples."""

    benchmark: str
    """sha256 of the benchmark's file."""
    model: str
    judge: str
    second_turn: bool = False
    """Whether asked in the conversation in which the selection was made."""
    selections: dict[Difference, int]
    """Counts of the model's summaries by kind."""
    answered: int
    """Of those that differ."""
    probability: Estimate
    """Mean probability of the experts' selection."""
    share: Estimate
    """Samples in which the experts' selection is preferred; the paper's 88.89 is such a share."""
    order_gap: float | None
    """Mean distance of the two orders' probabilities, 0 to 1: position bias."""
    samples: tuple[Preference, ...]
    resamples: int
    seed: int


def read_feedback(run: Path, benchmark: Benchmark) -> FeedbackResult | None:
    """The numbers in a run folder; None if nothing was asked.

    Raises:
        BadInput: the file is damaged, or about another benchmark.
    """
    path = run / FEEDBACK_FOLDER / NUMBERS
    if not path.exists():
        return None
    again = "give `perse kgds feedback` again"
    try:
        found = FeedbackResult.model_validate(read_object(path, remedy=again))
    except ValidationError as error:
        raise BadInput(f"{path}: {explain(error)}; {again}") from None
    if found.benchmark != benchmark.digest:
        raise BadInput(f"{path} is about another benchmark than {benchmark.path}; give the one that the run was made from")
    return found


def feedback(
    judge: Judge,
    benchmark: Benchmark,
    run: Path,
    *,
    resamples: int = 1000,
    seed: int = 0,
    on_progress: OnProgress = unseen,
) -> FeedbackResult:
    """Ask about every structured ebs-aos summary of `run` that selects other paragraphs than the experts; kept in RUN/feedback.

    Args:
        on_progress: told how many of all questions have an answer.
    Raises:
        BadInput: no such summary, one of a sample that the benchmark does not have, or too few resamples.
        RunMismatch: the folder holds answers by another judge, or about another benchmark.
        EngineLost: the engine is gone for good.
    """
    if resamples < 100:
        raise BadInput(f"{resamples} resamples say little about an interval; use 100 or more")
    summaries = summaries_of(run, benchmark).get(("ebs-aos", "structured"), {})
    if not summaries:
        raise BadInput(f"{run} has no structured ebs-aos summaries; write them with `perse kgds generate --pattern ebs-aos`")
    kinds = {number: difference(benchmark.samples[number], summary) for number, summary in summaries.items()}
    asked = {
        number: _example(benchmark.samples[number], summaries[number]) for number, kind in kinds.items() if kind == "differs"
    }
    judgements = _answers(judge, benchmark, list(asked.values()), run / FEEDBACK_FOLDER, seed=seed, on_progress=on_progress)
    preferences = [
        _preference(benchmark.samples[number], summaries[number], judgements[example.id]) for number, example in asked.items()
    ]
    result = FeedbackResult(
        benchmark=benchmark.digest,
        model=" and ".join(sorted({summary.model for summary in summaries.values()})),
        judge=judge.identity.portable.model,
        selections={kind: sum(each == kind for each in kinds.values()) for kind in ("differs", "same", "empty", "failed")},
        answered=sum(preference.status is Status.OK for preference in preferences),
        probability=_rate([preference.probability for preference in preferences], resamples=resamples, seed=seed),
        share=_rate([preference.won for preference in preferences], resamples=resamples, seed=seed),
        order_gap=_mean(preference.order_gap for preference in preferences),
        samples=tuple(preferences),
        resamples=resamples,
        seed=seed,
    )
    write_own(run / FEEDBACK_FOLDER / NUMBERS, result.model_dump_json(indent=2) + "\n")
    return result


def difference(sample: Sample, summary: Summary) -> Difference:
    """How the model's selection compares to the experts'. Citations of missing paragraphs are ignored."""
    if summary.status != "ok":
        return "failed"
    own = set(_own(sample, summary))
    return "same" if own == sample.supporting_indices else "differs" if own else "empty"


def _own(sample: Sample, summary: Summary) -> tuple[int, ...]:
    return tuple(sorted({number for number in summary.paragraphs or () if 1 <= number <= len(sample.article)}))


def _example(sample: Sample, summary: Summary) -> PairwiseExample:
    """A is the experts' selection, B the model's; the question decides which comes first in a prompt."""
    own = _own(sample, summary)
    who = f"{sample.number:05d}"
    pair = Pair(text_a=_named(sorted(sample.supporting_indices)), text_b=_named(own), premise=_premise(sample))
    # With the selection in its id, an answer cannot be mistaken for one about another selection, and a run may grow.
    key = f"{who}/{'-'.join(map(str, own))}"
    return PairwiseExample(id=key, reviewer_id=who, aspect="background", profile=(), query=pair)


def _named(numbers: Sequence[int]) -> str:
    """Numbers in words: `<Paragraph_3>` would read as a template's marker."""
    return f"paragraph{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _premise(sample: Sample) -> str:
    article = [f"{paragraph.index}. {' '.join(paragraph.text.split())}" for paragraph in sample.article]
    discussion = [f"{turn.participant}: {' '.join(turn.utterance.split())}" for turn in sample.discussion]
    return "\n".join(["[Article]", *article, "[Discussion]", *discussion])


def _answers(
    judge: Judge,
    benchmark: Benchmark,
    examples: Sequence[PairwiseExample],
    folder: Path,
    *,
    seed: int,
    on_progress: OnProgress,
) -> Mapping[str, Judgement]:
    """By id, from the folder as far as it has them; what the engine failed at is asked again."""
    settings = JudgeSettings(temperature=0, seed=seed)
    identity = {
        "kind": "kgds-feedback",
        **identity_of(judge, benchmark),
        "prompts": hashlib.sha256(source("feedback.jinja").encode()).hexdigest(),
        "seed": seed,
    }
    with RunLog(folder, identity, lines=JUDGEMENTS) as log:
        answer_all(judge, [(FEEDBACK, examples)], log, settings=settings, on_progress=on_progress)
        return read_judgements(log.path)


def _preference(sample: Sample, summary: Summary, judgement: Judgement) -> Preference:
    ok = judgement.status is Status.OK
    return Preference(
        sample=sample.number,
        experts=tuple(sorted(sample.supporting_indices)),
        own=_own(sample, summary),
        status=judgement.status,
        probability=judgement.distribution["A"] if ok and judgement.distribution else None,
        won=_won(judgement) if ok else None,
        order_gap=judgement.order_gap if ok else None,
    )


def _won(judgement: Judgement) -> float:
    """Without a distribution, two orders that name different selections are a tie."""
    from perse.evaluation.stats.accuracy import likeliest_correct

    if judgement.distribution is None and judgement.order_gap == 1:
        return 0.5
    return float(likeliest_correct(["A"], [judgement])[0])


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 4) if known else None


def _rate(values: Sequence[float | None], *, resamples: int, seed: int) -> Estimate:
    """The mean of the known values in percent, with its interval; undefined without any."""
    import numpy as np

    from perse.evaluation.stats.estimates import NO_ITEMS
    from perse.evaluation.stats.intervals import bootstrap_interval
    from perse.evaluation.stats.resamples import Resamples, times_drawn

    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return Estimate(value=None, interval=NO_ITEMS, items=0)
    draws = Resamples(np.arange(len(known)), times_drawn(len(known), resamples=resamples, seed=seed))
    interval = bootstrap_interval(100 * draws.sums(known[None])[0] / len(known), reviewers=len(known), of="sample")
    ends = {end: round(at, 2) for end, at in (("low", interval.low), ("high", interval.high)) if at is not None}
    return Estimate(value=round(100 * float(known.mean()), 2), interval=interval.model_copy(update=ends), items=len(known))
