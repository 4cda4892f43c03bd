"""Whose selection of paragraphs is preferred, as numbers: what `asking.feedback` finds of one run, and reads back.

The numbers lie beside the answers, in RUN/feedback/feedback.json or RUN/feedback-second-turn/feedback.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, ValidationError

from perse.errors import BadInput
from perse.formats.json_text import read_object
from perse.judgement import Status
from perse.kgds.benchmark import Benchmark
from perse.kgds.folder import FEEDBACK, SECOND_TURN
from perse.records import explain
from perse.results.result import Estimate
from perse.strict import Strict

NUMBERS = "feedback.json"

Difference = Literal["failed", "empty", "same", "differs"]
"""The model's selection beside the experts'; only the last is asked about."""


class _Result(Strict):
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


def feedback_folder(run: Path, *, second_turn: bool) -> Path:
    """Where the answers are."""
    return run / (SECOND_TURN if second_turn else FEEDBACK)


def read_feedback(run: Path, benchmark: Benchmark, *, second_turn: bool) -> FeedbackResult | None:
    """The numbers in a run folder; None if nothing was asked.

    Raises:
        BadInput: the file is damaged, or about another benchmark.
    """
    path = feedback_folder(run, second_turn=second_turn) / NUMBERS
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
