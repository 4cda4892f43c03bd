"""The judge: a judgement for every example, failures as statuses, both orders for pairs."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import pairwise_examples, pointwise_examples, tiny_llama
from tolerances import share

from perse import Judge
from perse.answering.base import draw
from perse.engines.base import LabelDistribution
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput
from perse.judgement import Status, Tokens
from perse.judging.judge import JudgeSettings
from perse.judging.one import example_of
from perse.questions import QUESTIONS, question_for
from perse.rendering.prompt import Renderer

GREEDY = JudgeSettings(temperature=0, max_new_tokens=12)


@pytest.fixture
def judge(tokenizers: dict[str, Any]) -> Judge:
    tokenizer = tokenizers["chatml"]
    return Judge(TransformersEngine(tiny_llama(tokenizer)), Renderer(tokenizer, 2048), name="tiny")


@pytest.fixture
def willing(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """The same judge, sure that it wants to answer with a label; a random model hardly ever does."""
    read = judge.engine.label_distributions

    def sure(*given: Any) -> list[LabelDistribution]:
        return [LabelDistribution(d.probabilities, 0.9, d.cached) for d in read(*given)]

    monkeypatch.setattr(judge.engine, "label_distributions", sure)
    return judge


def rounding_of(judge: Judge) -> float:
    """Of a label's probability, computed twice, with other prompts in the cache."""
    return share(judge.engine.model, 1000)  # type: ignore[attr-defined]


def test_every_example_gets_a_judgement_in_the_order_asked(willing: Judge) -> None:
    examples = pointwise_examples(3, 2)[::-1]
    judgements = willing.ask(QUESTIONS["pointwise"], examples, GREEDY)
    assert [judgement.id for judgement in judgements] == [example.id for example in examples]
    for judgement in judgements:
        assert judgement.status is Status.OK and judgement.distribution is not None
        assert sum(judgement.distribution.values()) == pytest.approx(1)
        assert judgement.expected == pytest.approx(sum(int(label) * p for label, p in judgement.distribution.items()))
        assert judgement.label == max(judgement.distribution, key=lambda label: judgement.distribution[label])  # type: ignore[index]
        assert judgement.k_effective == 3 and judgement.tokens.generated <= 12
        assert "\n" not in judgement.text


def test_a_model_that_would_say_something_else_is_unparsed_and_its_distribution_is_kept(judge: Judge) -> None:
    [judgement] = judge.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1), GREEDY)
    assert judgement.status is Status.UNPARSED and judgement.label is None
    assert judgement.mass is not None and judgement.mass < 0.5 and judgement.distribution is not None
    assert judgement.error == f"the labels 1 to 10 have {judgement.mass:.2g} of the probability, below 0.5"


def test_an_example_that_does_not_fit_is_too_long_and_the_others_are_judged(willing: Judge) -> None:
    examples = pointwise_examples(1, 3)
    examples[1] = examples[1].model_copy(update={"query": "word " * 2300})
    judgements = willing.ask(QUESTIONS["pointwise_score"], examples, GREEDY)
    assert [judgement.status for judgement in judgements] == [Status.OK, Status.TOO_LONG, Status.OK]
    assert judgements[1].tokens == Tokens(prompt=0, cached=0, generated=0) and judgements[1].k_effective == 0, (
        "nothing was asked"
    )


def test_an_engine_failure_is_one_examples_and_not_the_runs(willing: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = pointwise_examples(1, 3)
    read = willing.engine.label_distributions
    poison = willing.renderer.render(QUESTIONS["pointwise_score"], examples[1])[0].ids

    def failing(prefixes: Any, support: Any) -> Any:
        if poison in prefixes:
            raise RuntimeError("out of memory")
        return read(prefixes, support)

    monkeypatch.setattr(willing.engine, "label_distributions", failing)
    judgements = willing.ask(QUESTIONS["pointwise_score"], examples, GREEDY)
    assert [judgement.status for judgement in judgements] == [Status.OK, Status.ENGINE_ERROR, Status.OK]
    assert judgements[1].error == "RuntimeError: out of memory"


@pytest.mark.numeric
def test_pairs_are_asked_in_both_orders_and_averaged(willing: Judge) -> None:
    question = QUESTIONS["pairwise"]
    example = pairwise_examples(1)[0]
    [judgement] = willing.ask(question, [example], GREEDY)
    support = willing.renderer.label_tokens(question)
    as_given, swapped = willing.engine.label_distributions(
        [rendered.ids for rendered in willing.renderer.render(question, example)], support
    )
    assert judgement.distribution is not None and judgement.order_gap is not None
    first, second, most = as_given.probabilities[0], swapped.probabilities[1], rounding_of(willing)
    assert judgement.distribution["A"] == pytest.approx((first + second) / 2, abs=most, rel=0)
    assert judgement.order_gap == pytest.approx(abs(first - second), abs=2 * most, rel=0)


@pytest.mark.numeric
def test_swapping_the_texts_swaps_the_distribution(willing: Judge) -> None:
    example = pairwise_examples(1)[0]
    query = example.query.model_copy(update={"text_a": example.query.text_b, "text_b": example.query.text_a})
    [one] = willing.ask(QUESTIONS["pairwise"], [example], GREEDY)
    [two] = willing.ask(QUESTIONS["pairwise"], [example.model_copy(update={"query": query})], GREEDY)
    assert one.distribution is not None and two.distribution is not None
    assert one.distribution["A"] == pytest.approx(two.distribution["B"], abs=rounding_of(willing), rel=0)


@pytest.mark.slow
def test_draws_depend_on_the_seed_alone(willing: Judge) -> None:
    question, examples = QUESTIONS["pointwise"], pointwise_examples(2, 3)

    def ask(seed: int) -> list[tuple[str, str | None]]:
        settings = JudgeSettings(temperature=1.5, max_new_tokens=8, seed=seed)
        return [(judgement.text, judgement.label) for judgement in willing.ask(question, examples, settings)]

    assert ask(1) == ask(1)
    assert ask(1) != ask(2)


def test_labels_at_a_temperature_are_drawn_from_the_distribution() -> None:
    """1000 seeded draws of p = (0.2, 0.8) at temperature 1; three standard deviations are 0.038. At 0.5: 0.04 / 0.68."""
    example = pointwise_examples(1, 1)[0]
    for temperature, expected in ((1.0, 0.8), (0.5, 0.64 / 0.68)):
        draws = [draw("AB", (0.2, 0.8), JudgeSettings(temperature=temperature, seed=seed), example) for seed in range(1000)]
        assert draws.count("B") / 1000 == pytest.approx(expected, abs=0.038)


def test_one_text_is_judged_for_one_reader_without_a_data_set(tiny_model_folder: Path) -> None:
    judge = Judge.load(tiny_model_folder, dtype="float32")
    judgement = judge.ask_one(reviews=[("a plot", "dull", 2), ("another plot", "fine", 7)], text="a new plot", settings=GREEDY)
    assert judgement.k_effective == 2 and judgement.distribution is not None
    with pytest.raises(BadInput, match="the text to judge is blank; give"):
        judge.ask_one(reviews=[], text=" ")
    with pytest.raises(BadInput, match="past review 1, field 'score': input should be less than or equal to 10"):
        judge.ask_one(reviews=[("a plot", "too good", 11)], text="a new plot")


PAST = ("a plot", "their review", 8)


@pytest.mark.parametrize(
    ("reviews", "text", "said"),
    [
        ([PAST], 5, "the text to judge is a number; give the text that the reader would review"),
        ([PAST], None, "the text to judge is null; give"),
        ([PAST], b"x", "the text to judge is bytes; give"),
        (5, "x", r"the past reviews are a number, expected a list of \(text, review, score\); give \[\] for none"),
        (None, "x", "the past reviews are null, expected a list"),
        ("past", "x", "the past reviews are a text, expected a list"),
        ({"text": "a"}, "x", "the past reviews are an object, expected a list"),
        ([PAST, ("a", "b")], "x", r"past review 2 is 2 values, expected \(text, review, score\), or these by name"),
        ([5], "x", "past review 1 is a number, expected"),
        (["abc"], "x", "past review 1 is a text, expected"),
        ([("a", "b", "8")], "x", "past review 1, field 'score': found \"8\", expected a number"),
        ([{"text": "a"}], "x", "past review 1, field 'score': field required"),
        (
            [PAST, ("a", " ", 8)],
            "x",
            "past review 2, field 'review': found a blank text; give what the reader wrote, or leave the field out",
        ),
        (
            [(" ", "a", 8)],
            "x",
            "past review 1, field 'text': found a blank text; give the text that was reviewed, or take this review out",
        ),
    ],
)
def test_what_is_no_text_or_no_review_is_a_sentence(judge: Judge, reviews: Any, text: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        judge.ask_one(reviews=reviews, text=text)


@pytest.mark.parametrize(
    "scale",
    [
        5,
        (5,),
        (5, 5),
        (10, 1),
        (0, 1, 2),
        ("0", "5"),
        (float("-inf"), float("inf")),
        (float("nan"), 5),
        (True, 10),
        (0, 10**400),
        b"ab",
    ],
)
def test_what_is_no_scale_of_a_reader_is_a_sentence(scale: Any) -> None:
    with pytest.raises(BadInput, match="the reader's scale"):
        example_of([("a plot", "their review", 5)], "a new plot", scale=scale)


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.float32, np.float64, Decimal, Fraction, int, float])
def test_a_score_of_any_kind_of_number_is_read_on_the_reader_s_scale(kind: Any) -> None:
    example = example_of([("a plot", "their review", kind(5))], "a new plot", scale=(0, 100))
    assert example.profile[0].score == 1  # 1 + 9 * 5 / 100, to the nearest


@pytest.mark.parametrize(
    "score",
    [10**400, -(10**5000), float("nan"), float("inf"), np.float32("nan"), Decimal("NaN"), Decimal("1e999")],
    ids=lambda score: type(score).__name__,
)
def test_a_score_beyond_every_scale_is_a_sentence(score: Any) -> None:
    with pytest.raises(BadInput, match="past review 1: score .* is off the scale 0-100"):
        example_of([("a plot", "their review", score)], "a new plot", scale=(0, 100))


def test_a_scale_may_be_a_list_and_its_ends_numbers_of_numpy() -> None:
    for scale in ((0, 100), [0, 100], np.array([0, 100]), (np.int64(0), np.float32(100))):
        example = example_of([("a plot", "their review", 100)], "a new plot", scale=scale)  # type: ignore[arg-type]
        assert example.own_scale == (0.0, 100.0) and example.profile[0].score == 10


@pytest.mark.parametrize(
    ("question", "examples", "said"),
    [
        ("pointwise", [], r"the question is a text, expected one of perse.questions, such as QUESTIONS\['pointwise'\]"),
        (QUESTIONS["pointwise"], None, "the examples are null, expected a list of examples"),
        (QUESTIONS["pointwise"], [{"id": "a"}], "one of the examples is an object; perse.records.parse_example makes"),
        (QUESTIONS["pointwise"], [{}], "one of the examples is an object; perse.records.parse_example makes"),
        (QUESTIONS["pointwise"], [None], "one of the examples is null; perse.records.parse_example makes"),
    ],
)
def test_what_is_no_question_and_no_example_is_a_sentence(judge: Judge, question: Any, examples: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        judge.ask(question, examples)
    with pytest.raises(BadInput, match=said):
        asyncio.run(judge.aask(question, examples))
    with pytest.raises(BadInput, match=said):
        list(judge.stream(question, examples))
    with pytest.raises(BadInput, match=said):
        judge.ask_listed(question, examples)
    with pytest.raises(BadInput, match=said):
        list(judge.stream_listed(question, examples, known={}))


def test_two_examples_with_one_id_are_refused(willing: Judge) -> None:
    with pytest.raises(BadInput, match="two examples have the same id"):
        willing.ask(QUESTIONS["pointwise_score"], pointwise_examples(1, 1) * 2, GREEDY)


def test_cached_tokens_are_those_of_the_prompt_found_in_the_cache(willing: Judge) -> None:
    examples = pointwise_examples(1, 2)
    first, second = willing.ask(QUESTIONS["pointwise_score"], examples, GREEDY)
    assert first.tokens.cached == 0
    prompts = [willing.renderer.render(QUESTIONS["pointwise_score"], example)[0] for example in examples]
    shared = sum(len(segment.ids) for segment in prompts[0].segments[:4])
    assert shared <= second.tokens.cached < second.tokens.prompt


def test_a_question_that_does_not_fit_the_examples_is_refused() -> None:
    assert question_for(pairwise_examples()).name == "pairwise"
    with pytest.raises(BadInput, match="'pairwise' does not fit: the examples are single texts"):
        question_for(pointwise_examples(), "pairwise")
    with pytest.raises(BadInput, match="there is no question 'nonsense'; choose from pointwise"):
        question_for(pointwise_examples(), "nonsense")
