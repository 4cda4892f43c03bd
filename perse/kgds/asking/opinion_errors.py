"""Why does a summary not cover an opinion? Each opinion that the judge did not find in it is put to the judge again (KGDS, section 4.5).

The answer is one of five types, with the exact probability of each. Unlike in verification, the annotators' marks stay in the opinion:
they show which of its words were vague in the discussion. An opinion whose verification has no answer is not classified.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from perse.errors import BadInput
from perse.files.runlog import RunLog
from perse.judging.judge import Judge
from perse.judging.loop import answer_all
from perse.kgds.benchmark import Benchmark
from perse.kgds.folder import (
    ERRORS,
    GREEDY,
    JUDGEMENTS,
    check_benchmark,
    check_same,
    identity_of,
    opinion_id,
    read_judgements,
    summaries_of,
    verification,
)
from perse.progress import OnProgress, unseen
from perse.questions.claims import OPINION_ERROR
from perse.records import ClaimExample


def detect(
    judge: Judge,
    benchmark: Benchmark,
    run: Path,
    *,
    name: str,
    on_progress: OnProgress = unseen,
) -> Path:
    """Classify every opinion that the verification `name` of `run` found missing; the folder of the answers.

    Raises:
        BadInput: nothing was verified under that name, or a summary has changed since.
        RunMismatch: the folder was begun by another judge or with another benchmark.
        EngineLost: the engine is gone for good.
    """
    verified = verification(run, name)
    claims = list(uncovered(benchmark, run, name))
    identity = {"kind": "kgds-errors", **identity_of(judge, benchmark, OPINION_ERROR)}
    with RunLog(verified / ERRORS, identity, lines=JUDGEMENTS) as log:
        answer_all(judge, [(OPINION_ERROR, claims)], log, settings=GREEDY, on_progress=on_progress)
    return verified / ERRORS


def uncovered(benchmark: Benchmark, run: Path, name: str) -> Iterator[ClaimExample]:
    """The opinions that a summary does not state, according to the judge, with that summary's opinions.

    Raises:
        BadInput: nothing was verified under that name, with another benchmark, or a summary has changed since.
    """
    verified = verification(run, name)
    if not (verified / JUDGEMENTS).exists():
        raise BadInput(f"{verified} holds no verification; run `perse kgds verify` first, or give its --name")
    check_benchmark(verified, benchmark)
    judgements = read_judgements(verified / JUDGEMENTS)
    for summaries in summaries_of(run, benchmark).values():
        check_same(verified, list(summaries.values()))
        for summary in summaries.values():
            for number, opinion in enumerate(benchmark.samples[summary.sample].opinions, start=1):
                key = opinion_id(summary.place, number)
                if key in judgements and judgements[key].label == "no":
                    yield ClaimExample(id=key, reviewer_id=summary.place, text=str(summary.opinions), claim=opinion)
