"""Estimates of which documents are drawn anew, in the words for it."""

from __future__ import annotations

from perse.results.result import Estimate


def of_documents(estimate: Estimate) -> Estimate:
    """What is drawn here is documents, not reviewers."""
    if not estimate.interval.reason:
        return estimate
    reason = estimate.interval.reason.replace("reviewer", "document")
    return estimate.model_copy(update={"interval": estimate.interval.model_copy(update={"reason": reason})})
