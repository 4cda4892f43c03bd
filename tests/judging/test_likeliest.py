"""Distributions from the likeliest tokens that a server tells: right where the list has enough, none where it has not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from builders import pairwise_examples, pointwise_examples

from perse import Judge
from perse.answering.likeliest import Likeliest, likeliest_labels
from perse.engines.base import Capabilities, Failure, Reply, Sampling, Told, Turns
from perse.engines.replies import told_of
from perse.judgement import Tokens
from perse.questions import QUESTIONS
from perse.rendering.prompt import TextRenderer
from perse.scale import HUNDREDS, SCORES, YES_NO, Scale

STEM = (Told("[", (("[", 0.0),)), Told("Score", (("Score", 0.0),)), Told("]", (("]", 0.0),)))


def told(token: str, likeliest: Mapping[str, float]) -> Told:
    return Told(token, tuple((name, math.log(p)) for name, p in likeliest.items()))


def read(*steps: Told, scale: Scale = SCORES, stem: Sequence[Told] = STEM) -> Likeliest:
    text = "".join(one.token for one in (*stem, *steps))
    place = len("".join(one.token for one in stem)) + len(steps[0].token) - len(steps[0].token.lstrip())
    found = likeliest_labels((*stem, *steps), text, place, scale)
    assert found is not None
    return found


ALL = {" 7": 0.5, " 8": 0.2, " 1": 0.1, " 10": 0.05} | {f" {n}": 0.02 for n in (2, 3, 4, 5, 6, 9)}


def test_every_label_among_the_likeliest_gives_the_whole_distribution() -> None:
    found = read(told(" 7", ALL))
    assert found.mass == pytest.approx(0.97) and found.probabilities is not None
    expected = [ALL[f" {label}"] / 0.97 for label in SCORES.labels]
    assert found.probabilities == pytest.approx(expected)


def test_a_label_with_and_without_a_space_before_it_is_one() -> None:
    found = read(told(" 7", ALL | {"7": 0.02}))
    assert found.probabilities is not None and found.probabilities[6] == pytest.approx(0.52 / 0.99)


def test_labels_that_the_list_lacks_are_not_nothing_but_not_known() -> None:
    found = read(told(" 7", {" 7": 0.6, " 8": 0.2, " 9": 0.05}))
    assert found.probabilities is None
    assert found.mass == pytest.approx(0.85)  # a lower bound


def test_a_rare_token_that_was_written_says_nothing_of_those_that_were_not() -> None:
    listed = {" 8": 0.5, " 7": 0.3, " 6": 0.1, " 5": 0.03, " 4": 0.03}
    [step] = told_of(answered("9", 2e-5, {token.strip(): p for token, p in listed.items()}))
    assert step.most_unlisted == pytest.approx(math.log(0.03))
    found = read(step, stem=SPACE)
    assert found.probabilities is None and found.mass == pytest.approx(0.96, abs=1e-3)


def test_ten_may_be_one_token_although_one_was_written() -> None:
    listed = {str(n): 0.1 for n in range(1, 10)} | {"\n": 0.03}
    assert read(told("1", listed), told("\n", {"\n": 1.0}), stem=SPACE).probabilities is None
    known = read(told("1", listed | {"10": 0.07}), told("\n", {"\n": 1.0}), stem=SPACE)
    assert known.probabilities is not None and known.probabilities[9] == pytest.approx(0.07 / 0.97)


def answered(token: str, own: float, likeliest: Mapping[str, float]) -> Any:
    """A choice of the OpenAI API with one token."""
    top = [SimpleNamespace(token=name, logprob=math.log(p)) for name, p in likeliest.items()]
    step = SimpleNamespace(token=token, logprob=math.log(own), top_logprobs=top)
    return SimpleNamespace(logprobs=SimpleNamespace(content=[step]))


def test_labels_that_can_have_next_to_nothing_are_nothing() -> None:
    found = read(told(" yes", {" yes": 0.9, " maybe": 0.0995, " perhaps": 0.0004}), scale=YES_NO)
    assert found.probabilities == (1.0, 0.0) and found.mass == pytest.approx(0.9)


def test_thoughts_that_a_server_tells_before_the_answer_are_not_taken_for_it() -> None:
    thoughts = [
        told("They", {"They": 1.0}),
        told(" gave", {" gave": 1.0}),
        told("7", {"7": 0.5, "2": 0.5}),
        told(".", {".": 1.0}),
    ]
    alone = {str(n): 0.01 for n in range(1, 10)} | {"7": 0.9, "10": 0.01}
    found = likeliest_labels([*thoughts, told("7", alone)], "7", 0, SCORES)
    assert found is not None and found.probabilities is not None and found.probabilities[6] == pytest.approx(0.9 / 0.99)


SPLIT = {"7": 0.5, "8": 0.2, "1": 0.12} | {str(n): 0.03 for n in (2, 3, 4, 5, 6, 9)}
SPACE = (*STEM, told(" ", {" ": 1.0}))


def test_ten_is_not_one_where_a_tokenizer_writes_it_as_two() -> None:
    found = read(told("1", SPLIT), told("0", {"0": 0.25, "\n": 0.75}), stem=SPACE)
    assert found.probabilities is not None and found.mass == pytest.approx(1.0)
    assert found.probabilities[0] == pytest.approx(0.09) and found.probabilities[9] == pytest.approx(0.03)
    one = read(told("1", SPLIT), told("\n", {"0": 0.25, "\n": 0.75}), stem=SPACE)
    assert one.probabilities == pytest.approx(found.probabilities)


def test_a_one_that_may_go_on_to_ten_is_not_taken_for_a_one() -> None:
    assert read(told("7", SPLIT), stem=SPACE).probabilities is None
    assert read(told("1", SPLIT), stem=SPACE).probabilities is None  # nothing is told of what would have come next
    rare = SPLIT | {"1": 0.0005, "7": 0.6195}
    found = read(told("7", rare), stem=SPACE)
    assert found.probabilities is not None and found.probabilities[6] == pytest.approx(0.6195)


def test_a_label_of_three_tokens_is_read_to_its_end() -> None:
    first = {"1": 0.4, "2": 0.1, "4": 0.1, "6": 0.1, "8": 0.1, "0": 0.2}
    found = read(told("1", first), told("0", {"0": 1.0}), told("0", {"0": 0.9, "\n": 0.1}), scale=HUNDREDS, stem=SPACE)
    assert found.probabilities is None  # the 2 may go on to 20, and the 20 to anything
    sure = {"1": 0.8, "0": 0.2}
    found = read(told("1", sure), told("0", {"0": 1.0}), told("0", {"0": 1.0}), scale=HUNDREDS, stem=SPACE)
    assert found.probabilities == pytest.approx((0.2, 0, 0, 0, 0, 0.8))


def test_tokens_that_are_not_those_of_the_text_tell_nothing() -> None:
    assert likeliest_labels(STEM, "[Score] 7", 8, SCORES) is None
    assert likeliest_labels((*STEM, told(" 7", ALL)), "[Mark] 7", 7, SCORES) is None


class Telling:
    """A chat engine that writes what it was given, with the likeliest tokens where these are asked for."""

    capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False)

    def __init__(self, *replies: tuple[Told, ...]) -> None:
        self.settings = {"likeliest": "20"}
        self.replies = list(replies)

    def chat(self, messages: Sequence[str | Turns], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply | Failure]:
        said = [self.replies.pop(0) for _ in messages]
        return [
            Reply(
                "".join(one.token for one in some),
                "stop",
                Tokens(prompt=9, cached=0, generated=9),
                told=some if sampling.likeliest else (),
            )
            for some in said
        ]


def test_a_judgement_says_that_its_probabilities_are_from_the_likeliest_tokens() -> None:
    engine = Telling((*STEM, told(" 7", ALL)), (*STEM, told(" 7", {" 7": 0.6, " 8": 0.2})))
    judge = Judge(engine, TextRenderer(), name="m")
    assert "distributions from the 20 likeliest tokens alone (exact: false" in judge.without_distributions
    whole, lacking = judge.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 2))
    assert (whole.label, whole.exact) == ("7", False) and whole.distribution is not None
    assert whole.distribution["10"] == pytest.approx(0.05 / 0.97) and whole.mass == pytest.approx(0.97)
    assert whole.expected == pytest.approx(sum(int(label) * p for label, p in whole.distribution.items()))
    assert (lacking.label, lacking.exact, lacking.distribution, lacking.expected) == ("7", False, None, None)
    assert lacking.mass == pytest.approx(0.8)


def test_of_a_pair_the_two_orders_are_averaged() -> None:
    def answer(a: float) -> tuple[Told, ...]:
        return (Told("Plot", (("Plot", 0.0),)), told(" A", {" A": a, " B": 1 - a}))

    engine = Telling(answer(0.8), answer(0.4))
    [judgement] = Judge(engine, TextRenderer(), name="m").ask(QUESTIONS["pairwise"], pairwise_examples(1)[:1])
    assert judgement.order_probabilities == pytest.approx((0.8, 0.6)) and judgement.order_gap == pytest.approx(0.2)
    assert judgement.distribution == pytest.approx({"A": 0.7, "B": 0.3}) and judgement.exact is False
