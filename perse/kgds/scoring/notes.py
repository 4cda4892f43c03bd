"""What is said beside the numbers: what is left out, what is not known, and who verified."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from perse.kgds.benchmark import Benchmark
from perse.kgds.outcomes import Outcomes
from perse.kgds.scoring.results import Refused
from perse.kgds.scoring.sides import Side
from perse.kgds.scoring.words import named


def left_out_notes(left_out: Mapping[str, Sequence[int]], benchmark: Benchmark) -> Iterable[str]:
    if left_out:
        total = sum(map(len, left_out.values()))
        reasons = (
            f"{f'{model} lacks a summary, or a verification,' if model else 'nobody has a summary, or no verification,'} of {named(numbers)}"
            for model, numbers in left_out.items()
        )
        yield f"{total} of {len(benchmark.samples)} samples are left out: {'; '.join(reasons)}"


def incomplete_notes(sides: Sequence[Side]) -> Iterable[str]:
    for side in sides:
        scores = side.scores
        background = "key facts" if scores.pattern == "abs-aos" else "extracted paragraphs"
        for metric, what in (("f1", background), ("cao", "opinions")):
            missing = [one.sample for one in scores.samples if metric not in one.values]
            if missing:
                where = "" if len(missing) == len(scores.samples) else f" of {named(missing)}"
                yield f"{scores.model}, {scores.pattern}, {scores.paradigm}: {what}{where} are not known"


def source_notes(outcomes: Sequence[Outcomes]) -> Iterable[str]:
    verified = [one for one in outcomes if _is_verified(one)]
    judges, ways = {one.verified_by for one in verified}, {one.facts_asked for one in verified if one.pattern == "abs-aos"}
    verifiers: dict[str, list[str]] = {}
    for one in verified:
        if (
            len(judges) > 1 or len(ways) < 2 or one.pattern == "abs-aos"
        ):  # where facts are asked about, ways of one judge differ
            models = verifiers.setdefault(_verifier(one, verified), [])
            models += [one.model] if one.model not in models else []
    if len(judges) > 1 or len(ways) > 1:
        told = "; ".join(f"{judge} verified {', '.join(models)}" for judge, models in verifiers.items())
        yield f"values that different judges made, or ways of asking, cannot be compared: {told}"
    elif verified and verified[0].verified_by:
        yield f"verified by {', '.join(verifiers)}"
    yield from [f"{one.model}, {one.pattern}, {one.paradigm}: {note}" for one in outcomes for note in one.notes]


def _is_verified(one: Outcomes) -> bool:
    """Whether a judge's answers are known about any of its summaries: of one that failed nothing is asked."""
    return any(
        outcome.failed is None and (outcome.facts is not None or outcome.opinions is not None)
        for outcome in one.samples.values()
    )


def _verifier(one: Outcomes, outcomes: Sequence[Outcomes]) -> str:
    """The judge, and how it was asked about facts if it was, here or in all else that it verified."""
    judge = one.verified_by or "a judge that is not known"
    ways = {other.facts_asked for other in outcomes if other.verified_by == one.verified_by and other.facts_asked}
    way = one.facts_asked or (next(iter(ways)) if len(ways) == 1 else None)
    return f"{judge} (facts {way})" if way else judge


def refused_notes(refused: Sequence[Refused]) -> Iterable[str]:
    if refused:
        rows = ", ".join(f"{one.model} ({one.pattern}, {one.paradigm})" for one in refused)
        yield f"left out, for the reason in the table: {rows}"
