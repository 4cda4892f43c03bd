"""Labels read from answers in words: what is one, what is none, and never a different one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perse.questions import QUESTIONS
from perse.questions.base import AnswerLayout

REVIEW_AND_SCORE = [
    ("[Review] Fine.\n[Score] 7", "7", "Fine."),
    ("[Review] Fine. [Score] 7", "7", "Fine."),  # all on one line, as bracketed
    ("**[Review]** Fine.\n\n**[Score]** 7", "7", "Fine."),
    ("**Review:** Fine.\n**Score:** 7", "7", "Fine."),
    ("Here is my review.\n[Review] Two\nlines.\n[Score] 7", "7", "Two lines."),
    ("[Review] 10 coins, 3 ghosts.\n[Score] 7", "7", "10 coins, 3 ghosts."),
    ("[Review] \U0001f600 (sic)\n[Score] 7", "7", "\U0001f600 (sic)"),
    ("[Review] Score of 8 would be too much.\n[Score] 7", "7", "Score of 8 would be too much."),
    ("[Score] 3\n[Review] On second thoughts.\n[Score] 7", "7", "On second thoughts."),  # the last counts
    ("[Score] 7", "7", ""),
    ("[Review] Fine, no more.", None, "Fine, no more."),
    ("[Review] Fine. Score of 8 would be too much.", None, "Fine. Score of 8 would be too much."),
    ("", None, ""),
]

SCORES = {
    **{f"[Score] {n}": str(n) for n in range(1, 11)},
    "[Score]7": "7",
    "[score]: 7": "7",
    "**[Score]** 3": "3",
    "[Score] **3**": "3",
    "[Score: 3]": "3",
    "- Score = 3": "3",
    "Score: 10/10": "10",
    "Score: 7 / 10, gladly": "7",
    "Score: 7 out of 10": "7",
    "[Score] 7.": "7",
    "[Score] 7, and I loved it": "7",
    "[Score] 7 - not bad": "7",
    "[Score] **7** (gladly)": "7",
    "[Score] 7/10 because 8 would be too much": "7",
    "[Score] 7 as I said": None,
    "[Score] 10 as the best, 1 as the worst: 7": None,
    '"Score: 7!"': "7",
    "[Score] 7\n- 3 ghosts": "7",
    "[Score] 7\nOr so I felt.": "7",
    "[Score] 3\n[Score] 8": "8",
    "8": "8",
    " 8\n": "8",
    "**8**": "8",
    "8/10": "8",
    "8 out of 10": "8",
    # Another number begins or ends like a label.
    "[Score] 7.5": None,
    "[Score] 7,5": None,
    "[Score] 0": None,
    "[Score] 11": None,
    "[Score] 100": None,
    "[Score] 010": None,
    "Score: 70": None,
    "Score: 2024": None,
    "Score: 1,000": None,
    "[Score] -3": None,
    "[Score] \u22123": None,
    "[Score] 7%": None,
    "[Score] 7\u00bd": None,
    "[Score] 7 and a half": None,
    "[Score] 8th": None,
    "7.5": None,
    "-3": None,
    "2024": None,
    "10/1": None,
    # Another scale.
    "Score: 3/5": None,
    "Score: 3 out of 5": None,
    "Score: 8/100": None,
    "3/5": None,
    "[Score] 7 (out of 5)": None,
    "[Score] 4 stars (of five)": None,
    "Score: 10/100": None,
    "Score: 1 = bad, 10 = good. I say 7": None,
    "[Score] 1 (lowest) to 10 (highest): 7": None,
    "Score 2: 7": None,
    # More than one.
    "Score (1-10): 7": None,
    "[Score] 7-8": None,
    "[Score] 7 \u2013 8": None,
    "[Score] 7 to 8": None,
    "[Score] 7 or 8": None,
    "[Score] 7, or 8": None,
    "[Score] 7~8": None,
    "[Score] 7 maybe 8": None,
    "[Score] 7. Or 8?": None,
    "7 or 8": None,
    "7 8": None,
    # A sentence, and no label in it.
    "Score of 8 would be too much": None,
    "[Score] 10 would be too high, I say 6": None,
    "I would score it 8": None,
    "Scores: 8": None,
    "In 1984 I gave 8": None,
    "[Score]": None,
    "[Score] seven": None,
    "I cannot answer that.": None,
}

CHOICES = {
    "Plot A": "A",
    "Plot B": "B",
    "**Plot A**": "A",
    "[Plot A]": "A",
    "plot b.": "B",
    "PLOT B!": "B",
    "Plot: B": "B",
    "B": "B",
    "**B**.": "B",
    "(a)": "A",
    "Plot A because Plot B is dull": "A",
    "Plot B, as I said of Plot B.": "B",
    "**Plot A** since it moves": "A",
    "Plot A, because it is not dull.": "A",
    "Plot A - a fine end": "A",
    "Plot A. It is not dull (nor long).": "A",
    "Plot A\nIt is not dull.": "A",
    "Plot A tells of a ferry. Plot B tells of love.\nPlot B": "B",
    "I have read both.\nPlot B": "B",
    "Plot A\nNo:\nPlot B": None,
    "**Plot A**\na ferry\n**Plot B**\nlove\nI prefer A": None,
    "[Plot A] is better than [Plot B]": None,
    "Plot A or Plot B": None,
    "Plot A, or Plot B": None,
    "**Plot A** or **Plot B**": None,
    "Plot A and Plot B are alike": None,
    "Plot A & Plot B": None,
    "Plot A vs. Plot B": None,
    "Plot A/B": None,
    "Plot A / Plot B": None,
    "A/B": None,
    "A or B": None,
    "Plot A (and Plot B)": None,
    "Plot A as well as Plot B": None,
    # Compared, or told: what is preferred takes understanding.
    "Plot A is better than Plot B": None,
    "Plot A is worse than Plot B": None,
    "Plot A isn't as good": None,
    "Plot A would be worse than Plot B": None,
    "Plot A doesn't work as well as Plot B": None,
    "Plot A loses to Plot B": None,
    "Plot A falls short.": None,
    "Plot A is good but Plot B is preferred.": None,
    "Plot A. Plot B is dull.": None,
    "Plot A. As for Plot B, it is better.": None,
    "Plot A tells of a ferry. Plot B tells of love. I prefer Plot B.": None,
    "Plot A's end": None,
    "Plot A?": None,
    "Plot A: fine": None,
    "**Plot A:** a ferry is lost\n**Plot B:** a ferry is found": None,
    "Plot Bravo": None,
    "Plot C": None,
    "Plot": None,
    "Both": None,
    "A ghost sells tickets": None,
    "Neither Plot A nor Plot B": None,
    "Would I prefer Plot A?": None,
    "": None,
}


def read(question: str, answer: str) -> tuple[str | None, str]:
    return QUESTIONS[question].layout.read(answer, QUESTIONS[question].scale)


@pytest.mark.parametrize(("answer", "label", "free"), REVIEW_AND_SCORE)
def test_a_review_and_a_score_are_read_apart(answer: str, label: str | None, free: str) -> None:
    assert read("pointwise", answer) == (label, free)


@pytest.mark.parametrize(("answer", "label"), SCORES.items())
@pytest.mark.parametrize("question", ["pointwise", "pointwise_score"])
def test_a_score_is_read_or_nothing_is(question: str, answer: str, label: str | None) -> None:
    assert read(question, answer)[0] == label


@pytest.mark.parametrize(("answer", "label"), CHOICES.items())
def test_a_choice_is_read_or_nothing_is(answer: str, label: str | None) -> None:
    assert read("pairwise", answer)[0] == label


one_line = st.text(st.characters(blacklist_characters="\n", blacklist_categories=("Cs",)), max_size=80)
tempting = st.lists(
    st.sampled_from(["Score", "[Review]", "7", "10", "1", "Plot A", "Plot", "B", ":", "/10", "-", ".5", "or", "is not", " "])
).map(" ".join)


@pytest.mark.parametrize("question", QUESTIONS)
@given(free=one_line | tempting, data=st.data())
def test_what_is_laid_out_is_read_back(question: str, free: str, data: st.DataObject) -> None:
    layout, labels = QUESTIONS[question].layout, QUESTIONS[question].scale.labels
    label = data.draw(st.sampled_from(labels))
    assert read(question, "".join(layout.completion(label, free)))[0] == label
    assert read(question, "".join(layout.completion(label, free)).lower())[0] == label


@given(free=st.text(st.characters(categories=("Lu", "Ll", "Nd", "So"), include_characters=" .,!?'-"), max_size=80))
def test_the_review_is_read_back_whole(free: str) -> None:
    """But for white space; and but for a colon or a star at its beginning, which would belong to the heading."""
    assert read("pointwise", "".join(QUESTIONS["pointwise"].layout.completion("7", free))) == ("7", " ".join(free.split()))


@given(number=st.integers(-10_000, 10_000) | st.decimals(-100, 100, places=2))
def test_no_other_number_is_read_as_a_score(number: object) -> None:
    label = str(number) if str(number) in QUESTIONS["pointwise"].scale.labels else None
    for answer in (f"[Score] {number}", f"Score: {number}", f"[Review] Fine.\n[Score] {number}/10", str(number)):
        assert read("pointwise", answer)[0] == label


@given(first=st.sampled_from(QUESTIONS["pointwise"].scale.labels), second=st.sampled_from(QUESTIONS["pointwise"].scale.labels))
def test_two_scores_on_a_line_are_none(first: str, second: str) -> None:
    for between in (
        "-",
        " - ",
        " or ",
        ", or ",
        " to ",
        " and ",
        "~",
        " maybe ",
        ": ",
        ". No, ",
        " (not ",
        " is too high, I say ",
    ):
        assert read("pointwise_score", f"[Score] {first}{between}{second}")[0] is None


@given(answer=st.text(st.characters(categories=("Ll", "Lu"), include_characters=" \n.,[]"), max_size=120))
def test_without_a_digit_there_is_no_score(answer: str) -> None:
    assert read("pointwise", answer)[0] is None


def test_a_review_in_json_keeps_its_letters_and_is_read_back_as_it_was() -> None:
    layout = AnswerLayout('{"Review":', '"Score": ', closing="}", keys=("Review", "Score"))
    free = 'Schön, "ja" 🎭\nund mehr'
    line = layout.free_line(free)
    assert line == '{"Review": "Schön, \\"ja\\" 🎭\\nund mehr",\n'
    assert layout.free_text(line.removeprefix('{"Review":') + '"Score": 7}') == free
    assert layout.completion("7", free) == (line, '"Score": 7}') and layout.surroundings == len('{"Review":"Score": }')
    plain = AnswerLayout("[Review]", "[Score] ")
    assert plain.free_line("Schön ") == "[Review] Schön\n" and plain.surroundings == 0
