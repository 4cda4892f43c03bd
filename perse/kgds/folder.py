"""A KGDS run folder: one model's summaries, and a judge's answers about them.

    RUN/manifest.json            who wrote, from which benchmark, how
    RUN/summaries.jsonl          one summary per line, of a sample under a pattern and paradigm; may come from elsewhere
    RUN/answers.sqlite           everything that the model answered
    RUN/NAME/judgements.jsonl    a verification, "verified" unless named: one judgement for each fact and opinion asked about
    RUN/NAME/asked.json          digest of each summary that was asked about, so that no judgement is taken for another text's
    RUN/NAME/errors/             why opinions are not covered
    RUN/feedback/                whose selection is better; RUN/feedback-second-turn/ where asked in the same conversation

Ids of judgements are PATTERN/PARADIGM/SAMPLE/fact/PARAGRAPH/N and PATTERN/PARADIGM/SAMPLE/opinion/N.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, ValidationError

from perse.answering.base import JudgeSettings
from perse.errors import BadInput
from perse.files.path_names import PathName
from perse.files.runlog import MANIFEST, read_lines, read_manifest, what_it_is
from perse.formats.json_text import read_object, shortened
from perse.judgement import Judgement, Tokens
from perse.judging import loop as judging
from perse.kgds.benchmark import Benchmark, Paradigm, Pattern
from perse.records import Asked, ClaimExample, ClaimsExample, explain

if TYPE_CHECKING:
    from perse.judging.judge import Judge
    from perse.questions import Question
from perse.strict import Strict

SUMMARIES = "summaries.jsonl"
JUDGEMENTS = judging.JUDGEMENTS
ASKED = "asked.json"
ERRORS = "errors"
VERIFIED = "verified"
ANSWERS = "answers.sqlite"
FEEDBACK = "feedback"
SECOND_TURN = "feedback-second-turn"

GREEDY = JudgeSettings(temperature=0)
"""The judge's settings: the likelier label counts."""

Combination = tuple[Pattern, Paradigm]


class Summary(Strict):
    """One summary: `paragraphs` under ebs-aos, `background` under abs-aos, and `opinions`; none of them if `status` is not ok."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sample: int = Field(ge=1)
    pattern: Pattern
    paradigm: Paradigm
    model: str
    status: str = "ok"
    paragraphs: tuple[int, ...] | None = None
    odd: tuple[str, ...] = ()
    """Extracted tags that name no paragraph, such as "Paragraphs 4-6"; they are not in `paragraphs`."""
    background: str | None = None
    opinions: str | None = None
    error: str | None = None
    tries: tuple[str, ...] = ()
    """The outcome of every try."""
    tokens: Tokens | None = None
    """What all tries took; of a reflection without the structured answer before it. None: not known."""

    @property
    def place(self) -> str:
        """The prefix of its judgements' ids. Sorts by sample."""
        return place(self.pattern, self.paradigm, self.sample)

    @property
    def line(self) -> str:
        """Its line of the run's file."""
        return self.model_dump_json(exclude_none=True, exclude=None if self.odd else {"odd"}) + "\n"

    @property
    def digest(self) -> str:
        """Digest of the parts that a judge is shown."""
        return hashlib.sha256(json.dumps([self.background, self.opinions]).encode()).hexdigest()[:16]


def place(pattern: Pattern, paradigm: Paradigm, sample: int) -> str:
    """See `Summary.place`."""
    return f"{pattern}/{paradigm}/{sample:03d}"


def fact_id(where: str, paragraph: int, at: int) -> str:
    """The id of the judgement of a fact."""
    return f"{where}/fact/{paragraph}/{at}"


def opinion_id(where: str, number: int) -> str:
    """The id of the judgement of opinion `number`, from 1."""
    return f"{where}/opinion/{number}"


def read_summaries(run: Path) -> dict[Combination, dict[int, Summary]]:
    """The summaries of a run folder, by pattern and paradigm and by sample.

    Raises:
        BadInput: no summaries, an invalid line, or two summaries of one sample; the message names the line.
    """
    path = run / SUMMARIES
    if not path.exists():
        holds = f"holds {what_it_is(read_manifest(run))}, and" if (run / MANIFEST).is_file() else "has"
        raise BadInput(f"{run} {holds} no {SUMMARIES}; give a folder that `perse kgds generate` wrote, or write that file")
    summaries: dict[Combination, dict[int, Summary]] = {}
    for line, row in enumerate(read_lines(path), start=1):
        try:
            summary = Summary.model_validate(row)
        except ValidationError as error:
            raise BadInput(f"{path}, line {line}: {explain(error)}") from None
        wanted = "paragraphs" if summary.pattern == "ebs-aos" else "background"
        if summary.status == "ok" and (getattr(summary, wanted) is None or not (summary.opinions or "").strip()):
            raise BadInput(f"{path}, line {line}: a summary under {summary.pattern} has '{wanted}' and 'opinions'; give both")
        of_pattern = summaries.setdefault((summary.pattern, summary.paradigm), {})
        if summary.sample in of_pattern:
            raise BadInput(
                f"{path}, line {line}: sample {summary.sample} has a second {summary.pattern} {summary.paradigm} summary; keep one"
            )
        of_pattern[summary.sample] = summary
    if not summaries:
        raise BadInput(f"{path} is empty; run `perse kgds generate` to an end first")
    return {
        key: dict(sorted(summaries[key].items()))
        for key in sorted(summaries, key=lambda combination: (combination[0] != "ebs-aos", combination[1] != "structured"))
    }


def summaries_of(run: Path, benchmark: Benchmark) -> dict[Combination, dict[int, Summary]]:
    """`read_summaries` of a run of this benchmark.

    Raises:
        BadInput: it was made from another file, or summarizes a sample that is not in this one.
    """
    check_benchmark(run, benchmark)
    summaries = read_summaries(run)
    if strange := sorted({number for of_pattern in summaries.values() for number in of_pattern} - set(benchmark.samples)):
        raise BadInput(
            f"{run} has a summary of sample {strange[0]}; {benchmark.path} has {len(benchmark.samples)} samples: give the file that "
            "it was made from"
        )
    return summaries


def check_benchmark(folder: Path, benchmark: Benchmark) -> None:
    """Raises:
    BadInput: the folder's manifest says that it was made from another file.
    """
    if not (folder / MANIFEST).exists():
        return
    made_from = read_manifest(folder).get("run", {}).get("benchmark")
    if made_from not in (None, benchmark.digest):
        raise BadInput(f"{folder} was made from another benchmark than {benchmark.path}; give the file that it was made from")


def verification(run: Path, name: str) -> Path:
    """The folder of the verification `name` of a run.

    Raises:
        BadInput: an invalid name, or that of something else in the run folder.
    """
    return run / PathName(name, what="--name", reserved=(MANIFEST, SUMMARIES, ANSWERS, FEEDBACK, SECOND_TURN))


def judge_of(folder: Path) -> str | None:
    """The name of the judge that a folder's answers are by, with its adapter; None without a manifest.

    Raises:
        BadInput: the manifest is damaged.
    """
    if not (folder / MANIFEST).exists():
        return None
    judge = read_manifest(folder).get("run", {}).get("judge", {})
    names = [judge.get(part) for part in ("model", "adapter")] if isinstance(judge, dict) else [judge]
    if odd := next((name for name in names if not isinstance(name, str | None)), None):
        raise BadInput(f"{folder / MANIFEST}: the judge is named {shortened(odd)}, expected a text; the run must be made again")
    return "+".join(name for name in names if name) or "?"


def read_judgements(path: Path) -> dict[str, Judgement]:
    """The judgements of an append-only file by id; what the engine failed at was asked again, and the later answer counts."""
    return {name: judgement for (_, name), judgement in judging.read_judgements(path).items()}


def read_asked(folder: Path) -> dict[str, str]:
    """The digest of each summary that a verification has asked about, by its place."""
    path = folder / ASKED
    if not path.exists():
        return {}
    remedy = "verify under another --name"
    asked = read_object(path, remedy=remedy)
    for place_of, digest in asked.items():
        if not isinstance(digest, str):
            raise BadInput(f"{path}: '{place_of}' is {shortened(digest)}, expected a digest; {remedy}")
    return asked


def check_same(folder: Path, summaries: Sequence[Summary]) -> None:
    """Compare summaries with those that a verification was of.

    Raises:
        BadInput: one of them has changed since.
    """
    asked = read_asked(folder)
    for summary in summaries:
        if asked.get(summary.place, summary.digest) != summary.digest:
            raise BadInput(
                f"the {summary.pattern} {summary.paradigm} summary of sample {summary.sample} has changed since {folder} was made of it; "
                "verify under another --name"
            )


def identity_of(judge: Judge, benchmark: Benchmark, *questions: Question) -> dict[str, Any]:
    """Identifies a command that asks a judge these questions; the wording by the digest of one prompt each."""
    claim = ClaimExample(id="probe", reviewer_id="probe", text="A text.", claim="A claim.")
    claims = ClaimsExample(id="probe", reviewer_id="probe", text="A text.", claims=("A claim.",))
    probes: dict[type, Asked] = {ClaimExample: claim, ClaimsExample: claims}
    return {
        "benchmark": benchmark.digest,
        "prompts_sha256": {
            question.name: judge.prompt_digest(question, [probes[question.example_type]], GREEDY) for question in questions
        },
        "judge": judge.for_manifest,
    }
