"""The outcomes in the layout that the authors of KGDS released: whoever downloads their files gets the tables of the paper.

Files say by their order which fact or opinion they are about: K is compared as a number, so that 10 comes after 9. What was written by
a program and does not fit is refused, with the one model, pattern and prompt that it belongs to; the others are read. What was written by
the summarizing model may be odd: whatever was verified of it stands, and what cannot be read and was not verified scores 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from perse.errors import BadInput
from perse.formats.json_text import json_kind, read_json, shortened
from perse.kgds.benchmark import Benchmark, Paradigm, Pattern
from perse.kgds.outcomes import Outcome, Outcomes
from perse.kgds.released.errors import with_errors
from perse.kgds.released.files import AGAIN, Grouped, WrongBenchmark, by_sample
from perse.kgds.released.layout import models_of, outputs_of, parts_of, summary_files
from perse.kgds.released.summaries import Extracted, odd_notes, read_extracted

COVERED = "knowable"
"""The one conclusion that counts as covered."""
NOT_COVERED = ("unknowable", "not knowable")


def read_released(
    root: Path, benchmark: Benchmark, *, models: Sequence[str] | None = None, as_published: bool = False
) -> list[Outcomes]:
    """All models under `root`, by name, each under the patterns and prompts that it has.

    The samples are those of the summaries, or, where only verifications are there, of these. A part that the model does not have is
    None, with a note. A model's files that do not fit are refused under the one pattern and prompt: see `Outcomes.refused`.

    Args:
        root: `outputs`, or the folder that holds it.
        benchmark: the one that they were made from.
        models: names of folders; all by default.
        as_published: whether a conclusion that nobody knows means not covered, as to the authors' script; otherwise it is refused.
    Raises:
        BadInput: no such layout or model, or samples that the benchmark does not have.
    """
    outputs = outputs_of(root)
    return [
        _row(outputs, benchmark, model=model, pattern=pattern, paradigm=paradigm, as_published=as_published)
        for model, ways in models_of(outputs, models=models).items()
        for pattern, paradigm in ways
    ]


def _row(
    outputs: Path, benchmark: Benchmark, *, model: str, pattern: Pattern, paradigm: Paradigm, as_published: bool
) -> Outcomes:
    try:
        return _read_model(outputs, benchmark, model=model, pattern=pattern, paradigm=paradigm, as_published=as_published)
    except WrongBenchmark:
        raise
    except BadInput as error:
        return Outcomes(model, pattern, paradigm, {}, str(outputs), refused=str(error))


def _read_model(
    outputs: Path, benchmark: Benchmark, *, model: str, pattern: Pattern, paradigm: Paradigm, as_published: bool
) -> Outcomes:
    summarized, of_facts, of_opinions, of_errors = (part / model for part in parts_of(outputs, pattern, paradigm=paradigm))
    notes = [
        f"there is no {folder.relative_to(outputs)}"
        for folder in (summarized, *([of_facts] if pattern == "abs-aos" else []), of_opinions, of_errors)
        if not folder.is_dir()
    ]
    files = summary_files(outputs, benchmark, model=model, pattern=pattern, paradigm=paradigm)
    extracted = None if files is None else {number: read_extracted(path, pattern) for number, path in files.items()}
    facts: dict[int, tuple[bool, ...]] | None = None
    opinions: dict[int, tuple[bool, ...]] | None = None
    names: Mapping[str, int] = {}
    if pattern == "abs-aos" and of_facts.is_dir():
        grouped = by_sample(of_facts, "abs-", benchmark=benchmark, summarized=files)
        facts = _facts(grouped, of_facts, benchmark, as_published=as_published)
        notes += _in_order(grouped, of_facts.relative_to(outputs))
    if of_opinions.is_dir():
        grouped = by_sample(of_opinions, "aos-", benchmark=benchmark, summarized=files)
        opinions, names = _opinions(grouped, of_opinions, benchmark, as_published=as_published), grouped.names
        notes += _in_order(grouped, of_opinions.relative_to(outputs))

    samples = set(facts or ()) | set(opinions or ()) if extracted is None else set(extracted)
    outcomes = {
        number: _outcome(
            None if extracted is None else extracted[number],
            facts=None if facts is None else facts.get(number),
            opinions=None if opinions is None else opinions.get(number),
        )
        for number in sorted(samples)
    }
    notes += odd_notes(extracted or {}, outcomes)
    if of_errors.is_dir():
        outcomes, more = with_errors(of_errors, benchmark, outcomes=outcomes, names=names)
        notes += more
    source = next(folder for folder in (summarized, of_facts, of_opinions, of_errors) if folder.is_dir())
    return Outcomes(model, pattern, paradigm, outcomes, str(source), tuple(notes))


def _outcome(extracted: Extracted | None, *, facts: tuple[bool, ...] | None, opinions: tuple[bool, ...] | None) -> Outcome:
    """Whatever was verified stands, also where the rest of the summary cannot be read."""
    if extracted is None:
        return Outcome(facts=facts, opinions=opinions)
    failed = extracted.fault if facts is None and opinions is None else None
    return Outcome(extracted.cited, extracted.tags, len(extracted.odd), facts, opinions, failed=failed)


def _in_order(grouped: Grouped, folder: Path) -> list[str]:
    return [f"names in {folder} tell no samples and are matched in order with the summaries"] if grouped.in_order else []


def _facts(grouped: Grouped, folder: Path, benchmark: Benchmark, *, as_published: bool) -> dict[int, tuple[bool, ...]]:
    """As in the authors' script, one file after the other has the conclusions of all facts."""
    found = {}
    for number, paths in grouped.files.items():
        read: list[list[object]] = []
        for path in paths:
            entries = read_json(path, remedy=AGAIN)
            if not isinstance(entries, list):
                raise BadInput(
                    f"{path}: sample {number}: found {json_kind(entries)}, expected a list with one object for each fact"
                )
            read.append(entries)
        _check_facts(number, paths, read, folder, benchmark)
        found[number] = tuple(
            _covered(entry, where=f"{path}: sample {number}, fact {at}", as_published=as_published)
            for path, entries in zip(paths, read, strict=True)
            for at, entry in enumerate(entries, start=1)
        )
    return found


def _check_facts(
    number: int, paths: Sequence[Path], read: Sequence[Sequence[object]], folder: Path, benchmark: Benchmark
) -> None:
    """Refuse verifications that are not as many as the sample's facts; the message names the first that does not fit."""
    sample = benchmark.samples[number]
    if sum(map(len, read)) == len(sample.facts):
        return
    parts = [part for part in (*sample.supporting_facts, *sample.nonsupporting_facts) if part.facts]
    for path, entries, part in zip(paths, read, parts, strict=False):
        where = f"{path}: sample {number}, paragraph {part.index}"
        if len(entries) < len(part.facts):
            at = len(entries)
            raise BadInput(
                f"{where}: {at} facts are verified of {len(part.facts)}; the first without a verification is fact {at + 1}, "
                f"'{part.facts[at].text}'"
            )
        if len(entries) > len(part.facts):
            raise BadInput(f"{where}: {len(entries)} facts are verified, but the benchmark has {len(part.facts)}")
    if len(paths) < len(parts):
        first = parts[len(paths)]
        raise BadInput(
            f"{folder}: sample {number} has {len(paths)} files for {len(parts)} paragraphs with facts; in their order the first "
            f"without a file is paragraph {first.index}, whose first fact is '{first.facts[0].text}'"
        )
    raise BadInput(
        f"{paths[len(parts)]}: sample {number} has {len(paths)} files for {len(parts)} paragraphs with facts; expected one each"
    )


def _opinions(grouped: Grouped, folder: Path, benchmark: Benchmark, *, as_published: bool) -> dict[int, tuple[bool, ...]]:
    found = {}
    for number, paths in grouped.files.items():
        opinions = benchmark.samples[number].opinions
        if len(paths) < len(opinions):
            raise BadInput(
                f"{folder}: sample {number} has {len(paths)} files for {len(opinions)} opinions; in their order the first without a "
                f"file is '{opinions[len(paths)]}'"
            )
        if len(paths) > len(opinions):
            raise BadInput(
                f"{paths[len(opinions)]}: sample {number} has {len(paths)} files for {len(opinions)} opinions; expected one each"
            )
        found[number] = tuple(
            _covered(read_json(path, remedy=AGAIN), where=f"{path}: sample {number}", as_published=as_published)
            for path in paths
        )
    return found


def _covered(entry: object, *, where: str, as_published: bool) -> bool:
    if not isinstance(entry, dict) or "Inference_Conclusion" not in entry:
        raise BadInput(f"{where}: expected an object with Inference_Conclusion, found {str(entry)[:80]}")
    conclusion = entry["Inference_Conclusion"]
    if conclusion != COVERED and conclusion not in NOT_COVERED and not as_published:
        raise BadInput(
            f'{where}: Inference_Conclusion is {shortened(conclusion)}, expected "{COVERED}" or "{NOT_COVERED[0]}"; correct it, or '
            "give --as-published to have it count as not covered"
        )
    return bool(conclusion == COVERED)
