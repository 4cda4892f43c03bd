"""What a judge thinks of a summary: coverage and sentiment, against the product's reviews, the history and the user's own review (4.2, F).

0 to 100 in steps of 20, the paper's wider scale, as expected scores of the exact label distribution where the judge has one; or, for a judge that
cannot answer so, 1 to 5, brought to 0 to 100. An answer is about a text, so a summary that two methods come to is asked about once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, get_args

from perse.answering.base import JudgeSettings
from perse.data.persum.folder import Sample
from perse.errors import BadInput
from perse.files.runlog import RunLog
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge
from perse.judging.loop import JUDGEMENTS, answer_all, read_judgements
from perse.progress import OnProgress, unseen
from perse.questions import Question
from perse.questions.coverage import COVERAGE, COVERAGE_100
from perse.questions.sentiment import SENTIMENT, SENTIMENT_100
from perse.records import SummaryExample
from perse.rehearsal.settings import WIDE, Labels

Side = Literal["product", "history", "user"]
SIDES: tuple[Side, ...] = get_args(Side)

Aspect = Literal["coverage", "sentiment"]
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)

Measure = tuple[Side, Aspect]
"""What of a summary is scored, against which reviews."""

QUESTIONS: Mapping[Labels, Mapping[Aspect, Question]] = {
    "0-100": {"coverage": COVERAGE_100, "sentiment": SENTIMENT_100},
    "1-5": {"coverage": COVERAGE, "sentiment": SENTIMENT},
}
MEASURES: tuple[Measure, ...] = tuple((side, aspect) for side in SIDES for aspect in ASPECTS)
"""In the order of the paper's columns."""

VISIBLE: tuple[Side, ...] = ("product", "history")
"""What is known before the user has written about the product."""

GREEDY = JudgeSettings(temperature=0)


@dataclass(frozen=True)
class Wanted:
    """A summary to be judged, of this sample."""

    sample: Sample
    summary: str

    def example(self, side: Side) -> SummaryExample:
        """The summary against one side's reviews, oldest first."""
        sample = self.sample
        reviews = {"product": sample.product_reviews, "history": sample.history, "user": (sample.own,)}[side]
        digest = hashlib.sha256(self.summary.encode()).hexdigest()[:16]
        return SummaryExample(
            id=f"{sample.id}/{side}/{digest}",
            reviewer_id=sample.own.item_id if side == "product" else sample.own.reviewer_id,
            reviews=tuple(one.review for one in reviews),
            summary=self.summary,
        )


def judging_identity(judge: Judge, digest: str, labels: Labels) -> dict[str, Any]:
    """Identifies answers of this judge about samples of this digest."""
    return {"kind": "rehearsal-judgements", "samples": digest, **who_judges(judge, labels)}


def who_judges(judge: Judge, labels: Labels) -> dict[str, Any]:
    """The judge and its prompts: the same wherever it is asked about summaries."""
    probe = SummaryExample(id="probe", reviewer_id="probe", reviews=("A review.",), summary="A text.")
    return {
        "judge": judge.for_manifest,
        "prompts_sha256": {one.name: judge.prompt_digest(one, [probe], GREEDY) for one in QUESTIONS[labels].values()},
        **({} if labels == WIDE else {"scale": labels}),
    }


def labels_of(identity: Mapping[str, Any]) -> Labels:
    """By which labels the answers of this identity were given.

    Raises:
        BadInput: by none that there are.
    """
    found = identity.get("scale", WIDE)
    for known in QUESTIONS:
        if found == known:
            return known
    raise BadInput(f"the manifest's scale is {found!r}, expected one of {', '.join(QUESTIONS)}; score again under another name")


class Judgements:
    """A judge's answers about summaries, kept in one folder; to be used in a `with`.

    Raises:
        RunMismatch: the folder has answers of another judge, or about other samples.
    """

    def __init__(self, judge: Judge, folder: Path, digest: str, labels: Labels) -> None:
        self._judge = judge
        self._questions = tuple(QUESTIONS[labels].values())
        self._log = RunLog(folder, judging_identity(judge, digest, labels), lines=JUDGEMENTS)

    def __enter__(self) -> Judgements:
        self._log.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._log.__exit__(*raised)

    def ask(self, wanted: Iterable[Wanted], sides: Sequence[Side], *, on_progress: OnProgress = unseen) -> None:
        """Ask whatever the folder has no answer to. Both questions about the same reviews follow each other, and share the work on them.

        Raises:
            EngineLost: the engine is gone for good.
        """
        examples = {example.id: example for one in wanted for side in sides for example in [one.example(side)]}
        chunk = max(16, self._judge.engine.capabilities.at_once)
        ordered = sorted(examples.values(), key=lambda example: (example.reviewer_id, example.id))
        asked = [
            (question, ordered[start : start + chunk])
            for start in range(0, len(ordered), chunk)
            for question in self._questions
        ]
        answer_all(self._judge, asked, self._log, settings=GREEDY, on_progress=on_progress)

    def read(self) -> dict[tuple[str, str], Judgement]:
        """By question and id of the example."""
        return read_judgements(self._log.path)


def value_of(judgement: Judgement | None) -> float | None:
    """0 to 100, the lowest to the highest label: the expected score, or the label of a judge without distributions; None where it gave none."""
    if judgement is None or judgement.status is not Status.OK:
        return None
    scale = _SCALES[judgement.question]
    label = judgement.label or ""
    value = judgement.expected if judgement.expected is not None or label not in scale.labels else float(label)
    lowest, highest = float(scale.labels[0]), float(scale.labels[-1])
    if label not in scale.labels or value is None or not lowest <= value <= highest:
        raise BadInput(
            f"the answer '{judgement.id}' to '{judgement.question}' is '{label}' ({judgement.expected}), expected one of "
            f"{', '.join(scale.labels)}; it is of another scale: remove its line, and ask again"
        )
    return 100 * (value - lowest) / (highest - lowest)


_SCALES = {question.name: question.scale for of_one in QUESTIONS.values() for question in of_one.values()}


def values_of(
    wanted: Wanted, answers: Mapping[tuple[str, str], Judgement], labels: Labels, sides: Sequence[Side] = SIDES
) -> dict[Measure, float | None]:
    """What the judge gave a summary, by reviews and aspect."""
    return {
        (side, aspect): value_of(answers.get((question.name, wanted.example(side).id)))
        for side in sides
        for aspect, question in QUESTIONS[labels].items()
    }


def mean_of(values: Mapping[Measure, float | None]) -> float | None:
    """Their mean; None if one is missing."""
    known = [value for value in values.values() if value is not None]
    return fmean(known) if known and len(known) == len(values) else None
