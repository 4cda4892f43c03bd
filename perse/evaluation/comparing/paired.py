"""One method minus another on the same items, and whether that is shown: the interval and the adjusted p-value both have to say so."""

from __future__ import annotations

from dataclasses import dataclass

from perse.evaluation.comparing.results import LEVEL
from perse.evaluation.comparing.words import p_shown
from perse.evaluation.stats.significance import Permutation
from perse.results.result import Estimate


@dataclass(frozen=True)
class PairedDifference:
    """`method` minus `minus`, of the value that `of` names."""

    method: str
    minus: str
    of: str
    estimate: Estimate
    p: Permutation
    adjusted: float | None
    """Holm's, over a family that whoever made it tells of."""

    @property
    def higher(self) -> bool:
        """Whether `method` is shown to have more."""
        return self.estimate.above_zero and self.adjusted is not None and self.adjusted <= LEVEL

    @property
    def lower(self) -> bool:
        """Whether it is shown to have less."""
        return self.estimate.below_zero and self.adjusted is not None and self.adjusted <= LEVEL

    @property
    def shown(self) -> bool:
        """Whether there is a difference."""
        return self.higher or self.lower

    @property
    def p_in_words(self) -> str:
        """The adjusted p, or why there is none."""
        if self.adjusted is None:
            return self.p.reason or "undefined"
        return p_shown(self.adjusted).replace("<", "< ")

    def from_side(self, method: str) -> PairedDifference:
        """The same difference, `method` minus the other."""
        if self.method == method:
            return self
        return PairedDifference(self.minus, self.method, self.of, self.estimate.turned, self.p, self.adjusted)
