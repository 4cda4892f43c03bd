"""The first picture of a report: sources alone, together, and with each judge."""

from __future__ import annotations

from test_summary import answer, texts, varied

from perse.evaluation.alignment import Fold
from perse.evaluation.evaluate import evaluate_many
from perse.evaluation.stacking.adding import NEW, SEEN
from perse.evaluation.stacking.knowing import TOGETHER, Knowledge, KnownRow
from perse.reporting.knowledge_figures import knowledge_figures
from perse.reporting.summary import sections
from perse.results.result import Estimate, Interval


def told(value: float) -> Estimate:
    return Estimate(value=value, interval=Interval(low=round(value - 0.1, 2), high=round(value + 0.1, 2)), items=90)


def known(kind: str, *, others: Estimate | None) -> Knowledge:
    rows = (
        KnownRow("the reader's own scores", None, told(0.1)),
        KnownRow(
            "other readers' scores of the text", None, others, "" if others else "training readers scored none of these texts"
        ),
        KnownRow("user+item bias", None, told(0.3)),
        KnownRow("the words of the text", None, told(0.2)),
        KnownRow(TOGETHER, None, told(0.35)),
        KnownRow("tuned", "tuned", told(0.15)),
        KnownRow("tuned, with these", "tuned", told(0.42)),
    )
    return Knowledge(kind, rows, 90, 30)


def test_texts_that_training_readers_scored_and_others_are_two_figures() -> None:
    seen, new = knowledge_figures([known(SEEN, others=told(0.3)), known(NEW, others=None)], ["tuned"])
    assert (seen.name, new.name) == ("knows-seen", "knows-new")
    assert seen.title == "What knows what: texts that training readers scored (90 examples, of 30 readers)"
    assert new.rows[1] == (
        "other readers' scores of the text",
        None,
        None,
        None,
        None,
        None,
        "training readers scored none of these texts",
    )
    assert seen.rows[-1] == ("tuned, with these", "tuned", 0.42, 0.32, 0.52, 90, None)


def test_what_cannot_be_seen_is_told_of_the_numbers_together_and_the_judges_first() -> None:
    [figure] = knowledge_figures([known(SEEN, others=told(0.3))], ["tuned"])
    assert figure.alt.startswith(
        "Kendall tau-b of what is fitted on each, of texts that training readers scored: all of these together 0.35 [0.25, 0.45]; tuned 0.15 [0.05, 0.25]; "
        "tuned, with these 0.42 [0.32, 0.52]"
    )


def test_without_enough_readers_the_figure_says_why() -> None:
    [figure] = knowledge_figures("4 readers are too few to fit on", ["tuned"])
    assert figure.alt == "Nothing to draw: 4 readers are too few to fit on." and figure.rows == ()


def test_what_knows_what_is_the_first_part_of_a_page() -> None:
    examples = texts(varied)
    evaluation = evaluate_many({"tuned": [answer(one, "7") for one in examples]}, [Fold(examples, None)], resamples=100)
    figures = knowledge_figures([known(SEEN, others=told(0.3)), known(NEW, others=None)], ["tuned"])
    first, second, *_ = sections(evaluation, figures, known=["3 readers are left out"])
    assert (first.name, second.name) == ("knows", "numbers") and first.notes == ("3 readers are left out",)
    assert (
        "around 0 or just below, or, where many readers share few texts, above. Intervals take what was fitted as it is, so one"
        in first.lead
    )
    assert first.figures == tuple(figures) and second.figures == ()
    assert sections(evaluation, [])[0].name == "numbers"
    main, empty, *_ = sections(evaluation, knowledge_figures("4 readers are too few to fit on", ["tuned"]))
    assert (main.name, empty.name, empty.lead) == ("numbers", "knows", "")
