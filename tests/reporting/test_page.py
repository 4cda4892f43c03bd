"""The page as a text: everything in it, nothing from elsewhere, nothing that breaks out; samples packed and found again."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Any, get_args

import pytest
from page_builders import (
    BREAKOUT,
    LABELS,
    SCRIPT,
    Elements,
    figure,
    made_page,
    pair_answers,
    pair_examples,
    score_answers,
    score_examples,
    unpacked,
)

from perse.judgement import Status
from perse.records import PointwiseExample, SummaryExample, SummaryReference, VerbatimExample
from perse.reporting.page import SIGNS, Standing, render_page
from perse.reporting.samples import Samples, chosen, pack_samples


def packed(count: int, **options: Any) -> Samples:
    examples = score_examples(count)
    return pack_samples(examples, {"one": score_answers(examples)}, labels=LABELS, **{"most": 100, "seed": 0, **options})


@pytest.mark.parametrize("pairs", [False, True], ids=["scores", "pairs"])
def test_a_page_fetches_nothing(pairs: bool) -> None:
    elements = Elements(render_page(made_page(pairs=pairs))).found
    assert not [tag for tag, _ in elements if tag in ("link", "img", "iframe", "object", "embed", "base")]
    addresses = [
        value for _, given in elements for name, value in given.items() if name in ("src", "href", "action", "xlink:href")
    ]
    assert addresses
    assert all(value and value.startswith(("#", "data:text/csv")) for value in addresses)
    policy = next(given["content"] for tag, given in elements if given.get("http-equiv") == "Content-Security-Policy")
    assert policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy.partition("script-src")[2].partition(";")[0]


@pytest.mark.parametrize("pairs", [False, True], ids=["scores", "pairs"])
@pytest.mark.parametrize("spice", [SCRIPT, BREAKOUT], ids=["script", "breakout"])
def test_texts_make_no_elements(spice: str, pairs: bool) -> None:
    def counted(page: str) -> dict[str, int]:
        tags = [tag for tag, _ in Elements(page).found]
        return {tag: tags.count(tag) for tag in sorted(set(tags))}

    spiced, plain = (render_page(made_page(spice=one, pairs=pairs)) for one in (spice, ""))
    assert counted(spiced) == counted(plain)
    assert "<script>window" not in spiced
    assert "onerror" not in {name for _, given in Elements(spiced).found for name in given}


def test_the_same_data_give_the_same_page() -> None:
    assert render_page(made_page(spice=BREAKOUT)) == render_page(made_page(spice=BREAKOUT))


def test_half_a_surrogate_pair_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perse.strict.is_half", lambda text: False)  # records refuse it; the page does not count on that
    assert render_page(made_page(spice="\ud83d")).encode()


def test_an_undefined_cell_says_why_and_a_missing_interval_too() -> None:
    page = render_page(made_page())
    assert "constant<small></small>" in page
    assert "1.500<small>[few reviewers]</small>" in page
    assert "nan" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL).lower().split()


def test_every_plot_carries_its_words_and_its_numbers() -> None:
    page = render_page(made_page())
    assert page.count('aria-label="A square."') == 2
    given = base64.b64decode(re.findall(r'download="scores.csv" href="data:text/csv;charset=utf-8;base64,([^"]+)"', page)[0])
    assert given.decode() == figure().csv


def test_a_profile_that_repeats_is_packed_once() -> None:
    samples = packed(16)  # two readers, three past reviews each
    texts = unpacked(samples.packed.texts)
    details = unpacked(samples.packed.items)
    assert len(texts) == len(set(texts)) == 2 * 3 * 2 + 16 * (1 + 1 + 1) + 1  # and the error of the one that could not be read
    assert details[0]["profile"] == details[7]["profile"] != details[8]["profile"]


def test_a_sample_is_found_again_whole() -> None:
    examples = score_examples(8)
    answers = score_answers(examples)
    samples = pack_samples(examples, {"one": answers}, labels=LABELS, most=10, seed=0)
    texts, details = unpacked(samples.packed.texts), unpacked(samples.packed.items)
    for example, detail in zip(examples, details, strict=True):
        assert isinstance(example, PointwiseExample)
        assert example.reference
        assert texts[detail["query"][0][1]] == example.query
        assert texts[detail["review"]] == example.reference.review
        assert [texts[part[1]] for part in detail["profile"][0]["parts"]] == [
            example.profile[0].text,
            example.profile[0].review,
        ]
        assert texts[detail["answers"][0]["text"]] == answers[example.id].text


def test_text_chunks_begin_where_the_head_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perse.reporting.packing.TEXT_CHUNK", 2000)
    samples = packed(16)
    lengths = [len(unpacked((chunk,))) for chunk in samples.packed.texts]
    assert len(lengths) > 2
    assert samples.packed.head["textStarts"] == [sum(lengths[:n]) for n in range(len(lengths))]


def test_failures_are_kept_before_others_and_the_order_stays() -> None:
    examples = score_examples(200)
    answers = score_answers(examples)
    kept = chosen(examples, {"one": answers}, most=20, seed=1)
    failed = [example for example in examples if answers[example.id].status is not Status.OK]
    assert len(failed) == 4
    assert set(failed) < set(kept)
    assert kept == [example for example in examples if example in set(kept)]
    assert chosen(examples, {"one": answers}, most=20, seed=1) == kept != chosen(examples, {"one": answers}, most=20, seed=2)


def test_what_a_page_leaves_out_it_says() -> None:
    samples = packed(200, most=20)
    assert (samples.shown, samples.judged) == (20, 200)


def test_an_example_that_one_judge_was_not_asked_stays() -> None:
    examples = score_examples(8)
    answers = score_answers(examples)
    fewer = {key: value for key, value in answers.items() if key != examples[0].id}
    samples = pack_samples(examples, {"one": answers, "two": fewer}, labels=LABELS, most=10, seed=0)
    assert samples.packed.head["answers"][1]["status"][0] is None
    assert unpacked(samples.packed.items)[0]["answers"][1] is None


def test_pairs_carry_the_probability_of_a() -> None:
    examples = pair_examples()
    head = pack_samples(examples, {"one": pair_answers(examples)}, labels=("A", "B"), most=10, seed=0).packed.head
    assert head["pairs"]
    assert head["answers"][0]["value"] == [0.9, 0.6, 0.3, None]
    assert head["gold"] == ["A"] * 4


@pytest.mark.parametrize(
    ("shares", "gap", "even"),
    [({"A": 0.5, "B": 0.5}, 0.1, 1), ({"A": 0.50004, "B": 0.49996}, 0.1, 0), (None, 1.0, 1), (None, 0.0, 0)],
)
def test_pairs_carry_whether_neither_text_is_likelier(shares: dict[str, float] | None, gap: float, even: int) -> None:
    examples = pair_examples()[:1]
    answers = {one.id: pair_answers(pair_examples())[one.id] for one in examples}
    answers = {name: one.model_copy(update={"distribution": shares, "order_gap": gap}) for name, one in answers.items()}
    head = pack_samples(examples, {"one": answers}, labels=("A", "B"), most=10, seed=0).packed.head
    assert head["answers"][0]["even"] == [even]


def test_summaries_and_prompts_open_too() -> None:
    summary = SummaryExample(
        id="s", reviewer_id="p", reviews=("one", "two"), summary="both", reference=SummaryReference(score=2.5)
    )
    prompt = VerbatimExample(id="v", prompt="as it is")
    answers = {key: next(iter(score_answers(score_examples(1)).values())) for key in ("s", "v")}
    for example, words in ((summary, ["both", "one", "two"]), (prompt, ["as it is"])):
        samples = pack_samples([example], {"one": answers}, labels=LABELS, most=10, seed=0)
        assert unpacked(samples.packed.texts)[: len(words)] == words


def test_no_samples_are_no_crash() -> None:
    assert packed(0).shown == 0


def test_what_is_typed_stands_as_code_and_nothing_else_becomes_an_element() -> None:
    data = replace(made_page(), cautions=("`--resample two-way` and `<b>x</b>`, ` alone",))
    assert "<li><code>--resample two-way</code> and <code>&lt;b&gt;x&lt;/b&gt;</code>, ` alone</li>" in render_page(data)


def test_every_standing_has_a_sign_of_its_own_beside_its_words() -> None:
    assert set(SIGNS) == set(get_args(Standing)) and len(set(SIGNS.values())) == len(SIGNS)
    (verdict, _) = made_page().verdicts
    for standing, sign in SIGNS.items():
        page = render_page(replace(made_page(), verdicts=(replace(verdict, standing=standing),)))
        assert f'class="verdict {standing}"' in page and f'aria-hidden="true">{sign}<' in page


def test_whose_profile_a_sample_shows_is_known_of_each_judge() -> None:
    examples = score_examples(8)
    answers = score_answers(examples)
    without = {example.id: example.model_copy(update={"profile": ()}) for example in examples}
    samples = pack_samples(
        examples, {"full": answers, "bare": answers}, asked={"bare": without}, labels=LABELS, most=10, seed=0
    )
    assert [detail["same"] for detail in unpacked(samples.packed.items)] == [[True, False]] * 8


def test_a_page_of_summaries_says_what_was_judged_and_by_whom_it_was_graded() -> None:
    told = render_page(replace(made_page(4), summaries=True))
    assert "says how a summary stands to them" in told and "compared with what people gave that summary" in told
    assert "how a reader would like a new text" not in told and "how a reader would like a new text" in render_page(
        made_page(4)
    )


@pytest.mark.parametrize("pairs", [False, True])
def test_no_guide_says_that_every_judge_is_shown_a_profile(pairs: bool) -> None:
    said = render_page(made_page(pairs=pairs))
    assert "a language model that is shown a few" not in said.lower() and "as a rule after a few of this reader's past" in said
