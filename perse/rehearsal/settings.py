"""The constants of Rehearsal, and when the role-play stops (section 4.3, appendix B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from perse.errors import BadInput

Best = Literal["visible", "all", "last"]
Practice = Literal["apart", "together"]
Rewrites = Literal["chain", "fresh"]

Labels = Literal["0-100", "1-5"]
"""By which a judge scores summaries: the paper's wider scale, in steps of 20, or the narrower one that it began with."""
WIDE: Labels = "0-100"

GAIN = 0.05
"""Under the method `personal` a rewriting stands if the reader prefers it with a probability of more than 0.55. Not 0: in bfloat16 logits of 16 to 32 come
in steps of 0.125, which is 0.03 of a probability near one half, and each of five rounds is another chance for that. The two mistakes differ, too: what is
thrown away wrongly is one more rewriting of a sound summary; what is kept wrongly is read by a person, and rewritten further."""


def check_gain(gain: float) -> None:
    """Raises:
    BadInput: a gain that no probability is above, or below 0.
    """
    if not 0 <= gain < 0.5:
        raise BadInput(
            f"the gain is {gain:g}, expected from 0 to below 0.5, which is the gain of a summary that the reader surely prefers"
        )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The paper's values where it gives them; what it leaves open is said at each."""

    practice_rounds: int = 3
    practice: Practice = "apart"
    """Whether a round of practice is shown the passed responses of those before it (together); the paper does not say. Apart: none is."""
    max_iterations: int = 16
    """Of a role-play: it stops when more than 15 are done. Fewer are cheaper, and no longer the paper's."""
    product_characters: int = 10_000
    """Product reviews have fewer characters than this together, after the filter."""
    rewrites: int = 5
    rewriting: Rewrites = "chain"
    """Whether each rewriting starts from the one before it (chain) or from the general summary (fresh); the paper has "multiple modifications"."""
    best: Best = "visible"
    """By what the best version is kept, which the paper does not say. visible: the judge's coverage and sentiment against the product's reviews and
    the history. all: also against the user's own review of the product, which nobody has who writes for them. last: no judge; the last version."""
    scale: Labels = WIDE
    """On which versions are scored."""
    temperature: float = 1.0
    """The paper has each model's default, which is 1 for most."""
    max_new_tokens: int = 1024
    tries: int = 3
    """For an answer in the wrong form; ours."""
    seed: int = 0
    skip_failed: bool = False
    """Go on without what the engine failed at, instead of stopping."""

    def __post_init__(self) -> None:
        allows = {
            "practice_rounds": (0, 1000),
            "max_iterations": (1, 1000),
            "product_characters": (1, 10**9),
            "rewrites": (1, 1000),
            "max_new_tokens": (16, 10**6),
            "tries": (1, 1000),
        }
        for name, (smallest, largest) in allows.items():
            if getattr(self, name) < smallest:
                raise BadInput(f"{name} is {getattr(self, name)}, expected {smallest} or more")
            if getattr(self, name) > largest:
                raise BadInput(f"{name} is {getattr(self, name)}, expected {largest:,} or less")
        for name, allowed in (("practice", Practice), ("rewriting", Rewrites), ("best", Best), ("scale", Labels)):
            if getattr(self, name) not in get_args(allowed):
                raise BadInput(f"{name} is '{getattr(self, name)}', expected one of {', '.join(get_args(allowed))}")


EARLY, EARLY_PERCENT, LATE_PERCENT, MOST = 5, 95, 85, 15


def stops(iteration: int, passed: int, samples: int) -> bool:
    """Whether a role-play of so many samples stops after this iteration, counted from 1 (appendix B).

    At 95% up to iteration 5, at 85% from iteration 6 on, and after iteration 16 in any case. "Over" is read as "at least".
    """
    if iteration > MOST:
        return True
    return 100 * passed >= (EARLY_PERCENT if iteration <= EARLY else LATE_PERCENT) * samples
