"""New benchmark samples from drafts: boundary paragraphs out, atomic facts, key facts by two annotators, masking (KGDS, section 4).

    NEW/answers.sqlite     what the writer answered
    NEW/key-facts.csv      the sheet for the annotators
    NEW/masking/           what the judge answered
    NEW/manifest.json      from what, by whom, with which counts
    NEW/benchmark.json     the samples in the authors' format, written last

The build needs people in its middle, so it is one command given twice: it stops at the sheet, and continues once the sheet is filled in.
The folder holds all progress, and every step is recomputed from what was kept: a kill loses only what was in flight.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

import perse
from perse.errors import BadInput
from perse.files.belongings import WAITING, target_of
from perse.files.locking import locked
from perse.files.own_files import refuse_inputs, write_own
from perse.files.runlog import MANIFEST, make_folder, name_and_digest, read_manifest, write_whole
from perse.formats.plain_files import unchanged_while_read
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge
from perse.kgds.benchmark import KEY, MASKED, NON_KEY, NONSUPPORTING, REPEATED, Sample, write_benchmark
from perse.kgds.building.consistency import Consistency, consistency
from perse.kgds.building.decomposing import MAX_NEW_TOKENS, Facts, Place, decompose, repetitions
from perse.kgds.building.drafts import Agreed, agreed, read_drafts
from perse.kgds.building.key_facts import read_sheet, sheet_facts, sheet_text
from perse.kgds.building.masking import conflicts, mask
from perse.progress import OnPart, unseen_part
from perse.writing.cache import AnswerCache
from perse.writing.writer import Writer

ANSWERS, SHEET = WAITING
MASKING = "masking"
BENCHMARK = "benchmark.json"
KIND = "kgds-build"


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """The settings of a build. Raises BadInput for invalid ones."""

    drafts: Path
    out: Path
    max_new_tokens: int = MAX_NEW_TOKENS
    """Longest list of facts of a paragraph, in tokens."""
    tries: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.tries < 1 or self.max_new_tokens < 1:
            raise BadInput(f"tries is {self.tries} and max_new_tokens {self.max_new_tokens}; expected 1 or more of each")


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Masking(_Result):
    """Outcomes of the facts of nonsupporting paragraphs, without repetitions."""

    asked: int
    told: int
    """Also stated by a supporting paragraph: masked."""
    unanswered: dict[Status, int]
    """Without an answer, by status: also masked."""
    in_doubt: tuple[int, ...]
    """Samples without an answered fact: nothing in them counts against a summary."""


class BuildReport(_Result):
    """The progress of a build, and its counts."""

    finished: bool
    """Whether `benchmark.json` is written; if not, the sheet waits for the annotators."""
    samples: int
    paragraphs: Consistency
    """Of the drafts' paragraphs: those not agreed on are boundary paragraphs, and removed."""
    supporting: int
    tries: dict[str, int]
    """The writer's tries, by outcome."""
    facts: int
    sheet: int
    """Rows for the annotators."""
    annotators: tuple[str, ...]
    key_facts: Consistency | None = None
    masking: Masking | None = None
    types: dict[int, int] = {}
    """Facts by type, as they are in the benchmark."""


def build(
    options: BuildOptions, writer: Writer, judge: Callable[[], Judge], *, on_progress: OnPart = unseen_part
) -> BuildReport:
    """Continue a build: to the sheet, or to the end.

    Args:
        judge: loads who masks; not called before the sheet is filled in.
    Raises:
        BadInput: drafts, folder or sheet that cannot be used, a draft without a key fact, or a paragraph that the writer cannot take
            apart.
        RunMismatch: another process builds in this folder, or other facts were masked in it, or by another judge.
        EngineLost: writer or judge are gone; the same command continues.
    """
    refuse_inputs(options.out, [options.drafts])
    with locked(target_of(options.out)):
        return _build(options, writer, judge, on_progress)


def _build(options: BuildOptions, writer: Writer, judge: Callable[[], Judge], on_progress: OnPart) -> BuildReport:
    with unchanged_while_read(options.drafts):
        drafts, paragraphs = agreed(read_drafts(options.drafts), options.drafts)
        sources = {"drafts": name_and_digest(options.drafts)}
    _check_folder(options.out)
    with AnswerCache(options.out / ANSWERS) as cache:
        facts, tries = decompose(
            drafts,
            writer,
            cache,
            max_new_tokens=options.max_new_tokens,
            seed=options.seed,
            tries=options.tries,
            on_progress=partial(on_progress, "taking paragraphs apart"),
        )
    repeated = repetitions(drafts, facts)
    rows = sheet_facts(drafts, facts, repeated)
    sheet = options.out / SHEET
    if not sheet.exists():
        write_whole(sheet, sheet_text(rows))
    report = BuildReport(
        finished=False,
        samples=len(drafts),
        paragraphs=paragraphs,
        supporting=sum(len(one.supporting) for one in drafts),
        tries=dict(sorted(tries.items())),
        facts=sum(map(len, facts.values())),
        sheet=len(rows),
        annotators=tuple(dict.fromkeys(name for one in drafts for name in one.annotators)),
    )
    with unchanged_while_read(sheet):
        answers = read_sheet(sheet, rows)
        sources["sheet"] = name_and_digest(sheet)
    if answers is None:
        return report
    _check_key_facts(drafts, answers, options=options)
    asked = conflicts(drafts, facts, repeated)
    masker = judge()
    masked = mask(masker, asked, options.out / MASKING, seed=options.seed, on_progress=partial(on_progress, "masking facts"))
    types = _types(facts, repeated, answers, masked)
    samples = [_sample(one, facts, types) for one in drafts]
    report = report.model_copy(
        update={
            "finished": True,
            "key_facts": consistency(list(answers.values())),
            "masking": _masking(drafts, masked),
            "types": dict(sorted(Counter(types.values()).items())),
        }
    )
    manifest = json.dumps(_manifest(options, sources, drafts, report, writer, masker), indent=2, ensure_ascii=False) + "\n"
    write_own(options.out / MANIFEST, manifest)
    write_own(options.out / BENCHMARK, write_benchmark(samples))
    return report


def _check_folder(out: Path) -> None:
    """Refuse a folder that is not a build."""
    make_folder(out)
    found = sorted(entry.name for entry in out.iterdir() if not entry.name.startswith("."))
    if MANIFEST in found:
        ours = read_manifest(out).get("kind") == KIND
    else:  # which comes last; before the sheet there are answers alone
        ours = {SHEET, ANSWERS} <= set(found) or set(found) <= {ANSWERS}
    if not ours:
        others = [name for name in found if name != ANSWERS]
        raise BadInput(f"{out} holds {others[0]} and no build; give another --out")


def _check_key_facts(drafts: Sequence[Agreed], answers: Mapping[Place, tuple[bool, bool]], *, options: BuildOptions) -> None:
    """Refuse answers that leave a sample without a key fact, before paying for the masking."""
    with_key = {place[0] for place, said in answers.items() if all(said)}
    if without := [str(one.number) for one in drafts if one.number not in with_key]:
        raise BadInput(
            f"{options.drafts}, draft{'s' * (len(without) > 1)} {', '.join(without)}: the annotators agree on no key fact in "
            f"{options.out / SHEET}, and each sample needs one; have the facts annotated again there, or take such drafts out and "
            "move the sheet away to have a new one filled in"
        )


def _types(
    facts: Facts, repeated: set[Place], answers: Mapping[Place, tuple[bool, bool]], masked: Mapping[Place, Judgement]
) -> dict[Place, int]:
    """The type of every fact, as `perse.kgds.benchmark` numbers them."""
    types = {}
    for (sample, paragraph), listed in facts.items():
        for at in range(1, len(listed) + 1):
            place = (sample, paragraph, at)
            if place in repeated:
                types[place] = REPEATED
            elif place in answers:
                types[place] = KEY if all(answers[place]) else NON_KEY
            else:
                types[place] = NONSUPPORTING if masked[place].label == "no" else MASKED
    return types


def _sample(one: Agreed, facts: Facts, types: Mapping[Place, int]) -> Sample:
    article = [{"index": at, "text": text} for at, text in enumerate(one.article, start=1)]

    def with_facts(paragraph: int) -> dict[str, Any]:
        listed = enumerate(facts[one.number, paragraph], start=1)
        return {
            "index": paragraph,
            "facts": [{"text": fact, "type": types[one.number, paragraph, at]} for at, fact in listed],
        }

    return Sample.model_validate(
        {
            "number": one.number,
            "article": article,
            "discussion": one.draft.discussion,
            "supporting": [article[paragraph - 1] for paragraph in one.supporting],
            "opinions": one.draft.opinions,
            "supporting_facts": [with_facts(paragraph) for paragraph in one.supporting],
            "nonsupporting_facts": [
                with_facts(paragraph) for paragraph in range(1, len(article) + 1) if paragraph not in one.supporting
            ],
        }
    )


def _masking(drafts: Sequence[Agreed], masked: Mapping[Place, Judgement]) -> Masking:
    answered = {place[0] for place, one in masked.items() if one.status is Status.OK}
    return Masking(
        asked=len(masked),
        told=sum(one.label == "yes" for one in masked.values()),
        unanswered=dict(sorted(Counter(one.status for one in masked.values() if one.status is not Status.OK).items())),
        in_doubt=tuple(one.number for one in drafts if one.number in {place[0] for place in masked} - answered),
    )


def _manifest(
    options: BuildOptions,
    sources: Mapping[str, Mapping[str, str]],
    drafts: Sequence[Agreed],
    report: BuildReport,
    writer: Writer,
    judge: Judge,
) -> dict[str, Any]:
    """It does not depend on when or where it was made."""
    return {
        "kind": KIND,
        "perse": perse.__version__,
        "sources": sources,
        "writer": writer.identity,
        "judge": {**asdict(judge.identity.portable), **judge.engine.settings},
        "settings": {"max_new_tokens": options.max_new_tokens, "tries": options.tries, "seed": options.seed},
        "kept": {one.number: list(one.kept) for one in drafts},
        "report": report.model_dump(mode="json"),
    }
