"""How often summaries fail: what none of the samples shows, as well."""

from __future__ import annotations

import numpy as np

from perse.evaluation.stats.shares import share_interval
from perse.results.result import Estimate


def failed_share(failed: int, samples: int) -> Estimate:
    """Summaries that failed, in percent of one sample or more, with an exact interval: none in 100 may be up to 3.6% of others."""
    found = share_interval((np.arange(samples) < failed).astype(np.float64), np.ones(samples), clusters=[np.arange(samples)])
    ends = {end: 100 * at for end, at in (("low", found.low), ("high", found.high)) if at is not None}
    return Estimate(value=100 * failed / samples, interval=found.model_copy(update=ends), items=samples)


def at_most(samples: int) -> str:
    """How many of others may fail where none of so many samples did, such as "3.6%"."""
    return f"{failed_share(0, samples).interval.high or 0.0:.1f}%"
