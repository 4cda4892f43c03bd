"""PerSum's filters counted one by one, and its groups drawn by seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import tiny_llama
from persum_worlds import VOCABULARY, review, text

from perse import Judge
from perse.data.persum.build import build_persum, group_of
from perse.data.persum.filters import Candidate, Funnel, filtered, limited
from perse.data.persum.folder import ProductReview, Scores
from perse.data.persum.options import PUBLISHED, Counts, PersumOptions
from perse.engines.base import LabelDistribution
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput
from perse.questions import QUESTIONS
from perse.rendering.prompt import Renderer, TextRenderer


def world(history: int, *, length: int = 0) -> list[ProductReview]:
    """User u with so many history reviews (of `length` characters together, if given), and one other review of product p."""
    each = [text("u", f"i{n}", "") for n in range(history)]
    if length:
        each[-1] += " " + "z" * (length - sum(map(len, each)) - 1)
    past = [review("u", f"i{n}", said) for n, said in enumerate(each)]
    return [review("u", "p", text("u", "p", "")), review("v", "p", text("v", "p", "")), *past]


def survivors(reviews: list[ProductReview], **settings: Any) -> tuple[list[str], Funnel]:
    options = PersumOptions(reviews=(Path("Toys.csv"),), out=Path("out"), **settings)
    funnel = Funnel()
    return [one.id for one in filtered(reviews, "Toys", options, funnel)], funnel


@pytest.mark.parametrize(
    ("history", "length", "why"),
    [
        (5, 0, "history of 5 reviews or fewer"),
        (6, 0, None),
        (49, 0, None),
        (50, 0, "history of 50 reviews or more"),
        (6, 26_999, None),
        (6, 27_000, "history of 27,000 characters or more"),
    ],
)
def test_a_history_has_6_to_49_reviews_and_under_27000_characters(history: int, length: int, why: str | None) -> None:
    found, funnel = survivors(world(history, length=length))
    assert found == ([] if why else ["Toys/u-p"])
    assert funnel.left["reviews"] == history + 2
    assert funnel.left["candidates"] == 2, "the others are of products that nobody else reviewed"
    assert funnel.out[why or "history of 5 reviews or fewer"] == (2 if history == 5 else 1)


@pytest.mark.parametrize(
    ("bounds", "history", "length", "why"),
    [
        ({"history_over": 3}, 4, 0, None),
        ({"history_over": 7}, 7, 0, "history of 7 reviews or fewer"),
        ({"history_under": 60}, 59, 0, None),
        ({"history_under": 9}, 9, 0, "history of 9 reviews or more"),
        ({"chars_under": 40_000}, 6, 39_999, None),
        ({"chars_under": 2_000}, 6, 2_000, "history of 2,000 characters or more"),
    ],
)
def test_other_bounds_of_a_history_hold_in_place_of_the_papers(
    bounds: dict[str, int], history: int, length: int, why: str | None
) -> None:
    found, funnel = survivors(world(history, length=length), **bounds)
    assert found == ([] if why else ["Toys/u-p"])
    assert why is None or funnel.out[why] >= 1


def test_a_product_needs_a_review_by_somebody_else() -> None:
    found, funnel = survivors(world(6), min_product_reviews=2)
    assert found == [] and funnel.out["fewer than 2 other reviews of the product"] == 8
    assert survivors([*world(6), review("w", "p", text("w", "p", ""))], min_product_reviews=2)[0] == ["Toys/u-p"]


@pytest.mark.parametrize("place", [1, 2])
def test_a_candidate_with_a_copy_of_its_review_beside_it_is_counted_out(place: int) -> None:
    reviews = world(7)
    reviews[place] = reviews[place].model_copy(update={"review": reviews[0].review + " Edited."})
    found, funnel = survivors(reviews)
    assert found == [] and funnel.out["a copy of it stands beside it"] == 1
    assert survivors(reviews, keep_repeats=True)[0] == ["Toys/u-p"], "unless they are asked for"


def test_the_overlap_must_suffice_with_both_or_with_either() -> None:
    reviews = world(7)
    reviews[1] = review("v", "p", "nothing alike")
    assert survivors(reviews)[0] == [] and survivors(reviews)[1].out["overlap below 0.45"] == 1
    assert survivors(reviews, rouge="either")[0] == ["Toys/u-p"]
    assert survivors(reviews, min_overlap=0.0)[0] == ["Toys/u-p"]


def test_what_stands_beside_a_review_is_oldest_first_and_on_its_side() -> None:
    reviews = [one.model_copy(update={"time": f"20{n:02d}-01-01"}) for n, one in enumerate(reversed(world(8)))]
    options = PersumOptions(reviews=(Path("Toys.csv"),), out=Path("out"))
    [candidate] = filtered(reviews, "Toys", options, Funnel())
    assert [one.item_id for one in candidate.history] == [f"i{n}" for n in range(7, -1, -1)]
    assert [one.reviewer_id for one in candidate.product] == ["v"]


def test_reviews_that_no_prompt_would_show_are_not_given_to_the_judge(tokenizers: dict[str, Any]) -> None:
    reviews = tuple(review(f"v{n}", "p", text(f"v{n}", "p", "")) for n in range(60))  # 24 words each
    own = review("u", "p", text("u", "p", ""))
    candidate = Candidate(id="Toys/u-p", category="Toys", own=own, product=reviews, history=())
    renderer = Renderer(tokenizers["chatml"], 800)
    whole, short = (candidate.example("product", context=context) for context in (None, 800))
    assert len(whole.reviews) == 60
    assert len(short.reviews) < 40 and short.reviews == whole.reviews[-len(short.reviews) :]
    [full], [less] = (renderer.render(QUESTIONS["coverage"], one) for one in (whole, short))
    assert full == less and less.k_effective < len(short.reviews)


@pytest.mark.parametrize("side", ["product", "history"])
def test_a_judge_of_sets_of_reviews_reads_all_of_27_000_characters(side: str, tokenizers: dict[str, Any]) -> None:
    """PerSE's 2,500 words are for its own prompts; of 779 candidate sets 322 are longer, and lost a third of their reviews."""
    reviews = tuple(review(f"v{n}", "p", text(f"v{n}", "p", "")) for n in range(205))
    assert sum(len(one.review) for one in reviews) > 26_000 and sum(len(one.review.split()) for one in reviews) > 4_000
    own = review("u", "p", text("u", "p", ""))
    example = Candidate(id="Toys/u-p", category="Toys", own=own, product=reviews, history=reviews).example(side)
    for question in ("coverage", "sentiment"):
        for renderer in (TextRenderer(), Renderer(tokenizers["chatml"], 100_000)):
            assert renderer.render(QUESTIONS[question], example)[0].k_effective == 205


def test_reviews_that_a_judges_context_leaves_out_are_counted_and_printed(
    toy_pianos: Path, tmp_path: Path, tokenizers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = tokenizers["chatml"]
    engine = TransformersEngine(tiny_llama(tokenizer))
    read = engine.label_distributions
    sure = lambda *asked: [LabelDistribution(one.probabilities, 0.9, one.cached) for one in read(*asked)]  # type: ignore[union-attr]  # noqa: E731
    monkeypatch.setattr(engine, "label_distributions", sure)
    options = PersumOptions(reviews=(toy_pianos,), out=tmp_path / "persum", limit=4, low=1.0, high=4.999)
    summary = build_persum(options, Judge(engine, Renderer(tokenizer, 600), name="judge"))
    history = summary.unseen["history"]
    assert (history.sets, history.cut) == (4, 4) and 0 < history.share <= history.largest < 1
    answers = [json.loads(line) for line in (options.work / "judgements.jsonl").read_text("utf-8").splitlines()]
    shown = [one["k_effective"] for one in answers if one["id"].endswith("/history")]
    assert history.share == pytest.approx(1 - sum(shown) / len(shown) / 7, abs=1e-4)
    said = history.told("histories")
    assert said.startswith("longer than the judge's context: 4 of 4 histories, of which ") and said.endswith("%)")
    assert "- reviews of a history that the judge's context left out: in 4 of 4, " in (options.out / "README.md").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(("against", "kept"), [("best", True), ("mean", False), ("whole", False)])
def test_what_a_review_is_compared_with_is_named(against: str, kept: bool) -> None:
    reviews = [*world(7), *(review(f"w{n}", "p", "nothing alike " + " ".join(VOCABULARY[n : n + 12])) for n in range(6))]
    found, _ = survivors(reviews, rouge_against=against, min_overlap=0.9)
    assert ("Toys/u-p" in found) == kept
    with pytest.raises(BadInput, match="rouge_against is 'most', expected best, mean or whole"):
        survivors(reviews, rouge_against="most")


@pytest.mark.parametrize(
    ("beside", "kept_by"),
    [
        ([" ".join(VOCABULARY[n : n + 2]) for n in range(0, 12, 2)], {"whole"}),  # a little of it in each
        ([" ".join(VOCABULARY[:12])] * 7, {"best", "mean"}),  # all of it in each, and together seven times as long
        ([" ".join(VOCABULARY[:12]), *["nothing of this one is alike"] * 6], {"best"}),
    ],
)
def test_the_best_of_a_set_the_mean_over_it_and_the_whole_of_it_are_three_measures(
    beside: list[str], kept_by: set[str]
) -> None:
    others = [review(f"v{n}", "p", said) for n, said in enumerate(beside)]
    past = [review("u", f"i{n}", said) for n, said in enumerate([*beside, "nothing alike"])]
    reviews = [review("u", "p", " ".join(VOCABULARY[:12])), *others, *past]
    settings = {"min_overlap": 1.5, "keep_repeats": True}
    assert {one for one in ("best", "mean", "whole") if survivors(reviews, rouge_against=one, **settings)[0]} == kept_by


def test_a_larger_limit_keeps_what_a_smaller_one_asked(toy_pianos: Path) -> None:
    reviews = [review(f"u{u}", f"i{i}", text(f"u{u}", f"i{i}", "")) for u in range(4) for i in range(8)]
    kept = []
    for limit in (5, 12):
        options = PersumOptions(reviews=(toy_pianos,), out=Path("out"), limit=limit)
        found = list(filtered(reviews, "Toys", options, Funnel()))
        funnel = Funnel()
        kept.append({one.id for one in limited(found, options, funnel)})
        assert funnel.left["asked"] == limit and funnel.out["beyond the limit"] == len(found) - limit
    assert kept[0] < kept[1]


@pytest.mark.parametrize(
    ("history", "coverage", "sentiment", "group"),
    [
        (4.1, 4.1, 4.1, "High"),
        (4.0, 4.0, 3.01, "Low"),
        (4.1, 4.0, 3.01, "HHPL"),
        (5, 5, 4.0, None),  # the product's scores differ
        (3.5, 5, 5, None),  # only the product is high
        (5, 3.0, 3.5, None),  # lower by more than one
        (3.0, 3.5, 3.5, None),
        (1, 1, 1, None),
    ],
)
def test_groups(history: float, coverage: float, sentiment: float, group: str | None) -> None:
    scores = Scores(history_coverage=history, product_coverage=coverage, product_sentiment=sentiment)
    assert group_of(scores) == group


def test_the_published_counts_sum_to_666() -> None:
    assert sum((one.high or 0) + (one.low or 0) + (one.hhpl or 0) for one in PUBLISHED.values()) == 666


def test_categories_have_the_published_counts_or_100_high_and_all_else() -> None:
    named = PersumOptions(
        reviews=(Path("reviews_Electronics_5.json.gz"), Path("Toys.csv")),
        out=Path("out"),
        counts={"Toys": Counts.parse("7,all,0")},
    )
    assert named.counts_of("Electronics") == Counts(100, 24, 52)
    assert named.counts_of("Toys") == Counts(7, None, 0)
    assert named.counts_of("Musical Instruments") == Counts(100, None, None)
    with pytest.raises(BadInput, match=r"invalid counts '1,2'; write HIGH,LOW,HHPL"):
        Counts.parse("1,2")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reviews": ()}, "reviews is empty"),
        ({"reviews": (Path("a/Toys.csv"), Path("b/Toys.csv"))}, "two files of Toys"),
        ({"low": 4.0}, "low is 4 and high 4, expected 1 <= low < high < 5"),
        ({"history_over": 49}, "history_over is 49 and history_under 50"),
        ({"rouge": "all"}, "rouge is 'all', expected both or either"),
        ({"min_overlap": 3.5}, "min_overlap is 3.5, expected 0 to 3"),
        ({"limit": 0, "min_product_reviews": 0}, "min_product_reviews is 0, expected 1 or more; limit is 0"),
        ({"counts": {"Dolls": Counts()}}, "counts names Dolls, expected of Toys"),
        ({"keep_names": True, "salt": "s"}, "exclude each other"),
        ({"salt": ""}, "the salt is empty, which keeps no name secret"),
        ({"on_error": "maybe"}, "on_error is 'maybe'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        PersumOptions(**({"reviews": (Path("Toys.csv"),), "out": Path("out")} | settings))
