"""From judged examples to a stacking: what is fitted, on whom, and what was found out about it.

Fitted on readers that neither the judge nor the numbers were made of: those of the training side are left out. What is measured is
cross-fitted over readers; what is written is fitted on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.evaluation.shared_texts import crossed, of_these_texts, to_draw, works
from perse.evaluation.stacking.adding import PROFILE_AVERAGE, Measured, Told, measure
from perse.evaluation.stacking.crossing import CrossFitted, Models, Rows, columns, subsets
from perse.evaluation.stacking.known import known_of
from perse.evaluation.stacking.renamed import under_other_names
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import FEWEST_REVIEWERS
from perse.evaluation.stats.ordinal import label_distributions
from perse.evaluation.stats.results import Resample
from perse.identity import reader_key
from perse.judgement import Judgement, Status
from perse.progress import OnProgress, unseen
from perse.records import Example, PointwiseExample
from perse.scale import SCORES
from perse.stacking.file import OrdinalModel, StackedData, StackedJudge, Stacking
from perse.stacking.sources import BIAS, CONTENT, IN_WORDS, JUDGE, OTHERS, SOURCES, Known, features


@dataclass(frozen=True)
class Fitted:
    """What was found, and the models of all readers together."""

    rows: Rows
    measured: Measured
    known: tuple[Known, ...]
    """Of each fold."""
    readers: tuple[str, ...]
    notes: tuple[str, ...]
    resamples: int
    seed: int
    of_these_texts: bool = False
    """Whether readers share texts and only readers were resampled, so that of other texts nothing is known."""
    unanswered: int = 0
    """Examples of readers that are fitted on, or would be, which the judge did not answer."""

    def stacking(self, *, question: str, judge: StackedJudge, data: StackedData) -> Stacking:
        """The file's contents, of a data set without folds or one of them."""
        [known] = self.known
        models = Models(self.rows)
        return Stacking(
            question=question,
            scale=SCORES.labels,
            judge=judge,
            data=data,
            examples=len(self.rows.gold),
            readers=tuple(sorted(map(reader_key, self.readers))),
            known=known,
            models=tuple(
                _written(models, some) for some in subsets(self.rows.sources) if models.of(some) and (BIAS in some or not some)
            ),
        )


def _written(models: Models, sources: tuple[str, ...]) -> OrdinalModel:
    model = models.of(sources)
    assert model is not None
    names = [name for source in SOURCES if source in sources for name in SOURCES[source]]
    return OrdinalModel(
        sources=sources, cuts=tuple(model.cuts.tolist()), weights=dict(zip(names, model.weights.tolist(), strict=True))
    )


@dataclass(frozen=True)
class Material:
    """What can be fitted on: n judged examples of readers whom the training side does not hold."""

    rows: Rows
    examples: tuple[PointwiseExample, ...]
    judgements: tuple[Judgement | None, ...]
    """(n,) of each example; None where no judge was asked."""
    known: tuple[Known, ...]
    """Of each fold."""
    readers: tuple[str, ...]
    notes: tuple[str, ...]
    """Who and what is left out or absent."""
    unanswered: int
    """Examples that the judge did not answer."""

    def bootstrap(self, *, resamples: int, seed: int, resample: Resample) -> Bootstrap:
        """Of the rows; texts are drawn, too, where readers share them and `resample` does not say otherwise."""
        item = works(self.examples) if to_draw(self.examples, resample) == "two-way" else None
        return Bootstrap.over(self.rows.reader, resamples=resamples, seed=seed, item=item)


def material(folds: Sequence[Fold], judgements: Sequence[Judgement] | None) -> Material:
    """Gather judged examples and their features.

    Args:
        folds: what was judged, with its training side.
        judgements: of the examples; None: no judge was asked.
    Raises:
        BadInput: no scores of single texts; no training side; fewer than 10 readers that it does not hold; scores that are all the same; or no
            answer with a distribution.
    """
    by_id = None if judgements is None else {one.id: one for one in judgements}
    kept: list[tuple[PointwiseExample, float]] = []
    found, known, given = [], [], []
    left_out: set[str] = set()
    renamed: set[str] = set()
    unanswered = 0
    for fold in folds:
        train = _single_texts(fold.train or ())
        if not train:
            raise BadInput("the training side of the data set is not at hand; name its folder with --train-data")
        trained = {example.reviewer_id for example in train}
        known.append(known_of(train))
        asked = [example for example in _single_texts(fold.examples) if example.reference is not None]
        again = under_other_names(train, [example for example in asked if example.reviewer_id not in trained])
        renamed |= again
        for example in asked:
            if example.reviewer_id in trained | again:
                left_out.add(example.reviewer_id)
                continue
            judgement = by_id.get(example.id) if by_id is not None else None
            if by_id is not None and (judgement is None or judgement.status is not Status.OK):
                unanswered += 1
                continue
            assert example.reference is not None
            kept.append((example, float(example.reference.score)))
            given.append(judgement)
            found.append(features(example, judgement, known[-1]))
    examples = [example for example, _ in kept]
    readers = sorted({example.reviewer_id for example in examples})
    _refuse_too_little(readers, [score for _, score in kept], left_out, unanswered)
    number = {reader: at for at, reader in enumerate(readers)}
    whose = np.array([number[example.reviewer_id] for example in examples], dtype=np.int64)
    rows = Rows.of(found, np.array([score for _, score in kept]), whose)
    if judgements is not None and JUDGE not in rows.sources:
        read = any(one is not None and one.distribution and one.exact is False for one in given)
        lack = "has its distribution from the likeliest tokens alone (exact: false)" if read else "lacks a distribution"
        raise BadInput(
            f"every answer {lack}, and an exact one is what is combined with the numbers; score with an engine that gives exact ones"
        )
    notes = [
        *(
            [f"{len(left_out)} readers of the training side are left out: the judge and the numbers know them"]
            if left_out
            else []
        ),
        *(
            [
                f"{len(renamed)} of them stand here under other names than there, and are known by their scores, which those of few texts are "
                "not, and nobody is when a stacking is applied: score with the names of the training side"
            ]
            if renamed
            else []
        ),
        *([f"{unanswered} examples without an answer are left out"] if unanswered else []),
        *_absent(rows),
        *_named(rows),
    ]
    return Material(rows, tuple(examples), tuple(given), tuple(known), tuple(readers), tuple(notes), unanswered)


def fit(
    folds: Sequence[Fold],
    judgements: Sequence[Judgement] | None,
    *,
    seed: int = 0,
    resamples: int = 1000,
    resample: Resample = "auto",
    on_progress: OnProgress = unseen,
) -> Fitted:
    """Fit a stacking, and measure it.

    Args:
        folds, judgements: as in `material`.
        seed: of the parts of readers and the resamples.
        resamples: bootstrap resamples.
        resample: as in `evaluate_many`.
        on_progress: told how many sources are left out.
    Raises:
        BadInput: as in `material`.
    """
    of = material(folds, judgements)
    raw = _raw(of.examples, of.judgements, of.rows)
    bootstrap = of.bootstrap(resamples=resamples, seed=seed, resample=resample)
    notes = (*of.notes, *_fewer(raw), *crossed(of.examples, two_way=bootstrap.two_way))
    measured = measure(CrossFitted.of(of.rows, seed=seed), raw, bootstrap, seed=seed, on_progress=on_progress)
    alone = of_these_texts(of.examples, two_way=bootstrap.two_way)
    return Fitted(of.rows, measured, of.known, of.readers, notes, resamples, seed, alone, of.unanswered)


def _single_texts(examples: Sequence[Example]) -> list[PointwiseExample]:
    """
    Raises:
        BadInput: they are of another kind.
    """
    kept = [example for example in examples if isinstance(example, PointwiseExample)]
    if len(kept) < len(examples):
        raise BadInput(
            "these are no scores of single texts, which alone are combined with numbers; give a run of a data set of reviews"
        )
    return kept


def _refuse_too_little(readers: Sequence[str], gold: Sequence[float], left_out: set[str], unanswered: int) -> None:
    if len(readers) < FEWEST_REVIEWERS:
        why = [f"{len(left_out)} are of the training side"] if left_out else []
        why += [f"{unanswered} examples have no answer"] if unanswered else []
        more = f" ({', '.join(why)})" if why else ""
        raise BadInput(
            f"{len(readers)} {'reader is' if len(readers) == 1 else 'readers are'} too few to fit on{more}; score the texts of at least {FEWEST_REVIEWERS} whom the training side does not hold"
        )
    if len(set(gold)) < 2:
        raise BadInput(f"all {len(gold)} true scores are {gold[0]:g}, so that there is nothing to learn; score more texts")


def _absent(rows: Rows) -> list[str]:
    """Which sources some or all rows lack."""
    said = []
    for source in SOURCES:
        there = int(rows.have([source]).sum())
        if source != JUDGE and there == 0:
            hint = " (perse data evidence makes it)" if source == "content" else ""
            said.append(f"{IN_WORDS[source]}: absent everywhere{hint}")
        elif 0 < there < len(rows.gold):
            said.append(f"{IN_WORDS[source]}: absent for {len(rows.gold) - there} of {len(rows.gold)} examples")
    return said


def _named(rows: Rows) -> list[str]:
    """Of a text that training knows, what its words say is also what was said of it."""
    both = int(rows.have([CONTENT, OTHERS]).sum())
    if not both:
        return []
    return [
        f"{both} of {len(rows.gold)} examples are of texts that training readers scored: of these the words are as good as a name, so that what "
        f"'{IN_WORDS[CONTENT]}' say and add there may be what these readers gave them, whatever their words"
    ]


def _fewer(raw: Sequence[Told]) -> list[str]:
    """Which rows are of some of the examples alone."""
    there = [(told.name, int((~np.isnan(told.values)).sum()), len(told.values)) for told in raw]
    return [
        f"the row '{name}' is of {some} of {number} examples, those that have it"
        for name, some, number in there
        if some < number
    ]


def _raw(examples: Sequence[PointwiseExample], judgements: Sequence[Judgement | None], rows: Rows) -> list[Told]:
    """What single sources say as they stand."""
    found = []
    given = [one for one in judgements if one is not None]
    if given:
        has = rows.have([JUDGE])
        told = np.where(has[:, None], label_distributions(given), np.nan)
        found.append(Told.of(IN_WORDS[JUDGE], told))
    found.append(Told(IN_WORDS[BIAS], rows.features[:, columns([BIAS])[0]]))
    averages = np.array([_average(example) for example in examples])
    if not np.isnan(averages).all():
        found.append(Told(PROFILE_AVERAGE, averages))
    return found


def _average(example: PointwiseExample) -> float:
    scores = [past.score for past in example.profile]
    return sum(scores) / len(scores) if scores else np.nan
