"""A comparison in words: which of two is better, in which metric, by how much and how surely; or no evidence for either.

"Not shown to differ" is not "equal": the interval says how large a difference could have been missed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from perse.evaluation.comparing.results import LEVEL, Contrast, Pairing
from perse.evaluation.metrics import lower_is_better, title_of
from perse.evaluation.stats.intervals import FEWEST_REVIEWERS
from perse.evaluation.stats.unseen import none_of
from perse.evaluation.verdict import CONSTANT, IN_WORDS, ON_THESE_TEXTS
from perse.judgement import Status
from perse.results.result import Estimate, Interval
from perse.results.words import in_percent, shown

SMALLEST_P = 0.001
_MANY = 40
"""Readers whose answers can be exchanged in more ways than any number of differences asks for."""
_MOST_DIGITS = 9
MAE = "mae"
_NOT_BETTER = "not shown to be better than"
_NOT_ROUNDED = f"{_NOT_BETTER} that average, rounded as its answers are"


def sentence(
    one: str,
    other: str,
    contrasts: Sequence[Contrast],
    *,
    items: int,
    answered: int,
    failed: Mapping[str, Mapping[Status, int]] | None = None,
    of_these_texts: bool = False,
) -> str:
    """What the contrasts of `one` minus `other` come to; the first of them is told where nothing differs.

    Args:
        items: of the comparison.
        answered: of these by both; that a difference is of fewer, for what one of the two failed at, is said.
        failed: of pairs, by judge, how many it did not answer for which reason: they count as wrong.
        of_these_texts: whether the intervals say nothing of other texts.
    """
    fewer = "" if answered == items else f" (of the {answered} of {items} items that both answered)"
    alone = ON_THESE_TEXTS if of_these_texts and any(contrast.better is not None for contrast in contrasts) else ""
    return _concluded(one, other, contrasts, alone) + fewer + _wrong(failed or {}, items)


def _wrong(failed: Mapping[str, Mapping[Status, int]], items: int) -> str:
    """Who did not answer how many, and why; a judge may be worse for these alone."""
    told = [
        f"{name} {sum(counts.values())} of {items}: {', '.join(f'{count} {status}' for status, count in counts.items())}"
        for name, counts in failed.items()
    ]
    return f" (not answered, and so wrong: {'; '.join(told)})" if told else ""


def _concluded(one: str, other: str, contrasts: Sequence[Contrast], alone: str) -> str:
    """`alone`: of which texts alone, where something is shown; else empty."""
    shown = [contrast for contrast in contrasts if contrast.better is not None]
    of_others = [contrast for contrast in shown if not contrast.of_these_readers]
    if shown and not of_others:
        return _of_these_readers(one, other, shown, contrasts, alone)
    better = [contrast for contrast in of_others if contrast.better is True]
    worse = [contrast for contrast in of_others if contrast.better is False]
    by_rounding = [contrast for contrast in better if _rounding_may_do_it(contrast)]
    if better and (rule := _NOT_ROUNDED if better == by_rounding else _not_beaten(better, contrasts)):
        also = f", and below it in {_told(worse)}" if worse else ""
        return f"{one} is above {other}, but {rule}: {_told(better)}{also}{alone}"
    better = [contrast for contrast in better if contrast not in by_rounding]
    if better and worse:
        return f"{one} is better than {other} in {_told(better)}, but worse in {_told(worse)}{alone}"
    if better or worse:
        against = [contrast for contrast in shown if contrast.of_these_readers and contrast.better is not bool(better)]
        but = (
            f"; but for these {against[0].reviewers} readers {'worse' if better else 'better'} in {_told(against)}"
            if against
            else ""
        )
        return f"{one} is {'better' if better else 'worse'} than {other}: {_told(better or worse)}{but}{alone}"
    first = next((contrast for contrast in contrasts if contrast.difference is not None), contrasts[0])
    if first.difference is None:
        return f"{one} and {other} cannot be compared by {title_of(first.metric)}: {first.interval.reason}"
    return f"{one} and {other} are not shown to differ: {_numbers(first)}{_ties(first)}{_silence(first)}"


def _of_these_readers(one: str, other: str, shown: Sequence[Contrast], contrasts: Sequence[Contrast], alone: str) -> str:
    """What is shown of these readers alone, and why no more."""
    [contrast, *_] = shown
    readers = f"for these {contrast.reviewers} readers{alone}"
    numbers = f"{_numbers(contrast)}; of others it is not shown: {beyond(contrast)}"
    rule = contrast.better and (_NOT_ROUNDED if _rounding_may_do_it(contrast) else _not_beaten(shown, contrasts))
    if rule:
        return f"{one} is above {other} {readers}, but {rule}: {numbers}"
    return f"{one} is {'better' if contrast.better else 'worse'} than {other} {readers}: {numbers}"


def beyond(contrast: Contrast) -> str:
    """What readers of whom the sample has none could do to a difference."""
    return (
        f"up to {in_percent(none_of(contrast.reviewers))} of them may be unlike all of these, and the better of the two as wrong there as the scale allows, "
        "which would undo it"
    )


def _not_beaten(better: Sequence[Contrast], contrasts: Sequence[Contrast]) -> str | None:
    """That something which needs neither judge nor baseline is above a judge that is above a baseline, or not shown to be worse; None if all of it is worse.

    A judge at chance in any order of the items is better than nothing; how it is off in MAE says something only of MAE.
    """
    held = [one for one in contrasts if one.against_chance]
    at_chance = {one.metric for one in held if one.against_chance and not _above(one.against_chance)}
    below = [title_of(one.metric) for one in held if one.metric != MAE and one.against_chance and _below(one.against_chance)]
    if below:
        return f"worse than chance in {', '.join(below)}"
    if orders := at_chance - {MAE}:
        named = [title_of(one.metric) for one in held if one.metric in orders]
        every = orders == {one.metric for one in held} - {MAE} and orders & {one.metric for one in better}
        return f"{_NOT_BETTER} chance" + ("" if every else f" in {', '.join(named)}")
    if unbeaten := [one for one in better if one.against_constant and not _above(one.against_constant)]:
        return f"{_NOT_BETTER} {IN_WORDS[unbeaten[0].constant or CONSTANT]}"
    return f"{_NOT_BETTER} {IN_WORDS[CONSTANT]}" if {one.metric for one in better} <= at_chance else None


def _rounding_may_do_it(contrast: Contrast) -> bool:
    """Whether the average that a judge of labels is better than is not shown to be worse than it once it is told as coarsely."""
    if contrast.against_rounded is None:
        return False
    estimate = Estimate(value=None, interval=contrast.against_rounded, items=0)
    return not (estimate.below_zero if lower_is_better(contrast.metric) else estimate.above_zero)


def p_shown(p: float | None) -> str:
    """Three decimals, or that it is less; more where it would look like the level and is on one side of it: 0.04998, 0.0505."""
    if p is None:
        return "undefined"
    if p < SMALLEST_P:
        return f"<{SMALLEST_P}"
    digits = next((more for more in range(3, _MOST_DIGITS) if p == LEVEL or round(p, more) != LEVEL), _MOST_DIGITS)
    return f"{p:.{digits}f}"


def _above(interval: Interval) -> bool:
    return Estimate(value=None, interval=interval, items=0).above_zero


def _below(interval: Interval) -> bool:
    return Estimate(value=None, interval=interval, items=0).below_zero


def _numbers(contrast: Contrast) -> str:
    said = f"{_named(contrast)} {shown(contrast.estimate)}"
    if contrast.p is None:
        return f"{said}, p {contrast.p_reason}"
    return f"{said}, p {_after(contrast.p)} (Holm {p_shown(contrast.p_holm)})"


def _named(contrast: Contrast) -> str:
    """A metric and, within readers, of how many it is."""
    title, left = title_of(contrast.metric), contrast.left_out
    return f"{title} (of {contrast.reviewers} of {contrast.reviewers + left} readers)" if left else title


def _after(p: float) -> str:
    return f"= {p_shown(p)}" if p >= SMALLEST_P else f"< {SMALLEST_P}"


def _ties(contrast: Contrast) -> str:
    """That a difference may be one of ties alone."""
    if not contrast.by_ties or contrast.ties_apart is None:
        return ""
    said = f"but {_other_side(contrast, contrast.ties_apart)} where ties count for neither"
    return f", {said}{_ends(contrast.ties_apart, 'of all pairs')}"


def _other_side(contrast: Contrast, interval: Interval) -> str:
    """What becomes of a difference that is shown, looked at again."""
    turned = _below(interval) if contrast.estimate.above_zero else _above(interval)
    return "the other way round" if turned else "not"


def _ends(interval: Interval, of: str) -> str:
    return "" if interval.low is None or interval.high is None else f", [{interval.low:.3f}, {interval.high:.3f}] {of}"


def _silence(contrast: Contrast) -> str:
    """That a difference within readers may be one of those alone to whom both sides say more than one thing."""
    if not contrast.by_silence or contrast.of_all is None:
        return ""
    return f", but {_other_side(contrast, contrast.of_all)} where those to whom one says the same of everything count 0{_ends(contrast.of_all, 'of all readers')}"


def _told(contrasts: Sequence[Contrast]) -> str:
    """The first metric with its numbers, and the names of the others that agree."""
    others = [_named(contrast) for contrast in contrasts[1:]]
    return _numbers(contrasts[0]) + (f"; also in {', '.join(others)}" if others else "")


def too_many(pairings: Sequence[Pairing], permutations: int, reviewers: int) -> list[str]:
    """That nothing can be shown, where it cannot: drawn exchanges give no p below 1 / (permutations + 1), and all those of R reviewers none below
    2 / 2^R, which Holm multiplies."""
    drawn = [contrast.p for pairing in pairings for contrast in pairing.contrasts if contrast.p is not None]
    if reviewers < _MANY and len(drawn) > LEVEL * 2 ** (reviewers - 1):
        fewer = "" if reviewers < FEWEST_REVIEWERS else "fewer judges or metrics, or "
        return [
            f"{reviewers} readers are too few to show any of {len(drawn)} {'difference' if len(drawn) == 1 else 'differences'}: their answers can be "
            f"exchanged in {2**reviewers} ways alone; compare {fewer}more readers"
        ]
    if len(drawn) <= LEVEL * (permutations + 1):
        return []
    enough = ceil(len(drawn) / LEVEL - 1e-9)
    return [f"{permutations} permutations are too few to show any of {len(drawn)} differences; give {enough} or more"]
