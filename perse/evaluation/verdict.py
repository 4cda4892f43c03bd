"""A table's conclusion in words: is this judge better than what needs no judge, and how sure is that?

The judge's reading that uses all it said (expected score, likeliest choice) is compared with chance, for pairs with the best constant
answer, and with the baseline of the paper: the mean of the shown scores, or the answer of the shown pair. "Better" means that the 95%
interval of every one of these differences, both values resampled together, lies above 0: a baseline may itself be worse than
chance, and beating it then says nothing. Else the first rule that is not beaten is named: "not shown to be better", which is not "equal".

A judge of a better order may be farther off, score by score, as who is right about texts and wrong about leniency is: that is said beside it.
Then a second sentence is about taste. A judge may be better for knowing who is lenient, or which texts most people like; it may know
what a reader likes only if it orders that reader's texts, and better than the mean of what other readers said of them. That is necessary
and not sufficient: whoever knows good texts better than a few other readers' reviews do passes, too, without a look at the profile.
Whether the profile did it is what a run with another reader's profile shows (`--profile another`, `perse study counterfactual`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perse.evaluation.metrics import METRICS
from perse.evaluation.stats.results import Conclusion, Difference, JudgeSummary, Row, Standing
from perse.results.result import Estimate
from perse.results.words import shown as cell

COMPARED = "kendall"
WITHIN = "within_kendall"
WITHIN_OF_ALL = "within_zero_kendall"
OFF = "mae"
CORRECT = "accuracy"
CHANCE = "chance"
CONSTANT = "constant"
ROUNDED = "rounded average"
EVENED = "average, ties for neither"
PROFILE_AVERAGE = "profile average"
ROUNDED_MEAN = "rounded unpersonalized"
IN_WORDS = {
    CONSTANT: "the best constant answer",
    PROFILE_AVERAGE: "the reader's own average",
    ROUNDED: "the reader's own average, rounded as its answers are",
    EVENED: "the reader's own average, ties counting for neither",
    "copy the example": "copying the shown answer",
    "majority": "the majority answer",
}
BY_TIES = {PROFILE_AVERAGE: (ROUNDED, EVENED), "unpersonalized": (ROUNDED_MEAN,)}
"""By baseline, under which names a difference from it stands that ties may have made, and that is not shown without them."""
ON_THESE_TEXTS = ", on these texts alone"
"""Follows a "better" or "worse" whose intervals do not speak of other texts."""
_NO_OTHERS = "for want of other readers' reviews of these texts on a training side at hand"
_ITS_ANSWERS = "since the training side at hand holds these very answers"
WELL_COVERED = 0.95
"""Below this share of answered items the sentence says how many were answered."""


def conclusions(
    judges: Mapping[str, JudgeSummary],
    rows: Sequence[Row],
    differences: Sequence[Difference],
    *,
    compared: int,
    unheard: int = 0,
    of_these_texts: bool = False,
    fair_baselines: bool = True,
    own_scores: bool = True,
    of_summaries: bool = False,
) -> tuple[Conclusion, ...]:
    """One per judge, in order.

    Args:
        differences: of each judge, from every rule that it must beat and, in `WITHIN`, from the unpersonalized row; in `WITHIN_OF_ALL`, too,
            where it is ahead on the readers that are left and not shown to be over all.
        compared: items behind the rows: those that every judge answered that answered any.
        unheard: readers who have none of these.
        of_these_texts: whether readers share texts and only readers were resampled, so that of other texts nothing is known.
        fair_baselines: whether those fitted to training data know no answer to these items; else none is held against a judge.
        own_scores: whether those in the profiles that baselines read are the readers' own.
        of_summaries: whether summaries were judged, which people graded and no reader likes.
    """
    by_name = {row.name: row for row in rows}
    everyone = answering(judges)
    return tuple(
        _conclusion(
            name,
            summary,
            [one for one in differences if one.judge == name],
            by_name,
            (compared, everyone),
            unheard,
            of_these_texts,
            fair_baselines=fair_baselines,
            own_scores=own_scores,
            of_summaries=of_summaries,
        )
        for name, summary in judges.items()
    )


def shown(estimate: Estimate) -> str:
    """A value with its interval, or why it is undefined."""
    return cell(estimate, digits=2)


def answering(judges: Mapping[str, JudgeSummary]) -> str:
    """How a sentence names those whose answers are all needed for an item to be compared: whoever answered nothing is not."""
    silent = [name for name, summary in judges.items() if not summary.ok]
    return f"every judge but {' and '.join(silent)}" if silent else "every judge"


def left_out(within: Estimate, unheard: int, readers: str = "readers", texts: str = "text") -> str:
    """Behind a value within readers: how many it is not of; nothing where it is of all. `unheard` are those of no answered text."""
    count = (within.skipped_reviewers or 0) + unheard
    who = readers.removesuffix("s") if count == 1 else readers
    few = f"at most one answered {texts}" if unheard else f"one answered {texts}"
    whose = "whose texts it, or they, score" if readers == "readers" else "whose summaries it, or people, grade"
    return f" (without {count} {who} of {few} or {whose} all alike)" if count else ""


def in_words(baseline: str, *, own_scores: bool) -> str:
    """How a sentence names a baseline. `own_scores`: whether those in the profiles that were shown are the readers' own."""
    said = IN_WORDS.get(baseline, baseline)
    return (
        said if own_scores else said.replace(IN_WORDS[PROFILE_AVERAGE], "the average of profiles that are not the reader's own")
    )


def _conclusion(
    name: str,
    summary: JudgeSummary,
    differences: Sequence[Difference],
    rows: Mapping[str, Row],
    compared: tuple[int, str],
    unheard: int,
    of_these_texts: bool,
    *,
    fair_baselines: bool,
    own_scores: bool,
    of_summaries: bool,
) -> Conclusion:
    rules = [one for one in differences if one.column not in (WITHIN, WITHIN_OF_ALL, OFF)]
    if not summary.ok:
        return Conclusion(
            judge=name, standing="silent", words=f"{name}: answered none of {summary.asked}; nothing can be said of it"
        )
    if not rules:
        return Conclusion(judge=name, standing="undefined", words=f"{name}: nothing to compare it with")
    row = rows[rules[0].row]
    mine, title = row.columns[rules[0].column], METRICS[rules[0].column].title
    if mine.value is None:
        words = f"{name}: no verdict, since its {title} is {shown(mine)}{_of(summary, rules[0], compared)}"
        return Conclusion(judge=name, standing="undefined", words=words)
    standing, told = _standing(rules)
    alone = ON_THESE_TEXTS if of_these_texts else ""
    within, of_all = (next((one for one in differences if one.column == column), None) for column in (WITHIN, WITHIN_OF_ALL))
    average = rows.get(PROFILE_AVERAGE)
    if of_summaries:
        taste, about_taste = None, _of_products(row, unheard)
    elif fair_baselines:
        taste, about_taste = _taste(row, within, of_all, alone, average, unheard)
    else:
        taste, about_taste = _taste(row, None, None, alone, average, unheard, unknown=_ITS_ANSWERS)
    where = alone if standing in ("better", "worse") else ""
    words = f"{name}: {_said(standing, told, rules, own_scores)}{where}: {title} {shown(mine)}{_of(summary, told, compared)}{_against(told, rows)}"
    off = next((one for one in differences if one.column == OFF and standing == "better" and one.estimate.above_zero), None)
    more = [_farther(off, rows, own_scores)] if off else []
    more += [about_taste] if about_taste else []
    more += _surpassed(mine.value, rules, rows) if fair_baselines else []
    if more:
        words += f". {more[0][0].upper()}{'; '.join(more)[1:]}"
    return Conclusion(
        judge=name, standing=standing, against=told.baseline, taste=taste, farther_off=off is not None, words=words
    )


def _standing(rules: Sequence[Difference]) -> tuple[Standing, Difference]:
    """What the differences show, and the one that decides it; of a judge that is better, the last, which is the paper's."""
    unknown = [one for one in rules if one.estimate.interval.low is None]
    # What lies on one side with ties and not without them is neither.
    ahead = [one for one in rules if one.estimate.below_zero and one.baseline != EVENED]
    unbeaten = [one for one in rules if not one.estimate.above_zero or one.baseline == EVENED]
    if unknown:
        return "undefined", unknown[0]
    if ahead:
        return "worse", ahead[0]
    return ("unclear", unbeaten[0]) if unbeaten else ("better", rules[-1])


def _said(standing: Standing, told: Difference, rules: Sequence[Difference], own_scores: bool) -> str:
    # The numbers that follow say what ties do.
    against = in_words(PROFILE_AVERAGE if told.baseline == EVENED else told.baseline, own_scores=own_scores)
    if standing == "better":
        return "better than " + " and than ".join(in_words(one.baseline, own_scores=own_scores) for one in reversed(rules))
    return {
        "undefined": f"too little to say whether it is better than {against}",
        "worse": f"worse than {against}",
    }.get(standing, f"not shown to be better than {against}")


def _of(summary: JudgeSummary, told: Difference, compared: tuple[int, str]) -> str:
    """How many items a number stands on, where it is not nearly all, and of pairs what the others count as."""
    number, everyone = compared
    if told.column == COMPARED and number < summary.ok:
        return f" (of the {number} of {summary.asked} items that {everyone} answered)"
    if told.column == CORRECT and summary.ok < summary.asked:
        return f" (answered {summary.ok} of {summary.asked}; what it did not answer counts as wrong)"
    return "" if summary.ok >= WELL_COVERED * summary.asked else f" (answered {summary.ok} of {summary.asked})"


def _against(told: Difference, rows: Mapping[str, Row]) -> str:
    """The other value and the difference; chance needs neither where it is 0, and one without ties is no difference of the two values."""
    if told.baseline == EVENED:
        return f" against {shown(rows[PROFILE_AVERAGE].columns[told.column])}, where ties count for neither apart by {shown(told.estimate)}"
    if told.baseline in rows:
        return f" against {shown(rows[told.baseline].columns[told.column])}, difference {shown(told.estimate)}"
    return "" if told.baseline == CHANCE and told.column == COMPARED else f", difference {shown(told.estimate)}"


def _farther(off: Difference, rows: Mapping[str, Row], own_scores: bool) -> str:
    """An order says nothing of how far the scores themselves are off."""
    mine, theirs = (rows[name].columns[OFF] for name in (off.row, off.baseline))
    return (
        f"its scores are farther off here than those of {in_words(off.baseline, own_scores=own_scores)}: {METRICS[OFF].title} {shown(mine)} against {shown(theirs)}, "
        f"difference {shown(off.estimate)}"
    )


def _of_products(row: Row, unheard: int) -> str:
    """Of summaries: whether the judge is shown to order those of the same reviews."""
    within = row.columns.get(WITHIN)
    if within is None or (within.value is not None and within.interval.low is None):
        return ""
    said = "it orders the summaries of the same reviews"
    if not within.above_zero:
        said = f"{said} the wrong way round" if within.below_zero else "not shown to order the summaries of the same reviews"
    return f"within the summaries of the same reviews {shown(within)}{left_out(within, unheard, 'products', 'summary')}: {said}"


def _taste(
    row: Row,
    difference: Difference | None,
    of_all: Difference | None,
    alone: str,
    average: Row | None,
    unheard: int,
    *,
    unknown: str = _NO_OTHERS,
) -> tuple[bool | None, str]:
    """Whether the judge is shown to know what a reader likes, None where that cannot be told; and the sentence.

    Args:
        of_all: the difference that is not shown to be above 0, where the readers whose texts the judge scores all alike count.
        alone: of which texts alone.
        average: the row of the scores that are shown: where a profile holds a reader's other texts, their mean is low where the one left out is high.
        unheard: readers of whom no text was answered.
        unknown: why there is no difference.
    """
    within = row.columns.get(WITHIN)
    if within is None or (within.value is not None and within.interval.low is None):
        return None, ""
    said = f"within each reader {shown(within)}{left_out(within, unheard)}"
    alike = unheard + (within.skipped_reviewers or 0)
    others = max(0, (difference.estimate.skipped_reviewers or 0) - alike) if difference else 0
    whose = "these readers'" if alike + others else "a reader's"
    if within.below_zero:
        too = average is not None and WITHIN in average.columns and average.columns[WITHIN].below_zero
        as_well = ", and so does the average of the profile's scores" if too else ""
        return False, f"{said}: it orders one reader's texts the wrong way round{alone}{as_well}"
    if not within.above_zero:
        return False, f"{said}: not shown to know which texts a reader likes"
    if difference is None:
        return None, f"{said}: whether that is a reader's taste or what most like is not known, {unknown}"
    row_said = "the unpersonalized row" + (", rounded as its answers are" if difference.baseline == ROUNDED_MEAN else "")
    fewer = f" (without {others} more)" if others else ""
    said += f"; minus {row_said}, on the readers whose texts both order{fewer}, {shown(difference.estimate)}"
    if of_all is not None:
        said += f", and {shown(of_all.estimate)} where readers whose texts are not ordered count 0"
    elif difference.estimate.above_zero:
        return True, f"{said}: it orders {whose} texts better than that row does, which knows no reader{alone}"
    return False, f"{said}: not shown to order a reader's texts better than that row does, which knows no reader"


def _surpassed(value: float, rules: Sequence[Difference], rows: Mapping[str, Row]) -> list[str]:
    """The best other baseline, if it beats the judge by what is printed: with its training data no judge is needed."""
    column, known = rules[0].column, {"random", *(PROFILE_AVERAGE if one.baseline == EVENED else one.baseline for one in rules)}
    others = {row.name: row.columns.get(column) for row in rows.values() if not row.judge and row.name not in known}
    found = {
        name: one for name, one in others.items() if one and one.value is not None and round(one.value, 2) > round(value, 2)
    }
    best = max(found, key=lambda name: found[name].value or 0.0, default=None)
    over = " over all readers" if column == COMPARED else ""  # what is said before it may be of each reader
    return [] if best is None else [f"{best}, which needs no judge, has {METRICS[column].title} {shown(found[best])}{over}"]
