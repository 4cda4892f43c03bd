"""The personal judge: how likely a reader would rather have the summary after a suggestion than the one before it.

Both orders are asked, so that a lean towards a place cancels. The answers are kept in a folder of the run, RUN/personal, of one judge and one threshold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.answering.base import JudgeSettings
from perse.data.persum.folder import Sample
from perse.errors import BadInput, EngineLost
from perse.files.runlog import RunLog
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge
from perse.judging.loop import JUDGEMENTS, answer_all, read_judgements
from perse.questions.summary_pair import SUMMARY_PAIR
from perse.records import Pair, PastReview, SummaryPairExample
from perse.rehearsal.agents import Agents
from perse.rehearsal.personal import Preference, Supervision
from perse.rehearsal.settings import GAIN, check_gain
from perse.scale import rescale

GREEDY = JudgeSettings(temperature=0)

STARS = (1.0, 5.0)


@dataclass(frozen=True)
class PersonalJudge:
    """Who says whether a rewriting stands, and from which gain on.

    Raises:
        BadInput: as `check_gain`.
    """

    judge: Judge
    gain: float = GAIN

    def __post_init__(self) -> None:
        check_gain(self.gain)


def pair_of(sample: Sample, before: str, after: str) -> SummaryPairExample:
    """The question: A is the summary before, B the one after.

    Raises:
        BadInput: a score of the history that is none of 1 to 5 stars.
    """
    digest = hashlib.sha256(f"{before}\0{after}".encode()).hexdigest()[:16]
    try:
        profile = tuple(PastReview(review=one.review, score=rescale(one.score, *STARS)) for one in sample.history)
    except BadInput as error:
        raise BadInput(f"sample '{sample.id}', a review of the history: {error}") from None
    query = Pair(text_a=before, text_b=after)
    return SummaryPairExample(id=f"{sample.id}/{digest}", reviewer_id=sample.own.reviewer_id, profile=profile, query=query)


def preference_of(judgement: Judgement | None) -> Preference:
    """What an answer says. Of a judge that gives labels alone two orders that disagree are a tie."""
    if judgement is None:
        return Preference(None, failed="judge: it was not asked")
    if judgement.status is not Status.OK:
        return Preference(None, failed=f"judge: {judgement.status.value}: {judgement.error}")
    if judgement.distribution is not None:
        return Preference(judgement.distribution["B"], judgement.order_gap)
    if judgement.order_gap:
        return Preference(0.5, judgement.order_gap)
    return Preference(float(judgement.label == "B"), judgement.order_gap)


def supervision(
    personal: PersonalJudge, samples: Mapping[str, Sample], folder: Path, digest: str, agents: Agents
) -> Supervision:
    """The judge's preferences, from `folder` as far as that has them.

    Raises:
        RunMismatch: the folder has answers of another judge, with another threshold, or about other samples.
    """
    identity = _identity(personal, digest)
    with RunLog(folder, identity, lines=JUDGEMENTS):  # before anything is asked of anybody
        pass

    def prefer(changed: Mapping[str, tuple[str, str]], step: str) -> dict[str, Preference]:
        pairs = {name: pair_of(samples[name], before, after) for name, (before, after) in changed.items()}
        with RunLog(folder, identity, lines=JUDGEMENTS) as log:
            asked = [(SUMMARY_PAIR, list(pairs.values()))] if pairs else []
            told = agents.on_progress
            answer_all(personal.judge, asked, log, settings=GREEDY, on_progress=lambda done, total: told(step, done, total))
            answers = read_judgements(log.path)
        found = {name: answers.get((SUMMARY_PAIR.name, pair.id)) for name, pair in pairs.items()}
        failed = [one for one in found.values() if one is None or one.status is Status.ENGINE_ERROR]
        if failed and not agents.settings.skip_failed:
            why = failed[0].error if failed[0] else "it gave no answer"
            raise EngineLost(
                f"the engine failed at {len(failed)} of {len(found)} answers of the personal judge ({why}); the same command asks for these "
                "again, and with --skip-failed goes on without them"
            )
        return {name: preference_of(one) for name, one in found.items()}

    return Supervision(prefer, personal.gain)


def _identity(personal: PersonalJudge, digest: str) -> dict[str, Any]:
    probe = SummaryPairExample(
        id="probe",
        reviewer_id="probe",
        profile=(PastReview(review="A review.", score=5),),
        query=Pair(text_a="A text.", text_b="Another."),
    )
    return {
        "kind": "rehearsal-preferences",
        "samples": digest,
        "judge": personal.judge.for_manifest,
        "gain": personal.gain,
        "prompts_sha256": personal.judge.prompt_digest(SUMMARY_PAIR, [probe], GREEDY),
    }
