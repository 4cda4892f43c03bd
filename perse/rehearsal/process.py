"""All methods over all samples, in waves; the same command goes on after a kill (Rehearsal, section 3 and appendix B).

Nothing but answers is kept on the way: each stage is a function of the samples and of answers, so a run that begins again comes through the same stages
in seconds, and asks only what it has no answer to. Methods share their stages: a general summary is written once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from perse.data.persum.folder import Sample
from perse.errors import BadInput
from perse.files.own_files import write_own
from perse.files.runlog import RunLog
from perse.judging.judge import Judge
from perse.progress import OnPart, unseen_part
from perse.rehearsal import baselines
from perse.rehearsal.agents import Agents, Asking, Role, wording_digest
from perse.rehearsal.baselines import Text, Texts, history_of, product_of
from perse.rehearsal.filtering import Sets, filter_reviews, kept
from perse.rehearsal.folder import (
    ANSWERS,
    KIND,
    PREFERENCES,
    RATES,
    TRACES,
    VERSIONS,
    Filtered,
    Played,
    Trace,
    read_rates,
    read_traces,
)
from perse.rehearsal.judging import SIDES, VISIBLE, Judgements, Wanted, mean_of, values_of
from perse.rehearsal.methods import METHODS, Method, check_judged
from perse.rehearsal.personal import Supervision, personal_traces
from perse.rehearsal.preferring import PersonalJudge, supervision
from perse.rehearsal.rewriting import Draft, Rate, best, rewrite, unrated
from perse.rehearsal.roleplay import Play, Scene, demonstrations, play, suggest
from perse.rehearsal.settings import WIDE, Settings
from perse.writing.cache import AnswerCache
from perse.writing.writer import Writer


def rehearse(
    writers: Mapping[Role, Writer],
    judge: Judge | None,
    samples: Sequence[Sample],
    out: Path,
    *,
    digest: str,
    methods: Iterable[str],
    settings: Settings,
    personal: PersonalJudge | None = None,
    on_progress: OnPart = unseen_part,
) -> Path:
    """Write the summaries that `out` does not have yet, by each of the methods.

    Args:
        writers: who plays each role.
        judge: scores the versions of a summary; None only if `settings.best` is "last", or no method rewrites.
        digest: of the samples.
        personal: the readers' judge, which the method `personal` needs.
    Raises:
        BadInput: an unknown method, no samples, no judge where one is needed, or a personal judge whom no method asks.
        RunMismatch: the folder was begun with other models, samples or settings; the message names what differs.
        EngineLost: an engine is gone, or failed at some answers; the same command goes on.
    """
    chosen = [_method(name) for name in methods]
    if not samples:
        raise BadInput("there are no samples; build some with `perse data persum`")
    scored = settings.best != "last" and any(method.plays and not method.judged for method in chosen)
    if scored and judge is None:
        raise BadInput("the best version is kept by a judge's score; name a judge, or keep the last version (--best last)")
    check_judged([method.name for method in chosen], personal=personal is not None)
    for sample in samples:
        if not sample.history or not sample.product_reviews:
            raise BadInput(f"sample '{sample.id}' has no {'history' if sample.product_reviews else 'product reviews'}")
    identity = run_identity(writers, judge if settings.best != "last" else None, samples, digest, settings)
    with RunLog(out, identity, lines=TRACES) as log, AnswerCache(out / ANSWERS) as cache:
        have = {
            key for of_one in (read_traces(out) if log.read() else {}).values() for key in (one.key for one in of_one.values())
        }
        agents = Agents(writers, cache, settings, on_progress)
        by_id = {one.id: one for one in samples}
        rate = _rating(judge, by_id, out, digest, agents) if scored and judge else unrated
        process = Process(
            agents, by_id, rate, supervision(personal, by_id, out / PREFERENCES, digest, agents) if personal else None
        )
        for method in chosen:
            told = not method.supervised or (out / RATES).exists()
            if told and all((method.name, sample.id) in have for sample in samples):
                continue
            traces = process.traces(method)
            _keep_rates(out, process.rates)
            log.append(trace.model_dump_json(exclude_defaults=True) + "\n" for trace in traces if trace.key not in have)
    return out


def run_identity(
    writers: Mapping[Role, Writer], judge: Judge | None, samples: Sequence[Sample], digest: str, settings: Settings
) -> dict[str, Any]:
    """What a run may not change in the middle; methods may be added."""
    decisive = {name: value for name, value in asdict(settings).items() if name != "skip_failed"}
    if settings.scale == WIDE:  # the only one that there was
        del decisive["scale"]
    return {
        "kind": KIND,
        "samples": {"count": len(samples), "sha256": digest},
        "roles": {role: {**writer.identity, "context": writer.context} for role, writer in writers.items()},
        "judge": judge.for_manifest if judge else {},  # read_manifest wants an object
        "settings": decisive,
        "prompts_sha256": wording_digest(),
    }


class Process:
    """The stages, each computed once, whoever answers."""

    def __init__(
        self, agents: Asking, samples: Mapping[str, Sample], rate: Rate, supervision: Supervision | None = None
    ) -> None:
        self.agents, self.samples, self._rate, self._supervision = agents, samples, rate, supervision
        self.rates: dict[str, tuple[float, ...]] = {}
        self._played: dict[tuple[bool, bool], Mapping[str, Played]] = {}

    def traces(self, method: Method) -> list[Trace]:
        """One for each sample."""
        if method.judged:
            assert self._supervision is not None, method.name
            return personal_traces(
                self.agents, self._supervision, self.samples, self.generals, lambda: self.suggestions(method)
            )
        if method.plays:
            return self._rehearsed(method)
        analyses: Texts = {}
        if method.name == "ana-persum":
            analyses = baselines.analysis(self.agents, self.samples)
            found = baselines.personal_from(self.agents, self.samples, analyses)
        elif method.name == "sum-perchan":
            found = baselines.adapted(self.agents, self.samples, self.generals)
        else:
            found = self.generals if method.name == "onlysum" else baselines.personal(self.agents, self.samples)
        general = self.generals if method.name in ("onlysum", "sum-perchan") else {}
        return [
            Trace(
                sample=name,
                method=method.name,
                summary=one.text,
                failed=one.failed,
                general=general[name].text if general else None,
                analysis=analyses[name].text if analyses else None,
            )
            for name, one in found.items()
        ]

    @cached_property
    def generals(self) -> Texts:
        return baselines.general(self.agents, self.samples)

    @cached_property
    def scenes(self) -> dict[str, Scene]:
        """Of the samples that have a general summary."""
        return {
            name: Scene(history_of(self.samples[name]), one.text) for name, one in self.generals.items() if one.text is not None
        }

    @cached_property
    def practice(self) -> dict[str, tuple[Played, ...]]:
        """The rounds of each sample."""
        rounds: dict[str, tuple[Played, ...]] = dict.fromkeys(self.scenes, ())
        for number in range(1, self.agents.settings.practice_rounds + 1):
            together = self.agents.settings.practice == "together"
            shown = {name: _passed(of_one) for name, of_one in rounds.items()} if together else {}
            played = self._kept_rates(f"practice {number}", self._play(f"practice {number}", shown))
            rounds = {name: (*of_one, played[name]) for name, of_one in rounds.items()}
        return rounds

    @cached_property
    def demonstrations(self) -> dict[str, tuple[str, ...]]:
        return {name: demonstrations(rounds) for name, rounds in self.practice.items()}

    def suggestions(self, method: Method) -> Mapping[str, Played]:
        """Of the samples that have a general summary."""
        key = method.supervised, method.practised
        if key not in self._played:
            if not method.supervised:
                self._played[key] = suggest(self.agents, self.scenes, step="unsupervised suggestions").played
            else:
                shown = self.demonstrations if method.practised else {}
                name = "suggestions after practice" if method.practised else "suggestions without practice"
                self._played[key] = self._kept_rates(name, self._play(name, shown))
        return self._played[key]

    def _play(self, step: str, shown: Mapping[str, Sequence[str]]) -> Play:
        return play(self.agents, self.scenes, step=step, samples=len(self.samples), demonstrations=shown)

    def _kept_rates(self, name: str, found: Play) -> Mapping[str, Played]:
        if found.rates:
            self.rates[name] = found.rates
        return found.played

    def _rehearsed(self, method: Method) -> list[Trace]:
        """Suggestions, the reviews that they need, and the rewriting."""
        played = self.suggestions(method)
        told = {name: one.response.suggestions for name, one in played.items() if one.response is not None}
        filtered: dict[str, Filtered] = {}
        if method.retrieved:
            sets = {name: Sets(product_of(self.samples[name]), self.scenes[name].history, text) for name, text in told.items()}
            filtered = filter_reviews(self.agents, sets, step=method.name)
        drafts = {name: self._draft(name, text, filtered.get(name)) for name, text in told.items()}
        versions = rewrite(self.agents, drafts, self._rate, step=method.name)
        traces = []
        for name in self.samples:
            general = self.generals[name]
            chosen = best(versions.get(name, ()))
            summary = None if chosen is None else versions[name][chosen - 1].summary
            traces.append(
                Trace(
                    sample=name,
                    method=method.name,
                    summary=summary,
                    failed=None if summary is not None else self._why_none(general, played.get(name), versions.get(name, ())),
                    general=general.text,
                    practice=self.practice.get(name, ()) if method.practised else (),
                    demonstrations=self.demonstrations.get(name, ()) if method.practised else (),
                    suggestions=played.get(name),
                    filtered=filtered.get(name),
                    versions=versions.get(name, ()),
                    kept=chosen,
                )
            )
        return traces

    def _draft(self, name: str, suggestions: str, filtered: Filtered | None) -> Draft:
        """With all of the product's reviews and no history, unless reviews were retrieved."""
        product, scene = product_of(self.samples[name]), self.scenes[name]
        if filtered is None:
            return Draft(product, scene.summary, suggestions)
        history = () if filtered.history is None else (scene.history[filtered.history - 1],)
        return Draft(kept(product, filtered), scene.summary, suggestions, history)

    @staticmethod
    def _why_none(general: Text, played: Played | None, versions: Sequence[Any]) -> str:
        if general.text is None:
            return f"general summary: {general.failed}"
        if played is None or played.response is None:
            return f"suggestions: {played.turns[0].failed if played else 'none'}"
        return f"rewriting: {versions[-1].failed}"


def _rating(judge: Judge, samples: Mapping[str, Sample], out: Path, digest: str, agents: Agents) -> Rate:
    """The mean of what the judge gives each version, from RUN/versions as far as that has it."""
    sides = SIDES if agents.settings.best == "all" else VISIBLE

    def rate(versions: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], float | None]:
        wanted = {(name, text): Wanted(samples[name], text) for name, of_one in versions.items() for text in of_one}
        with Judgements(judge, out / VERSIONS, digest, agents.settings.scale) as judgements:
            told = agents.on_progress
            judgements.ask(wanted.values(), sides, on_progress=lambda done, total: told("judging versions", done, total))
            answers = judgements.read()
        return {key: mean_of(values_of(one, answers, agents.settings.scale, sides)) for key, one in wanted.items()}

    return rate


def _passed(rounds: Sequence[Played]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.response.text for one in rounds if one.passed and one.response is not None))


def _method(name: str) -> Method:
    if name not in METHODS:
        raise BadInput(f"unknown method '{name}'; there are {', '.join(METHODS)}")
    return METHODS[name]


def _keep_rates(out: Path, rates: Mapping[str, Sequence[float]]) -> None:
    found = read_rates(out) | {name: [round(rate, 6) for rate in of_one] for name, of_one in rates.items()}
    if found:
        write_own(out / RATES, json.dumps(found, indent=1) + "\n")
