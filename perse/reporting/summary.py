"""An evaluation on the page: verdicts in plain words, cautions, tables and plots under headings.

A reader who knows nothing of the project must be able to tell from the first screen whether to use the judge. So the verdict
stands first, says what it is measured against, and is followed by the limits of the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perse.drawing.figure import Figure
from perse.evaluation.stats.departures import departing
from perse.evaluation.stats.intervals import FEWEST_REVIEWERS
from perse.evaluation.stats.results import Conclusion, Evaluation
from perse.evaluation.telling import evaluation_tables
from perse.evaluation.verdict import CHANCE, ON_THESE_TEXTS, PROFILE_AVERAGE, WITHIN, answering, in_words, shown
from perse.records import SummaryExample
from perse.reporting.collapse import commonest, is_collapsed, nearest
from perse.reporting.page import Section, Standing, Verdict
from perse.reporting.report_data import RunData
from perse.results.result import Table
from perse.results.words import in_percent

FEW = 50
"""With fewer readers the page says that they are few."""
STEADY = 0.5
"""Share of pairs with the same choice in both orders below which a judge is called dependent on the order."""
_MEASURES = {
    "pointwise": "How well it puts texts in the readers' order (1: exactly, 0: not at all; in brackets how sure that is; "
    "within each reader: of one reader's texts at a time):",
    "pairwise": "In which share of pairs it chose as the reader did (in brackets how sure that is):",
}
_ADVICE: Mapping[Standing, str] = {
    "better": "So it is ahead of the rules that it is said to be better than; the tables below say by how much, for whom, and which other rules "
    "there are.",
    "unclear": "On these items it may be no better than a rule which does not read the text. Do not rely on it before more readers "
    "or a better judge have settled it.",
    "worse": "A rule which does not read the text does better. Do not use the judge as it stands.",
    "undefined": "Judge more items of more readers, whose answers differ.",
    "collapsed": "It cannot tell texts apart. Do not use it: look at the samples for what it writes, and at its training or "
    "its prompt for why.",
    "silent": "Nothing can be said of it. The failures below say what went wrong; mend that and score again.",
}
_ONLY_POOLED = (
    "It puts the texts of all readers together in a better order than the rules that it is said to be better than. That may be knowing who is a "
    "lenient reader, or which texts most people like: it is not shown to know what this reader likes."
)
_FARTHER_OFF = (
    "So it is ahead, by order, of the rules that it is said to be better than; as numbers its scores are farther off than {average}: order texts by them, and "
    "do not take them for the score that a reader would give."
)
_TURNED = (
    "It puts the texts of all readers together in a better order than the rules that it is said to be better than, and those of one reader the wrong way "
    "round: what it has is who is a lenient reader. Do not order one reader's texts by it."
)
_WITHIN_ONLY = (
    "Over all readers together {rule}. Within one reader's texts the judge is ahead of the unpersonalized row: look whether another row that costs "
    "nothing is as far ahead there before you use it for that, and do not compare readers by it."
)
_WITHIN_UNKNOWN = (
    "Over all readers together {rule}. One reader's texts the judge is shown to put in that reader's order: look whether a row that costs nothing does, "
    "too, before you use it for that, and do not compare readers by it."
)
_WITHIN_REVIEWS = (
    "Over all summaries together {rule}. Those of the same reviews the judge is shown to put in people's order: look whether a row that costs nothing "
    "does, too, before you use it for that, and do not compare summaries of different reviews by it."
)
_RULE = "a rule which does not read the text may do as well or better"
_AVERAGE = f"{_RULE}, since it knows who is lenient"
_BY_CHANCE = "chance may do as well or better"
_CHANCE = f"{_BY_CHANCE}: the judge may be wrong about who is lenient"


@dataclass(frozen=True)
class _Heading:
    name: str
    title: str
    lead: str
    sheets: tuple[str, ...]
    """Beginnings of the titles of its tables."""
    figures: tuple[str, ...]
    """Beginnings of the names of its plots."""


_HEADINGS = (
    _Heading(
        "answers",
        "What it answers",
        "Does it use the scale as the readers do, or say nearly the same of everything?",
        ("True answer",),
        ("scores", "confusion", "order-gap"),
    ),
    _Heading(
        "sureness",
        "Does it know when it is right?",
        "A judge can be used for more than its average error tells if its probabilities come true.",
        (),
        ("calibration", "reliability", "risk-coverage"),
    ),
    _Heading("readers", "For whom does it work?", "", ("Accuracy by aspect",), ("reviewers", "within-reviewers", "aspects")),
    _Heading("training", "Training", "How the judge was trained, from its own log.", (), ("training",)),
    _Heading(
        "coverage",
        "Coverage and failures",
        "What was asked and what came of it. A judge that often fails is not better for the items it did answer.",
        ("Judgements", "Tokens and cost"),
        ("failures", "tokens"),
    ),
)
_KNOWS = _Heading(
    "knows",
    "What knows what?",
    "Each source alone, all that cost nothing together, and the same with each judge; each fitted on other readers than it is shown for. A judge "
    "is worth what it adds to the row of the numbers together: perse fit says how much that is, with the interval of the difference. What knows "
    "nothing lies around 0 or just below, or, where many readers share few texts, above. Intervals take what was fitted as it is, so one that lies just off 0 says little.",
    (),
    ("knows",),
)
_NUMBERS = _Heading(
    "numbers", "How good is it?", "Judges beside simple rules, on the same items, with 95% intervals in brackets.", (), ()
)


def verdicts(evaluation: Evaluation, runs: Mapping[str, RunData]) -> tuple[Verdict, ...]:
    """One for each judge, in their order."""
    rows = {difference.judge: difference.row for difference in evaluation.differences}
    found = []
    for concluded in evaluation.conclusions:
        name, summary, run = concluded.judge, evaluation.judges[concluded.judge], runs[concluded.judge]
        standing: Standing = "collapsed" if concluded.standing != "silent" and _says_one_thing(run) else concluded.standing
        only_pooled = standing == "better" and concluded.taste is False
        said = concluded.words.removeprefix(f"{name}: ")
        said = "" if standing == "silent" else f"{_MEASURES[evaluation.kind]} {said}."
        turned = _shown_within(evaluation, rows.get(name)) < 0
        average = in_words(PROFILE_AVERAGE, own_scores=evaluation.own_scores)
        ahead = _FARTHER_OFF.format(average=average) if standing == "better" and concluded.farther_off else _ADVICE[standing]
        advice = (_TURNED if turned else _ONLY_POOLED) if only_pooled else ahead
        if standing in ("unclear", "worse") and concluded.taste is not False and _shown_within(evaluation, rows.get(name)) > 0:
            advice = _within(concluded, own_scores=evaluation.own_scores, of_summaries=run.kind == SummaryExample.kind)
        if standing == "undefined" and evaluation.ok_items < summary.ok:
            advice += f" Of the {summary.ok:,} that it answered {evaluation.ok_items:,} are compared, which {answering(evaluation.judges)} answered: a report of it alone has more."
        coverage = (
            f"It answered {summary.ok:,} of {summary.asked:,} questions ({in_percent(summary.ok / summary.asked, digits=1)})."
        )
        but = ", and orders one reader's texts the wrong way round" if turned else ", not shown to know what a reader likes"
        headline = _headline(standing, concluded, own_scores=evaluation.own_scores) + (but if only_pooled else "")
        sentences = (said, advice, coverage, _spread(run), _steadiness(evaluation, rows.get(name)))
        found.append(Verdict(name, standing, headline, tuple(filter(None, sentences))))
    return tuple(found)


def cautions(evaluation: Evaluation, *, contamination: bool) -> tuple[str, ...]:
    """Cautions about the numbers; `contamination` says that a study of it is on the page."""
    said = []
    if evaluation.reviewers < FEW:
        said.append(f"There are only {evaluation.reviewers} readers; others may differ more than these do.")
    if evaluation.without_reference:
        left = f"{evaluation.without_reference:,} of {evaluation.examples:,} samples"
        said.append(f"{left} are not in the numbers, since what the reader really said is not known.")
    said += [f"{note[:1].upper()}{note[1:]}." for note in evaluation.notes]
    said.append("The numbers are of these readers and these texts. Other readers, kinds of text or languages may give others.")
    tested = (
        "of the model that it asked, the study of contamination below tells more"
        if contamination
        else "this page did not test that"
    )
    said.append(f"The model may have read these texts, or reviews of them, when it was made; {tested}.")
    return tuple(said)


def sections(evaluation: Evaluation, figures: Sequence[Figure], *, known: Sequence[str] = ()) -> tuple[Section, ...]:
    """All tables and plots, each under its heading; headings with nothing under them are left out."""
    # `cautions`, at the top of the page, are not repeated under the table.
    tables = evaluation_tables(evaluation.model_copy(update={"notes": (), "without_reference": 0}))
    taken = {prefix for heading in _HEADINGS for prefix in heading.sheets}
    drawn = {prefix for heading in (_KNOWS, *_HEADINGS) for prefix in heading.figures}
    main = _section(
        _NUMBERS,
        [sheet for sheet in tables if not sheet.title.startswith(tuple(taken))],
        [figure for figure in figures if not figure.name.startswith(tuple(drawn))],
    )
    others = [
        _section(
            heading,
            [sheet for sheet in tables if sheet.title.startswith(heading.sheets)],
            [figure for figure in figures if figure.name.startswith(heading.figures)],
        )
        for heading in _HEADINGS
    ]
    drawn_of = [figure for figure in figures if figure.name.startswith(_KNOWS.figures)]
    knows = replace(_section(_KNOWS, [], drawn_of), notes=tuple(known))
    # A figure without rows says why there is nothing to draw, which is no first thing to read.
    first = (knows, main) if any(figure.rows for figure in drawn_of) else (main, replace(knows, lead=""))
    return tuple(part for part in (*first, *others) if part is main or part.tables or part.finer or part.figures)


def _section(heading: _Heading, tables: Sequence[Table], figures: Sequence[Figure]) -> Section:
    # Only the main section folds its details.
    folded = [sheet for sheet in tables if sheet.detail and heading is _NUMBERS]
    unfolded = [sheet for sheet in tables if sheet not in folded]
    return Section(
        heading.name,
        heading.title,
        lead=heading.lead,
        tables=tuple(unfolded),
        finer=tuple(folded),
        figures=tuple(figures),
    )


def _says_one_thing(run: RunData) -> bool:
    """Whether all scores are equal although the readers' are not: of at least 10 readers, to 10 of whose texts the readers give other scores.
    Not for pairs, where a constant choice still has an accuracy."""
    given, gold, readers = run.expected[run.known], run.gold[run.known], run.reviewer[run.known]
    if run.kind == "pairwise" or len(np.unique(readers)) < FEWEST_REVIEWERS:
        return False
    others = departing(gold)
    telling = len(gold) if others is None else int(others.sum())
    return bool(np.ptp(given) < 1e-9 and telling >= FEWEST_REVIEWERS)


def _shown_within(evaluation: Evaluation, row: str | None) -> int:
    """How a judge is shown to order one reader's texts: 1, as the reader does; -1, the wrong way round; 0, neither is shown."""
    found = next((one.columns[WITHIN] for one in evaluation.rows if one.name == row and WITHIN in one.columns), None)
    return 0 if found is None else int(found.above_zero) - int(found.below_zero)


def _within(concluded: Conclusion, *, own_scores: bool, of_summaries: bool) -> str:
    """Of a judge that is shown to know an order within readers, or within the summaries of the same reviews, and not over all."""
    by_chance = concluded.against == CHANCE
    if of_summaries:  # people graded them: nobody is lenient
        return _WITHIN_REVIEWS.format(rule=_BY_CHANCE if by_chance else _RULE)
    within = _WITHIN_ONLY if concluded.taste else _WITHIN_UNKNOWN
    return within.format(rule=_CHANCE if by_chance else _AVERAGE if own_scores else _RULE)


def _headline(standing: Standing, concluded: Conclusion, *, own_scores: bool) -> str:
    against = in_words(concluded.against or "", own_scores=own_scores)
    alone = ON_THESE_TEXTS if ON_THESE_TEXTS in concluded.words else ""
    return {
        "better": f"better than {against}{alone}" + (", by order; its scores are farther off" if concluded.farther_off else ""),
        "unclear": f"not shown to be better than {against}",
        "worse": f"worse than {against}{alone}",
        "undefined": "too little is known for a verdict",
        "collapsed": "gives the same answer to everything",
        "silent": "answered nothing",
    }[standing]


def _spread(run: RunData) -> str:
    """Whether it finds one answer likeliest of everything, and how often the readers give that to the same texts."""
    rows = run.known & ~np.isnan(run.likeliest)
    given, gold = run.likeliest[rows], run.gold[rows]
    even = (
        f"Of {in_percent(float(run.evened.sum() / run.ok.sum()), digits=1)} of the pairs{' that it answered' if run.unanswered else ''} it finds neither text likelier."
        if run.evened.any()
        else ""
    )
    if not len(given):
        return even
    shares, readers = (np.bincount(nearest(one, run), minlength=len(run.labels)) / len(given) for one in (given, gold))
    most = int(shares.argmax())
    gave = "the readers gave it" if run.on_labels or run.kind == "pairwise" else "it is nearest to the true score"
    of = "" if not (even or run.unanswered) else " of them" if even else " of what it answered"
    said = f"the answer that it most often finds likeliest, {commonest(shares, run.labels)}, is so in {in_percent(shares[most])}; {gave} in {in_percent(readers[most])}{of}."
    if is_collapsed(run, run.likeliest):
        return f"{even} Collapsed: nearly one answer for everything{' else' if even else ''}: {said}".strip()
    if even:
        return f"{even} Of the others {said}"
    return said[:1].upper() + said[1:]


def _steadiness(evaluation: Evaluation, judged: str | None) -> str:
    """Pairs: whether it chooses by the texts or by their order."""
    row = next((row for row in evaluation.rows if row.name == judged), None)
    same = row and row.columns.get("order_consistency")
    if not same or same.value is None:
        return ""
    said = f"asked again with the two texts swapped, it chose the same text in {shown(same)} of the pairs that it answered in both orders ({same.items:,})."
    bound = same.interval.high is not None and same.interval.high < STEADY
    return f"Bound to the order: {said}" if bound else said[:1].upper() + said[1:]
