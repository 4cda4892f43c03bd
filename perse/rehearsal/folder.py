"""A Rehearsal run folder.

    RUN/manifest.json      the samples, who plays which role, the settings
    RUN/traces.jsonl       one line for each sample and method: the summary, and how it came about
    RUN/rates.json         the pass rate of each iteration, of practice and formal suggestions
    RUN/answers.sqlite     every answer of every agent, as it was given: the same command goes on from these
    RUN/versions/          what the judge thinks of each version of a summary, by which the best is kept
    RUN/personal/          what the personal judge prefers, where the method `personal` was asked for
    RUN/scores/NAME/       `perse rehearsal score`: a judge's answers about the summaries

A trace holds all that its sample's summary came from, so that nothing else need be read to tell its story.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from perse.errors import BadInput
from perse.files.runlog import MANIFEST, read_lines, read_manifest, what_it_is
from perse.formats.json_text import read_json
from perse.records import explain
from perse.rehearsal.methods import METHODS
from perse.results.words import in_percent
from perse.strict import Strict

TRACES = "traces.jsonl"
RATES = "rates.json"
ANSWERS = "answers.sqlite"
VERSIONS = "versions"
PREFERENCES = "personal"
SCORES = "scores"
KIND = "rehearsal"


class _Record(Strict):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Response(_Record):
    """What the user agent says of a summary."""

    analysis: str
    suggestions: str

    @property
    def text(self) -> str:
        """As it is shown to the supervisor, and as a demonstration."""
        return f"Analysis: {self.analysis}\nSuggestions: {self.suggestions}"


class Verdict(_Record):
    """What the supervisor says of a response."""

    thought: str
    recommendations: str
    """Empty if the response has passed."""
    passed: bool


class Turn(_Record):
    """One iteration of the role-play: a response and the verdict on it. None where an answer could not be had (`failed` says why); the verdict is
    then on the response before."""

    response: Response | None
    verdict: Verdict | None = None
    """Also None where nobody supervises."""
    failed: str | None = None


class Played(_Record):
    """A role-play of one sample: its turns up to the one that passed, or the last."""

    turns: tuple[Turn, ...] = ()

    @property
    def passed(self) -> bool:
        return any(turn.verdict is not None and turn.verdict.passed for turn in self.turns)

    @property
    def response(self) -> Response | None:
        """The last one that there is."""
        return next((turn.response for turn in reversed(self.turns) if turn.response is not None), None)

    @property
    def responses(self) -> int:
        """How many there are."""
        return sum(turn.response is not None for turn in self.turns)


class Filtered(_Record):
    """What was kept for the rewriting. Numbers count from 1, in the order of the sample's reviews."""

    removed: tuple[int, ...] = ()
    """Product reviews that were removed, in this order ..."""
    drawn: tuple[int, ...] = ()
    """... of which these were drawn at random, since the filter did not name enough."""
    history: int | None = None
    """The review of the history that was chosen; None where none could be."""
    history_drawn: bool = False
    """Whether it was drawn at random."""
    failed: str | None = None


class Version(_Record):
    """One rewriting. `score` is what the judge gave it, 0 to 100; None where it gave none."""

    summary: str | None
    score: float | None = None
    failed: str | None = None


class Round(_Record):
    """One round under the personal judge: a suggestion, the rewriting that came of it, and whether that stands. `failed` says what could not be had."""

    suggestions: Response | None = None
    filtered: Filtered | None = None
    summary: str | None = None
    """The rewriting."""
    preferred: float | None = Field(default=None, ge=0, le=1 + 1e-6)
    """The probability that the reader would rather have it than the summary before; 0.5 of one that changes nothing."""
    order_gap: float | None = None
    """By how much the two orders in which the judge was asked differ; None where it was not asked."""
    stands: bool = False
    """Whether the gain, `preferred` - 0.5, is above the threshold. The round in which it is not is the sample's last."""
    failed: str | None = None


class Trace(_Record):
    """One sample under one method. `summary` is None if there is none, and `failed` says at which step and why."""

    sample: str
    method: str
    summary: str | None
    failed: str | None = None
    general: str | None = None
    analysis: str | None = None
    """The user's interests, under Ana+PerSum."""
    practice: tuple[Played, ...] = ()
    demonstrations: tuple[str, ...] = ()
    """Responses of the practice that were shown as examples."""
    suggestions: Played | None = None
    filtered: Filtered | None = None
    versions: tuple[Version, ...] = ()
    kept: int | None = Field(default=None, ge=1)
    """Which version is the summary, from 1."""
    rounds: tuple[Round, ...] = ()
    """Under the personal judge."""

    @property
    def filters(self) -> tuple[Filtered, ...]:
        """What was kept for its rewriting, or for that of each round."""
        return tuple(one for one in (self.filtered, *(each.filtered for each in self.rounds)) if one is not None)

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.sample


def check_run(run: Path) -> None:
    """Raises:
    BadInput: the folder is no Rehearsal run.
    """
    kind = read_manifest(run).get("run", {}).get("kind") if (run / MANIFEST).is_file() else KIND
    if (run / TRACES).is_file() and kind == KIND:
        return
    if (run / TRACES).is_file():
        raise BadInput(f"{run} holds {what_it_is(read_manifest(run))}; give a folder that `perse rehearsal run` wrote")
    holds = f"holds {what_it_is(read_manifest(run))}, and" if (run / MANIFEST).is_file() else "has"
    raise BadInput(f"{run} {holds} no {TRACES}; give a folder that `perse rehearsal run` wrote")


def read_traces(run: Path) -> dict[str, dict[str, Trace]]:
    """method -> sample -> trace; methods in the order of the paper, samples in that of the file.

    Raises:
        BadInput: no run, no traces yet, or an invalid line; the message names it.
    """
    check_run(run)
    found: dict[tuple[str, str], Trace] = {}
    for line, row in enumerate(read_lines(run / TRACES, remedy="remove the line"), start=1):
        try:
            trace = Trace.model_validate(row)
        except ValidationError as error:
            raise BadInput(f"{run / TRACES}, line {line}: {explain(error)}; remove the line, and run again") from None
        if trace.method not in METHODS:
            raise BadInput(
                f"{run / TRACES}, line {line}: there is no method '{trace.method}', expected one of {', '.join(METHODS)}; remove the line"
            )
        if (trace.kept or 0) > len(trace.versions):
            raise BadInput(
                f"{run / TRACES}, line {line}: version {trace.kept} is kept of {len(trace.versions)}; remove the line, and run again"
            )
        if trace.key in found:
            raise BadInput(f"{run / TRACES}, line {line}: '{trace.sample}' has a second trace under {trace.method}; remove one")
        found[trace.key] = trace
    if not found:
        raise BadInput(f"{run} has no summaries yet; run `perse rehearsal run` to its end first")
    return {
        method: {sample: trace for (of, sample), trace in found.items() if of == method}
        for method in METHODS
        if any(of == method for of, _ in found)
    }


def read_rates(run: Path) -> dict[str, list[float]]:
    """The pass rate after each iteration, by what was played; none where nobody supervised.

    Raises:
        BadInput: the file is none of ours.
    """
    path = run / RATES
    if not path.exists():
        return {}
    remedy = "remove the file, and run the same command again"
    found = read_json(path, remedy=remedy)
    if not isinstance(found, Mapping) or not all(
        isinstance(rates, list) and rates and all(isinstance(rate, int | float) and 0 <= rate <= 1 for rate in rates)
        for rates in found.values()
    ):
        raise BadInput(f"{path} holds no pass rates; {remedy}")
    return {name: list(map(float, rates)) for name, rates in found.items()}


@dataclass(frozen=True)
class RunSummary:
    """What came of a run. `methods`: method -> summaries, and how many there are not, by the step and reason; `rates` as `read_rates`; `ends`: why
    samples ended under the personal judge."""

    methods: dict[str, dict[str, int]]
    rates: dict[str, list[float]]
    ends: dict[str, int] = field(default_factory=dict)
    chance: dict[str, str] = field(default_factory=dict)
    """Of methods in which chance stood in for an answer: what was drawn at random, or kept without a score."""

    def lines(self) -> list[str]:
        """In words."""
        told = []
        for method, counts in self.methods.items():
            none = {why: count for why, count in counts.items() if why != "ok"}
            why = "".join(f"; {count} None ({reason})" for reason, count in none.items())
            told.append(f"{method}: {counts.get('ok', 0)} of {sum(counts.values())} summaries{why}")
        told += [
            f"{name}: {in_percent(rates[-1])} passed after {len(rates)} iteration{'s' if len(rates) > 1 else ''}"
            for name, rates in self.rates.items()
        ]
        told += [f"{method}: {what}" for method, what in self.chance.items()]
        if self.ends:
            told.append(f"personal judge: {', '.join(f'{count} ended with {why}' for why, count in self.ends.items())}")
        return told


def summary_of_run(run: Path) -> RunSummary:
    """Raises:
    BadInput: as `read_traces`.
    """
    found = read_traces(run)
    methods = {method: dict(Counter(_reason(trace) for trace in traces.values())) for method, traces in found.items()}
    ends = Counter(_end(trace.rounds[-1]) for traces in found.values() for trace in traces.values() if trace.rounds)
    best = read_manifest(run).get("run", {}).get("settings", {}).get("best")
    chance = {method: _chance(traces.values(), scored=best != "last") for method, traces in found.items()}
    return RunSummary(methods, read_rates(run), dict(ends), {method: what for method, what in chance.items() if what})


def _chance(traces: Collection[Trace], *, scored: bool) -> str:
    """In words; empty where every answer was had."""
    filtered = [one for each in traces for one in each.filters]
    removed, drawn = sum(len(one.removed) for one in filtered), sum(len(one.drawn) for one in filtered)
    histories = sum(one.history_drawn for one in filtered)
    chosen = sum(one.history is not None for one in filtered)
    unscored = (
        sum(each.kept is not None and all(one.score is None for one in each.versions) for each in traces) if scored else 0
    )
    return "; ".join(
        told
        for told, count in (
            (
                f"{drawn} of {removed} product reviews that went were drawn at random, since the filter did not name enough",
                drawn,
            ),
            (f"{histories} of {chosen} reviews of a history were drawn at random", histories),
            (
                f"of {unscored} {'sample' if unscored == 1 else 'samples'} the judge scored no version, and the last one was kept",
                unscored,
            ),
        )
        if count
    )


def _end(last: Round) -> str:
    """Why a sample went no further."""
    return _step(last.failed) if last.failed else "the last round" if last.stands else "no gain"


def _reason(trace: Trace) -> str:
    """ "ok", or the step without an answer and its kind."""
    return "ok" if trace.summary is not None else _step(trace.failed or "unknown")


def _step(failed: str) -> str:
    return ": ".join(failed.split(": ")[:2])
