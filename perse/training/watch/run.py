"""Sets up watching for a run: the sample, when it is judged, and the Trainer's arguments."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from perse.identity import reader_key
from perse.settings.training import TrainConfig
from perse.training.launched import ALONE, Launched
from perse.training.rows.prepare import Prepared
from perse.training.watch.plan import SHARE, WatchPlan, watch_plan
from perse.training.watch.sample import Watched, unseen_examples, watched, without_writing

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

    def choosers(self, steps: int) -> list[str]:
        """Whose answers choose the weights that are kept, each as a `reader_key`; nobody where there is one judging alone."""
        return sorted(map(reader_key, self.what.readers)) if self.plan.chosen_among(steps) > 1 else []


def watching_for(config: TrainConfig, prepared: Prepared, *, process: Launched = ALONE) -> Watching | None:
    """How the run of `prepared` is watched; None if it is not, with the reason in the log unless that was asked for.

    Args:
        process: one of those that train together; each computes its own rows, and judges all of the sample.
    Raises:
        BadInput: as `watched_as_planned`.
    """
    if config.watch is None:
        return None
    what, plan = watched_as_planned(config, prepared, process=process)
    if what is None:
        log.info(prepared.unwatched)
        return None
    if not what.judged:
        log.info("the weights are divided among devices, so of the readers who are watched the loss alone is computed")
    count = sum(len(row.example_ids) for row in what.rows)
    if plan is None:
        apart = ", and they are not trained on either" if prepared.apart else ""
        log.info(
            "this run is too short to be watched on %d examples of other readers within %.0f%% of its time, so it is not%s; "
            "watch.every=N judges it every N steps all the same",
            *(count, 100 * SHARE, apart),
        )
        return None
    log.info(
        "%d examples of %d readers who are not trained on%s are watched, %d of them judged, every %d steps, %d times in all: about %.1f%% of the time",
        *(count, len(what.readers), ", held apart from the training side," if prepared.apart else "", len(what.judged)),
        *(plan.every, plan.count(prepared.schedule.steps), 100 * plan.share),
    )
    return Watching(what, plan)


def watched_as_planned(
    config: TrainConfig, prepared: Prepared, *, process: Launched = ALONE
) -> tuple[Watched | None, WatchPlan | None]:
    """What could be watched, if anybody, and when; without a plan where the run is too short for it.

    Raises:
        BadInput: a reviewer is on both sides, no watched example fits, or `watch.best` is no number of the question's labels.
    """
    watch, schedule = config.watch, prepared.schedule
    if watch is None or (watch.data is None and not prepared.apart):
        return None, None
    unseen = unseen_examples(config.data, watch, trained=prepared.reviewers, apart=prepared.apart)
    answer_tokens = config.data.answer_tokens
    what = watched(unseen, prepared.renderer, prepared.question, watch=watch, train=config.train, answer_tokens=answer_tokens)
    if process.sharded_weights:
        what = without_writing(what, watch)
    some = [len(schedule.row(at).ids) for at in range(min(_LOOKED_AT, len(schedule.rows)))]
    per_step = config.train.accumulation(process.world_size) * sum(some) / len(some)
    return what, watch_plan(what.cost, steps=schedule.steps, tokens_per_step=per_step, every=watch.every)
