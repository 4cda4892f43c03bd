"""The method `personal`: the reader's own judge, and no supervisor, says whether a suggestion has made the summary better for this reader.

In the paper a supervisor looks at whether the role-played user sounds like the user; whether the summary that comes of it is one that this reader would
rather have, nobody asks. Here the user agent suggests, reviews are retrieved, the summary is rewritten once, and the judge compares it with the one
before. It stands if the gain is above the threshold, and the next round starts from it; else the sample ends with the summary before. All samples go
through a round together. What could not be had or judged has no gain: the sample ends, and the round says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from perse.data.persum.folder import Sample
from perse.rehearsal.agents import Asking
from perse.rehearsal.baselines import Texts, history_of, product_of
from perse.rehearsal.filtering import Sets, filter_reviews, kept
from perse.rehearsal.folder import Filtered, Played, Response, Round, Trace, Version
from perse.rehearsal.rewriting import Draft, rewrite_once
from perse.rehearsal.roleplay import Scene, suggest

PERSONAL = "personal"

First = Callable[[], Mapping[str, Played]]
"""What the users suggest on the general summaries, which other methods may have asked for."""


@dataclass(frozen=True)
class Preference:
    """The probability that the reader would rather have the summary after than the one before; None if the judge gave none, `failed` says why.

    `order_gap`: by how much the two orders of asking differ, 0 to 1; None where nothing was asked.
    """

    probability: float | None
    order_gap: float | None = None
    failed: str | None = None


SAME = Preference(0.5)
"""Of a summary that is as it was: nothing is asked."""

Prefer = Callable[[Mapping[str, tuple[str, str]], str], Mapping[str, Preference]]
"""sample -> its summary before and after, and the step's name; to how likely its reader would rather have the one after."""


@dataclass(frozen=True)
class Supervision:
    """The personal judge, and the gain above which a rewriting stands."""

    prefer: Prefer
    gain: float

    def keeps(self, preference: Preference) -> bool:
        """Whether the summary after stands."""
        return preference.probability is not None and preference.probability - 0.5 > self.gain


def personal_traces(
    agents: Asking, supervision: Supervision, samples: Mapping[str, Sample], generals: Texts, first: First
) -> list[Trace]:
    """One for each sample; one without a general summary has none.

    Raises:
        EngineLost: an engine is gone, or failed at some answers.
    """
    starts = {name: one.text for name, one in generals.items() if one.text is not None}
    rounds = _rounds(agents, supervision, {name: samples[name] for name in starts}, starts, first)
    return [
        Trace(
            sample=name,
            method=PERSONAL,
            summary=_standing(one.text, rounds.get(name, ())),
            failed=None if one.text is not None else f"general summary: {one.failed}",
            general=one.text,
            rounds=tuple(rounds.get(name, ())),
        )
        for name, one in generals.items()
    ]


def _standing(general: str | None, rounds: Sequence[Round]) -> str | None:
    """The last summary that stands."""
    return next((one.summary for one in reversed(rounds) if one.stands), general)


def _rounds(
    agents: Asking, supervision: Supervision, samples: Mapping[str, Sample], starts: Mapping[str, str], first: First
) -> dict[str, list[Round]]:
    rounds: dict[str, list[Round]] = {name: [] for name in samples}
    standing = dict(starts)
    for number in range(1, agents.settings.rewrites + 1):
        open_ = {name: text for name, text in standing.items() if all(one.stands for one in rounds[name])}
        if not open_:
            break
        step = f"{PERSONAL}, round {number}"
        scenes = {name: Scene(history_of(samples[name]), text) for name, text in open_.items()}
        played = first() if number == 1 else suggest(agents, scenes, step=step).played
        found = _round(agents, supervision, samples, scenes, {name: played[name] for name in scenes}, step=step)
        for name, one in found.items():
            rounds[name].append(one)
            standing[name] = one.summary if one.stands and one.summary is not None else standing[name]
    return rounds


def _round(
    agents: Asking,
    supervision: Supervision,
    samples: Mapping[str, Sample],
    scenes: Mapping[str, Scene],
    played: Mapping[str, Played],
    *,
    step: str,
) -> dict[str, Round]:
    """What comes of these suggestions."""
    said = {name: one.response for name, one in played.items() if one.response is not None}
    sets = {name: Sets(product_of(samples[name]), scenes[name].history, one.suggestions) for name, one in said.items()}
    filtered = filter_reviews(agents, sets, step=step)
    drafts = {name: _draft(samples[name], scenes[name], one, filtered[name]) for name, one in said.items()}
    versions = rewrite_once(agents, drafts, step=f"{step}: rewriting")
    changed = {
        name: (scenes[name].summary, one.summary)
        for name, one in versions.items()
        if one.summary is not None and one.summary != scenes[name].summary
    }
    preferences = supervision.prefer(changed, f"{step}: judging")

    def finished(name: str) -> Round:
        response = said.get(name)
        if response is None:
            return Round(failed=f"suggestions: {played[name].turns[0].failed}")
        version = versions[name]
        preference = preferences[name] if name in changed else _unasked(version)
        return Round(
            suggestions=response,
            filtered=filtered[name],
            summary=version.summary,
            preferred=preference.probability,
            order_gap=preference.order_gap,
            stands=supervision.keeps(preference),
            failed=preference.failed,
        )

    return {name: finished(name) for name in scenes}


def _unasked(version: Version) -> Preference:
    """Of a rewriting that is not there, or changes nothing."""
    return SAME if version.summary is not None else Preference(None, failed=f"rewriting: {version.failed}")


def _draft(sample: Sample, scene: Scene, response: Response, filtered: Filtered) -> Draft:
    past = () if filtered.history is None else (scene.history[filtered.history - 1],)
    return Draft(kept(product_of(sample), filtered), scene.summary, response.suggestions, past)
