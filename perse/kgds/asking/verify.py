"""Which facts and opinions does a summary state? Every fact and clear opinion is put to the judge (KGDS, sections 4.4 and 4.5).

Facts are asked about one by one, each with an exact probability and sharing all but itself with the others about that summary; or in a list
for each paragraph, as the paper does. Opinions are asked about one by one. All types of facts are asked about, as in the paper, though only
two count. Every answer is kept the moment it arrives: the same command after a kill asks again only what was in flight.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perse.files.disk import write_whole
from perse.files.runlog import RunLog
from perse.judging.judge import Judge
from perse.judging.loop import answer_all
from perse.kgds.benchmark import Benchmark, FactMode, Sample
from perse.kgds.folder import (
    ASKED,
    GREEDY,
    JUDGEMENTS,
    Summary,
    check_same,
    fact_id,
    identity_of,
    opinion_id,
    read_asked,
    summaries_of,
    verification,
)
from perse.progress import OnProgress, unseen
from perse.questions import Question
from perse.questions.claims import VERIFY_FACT, VERIFY_FACTS, VERIFY_OPINION
from perse.records import Asked, ClaimExample, ClaimsExample


@dataclass(frozen=True)
class Questions:
    """The questions: facts one by one or a paragraph's at a time, and opinions."""

    facts: list[ClaimExample] = field(default_factory=list)
    lists: list[ClaimsExample] = field(default_factory=list)
    opinions: list[ClaimExample] = field(default_factory=list)

    @property
    def number(self) -> int:
        """How many judgements there will be."""
        return len(self.facts) + sum(len(example.claims) for example in self.lists) + len(self.opinions)


def plain_opinion(text: str) -> str:
    """An opinion without the annotators' marks of clarified references."""
    return text.replace("**", "")


def verify(
    judge: Judge,
    benchmark: Benchmark,
    run: Path,
    *,
    name: str,
    facts: FactMode = "single",
    on_progress: OnProgress = unseen,
) -> Path:
    """Ask about every summary of `run` that is not verified yet; the folder of the verification.

    Args:
        name: of the verification: a folder in `run`.
        on_progress: told how many of all judgements there are.
    Raises:
        RunMismatch: the folder was begun by another judge, with another benchmark or with facts asked in the other way.
        BadInput: a summary that changed since it was verified, or of a sample that is not in the benchmark.
        EngineLost: the engine is gone for good.
    """
    folder = verification(run, name)
    found = summaries_of(run, benchmark)
    summaries = [summary for of_pattern in found.values() for summary in of_pattern.values() if summary.status == "ok"]
    check_same(folder, summaries)
    identity = identity_of(judge, benchmark, VERIFY_FACT if facts == "single" else VERIFY_FACTS, VERIFY_OPINION)
    asked = questions(benchmark.samples, summaries, facts)
    with RunLog(folder, {"kind": "kgds-verify", "facts": facts, **identity}, lines=JUDGEMENTS) as log:
        known = read_asked(folder)
        if (told := known | {summary.place: summary.digest for summary in summaries}) != known:
            write_whole(folder / ASKED, json.dumps(told, indent=1) + "\n")
        ask(judge, asked, log, on_progress=on_progress)
    return folder


def questions(samples: Mapping[int, Sample], summaries: Sequence[Summary], facts: FactMode) -> Questions:
    """All questions about these summaries."""
    wanted = Questions()
    for summary in summaries:
        sample = samples[summary.sample]
        wanted.opinions.extend(
            ClaimExample(
                id=opinion_id(summary.place, n),
                reviewer_id=summary.place,
                text=str(summary.opinions),
                claim=plain_opinion(opinion),
            )
            for n, opinion in enumerate(sample.opinions, start=1)
        )
        if summary.background is None:
            continue
        if facts == "single":
            wanted.facts.extend(_each_fact(sample, summary.place, summary.background))
        else:
            wanted.lists.extend(_each_paragraph(sample, summary.place, summary.background))
    return wanted


def ask(judge: Judge, asked: Questions, log: RunLog, *, on_progress: OnProgress) -> None:
    """Ask whatever `log` has no answer to; what the engine failed at is asked again."""
    every: list[tuple[Question, Sequence[Asked]]] = [
        (VERIFY_FACT, asked.facts),
        (VERIFY_OPINION, asked.opinions),
        (VERIFY_FACTS, asked.lists),
    ]
    answer_all(judge, every, log, settings=GREEDY, on_progress=on_progress)


def _each_fact(sample: Sample, where: str, text: str) -> list[ClaimExample]:
    return [
        ClaimExample(id=fact_id(where, fact.paragraph, fact.at), reviewer_id=where, text=text, claim=fact.text)
        for fact in sample.facts
    ]


def _each_paragraph(sample: Sample, where: str, text: str) -> list[ClaimsExample]:
    return [
        ClaimsExample(
            id=f"{where}/fact/{paragraph.index}",
            reviewer_id=where,
            text=text,
            claims=tuple(fact.text for fact in paragraph.facts),
        )
        for paragraph in (*sample.supporting_facts, *sample.nonsupporting_facts)
        if paragraph.facts
    ]
