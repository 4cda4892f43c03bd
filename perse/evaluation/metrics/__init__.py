"""The columns of an evaluation, by name, in their order. A new one is one file, or one function, and one line here.

Other packages add theirs under the entry-point group `perse.metrics` (docs/contributing.md). What such a metric does wrong while it
is used takes its own cell, not the table.
"""

from __future__ import annotations

import copy

from pydantic import ValidationError

from perse.errors import BadInput
from perse.evaluation.metrics.choices import PAIRS
from perse.evaluation.metrics.metric import CHOICES, ERRORS, POOLED, TEXTS, Kind, Metric, Sheet
from perse.evaluation.metrics.samples import Chosen, Sample, Scored, Written
from perse.evaluation.metrics.scores import SCORES
from perse.evaluation.metrics.shapes import Resampled, mean_of, of_sample
from perse.evaluation.metrics.texts import REVIEWS
from perse.records import explain
from perse.registry import Registry, error_words
from perse.results.result import Estimate, Interval
from perse.results.words import one_line
from perse.secrets import printable, redact

METRICS: Registry[Metric] = Registry(
    "perse.metrics",
    (*SCORES, *PAIRS, *REVIEWS),
    needs=("title", "direction", "about", "sheet", "function", "chance", "drawn", "kind", "lower", "alone"),
)

__all__ = [
    "CHOICES",
    "ERRORS",
    "METRICS",
    "POOLED",
    "TEXTS",
    "Chosen",
    "Kind",
    "Metric",
    "Resampled",
    "Sample",
    "Scored",
    "Sheet",
    "Written",
    "added",
    "computed",
    "failure",
    "lower_is_better",
    "mean_of",
    "metrics_of",
    "of_sample",
    "title_of",
]

_LONGEST = 200


def metrics_of(kind: Kind) -> tuple[Metric, ...]:
    """The metrics of scores, choices or texts."""
    return tuple(metric for metric in METRICS.values() if metric.kind == kind)


def added(metric: Metric) -> bool:
    """Whether another package brought it."""
    return metric.name not in METRICS.own


def title_of(name: str) -> str:
    """What a column is called where no sheet's title stands above it, or its name in words: it may be of a package that is gone."""
    return METRICS[name].alone if name in METRICS else name.replace("_", " ")


def lower_is_better(name: str) -> bool:
    """Whether less of it is better."""
    return name in METRICS and METRICS[name].lower


def computed(metric: Metric, sample: Sample) -> Estimate | None:
    """Its value of a row; None in rows that have no such value. One of another package that fails is undefined, and says why.

    Raises:
        BadInput: one of texts that cannot be had here, such as without its model; the column is left out.
    """
    if not added(metric):
        return _in_range(metric, metric.function(sample))
    try:
        if not isinstance(sample, Written):
            return _checked(metric.function(sample))
        given = copy.copy(sample)  # with what was computed of it for others
        object.__setattr__(given, "settings", {})
        found, setting = _checked(metric.function(given)), _setting(metric, given)
    except Exception as error:  # whatever a stranger's function does
        if isinstance(error, BadInput) and metric.kind == "texts":
            raise
        return Estimate(value=None, interval=Interval(reason=failure(metric, error)), items=len(sample.reviewer))
    sample.settings.update(setting)
    return _in_range(metric, found)


def _in_range(metric: Metric, found: Estimate | None) -> Estimate | None:
    if found is None or found.interval.low is None or found.interval.high is None:
        return found
    low, high = (min(max(end, metric.range[0]), metric.range[1]) for end in (found.interval.low, found.interval.high))
    return found.model_copy(update={"interval": found.interval.model_copy(update={"low": low, "high": high})})


def _checked(found: object) -> Estimate | None:
    """What a stranger's function gave, made anew: pydantic has ways around its own checks (`model_copy`, `model_construct`), and what
    they let in could not be written."""
    if found is None:
        return None
    if not isinstance(found, Estimate):
        raise TypeError(f"it gave {type(found).__name__}, expected an Estimate")
    try:
        return Estimate.model_validate(found.model_dump(warnings=False))
    except ValidationError as error:
        raise TypeError(f"it gave an Estimate with {explain(error)}") from None


def _setting(metric: Metric, written: Written) -> dict[str, str]:
    """What a stranger's function noted of itself."""
    for name, said in written.settings.items():
        if name != metric.name or not isinstance(said, str):
            raise TypeError(f"it put {name!r}: {said!r} into settings, expected a text by its own name")
    return {name: one_line(printable(redact(said))) for name, said in written.settings.items()}


def failure(metric: Metric, error: Exception) -> str:
    """Why a value is undefined whose metric failed."""
    told = one_line(printable(redact(error_words(error))))
    told = told if len(told) <= _LONGEST else f"{told[:_LONGEST]} ..."
    return f"undefined (metric {metric.name} of {METRICS.package(metric.name)} failed: {told})"
