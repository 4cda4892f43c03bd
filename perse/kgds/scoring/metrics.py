"""From outcomes to the numbers of KGDS: macro-averages over the samples that all models have, with intervals (tables 1 and 2).

A sample weighs the same whatever its length (KGDS, table 1), and intervals are of bootstrap resamples of samples. All values of a
call stand on the same resamples, so that differences between paradigms and patterns are paired. `formulas` has the metrics of one
summary.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perse.errors import BadInput
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.kgds.benchmark import PARADIGMS, PATTERNS, Benchmark, Sample
from perse.kgds.outcomes import Outcomes
from perse.kgds.scoring.across_models import correlations
from perse.kgds.scoring.between import across, averages, deltas, differences
from perse.kgds.scoring.feedback import mean_win_rates, win_rates
from perse.kgds.scoring.notes import incomplete_notes, left_out_notes, refused_notes, source_notes
from perse.kgds.scoring.results import Cost, Refused, Results
from perse.kgds.scoring.sides import percent, side_of

if TYPE_CHECKING:
    from perse.judgement import Prices
    from perse.kgds.preferences import FeedbackResult


def results(
    benchmark: Benchmark,
    outcomes: Sequence[Outcomes],
    *,
    feedback: Sequence[FeedbackResult] = (),
    prices: Mapping[str, Prices] | None = None,
    as_published: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> Results:
    """All numbers of `outcomes`, on their common samples, and each row also on its own where it has more.

    A metric that is not known of every compared sample of a model (it was not verified) is left out, with a note; it is never 0. A row
    whose files were refused, or that has no sample, takes nothing from the others.

    Args:
        feedback: what is known of the experts' selection beside the models'.
        prices: of those who were asked, by name.
        as_published: whether extracted tags that name no paragraph of the article are wrong, as to the authors' script, or ignored.
        resamples: of the bootstrap over samples, 100 or more.
        seed: of the resamples.
    Raises:
        BadInput: nothing to compare, the same model, pattern and paradigm twice, a sample that the benchmark does not have, or
            verifications that do not fit their sample.
    """
    if resamples < 100:
        raise BadInput(f"{resamples} resamples say little about an interval; use 100 or more")
    _refuse_odd(benchmark, outcomes)
    refused = _refused(outcomes)
    without = {(one.model, one.pattern, one.paradigm) for one in refused}
    outcomes = [one for one in outcomes if (one.model, one.pattern, one.paradigm) not in without]
    if not outcomes:
        raise BadInput(refused[0].why)
    complete = [_complete(one) for one in outcomes]
    numbers = tuple(number for number in benchmark.samples if all(number in have for have in complete))
    if not numbers:
        sources = ", ".join(dict.fromkeys(one.source for one in outcomes))
        raise BadInput(
            f"no sample is in all of {sources}, and verified where others are; compare runs that share samples, or ask for each --model "
            "alone"
        )

    def draws(items: Collection[int]) -> Resamples:
        return Resamples(np.arange(len(items)), times_drawn(len(items), resamples=resamples, seed=seed))

    paired = draws(numbers)
    ordered = sorted(
        zip(outcomes, complete, strict=True), key=lambda one: (PATTERNS.index(one[0].pattern), PARADIGMS.index(one[0].paradigm))
    )
    sides = [side_of(benchmark, one, numbers=numbers, draws=paired, as_published=as_published) for one, _ in ordered]
    own = [
        side_of(benchmark, one, numbers=sorted(have), draws=draws(have), as_published=as_published)
        for one, have in ordered
        if len(have) > len(numbers)
    ]
    left_out = _left_out(benchmark, [(one.model, have) for one, have in zip(outcomes, complete, strict=True)])
    return Results(
        benchmark=benchmark.digest,
        samples=numbers,
        left_out=left_out,
        supporting_share=_supporting_share([benchmark.samples[number] for number in numbers]),
        scores=tuple(side.scores for side in sides),
        deltas=tuple(deltas(sides)),
        across=tuple(across(sides)),
        correlations=correlations([(side.scores, side.resampled) for side in sides], samples=len(numbers)),
        own=tuple(side.scores for side in own),
        differences=tuple(differences(sides)),
        averages=tuple(averages(sides)),
        win_rates=win_rates(feedback),
        mean_win_rates=mean_win_rates(feedback),
        costs=tuple(_costs([one for one, _ in ordered], prices or {})),
        refused=refused,
        as_published=as_published,
        resamples=resamples,
        seed=seed,
        notes=(
            *refused_notes(refused),
            *left_out_notes(left_out, benchmark),
            *incomplete_notes(sides),
            *source_notes(outcomes),
        ),
    )


def _costs(outcomes: Sequence[Outcomes], prices: Mapping[str, Prices]) -> Iterator[Cost]:
    for one in outcomes:
        for asked in one.asked:
            price = prices.get(asked.model)
            yield Cost(
                model=one.model,
                pattern=one.pattern,
                paradigm=one.paradigm,
                what=asked.what,
                asked=asked.model,
                questions=asked.questions,
                prompt=asked.prompt,
                cached=asked.cached,
                generated=asked.generated,
                cost=None if price is None else price.cost_of(asked.prompt, asked.cached, asked.generated),
            )


def _refused(outcomes: Sequence[Outcomes]) -> tuple[Refused, ...]:
    """Rows that cannot be read, or have nothing to compare."""
    reasons = [
        (one, one.refused or (None if _complete(one) else f"{one.source} has no sample that is summarized and verified"))
        for one in outcomes
    ]
    return tuple(Refused(model=one.model, pattern=one.pattern, paradigm=one.paradigm, why=why) for one, why in reasons if why)


def _refuse_odd(benchmark: Benchmark, outcomes: Sequence[Outcomes]) -> None:
    if not outcomes:
        raise BadInput("there are no summaries to measure; give one or more RUN folders, or the authors' `outputs`")
    seen: dict[tuple[str, str, str], str] = {}
    for one in outcomes:
        key = (one.model, one.pattern, one.paradigm)
        if key in seen:
            raise BadInput(
                f"{seen[key]} and {one.source} both hold '{one.model}' with {one.pattern} and {one.paradigm}; give one of them"
            )
        seen[key] = one.source
        if foreign := sorted(set(one.samples) - set(benchmark.samples)):
            raise BadInput(
                f"{one.source} holds sample {foreign[0]}, which {benchmark.path} with its {len(benchmark.samples)} samples does not; "
                "give the benchmark that it was made from"
            )


def _complete(one: Outcomes) -> set[int]:
    """Samples that were summarized, and verified if any were; a metric that was verified nowhere is left out instead."""
    read = [outcome for outcome in one.samples.values() if outcome.failed is None]
    facts, opinions = any(outcome.facts is not None for outcome in read), any(outcome.opinions is not None for outcome in read)
    return {
        number
        for number, outcome in one.samples.items()
        if outcome.failed is not None
        or ((outcome.facts is not None or not facts) and (outcome.opinions is not None or not opinions))
    }


def _left_out(benchmark: Benchmark, complete: Sequence[tuple[str, set[int]]]) -> dict[str, tuple[int, ...]]:
    """See `Results.left_out`; `complete` are models and the samples that they have."""
    found: dict[str, list[int]] = {}
    for number in benchmark.samples:
        without = [model for model, have in complete if number not in have]
        if without:
            found.setdefault("" if len(without) == len(complete) else without[0], []).append(number)
    return {model: tuple(numbers) for model, numbers in found.items()}


def _supporting_share(samples: Sequence[Sample]) -> float:
    return percent(math.fsum(len(one.supporting) / len(one.article) for one in samples) / len(samples))
