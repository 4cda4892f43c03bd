"""What a judge's titles say of its scores: groups of known and unknown works, side by side (PerSE, tables 6 to 8).

Pure functions of answers. A single plot is known if the title that the judge wrote is right, a plot of a pair if the answer
in either order names it. Shares are of the answered items; a pair with neither order answered is in no group. In
accuracy and consistency a missing answer counts as wrong.

Notation: n items (or pairs); the items stand where reviewers do elsewhere, so intervals are over items. A pair is of two of them, and what pairs of one item
have in common counts (`shares`): a judge that likes some texts, whatever it knows, else leaned to known works in up to 28 of 100 worlds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.evaluation.predictions import expected_value
from perse.evaluation.stats.correlation import BoolArray, FloatArray, IntArray
from perse.evaluation.stats.estimates import Bootstrap
from perse.evaluation.stats.intervals import FEWEST_REVIEWERS, RESTS_ON_FEW, too_few
from perse.evaluation.stats.shares import apart_interval, joined, share_interval
from perse.evaluation.stats.unseen import of_correlations
from perse.identity import draw
from perse.judgement import Judgement, Status
from perse.questions.recognition import both_titles
from perse.records import Choice
from perse.results.result import Estimate, Interval
from perse.scale import CHOICES, SCORES
from perse.studies.contamination.plots import pair_id
from perse.studies.contamination.recognition import recognized

COEFFICIENTS = ("pearson", "spearman", "kendall")
GROUPS = {2: "both known", 1: "one known", 0: "neither known"}
NOTHING = Interval(reason="undefined (no items)")


@dataclass(frozen=True)
class Singles:
    """One version's single plots: mean scores of people, the judge's (NaN where not answered), and which works it named."""

    truth: FloatArray
    predicted: FloatArray
    known: BoolArray

    @property
    def answered(self) -> BoolArray:
        return ~np.isnan(self.predicted)

    def only(self, known: bool) -> FloatArray:
        """The predictions for the known, or the unknown; NaN elsewhere."""
        chosen: FloatArray = np.where(self.known == known, self.predicted, np.nan)
        return chosen


def singles(answers: Mapping[str, Judgement], *, titles: Mapping[str, str], truth: Mapping[str, float]) -> Singles:
    """The items in the order of `titles`."""
    given = [answers.get(item) for item in titles]
    scores = [expected_value(one) if one is not None and one.status is Status.OK else np.nan for one in given]
    known = [
        one is not None and one.status is Status.OK and recognized(one.text, titles[item])
        for item, one in zip(titles, given, strict=True)
    ]
    return Singles(np.array([truth[item] for item in titles]), np.array(scores), np.array(known, dtype=bool))


@dataclass(frozen=True)
class Paired:
    """One version's pairs. (n,) each; NaN where neither order was answered, but for what counts such a pair as wrong."""

    known: FloatArray
    """How many of the two works the judge named; NaN where it did not answer."""
    right: FloatArray
    """Share of the two orders in which the better plot was chosen."""
    consistent: FloatArray
    """1 where both orders choose the same plot."""
    bias_first: FloatArray
    """How often the plot shown first was chosen, minus how often it was the better one, over the answered orders."""
    bias_known: FloatArray
    """The same of the plot that is known; NaN unless one is."""
    chose_known: FloatArray
    """How often the plot that is known was chosen, over the answered orders; NaN unless one is."""
    which_known: FloatArray
    """0 where the first of the pair is known, 1 where the second is; NaN unless one is."""
    works: IntArray
    """(n, 2): which two works, as numbers."""

    @property
    def known_is_better(self) -> FloatArray:
        """1 where the known plot is the better one, 0 where it is the other; NaN unless one is known."""
        return self.chose_known - self.bias_known

    @property
    def answered(self) -> BoolArray:
        """In one order at least."""
        return ~np.isnan(self.known)


def paired(
    pairs: Sequence[tuple[str, str]],
    *,
    given: Mapping[str, Judgement],
    swapped: Mapping[str, Judgement],
    titles: Mapping[str, str],
    better: Mapping[str, Choice],
) -> Paired:
    """The pairs in their order.

    Args:
        given, swapped: answers by `pair_id`, asked with the first of the pair as plot A, and as plot B.
        titles: item -> title.
        better: `pair_id` -> "A" where the first of the pair is better.
    """
    rows = [_pair(pair, given, swapped, titles=titles, better=better[pair_id(*pair)]) for pair in pairs]
    return _paired(rows, pairs)


def _pair(
    pair: tuple[str, str],
    given: Mapping[str, Judgement],
    swapped: Mapping[str, Judgement],
    *,
    titles: Mapping[str, str],
    better: Choice,
) -> tuple[float, ...]:
    """known, right, consistent, bias first, bias known, chose known, which known of one pair."""
    name = pair_id(*pair)
    answers = [(one, turned) for one, turned in ((given.get(name), False), (swapped.get(name), True)) if _ok(one)]
    knows = [False, False]
    for judgement, turned in answers:
        assert judgement is not None
        shown = both_titles(judgement.text)
        for place, item in enumerate(pair):
            knows[place] |= recognized(shown[1 - place if turned else place], titles[item])
    chosen = [(judgement.label, turned) for judgement, turned in answers if judgement is not None]
    return _of_orders(chosen, knows=knows, better=better)


def _of_orders(chosen: Sequence[tuple[str | None, bool]], *, knows: Sequence[bool], better: Choice) -> tuple[float, ...]:
    """known, right, consistent, bias first, bias known, chose known, which known of the labels of one pair, each with whether the pair was swapped."""
    chose_first = [(label == "A") != turned for label, turned in chosen]  # the first of the pair, however it was shown
    # the plot shown first: chosen minus better
    ahead = [float(label == "A") - float((better == "A") != turned) for label, turned in chosen]
    known = float(sum(knows)) if chosen else np.nan
    right = sum(first == (better == "A") for first in chose_first) / 2
    consistent = float(len(chose_first) == 2 and chose_first[0] == chose_first[1])
    bias_first = sum(ahead) / len(ahead) if ahead else np.nan
    chose_known = bias_known = which_known = np.nan
    if knows[0] != knows[1] and chose_first:
        chose_known = sum(first == knows[0] for first in chose_first) / len(chose_first)
        bias_known = chose_known - float((better == "A") == knows[0])
        which_known = float(knows[1])
    return known, right, consistent, bias_first, bias_known, chose_known, which_known


def random_scores(items: Sequence[str], *, seed: int) -> FloatArray:
    """(n,): a random label for each item, drawn by seed: the correlations of chance."""
    return np.array([float(draw(seed, item, "contamination random").choice(SCORES.labels)) for item in items])


def random_choices(pairs: Sequence[tuple[str, str]], *, better: Mapping[str, Choice], seed: int) -> Paired:
    """A coin flip for each order of each pair. It names no work, so its group is meaningless."""
    rows = []
    for pair in pairs:
        name = pair_id(*pair)
        coins = [
            (draw(seed, name, f"contamination random {turned}").choice(CHOICES.labels), turned) for turned in (False, True)
        ]
        rows.append(_of_orders(coins, knows=(False, False), better=better[name]))
    return _paired(rows, pairs)


def _paired(rows: Sequence[Sequence[float]], pairs: Sequence[tuple[str, str]]) -> Paired:
    works = np.unique(np.array(pairs, dtype=object).reshape(-1, 2).astype(str), return_inverse=True)[1].reshape(-1, 2)
    known, right, consistent, bias_first, bias_known, chose_known, which_known = (
        np.array(rows, dtype=np.float64).reshape(-1, 7).T
    )
    return Paired(known, right, consistent, bias_first, bias_known, chose_known, which_known, works)


def _ok(judgement: Judgement | None) -> bool:
    return judgement is not None and judgement.status is Status.OK


def over_items(count: int, *, resamples: int, seed: int) -> Bootstrap:
    """Resamples of items, each its own cluster."""
    return Bootstrap.over(np.arange(count, dtype=np.int64), resamples=resamples, seed=seed)


def of_items(estimate: Estimate) -> Estimate:
    """An estimate over items; its reason says "items", not "reviewers"."""
    reason = estimate.interval.reason
    if reason is None:
        return estimate
    told = reason.replace("reviewers", "items").replace("reviewer", "item")
    return estimate.model_copy(update={"interval": estimate.interval.model_copy(update={"reason": told})})


def correlations(bootstrap: Bootstrap, truth: FloatArray, given: FloatArray) -> list[Estimate]:
    """Pearson, Spearman and Kendall over the items whose prediction is not NaN."""
    if np.isnan(given).all():
        return [Estimate(value=None, interval=NOTHING, items=0)] * len(COEFFICIENTS)
    scores = bootstrap.scores(truth, given)
    return [of_items(scores[name]) for name in COEFFICIENTS]


def apart(bootstrap: Bootstrap, one: Singles) -> Estimate:
    """Kendall of the known minus that of the unknown, on the same resamples; without an interval where one of the two has none."""
    known, unknown = one.only(True), one.only(False)
    values = [correlations(bootstrap, one.truth, given)[2] for given in (known, unknown)]
    if values[0].value is None or values[1].value is None:
        return Estimate(value=None, interval=Interval(reason="undefined (one of the two values is)"), items=0)
    value = values[0].value - values[1].value
    resampled = bootstrap.resampled("kendall", one.truth, known) - bootstrap.resampled("kendall", one.truth, unknown)
    fewest = min(values[0].items, values[1].items)
    interval = next(
        (one.interval for one in values if one.interval.low is None), bootstrap.interval(value, resampled, reviewers=fewest)
    )
    interval = of_correlations(value, interval, [(values[0].value, values[0].items), (-values[1].value, values[1].items)])
    return of_items(Estimate(value=value, interval=interval, items=values[0].items + values[1].items))


def leaning(pairs: Paired) -> Estimate:
    """How much more than half the known one of two works is chosen, where pairs in which it is the better and in which it is the worse count alike.

    The paper's bias, how often it is chosen minus how often it is better, is no such thing where known works are better or worse than others: of a coin
    it is one half minus how often the known one is better. This is 0 of a coin, of whoever is always right, and of whoever errs as often
    on either kind. Of fewer than ten known works nothing is shown: what the judge makes of these few texts is all that it says.
    """
    kinds = [pairs.known_is_better == one for one in (1.0, 0.0)]
    parts = [mean(pairs, pairs.chose_known, kind) for kind in kinds]
    items = sum(part.items for part in parts)
    if any(part.value is None for part in parts):
        always = "undefined (the known one is always the better, or never)"
        return Estimate(value=None, interval=Interval(reason=always) if items else NOTHING, items=items)
    found = joined([(0.5, part) for part in parts], correlated=_in_common(pairs, kinds))
    low, high = (None if end is None else end - 0.5 for end in (found.interval.low, found.interval.high))
    interval = found.interval.model_copy(update={"low": low, "high": high})
    chosen = ~np.isnan(pairs.which_known)
    known = pairs.works[chosen, pairs.which_known[chosen].astype(np.int64)]
    if interval.low is not None:
        interval = too_few(len(np.unique(known)), of="known work") or interval
    return Estimate(value=(found.value or 0.0) - 0.5, interval=interval, items=items)


def _in_common(pairs: Paired, kinds: Sequence[BoolArray]) -> float:
    """The correlation, from 0, of what two kinds of pairs say of the works that they share: a text that is liked is chosen in both."""
    one, other = (
        np.bincount(
            pairs.works[kind].ravel(),
            weights=np.repeat(pairs.chose_known[kind] - pairs.chose_known[kind].mean(), 2),
            minlength=int(pairs.works.max()) + 1,
        )
        for kind in kinds
    )
    length = float(np.sqrt((one**2).sum() * (other**2).sum()))
    return max(0.0, float((one * other).sum()) / length) if length else 0.0


def share(chosen: BoolArray, of: BoolArray) -> Estimate:
    """How many of the items `of` are `chosen`, each independent of the others."""
    count = int(of.sum())
    if not count:
        return Estimate(value=None, interval=NOTHING, items=0)
    found = chosen[of].astype(np.float64)
    interval = share_interval(found, np.ones(count), clusters=[np.arange(count)])
    return Estimate(value=float(found.mean()), interval=interval, items=count)


def mean(pairs: Paired, values: FloatArray, chosen: BoolArray) -> Estimate:
    """Mean over the chosen pairs that have a value, from 0 to 1, mostly one or the other."""
    return _of_pairs(pairs, values, chosen, share_interval, most=1.0)


def bias(pairs: Paired, values: FloatArray, chosen: BoolArray) -> Estimate:
    """The same of a bias: of both orders it cannot be further from 0 than 1/2, of one than 1."""
    return _of_pairs(pairs, values, chosen, apart_interval, most=max(0.5, float(np.nanmax(np.abs(values), initial=0))))


def _of_pairs(
    pairs: Paired, values: FloatArray, chosen: BoolArray, interval: Callable[..., Interval], *, most: float
) -> Estimate:
    counted = chosen & ~np.isnan(values)
    if not counted.any():
        return Estimate(value=None, interval=NOTHING, items=0)
    kept, works = values[counted], pairs.works[counted]
    fewest, all_of_them = min(len(kept), len(np.unique(works))), min(len(pairs.works), len(np.unique(pairs.works)))
    few = too_few(fewest, of="item")
    if few and all_of_them >= FEWEST_REVIEWERS:
        few = Interval(reason=RESTS_ON_FEW.replace("reviewer", "item"))
    found = few or interval(kept / most, np.ones(len(kept)), clusters=[works])
    ends = {name: most * end for name in ("low", "high") if (end := getattr(found, name)) is not None}
    return Estimate(value=float(kept.mean()), interval=found.model_copy(update=ends), items=len(kept))
