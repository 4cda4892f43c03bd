"""Summaries by any model: one structured prompt, or that and a second turn in which the model looks at its answer (KGDS, section 5).

Answers are JSON, held to a schema where the engine obeys one, checked, and asked for again with what was wrong. All are kept the moment they
arrive, so that a kill loses only what was in flight. A summary that never became one is written down as a failure, and scores 0 later.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from perse.engines.base import Sampling, Turns
from perse.files.runlog import RunLog
from perse.kgds.asking.reading import EXTRACTIVE, Content, read_content, schema
from perse.kgds.benchmark import PARADIGMS, PATTERNS, Benchmark, Paradigm, Pattern, Sample
from perse.kgds.folder import ANSWERS, SUMMARIES, Summary, read_summaries
from perse.progress import OnPart, OnProgress, unseen, unseen_part
from perse.prompts import macros, source
from perse.writing.cache import AnswerCache
from perse.writing.loop import Bad, Fair, Good, Kind, Outcome, ask_until_good
from perse.writing.writer import Writer

log = logging.getLogger(__name__)

MAX_NEW_TOKENS = 4096
"""KGDS, appendix D.1; so is the temperature, 0."""

TEMPLATE = "kgds_summary.jinja"


class Fault(StrEnum):
    """Problems of a summary that can be read."""

    NO_SUCH_PARAGRAPH = "no_such_paragraph"
    ODD_TAG = "odd_tag"
    """What was extracted names no paragraph, as "Paragraphs 4-6" does."""


def generate(
    writer: Writer,
    benchmark: Benchmark,
    run: Path,
    *,
    patterns: Iterable[Pattern] = PATTERNS,
    paradigms: Iterable[Paradigm] = PARADIGMS,
    max_new_tokens: int = MAX_NEW_TOKENS,
    temperature: float = 0.0,
    tries: int = 3,
    seed: int = 0,
    on_progress: OnPart = unseen_part,
) -> Path:
    """Write the summaries that `run` does not have yet; those that the engine failed at are left out, to be asked for again.

    Raises:
        RunMismatch: the folder was begun by another model, of another benchmark or with other settings.
        EngineLost: the engine is gone for good, or failed at everything.
        BadInput: a server that cannot be asked, or a context that the answer alone would fill.
    """
    wanted = [
        (pattern, paradigm) for pattern in PATTERNS if pattern in patterns for paradigm in PARADIGMS if paradigm in paradigms
    ]
    sampling = Sampling(temperature, max_new_tokens)
    identity = {
        "kind": "kgds-generate",
        "benchmark": benchmark.digest,
        "writer": {**writer.identity, "context": writer.context},
        "prompts": _form(max_new_tokens),
        "sampling": {"temperature": temperature, "max_new_tokens": max_new_tokens},
        "tries": tries,
        "seed": seed,
    }
    _warn_of_few_paragraphs(benchmark, patterns, max_new_tokens)
    with RunLog(run, identity, lines=SUMMARIES) as runlog, AnswerCache(run / ANSWERS) as cache:
        known = read_summaries(run) if runlog.read() else {}
        for pattern, paradigm in wanted:
            have = known.get((pattern, paradigm), {})
            samples = {str(number): sample for number, sample in benchmark.samples.items() if number not in have}
            told = partial(on_progress, f"{pattern} {paradigm}")
            before, total = len(benchmark.samples) - len(samples), len(benchmark.samples)
            told(before, total)
            asking = _Asking(writer, cache, sampling, tries, seed)
            outcomes = asking.ask(samples, pattern, paradigm, partial(_after, told, before, total)) if samples else {}
            lines = [
                _summary(int(name), pattern, paradigm, writer, outcome)
                for name, outcome in outcomes.items()
                if outcome.kind != Kind.ENGINE
            ]
            runlog.append(summary.line for summary in lines)
    return run


def _after(told: OnProgress, before: int, total: int, done: int, _of: int) -> None:
    """Report the progress of a part of the work."""
    told(before + done, total)


def _form(max_new_tokens: int) -> str:
    """A digest of the prompts and the form of the answers."""
    forms = [
        schema(pattern, reflects=reflects, max_new_tokens=max_new_tokens) for pattern in PATTERNS for reflects in (False, True)
    ]
    return hashlib.sha256((source(TEMPLATE) + json.dumps(forms)).encode()).hexdigest()


def _warn_of_few_paragraphs(benchmark: Benchmark, patterns: Iterable[Pattern], max_new_tokens: int) -> None:
    most = schema("ebs-aos", reflects=True, max_new_tokens=max_new_tokens)["properties"][EXTRACTIVE]["maxItems"]
    longest = max(len(sample.article) for sample in benchmark.samples.values())
    if "ebs-aos" in patterns and most < longest:
        log.warning(
            "at %d new tokens a model that is held to a schema can choose at most %d paragraphs, and an article has %d; "
            "raise --max-new-tokens if that is too few",
            max_new_tokens,
            most,
            longest,
        )


class _Asking:
    """Asks one model for the summaries of some samples."""

    def __init__(self, writer: Writer, cache: AnswerCache, sampling: Sampling, tries: int, seed: int) -> None:
        self.writer, self.cache, self.sampling, self.tries, self.seed = writer, cache, sampling, tries, seed

    def ask(
        self, samples: Mapping[str, Sample], pattern: Pattern, paradigm: Paradigm, told: OnProgress
    ) -> dict[str, Outcome[Content]]:
        """Outcomes by name of sample. A reflection begins with the structured answer, which is known by then or asked for first."""
        wording: Any = macros(TEMPLATE)
        first = {name: prompt(self.writer, sample, pattern) for name, sample in samples.items()}
        reflects = paradigm == "reflection"
        structured = self._ask(first, samples, pattern, reflects=False, on_progress=unseen if reflects else told)
        if not reflects:
            return structured
        turns: dict[str, str | Turns] = {
            name: (first[name], self.writer.neutralise(outcome.value.answer), wording.reflect(pattern))
            for name, outcome in structured.items()
            if outcome.value is not None
        }
        failed, total = len(structured) - len(turns), len(structured)  # without an answer there is no reflection
        told(failed, total)
        after = partial(_after, told, failed, total)
        reflected = self._ask(turns, samples, pattern, reflects=True, on_progress=after) if turns else {}
        return {name: reflected.get(name, replace(outcome, tokens=None)) for name, outcome in structured.items()}

    def _ask(
        self,
        messages: Mapping[str, str | Turns],
        samples: Mapping[str, Sample],
        pattern: Pattern,
        *,
        reflects: bool,
        on_progress: OnProgress,
    ) -> dict[str, Outcome[Content]]:
        def check(name: str, answer: str) -> Good[Content] | Fair[Content] | Bad:
            return checked(samples[name], answer, pattern)

        wording: Any = macros(TEMPLATE)
        form = schema(pattern, reflects=reflects, max_new_tokens=self.sampling.max_new_tokens)
        return ask_until_good(
            self.writer,
            messages,
            check,
            cache=self.cache,
            again=wording.again,
            sampling=replace(self.sampling, schema=form),
            seed=self.seed,
            purpose=f"kgds {pattern} {'reflection' if reflects else 'structured'}",
            tries=self.tries,
            on_progress=on_progress,
        )


def prompt(writer: Writer, sample: Sample, pattern: Pattern) -> str:
    """The structured prompt, every text of the sample made safe: one line each, and no number of a paragraph that is not ours."""

    def safe(text: str) -> str:
        return " ".join(re.sub(r"<(?=/?\s*Paragraph_)", "< ", writer.neutralise(text), flags=re.IGNORECASE).split())

    article = [safe(paragraph.text) for paragraph in sample.article]
    # A name begins a line, as our headings do.
    discussion = [(safe(turn.participant).lstrip("# ") or "?", safe(turn.utterance)) for turn in sample.discussion]
    wording: Any = macros(TEMPLATE)
    asked: str = wording.ask(pattern, article, discussion)
    return asked


def checked(sample: Sample, answer: str, pattern: Pattern) -> Good[Content] | Fair[Content] | Bad:
    """Judges an answer. One that cites missing paragraphs, or names none, is usable without these, but is asked for again."""
    try:
        content = read_content(answer, pattern)
    except ValueError as error:
        return Bad(Kind.BAD_JSON, f"{error}.")
    strange = [number for number in content.paragraphs or () if not 1 <= number <= len(sample.article)]
    if content.odd:
        reason = f"{json.dumps(content.odd[0], ensure_ascii=False)[:60]} names no paragraph; give each one by itself, by its number in the article."
        return Fair(content, Fault.ODD_TAG, reason, rank=len(strange) + len(content.odd))
    if strange:
        reason = (
            f"The article has paragraphs 1 to {len(sample.article)}; there is no paragraph {', '.join(map(str, strange[:10]))}."
        )
        return Fair(content, Fault.NO_SUCH_PARAGRAPH, reason, rank=len(strange))
    return Good(content)


def _summary(number: int, pattern: Pattern, paradigm: Paradigm, writer: Writer, outcome: Outcome[Content]) -> Summary:
    content = outcome.value
    model = "+".join(filter(None, (writer.identity["name"], writer.identity["adapter"])))
    tries = tuple(str(attempt.kind) for attempt in outcome.attempts)
    if content is None:
        return Summary(
            sample=number,
            pattern=pattern,
            paradigm=paradigm,
            model=model,
            status=str(outcome.kind),
            error=outcome.reason,
            tries=tries,
            tokens=outcome.tokens,
        )
    return Summary(
        sample=number,
        pattern=pattern,
        paradigm=paradigm,
        model=model,
        paragraphs=content.paragraphs,
        odd=content.odd,
        background=content.background,
        opinions=content.opinions,
        tries=tries,
        tokens=outcome.tokens,
    )
