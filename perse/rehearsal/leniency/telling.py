"""A judge's leniency as a `Result`, and as the sentence that is said before its scores."""

from __future__ import annotations

from perse.rehearsal.judging import Aspect
from perse.rehearsal.leniency.measuring import GRADE, Leniency, OfQuestion
from perse.rehearsal.settings import WIDE
from perse.results.result import Result, Table
from perse.results.words import ABSENT, shown

REHEARSAL_LENIENCY = "rehearsal-leniency"

TITLES: dict[Aspect, str] = {"coverage": "aspect coverage", "sentiment": "sentiment consistency"}

DIGITS = 1

CONVENTION = 5.0
"""Points. What a grade of 1 to 5 is worth from 0 to 100 is agreed on, not measured: other readings of the scales' words move a judge that says what people
say by so much (with SummEval-OP's grades from -5.1 to +2.9), so less is no leniency."""


def leniency_result(found: Leniency) -> Result:
    """Everything that is known of it."""
    return Result(
        name=REHEARSAL_LENIENCY,
        asks="How much more does a judge give a summary than people do?",
        answer=finding(found),
        tables=(_beside_people(found), _order(found), _grades(found)),
        notes=notes(found),
        details={"judge": found.judge, "products": found.products, "summaries": found.summaries, "finding": finding(found)},
    )


def finding(found: Leniency) -> str:
    """In two sentences, and a third of what the worst and the best summaries get: a judge that gives all the same is strict with one and lenient with
    the other, whatever it is on average."""
    told = ", and ".join(_words(one) for one in found.questions)
    others = " and ".join(_of_others(one) for one in found.questions if one.unrelated.value is not None).removesuffix(",")
    of_others = f" To summaries with another product's reviews it gives {others}." if others else ""
    products = f"{_scored(found)} of {found.products} {'product' if found.products == 1 else 'products'}"
    ends = "; ".join(filter(None, map(_ends, found.questions)))
    return f"{found.judge} {told}, over {products} that people graded.{of_others}{f' {ends[0].upper()}{ends[1:]}.' if ends else ''}{_turned(found)}"


def _scored(found: Leniency) -> str:
    """Over how many summaries: by question, where a judge that answered both answered them of different ones."""
    some = [one for one in found.questions if one.answered]
    if len({one.answered for one in some}) > 1:
        first, *others = ((_of_all(one.answered, found.summaries), TITLES[one.aspect]) for one in some)
        return (
            " and ".join((f"{first[0]} summaries for {first[1]}", *(f"{number} for {title}" for number, title in others))) + ","
        )
    return f"{_of_all(some[0].answered if some else found.summaries, found.summaries)} summaries"


def _of_all(number: int, summaries: int) -> str:
    return f"{number}" if number == summaries else f"{number} of {summaries}"


def _turned(found: Leniency) -> str:
    """Which order of a product's summaries is shown to be the contrary of people's; a sentence, or nothing."""
    turned = [f"{TITLES[one.aspect]} (Kendall tau-b {shown(one.kendall)})" for one in found.questions if one.kendall.below_zero]
    return f" It orders a product's summaries the wrong way round by {' and '.join(turned)}." if turned else ""


def unknown(judge: str) -> str:
    """What is said of scores by a judge whose leniency nobody measured."""
    return (
        f"How lenient {judge} is with summaries is not known, so its scores are no grades: `perse rehearsal leniency DATA --judge JUDGE --out "
        "FOLDER` holds it against people, and --leniency FOLDER says here what was found."
    )


def _words(one: OfQuestion) -> str:
    value, title = one.difference.value, TITLES[one.aspect]
    if value is None:
        return f"gave no score for {title}"
    away = one.difference.model_copy(update={"difference": False})
    low, high = one.difference.interval.low, one.difference.interval.high
    if low is not None and low > CONVENTION:
        return f"is lenient with {title}, by {shown(away, digits=DIGITS)} points of 100"
    if high is not None and high < -CONVENTION:
        return f"is strict with {title}, by {shown(away.turned, digits=DIGITS)} points of 100"
    return f"is not shown to be lenient or strict with {title} ({shown(one.difference, digits=DIGITS)} points of 100)"


def _of_others(one: OfQuestion) -> str:
    told = f"{shown(one.unrelated, digits=DIGITS)} for {TITLES[one.aspect]}"
    return told if one.apart.above_zero else f"{told}, not shown to be less than the same get with their own product's reviews,"


def _ends(one: OfQuestion) -> str:
    """What the summaries of the lowest and the highest grade get, and how few these are; empty where all have one grade. Their intervals stand in the table by
    grade."""
    if len(one.grades) < 2:
        return ""
    worst, best = one.grades[0], one.grades[-1]
    return (
        f"for {TITLES[one.aspect]} it gives {worst.judge.value:.{DIGITS}f} where people's mean grade is nearest to {worst.grade} ({_number(worst.summaries)}), and "
        f"{best.judge.value:.{DIGITS}f} where it is nearest to {best.grade} ({_number(best.summaries)})"
    )


def _number(summaries: int) -> str:
    return "1 summary" if summaries == 1 else f"{summaries} summaries"


def notes(found: Leniency) -> tuple[str, ...]:
    """What the numbers rest on."""
    missing = [
        f"no score for {TITLES[one.aspect]} of {found.summaries - one.answered} of {found.summaries} summaries, which are left out"
        for one in found.questions
        if one.answered < found.summaries
    ]
    return (
        f"people's grades of 1 to 5 are means of several people, brought to 0 to 100: 1 is 0, 5 is 100{'; so is what the judge gave, which was asked for 1 to 5' if found.labels != WIDE else ''}",
        f"lenient and strict are said of intervals that lie beyond {CONVENTION:g} points: less comes of how grades are brought to the scale. A judge that is "
        "neither may order summaries badly: see its order",
        f"95% intervals: products are drawn anew with their summaries, {found.resamples:,} resamples, seed {found.seed}",
        "found of these reviews and summaries: of other kinds, lengths and languages it says nothing",
        *missing,
    )


def _beside_people(found: Leniency) -> Table:
    return Table(
        title="The judge beside people, points of 100",
        header=(
            "question",
            "people",
            "judge",
            "judge minus people",
            "with another product's reviews",
            "own reviews minus another's",
        ),
        rows=tuple(
            (
                TITLES[one.aspect],
                f"{one.people:.{DIGITS}f}" if one.answered else ABSENT,
                one.own,
                one.difference,
                one.unrelated,
                one.apart,
            )
            for one in found.questions
        ),
        notes=(
            "own reviews minus another's: each summary that was shown with another product's reviews, too, is held against itself; the difference to "
            "'judge' is something else, since that is of all summaries",
            f"a grade of 1 to 5 is {GRADE:g} points wide",
        ),
        digits=DIGITS,
    )


def _order(found: Leniency) -> Table:
    return Table(
        title="How many it scores higher than people, and whether it has people's order within a product",
        header=("question", "share scored higher", "Kendall tau-b", "Spearman"),
        rows=tuple((TITLES[one.aspect], one.higher, one.kendall, one.spearman) for one in found.questions),
        digits=2,
    )


def _grades(found: Leniency) -> Table:
    return Table(
        title="By people's grade",
        header=("question", "people's grade", "summaries", "people", "judge"),
        rows=tuple(
            (TITLES[one.aspect], str(each.grade), str(each.summaries), f"{each.people:.{DIGITS}f}", each.judge)
            for one in found.questions
            for each in one.grades
        ),
        notes=("people's grade: to which of 1 to 5 the mean of a summary's grades is nearest, halves up",),
        digits=DIGITS,
    )
