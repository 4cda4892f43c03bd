"""Who is watched: a few readers of the training side, who are not trained on.

The best judged weights are kept, so whoever is watched chooses them, and looks a little better under them than other readers do.
The validation side is what is scored later, so nobody of it may choose. Which readers are held apart is a function of the data and
the seed. Where they have too few examples to choose by, and in a run too short to be watched, all are trained on.
"""

from __future__ import annotations

from dataclasses import replace

from perse.identity import shuffled
from perse.records import Example
from perse.rendering.prompt import Renderer
from perse.settings.training import TrainConfig
from perse.training.rows.prepare import Prepared, prepare, training_side
from perse.training.watch.plan import SHARE
from perse.training.watch.run import watched_as_planned

FEWEST_EXAMPLES = 16
"""Of the readers who are held apart: Kendall of fewer strays by more than 0.17, and chooses at random."""


def rows_apart(config: TrainConfig, renderer: Renderer, *, quiet: bool = True) -> Prepared:
    """`prepare` without the readers who are watched, as one device would watch them: other numbers of devices train on the same.

    Raises:
        BadInput: as `prepare` and `watched_as_planned`.
    """
    watch = config.watch
    if watch is None or watch.data is not None:
        return prepare(config, renderer, quiet=quiet)
    known = _known(config)
    readers = {one.reviewer_id for one in known if one.reviewer_id is not None}
    order = shuffled(readers, seed=config.train.seed, purpose="held apart")
    apart = frozenset(order[: watch.number_apart(len(readers))])
    examples = sum(one.reviewer_id in apart for one in known)
    if examples < FEWEST_EXAMPLES:
        why = (
            f"training is not watched, and all {len(readers)} readers of {config.data.path} are trained on: those who could be held apart "
            f"({len(apart)}, by watch.held_apart={watch.held_apart:g}) have {examples} examples, and fewer than {FEWEST_EXAMPLES} would "
            "choose weights at random; raise it, or name examples of other readers as watch.data"
        )
        return replace(prepare(config, renderer, quiet=quiet), unwatched=why)
    prepared = prepare(config, renderer, apart=apart, quiet=quiet)
    if watched_as_planned(config, prepared)[1] is not None:
        return prepared
    why = (
        f"this run is too short to be watched within {SHARE:.0%} of its time, so it is not, and all readers are trained on; "
        "watch.every=N judges it every N steps all the same"
    )
    return replace(prepare(config, renderer, quiet=quiet), unwatched=why)


def _known(config: TrainConfig) -> list[Example]:
    """The examples of the training side that could be watched: answered, and of the aspect that is learned."""
    data = config.data
    return [one for one in training_side(data).examples if one.reference is not None and data.aspect in (None, one.aspect)]
