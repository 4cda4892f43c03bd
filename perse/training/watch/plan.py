"""How often a model in training is judged: as often as under 5% of the time allows, counted in tokens and not in seconds.

Counted ahead, so that the same command judges at the same steps on every machine and after every kill; the trade-off is that
the share is an estimate, and the measured one is logged beside it. A forward pass costs half of training on the same token
where most weights are frozen (no gradients of theirs) and a third where all are trained; the dearer of the two counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perse.rendering.prompt import Ids

SHARE = 0.05
"""Largest share of the time for judging."""
FORWARD = 0.5
"""Training tokens that a token costs that is only computed forward."""
WRITING = 20.0
"""Tokens of a prompt that take as long as one token written: measured at 18 to 26 with 8 rows at once on a CPU."""
MOST = 50
"""Most judgings of a run; a curve with more points is not clearer."""


@dataclass(frozen=True)
class WatchCost:
    """Tokens of one judging: of the rows whose loss is computed, of the prompts that are judged, and written at most."""

    loss: int
    judged: int
    written: int

    @property
    def training_tokens(self) -> float:
        """How many tokens could be trained on in the same time."""
        return FORWARD * (self.loss + self.judged + WRITING * self.written)


@dataclass(frozen=True)
class WatchPlan:
    """Judge after every `every` steps and after the last; `first`: before the first step, too. `share`: of the time, as counted."""

    every: int
    first: bool
    share: float

    def count(self, steps: int) -> int:
        """Judgings of a run of `steps` optimizer steps."""
        return int(self.first) + self.chosen_among(steps)

    def chosen_among(self, steps: int) -> int:
        """Judgings whose weights may be kept: all but the untrained model's. One alone is no choice."""
        return -(-steps // self.every)


def watch_plan(cost: WatchCost, *, steps: int, tokens_per_step: float, every: int | None = None) -> WatchPlan | None:
    """When to judge in a run of `steps` optimizer steps of `tokens_per_step` tokens on each device.

    A run too short for two judgings within `SHARE` is judged once, at its end; one too short for that, not at all.

    Args:
        every: steps between two judgings where they were given; then the share is not limited.
    """
    trained = steps * tokens_per_step
    if every is None:
        affordable = min(int(SHARE / (1 - SHARE) * trained / cost.training_tokens), MOST)
        if affordable < 1:
            return None
        plan = WatchPlan(-(-steps // max(1, affordable - 1)), affordable >= 2, 0.0)
    else:
        plan = WatchPlan(min(every, steps), True, 0.0)
    spent = plan.count(steps) * cost.training_tokens
    return WatchPlan(plan.every, plan.first, spent / (spent + trained))


def tokens_once(prompts: Iterable[tuple[Ids, ...]]) -> int:
    """Tokens of prompts given as segments, those that begin alike counted once."""
    paths = {prompt[:n] for prompt in prompts for n in range(1, len(prompt) + 1)}
    return sum(len(path[-1]) for path in paths)
