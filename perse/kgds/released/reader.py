"""The outcomes in the layout that the authors of KGDS released: whoever downloads their files gets the tables of the paper.

    outputs/paradigms/PATTERN/PROMPT/MODEL/N.*result.json              sample N's summary
    outputs/verification/fact/abs-aos/PROMPT/MODEL/K.*abs-N_*.json     one file a paragraph, a list with one conclusion a fact
    outputs/verification/opinion/PATTERN/PROMPT/MODEL/K.*aos-N_*.json  one file an opinion
    outputs/detection/opinion/PATTERN/PROMPT/MODEL/K.*result.json      one file an opinion that is not covered

Files say by their order which fact or opinion they are about: K is compared as a number, so that 10 comes after 9. What was
written by a program and does not fit is refused; what was written by the summarizing model may fail, and then scores 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from perse.errors import BadInput
from perse.formats.json_text import parsed, read_json
from perse.kgds.asking.reading import EXTRACTIVE, paragraph_number
from perse.kgds.benchmark import PARADIGMS, PATTERNS, Benchmark, Paradigm, Pattern
from perse.kgds.outcomes import Outcome, Outcomes
from perse.kgds.released.errors import with_errors
from perse.kgds.released.files import AGAIN, by_sample, check_sample, numbered

PROMPTS: Mapping[Paradigm, str] = MappingProxyType({"structured": "structured-prompt", "reflection": "self-reflection"})
COVERED = "knowable"
"""The one conclusion that counts as covered."""


def is_released(root: Path) -> bool:
    """Whether `root` is the authors' `outputs`, or the folder that holds it."""
    return _outputs(root) is not None


def read_released(root: Path, benchmark: Benchmark, *, models: Sequence[str] | None = None) -> list[Outcomes]:
    """All models under `root`, by name, each under the patterns and prompts that it has.

    The samples are those of the summaries, or, where only verifications are there, of these. A part that the model does not have is
    None, with a note.

    Args:
        root: `outputs`, or the folder that holds it.
        benchmark: the one that they were made from.
        models: names of folders; all by default.
    Raises:
        BadInput: no such layout or model, or a file that does not fit; the message names file and sample.
    """
    outputs = _outputs(root)
    if outputs is None:
        raise BadInput(f"{root} is not the authors' release; expected `outputs` with paradigms/, verification/ and detection/")
    found = {
        (folder.name, pattern, paradigm)
        for pattern in PATTERNS
        for paradigm in PARADIGMS
        for part in _parts(outputs, pattern, paradigm=paradigm)
        if part.is_dir()
        for folder in part.iterdir()
        if folder.is_dir()
    }
    names = sorted({model for model, _, _ in found})
    if unknown := sorted(set(models or ()) - set(names)):
        raise BadInput(f"{outputs} has no model '{unknown[0]}'; it has {', '.join(names) or 'none'}")
    return [
        _read_model(outputs, benchmark, model=model, pattern=pattern, paradigm=paradigm)
        for model in names
        for pattern in PATTERNS
        for paradigm in PARADIGMS
        if (model, pattern, paradigm) in found and (models is None or model in models)
    ]


def _outputs(root: Path) -> Path | None:
    for folder in (root, root / "outputs"):
        below = (_parts(folder, pattern, paradigm=paradigm) for pattern in PATTERNS for paradigm in PARADIGMS)
        if any(part.is_dir() for parts in below for part in parts):
            return folder
    return None


def _parts(outputs: Path, pattern: Pattern, *, paradigm: Paradigm) -> tuple[Path, Path, Path, Path]:
    """Folders of models: summaries, verified facts, verified opinions, detected errors."""
    below = Path(pattern, PROMPTS[paradigm])
    return (
        outputs / "paradigms" / below,
        outputs / "verification" / "fact" / below,
        outputs / "verification" / "opinion" / below,
        outputs / "detection" / "opinion" / below,
    )


def _read_model(outputs: Path, benchmark: Benchmark, *, model: str, pattern: Pattern, paradigm: Paradigm) -> Outcomes:
    summarized, of_facts, of_opinions, of_errors = (part / model for part in _parts(outputs, pattern, paradigm=paradigm))
    notes = [
        f"there is no {folder.relative_to(outputs)}"
        for folder in (summarized, *([of_facts] if pattern == "abs-aos" else []), of_opinions, of_errors)
        if not folder.is_dir()
    ]
    summaries = _summaries(summarized, benchmark, pattern=pattern) if summarized.is_dir() else None
    facts = _facts(of_facts, benchmark) if pattern == "abs-aos" and of_facts.is_dir() else None
    opinions = _opinions(of_opinions, benchmark) if of_opinions.is_dir() else None

    samples = set(facts or ()) | set(opinions or ()) if summaries is None else set(summaries)
    outcomes: dict[int, Outcome] = {}
    for number in sorted(samples):
        outcome = summaries[number] if summaries is not None else Outcome()
        if outcome.failed is None:
            outcome = Outcome(
                cited=outcome.cited,
                facts=None if facts is None else facts.get(number),
                opinions=None if opinions is None else opinions.get(number),
            )
        outcomes[number] = outcome
    if of_errors.is_dir():
        outcomes, more = with_errors(of_errors, benchmark, outcomes=outcomes)
        notes += more
    source = next(folder for folder in (summarized, of_facts, of_opinions, of_errors) if folder.is_dir())
    return Outcomes(model, pattern, paradigm, outcomes, str(source), tuple(notes))


def _summaries(folder: Path, benchmark: Benchmark, *, pattern: Pattern) -> dict[int, Outcome]:
    found: dict[int, Outcome] = {}
    for number, path in numbered(folder, "*result.json"):
        check_sample(number, benchmark, path=path)
        if number in found:
            raise BadInput(f"{path}: sample {number} has another summary in the same folder; keep one of them")
        found[number] = _summary(path, pattern=pattern)
    return found


def _summary(path: Path, *, pattern: Pattern) -> Outcome:
    """Only the extracted paragraphs are looked at: the rest of a summary is what the verification speaks about."""
    try:
        cited = _cited(path.read_bytes(), pattern)
    except ValueError as error:
        return Outcome(cited=frozenset() if pattern == "ebs-aos" else None, failed=f"the model's answer {error}")
    return Outcome(cited=cited)


def _cited(answer: bytes, pattern: Pattern) -> frozenset[int] | None:
    """The paragraphs that an answer extracts; None: it is of a pattern that extracts none.

    Raises:
        ValueError: it cannot be read; the message says what it is or does instead.
    """
    try:
        summary: Any = parsed(answer)
    except ValueError:
        raise ValueError("is not JSON") from None
    if not isinstance(summary, dict):
        raise ValueError("is no JSON object")
    if pattern == "abs-aos":
        return None
    tags = summary.get(EXTRACTIVE)
    if not isinstance(tags, list):
        raise ValueError(f"has no list {EXTRACTIVE}")
    cited = set()
    for tag in tags:
        number = paragraph_number(tag)
        if number is None:
            what = f"a {type(tag).__name__}" if isinstance(tag, list | dict) else json.dumps(tag)[:60]
            raise ValueError(f"extracts {what}, which names no paragraph")
        cited.add(number)
    return frozenset(cited)


def _facts(folder: Path, benchmark: Benchmark) -> dict[int, tuple[bool, ...]]:
    found = {}
    for number, paths in by_sample(folder, "abs-", benchmark=benchmark).items():
        sample = benchmark.samples[number]
        parts = [part for part in (*sample.supporting_facts, *sample.nonsupporting_facts) if part.facts]
        if len(paths) < len(parts):
            first = parts[len(paths)]
            raise BadInput(
                f"{folder}: sample {number} has {len(paths)} files for {len(parts)} paragraphs with facts; in their order the first "
                f"without a file is paragraph {first.index}, whose first fact is '{first.facts[0].text}'"
            )
        if len(paths) > len(parts):
            raise BadInput(
                f"{paths[len(parts)]}: sample {number} has {len(paths)} files for {len(parts)} paragraphs with facts; expected one each"
            )
        covered: list[bool] = []
        for path, part in zip(paths, parts, strict=True):
            entries = read_json(path, remedy=AGAIN)
            where = f"{path}: sample {number}, paragraph {part.index}"
            if not isinstance(entries, list):
                raise BadInput(f"{where}: found {type(entries).__name__}, expected a list with one object for each fact")
            if len(entries) < len(part.facts):
                at = len(entries)
                raise BadInput(
                    f"{where}: {at} facts are verified of {len(part.facts)}; the first without a verification is fact {at + 1}, "
                    f"'{part.facts[at].text}'"
                )
            if len(entries) > len(part.facts):
                raise BadInput(f"{where}: {len(entries)} facts are verified, but the benchmark has {len(part.facts)}")
            covered += [_covered(entry, where=f"{where}, fact {at}") for at, entry in enumerate(entries, start=1)]
        found[number] = tuple(covered)
    return found


def _opinions(folder: Path, benchmark: Benchmark) -> dict[int, tuple[bool, ...]]:
    found = {}
    for number, paths in by_sample(folder, "aos-", benchmark=benchmark).items():
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
        found[number] = tuple(_covered(read_json(path, remedy=AGAIN), where=f"{path}: sample {number}") for path in paths)
    return found


def _covered(entry: object, *, where: str) -> bool:
    if not isinstance(entry, dict) or "Inference_Conclusion" not in entry:
        raise BadInput(f"{where}: expected an object with Inference_Conclusion, found {str(entry)[:80]}")
    return bool(entry["Inference_Conclusion"] == COVERED)
