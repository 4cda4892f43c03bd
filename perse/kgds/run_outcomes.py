"""The outcomes of a run folder of ours: its summaries, and what a judge said of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from perse.errors import BadInput
from perse.files.runlog import read_manifest
from perse.formats.json_text import shortened
from perse.judgement import Judgement, Status
from perse.kgds.benchmark import Benchmark, Paradigm, Pattern, Sample
from perse.kgds.folder import (
    ERRORS,
    FEEDBACK,
    JUDGEMENTS,
    SECOND_TURN,
    SUMMARIES,
    VERIFIED,
    Summary,
    check_benchmark,
    check_same,
    fact_id,
    judge_of,
    opinion_id,
    read_judgements,
    summaries_of,
    verification,
)
from perse.kgds.outcomes import NUMBERED, Asked, Outcome, Outcomes, tag

KINDS = ("fact", "opinion")
"""Of questions about a summary."""


def read_outcomes(run: Path, benchmark: Benchmark, *, name: str = VERIFIED) -> list[Outcomes]:
    """The outcomes of a run's summaries, by pattern and paradigm; verified under `name`, if they were.

    Raises:
        BadInput: a summary of a sample that the benchmark does not have, a verification that is not finished, is damaged or of other
            texts.
    """
    folder = verification(run, name)
    check_benchmark(folder, benchmark)
    judgements = _answers(folder, ("yes", "no"))
    errors = _answers(folder / ERRORS, tuple(NUMBERED))
    found = []
    for (pattern, paradigm), summaries in summaries_of(run, benchmark).items():
        check_same(folder, list(summaries.values()))
        models = sorted({summary.model for summary in summaries.values()})
        if len(models) > 1:
            raise BadInput(f"{run / SUMMARIES} has summaries by {' and '.join(models)}; give each model a folder of its own")
        silent = _silent(judgements, f"{pattern}/{paradigm}/")
        outcomes = {
            number: _outcome(benchmark.samples[number], summary, judgements, errors, folder, silent=silent)
            for number, summary in summaries.items()
        }
        written = [summary.tokens for summary in summaries.values() if summary.tokens is not None]
        asked = (
            *([Asked.of_tokens("summaries", models[0], written)] if written else []),
            *_asked(run, folder, judgements, errors, pattern=pattern, paradigm=paradigm),
        )
        notes = tuple(f"the judge answered none of {count} questions about {kind}s" for kind, count in silent.items())
        judge = judge_of(folder)
        way = _facts_asked(folder) if judge and pattern == "abs-aos" else None
        found.append(
            Outcomes(models[0], pattern, paradigm, outcomes, str(run), notes, verified_by=judge, facts_asked=way, asked=asked)
        )
    return found


def _answers(folder: Path, labels: tuple[str, ...]) -> dict[str, Judgement]:
    """The judgements of a folder, whose labels must be of the question's."""
    path = folder / JUDGEMENTS
    judgements = read_judgements(path)
    for name, judgement in judgements.items():
        if judgement.label is not None and judgement.label not in labels:
            raise BadInput(
                f"{path}: the answer {name} is {shortened(judgement.label)}, expected one of {', '.join(labels)}; remove its line and "
                "give the same command again"
            )
    return judgements


def _asked(
    run: Path,
    folder: Path,
    judgements: Mapping[str, Judgement],
    errors: Mapping[str, Judgement],
    *,
    pattern: Pattern,
    paradigm: Paradigm,
) -> Iterator[Asked]:
    """What was asked about the summaries of a pattern and paradigm, and what it took."""
    below = f"{pattern}/{paradigm}/"
    judge = judge_of(folder) or "?"
    for kind in KINDS:
        if of_kind := _of_kind(judgements, below, kind):
            yield Asked.of(f"{kind}s", judge, of_kind)
    for feedback in (run / FEEDBACK, run / SECOND_TURN) if (pattern, paradigm) == ("ebs-aos", "structured") else ():
        if said := read_judgements(feedback / JUDGEMENTS):
            yield Asked.of("feedback", judge_of(feedback) or "?", list(said.values()))
    if of_errors := [one for name, one in errors.items() if name.startswith(below)]:
        yield Asked.of("errors", judge_of(folder / ERRORS) or "?", of_errors)


def _of_kind(judgements: Mapping[str, Judgement], below: str, kind: str) -> list[Judgement]:
    return [one for name, one in judgements.items() if name.startswith(below) and name.split("/")[3:4] == [kind]]


def _silent(judgements: Mapping[str, Judgement], below: str) -> dict[str, int]:
    """The kinds of questions of which the judge answered none, and how many it was asked: 0 there would be the summaries'."""
    asked = {kind: _of_kind(judgements, below, kind) for kind in KINDS}
    return {kind: len(found) for kind, found in asked.items() if found and all(one.status is not Status.OK for one in found)}


def _facts_asked(folder: Path) -> str:
    facts = read_manifest(folder).get("run", {}).get("facts")
    return "in lists" if facts == "paragraph" else "one by one"


def _outcome(
    sample: Sample,
    summary: Summary,
    judgements: Mapping[str, Judgement],
    errors: Mapping[str, Judgement],
    folder: Path,
    *,
    silent: Collection[str],
) -> Outcome:
    """`silent`: as `_silent`; what they ask about is not known."""
    facts = [fact_id(summary.place, fact.paragraph, fact.at) for fact in sample.facts] if summary.pattern == "abs-aos" else []
    opinions = [opinion_id(summary.place, number) for number in range(1, len(sample.opinions) + 1)]
    cited = frozenset(summary.paragraphs or ()) if summary.pattern == "ebs-aos" else None
    tags = None if cited is None else frozenset({*map(tag, cited), *summary.odd})
    if summary.status != "ok":
        covered = (False,) * len(opinions)
        return Outcome(cited, facts=(False,) * len(facts) or None, opinions=covered, failed=summary.error or summary.status)
    if "fact" in silent:
        facts = []
    if "opinion" in silent:
        opinions = []
    if not any(key in judgements for key in (*facts, *opinions)):
        return Outcome(cited, tags, len(summary.odd))
    if missing := next((key for key in (*facts, *opinions) if key not in judgements), None):
        raise BadInput(
            f"{folder} has no answer about {_words(missing)} yet; give the same `perse kgds verify` again to finish it"
        )
    asked = [judgements[key] for key in (*facts, *opinions)]
    named = [errors[key] for key in opinions if key in errors and errors[key].label is not None]
    shares = None
    if named and all(error.distribution for error in named):
        shares = {kind: sum((error.distribution or {}).get(label, 0.0) for error in named) for label, kind in NUMBERED.items()}
    return Outcome(
        cited,
        tags,
        len(summary.odd),
        tuple(judgements[key].label == "yes" for key in facts) or None,
        None if "opinion" in silent else tuple(judgements[key].label == "yes" for key in opinions),
        errors=tuple(NUMBERED[str(error.label)] for error in named) if errors and "opinion" not in silent else None,
        error_shares=shares,
        unanswered=sum(judgement.status is not Status.OK for judgement in asked),
    )


def _words(judgement: str) -> str:
    """A judgement's id as a person would say it."""
    pattern, paradigm, sample, kind, *numbers = judgement.split("/")
    which = f"fact {numbers[-1]} of paragraph {numbers[0]}" if kind == "fact" else f"opinion {numbers[0]}"
    return f"{which} of sample {int(sample)} ({pattern} {paradigm})"
