"""The summary agent changes the general summary as the user suggests, five times, and the best version is kept (Rehearsal, 3.4 and B)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from perse.rehearsal.agents import Asking, said
from perse.rehearsal.answers import SUMMARY, read_text, summary_form
from perse.rehearsal.folder import Version


@dataclass(frozen=True)
class Draft:
    """What one sample's rewriting reads: reviews of the product, the summary so far, the suggestions, and perhaps a review of the history."""

    product: tuple[str, ...]
    summary: str
    suggestions: str
    history: tuple[str, ...] = ()


Rate = Callable[[Mapping[str, Sequence[str]]], Mapping[tuple[str, str], float | None]]
"""sample -> versions, to the score of each (sample, version)."""


def unrated(_: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], float | None]:
    """A `Rate` of nobody: the last version is the best."""
    return {}


def rewrite(agents: Asking, drafts: Mapping[str, Draft], rate: Rate, *, step: str) -> dict[str, tuple[Version, ...]]:
    """All versions of each sample's summary, in order, with their scores. One that could not be had is None, and the next starts from the one before."""
    versions: dict[str, list[Version]] = {name: [] for name in drafts}
    latest = {name: draft.summary for name, draft in drafts.items()}
    for number in range(1, agents.settings.rewrites + 1):
        chained = agents.settings.rewriting == "chain"
        begun = {name: replace(draft, summary=latest[name]) if chained else draft for name, draft in drafts.items()}
        for name, version in rewrite_once(agents, begun, step=f"{step}: rewriting {number}").items():
            versions[name].append(version)
            latest[name] = version.summary or latest[name]
    scores = rate({name: [one.summary for one in of_one if one.summary is not None] for name, of_one in versions.items()})
    return {
        name: tuple(one.model_copy(update={"score": scores.get((name, one.summary or ""))}) for one in of_one)
        for name, of_one in versions.items()
    }


def rewrite_once(agents: Asking, drafts: Mapping[str, Draft], *, step: str) -> dict[str, Version]:
    """One version of each sample's summary; None where it could not be had."""
    prompts = {
        name: said(
            "rewrite",
            reviews=draft.product,
            summary=draft.summary,
            suggestions=draft.suggestions,
            past=draft.history,
        )
        for name, draft in drafts.items()
    }
    form = summary_form(agents.settings.max_new_tokens)
    found = agents.ask("writer", step, prompts, lambda answer: read_text(answer, SUMMARY), form=form)
    return {
        name: Version(
            summary=outcome.value,
            failed=None if outcome.value is not None else f"{outcome.kind}: {outcome.reason}",
        )
        for name, outcome in found.items()
    }


def best(versions: Sequence[Version]) -> int | None:
    """The number of the version with the highest score, the first of equal ones; without scores, of the last version. None if there is none."""
    there = [number for number, version in enumerate(versions, start=1) if version.summary is not None]
    scored = {number: score for number in there if (score := versions[number - 1].score) is not None}
    if scored:
        return max(scored, key=lambda number: (scored[number], -number))
    return there[-1] if there else None
