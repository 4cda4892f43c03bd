"""The contamination study's answers as tables and points: single plots, pairs, and scores for a reader (PerSE, tables 6 to 8).

Known works stand beside unknown ones, version by version. The groups differ from version to version, and known works are not
like unknown ones (they are more often good); so compare versions rather than groups. The row
"random" is what the same items and pairs give to draws by seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.baselines.ratings import pointwise_baselines
from perse.evaluation.metrics import METRICS
from perse.evaluation.predictions import expected_value
from perse.evaluation.shared_texts import OF_THESE_TEXTS
from perse.evaluation.stats.correlation import BoolArray, FloatArray
from perse.evaluation.verdict import ON_THESE_TEXTS
from perse.judgement import Status
from perse.records import PointwiseExample
from perse.results.result import Estimate, Point, Table
from perse.studies.contamination.known_works import (
    COEFFICIENTS,
    GROUPS,
    Paired,
    apart,
    bias,
    correlations,
    leaning,
    mean,
    over_items,
    paired,
    random_choices,
    random_scores,
    share,
    singles,
)
from perse.studies.contamination.plots import Pairs, Plots, better, pair_id
from perse.studies.frame.arms import Answers
from perse.studies.frame.summarizing import SharedResamples, crossed_note, minus, undefined, verdict, words

FOR_A_READER = "for a reader (k = 1)"
RANDOM = "random"
_COEFFICIENTS = tuple(METRICS[name].title for name in COEFFICIENTS)
Cells = tuple[Estimate | str | None, ...]


@dataclass(frozen=True)
class Finding:
    """What one kind of question adds to the study's result."""

    points: tuple[Point, ...]
    tables: tuple[Table, ...]
    sentence: str


def of_singles(plots: Plots, answers: Mapping[str, Answers], *, resamples: int, seed: int) -> Finding:
    """The shape of table 8, and the difference between known and unknown. `answers`: version -> those about single plots."""
    bootstrap = over_items(len(plots.items), resamples=resamples, seed=seed)
    points: list[Point] = []
    rows: dict[str, list[Cells]] = {"known": [], "unknown": []}
    gaps: list[Cells] = []
    shares: list[str] = []
    for version in plots.texts:
        one = singles(answers[version], titles=plots.titles, truth=plots.truth)
        for group, wanted in (("known", True), ("unknown", False)):
            values = correlations(bootstrap, one.truth, one.only(wanted))
            part = share(one.known == wanted, one.answered)
            rows[group].append((group, version, *values, part))
            points += [
                Point(series=group, x=version, metric=metric, estimate=value)
                for metric, value in zip(COEFFICIENTS, values, strict=True)
            ]
            if wanted:
                points.append(Point(series="share of works named", x=version, metric="known", estimate=part))
                shares.append(f"{words(part)} of the {version} plots")
        gap = apart(bootstrap, one)
        gaps.append((version, gap))
    truth = np.array([plots.truth[item] for item in plots.titles])
    chance = correlations(bootstrap, truth, random_scores(plots.items, seed=seed))
    points += _everywhere(RANDOM, plots.texts, dict(zip(COEFFICIENTS, chance, strict=True)))
    first = gaps[0][1]
    assert isinstance(first, Estimate)
    sentence = (
        f"The judge names the work of {', '.join(shares)} (shares); Kendall with the mean score, of known minus unknown "
        f"{next(iter(plots.texts))} plots: {verdict(first)}."
    )
    table = Table(
        title="Single plots: correlation with the mean score (shape of PerSE, table 8)",
        header=("", "version", *_COEFFICIENTS, "share"),
        rows=(*rows["known"], *rows["unknown"], (RANDOM, None, *chance, None)),
        notes=(
            "share: of the answered plots, with an exact interval (Clopper and Pearson's); correlations are within the group",
            "random: a score drawn for each of all plots, known or not",
        ),
    )
    difference = Table(title="Kendall, known minus unknown", header=("version", "difference"), rows=tuple(gaps))
    return Finding(tuple(points), (table, difference), sentence)


def of_pairs(plots: Plots, pairs: Pairs, answers: Mapping[str, tuple[Answers, Answers]], *, seed: int) -> Finding:
    """The shapes of tables 6 and 7. `answers`: version -> those as given and those swapped."""
    truth = {pair_id(*pair): better(plots.truth, pair) for pair in pairs.pairs}
    points: list[Point] = []
    rows: list[Cells] = []
    biases: list[Cells] = []
    for_known: list[str] = []
    whole: list[str] = []
    unheard: list[str] = []
    for version in plots.texts:
        given, swapped = answers[version]
        one = paired(pairs.pairs, given=given, swapped=swapped, titles=plots.titles, better=truth)
        everything = np.ones(len(one.known), dtype=bool)
        for number, group in (*GROUPS.items(), (None, "all")):
            here = (everything if number is None else one.known == number) & one.answered.any()  # of nothing no share is 0
            values = _of_group(one, here)
            rows.append(
                (group, version, *values.values(), None if number is None else mean(one, here.astype(np.float64), one.answered))
            )
            points += [Point(series=group, x=version, metric=metric, estimate=value) for metric, value in values.items()]
            if number is None:
                whole.append(f"{version} {words(values['consistency'])}, {verdict(values['bias_first'])}")
        missing = int((~one.answered).sum())
        if missing and not one.answered.any():
            unheard.append(f"{version}: no pair was answered in either order, so that there is no share to tell")
        elif missing:
            unheard.append(
                f'{version}: {missing} pairs were answered in neither order; they are in "all" and in no other group'
            )
        known = {"bias_known": bias(one, one.bias_known, one.known == 1), "leaning_known": leaning(one)}
        better_known = mean(one, one.known_is_better, one.known == 1)
        biases.append((version, known["leaning_known"], known["bias_known"], better_known))
        for_known.append(f"{version} {verdict(known['leaning_known'])}")
        points += [Point(series="one known", x=version, metric=metric, estimate=value) for metric, value in known.items()]
    rows.sort(key=lambda row: [*GROUPS.values(), "all"].index(str(row[0])))
    coins = random_choices(pairs.pairs, better=truth, seed=seed)
    chance = _of_group(coins, np.ones(len(pairs.pairs), dtype=bool))
    rows.append((RANDOM, None, *chance.values(), None))
    points += _everywhere(RANDOM, plots.texts, chance)
    notes = ["accuracy and consistency count an answer that is missing as wrong; accuracy is over both orders"]
    notes.append("bias first: how often the plot shown first is chosen, minus how often it is the better one")
    notes.append("share: of the pairs that were answered in one order at least; random: a coin for each order of all pairs")
    notes += unheard
    if pairs.too_near:
        notes.append(f"{pairs.too_near} pairs that were drawn are left out: equal mean scores, or nearer than asked for")
    if pairs.reused:
        notes.append("some items are in several pairs, and intervals count what pairs of one item have in common")
    groups = Table(
        title=f"{len(pairs.pairs)} pairs, asked in both orders (shape of PerSE, table 6)",
        header=("", "version", "accuracy", "consistency", "bias first", "share"),
        rows=tuple(rows),
        notes=tuple(notes),
    )
    one_known = Table(
        title="Pairs of which one is known: is it chosen for that? (PerSE, table 7, has the bias)",
        header=("version", "leaning to it", "bias known", "better"),
        rows=tuple(biases),
        notes=(
            "leaning to it: how much more than half the known plot is chosen, where pairs in which it is the better and in which it is the worse count "
            "alike: 0 of a coin, and of whoever errs as often on either",
            "bias known, as in the paper: how often the known plot is chosen, minus how often it is the better one (last column); of a coin it is "
            "one half minus that, so no sign of a bias by itself where known works are better, or worse, than others",
        ),
    )
    sentence = (
        f"Of {len(pairs.pairs)} pairs, the share chosen alike in both orders and the bias for the first: {'; '.join(whole)}. "
        f"Where the judge names one of the two works, how much it leans to that one, better or worse: {'; '.join(for_known)}."
    )
    return Finding(tuple(points), (groups, one_known), sentence)


def _of_group(pairs: Paired, here: BoolArray) -> dict[str, Estimate]:
    return {
        "accuracy": mean(pairs, pairs.right, here),
        "consistency": mean(pairs, pairs.consistent, here),
        "bias_first": bias(pairs, pairs.bias_first, here),
    }


def _everywhere(series: str, versions: Iterable[str], values: Mapping[str, Estimate]) -> list[Point]:
    """A baseline that reads no text, beside every version."""
    return [
        Point(series=series, x=version, metric=metric, estimate=value, baseline=True)
        for version in versions
        for metric, value in values.items()
    ]


def of_readers(
    readers: Mapping[str, Sequence[PointwiseExample]], answers: Mapping[str, Answers], *, resamples: int, seed: int
) -> Finding:
    """Figure 8: the same queries in every version, in one order, for readers known by one review."""
    given = {version: [answers[version].get(example.id) for example in examples] for version, examples in readers.items()}
    kept = [n for n, row in enumerate(zip(*given.values(), strict=True)) if all(one and one.status is Status.OK for one in row)]
    points: list[Point] = []
    rows: list[Cells] = []
    beside: list[Cells] = []
    kendalls: list[str] = []
    reach: dict[str, None] = {}
    first: FloatArray | None = None
    for version, examples in readers.items():
        same = [examples[n] for n in kept]
        values = [undefined("no items")] * len(COEFFICIENTS)
        if same:
            reach |= dict.fromkeys(crossed_note(same))
            shared = SharedResamples.over(same, resamples=resamples, seed=seed)
            scores = np.array([expected_value(one) for n in kept if (one := given[version][n]) is not None])
            values = [shared.value(metric, [(1.0, scores)]) for metric in COEFFICIENTS]
            for arithmetic in pointwise_baselines(same, None, seed=seed):
                if arithmetic.predictions is not None:
                    simple = {
                        metric: shared.value(metric, [(1.0, np.array(arithmetic.predictions))]) for metric in COEFFICIENTS
                    }
                    beside.append((f"{version}, {arithmetic.name}", None, *simple.values()))
                    points += _everywhere(f"{arithmetic.name}, {FOR_A_READER}", [version], simple)
        points += [
            Point(series=FOR_A_READER, x=version, metric=metric, estimate=value)
            for metric, value in zip(COEFFICIENTS, values, strict=True)
        ]
        heard = sum(one is not None and one.status is Status.OK for one in given[version])
        rows.append((version, f"{heard}/{len(examples)}", *values))
        apart = shared.told("kendall", minus(((1.0, scores),), ((1.0, first),))) if same and first is not None else ""
        beyond = f" (minus {next(iter(readers))}: {apart})" if apart else ""
        kendalls.append(f"{version} {words(values[-1])}{beyond}")
        first = scores if same and first is None else first
    table = Table(
        title="Scores for readers known by one review (PerSE, figure 8)",
        header=("version", "answered", *_COEFFICIENTS),
        rows=(*rows, *beside),
        notes=(
            f"values are of the same queries in every version, one of each reader: the {len(kept)} answered in every one",
            *reach,
        ),
    )
    here = ON_THESE_TEXTS if any(note.startswith(OF_THESE_TEXTS) for note in reach) else ""
    return Finding(tuple(points), (table,), f"For readers known by one review{here}, Kendall is: {', '.join(kendalls)}.")
