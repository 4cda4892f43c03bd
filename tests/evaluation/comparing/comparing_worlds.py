"""Worlds in which judges are compared, and one contrast of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation_builders import answered, noisy_judge, world

from perse.evaluation.alignment import Fold
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.comparing.results import Comparison, Contrast
from perse.judgement import Judgement
from perse.records import PointwiseExample
from perse.results.result import Interval

WORLD = world(20, per_reviewer=6)


def compared(
    judges: dict[str, Sequence[Judgement]], examples: Sequence[PointwiseExample] = WORLD, **options: object
) -> Comparison:
    settings = {"resamples": 100, "permutations": 199, **options}
    return compare(judges, [Fold(examples, None)], **settings)  # type: ignore[arg-type]


def judges(**noise: float) -> dict[str, Sequence[Judgement]]:
    return {name: noisy_judge(WORLD, noise=amount, seed=number) for number, (name, amount) in enumerate(noise.items())}


def labelled(labels: Sequence[int], examples: Sequence[PointwiseExample] = WORLD) -> list[Judgement]:
    return [answered(example.id, str(label)) for example, label in zip(examples, labels, strict=True)]


def contrast(metric: str, difference: float | None, *, p_holm: float | None) -> Contrast:
    interval = (
        Interval(low=difference - 0.05, high=difference + 0.05) if difference is not None else Interval(reason="undefined (x)")
    )
    return Contrast(
        metric=metric,
        one=difference,
        other=0.0,
        difference=difference,
        interval=interval,
        items=9,
        reviewers=9,
        p=None if p_holm is None else p_holm / 2,
        p_reason="undefined (y)" if p_holm is None else None,
        p_holm=p_holm,
    )
