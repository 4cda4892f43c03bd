"""A study's folder: what was asked for, its arms, and what was found, so that the same command goes on after a kill.

OUT/manifest.json   the command, the data's digest, judge and settings; another study is refused
OUT/arms.jsonl      a line for each arm that is finished
OUT/arms/NAME       the arms, run folders
OUT/trained/NAME    judges trained for the study, if any
OUT/study.json      the result (`perse.results.result.Result`); OUT/table.md its tables
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from perse.batch.judged_by import answers_digest
from perse.batch.local import trained_aspects
from perse.engines.kind import Hardware, portable
from perse.errors import BadInput
from perse.files.own_files import write_own
from perse.files.runlog import RunLog, file_digest
from perse.formats.plain_files import own_bytes
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.loading import portable_name
from perse.judging.trained import own_question
from perse.progress import OnPart, unseen_part
from perse.questions import Question, question_for, why_no_truth
from perse.records import Split
from perse.results.markdown import markdown
from perse.results.result import Result
from perse.studies.frame.arms import Answers, Arm, LoadJudge, Source, ask_arms, cautions
from perse.studies.frame.summarizing import with_reach

RESULT = "study.json"
TABLE = "table.md"
FINISHED = "arms.jsonl"

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Asking:
    """What every study that judges is given."""

    examples: Path
    """A data set folder, or a file of exported examples."""
    judge: str | None = None
    """As on the command line; None where the study trains its own."""
    split: Split = "valid"
    fold: int | None = None
    question: str | None = None
    """None: the usual one for the examples."""
    limit: int | None = None
    """Ask a seeded sample of so many examples."""
    settings: JudgeSettings = field(default_factory=JudgeSettings)
    """`settings.seed` also seeds the sample, the resamples and what a study draws."""
    dtype: str = "bfloat16"
    context: int | None = None
    tokenizer: str | None = None
    concurrency: int | None = None
    resamples: int = 1000
    """Bootstrap resamples of the reviewers."""

    def open(self) -> Source:
        """The examples, in whatever view; of pairs as the judge was trained, where that is known."""
        source = Source.open(self.examples, split=self.split, fold=self.fold, limit=self.limit, seed=self.settings.seed)
        return source.seen(trained_aspects(self.judge) or "all") if self.judge else source

    def ask(self, source: Source) -> Question:
        """The question.

        Raises:
            BadInput: one that does not fit the examples, or whose answers are on another scale than the true ones.
        """
        examples = source.shown().examples
        own = own_question(self.judge) if self.judge and self.question is None else None
        question = question_for(examples, self.question, own=own)
        if examples and (why := why_no_truth(question.name, type(examples[0]))):
            raise BadInput(why)
        return question

    def load(self, judge: str) -> Judge:
        """The judge of this name."""
        loaded = Judge.load(
            judge,
            dtype=self.dtype,
            context=self.context,
            tokenizer=self.tokenizer,
            hardware=Hardware(concurrency=self.concurrency),
        )
        if loaded.without_distributions:
            log.warning("%s", loaded.without_distributions)
        return loaded

    def judge_name(self) -> str:
        """The judge that was given.

        Raises:
            BadInput: none was.
        """
        if self.judge is None:
            raise BadInput("the study has no judge; name one with --judge")
        return self.judge


@dataclass(frozen=True)
class StudyFolder:
    """An open study: asks arms and writes the result."""

    out: Path
    log: RunLog
    load: LoadJudge
    on_progress: OnPart
    cautions: list[str] = field(default_factory=list)
    """Of the arms that were asked (`arms.cautions`); the result's last notes."""

    def ask(self, arms: Sequence[Arm]) -> dict[str, Answers]:
        """The judgements of each arm by id; only what has none yet is asked (see `ask_arms`)."""
        answers = ask_arms(arms, self.out, load=self.load, on_progress=self.on_progress)
        known = [row.get("arm") for row in self.log.read()]  # what is no arm of ours says nothing
        for arm in arms:
            if arm.name not in known:
                statuses = Counter(str(judgement.status) for judgement in answers[arm.name].values())
                line = {"arm": arm.name, "judge": arm.judge, "question": arm.question.name, "statuses": dict(statuses)}
                self.log.append([json.dumps(line) + "\n"])
        self.cautions.extend(cautions(arms, self.out))
        return answers

    def finish(self, result: Result) -> Result:
        """Write the result, and give it back."""
        told = with_reach(result.model_copy(update={"notes": (*result.notes, *self.cautions)}))
        _write(told, self.out)
        return told


@contextmanager
def opened(
    out: Path,
    study: str,
    asking: Asking,
    *,
    source: Source,
    options: Mapping[str, Any],
    question: Question | None = None,
    load: LoadJudge | None = None,
    on_progress: OnPart = unseen_part,
) -> Iterator[StudyFolder]:
    """The study's folder, locked while it is open.

    Args:
        options: what the study varies; JSON-able. With `asking` and the data's digest it is the study's identity.
        question: what is asked, where nobody named it: so that a study goes on by its name, too, when the judge's own is not known any more.
        load: gives the judge of a name; by default as `asking` says.
    Raises:
        BadInput: the folder cannot be made.
        RunMismatch: it holds another study, or this one of other data or with other settings.
    """
    asked = {key: value for key, value in asdict(asking).items() if key not in ("examples", "concurrency")}
    asked |= {
        "judge": asking.judge and portable_name(asking.judge),
        "tokenizer": asking.tokenizer and portable(asking.tokenizer),
        "question": question.name if question else asking.question,
    }
    identity = {"kind": "study", "study": study, **asked, "options": dict(options), "data_digest": source.digest}
    context = {"examples": str(asking.examples.resolve())}
    with RunLog(out, identity, lines=FINISHED, context=context) as log:
        yield StudyFolder(out, log, load or asking.load, on_progress)


def keep(result: Result, out: Path, *, sources: Mapping[str, Path], options: Mapping[str, Any]) -> None:
    """Write what a study of finished work found, for which nobody was asked, as a study's folder.

    Args:
        sources: the files, or folders of scoring runs, that it was read from, by name; with `options` their digests are the study's identity.
    Raises:
        BadInput: the folder cannot be made.
        RunMismatch: it holds something else.
    """
    digests = {name: answers_digest(path) if path.is_dir() else file_digest(path) for name, path in sources.items()}
    identity = {"kind": "study", "study": result.name, "options": dict(options), "sources": digests}
    places = {name: str(path.resolve()) for name, path in sources.items()}
    with RunLog(out, identity, lines=FINISHED, context={"sources": places}):
        _write(result, out)


def _write(result: Result, out: Path) -> None:
    """Each file whole or not at all; study.json comes last and marks the end."""
    write_own(out / TABLE, markdown(result))
    write_own(out / RESULT, result.model_dump_json(indent=2) + "\n")


def read_study(folder: Path) -> Result:
    """A finished study's result.

    Raises:
        BadInput: there is none, or it is damaged.
    """
    from pydantic import ValidationError

    from perse.records import explain

    path = folder / RESULT
    try:
        return Result.model_validate_json(own_bytes(path))
    except OSError:
        raise BadInput(f"{folder} holds no finished study: it has no {RESULT}; run the study's command to its end") from None
    except ValidationError as error:
        raise BadInput(f"{path} is no study result, {explain(error)}; run the study's command again") from None
