"""What a run's settings and data make of watching: the sample, when it is judged, and what the Trainer must be told."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from perse.questions import Question
from perse.rendering import Renderer
from perse.training.config import Data, Train
from perse.training.schedule import Schedule
from perse.training.watch.config import Watch
from perse.training.watch.plan import SHARE, WatchPlan, watch_plan
from perse.training.watch.sample import Watched, unseen_examples, watched

log = logging.getLogger(__name__)

_LOOKED_AT = 64  # rows, which are shuffled, so that the first tell how long a step is


@dataclass(frozen=True)
class Watching:
    """`what` is judged by `plan`."""

    what: Watched
    plan: WatchPlan

    def arguments(self, *, begun: bool, kept: int) -> dict[str, Any]:
        """Of `TrainingArguments`.

        Args:
            begun: the run goes on from a checkpoint, so that what came before training is judged already.
            kept: checkpoints to keep beside the best.
        """
        return {
            "eval_strategy": "steps",
            "eval_steps": self.plan.every,
            "eval_on_start": self.plan.first and not begun,
            "metric_for_best_model": self.what.best,
            "save_total_limit": kept + 1,
        }


def watching_for(
    data: Data,
    watch: Watch | None,
    *,
    train: Train,
    renderer: Renderer,
    question: Question,
    schedule: Schedule,
    trained: Collection[str | None],
) -> Watching | None:
    """How a run of `schedule` is watched; None where it is not, with the reason in the log unless it was asked for.

    Args:
        trained: the reviewers of the training examples.
    Raises:
        BadInput: a reviewer is on both sides, no watched example fits, or `watch.best` is no number of the question's labels.
    """
    if watch is None:
        return None
    unseen = unseen_examples(data, watch, trained=trained)
    if not unseen:
        return None
    what = watched(unseen, renderer, question, watch=watch, train=train, answer_tokens=data.answer_tokens)
    some = [len(schedule.row(at).ids) for at in range(min(_LOOKED_AT, len(schedule.rows)))]
    # A device trains on its own rows and judges all of the sample.
    per_step = train.accumulation * sum(some) / len(some)
    plan = watch_plan(what.cost, steps=schedule.steps, tokens_per_step=per_step, every=watch.every)
    if plan is None:
        log.info(
            "this run is too short to be judged on %d examples of other readers within %.0f%% of its time, so it is not; "
            "watch.every=N judges it every N steps all the same",
            len(what.judged),
            100 * SHARE,
        )
        return None
    log.info(
        "%d examples of other readers are judged every %d steps, %d times in all: about %.1f%% of the time",
        *(len(what.judged), plan.every, plan.count(schedule.steps), 100 * plan.share),
    )
    return Watching(what, plan)
