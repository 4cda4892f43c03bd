"""How far can the judge's verification be trusted? It is asked about claims that a text is known to state, or not to state, which needs no annotator.

Facts are asked one by one and again in lists, the same claims about the same texts, so that the two ways are compared on the same items;
opinions one by one. `agreement_pairs` has the labels and what can be wrong with them. The trade-off of free labels: these claims are easier
than those about a summary, which says things half. A judge that fails here cannot be trusted there; one that passes may still fail there.

OUT/manifest.json       the benchmark's digest, judge, seed, limit; another study is refused
OUT/pairs.jsonl         every question with its label
OUT/asked/WAY           judgements.jsonl and timing.jsonl of one way of asking
OUT/asked.jsonl         a line for each way that is finished
OUT/study.json          the result (`perse.results.result.Result`), OUT/table.md its tables
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path

from perse.errors import BadInput
from perse.files.own_files import write_own
from perse.files.runlog import RunLog
from perse.judgement import Judgement
from perse.judging.judge import Judge
from perse.judging.loop import TIMING, read_timing
from perse.kgds.agreement.pairs import Pair, Pairs, draw_pairs, lists
from perse.kgds.agreement.rows import FACTS, LISTED, OPINIONS, Way
from perse.kgds.agreement.tables import agreement_result
from perse.kgds.asking.verify import Questions, ask
from perse.kgds.benchmark import Benchmark
from perse.kgds.folder import JUDGEMENTS, identity_of, read_judgements
from perse.progress import OnPart, unseen_part
from perse.questions.claims import VERIFY_FACT, VERIFY_FACTS, VERIFY_OPINION
from perse.results.markdown import markdown
from perse.results.result import Result
from perse.secrets import redact
from perse.studies.frame.running import RESULT, TABLE

ASKED = "asked"
PAIRS = "pairs.jsonl"


def agreement(
    judge: Judge,
    benchmark: Benchmark,
    out: Path,
    *,
    limit: int | None = 400,
    seed: int = 0,
    resamples: int = 1000,
    on_progress: OnPart = unseen_part,
) -> Result:
    """Ask what has no answer yet, then measure everything; the same call resumes after a kill.

    Args:
        limit: claims of each kind, drawn by seed; each is asked of two texts, and facts in two ways. None: all.
        seed: of the claims that are drawn, of the paragraphs that they are asked of, and of the resamples.
        resamples: of the bootstrap over samples, 100 or more.
    Raises:
        BadInput: a benchmark without a claim that can be asked, or too few resamples.
        RunMismatch: `out` holds another study.
        EngineLost: the engine is gone for good.
    """
    if resamples < 100:
        raise BadInput(f"{resamples} resamples say little about an interval; use 100 or more")
    drawn = draw_pairs(benchmark, limit=limit, seed=seed)
    if not drawn.pairs:
        raise BadInput(
            f"{benchmark.path} has no key fact and no two opinions that can be asked; give a benchmark with annotations"
        )
    lines = "".join(json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in drawn.pairs)
    identity = {
        "kind": "study",
        "study": "kgds-agreement",
        **identity_of(judge, benchmark, VERIFY_FACT, VERIFY_FACTS, VERIFY_OPINION),
        "samples": len(benchmark.samples),
        "limit": limit,
        "seed": seed,
        "pairs_sha256": hashlib.sha256(lines.encode()).hexdigest(),
    }
    with RunLog(out, identity, lines="asked.jsonl", context={"resamples": resamples}) as log:
        write_own(out / PAIRS, lines)
        ways = []
        for name, questions in _questions(drawn).items():
            with RunLog(out / ASKED / name, {"kind": "kgds-agreement", "way": name}, lines=JUDGEMENTS) as own:
                ask(judge, questions, own, on_progress=partial(on_progress, name))
            if name not in {row["way"] for row in log.read()}:
                log.append([json.dumps({"way": name, "asked": questions.number}) + "\n"])
            ways.append(_way(out / ASKED / name, name, drawn))
        result = agreement_result(redact(judge.identity.portable.model), ways, drawn, seed=seed, resamples=resamples)
        write_own(out / TABLE, markdown(result))
        write_own(out / RESULT, result.model_dump_json(indent=2) + "\n")
    return result


def _questions(drawn: Pairs) -> dict[str, Questions]:
    """The questions of each way; a kind without claims is skipped."""
    facts, opinions = drawn.of("fact"), drawn.of("opinion")
    asked = {
        FACTS: Questions(facts=[pair.example for pair in facts]),
        LISTED: Questions(lists=lists(facts)[0]),
        OPINIONS: Questions(opinions=[pair.example for pair in opinions]),
    }
    return {name: questions for name, questions in asked.items() if questions.number}


def _way(folder: Path, name: str, drawn: Pairs) -> Way:
    """The answers and their cost."""
    judgements: Mapping[str, Judgement] = read_judgements(folder / JUDGEMENTS)
    pairs: tuple[Pair, ...] = drawn.of("opinion" if name == OPINIONS else "fact")
    named = lists(pairs)[1] if name == LISTED else {pair.id: pair.id for pair in pairs}
    judged, seconds = read_timing(folder / TIMING)
    return Way(
        name,
        pairs,
        tuple(judgements[named[pair.id]] for pair in pairs),
        seconds=seconds / judged if judged else None,
    )
