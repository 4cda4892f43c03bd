"""The personal judge: how likely a reader would rather have the summary after a suggestion than the one before it.

Both orders are asked, so that a lean towards a place cancels. The answers are kept in a folder of the run, RUN/personal, of one judge and one threshold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
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
from perse.progress import OnProgress, unseen
from perse.questions.summary_pair import SUMMARY_PAIR
from perse.records import Pair, PastReview, SummaryPairExample
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

    def improves(self, preference: Preference) -> bool:
        """Whether the summary after stands."""
        return preference.probability is not None and preference.gain > self.gain


@dataclass(frozen=True)
class Preference:
    """The probability that the reader would rather have the summary after than the one before; None if the judge gave none, `failed` says why.

    `order_gap`: by how much the two orders of asking differ, 0 to 1; None where nothing was asked.
    """

    probability: float | None
    order_gap: float | None = None
    failed: str | None = None

    @property
    def gain(self) -> float:
        """What is above one half; there must be a probability."""
        assert self.probability is not None, self.failed
        return self.probability - 0.5


SAME = Preference(0.5)
"""Of a summary that is as it was: nothing is asked."""


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


class Preferences:
    """A personal judge's answers, kept in one folder.

    Raises:
        RunMismatch: the folder has answers of another judge, with another threshold, or about other samples.
    """

    def __init__(self, personal: PersonalJudge, folder: Path, digest: str, *, skip_failed: bool = False) -> None:
        self._personal, self._folder, self._skip_failed = personal, folder, skip_failed
        self._identity = _identity(personal, digest)
        with RunLog(folder, self._identity, lines=JUDGEMENTS):  # before anything is asked of anybody
            pass

    def of(self, pairs: Iterable[SummaryPairExample], *, on_progress: OnProgress = unseen) -> Mapping[str, Preference]:
        """By id of the pair; only what the folder has no answer to is asked.

        Raises:
            EngineLost: the engine is gone, or failed at some pairs, unless these may be skipped.
        """
        examples = {one.id: one for one in pairs}
        if not examples:
            return {}
        with RunLog(self._folder, self._identity, lines=JUDGEMENTS) as log:
            asked = [(SUMMARY_PAIR, list(examples.values()))]
            answer_all(self._personal.judge, asked, log, settings=GREEDY, on_progress=on_progress)
            answers = read_judgements(log.path)
        found = {name: answers.get((SUMMARY_PAIR.name, name)) for name in examples}
        failed = [one for one in found.values() if one is None or one.status is Status.ENGINE_ERROR]
        if failed and not self._skip_failed:
            why = failed[0].error if failed[0] else "it gave no answer"
            raise EngineLost(
                f"the engine failed at {len(failed)} of {len(found)} answers of the personal judge ({why}); the same command asks for these "
                "again, and with --skip-failed goes on without them"
            )
        return {name: preference_of(one) for name, one in found.items()}


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
