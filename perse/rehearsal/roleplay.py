"""The role-play: a user agent suggests how to change a summary, and a supervisor says whether the user would say so (Rehearsal, 3.3, appendix B).

All samples play in the same iterations, since the stop rules are about the share of all samples that have passed: in each, the supervisor looks at
every response that has not passed, and the user gives those anew as recommended. What cannot be answered is recorded as None, and has not passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perse.rehearsal.agents import Asking, said
from perse.rehearsal.answers import ANALYSIS, SUGGESTIONS, read_response, read_verdict
from perse.rehearsal.folder import Played, Response, Turn, Verdict
from perse.rehearsal.settings import stops
from perse.writing.loop import Outcome
from perse.writing.objects import texts_form


@dataclass(frozen=True)
class Scene:
    """What one sample's user sees."""

    history: tuple[str, ...]
    summary: str


@dataclass(frozen=True)
class Play:
    """A role-play of all samples. `rates`: the share of samples that had passed after each iteration."""

    played: Mapping[str, Played]
    rates: tuple[float, ...] = ()


def suggest(agents: Asking, scenes: Mapping[str, Scene], *, step: str) -> Play:
    """One response for each sample, which nobody supervises."""
    first = _suggested(agents, scenes, {}, step=step)
    return Play({name: Played(turns=(_turn(outcome),)) for name, outcome in first.items()})


def play(
    agents: Asking,
    scenes: Mapping[str, Scene],
    *,
    step: str,
    samples: int,
    demonstrations: Mapping[str, Sequence[str]] | None = None,
) -> Play:
    """Responses that are revised until the supervisor has passed enough of them.

    Args:
        step: what is played, "practice 1" or the like.
        samples: of the whole data set, of which the pass rate is.
        demonstrations: earlier responses of each sample's user, which the first prompt shows.
    """
    turns: dict[str, list[Turn]] = {}
    open_: dict[str, Response] = {}
    for name, outcome in _suggested(agents, scenes, demonstrations or {}, step=step).items():
        turns[name] = [_turn(outcome)]
        if outcome.value is not None:
            open_[name] = outcome.value
    rates: list[float] = []
    passed: set[str] = set()
    if not scenes:
        return Play({})
    for iteration in range(1, agents.settings.max_iterations + 1):
        verdicts = _supervised(agents, scenes, open_, step=f"{step}: supervisor {iteration}")
        for name, verdict in verdicts.items():
            last = turns[name][-1]
            turns[name][-1] = last.model_copy(update={"verdict": verdict.value, "failed": last.failed or _why(verdict)})
        passed |= {name for name, verdict in verdicts.items() if verdict.value is not None and verdict.value.passed}
        open_ = {name: response for name, response in open_.items() if name not in passed}
        rates.append(len(passed) / samples)
        if not open_ or iteration == agents.settings.max_iterations or stops(iteration, len(passed), samples):
            break
        advised = {name: verdicts[name].value for name in open_}
        revised = _revised(agents, scenes, open_, advised, step=f"{step}: user {iteration + 1}")
        for name, response in open_.items():  # one without a verdict is looked at again, and one that could not be revised, too
            anew = revised.get(name)
            turns[name].append(Turn(response=response) if anew is None else _turn(anew))
        open_ = {name: turns[name][-1].response or response for name, response in open_.items()}
    return Play({name: Played(turns=tuple(of_one)) for name, of_one in turns.items()}, tuple(rates))


def demonstrations(rounds: Sequence[Played]) -> tuple[str, ...]:
    """What a sample's rounds of practice show: the responses that passed, each once, or all of them if none did (section 4.3)."""
    ended = [one for one in rounds if one.response is not None]
    chosen = [one for one in ended if one.passed] or ended
    return tuple(dict.fromkeys(one.response.text for one in chosen if one.response is not None))


def _suggested(
    agents: Asking, scenes: Mapping[str, Scene], shown: Mapping[str, Sequence[str]], *, step: str
) -> dict[str, Outcome[Response]]:
    prompts = {
        name: said("suggest", past=scene.history, summary=scene.summary, demonstrations=tuple(shown.get(name, ())))
        for name, scene in scenes.items()
    }
    return agents.ask("user", f"{step}: user 1", prompts, read_response, form=_form(agents))


def _supervised(
    agents: Asking, scenes: Mapping[str, Scene], responses: Mapping[str, Response], *, step: str
) -> dict[str, Outcome[Verdict]]:
    prompts = {
        name: said("supervise", past=scenes[name].history, summary=scenes[name].summary, said=response.text)
        for name, response in responses.items()
    }
    return agents.ask("supervisor", step, prompts, read_verdict)


def _revised(
    agents: Asking,
    scenes: Mapping[str, Scene],
    responses: Mapping[str, Response],
    advised: Mapping[str, Verdict | None],
    *,
    step: str,
) -> dict[str, Outcome[Response]]:
    prompts = {
        name: said(
            "revise",
            past=scenes[name].history,
            summary=scenes[name].summary,
            before=response.text,
            recommendations=verdict.recommendations,
        )
        for name, response in responses.items()
        if (verdict := advised[name]) is not None
    }
    return agents.ask("user", step, prompts, read_response, form=_form(agents))


def _form(agents: Asking) -> dict[str, object]:
    return texts_form([ANALYSIS, SUGGESTIONS], max_new_tokens=agents.settings.max_new_tokens)


def _turn(outcome: Outcome[Response]) -> Turn:
    return Turn(response=outcome.value, failed=_why(outcome))


def _why(outcome: Outcome[Response] | Outcome[Verdict]) -> str | None:
    return None if outcome.value is not None else f"{outcome.kind}: {outcome.reason}"
