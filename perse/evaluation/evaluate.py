"""How well judges predict readers: correlations or accuracy with intervals, beside baselines, on the same items.

Failures are kept: unanswered pairs are wrong; correlations are of the items that every judge answered (a judge that
answered none is ignored), shown with those of all items, failures imputed by the training mean (DESIGN.md, promise 3).

The folds of a small data set are evaluated together, so that there are reviewers enough for an interval; baselines and
training means are each fold's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from perse.errors import BadInput
from perse.evaluation.alignment import Fold, Items, align
from perse.evaluation.baselines.factors import ANY, Factorization
from perse.evaluation.baselines.ratings import NO_TRAINING_DATA
from perse.evaluation.costs import with_costs
from perse.evaluation.differences import choice_differences, score_differences
from perse.evaluation.pairwise_rows import choice_predictions, pairwise_rows, true_choices
from perse.evaluation.pointwise_rows import Scores, fitted_epsilons, pointwise_rows
from perse.evaluation.predictions import (
    answer_scale,
    check_labels,
    gold_scores,
    of_items,
    score_predictions,
    training_means,
)
from perse.evaluation.seen import answered_in_training, seen_in_training
from perse.evaluation.shared_texts import crossed, of_these_texts, shown_elsewhere, to_draw
from perse.evaluation.stats.accuracy import chose_each
from perse.evaluation.stats.correlation import BoolArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.results import Difference, Evaluation, JudgeSummary, Resample, Row
from perse.evaluation.stats.ties import reviewer_halves
from perse.evaluation.text_rows import Texts, text_rows
from perse.evaluation.verdict import conclusions
from perse.judgement import Judgement, Prices, Status
from perse.models.vectors import Vectors
from perse.progress import OnProgress, unseen
from perse.records import Example, SummaryExample, chooses
from perse.results.result import Estimate, Interval
from perse.scale import Scale

__all__ = [
    "Estimate",
    "Evaluation",
    "Fold",
    "Interval",
    "JudgeSummary",
    "Row",
    "Texts",
    "Validation",
    "evaluate",
    "evaluate_many",
]

FEWEST_RESAMPLES = 100
UNADJUSTED = (
    "{judges} judges are each held against chance and the baselines, and nothing is adjusted for their number: each that knows nothing may be called better "
    "in about 2.5 of 100 tables, and worse as often or more; perse compare adjusts for what it compares"
)
"""A note of tables of several judges."""
CHANCE_OF_TEXTS = "; but here all is said of these texts alone: a judge that gives each text one answer at random, whoever asks, is better or worse on them far more often"
"""Follows it where that is so: such a judge orders the texts by accident, and for all their readers alike."""


@dataclass(frozen=True)
class Validation:
    """Judgements of other reviewers' examples, by the same judge names: what ties are calibrated on."""

    judges: Mapping[str, Sequence[Judgement]]
    folds: Sequence[Fold]


@dataclass(frozen=True)
class _Found:
    """The rows of a table with their notes."""

    rows: tuple[Row, ...]
    differences: tuple[Difference, ...]
    ok: BoolArray
    training_means: tuple[float | None, ...] = ()
    text_skipped: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def evaluate(
    examples: Sequence[Example],
    judgements: Sequence[Judgement],
    *,
    train: Sequence[Example] | None,
    seed: int = 0,
    resamples: int = 1000,
) -> Evaluation:
    """`evaluate_many` of one judge on one part; the judge must have judged every example."""
    return evaluate_many({"judge": judgements}, [Fold(examples, train)], seed=seed, resamples=resamples)


def evaluate_many(
    judges: Mapping[str, Sequence[Judgement]],
    folds: Sequence[Fold],
    *,
    seed: int = 0,
    resamples: int = 1000,
    resample: Resample = "auto",
    validation: Validation | None = None,
    texts: Texts = Texts(),  # noqa: B008 (frozen)
    prices: Mapping[str, Prices] | None = None,
    seconds: Mapping[str, float] | None = None,
    notes: Sequence[str] = (),
    factorization: Factorization = ANY,
    vectors: Vectors | None = None,
    p_values: bool = False,
    on_progress: OnProgress = unseen,
    on_fit: OnProgress = unseen,
) -> Evaluation:
    """Judges by name, side by side with the baselines, on the items common to all.

    Args:
        judges: the judgements of each, over all folds.
        folds: what was judged, all of one kind, with the training side; one, or those of a data set. Baselines are
            fitted and failures imputed fold by fold, everything else is of all items together.
        seed: of the resamples, the random baselines, and the halves of the reviewers that calibrate each other's ties.
        resamples: bootstrap resamples, 100 or more.
        resample: reviewers with all their items; or reviewers and items; auto: both where several readers judged an item.
        validation: calibrate ties on these instead.
        texts: whether and how written reviews are compared.
        prices, seconds: of each judge, where they are known.
        notes: what is known of the runs and must stand beside the numbers.
        factorization: settings of the baselines that factorize.
        vectors: embeddings of texts, for the baselines that read them; their rows say why they are empty without.
        p_values: of the pooled correlations, as papers print them (see `perse.evaluation.stats.p_values`).
        on_progress: told how many rows of how many are done.
        on_fit: told how many models are fitted that read texts.
    Raises:
        BadInput: see `align`; or fewer than 100 resamples; or an ok judgement whose label is not on the scale; or training
            examples of another kind; or summaries asked different questions.
    """
    if resamples < FEWEST_RESAMPLES:
        raise BadInput(f"{resamples} resamples are too few for a 95% interval; give at least {FEWEST_RESAMPLES}")
    items = align(folds, judges)
    kind = type(items.examples[0])
    if any(type(example) is not kind for fold in items.folds for example in fold.train or ()):
        raise BadInput(
            "training and evaluated examples differ in kind (single texts, pairs, summaries); "
            "give the training split of the same data"
        )
    scale = answer_scale(items)
    check_labels(items.judgements, scale=scale)
    drawn = to_draw(items.examples, resample)
    two_way = drawn == "two-way"
    bootstrap = Bootstrap.over(items.reviewer(), resamples=resamples, seed=seed, item=items.work() if two_way else None)
    if chooses(items.examples):
        if validation:
            raise BadInput("a validation run calibrates ties between scores, and these are pairs; leave it out")
        found = _pairs(items, bootstrap=bootstrap, seed=seed, vectors=vectors, on_fit=on_fit)
    else:
        found = _scores(
            items,
            scale=scale,
            bootstrap=bootstrap,
            seed=seed,
            validation=validation,
            texts=texts,
            factorization=factorization,
            vectors=vectors,
            p_values=p_values,
            on_progress=on_progress,
            on_fit=on_fit,
        )
    alone = of_these_texts(items.examples, two_way=two_way)
    own_scores = all(fold.own_scores for fold in folds)
    costs = with_costs(judges, prices=prices or {}, seconds=seconds or {})
    summaries = {name: one.model_copy(update={"spent": costs[name]}) for name, one in items.summaries().items()}
    return Evaluation(
        kind="pairwise" if chooses(items.examples) else "pointwise",
        labels=scale.labels,
        examples=sum(len(fold.examples) for fold in folds),
        without_reference=items.without_reference,
        items=len(items.examples),
        ok_items=int(found.ok.sum()),
        reviewers=len(items.reviewer_ids()),
        judges=summaries,
        rows=found.rows,
        conclusions=conclusions(
            summaries,
            found.rows,
            found.differences,
            compared=int(found.ok.sum()),
            unheard=bootstrap.reviewers - len(np.unique(items.reviewer()[found.ok])),
            of_these_texts=alone,
            fair_baselines=not answered_in_training(items),
            own_scores=own_scores,
            of_summaries=isinstance(items.examples[0], SummaryExample),
        ),
        differences=found.differences,
        own_scores=own_scores,
        training_means=found.training_means,
        text_skipped=dict(found.text_skipped),
        resample=drawn,
        resamples=resamples,
        seed=seed,
        notes=(
            *notes,
            *items.notes,
            *_cross_fitted(items),
            *seen_in_training(items),
            *crossed(items.examples, two_way=two_way),
            *(shown_elsewhere(items.examples) if own_scores else ()),
            *found.notes,
            *([UNADJUSTED.format(judges=len(judges)) + (CHANCE_OF_TEXTS if alone else "")] if len(judges) > 1 else []),
        ),
    )


def _scores(
    items: Items,
    *,
    scale: Scale,
    bootstrap: Bootstrap,
    seed: int,
    validation: Validation | None,
    texts: Texts,
    factorization: Factorization,
    vectors: Vectors | None,
    p_values: bool,
    on_progress: OnProgress,
    on_fit: OnProgress,
) -> _Found:
    means = training_means(items)
    mean = of_items(items, means)
    ok = _answered(items)
    failed = ~np.all([*_ok(items).values()], axis=0)
    notes = _silent(items)
    notes += [f"failures are not imputed: {NO_TRAINING_DATA}"] if np.isnan(mean[failed]).any() else []
    notes += _without_distribution(items, "expected")
    epsilons: dict[str, float | None] = {}
    if validation:
        others = align(validation.folds, validation.judges)
        if type(others.examples[0]) is not type(items.examples[0]):
            raise BadInput("the validation run is of another kind of examples; give one of the same question")
        check_labels(others.judgements, scale=answer_scale(others))
        epsilons = fitted_epsilons(items, others, scale=scale, seed=seed, factorization=factorization, vectors=vectors)
    half = reviewer_halves(items.reviewer_ids(), seed=seed)
    scores = Scores(gold_scores(items), items.reviewer(), half, bootstrap, scale)
    predictions = score_predictions(
        items, scale=scale, seed=seed, factorization=factorization, vectors=vectors, on_progress=on_fit
    )
    notes += [one.note for one in predictions if one.note]
    if validation:
        notes.append(_calibrated(epsilons, [one.name for one in predictions if one.values is not None]))
    rows = pointwise_rows(
        items,
        predictions,
        scores=scores,
        ok=ok,
        failed=failed,
        mean=mean,
        epsilons=epsilons,
        with_p=p_values,
        on_progress=on_progress,
    )

    values = {one.name: np.where(ok, one.values, np.nan) for one in predictions if one.values is not None}
    differences = [
        difference
        for judge in items.judgements
        for difference in score_differences(judge, values, scores, profiles=any(example.profile for example in items.examples))
    ]
    written, skipped, said = text_rows(items, rows, bootstrap=bootstrap, texts=texts, seed=seed)
    return _Found(tuple(written), tuple(differences), ok, means, skipped, (*notes, *said))


def _pairs(items: Items, *, bootstrap: Bootstrap, seed: int, vectors: Vectors | None, on_fit: OnProgress) -> _Found:
    predictions = choice_predictions(items, seed=seed, vectors=vectors, on_progress=on_fit)
    rows = pairwise_rows(items, predictions, bootstrap=bootstrap)
    hits = {one.name: one.hits for one in predictions if one.hits is not None}
    differences = [one for judge in items.judgements for one in choice_differences(judge, hits, true_choices(items), bootstrap)]
    notes = [*(one.note for one in predictions if one.note), *_without_distribution(items, "likeliest")]
    return _Found(tuple(rows), tuple(differences), _answered(items), notes=tuple(notes))


def _calibrated(epsilons: Mapping[str, float | None], rows: Sequence[str]) -> str:
    """Says where the ties of `rows` were calibrated; a validation run needs two answered items of one reader.

    Raises:
        BadInput: the validation run cannot calibrate any row.
    """
    without = [name for name in rows if epsilons.get(name) is None]
    if len(without) == len(rows):
        raise BadInput(
            "the validation run has no two answered items of one reader, so it cannot calibrate ties; "
            "give a run with several texts a reader, or leave --validation-run out"
        )
    said = "pairs in order: ties are calibrated on the validation run"
    return (
        f"{said}, but those of {', '.join(without)}, of which it has no pairs, on the other half of the readers"
        if without
        else said
    )


def _ok(items: Items) -> dict[str, BoolArray]:
    """Of each judge, which items it answered, (n,)."""
    return {
        name: np.array([judgement.status is Status.OK for judgement in given], dtype=bool)
        for name, given in items.judgements.items()
    }


def _answered(items: Items) -> BoolArray:
    """(n,): which items every judge answered; judges that answered nothing are ignored."""
    known = [ok for ok in _ok(items).values() if ok.any()]
    return np.all(known, axis=0) if known else np.zeros(len(items.examples), dtype=bool)


def _silent(items: Items) -> list[str]:
    silent = [name for name, ok in _ok(items).items() if not ok.any()]
    if not silent or len(silent) == len(items.judgements):
        return []
    return [f"{', '.join(silent)} answered nothing; the other rows are of the items that the other judges answered"]


def _cross_fitted(items: Items) -> list[str]:
    if len(items.folds) == 1:
        return []
    if not any(fold.train for fold in items.folds):
        return [f"of {len(items.folds)} folds, none with a training side at hand"]
    return [f"cross-fitted over {len(items.folds)} folds: baselines and training means are those of each fold's training side"]


def _without_distribution(items: Items, row: str) -> list[str]:
    """`row` names the judge's row that is based on distributions."""
    notes = []
    for name, judgements in items.judgements.items():
        answered = [judgement for judgement in judgements if judgement.status is Status.OK]
        without = [judgement for judgement in answered if not judgement.distribution]
        if without:
            turned = sum(map(chose_each, without))
            half = f", and half a one for the {turned} whose label is another when the two are swapped" if turned else ""
            notes.append(
                f"{name} ({row}): {len(without)} of {len(answered)} answers have no distribution, their label stands for it{half}"
            )
    return notes
