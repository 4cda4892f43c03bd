"""Sets up watching for a run: the sample, when it is judged, and the Trainer's arguments."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from perse.questions import Question
from perse.rendering.prompt import Renderer
from perse.settings.training import Data, Train
from perse.settings.watching import Watch
from perse.training.launched import ALONE, Launched
from perse.training.rows.schedule import Schedule
from perse.training.watch.plan import SHARE, WatchPlan, watch_plan
from perse.training.watch.sample import Watched, by_loss_alone, unseen_examples, watched

log = logging.getLogger(__name__)

_LOOKED_AT = 64  # rows, which are shuffled, so that the first tell how long a step is


@dataclass(frozen=True)
class Watching:
    """`what` is judged by `plan`."""

    what: Watched
    plan: WatchPlan

    def arguments(self, *, begun: bool) -> dict[str, Any]:
        """Of `TrainingArguments`.

        Args:
            begun: the run resumes from a checkpoint, so the untrained model was judged already.
        """
        return {
            "eval_strategy": "steps",
            "eval_steps": self.plan.every,
            "eval_on_start": self.plan.first and not begun,
            "metric_for_best_model": self.what.best,
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
    process: Launched = ALONE,
) -> Watching | None:
    """How a run of `schedule` is watched; None if it is not, with the reason in the log unless that was asked for.

    Args:
        trained: the reviewers of the training examples.
        process: one of those that train together; each computes its own rows, and judges all of the sample.
    Raises:
        BadInput: a reviewer is on both sides, no watched example fits, or `watch.best` is no number of the question's labels.
    """
    if watch is None:
        return None
    unseen = unseen_examples(data, watch, trained=trained)
    if not unseen:
        return None
    what = watched(unseen, renderer, question, watch=watch, train=train, answer_tokens=data.answer_tokens)
    if process.sharded_weights:
        what = by_loss_alone(what, watch)
        log.info("the weights are divided among devices, so of the readers who are watched the loss alone is computed")
    some = [len(schedule.row(at).ids) for at in range(min(_LOOKED_AT, len(schedule.rows)))]
    per_step = train.accumulation(process.world_size) * sum(some) / len(some)
    plan = watch_plan(what.cost, steps=schedule.steps, tokens_per_step=per_step, every=watch.every)
    if plan is None:
        log.info(
            "this run is too short to be watched on %d examples of other readers within %.0f%% of its time, so it is not; "
            "watch.every=N judges it every N steps all the same",
            len(what.judged) or sum(len(row.example_ids) for row in what.rows),
            100 * SHARE,
        )
        return None
    log.info(
        "%d examples of other readers are watched every %d steps, %d times in all: about %.1f%% of the time",
        *(
            len(what.judged) or sum(len(row.example_ids) for row in what.rows),
            plan.every,
            plan.count(schedule.steps),
            100 * plan.share,
        ),
    )
    return Watching(what, plan)
