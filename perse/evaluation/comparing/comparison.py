"""Is one judge better than another? Differences on the same items, with intervals and p values clustered by reviewer.

Every pair of judges, and each judge against a baseline (the reviewer's own average; for pairs, copying the example).
A difference is of the items that both answered; accuracy is of all, where a failure counts as wrong (DESIGN.md, promise
3). Intervals resample the reviewers, the same resamples for both sides; p values exchange the two sides' answers reviewer by
reviewer, adjusted by Holm over everything shown, so that more judges and metrics do not find more by chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from perse.errors import BadInput
from perse.evaluation.alignment import Fold, align
from perse.evaluation.comparing.added import Added, comparable
from perse.evaluation.comparing.beside import (
    PAIRWISE_METRICS,
    columns_of,
    of_chance,
    of_constant,
    of_rounded,
    of_silence,
    of_ties,
    of_unlike,
)
from perse.evaluation.comparing.results import (
    NOTHING_ANSWERED,
    NOTHING_ORDERED,
    Comparison,
    Contrast,
    JudgedItems,
    Pairing,
    Simple,
)
from perse.evaluation.comparing.sides import Side, choosers, needing_no_judge, scorers, shared_reading
from perse.evaluation.comparing.words import MAE, sentence
from perse.evaluation.differences import (
    MAJORITY,
    best_constant,
    labels_alone,
)
from perse.evaluation.pairwise_rows import true_choices
from perse.evaluation.predictions import answer_scale, gold_scores
from perse.evaluation.seen import seen_in_training
from perse.evaluation.shared_texts import crossed, of_these_texts, shown_elsewhere, to_draw
from perse.evaluation.stats.accuracy import chose_each
from perse.evaluation.stats.correlation import BoolArray, FloatArray, pearson
from perse.evaluation.stats.estimates import SCORE_COLUMNS, SKIPPING, Bootstrap
from perse.evaluation.stats.intervals import Behind, unless_alike
from perse.evaluation.stats.resamples import Resamples
from perse.evaluation.stats.results import Resample
from perse.evaluation.stats.significance import Permutation, as_given, holm, paired_permutation, standardised, williams
from perse.evaluation.stats.within import vary_in_all
from perse.evaluation.verdict import PROFILE_AVERAGE
from perse.judgement import Judgement, Status
from perse.models.vectors import Vectors
from perse.progress import OnProgress, unseen
from perse.records import chooses
from perse.results.result import Estimate

POINTWISE_METRICS = ("kendall", "spearman", "pearson", "within_kendall", "mae")
FEWEST_DRAWS = 100
P_BY_REVIEWERS = "p values exchange answers reviewer by reviewer also where texts are resampled: they are of these texts"
_SHOWN_IDS = 5


def compare(
    judges: Mapping[str, Sequence[Judgement]],
    folds: Sequence[Fold],
    *,
    seed: int = 0,
    resamples: int = 1000,
    resample: Resample = "auto",
    permutations: int = 2000,
    metrics: Sequence[str] = (),
    against: str | None = None,
    notes: Sequence[str] = (),
    vectors: Vectors | None = None,
    on_progress: OnProgress = unseen,
    on_fit: OnProgress = unseen,
) -> Comparison:
    """Every pair of judges, the later one against the earlier, and each judge against the baseline.

    Args:
        judges: the judgements of each, two or more, over all folds.
        folds: what was judged, with the training side (see `perse.evaluation.alignment.Fold`).
        seed: of resamples, exchanges and the baseline's ties.
        resamples: bootstrap resamples.
        resample: for the intervals, as in `evaluate_many`.
        permutations: exchanges drawn, where there are more; p is then at least 1 / (permutations + 1).
        metrics: by default `POINTWISE_METRICS` or `PAIRWISE_METRICS`; the first is reported when nothing differs.
        against: compare all judges with this one, and not with each other.
        notes: to stand beside the numbers, such as what the runs showed of the reviewers.
        vectors: embeddings of texts, for the baselines that read them.
        on_progress: told how many steps of how many are done.
        on_fit: told how many models are fitted that read texts.
    Raises:
        BadInput: fewer than two judges; an unknown metric or name; too few resamples or permutations; a label that is no
            answer to what was asked; or see `align`.
    """
    _check(judges, resamples=resamples, permutations=permutations, against=against)
    items = align(folds, judges)
    chosen = chooses(items.examples)
    names = _metrics(metrics, chosen=chosen)
    sides = choosers(items) if chosen else scorers(items)
    name, simple, missing = needing_no_judge(items, seed=seed, vectors=vectors, on_progress=on_fit)
    paired = [(sides[one], sides[other]) for one, other in _pairs(list(judges), against)]
    paired += [(side, simple[name]) for side in sides.values() if name in simple]

    gold = np.ones(len(items.examples)) if chosen else gold_scores(items)
    own_scores = all(fold.own_scores for fold in folds)
    drawn = to_draw(items.examples, resample)
    two_way = drawn == "two-way"
    bootstrap = Bootstrap.over(items.reviewer(), resamples=resamples, seed=seed, item=items.work() if two_way else None)
    brought = Added(names, gold, bootstrap, answer_scale(items), permutations, seed)
    own = tuple(name for name in names if name not in comparable())
    pairings = []
    on_progress(0, len(paired))
    for number, (one, other) in enumerate(paired):
        contrasts = _contrasts(own, gold, sides=(one, other), bootstrap=bootstrap, permutations=permutations, seed=seed)
        if not chosen:
            contrasts = tuple(of_unlike(contrast, gold, answer_scale(items)) for contrast in contrasts)
        elif other.baseline:
            majority = simple[MAJORITY].readings["label"] if MAJORITY in simple else None
            rule = best_constant(majority, true_choices(items))
            contrasts = tuple(of_constant(contrast, (one, other), rule, bootstrap) for contrast in contrasts)
        by_name = {contrast.metric: contrast for contrast in (*contrasts, *brought.contrasts((one, other)))}
        pairings.append(_pairing(one, other, tuple(by_name[name] for name in names)))
        on_progress(number + 1, len(paired))
    asked = {name: _asked(judgements, items.judgements[name]) for name, judgements in judges.items()}
    pairings = _adjusted(pairings, asked, of_these_texts=of_these_texts(items.examples, two_way=two_way))
    return Comparison(
        kind="pairwise" if chosen else "pointwise",
        items=len(items.examples),
        reviewers=bootstrap.reviewers,
        judges=asked,
        pairings=tuple(pairings),
        baselines=(
            *(
                Simple(name=baseline, values=_values(own, gold, side, bootstrap=bootstrap) | brought.values(side))
                for baseline, side in simple.items()
            ),
            *(Simple(name=baseline, unavailable=reason) for baseline, reason in missing.items()),
        ),
        metrics=names,
        family=sum(contrast.p is not None for pairing in pairings for contrast in pairing.contrasts),
        resample=drawn,
        resamples=resamples,
        permutations=permutations,
        seed=seed,
        notes=(
            *notes,
            *items.notes,
            *seen_in_training(items),
            *([f"{name} is not compared with: {missing[name]}"] if name in missing else ()),
            *crossed(items.examples, two_way=two_way),
            *(shown_elsewhere(items.examples) if own_scores and any(one.startswith("between") for one in names) else ()),
            *([P_BY_REVIEWERS] if two_way else ()),
            *_draws(pairings, items.judgements),
        ),
    )


def _check(judges: Mapping[str, object], *, resamples: int, permutations: int, against: str | None) -> None:
    if len(judges) < 2:
        raise BadInput(f"{len(judges)} judge to compare; give two runs or more (`perse evaluate` takes one)")
    if against is not None and against not in judges:
        raise BadInput(f"no judge is named '{against}'; choose from {', '.join(judges)}")
    for number, what in ((resamples, "resamples"), (permutations, "permutations")):
        if number < FEWEST_DRAWS:
            raise BadInput(f"{number} {what} are too few; give at least {FEWEST_DRAWS}")


def _metrics(metrics: Sequence[str], *, chosen: bool) -> tuple[str, ...]:
    known = PAIRWISE_METRICS if chosen else (*SCORE_COLUMNS, *comparable())
    for name in metrics:
        if name not in known:
            kind = "pairs" if chosen else "scores"
            raise BadInput(f"there is no metric '{name}' to compare {kind} by; choose from {', '.join(known)}")
    return tuple(dict.fromkeys(metrics)) or (PAIRWISE_METRICS if chosen else POINTWISE_METRICS)


def _pairs(names: Sequence[str], against: str | None) -> list[tuple[str, str]]:
    if against is not None:
        return [(name, against) for name in names if name != against]
    return [(later, earlier) for earlier, later in combinations(names, 2)]


def _contrasts(
    names: tuple[str, ...],
    gold: FloatArray,
    *,
    sides: tuple[Side, Side],
    bootstrap: Bootstrap,
    permutations: int,
    seed: int,
) -> tuple[Contrast, ...]:
    """Of the items that both answered (of pairs, of all): values, intervals and p, all of the same items."""
    reading = shared_reading(*sides)
    one, other = (side.readings[reading] for side in sides)
    both = ~np.isnan(one) & ~np.isnan(other)
    found = {
        contrast.metric: contrast
        for asked, rows in _rows_of(names, both, gold, (one, other), bootstrap)
        for contrast in _contrasts_of(
            asked, gold, (one, other), rows, bootstrap=bootstrap, permutations=permutations, seed=seed
        )
    }
    alike = _constant_on_one(both, gold, (one, other), bootstrap)
    contrasts: Iterable[Contrast] = (found[name] for name in names)
    if sides[1].baseline:
        contrasts = [of_chance(contrast, one, gold, both, bootstrap) for contrast in contrasts]
    coarse = sides[1].baseline and sides[1].name == PROFILE_AVERAGE and labels_alone(one[both])
    if coarse:
        contrasts = [of_rounded(contrast, gold, (one, other), bootstrap) for contrast in contrasts]
    contrasts = [
        # Who is ahead by labels is held against the average told as coarsely; who is behind may be so by ties, as anybody.
        contrast if coarse and contrast.estimate.above_zero else of_ties(contrast, gold, (one, other), bootstrap)
        for contrast in contrasts
    ]
    return tuple(
        of_silence(contrast, alike, gold, (one, other), bootstrap) if contrast.metric in SKIPPING else contrast
        for contrast in contrasts
    )


def _rows_of(
    names: tuple[str, ...], both: BoolArray, gold: FloatArray, given: tuple[FloatArray, FloatArray], bootstrap: Bootstrap
) -> list[tuple[tuple[str, ...], BoolArray]]:
    """Which metrics are of which rows: within readers of the readers who vary on both sides, so that both means are of the same readers."""
    within = tuple(name for name in names if name in SKIPPING)
    others = tuple(name for name in names if name not in SKIPPING)
    shared = both.copy()
    shared[both] = vary_in_all(bootstrap.reviewer[both], gold[both], *(side[both] for side in given))
    rows = [(others, both), (within, shared)]
    return [(asked, rows) for asked, rows in rows if asked]


def _constant_on_one(both: BoolArray, gold: FloatArray, given: tuple[FloatArray, FloatArray], bootstrap: Bootstrap) -> int:
    """Reviewers who vary, and to whom exactly one side says the same of all items."""
    who = bootstrap.reviewer[both]
    varied = [set(who[vary_in_all(who, gold[both], side[both])].tolist()) for side in given]
    return len(varied[0] ^ varied[1])


def _contrasts_of(
    names: tuple[str, ...],
    gold: FloatArray,
    given: tuple[FloatArray, FloatArray],
    rows: BoolArray,
    *,
    bootstrap: Bootstrap,
    permutations: int,
    seed: int,
) -> tuple[Contrast, ...]:
    """`names` of these rows, (n,)."""
    gold, reviewer = gold[rows], bootstrap.resamples.reviewer[rows]
    given = given[0][rows], given[1][rows]
    columns = columns_of(names)
    once = Bootstrap(Resamples(reviewer, np.ones((bootstrap.reviewers, 1), dtype=np.float32)))
    again = Bootstrap(bootstrap.resamples.only(rows))
    values = [columns(once, gold, side) for side in given]
    resampled = [columns(again, gold, side) for side in given]
    behind = _behind(names, again, gold, given)
    exchanged: dict[str, Permutation] = {}
    of_items = tuple(name for name in names if name in (MAE, "accuracy"))
    others = tuple(name for name in names if name not in of_items)
    for asked, scaled in ((of_items, as_given), (others, standardised)):
        exchanged |= paired_permutation(
            columns_of(asked),
            gold,
            one=given[0],
            other=given[1],
            reviewer=reviewer,
            permutations=permutations,
            seed=seed,
            scaled=scaled,
        )
    nothing = NOTHING_ORDERED if set(names) <= SKIPPING.keys() else NOTHING_ANSWERED
    contrasts = []
    for name in names:
        first, second = (_defined(side[name][0]) for side in values)
        difference = None if first is None or second is None else first - second
        if not len(gold):
            interval = nothing
        elif name in PAIRWISE_METRICS:
            interval = again.shares_apart(given[0] - given[1], np.ones(len(gold), dtype=bool)).interval
        else:
            apart = resampled[0][name] - resampled[1][name]
            interval = again.interval(difference, apart, reviewers=behind[name].reviewers, texts=behind[name].texts)
            sides = ((1.0, given[0]), (-1.0, given[1]))
            interval = again.unless_rare(interval, name, gold, sides=sides)
            if name == MAE:  # whose sentence speaks of readers unlike these, too (`of_unlike`)
                interval = unless_alike(interval, apart)
            else:
                interval = again.with_unseen(interval, name, gold, sides=sides, values=(first, second))
            interval = again.unless_few_differ(interval, name, gold, sides=sides)
        p = exchanged[name]
        contrasts.append(
            Contrast(
                metric=name,
                one=first,
                other=second,
                difference=difference,
                interval=interval,
                items=len(gold),
                reviewers=behind[name].reviewers,
                texts=behind[name].texts,
                p=p.p,
                p_reason=p.reason if len(gold) else nothing.reason,
                p_exact=p.exact,
                williams_p=_williams(gold, *given) if name == "pearson" else None,
            )
        )
    return tuple(contrasts)


def _behind(
    names: tuple[str, ...], bootstrap: Bootstrap, gold: FloatArray, given: tuple[FloatArray, FloatArray]
) -> dict[str, Behind]:
    """What each difference rests on: no more reviewers and texts than either of its sides."""
    if names == PAIRWISE_METRICS:
        return {"accuracy": Behind(*(len(np.unique(cluster)) for cluster in bootstrap.clusters))}
    sides = [bootstrap.standing_behind(names, gold, side) for side in given]
    return {name: Behind.both(*(side[name] for side in sides)) for name in names}


def _values(names: Sequence[str], gold: FloatArray, side: Side, *, bootstrap: Bootstrap) -> dict[str, Estimate]:
    """Of all items, by metric."""
    values = side.readings["label"]
    if names == PAIRWISE_METRICS:
        return {"accuracy": bootstrap.share(values, np.ones(len(values), dtype=bool))}
    estimates = bootstrap.scores(gold, values)
    return {name: estimates[name] for name in names}


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _williams(gold: FloatArray, one: FloatArray, other: FloatArray) -> float | None:
    first, second, between = pearson(gold, one), pearson(gold, other), pearson(one, other)
    if first is None or second is None or between is None:
        return None
    test = williams(first, second, r_12=between, n=len(gold))
    return None if test is None else test.p


def _pairing(one: Side, other: Side, contrasts: tuple[Contrast, ...]) -> Pairing:
    return Pairing(
        one=one.name,
        other=other.name,
        baseline=other.baseline,
        reading=shared_reading(one, other),
        items=len(one.answered),
        answered=int((one.answered & other.answered).sum()),
        contrasts=contrasts,
        verdict="",
    )


def _adjusted(pairings: Sequence[Pairing], asked: Mapping[str, JudgedItems], *, of_these_texts: bool) -> list[Pairing]:
    """Adjusts p over all contrasts and adds the conclusion in words."""
    adjusted = iter(holm([contrast.p for pairing in pairings for contrast in pairing.contrasts]))
    concluded = []
    for pairing in pairings:
        contrasts = tuple(contrast.model_copy(update={"p_holm": next(adjusted)}) for contrast in pairing.contrasts)
        verdict = sentence(
            pairing.one,
            pairing.other,
            contrasts,
            items=pairing.items,
            answered=_told_of(pairing),
            failed=_failed(pairing, asked),
            of_these_texts=of_these_texts,
        )
        concluded.append(pairing.model_copy(update={"contrasts": contrasts, "verdict": verdict}))
    return concluded


def _told_of(pairing: Pairing) -> int:
    """Items that a difference is of; accuracy is of all, answered or not."""
    return pairing.items if pairing.contrasts[0].metric in PAIRWISE_METRICS else pairing.answered


def _failed(pairing: Pairing, asked: Mapping[str, JudgedItems]) -> dict[str, dict[Status, int]]:
    """By judge, what it did not answer where that counts as wrong: a judge may be worse for what it refused alone."""
    if pairing.contrasts[0].metric not in PAIRWISE_METRICS:
        return {}
    sides = [
        name for name in (pairing.one, pairing.other) if name in asked and not (name == pairing.other and pairing.baseline)
    ]
    return {name: asked[name].failed for name in sides if asked[name].failed}


def _asked(given: Sequence[Judgement], common: Sequence[Judgement]) -> JudgedItems:
    kept = {judgement.id for judgement in common}
    dropped = [judgement.id for judgement in given if judgement.id not in kept]
    counted = Counter(judgement.status for judgement in common)
    return JudgedItems(
        judged=len(given),
        common=len(common),
        dropped=len(dropped),
        dropped_ids=tuple(dropped[:_SHOWN_IDS]),
        ok=sum(judgement.status is Status.OK for judgement in common),
        failed={one: counted[one] for one in Status if one is not Status.OK and counted[one]},
    )


def _draws(pairings: Sequence[Pairing], judgements: Mapping[str, Sequence[Judgement]]) -> list[str]:
    by_label = [f"{pairing.one} and {pairing.other}" for pairing in pairings if pairing.reading == "label"]
    if not by_label:
        return []
    turned = {name: sum(chose_each(one) for one in given) for name, given in judgements.items()}
    halves = [f"{name} {count}" for name, count in turned.items() if count]
    return [
        f"compared by label, which at a temperature above 0 is one random draw, since not every answer has a distribution: {'; '.join(by_label)}",
        *(
            [
                f"half a one counts where a judge without distributions chose the other text when the two were swapped: {', '.join(halves)}"
            ]
            if halves
            else []
        ),
    ]
